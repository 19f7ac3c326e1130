"""Calls and their averages: names of attributes are torch.profiler's own (torch.autograd.profiler_util), so that what reads them goes on reading."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Union, cast

from . import _forward_stacks, _inputs
from . import flops as _flops
from ._read_events import NO_TENSOR, is_function
from ._text_units import format_time
from .device import DeviceType

if TYPE_CHECKING:
    from ._stacks import Frames
    from .trace import Event

STEP, STEPS = "ProfilerStep#", "ProfilerStep*"
ANNOTATION = "user_annotation"
STACK_KEY = "Call stack"  # PROF_STACK_KEY of <prof/trace.h>
SEQUENCE_KEY, FORWARD_KEY, THREAD_KEY = "Sequence number", "Fwd thread id", "Thread id"  # of src/preload/torch/calls.c


class Interval:
    """From start to end, in us from the capture's start."""

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start!r}, end={self.end!r})"


class _Times:
    """What torch's mixin adds to both kinds of rows, and what is the same in all of them. Times are in us; those of devices are 0 until a device's back end says them."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    overload_name = ""
    flops: int
    node_id = -1
    scope = 0
    is_async = is_remote = is_legacy = False
    is_user_annotation: Optional[bool] = False
    use_device: Optional[str] = None
    device_type = DeviceType.CPU
    cpu_parent: Optional["FunctionEvent"] = None
    input_shapes: Any
    stack: List[str]
    inner_cpu_time = inner_device_time = 0.0
    """Beyond torch: times of calls inside another call of their row. Only the mean has them."""
    open_count = 0
    """Beyond torch: scopes that had not ended. They are in no count and no time."""
    place = ""
    """Beyond torch: "file.c:12", if known."""

    @property
    def cpu_time(self) -> float:
        return (self.cpu_time_total + self.inner_cpu_time) / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return (self.device_time_total + self.inner_device_time) / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: format_time(self.self_cpu_time_total))
    device_time_str = property(lambda self: format_time(self.device_time))
    device_time_total_str = property(lambda self: format_time(self.device_time_total))
    self_device_time_total_str = property(lambda self: format_time(self.self_device_time_total))
    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cuda_memory_usage = property(lambda self: self.device_memory_usage)
    self_cuda_memory_usage = property(lambda self: self.self_device_memory_usage)


_SUMMED = (
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "inner_cpu_time",
    "inner_device_time",
    "open_count",
)
_OF_ENDED = ("count", "cpu_time_total", "self_cpu_time_total")
_INCLUSIVE = ("cpu_time_total", "device_time_total", "cpu_memory_usage", "device_memory_usage")
_TAKEN = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "cpu_parent",
    "cpu_children",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
    "category",
    "place",
)


class FunctionEventAvg(_Times):
    """All calls of one key."""

    cpu_children: Optional[List["FunctionEvent"]] = None
    category = ""
    """Beyond torch: of record_function() "user_annotation"."""
    level = 1
    """Beyond torch: 2 of what runs around operators, and of what another tool's trace has beside them."""

    def __init__(self, key: Optional[str] = None) -> None:
        self.key = cast(str, key)  # None until the first call is added
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: Any = ""
        self.stack: List[str] = []
        self.flops = 0
        self.min_us, self.max_us = math.inf, 0.0
        """Beyond torch: the shortest and the longest call."""

    @property
    def name(self) -> str:
        return self.key

    def add(self, other: "Either", is_inner: bool = False) -> "FunctionEventAvg":
        """Adds calls of the same key. If this average has no key yet, it takes theirs.

        is_inner: they are inside another call that is added, so their time is part of that call's.
        Raises AssertionError for another key."""
        if not isinstance(other, _Times):
            raise AssertionError(f"a FunctionEvent or a FunctionEventAvg can be added, not {other!r}")
        if self.key is None:
            for field in _TAKEN:
                setattr(self, field, getattr(other, field))
        elif other.key != self.key:
            raise AssertionError(f"only calls of one key add up, not {other.key!r} to {self.key!r}")
        self.is_async = self.is_async and other.is_async  # as C's rows have it: of a mixed one the time is some thread's
        is_open = isinstance(other, FunctionEvent) and other.is_open
        for field in _SUMMED:
            if not (is_open and field in _OF_ENDED) and not (is_inner and field in _INCLUSIVE):
                setattr(self, field, getattr(self, field) + getattr(other, field))
        if is_inner:
            self.inner_device_time += other.device_time_total
        if is_open:
            self.open_count += 1
            return self
        if is_inner:
            self.inner_cpu_time += other.cpu_time_total
        is_average = isinstance(other, FunctionEventAvg)
        if not (isinstance(other, FunctionEvent) and other.is_repeated):
            self.flops += other.flops or 0
        self.min_us = min(self.min_us, other.min_us if is_average else other.cpu_time_total)
        self.max_us = max(self.max_us, other.max_us if is_average else other.cpu_time_total)
        return self

    def __iadd__(self, other: "Either") -> "FunctionEventAvg":
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


_MADE_WHEN_ASKED = {
    name: names
    for names in (("args", "kwinputs"), ("input_shapes", "structured_input_shapes"), ("structured_input_strides",), ("concrete_inputs",), ("input_dtypes",), ("cpu_children",), ("kernels",))
    for name in names
}
"""Those that are one and the same together."""
_OF_TEXTS = {"concrete_inputs": _inputs.concrete, "structured_input_strides": _inputs.strides}


class FunctionEvent(_Times):
    """One call. Times of its range are in us from the profile's start. name is what averages call it ("ProfilerStep*"), trace_name what a trace does ("ProfilerStep#3")."""

    count = 1
    is_python_function = False
    sequence_nr = -1
    fwd_thread: Optional[int] = None
    torch_thread: Optional[int] = None
    """Beyond torch: its own number of the thread, of a forward call: what fwd_thread says of the backward one."""
    device_index = 0
    activity_type = "cpu_op"
    flow_id: Optional[int] = None
    flow_type: Optional[int] = None
    flow_start: Optional[bool] = None
    external_id = linked_correlation_id = 0
    metadata: Optional[Dict[str, Any]] = None
    event_metadata: Any = None
    flops = 0
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0
    python_id = python_parent_id = python_module_id = -1
    frame = ""
    """Beyond torch: of a traced function, where it is defined and how it stands in stacks, "file.py(12): function"."""
    is_open = False
    """Beyond torch: it had not ended when the recording did; its times are those up to then."""
    self_cpu_percent: Any = -1
    total_cpu_percent: Any = -1
    total_device_percent: Any = -1

    _texts = _inputs.NO_TEXTS
    cpu_children: List["FunctionEvent"]
    kernels: List["Kernel"]
    args: Dict[str, Any]
    kwinputs: Dict[str, Any]
    structured_input_shapes: Any
    structured_input_strides: List[List[int]]
    concrete_inputs: List[Any]
    input_dtypes: List[str]

    def __init__(self, number: int, event: Event, origin_ns: int, frames: "Frames", callers: Optional[List[str]] = None) -> None:
        self.id = number
        self.trace_name = event.name
        self.name = self.key = STEPS if event.name.startswith(STEP) else event.name
        self.category = event.category
        self.thread = self.device_resource_id = event.thread
        begin_ns = event.start_ns - origin_ns
        self.time_range = Interval(begin_ns / 1e3, (begin_ns + event.duration_ns) / 1e3)
        self.cpu_time_total = event.duration_ns / 1e3
        self.self_cpu_time_total = event.self_ns / 1e3
        self.depth = event.depth
        if event.kind == "open":
            self.is_open = True
        if event.is_async:
            self.is_async = True
        self.is_user_annotation = event.category == ANNOTATION
        if self.is_user_annotation:
            self.activity_type = ANNOTATION
        stack = ""
        if event.args is not None:
            args = event.args if isinstance(event.args, dict) else event.more
            stack = args.pop(STACK_KEY, "")  # nobody gave it
            self._take_numbers(args)
            self.args = self.kwinputs = args
            tensors = [a for a in event.args if isinstance(a, tuple)] if isinstance(event.args, list) else []
            if tensors:
                self.input_shapes = self.structured_input_shapes = [list(a) for a in tensors]
                self._texts = _inputs.take(args)
                self.flops = 0 if tensors[0] is NO_TENSOR else _flops.of(self.name, self.input_shapes, self._texts[0])
        self.stack = frames.of(str(stack)) if stack else callers if callers is not None else []
        if event.frame:
            self.frame = frames.of(event.frame)[0]
        if event.place:
            self.place = event.place
        if is_function(event.category, self.name):
            self.is_python_function, self.activity_type = True, "python_function"

    def __getattr__(self, name: str) -> Any:
        """What most calls have nothing of is made where it is asked for: it would be most of the objects of a million calls, and of the collector's work."""
        names = _MADE_WHEN_ASKED.get(name)
        if names is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        made: Any = {} if name in ("args", "kwinputs") else []
        if name in _OF_TEXTS:
            made = _OF_TEXTS[name](self._texts)
        for each in names:
            setattr(self, each, made)
        return made

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *_MADE_WHEN_ASKED]

    def _take_numbers(self, args: Dict[str, Any]) -> None:
        """What prof.torch.observe() has of an operator beside its inputs."""
        sequence = args.get(SEQUENCE_KEY) if self.category == "cpu_op" else None
        if isinstance(sequence, int):
            self.sequence_nr, self.fwd_thread, self.torch_thread = sequence, args.get(FORWARD_KEY), args.get(THREAD_KEY)
            for key in (SEQUENCE_KEY, FORWARD_KEY, THREAD_KEY):
                args.pop(key, None)

    def append_cpu_child(self, child: "FunctionEvent") -> None:
        self.cpu_children.append(child)
        if child.fwd_thread and self.sequence_nr < 0 and self.name.startswith(_forward_stacks.EVALUATION):  # autograd's own range around the backward call, which torch.profiler gives its number
            self.sequence_nr, self.fwd_thread = child.sequence_nr, child.fwd_thread

    @property
    def is_repeated(self) -> bool:
        """Beyond torch, which drops such: it is all that a call of the same name has called. Its
        FLOPs are counted with that one."""
        parent = self.cpu_parent
        return parent is not None and parent.name == self.name and len(parent.cpu_children) == 1

    def set_cpu_parent(self, parent: "FunctionEvent") -> None:
        self.cpu_parent = parent

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        self.kernels.append(Kernel(name, device, duration))

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} cpu_children={[c.id for c in self.cpu_children]} {self.use_device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} {self.use_device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


class Kernel(NamedTuple):
    """Work on a device that a call has asked for."""

    name: str
    device: int
    duration: float


Either = Union[FunctionEvent, FunctionEventAvg]
