"""Averages and their table as torch.profiler has them: names of attributes, columns, widths, units, continuation rows and footer are its own (torch.autograd.profiler_util), so that what reads them goes on reading."""

from __future__ import annotations

import bisect
import contextlib
import errno
import math
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

from . import _forward_stacks
from . import flops as _flops
from ._library import whole
from .device import TYPES, DeviceType
from .trace import Event, Row, Trace, is_function

MS, S = 1e3, 1e6
STEP, STEPS = "ProfilerStep#", "ProfilerStep*"
ANNOTATION = "user_annotation"
STACK_KEY = "Call stack"  # PROF_STACK_KEY of <prof/trace.h>
SEQUENCE_KEY, FORWARD_KEY, THREAD_KEY = "Sequence number", "Fwd thread id", "Thread id"  # of src/preload/torch/calls.c
FRAMES_MOST = (1 << 32) - 1


def format_time(us: float, unit: Optional[str] = None) -> str:
    """By magnitude, or in one unit: "12.345us", "1.234ms", "1.234s"."""
    if unit not in (None, "us", "ms", "s"):
        raise ValueError(f"time_unit must be 's', 'ms', 'us' or None, not {unit!r}")
    if unit == "s" or (unit is None and us >= S):
        return f"{us / S:.3f}s"
    if unit == "ms" or (unit is None and us >= MS):
        return f"{us / MS:.3f}ms"
    return f"{us:.3f}us"


def format_memory(count: int) -> str:
    """ "1.50 MB" of 2^20 bytes, as torch.profiler has it."""
    for power, word in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(count) >= 1 << power:
            return f"{count / (1 << power):.2f} {word}"
    return f"{count} B"


def _share(part: float, whole: float) -> str:
    return "NaN" if whole == 0 else f"{part * 100.0 / whole:.2f}%"


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

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

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
)
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
)


class FunctionEventAvg(_Times):
    """All calls of one key."""

    cpu_children: Optional[List["FunctionEvent"]] = None
    category = ""
    """Beyond torch: of record_function() "user_annotation"."""

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

    def add(self, other: "_Either") -> "FunctionEventAvg":
        """Calls of the same key; the first ones give it theirs. AssertionError for another key."""
        if not isinstance(other, _Times):
            raise AssertionError(f"a FunctionEvent or a FunctionEventAvg can be added, not {other!r}")
        if self.key is None:
            for field in _TAKEN:
                setattr(self, field, getattr(other, field))
        elif other.key != self.key:
            raise AssertionError(f"only calls of one key add up, not {other.key!r} to {self.key!r}")
        for field in _SUMMED:
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.flops += other.flops or 0
        self.min_us = min(self.min_us, getattr(other, "min_us", other.cpu_time_total))
        self.max_us = max(self.max_us, getattr(other, "max_us", other.cpu_time_total))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


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
    python_id = python_parent_id = python_module_id = -1
    is_open = False
    """Beyond torch: it had not ended when the recording did; its times are those up to then."""
    self_cpu_percent: Any = -1
    total_cpu_percent: Any = -1
    total_device_percent: Any = -1

    def __init__(self, number: int, event: Event, origin_ns: int, frames: "_Frames", callers: Optional[List[str]] = None) -> None:
        self.id = number
        self.trace_name = event.name
        self.name = self.key = STEPS if event.name.startswith(STEP) else event.name
        self.category = event.category
        self.thread = self.device_resource_id = event.thread
        begin_ns = event.start_ns - origin_ns
        self.time_range = Interval(begin_ns / 1e3, (begin_ns + event.duration_ns) / 1e3)
        self.cpu_time_total = event.duration_ns / 1e3
        self.self_cpu_time_total = event.self_ns / 1e3
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.depth = event.depth
        if event.kind == "open":
            self.is_open = True
        self.cpu_children: List[FunctionEvent] = []
        self.kernels: List[Any] = []
        self.is_user_annotation = event.category == ANNOTATION
        if self.is_user_annotation:
            self.activity_type = ANNOTATION
        args = dict(event.args if isinstance(event.args, dict) else event.more)
        stack = args.pop(STACK_KEY, "")  # nobody gave it
        self._take_numbers(args)
        self.args = self.kwinputs = args
        tensors = [a for a in event.args if isinstance(a, tuple)] if isinstance(event.args, list) else []
        self.input_shapes = self.structured_input_shapes = [list(a) for a in tensors]
        self.structured_input_strides: List[List[int]] = []
        self.concrete_inputs: List[Any] = []
        self.input_dtypes: List[str] = []
        self.stack = frames.of(str(stack)) or (callers if callers is not None else [])
        if is_function(event.category, self.name):
            self.is_python_function, self.activity_type = True, "python_function"
        self.flops = _flops.of(self.name, self.input_shapes) if tensors else 0

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


_Either = Union[FunctionEvent, FunctionEventAvg]
if TYPE_CHECKING:
    from typing_extensions import TypeVar  # checkers have it; its default lets EventList alone stand as a type

    _Row = TypeVar("_Row", bound=_Either, default=Any)
else:
    from typing import TypeVar

    _Row = TypeVar("_Row")

_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]


def _attribute(name: str) -> str:
    """Names of devices are aliases of "device"."""
    for device in ("cuda", "xpu", "privateuse1"):
        name = name.replace(device, "device")
    return name


class SortError(ValueError, AttributeError):
    """torch.profiler raises an AttributeError."""


class EventList(List[_Row]):
    """A list of events or averages, with its table: an EventList[FunctionEvent] or an EventList[FunctionEventAvg]."""

    _origin: Optional["_Origin"] = None  # of averages that C has made
    _is_of_events = False
    _shows_functions = False
    """Whether traced functions are rows of key_averages() where nothing is said of them."""
    lost = 0
    """Scopes that are not in it, for want of room. Beyond torch.profiler; where there are some, the table's last line says so."""

    def __init__(self, events: Iterable[_Row] = (), *, use_device: Optional[str] = None, profile_memory: bool = False, with_flops: bool = False) -> None:
        super().__init__(events)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops

    def __getstate__(self) -> Dict[str, Any]:
        """A copy does without the trace, which stays in this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_origin"}

    @property
    def self_cpu_time_total(self) -> float:
        """us."""
        return sum(e.self_cpu_time_total for e in self)

    def total_average(self) -> FunctionEventAvg:
        """All in one, with the key "Total"."""
        total = FunctionEventAvg()
        for e in self:
            total += e
            total.key = cast(str, None)
        total.key = "Total"
        return total

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False, include_python_functions: Optional[bool] = None
    ) -> "EventList[FunctionEventAvg]":
        """Added up in Python, in the order of the first call. profile.key_averages() does it in C, and says what include_python_functions is."""
        if include_python_functions is None:
            include_python_functions = self._shows_functions
        group_by_stack_n = whole(group_by_stack_n, "group_by_stack_n", 0, FRAMES_MOST)
        merged: Dict[Tuple[Any, ...], FunctionEventAvg] = {}
        for e in self:
            if not include_python_functions and getattr(e, "is_python_function", False):
                continue
            shapes, stack = (e.input_shapes if group_by_input_shapes else ""), e.stack[:group_by_stack_n]
            overload = e.overload_name if group_by_overload_name else ""
            average = merged.setdefault((e.key, e.node_id, e.device_type, e.is_legacy, e.is_user_annotation, overload, str(shapes), *stack), FunctionEventAvg())
            average.add(e)
            average.input_shapes, average.stack, average.overload_name = shapes, stack, overload
        return EventList(merged.values(), use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops)

    def export_chrome_trace(self, path: str) -> None:
        """Of events(): a list of them, as JSON. profile.export_chrome_trace() writes more, and faster."""
        rows = [
            {"name": e.trace_name, "ph": "X", "ts": e.time_range.start, "dur": e.time_range.elapsed_us(), "tid": e.thread, "pid": "CPU functions", "args": {}} for e in self if isinstance(e, FunctionEvent)
        ]
        import json

        write_whole(path, json.dumps(rows))

    def _sorted(self, sort_by: Optional[str]) -> List[_Row]:
        if sort_by is None:
            return list(self)
        attribute = _attribute(sort_by)
        try:
            return sorted(self, key=lambda e: getattr(e, attribute), reverse=True)
        except AttributeError:
            known = "cpu_time, cpu_time_total, self_cpu_time_total, cpu_memory_usage, self_cpu_memory_usage, count, flops, and those of cuda"
            raise SortError(f"sort_by={sort_by!r} is no attribute of a row: {known}") from None

    def table(
        self,
        sort_by: Optional[str] = None,
        row_limit: int = 100,
        max_src_column_width: Optional[int] = 75,
        max_name_column_width: Optional[int] = 55,
        max_shapes_column_width: Optional[int] = 80,
        header: Optional[str] = None,
        top_level_events_only: bool = False,
        time_unit: Optional[str] = None,
    ) -> str:
        """torch.profiler's table. row_limit -1: all rows; time_unit: "s", "ms", "us", or None: by magnitude. Shares are of the sum of the self times of all rows. top_level_events_only: of averages those whose first call was in no
        other, which takes a walk over all events, some us each. "" without rows. TypeError, ValueError."""
        format_time(0, time_unit)
        for name, text in (("sort_by", sort_by), ("header", header)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} must be a str or None, not {text!r}")
        whole(row_limit, "row_limit", -1)
        for name, width in (("max_src_column_width", max_src_column_width), ("max_name_column_width", max_name_column_width), ("max_shapes_column_width", max_shapes_column_width)):
            if width is not None:
                whole(width, name)
        if not isinstance(top_level_events_only, int):
            raise TypeError(f"top_level_events_only must be a bool, not {top_level_events_only!r}")
        if not self:
            return ""
        if top_level_events_only and self._origin is not None:
            self._origin.find_parents(self)
        events = self._sorted(sort_by)
        table = _Table(events, self._profile_memory, self._with_flops, max_src_column_width, max_name_column_width, max_shapes_column_width, time_unit)
        lost = f"Not in it, for want of room: {self.lost} scopes\n" if self.lost else ""
        return table.text(row_limit, header, top_level_events_only) + lost

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Notebooks show it."""
        from html import escape

        columns, rows = self._columns()
        head = "".join(f"<th>{escape(c)}</th>" for c in columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(_shown(c, v))}</td>" for c, v in zip(columns, row)) + "</tr>" for row in rows[:100])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _columns(self) -> Tuple[List[str], List[List[Any]]]:
        names = _EVENT_COLUMNS if self._is_of_events else _COLUMNS
        names = names + ["cpu_memory_usage", "self_cpu_memory_usage"] * self._profile_memory
        names += [name for name in ("input_shapes", "stack", "args") if any(getattr(e, name, None) for e in self)]
        names += ["flops"] * self._with_flops
        return names, [[_GETTERS[n](e) if n in _GETTERS else getattr(e, n) for n in names] for e in self]

    def to_dict(self) -> Dict[str, List[Any]]:
        """A list for each column; times in us, memory in bytes. Of events a row each, with its id and its parent's."""
        names, rows = self._columns()
        return {n: [row[i] for row in rows] for i, n in enumerate(names)}

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of to_dict(). ImportError without pandas."""
        import pandas

        columns: Dict[str, Any] = dict(self.to_dict())
        if "parent_id" in columns:  # numpy's integers have no None: they would be floats
            columns["parent_id"] = pandas.array(columns["parent_id"], dtype="Int64")
        return pandas.DataFrame(columns)

    def to_arrow(self) -> Any:
        """A pyarrow.Table of to_dict(). ImportError without pyarrow."""
        import pyarrow

        columns = self.to_dict()
        for name in ("input_shapes", "stack", "args"):
            if name in columns:
                columns[name] = [str(v) for v in columns[name]]
        return pyarrow.table(columns)

    def to_csv(self) -> str:
        """The text, comma-separated, with a heading; lines end in "\\n". csv.reader() gives back each name; of a file it needs open(..., newline=""), as its own documentation says."""
        import csv
        from types import SimpleNamespace

        names, rows = self._columns()
        lines: List[str] = []
        writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")  # before Python 3.13 a carriage return is put into quotes only where it ends lines
        writer.writerow(names)
        writer.writerows(rows)
        return "".join(f"{line[:-2]}\n" for line in lines)

    def supported_export_stacks_metrics(self) -> List[str]:
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Stacks and a metric (us) each, for flame graphs: a line "outer;inner 1234" for each stack, added up, in whole us, at least 1. Needs with_stack."""
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {_METRICS}, not {metric!r}")
        replaced = str.maketrans(" ;\t\n", "____")
        totals: Dict[str, float] = {}
        for e in self:
            if e.stack:
                stack = ";".join(frame.translate(replaced) for frame in reversed(e.stack))
                totals[stack] = totals.get(stack, 0.0) + getattr(e, _attribute(metric))
        write_whole(path, "".join(f"{stack} {max(int(total), 1)}\n" for stack, total in totals.items() if total > 0))


_COLUMNS = ["name", "count", "cpu_time_total", "self_cpu_time_total", "cpu_time"]
_EVENT_COLUMNS = ["id", "name", "category", "thread", "depth", "start_us", "end_us", "cpu_time_total", "self_cpu_time_total", "parent_id", "is_open"]
_GETTERS: Dict[str, Any] = {
    "start_us": lambda e: e.time_range.start,
    "end_us": lambda e: e.time_range.end,
    "parent_id": lambda e: None if e.cpu_parent is None else e.cpu_parent.id,
}


def _shown(column: str, value: Any) -> str:
    """A cell with its unit."""
    if column.endswith("_us"):
        return f"{value:.3f}us"
    if "time" in column:
        return format_time(value)
    return format_memory(value) if "memory" in column else "" if value is None else str(value)


def write_whole(path: Union[str, "os.PathLike[str]"], text: str) -> None:
    """Under another name first: the final one never holds half a file. As C's dumps (docs/viewers.md): a symbolic link to a file is replaced, not followed; /dev/null, /dev/stdout and FIFOs are written to straight, other devices and
    folders are refused, so that none becomes a plain file. OSError and its kin."""
    final, raw = os.fsdecode(path), text.encode("utf-8", "replace")
    straight = _open_straight(final)
    if straight is not None:
        with open(straight, "wb") as f:
            f.write(raw)
        return
    name = f"{final}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(name, "xb") as f:
            f.write(raw)
        os.replace(name, final)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _open_straight(path: str) -> Optional[int]:
    """A descriptor of what is there and is no file; None: a file can be put there."""
    if path == "/dev/stdout":  # the descriptor itself: of a file, opened anew, the beginning would be written over
        return os.dup(1)
    try:
        about = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(about.st_mode):
        return None
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    is_null = stat.S_ISCHR(about.st_mode) and about.st_rdev == os.makedev(1, 3)
    if not is_null and not stat.S_ISFIFO(about.st_mode):
        raise OSError(errno.EINVAL, "neither a file nor a FIFO, nor /dev/null", path)
    try:
        opened = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as e:
        if e.errno == errno.ENXIO:  # to wait for a reader would stop the program
            raise OSError(errno.ENXIO, "nobody reads from it", path) from None
        raise
    os.set_blocking(opened, True)
    return opened


class _Table:
    """One table; widths come first."""

    WIDTH, GAP = 12, "  "

    def __init__(
        self,
        events: Sequence[_Either],
        profile_memory: bool,
        with_flops: bool,
        max_src: Optional[int],
        max_name: Optional[int],
        max_shapes: Optional[int],
        time_unit: Optional[str],
    ) -> None:
        self.events, self.unit, self.max_name, self.memory = events, time_unit, max_name, profile_memory
        self.self_total = sum(e.self_cpu_time_total for e in events)
        devices = [e for e in events if e.is_legacy or (e.device_type is not DeviceType.CPU and not e.is_user_annotation)]
        self.device_total = sum(e.self_device_time_total for e in devices or events)  # where devices have no rows of their own, the host's have it all
        self.has_device = any(e.self_device_time_total > 0 for e in events)
        self.has_device_memory = profile_memory and any(e.self_device_memory_usage > 0 for e in events)
        self.has_overloads = any(e.overload_name for e in events)
        self.has_nodes = any(e.node_id != -1 for e in events)
        self.has_shapes = any(e.input_shapes for e in events)
        self.has_stack = any(e.stack for e in events)
        self.device = next((e.use_device for e in events if e.use_device), "cuda").upper()
        rates = [e.flops for e in events if e.flops > 0] if with_flops else []
        self.flops_power = min(int(math.log10(min(rates)) / 3), 5) if rates else -1
        self.shapes_width = self._width((len(str(e.input_shapes)) for e in events), max_shapes)
        self.src_width = self._width((len(f) for e in events for f in e.stack), max_src)
        name_width, device = self._width((len(e.key or "") for e in events), max_name), self.device
        columns = [("Name", name_width)] + [("Overload Name", name_width)] * self.has_overloads
        titles = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if self.has_device:
            titles += [f"Self {device}", f"Self {device} %", f"{device} total", f"{device} time avg"]
        if self.memory:
            titles += ["CPU Mem", "Self CPU Mem"]
        if self.has_device_memory:
            titles += [f"{device} Mem", f"Self {device} Mem"]
        titles += ["# of Calls"] + ["Node ID"] * self.has_nodes
        columns += [(title, self.WIDTH) for title in titles]
        if self.has_shapes:
            columns.append(("Input Shapes", self.shapes_width))
        if self.has_stack:
            columns.append(("Source Location", self.src_width))
        if self.flops_power >= 0:
            columns.append(("Total " + ("", "K", "M", "G", "T", "P")[self.flops_power] + "FLOPs", self.WIDTH))
        self.columns = columns

    @staticmethod
    def _width(lengths: Iterable[int], most: Optional[int]) -> int:
        width = max(lengths, default=0) + 4
        return width if most is None else min(width, most)

    def _line(self, cells: List[str]) -> str:
        parts = []
        for (title, width), cell in zip(self.columns, cells):
            parts.append(cell.ljust(width) if title == "Source Location" else cell.rjust(width))
        return "".join(p + self.GAP for p in parts)

    def _name(self, name: str) -> str:
        if self.max_name is not None and len(name) >= self.max_name - 3:
            return name[: self.max_name - 3] + "..."
        return name

    def _source(self, frame: str) -> str:
        if len(frame) <= self.src_width:
            return frame
        cut = frame[len(frame) - self.src_width :]
        return "..." + cut[3:] if len(cut) > 3 else cut

    def _cells(self, e: _Either) -> List[str]:
        cells = [self._name(e.key or "")] + [self._name(e.overload_name or "")] * self.has_overloads
        cells += [
            _share(e.self_cpu_time_total, self.self_total),
            format_time(e.self_cpu_time_total, self.unit),
            _share(e.cpu_time_total, self.self_total) if not e.is_async else "0",
            format_time(e.cpu_time_total, self.unit),
            format_time(e.cpu_time, self.unit),
        ]
        if self.has_device:
            cells += [
                format_time(e.self_device_time_total, self.unit),
                _share(e.self_device_time_total, self.device_total),
                format_time(e.device_time_total, self.unit),
                format_time(e.device_time, self.unit),
            ]
        if self.memory:
            cells += [format_memory(e.cpu_memory_usage), format_memory(e.self_cpu_memory_usage)]
        if self.has_device_memory:
            cells += [format_memory(e.device_memory_usage), format_memory(e.self_device_memory_usage)]
        cells += [str(e.count)] + [str(e.node_id)] * self.has_nodes
        if self.has_shapes:
            cells.append(str(e.input_shapes)[: self.shapes_width])
        if self.has_stack:
            cells.append(self._source(e.stack[0]) if e.stack else "")
        if self.flops_power >= 0:
            cells.append(f"{e.flops * 10.0 ** (-3 * self.flops_power):8.3f}" if e.flops > 0 else "--")
        return cells

    def text(self, row_limit: int, header: Optional[str], top_level_only: bool) -> str:
        rule = "".join("-" * width + self.GAP for _, width in self.columns)
        line = "=" * (sum(width + len(self.GAP) for _, width in self.columns) - len(self.GAP))
        lines = [line, header] if header is not None else []
        if top_level_only:
            lines += [line, "This report only display top-level ops statistics"]
        lines += [rule, self._line([title for title, _ in self.columns]), rule]
        shown = 0
        at_source = next((i for i, c in enumerate(self.columns) if c[0] == "Source Location"), -1)
        for e in self.events:
            if shown == row_limit:
                break
            if top_level_only and e.cpu_parent is not None:
                continue
            shown += 1
            lines.append(self._line(self._cells(e)))
            if not self.has_stack:
                continue
            for frame in e.stack[1:]:
                cells = [""] * len(self.columns)
                cells[at_source] = self._source(frame)
                lines.append(self._line(cells))
            lines.append(self._line([""] * len(self.columns)))
        lines += [rule, f"Self CPU time total: {format_time(self.self_total, self.unit)}"]
        if self.has_device:
            lines.append(f"Self {self.device} time total: {format_time(self.device_total, self.unit)}")
        return "\n".join(lines) + "\n"


# ---- from a trace ----


class Window(NamedTuple):
    """A stretch of a trace: what began from from_ns on, and before to_ns (0: up to its end), ns from the capture's start. origin_ns: where its profile counts from. lost: scopes of it that are not there, for want of room."""

    trace: Trace
    from_ns: int
    to_ns: int
    origin_ns: int
    lost: int


class _Frames:
    """Of a recorded stack its frames, innermost first, without the folder of sys.path that they stand in, as torch.profiler shows them."""

    def __init__(self) -> None:
        folders = {os.path.join(os.path.abspath(folder), "") for folder in sys.path}
        self.folders = sorted(folders, key=len, reverse=True)
        self.known: Dict[str, str] = {}

    def of(self, stack: str) -> List[str]:
        return [self.known.get(frame) or self._short(frame) for frame in stack.split(";")] if stack else []

    def _short(self, frame: str) -> str:
        folder = next((f for f in self.folders if frame.startswith(f)), "")
        self.known[frame] = frame[len(folder) :]
        return self.known[frame]


class _Callers:
    """Of one thread the traced functions that stand open, as its events come by: the stack of what has none of its own. A list for each way to get somewhere, which all that was begun by it share."""

    def __init__(self, frames: _Frames) -> None:
        self._frames = frames
        self._outside: List[str] = []
        self._open: List[Tuple[int, int, List[str]]] = []
        """Depth, end, and the stack of what it calls."""
        self._ways: Dict[Tuple[int, str], List[str]] = {}

    def next_thread(self) -> None:
        self._open = []

    def of(self, event: Event) -> List[str]:
        """What stands around it."""
        end = event.start_ns + event.duration_ns
        while self._open and (self._open[-1][1] < event.start_ns or (self._open[-1][1] == event.start_ns and self._open[-1][0] >= event.depth)):
            self._open.pop()
        around = next((inner for _, until, inner in reversed(self._open) if end <= until), self._outside)  # the last but for what overlaps
        if event.frame:
            key = id(around), event.frame
            if key not in self._ways:
                self._ways[key] = self._frames.of(event.frame) + around
            self._open.append((event.depth, end, self._ways[key]))
        return around


def _average(row: Row, by_shape: bool, frames: _Frames) -> FunctionEventAvg:
    average = FunctionEventAvg(STEPS if row.name.startswith(STEP) else row.name)
    average.count = row.count or row.device_count  # what ran on a device, and belongs to no scope of the host's: how often it ran there
    average.cpu_time_total, average.self_cpu_time_total = row.total_ns / 1e3, row.self_ns / 1e3
    average.cpu_memory_usage, average.self_cpu_memory_usage = row.memory_bytes, row.self_memory_bytes
    average.device_memory_usage, average.self_device_memory_usage = row.device_memory_bytes, row.self_device_memory_bytes
    average.device_time_total, average.self_device_time_total = row.device_total_ns / 1e3, row.self_device_ns / 1e3
    average.min_us, average.max_us = row.min_ns / 1e3, row.max_ns / 1e3
    average.category = row.category
    average.is_user_annotation = row.category == ANNOTATION
    shapes = _flops.parsed(row.shape)
    average.flops = _flops.of(row.name, shapes) * row.count
    average.input_shapes = shapes if by_shape else ""
    average.stack = frames.of(row.stack)
    return average


def _device_of(windows: Sequence[Window]) -> Optional[str]:
    """The type of the first device that scopes were put on, as torch.profiler names it."""
    for window in windows:
        for device in window.trace.devices():
            return next((name for name, code in TYPES.items() if code == device.device.type), "device")
    return None


def averages(windows: Sequence[Window], by_shape: bool, stack_frames: int, profile_memory: bool, with_flops: bool) -> EventList[FunctionEventAvg]:
    """All scopes of the windows, added up in C by name and, where asked for, shapes and innermost frames; a user's annotation apart from an operator of its name. In the order of their first calls."""
    stack_frames = whole(stack_frames, "group_by_stack_n", 0, FRAMES_MOST)  # the user's word
    group = ["name", "category"]
    if by_shape or with_flops:
        group.append("shape")
    if stack_frames > 0:
        group.append("stack")
        if _forward_stacks.has_backward(row.name for window in windows for row in window.trace.aggregate("name")):
            return _of_events(windows, by_shape, stack_frames, profile_memory, with_flops)
    merged: Dict[Tuple[Any, ...], FunctionEventAvg] = {}
    frames = _Frames()
    for window in windows:
        for row in window.trace.aggregate(group, "first", from_ns=window.from_ns, to_ns=window.to_ns, stack_frames=stack_frames):
            average = _average(row, by_shape, frames)
            key = (average.key, average.is_user_annotation, row.shape if by_shape else "", row.stack)
            if key in merged:
                merged[key].add(average)
            else:
                merged[key] = average
    device = _device_of(windows)
    for average in merged.values():
        average.use_device = device
    found = EventList(merged.values(), use_device=device, profile_memory=profile_memory, with_flops=with_flops)
    found._origin = _Origin(windows, by_shape, stack_frames)
    found.lost = sum(window.lost for window in windows)
    return found


def _of_events(windows: Sequence[Window], by_shape: bool, stack_frames: int, profile_memory: bool, with_flops: bool) -> EventList[FunctionEventAvg]:
    """averages(), one by one in Python: where stacks are those of forward calls, which C's sums know nothing of."""
    events = single_events(windows, profile_memory, with_flops)
    found = events.key_averages(by_shape, stack_frames, include_python_functions=True)
    device = _device_of(windows)
    for average in found:
        average.use_device = device
    found._origin, found.lost = _Origin(windows, by_shape, stack_frames), events.lost
    return found


class _Origin(NamedTuple):
    """What averages are of: asked again where the events themselves are needed."""

    windows: Sequence[Window]
    by_shape: bool
    stack_frames: int

    def find_parents(self, averages: Iterable[_Either]) -> None:
        """Gives each the parent of its first event, as torch.profiler's have it."""
        first: Dict[Any, Optional[FunctionEvent]] = {}
        for e in single_events(self.windows, False, False, self.stack_frames > 0):
            first.setdefault((e.key, e.is_user_annotation, str(e.input_shapes) if self.by_shape else "", tuple(e.stack[: self.stack_frames])), e.cpu_parent)
        for average in averages:
            average.cpu_parent = first.get((average.key, average.is_user_annotation, str(average.input_shapes), tuple(average.stack)))


def _charge(event: Event, around: Sequence[FunctionEvent], until_ns: int) -> None:
    """Memory is its innermost scope's own, and part of all around it."""
    if not around or event.start_ns > until_ns:
        return
    if event.device == TYPES["cpu"]:
        around[-1].self_cpu_memory_usage += event.bytes
        for scope in around:
            scope.cpu_memory_usage += event.bytes
    else:
        around[-1].self_device_memory_usage += event.bytes
        for scope in around:
            scope.device_memory_usage += event.bytes


def _charge_device(host: FunctionEvent, ran: Iterable[Event], device: Optional[str]) -> None:
    """What ran on a device is its host's scope's own, and part of all around it."""
    host.use_device = device
    for event in ran:
        host.append_kernel(event.name, event.device_index, event.duration_ns / 1e3)
        host.self_device_time_total += event.self_ns / 1e3
        around: Optional[FunctionEvent] = host
        while around is not None:
            around.device_time_total += event.self_ns / 1e3
            around = around.cpu_parent


def _around(moment_ns: int, starts: List[int], scopes: List[Tuple[FunctionEvent, int]], ends: Dict[int, int]) -> Optional[FunctionEvent]:
    """The innermost scope of a thread that stood open then: what a kernel that a vendor's tracing told was launched in."""
    place = bisect.bisect_right(starts, moment_ns)
    host = scopes[place - 1][0] if place else None
    while host is not None and ends[id(host)] < moment_ns:
        host = host.cpu_parent
    return host


def single_events(windows: Sequence[Window], profile_memory: bool, with_flops: bool, with_stack: bool = True, shows_functions: bool = True) -> EventList[FunctionEvent]:
    """Each scope of the windows, by its start; those that had not ended are marked. with_stack: what has no stack of its own has the traced functions around it. Made one by one in Python: some us each."""
    events: List[FunctionEvent] = []
    for window in windows:
        events += _scopes(window, len(events), with_stack)
    found = EventList(events, use_device=_device_of(windows), profile_memory=profile_memory, with_flops=with_flops)
    found._is_of_events, found._shows_functions = True, shows_functions
    found.lost = sum(window.lost for window in windows)
    return found


def _scopes(window: Window, number: int, with_stack: bool) -> List[FunctionEvent]:
    found: List[FunctionEvent] = []
    around: List[FunctionEvent] = []
    ends: List[int] = []
    launched: Dict[Tuple[int, int], List[Event]] = {}
    hosts: Dict[Tuple[int, int], FunctionEvent] = {}
    starts: Dict[int, List[int]] = {}
    by_start: Dict[int, List[Tuple[FunctionEvent, int]]] = {}
    thread, frames = -1, _Frames()
    callers, callers_thread = _Callers(frames), -1
    for event in window.trace.events():
        stack: Optional[List[str]] = None
        if with_stack and event.kind in ("scope", "open"):
            if event.thread != callers_thread:
                callers_thread = event.thread
                callers.next_thread()
            stack = callers.of(event)
        if event.kind not in ("scope", "open", "memory") or event.start_ns < window.from_ns or (window.to_ns and event.start_ns >= window.to_ns):
            continue
        if event.launch is not None:
            launched.setdefault(event.launch, []).append(event)
            continue
        if event.thread != thread:
            thread, around, ends = event.thread, [], []
        while around and around[-1].depth >= event.depth:
            around.pop()
            ends.pop()
        if event.kind == "memory":
            _charge(event, around, ends[-1] if ends else 0)
            continue
        made = FunctionEvent(0, event, window.origin_ns, frames, stack)
        if around and event.start_ns + event.duration_ns <= ends[-1]:
            made.set_cpu_parent(around[-1])
            around[-1].append_cpu_child(made)
        around.append(made)
        ends.append(event.start_ns + event.duration_ns)
        found.append(made)
        if event.is_call:
            continue
        hosts[event.thread, event.start_ns] = made
        starts.setdefault(event.thread, []).append(event.start_ns)
        by_start.setdefault(event.thread, []).append((made, ends[-1]))
    ends_of = {id(made): end for rows in by_start.values() for made, end in rows} if launched else {}
    for launch, ran in launched.items():
        host = hosts.get(launch) or _around(launch[1], starts.get(launch[0], []), by_start.get(launch[0], []), ends_of)
        if host is not None:
            _charge_device(host, ran, _device_of([window]))
    found.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
    if with_stack:
        _forward_stacks.give(found)
    for place, made in enumerate(found, number):
        made.id = place
    return found


__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel", "SortError", "averages", "format_memory", "format_time", "single_events", "Window", "write_whole"]


def __dir__() -> List[str]:
    return list(__all__)
