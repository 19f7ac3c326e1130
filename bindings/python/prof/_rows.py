"""Calls and their averages: names of attributes are torch.profiler's own
(torch.autograd.profiler_util), so that what reads them goes on reading."""

from __future__ import annotations

import math
import threading
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Tuple,
    Union,
    cast,
)

from . import _arrows, _forward_stacks
from ._read_arguments import Given, Same
from ._read_events import FUNCTIONS, Briefs, is_function
from ._text_units import format_time
from ._threads import Threads
from ._torch_classes import AsTorchs
from .device import DeviceType

if TYPE_CHECKING:
    from ._stacks import Callers, Frames

STEP, STEPS = "ProfilerStep#", "ProfilerStep*"
MEMORY_ROW, MEMORY_CATEGORY = "[memory]", "memory"
"""torch.profiler's name of what is allocated or freed in no scope."""
ANNOTATION = "user_annotation"


class Interval(AsTorchs):
    """From start to end, in us from the capture's start."""

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start!r}, end={self.end!r})"


class _Times(AsTorchs):
    """What torch's mixin adds to both kinds of rows, and what is the same in all of them. Times are
    in us; those of devices are 0 until a device's back end says them."""

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
    """Beyond torch: scopes that had not ended. Of a profile's they are calls up to its end."""
    skipped_count = 0
    """Beyond torch: scopes that a jump left. They are in no other count and no time."""
    is_crosswise = False
    """Beyond torch: calls overlap others of their thread without nesting, or are asynchronous."""
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
    "skipped_count",
)
_INCLUSIVE = ("cpu_time_total", "device_time_total", "cpu_memory_usage", "device_memory_usage")
_TAKEN = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
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


class Family(Protocol):
    """Finds the first calls of rows."""

    def first_of(self, row: "FunctionEventAvg") -> Optional["FunctionEvent"]: ...


class FunctionEventAvg(_Times):
    """All calls of one key."""

    _parent: Optional["FunctionEvent"] = None
    _children: Optional[List["FunctionEvent"]] = None
    _family: Optional[Family] = None
    """Of a row that C has made, until its parent or its children are asked for."""
    _like: Optional["FunctionEventAvg"] = None
    """The row whose first call is this one's. None: itself."""
    category = ""
    """Beyond torch: of record_function() "user_annotation"."""
    level = 1
    """Beyond torch: 2 of what runs around operators, and of what another tool's trace has beside
    them."""

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

    @property
    def cpu_parent(self) -> Optional["FunctionEvent"]:
        """That of the first call."""
        self._find_first()
        return self._parent

    @cpu_parent.setter
    def cpu_parent(self, parent: Optional["FunctionEvent"]) -> None:
        self._find_first()
        self._parent = parent

    @property
    def cpu_children(self) -> Optional[List["FunctionEvent"]]:
        """Those of the first call. None: no call has been added yet."""
        self._find_first()
        return self._children

    @cpu_children.setter
    def cpu_children(self, children: Optional[List["FunctionEvent"]]) -> None:
        self._find_first()
        self._children = children

    def set_family(self, family: Family) -> None:
        self._family, self._children = family, []

    def _find_first(self) -> None:
        """All calls of the profile are made for that, some us each."""
        if self._family is None:
            return
        first = self._family.first_of(self._like or self)
        if first is not None:
            self._parent, self._children = first.cpu_parent, first.cpu_children
        self._family = self._like = None

    def _take_first(self, other: "Either") -> None:
        if isinstance(other, FunctionEventAvg):
            self._parent, self._children = other._parent, other._children
            self._family, self._like = other._family, other._like or other
        else:
            self._parent, self._children = other.cpu_parent, other.cpu_children

    def __getstate__(self) -> Dict[str, Any]:
        """A copy does without the trace: it has the calls that were asked for."""
        left_out = ("_family", "_like")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def add(self, other: "Either", is_inner: bool = False) -> "FunctionEventAvg":
        """Adds calls of the same key. If this average has no key yet, it takes theirs.

        is_inner: they are inside another call that is added, so their time is part of that call's.
        Raises AssertionError for another key."""
        if not isinstance(other, _Times):
            raise AssertionError(
                f"a FunctionEvent or a FunctionEventAvg can be added, not {other!r}"
            )
        if self.key is None:
            for field in _TAKEN:
                setattr(self, field, getattr(other, field))
            self._take_first(other)
        elif other.key != self.key:
            raise AssertionError(f"only calls of one key add up, not {other.key!r} to {self.key!r}")
        # as C's rows have it: of a mixed one the time is some thread's
        self.is_async = self.is_async and other.is_async
        self.is_crosswise = self.is_crosswise or other.is_crosswise
        if isinstance(other, FunctionEvent) and other.is_skipped:
            self.skipped_count += 1
            return self
        for field in _SUMMED:
            if not (is_inner and field in _INCLUSIVE):
                setattr(self, field, getattr(self, field) + getattr(other, field))
        if is_inner:
            self.inner_device_time += other.device_time_total
        if isinstance(other, FunctionEvent) and other.is_open:
            self.open_count += 1
        if is_inner:
            self.inner_cpu_time += other.cpu_time_total
        if not (isinstance(other, FunctionEvent) and other._is_repeated):
            self.flops += other.flops or 0
        least = most = other.cpu_time_total
        if isinstance(other, FunctionEventAvg):
            least, most = other.min_us, other.max_us
        self.min_us, self.max_us = min(self.min_us, least), max(self.max_us, most)
        return self

    def __iadd__(self, other: "Either") -> "FunctionEventAvg":
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} "
            f" self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )


_NAMED_MOST = 1 << 16
"""So many names that a program made for single events are kept for the next one."""


_SINGLE_READS_MOST = 256
"""So many events' arguments are read one by one."""


class Site:
    """What all events of one call site and name have."""

    __slots__ = (
        *("made", "category", "full_frame", "frame", "place", "is_user_annotation", "has_numbers"),
        *("trace_name", "name", "is_python_function", "activity_type", "is_evaluation"),
        *("has_python_id", "number", "is_operator", "scope", "is_memory"),
    )
    made: "Made"
    number: int
    scope: int
    category: str
    full_frame: str
    frame: str
    place: str
    is_user_annotation: bool
    has_numbers: bool
    trace_name: Optional[str]
    name: str
    is_python_function: bool
    activity_type: Optional[str]
    is_evaluation: bool
    is_memory: bool
    is_operator: bool
    """Of PyTorch's, or a range or a step."""
    has_python_id: bool
    """They are calls of traced functions or of modules."""

    def __init__(
        self,
        made: "Made",
        number: int,
        name: str,
        category: str,
        full_frame: str = "",
        place: str = "",
        scope: int = 0,
    ) -> None:
        """full_frame: as in the trace. scope: at::RecordScope."""
        self.made, self.number, self.scope = made, number, scope
        self.category, self.full_frame, self.place = category, full_frame, place
        self.frame = made.frames.of(full_frame)[0] if full_frame else ""
        self.trace_name = name
        self.name = STEPS if name.startswith(STEP) else name
        self.is_user_annotation, self.has_numbers = category == ANNOTATION, category == "cpu_op"
        self.is_operator = self.has_numbers or self.is_user_annotation
        self.has_python_id = category in FUNCTIONS
        self.is_python_function = self.has_python_id
        if made.shows_modules:
            self.is_python_function = is_function(category, name)
        self.is_memory = category == MEMORY_CATEGORY and name == MEMORY_ROW
        self.activity_type = ANNOTATION if self.is_user_annotation else "cpu_op"
        if self.is_python_function:
            self.activity_type = "python_function"
        elif self.is_memory:  # as torch.profiler's, which are in no trace
            self.activity_type = self.trace_name = None
        self.is_evaluation = name.startswith(_forward_stacks.EVALUATION)


_Shown = Callable[[List[str]], List[str]]
_NO_SITE: Tuple[int, int, Optional[Site]] = (0, 0, None)


class Unsettled(NamedTuple):
    """The events of one window, sorted by begin and in the trace's order, before stacks."""

    events: List["FunctionEvent"]
    walked: List["FunctionEvent"]
    callers: "Callers"

    def give_callers(self) -> None:
        """Gives each event the traced functions around it."""
        thread, callers, of = -1, self.callers, self.callers.of
        for event in self.walked:
            if event._thread != thread:
                thread = event._thread
                callers.next_thread(thread)
            site = event._site
            if not site.is_memory:
                event._callers = of(event._start_ns, event._end_ns, event.depth, site.full_frame)


class Made:
    """What the events of one window share: the trace that their arguments are read from, its call
    sites, and the frames of stacks."""

    def __init__(
        self,
        briefs: Briefs,
        origin_ns: int,
        frames: "Frames",
        shown: Optional[_Shown],
        bounds: Tuple[int, int],
        shows_modules: bool,
    ) -> None:
        """shown: gives the frames of a stack that events have. None: all. bounds: events begin at
        or after the first, and before the second. shows_modules: calls of modules are more than
        functions."""
        self.shows_modules = shows_modules
        self.has_operators = False
        self.briefs, self.origin_ns, self.frames, self._shown = briefs, origin_ns, frames, shown
        self.sites: Dict[int, Tuple[int, int, Site]] = {}
        """By the number of the call site, with the addresses of name and category. An event whose
        name was made for it alone has the name at another address."""
        self._named: Dict[Tuple[Site, str], Site] = {}
        self._bounds = bounds
        self._flows: Optional[Dict[int, _arrows.Flow]] = None
        self.unsettled: Optional[Unsettled] = None
        """All events, while they have no stacks yet."""
        self._lock, self._is_settling = threading.RLock(), False
        self.python_ids = 0
        self.listed: Callable[[], Optional[List[Any]]] = lambda: None
        """Gives the list that events() has given, while somebody has it."""
        self._single_reads = 0
        self.threads = Threads(briefs)

    def settle(self) -> None:
        """Gives all events their stacks, when the first is asked for."""
        with self._lock:
            if self.unsettled is None or self._is_settling:
                return
            self._is_settling = True
            try:
                self.unsettled.give_callers()
                self._read_arguments(self.unsettled.events)
                _forward_stacks.give(self.unsettled.events)
            finally:
                self.unsettled, self._is_settling = None, False

    def read_arguments_of(self, event: "FunctionEvent") -> None:
        """After many single reads, reads the arguments of all events at once."""
        self._single_reads += 1
        if self._single_reads == _SINGLE_READS_MOST:
            listed = self.listed() or []
            self._read_arguments([e for e in listed if isinstance(e, FunctionEvent)])
        if event._same is None:
            event.take_arguments(self.briefs.arguments.one(event.source()))

    def _read_arguments(self, events: List["FunctionEvent"]) -> None:
        """Of all at once, in less time than one by one."""
        left = [e for e in events if e._record and e._same is None and e._site.made is self]
        for event, given in zip(left, self.briefs.arguments.many(map(FunctionEvent.source, left))):
            event.take_arguments(given)

    def flow(self, record: int) -> _arrows.Flow:
        """Of the arrow that begins or ends there. All are found when the first is asked for."""
        if self._flows is None:
            self._flows = _arrows.find(self.briefs, *self._bounds)
        return self._flows.get(record, _arrows.NO_FLOW)

    def stack(self, text: str) -> List[str]:
        """Of a stack as it was recorded. All events that have it share the list."""
        return self.shown(self.frames.of(text))

    def shown(self, stack: List[str]) -> List[str]:
        return self._shown(stack) if self._shown else stack

    def site(
        self, number: int, name_at: int, category_at: int, name_bytes: int, category_bytes: int
    ) -> Site:
        """Of an event that is of none of `sites`."""
        _, known_at, known = self.sites.get(number, _NO_SITE)
        if known and known_at == category_at:
            category = known.category
        else:
            category = self.briefs.text(category_at, category_bytes)
        name = self.briefs.text(name_at, name_bytes)
        if known is None or known.category != category:
            scope = self.briefs.record_scope(number, category)
            found = Site(self, number, name, category, *self.briefs.place(number, category), scope)
            self.sites[number] = name_at, category_at, found
            return found
        named = self._named.get((known, name))
        if named is None:
            if len(self._named) >= _NAMED_MOST:
                self._named.clear()
            named = Site(self, number, name, category, known.full_frame, known.place, known.scope)
            self._named[known, name] = named
        return named


class _Told:
    """An attribute that a function of the event tells, unless the event has one of its own."""

    names: List[str] = []
    """All of them, and of those that are kept."""

    def __init__(self, tell: Callable[["FunctionEvent"], Any]) -> None:
        self._tell = tell

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name
        self.names.append(name)

    def __get__(self, event: Optional["FunctionEvent"], owner: Any = None) -> Any:
        return self if event is None else self._tell(event)


class _Kept(_Told):
    """One that is made when it is asked for, and is the event's own from then on."""

    def __get__(self, event: Optional["FunctionEvent"], owner: Any = None) -> Any:
        if event is None:
            return self
        # Two threads that ask get the same.
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
"""args and kwinputs are one dictionary, whichever of them is asked for first."""


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


def _number(place: int) -> Any:
    """Of those that Same.operator() gives."""
    none = (-1, 0, None)[place]

    def tell(event: "FunctionEvent") -> Any:
        site, found = event._site, none
        if event._record and site.has_numbers:
            same, numbers = event._arguments()
            found = same.operator(numbers)[place]
        if site.is_evaluation and place < 2:
            call = _backward_call(event)
            if call is not None:
                found = call.torch_fwd_thread if place else call.sequence_nr
        return found

    return _Told(tell)


def _backward_call(event: "FunctionEvent") -> Optional["FunctionEvent"]:
    """As torch.profiler: autograd's own range around a backward call has the number of that."""
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
    """As in torch.profiler: the process where the host ran something."""
    return 0 if event._site.is_memory else event._site.made.threads.pid


def _device_resource(event: "FunctionEvent") -> int:
    """As in torch.profiler: the system's number of the thread."""
    is_memory = event._site.is_memory
    return event.thread if is_memory else event._site.made.threads.native(event._thread)


def _flow(place: int) -> Any:
    def tell(event: "FunctionEvent") -> Any:
        if event._record and event._site.has_numbers:
            return event._site.made.flow(event._record)[place]
        is_memory = event._site.is_memory
        return (_arrows.NOT_KINETOS if is_memory else _arrows.NO_FLOW)[place]

    return _Told(tell)


def _external_id_of(event: "FunctionEvent") -> int:
    """Chrome's JSON has it as "External id", where the trace has PyTorch's operators. A vendor's
    call has its operator's."""
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


def _interval(event: "FunctionEvent") -> Interval:
    found = event._range
    if found is None:
        origin_ns = event._site.made.origin_ns
        begin_ns, end_ns = event._start_ns - origin_ns, event._end_ns - origin_ns
        found = event._range = Interval(begin_ns / 1e3, end_ns / 1e3)
    return found


def _children_of(event: "FunctionEvent") -> List["FunctionEvent"]:
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
        event._callers = []
    return made.shown(event._callers)


_own: Callable[["FunctionEvent"], Dict[str, Any]] = _Times.__dict__["__dict__"].__get__
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
"""What a call has beyond its own time, and not as part of calls inside of it."""


class FunctionEvent(_Times):
    """One call. Times of its range are in us from the profile's start. name is what averages call
    it ("ProfilerStep*"), trace_name what a trace does ("ProfilerStep#3")."""

    __slots__ = (*_MADE_OF, "id", "depth", "cpu_parent")
    _site: Site
    _thread: int
    """As the trace counts them."""
    _start_ns: int
    _end_ns: int
    _self_ns: int
    _record: int
    """Where its arguments are read from. 0: it has none."""
    _same: Optional[Same]
    """These, once they have been read."""
    _numbers: bytes
    _callers: Optional[List[str]]
    """Its stack, if its arguments have none. None: no stack was asked for."""
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
    """None: of torch's own "[memory]"."""
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
    """Beyond torch: the same, as torch numbers the threads."""
    scope: int = _of_site("scope")
    torch_thread: Optional[int] = _number(2)
    """Beyond torch: of a forward call, torch's number of its thread. The backward call has it as
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
    """Beyond torch: of a traced function, where it is defined and how it stands in stacks,
    "file.py(12): function"."""
    place: str = _of_site("place")
    is_open = False
    """Beyond torch: it had not ended when the recording did; its times are those up to then."""
    is_skipped = False
    """Beyond torch: a jump left it. Its end is that of the block around it."""
    _caller_id = 0
    """Of a vendor's call: the external_id of the operator or range around it."""
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
        """For vars(): all of it, as it is now."""
        names = [*_Told.names, "id", "depth", "cpu_parent"]
        found = {name: getattr(self, name) for name in names}
        found.update((name, value) for name, value in _own(self).items() if name != _ARGS)
        return found

    def __getstate__(self) -> Tuple[None, Dict[str, Any]]:
        """For copy and pickle: all of it, and not the trace."""
        return None, self.__dict__

    def __dir__(self) -> List[str]:
        return [name for name in {*dir(type(self)), *_own(self)} if name not in (*_MADE_OF, _ARGS)]

    def _arguments(self) -> Given:
        """Of an event that has some."""
        if self._same is None:
            self._site.made.read_arguments_of(self)
        return cast(Given, (self._same, self._numbers))

    def take_arguments(self, given: Given) -> None:
        same, self._numbers = given
        self._same = same  # last: another thread may look at it

    def source(self) -> Tuple[int, int, int, int]:
        """Where its arguments are read from."""
        return self._record, 2 if self.is_open else 1, self._thread, self._site.number

    def append_cpu_child(self, child: "FunctionEvent") -> None:
        self.cpu_children.append(child)
        if self.name.startswith(_forward_stacks.EVALUATION):
            self.take_number(child)

    def take_number(self, child: "FunctionEvent") -> None:
        """As torch.profiler: autograd's own range around a backward call has the number of that."""
        if child.fwd_thread and self.sequence_nr < 0:
            self.sequence_nr, self.fwd_thread = child.sequence_nr, child.fwd_thread
            self.torch_fwd_thread = child.torch_fwd_thread

    def take_only_child(self, child: "FunctionEvent") -> None:
        """What the child did is this call's own."""
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
        """Where such calls are kept: it is all that a call of the same name has called. Its FLOPs
        are counted with that one."""
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
    """Work on a device that a call has asked for."""

    name: str
    device: int
    duration: float


Either = Union[FunctionEvent, FunctionEventAvg]
