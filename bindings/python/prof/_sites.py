"""What events have in common: their call site (Site), and the trace that all events of one window
are read from (Made)."""

from __future__ import annotations

import threading
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _arrows, _forward_stacks
from ._read_events import FUNCTIONS, Briefs, is_function
from ._threads import Threads
from ._times import ANNOTATION, MEMORY_CATEGORY, MEMORY_ROW, STEP, STEPS

if TYPE_CHECKING:
    from ._events import FunctionEvent
    from ._stacks import Callers, Frames

_NAMED_MOST = 1 << 16
"""The greatest number of names that a program made for single events, kept for the next one."""

_SINGLE_READS_MOST = 256
"""So many reads of single events' arguments come before all are read at once."""


class Site:
    """What all events of one call site and name have in common."""

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
    """One of PyTorch's operators, or a range or a step."""
    has_python_id: bool
    """Its events are calls of traced functions or of modules."""

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
        elif self.is_memory:  # as in torch.profiler, which has them in no trace
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
        """shown: selects the frames of a stack that events have. None: all. bounds: events begin at
        or after the first, and before the second. shows_modules: calls of modules are not only
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
        """Returns the list that events() returned, while the program holds it."""
        self._single_reads = 0
        self.threads = Threads(briefs)

    def settle(self) -> None:
        """Gives all events their stacks. Called when the first stack is read."""
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
            self._read_arguments([e for e in listed if hasattr(type(e), "take_arguments")])
        if event._same is None:
            event.take_arguments(self.briefs.arguments.one(event.source()))

    def _read_arguments(self, events: List["FunctionEvent"]) -> None:
        """Reads those of all events at once, which is faster than one by one."""
        left = [e for e in events if e._record and e._same is None and e._site.made is self]
        for event, given in zip(
            left, self.briefs.arguments.many(map(methodcaller("source"), left))
        ):
            event.take_arguments(given)

    def flow(self, record: int) -> _arrows.Flow:
        """The arrow that begins or ends at the record. The first call reads all arrows."""
        if self._flows is None:
            self._flows = _arrows.find(self.briefs, *self._bounds)
        return self._flows.get(record, _arrows.NO_FLOW)

    def stack(self, text: str) -> List[str]:
        """The frames of a recorded stack. All events with this stack share the list."""
        return self.shown(self.frames.of(text))

    def shown(self, stack: List[str]) -> List[str]:
        return self._shown(stack) if self._shown else stack

    def site(
        self, number: int, name_at: int, category_at: int, name_bytes: int, category_bytes: int
    ) -> Site:
        """The site of an event that is not in `sites`."""
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
