"""FunctionEvent: one call. Its attributes are read from the trace when a program asks for them."""

from __future__ import annotations

import threading
from operator import attrgetter
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, cast

from . import _arrows, _forward_stacks
from ._read_arguments import Given, Same
from ._sites import Site
from ._times import Interval, Times


class _Told:
    """An attribute that a function of the event returns, unless the program has set it."""

    names: List[str] = []
    """The names of all such attributes, those of _Kept among them."""

    def __init__(self, tell: Callable[["FunctionEvent"], Any]) -> None:
        self._tell = tell

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name
        self.names.append(name)

    def __get__(self, event: Optional["FunctionEvent"], owner: Any = None) -> Any:
        return self if event is None else self._tell(event)


class _Kept(_Told):
    """An attribute that is made at the first read, and is the event's own afterwards."""

    def __get__(self, event: Optional["FunctionEvent"], owner: Any = None) -> Any:
        if event is None:
            return self
        # Two threads that read it get the same value.
        return _own(event).setdefault(self._name, self._tell(event))


def _told(tell: Callable[["FunctionEvent"], Any]) -> Any:
    return _Told(tell)


def _of_site(name: str) -> Any:
    return _Told(attrgetter("_site." + name))


def _of_arguments(tell: Callable[[Same], Any], of_memory: Callable[[], Any] = lambda: None) -> Any:
    """Each event has its own list. of_memory: makes the value of MEMORY_ROW instead, as in
    torch.profiler."""

    def found(event: "FunctionEvent") -> Any:
        if event._record:
            return tell(event._arguments()[0])
        return of_memory() if event._site.is_memory else []

    return _Kept(found)


_ARGS = "_args"
"""The key of the dictionary that args and kwinputs share."""


def _args_of(event: "FunctionEvent") -> Dict[str, Any]:
    found = {}
    if event._record:
        same, numbers = event._arguments()
        found = same.args(numbers, event._site.has_numbers)
    return cast(Dict[str, Any], _own(event).setdefault(_ARGS, found))


def _keyword_inputs(event: "FunctionEvent") -> Optional[Dict[str, Any]]:
    return None if event._site.is_memory else _args_of(event)


def _flops_of(event: "FunctionEvent") -> Optional[int]:
    if event._record:
        return event._arguments()[0].flops(event._site.name)
    return None if event._site.is_memory else 0


def _number(index: int) -> Any:
    """One of the numbers that Same.operator() returns."""
    none = (-1, 0, None)[index]

    def tell(event: "FunctionEvent") -> Any:
        site, found = event._site, none
        if event._record and site.has_numbers:
            same, numbers = event._arguments()
            found = same.operator(numbers)[index]
        if site.is_evaluation and index < 2:
            call = _backward_call(event)
            if call is not None:
                found = call.torch_fwd_thread if index else call.sequence_nr
        return found

    return _Told(tell)


def _backward_call(event: "FunctionEvent") -> Optional["FunctionEvent"]:
    """As in torch.profiler, autograd's own range around a backward call has its number."""
    if event._record and event._site.has_numbers:
        same, numbers = event._arguments()
        if same.operator(numbers)[0] >= 0:
            return None
    return next((child for child in event._children or () if child.torch_fwd_thread), None)


def _forward_thread(event: "FunctionEvent") -> Optional[int]:
    """Converts torch's number of the forward thread to that of `thread`."""
    if event._site.is_memory:
        return event.thread
    number = event.torch_fwd_thread
    return event._site.made.threads.numbered(number) if number else number


def _device_index(event: "FunctionEvent") -> int:
    """As in torch.profiler: the process, for what the host ran."""
    return 0 if event._site.is_memory else event._site.made.threads.pid


def _device_resource(event: "FunctionEvent") -> int:
    """As in torch.profiler: the system's number of the thread."""
    is_memory = event._site.is_memory
    return event.thread if is_memory else event._site.made.threads.native(event._thread)


def _flow(index: int) -> Any:
    def tell(event: "FunctionEvent") -> Any:
        if event._record and event._site.has_numbers:
            return event._site.made.flow(event._record)[index]
        is_memory = event._site.is_memory
        return (_arrows.NOT_KINETOS if is_memory else _arrows.NO_FLOW)[index]

    return _Told(tell)


def _external_id_of(event: "FunctionEvent") -> int:
    """The "External id" of Chrome's JSON, if the trace has PyTorch's operators. A vendor's call has
    the id of its operator."""
    site = event._site
    if not site.made.has_operators:
        return 0
    return event._external_id if site.is_operator else event._caller_id


def _python_parent(event: "FunctionEvent") -> int:
    around = event.cpu_parent if event._site.has_python_id else None
    while around is not None and not around._site.has_python_id:
        around = around.cpu_parent
    return -1 if around is None else around.python_id


def _python_module(event: "FunctionEvent") -> int:
    if not event._record or not event._site.has_python_id:
        return -1
    found = event.args.get("Python module id")
    return found if isinstance(found, int) else -1


def _list() -> Any:
    return _Kept(lambda event: [])


_first_read = threading.RLock()
"""Held while a slot gets the value that all threads find there. A finalizer may read one, too."""


def _interval(event: "FunctionEvent") -> Interval:
    if event._range is None:
        origin_ns = event._site.made.origin_ns
        begin_ns, end_ns = event._start_ns - origin_ns, event._end_ns - origin_ns
        with _first_read:
            if event._range is None:
                event._range = Interval(begin_ns / 1e3, end_ns / 1e3)
    return event._range


def _children_of(event: "FunctionEvent") -> List["FunctionEvent"]:
    if event._children is None:
        with _first_read:
            if event._children is None:
                event._children = []
    return event._children


def _stack_of(event: "FunctionEvent") -> List[str]:
    made = event._site.made
    if made.unsettled is not None:
        made.settle()
        if "stack" in _own(event):
            return cast(List[str], _own(event)["stack"])
    recorded = event._arguments()[0].stack if event._record else ""
    if recorded:
        return made.stack(recorded)
    if event._callers is None:
        with _first_read:
            if event._callers is None:
                event._callers = []
    return made.shown(event._callers)


_own: Callable[["FunctionEvent"], Dict[str, Any]] = Times.__dict__["__dict__"].__get__
"""Attributes that an event alone has, and what is kept of the others."""
_MADE_OF = (
    *("_site", "_thread", "_start_ns", "_end_ns", "_self_ns", "_record"),
    *("_same", "_numbers"),
    *("_callers", "_range", "_children", "_python_id", "_external_id"),
)


_OWN_SUMS = (
    *("self_cpu_memory_usage", "self_device_memory_usage", "self_device_time_total"),
    "kernels",
)
"""What belongs to a call itself, beside its own time, and not to calls inside it."""


class FunctionEvent(Times):
    """One call. Times of its range are in us from the profile's start. name is its name in averages
    ("ProfilerStep*"), trace_name the one in a trace ("ProfilerStep#3")."""

    __slots__ = (*_MADE_OF, "id", "depth", "cpu_parent")
    _site: Site
    _thread: int
    """The number of its thread in the trace, from 0."""
    _start_ns: int
    _end_ns: int
    _self_ns: int
    _record: int
    """The record with its arguments. 0: it has none."""
    _same: Optional[Same]
    """Its arguments, after they were read."""
    _numbers: bytes
    _callers: Optional[List[str]]
    """Its stack, if its arguments have none. None: no stack was requested."""
    _range: Optional[Interval]
    _children: Optional[List["FunctionEvent"]]
    _python_id: int
    """Only calls of functions and modules have it."""
    _external_id: int
    """Only operators and ranges have it."""

    id: int
    thread: int = _told(lambda event: event._thread + 1)
    """Counted from 1, as in torch.profiler. The trace counts from 0."""
    depth: int
    cpu_parent: Optional["FunctionEvent"]
    count = 1
    trace_name: Optional[str] = _of_site("trace_name")
    """None for torch's own "[memory]"."""
    name: str = _of_site("name")
    key: str = _of_site("name")
    category: str = _of_site("category")
    is_user_annotation: Optional[bool] = _of_site("is_user_annotation")
    is_python_function: bool = _of_site("is_python_function")
    activity_type: Optional[str] = _of_site("activity_type")
    device_resource_id: int = _told(_device_resource)
    time_range: Interval = _told(_interval)
    cpu_time_total: float = _told(lambda event: (event._end_ns - event._start_ns) / 1e3)
    self_cpu_time_total: float = _told(lambda event: event._self_ns / 1e3)
    sequence_nr: int = _number(0)
    fwd_thread: Optional[int] = _told(_forward_thread)
    """The `thread` of the forward call. 0: this is no backward call."""
    torch_fwd_thread: Optional[int] = _number(1)
    """Not in torch: the same, as torch numbers the threads."""
    scope: int = _of_site("scope")
    torch_thread: Optional[int] = _number(2)
    """Not in torch: of a forward call, torch's number of its thread. The backward call has it as
    torch_fwd_thread."""
    device_index: int = _told(_device_index)
    flow_id: Optional[int] = _flow(0)
    flow_type: Optional[int] = _flow(1)
    flow_start: Optional[bool] = _flow(2)
    external_id: int = _told(_external_id_of)
    linked_correlation_id = 0
    metadata: Optional[Dict[str, Any]] = None
    event_metadata: Any = None
    flops: Optional[int] = _told(_flops_of)  # type: ignore[assignment]
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0
    python_id: int = _told(lambda event: event._python_id if event._site.has_python_id else -1)
    python_parent_id: int = _told(_python_parent)
    python_module_id: int = _told(_python_module)
    frame: str = _of_site("frame")
    """Not in torch: the frame of a traced function in stacks: "file.py(12): function"."""
    place: str = _of_site("place")
    is_open = False
    """Not in torch: it had not ended when the recording did. Its times are those up to then."""
    is_skipped = False
    """Not in torch: a jump left it. Its end is that of the block around it."""
    _caller_id = 0
    """For a vendor's call: the external_id of the operator or range around it."""
    self_cpu_percent: Any = -1
    total_cpu_percent: Any = -1
    total_device_percent: Any = -1

    stack: List[str] = _told(_stack_of)
    cpu_children: List["FunctionEvent"] = _told(_children_of)
    kernels: List["Kernel"] = _list()
    args: Dict[str, Any] = _Kept(_args_of)  # type: ignore[assignment]
    kwinputs: Optional[Dict[str, Any]] = _Kept(_keyword_inputs)  # type: ignore[assignment]
    input_shapes: Any = _of_arguments(Same.shapes, list)
    structured_input_shapes: Any = _of_arguments(Same.structured_shapes)
    structured_input_strides: Optional[List[List[int]]] = _of_arguments(Same.strides)
    concrete_inputs: Optional[List[Any]] = _of_arguments(Same.concrete)
    input_dtypes: Optional[List[str]] = _of_arguments(Same.dtypes)

    @property
    def __dict__(self) -> Dict[str, Any]:  # type: ignore[override]
        """For vars(): all attributes with their present values."""
        names = [*_Told.names, "id", "depth", "cpu_parent"]
        found = {name: getattr(self, name) for name in names}
        found.update((name, value) for name, value in _own(self).items() if name != _ARGS)
        return found

    def __getstate__(self) -> Tuple[None, Dict[str, Any]]:
        """For copy and pickle: all attributes, without the trace."""
        return None, self.__dict__

    def __dir__(self) -> List[str]:
        return [name for name in {*dir(type(self)), *_own(self)} if name not in (*_MADE_OF, _ARGS)]

    def _arguments(self) -> Given:
        """The arguments of an event that has some."""
        if self._same is None:
            self._site.made.read_arguments_of(self)
        return cast(Given, (self._same, self._numbers))

    def take_arguments(self, given: Given) -> None:
        same, self._numbers = given
        self._same = same  # last: another thread may read it

    def source(self) -> Tuple[int, int, int, int]:
        """The place of its arguments in the trace."""
        return self._record, 2 if self.is_open else 1, self._thread, self._site.number

    def append_cpu_child(self, child: "FunctionEvent") -> None:
        self.cpu_children.append(child)
        if self.name.startswith(_forward_stacks.EVALUATION):
            self.take_number(child)

    def take_number(self, child: "FunctionEvent") -> None:
        """As in torch.profiler, autograd's own range around a backward call has its number."""
        if child.fwd_thread and self.sequence_nr < 0:
            self.sequence_nr, self.fwd_thread = child.sequence_nr, child.fwd_thread
            self.torch_fwd_thread = child.torch_fwd_thread

    def take_only_child(self, child: "FunctionEvent") -> None:
        """Merges its only child, of the same name, into this call."""
        self._self_ns += child._self_ns
        self._children = child._children
        for grandchild in child._children or ():
            grandchild.cpu_parent = self
        own = _own(child)
        for name in _OWN_SUMS:
            if name in own:
                setattr(self, name, getattr(self, name) + own[name])
        if "use_device" in own:
            self.use_device = child.use_device

    @property
    def _is_repeated(self) -> bool:
        """Is it the only child of a call of the same name? Then its FLOPs are counted with that
        call."""
        parent = self.cpu_parent
        return parent is not None and parent.name == self.name and len(parent.cpu_children) == 1

    def set_cpu_parent(self, parent: "FunctionEvent") -> None:
        self.cpu_parent = parent

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        self.kernels.append(Kernel(name, device, duration))

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[c.id for c in self.cpu_children]} "
            f"{self.use_device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{self.use_device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
            f"is_legacy={self.is_legacy}>"
        )


class Kernel(NamedTuple):
    """Work on a device that a call has launched."""

    name: str
    device: int
    duration: float
