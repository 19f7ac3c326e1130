"""Single calls of a trace, made in Python: their parents, memory, work of devices, and numbers."""

from __future__ import annotations

import bisect
import contextlib
import gc
import itertools
import weakref
from operator import attrgetter
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from . import _forward_stacks, _nesting
from ._event_list import EventList
from ._events import FunctionEvent
from ._read_events import ASYNC, CALL, NO_THREAD, ON_DEVICE, SKIPPED, Briefs, is_told_by_place
from ._sites import Made, Site, Unsettled
from ._stacks import Callers, Frames, Function
from ._times import MEMORY_CATEGORY, MEMORY_ROW
from .device import TYPES
from .trace import Window


def device_of(windows: Sequence[Window]) -> Optional[str]:
    """The type of the first device with scopes, by torch.profiler's name."""
    for window in windows:
        for device in window.trace.devices():
            names = [name for name, code in TYPES.items() if code == device.device.type]
            return next((n for n in names if n != "ext_dev"), "device")  # "ext_dev" is any device
    return None


def _charge(device: int, count: int, around: Sequence[FunctionEvent]) -> None:
    """Adds bytes of memory to the innermost scope as its own, and to all scopes around it."""
    if device == TYPES["cpu"]:
        around[-1].self_cpu_memory_usage += count
        for scope in around:
            scope.cpu_memory_usage += count
    else:
        around[-1].self_device_memory_usage += count
        for scope in around:
            scope.device_memory_usage += count


def _charge_open(device: int, count: int, opened: Iterable[FunctionEvent]) -> None:
    """Adds bytes to open scopes, which have no bytes of their own."""
    for scope in opened:
        if device == TYPES["cpu"]:
            scope.cpu_memory_usage += count
        else:
            scope.device_memory_usage += count


def _charge_device(host: FunctionEvent, ran: Iterable[_Ran], device: Optional[str]) -> None:
    """Adds work of a device to the host's scope as its own, and to all scopes around it."""
    host.use_device = device
    for event in ran:
        host.append_kernel(event.name, event.device_index, event.duration_ns / 1e3)
        host.self_device_time_total += event.self_ns / 1e3
        around: Optional[FunctionEvent] = host
        while around is not None:
            around.device_time_total += event.self_ns / 1e3
            around = around.cpu_parent


def _around(
    moment_ns: int, starts: List[int], scopes: List[Tuple[FunctionEvent, int]], ends: Dict[int, int]
) -> Optional[FunctionEvent]:
    """The innermost scope of a thread that was open then. A kernel of a vendor's tracing was
    launched in it. ends: of the scopes that may launch, by id()."""
    index = bisect.bisect_right(starts, moment_ns)
    host = scopes[index - 1][0] if index else None
    while host is not None and ends.get(id(host), -1) < moment_ns:
        host = host.cpu_parent
    return host


def _charge_launched(
    launched: Dict[Tuple[int, int], List[_Ran]],
    hosts: Sequence[FunctionEvent],
    device: Optional[str],
) -> None:
    """Adds work of devices to the scopes that launched it."""
    exact: Dict[Tuple[int, int], FunctionEvent] = {}
    starts: Dict[int, List[int]] = {}
    by_start: Dict[int, List[Tuple[FunctionEvent, int]]] = {}
    ends: Dict[int, int] = {}
    for made in hosts:
        start_ns, end_ns = made._start_ns, made._end_ns
        exact[made._thread, start_ns] = made
        starts.setdefault(made._thread, []).append(start_ns)
        by_start.setdefault(made._thread, []).append((made, end_ns))
        ends[id(made)] = end_ns
    for launch, ran in launched.items():
        host = exact.get(launch) or _around(
            launch[1], starts.get(launch[0], []), by_start.get(launch[0], []), ends
        )
        if host is not None:
            _charge_device(host, ran, device)


def single_events(
    windows: Sequence[Window],
    profile_memory: bool,
    with_flops: bool,
    with_stack: bool = True,
    shows_functions: bool = True,
    modules: bool = True,
    merges_only_children: bool = False,
) -> EventList[FunctionEvent]:
    """Each scope of the windows, by its start. Those that had not ended are marked.

    With `with_stack`, an event without a recorded stack has the traced functions around it. With
    `modules`, calls of modules are more than functions, which key_averages() leaves out. With
    `merges_only_children`, the only child of a call of the same name is merged into it, as in
    torch.profiler. Attributes that take time are made when they are read. So the trace stays in use
    while an event exists, also after close()."""
    events: List[FunctionEvent] = []
    makers: List[Made] = []
    python_ids = 0
    with_outer = with_stack and not shows_functions
    options = _Options(with_stack, profile_memory, modules, with_outer, merges_only_children)
    with _without_collections():
        for window in windows:
            walk = _Walk(window, options)
            walk.read()
            part = walk.finish()
            number(part, len(events), python_ids)
            for e in part[:1]:
                makers.append(e._site.made)
                python_ids += e._site.made.python_ids
            events += part
    found = EventList(
        events, use_device=device_of(windows), profile_memory=profile_memory, with_flops=with_flops
    )
    found._is_of_events, found._shows_functions = True, shows_functions
    found._python_ids = python_ids
    for made in makers:
        made.listed = weakref.ref(found)
    found.lost = sum(window.lost for window in windows)
    return found


class _Ran(NamedTuple):
    """What ran on a device for a scope of the host."""

    name: str
    device_index: int
    duration_ns: int
    self_ns: int


_SCOPE, _OPEN, _STEP, _MEMORY = 1, 2, 7, 8  # kinds of prof_event_kind
_CUT = 1 << 31  # a bit that prof_event_brief does not use: only part of it is in the window
_VERBS = {1: 1, 2: -1}  # PROF_MEMORY_ALLOC, PROF_MEMORY_FREE


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Defers garbage collection. All the new objects are in use, and the collector would visit all
    objects of the process again and again. That took half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def number(events: Iterable[FunctionEvent], first: int, python_ids: int) -> None:
    """Numbers events from `first` on. The ids of calls of functions and modules follow
    python_ids."""
    for index, event in enumerate(events, first):
        event.id = index
        if python_ids and event._site.has_python_id:
            event._python_id += python_ids


def _number_calls(walked: Iterable[FunctionEvent], is_sorted: bool, outer: int) -> int:
    """Numbers calls of functions and modules by begin, thread by thread. The numbers are those of
    torch.profiler and src/export/chrome_numbers.c. The first `outer` calls began before the window,
    and are not events. Returns the last number."""
    calls = [event for event in walked if event._site.has_python_id]
    if not is_sorted:
        calls.sort(key=lambda e: e._start_ns)
    for number, event in enumerate(calls, outer + 1):
        event._python_id = number
    return outer + len(calls)


def _may_be_only_child(child: Site, holder: Site) -> bool:
    """The sites of two nested calls of one name."""
    return child is holder or not is_told_by_place(child.category) or child.place == holder.place


def _merge_only_children(calls: Iterable[FunctionEvent]) -> Set[int]:
    """Merges a call into its parent if it is the only child there. calls: each is in a call of its
    name, and outer ones come first. Returns the id() of the merged calls."""
    gone: Set[int] = set()
    for call in calls:
        holder = call.cpu_parent
        if holder is not None and len(holder.cpu_children) == 1:
            holder.take_only_child(call)
            gone.add(id(call))
    return gone


class _Options(NamedTuple):
    with_stack: bool
    with_memory: bool
    modules: bool
    with_outer: bool
    """Traced functions that ran when the window began are events that begin there."""
    merges_only_children: bool


class _Walk:
    """Makes the events of a window while it reads the trace. First read(), then finish()."""

    def __init__(self, window: Window, options: _Options) -> None:
        self.window, self.options, self.frames = window, options, Frames()
        self.bounds = window.from_ns, window.to_ns or 1 << 64
        self.briefs = Briefs(window.trace._shared, window.from_ns)
        shown = _forward_stacks.Shown().of if options.with_stack else None
        self.made = Made(
            self.briefs, window.origin_ns, self.frames, shown, self.bounds, options.modules
        )
        self.outside = Site(self.made, 0, MEMORY_ROW, MEMORY_CATEGORY)
        self.found: List[FunctionEvent] = []
        self.is_sorted = True
        self.launched: Dict[Tuple[int, int], List[_Ran]] = {}
        self.no_hosts: Set[int] = set()  # by id()
        self.twins: List[FunctionEvent] = []  # in a call of their name
        self.cut: List[FunctionEvent] = []  # began before the window, or end after it
        self.functions_before: List[Function] = []
        self.outer_calls = 0  # of functions and modules, which began before the window
        self.operator_ids = itertools.count(1)
        """Operators by their begins, thread by thread: their ids in Chrome's JSON."""
        self.thread = -1
        # Of this thread:
        self.around: List[FunctionEvent] = []  # the open scopes
        self.opened: List[FunctionEvent] = []  # those that had not ended
        self.charges: List[_nesting.Charge] = []
        self.first = self.first_twin = 0  # indices into found and twins
        self.has_crossed = False
        """Events of this thread cross each other: their parents are found again."""

    def _in_window(self) -> Iterator[Tuple[Any, ...]]:
        """Site, kind, thread, depth, start, end, self time, flags, record (0: no arguments) and
        charge of each call and each change of memory in the window."""
        (from_ns, to_ns), sites, outside = self.bounds, self.made.sites, self.outside
        for (
            record,
            kind,
            thread,
            start_ns,
            duration_ns,
            self_ns,
            depth,
            at,
            flags,
            name_at,
            category_at,
            name_bytes,
            category_bytes,
            device,
            device_index,
            arg_count,
            word,
            more,
            last,
        ) in self.briefs:
            charge, end_ns, known = None, start_ns + duration_ns, sites.get(at)
            if kind > _OPEN:
                if kind == _STEP:
                    self._pass_step(thread, start_ns)
                if kind != _MEMORY:
                    continue
                site, verb = outside, _VERBS.get(word & NO_THREAD, 0)
                if self.options.with_memory and verb and last:
                    charge = _nesting.Charge(start_ns, device, verb * last)
            elif known is not None and known[0] == name_at and known[1] == category_at:
                site = known[2]
            else:
                site = self.made.site(at, name_at, category_at, name_bytes, category_bytes)
            if start_ns < from_ns or end_ns >= to_ns:
                clipped = self._clip(site, kind, thread, depth, start_ns, end_ns)
                if clipped is None:
                    continue
                if clipped != (start_ns, end_ns):
                    flags |= _CUT
                    start_ns, end_ns = clipped
            if flags & ON_DEVICE:
                of = more & NO_THREAD
                key = (-1 if of == NO_THREAD else of), word
                ran = _Ran(site.trace_name or site.name, device_index, duration_ns, self_ns)
                self.launched.setdefault(key, []).append(ran)
                continue
            record = record if arg_count else 0
            yield site, kind, thread, depth, start_ns, end_ns, self_ns, flags, record, charge

    def read(self) -> None:
        around, found, operator_ids = self.around, self.found, self.operator_ids
        merges_only_children, new = self.options.merges_only_children, FunctionEvent.__new__
        marks = ASYNC | SKIPPED | _CUT
        last_ns = last_end_ns = 0
        for event in self._in_window():
            site, kind, thread, depth, start_ns, end_ns, self_ns, flags, record, charge = event
            if thread != self.thread:
                self._begin_thread(thread)
            is_crosswise = False
            while around and around[-1].depth >= depth and not flags & ASYNC:
                is_crosswise |= around.pop()._end_ns > start_ns
            if is_crosswise:
                self.has_crossed = True
            if start_ns <= last_ns and (start_ns < last_ns or end_ns > last_end_ns):
                self.is_sorted = False
            last_ns, last_end_ns = start_ns, end_ns
            if kind == _MEMORY:
                if charge is not None:
                    self._read_charge(charge, depth)
                continue
            made = new(FunctionEvent)
            made._site, made._thread, made.depth, made.cpu_parent = site, thread, depth, None
            made._start_ns, made._end_ns, made._self_ns = start_ns, end_ns, self_ns
            made._record = record
            made._range = made._children = made._same = made._callers = None
            found.append(made)
            if site.is_operator:
                made._external_id = next(operator_ids)
            if kind == _OPEN or flags & marks:
                self._mark(made, kind, flags)
                if made.is_async:
                    continue  # what its thread did meanwhile is not inside of it
            if is_crosswise or (around and end_ns > around[-1]._end_ns):
                made.is_crosswise = self.has_crossed = True
            if around and end_ns <= around[-1]._end_ns:
                made.cpu_parent = holder = around[-1]
                if holder._children is None:
                    holder._children = []
                holder._children.append(made)
                if merges_only_children and holder._site.name == site.name:
                    self._note_twin(made, holder, kind, flags)
            if flags & SKIPPED:
                continue
            around.append(made)
            if flags & CALL:
                self._find_caller(made)

    def _pass_step(self, thread: int, start_ns: int) -> None:
        if self.bounds[0] <= start_ns < self.bounds[1]:
            next(self.operator_ids)
        if thread == self.thread:
            while self.around and self.around[-1]._end_ns <= start_ns:
                self.around.pop()  # the next event may be in the step, and deeper

    def _clip(
        self, site: Site, kind: int, thread: int, depth: int, start_ns: int, end_ns: int
    ) -> Optional[Tuple[int, int]]:
        """The begin and the end that the event of a call has. None: it has no event."""
        from_ns, to_ns = self.bounds
        was_running = start_ns < from_ns < end_ns and site.has_python_id
        if was_running and self.options.with_outer:
            start_ns, was_running = from_ns, False
        if from_ns <= start_ns < to_ns:
            return start_ns, min(end_ns, to_ns) if kind == _OPEN else end_ns
        self.outer_calls += was_running
        if site.full_frame and start_ns < from_ns:
            self.functions_before.append((thread, start_ns, end_ns, depth, site.full_frame))
        return None

    def _begin_thread(self, thread: int) -> None:
        self._settle()
        self.thread = thread
        self.around.clear()
        self.opened, self.charges = [], []
        self.first, self.first_twin = len(self.found), len(self.twins)

    def _read_charge(self, charge: _nesting.Charge, depth: int) -> None:
        self.charges.append(charge)
        around, opened = self.around, self.opened
        if around and charge.at_ns > around[-1]._end_ns:
            self.has_crossed = True
            return
        if around:
            _charge(charge.device, charge.bytes, around)
        _charge_open(charge.device, charge.bytes, opened)
        if not around and not opened:
            self._add_outside(charge, depth)

    def _add_outside(self, charge: _nesting.Charge, depth: int = 0) -> None:
        """An event for memory outside all others."""
        made = FunctionEvent.__new__(FunctionEvent)
        made._site, made._thread, made.depth, made.cpu_parent = (
            self.outside,
            self.thread,
            depth,
            None,
        )
        made._start_ns = made._end_ns = charge.at_ns
        made._self_ns = made._record = 0
        made._range = made._children = made._same = made._callers = None
        _charge(charge.device, charge.bytes, [made])
        self.no_hosts.add(id(made))
        self.found.append(made)

    def _mark(self, made: FunctionEvent, kind: int, flags: int) -> None:
        is_open = kind == _OPEN
        if is_open:
            made.is_open = True
        if flags & SKIPPED:  # when the jump left it is not known, so it holds nothing
            made.is_skipped = True
            self.no_hosts.add(id(made))
        if flags & ASYNC or (is_open and not made._site.has_python_id):
            made.is_async = True
            self.no_hosts.add(id(made))
            if is_open:  # as torch.profiler has it: no time of its thread
                made._self_ns = 0
                self.opened.append(made)
        elif flags & _CUT:
            self.cut.append(made)

    def _note_twin(self, made: FunctionEvent, holder: FunctionEvent, kind: int, flags: int) -> None:
        """holder: the call of the same name around it."""
        is_other = kind == _OPEN or flags & (SKIPPED | CALL) or holder.is_open
        if not is_other and _may_be_only_child(made._site, holder._site):
            self.twins.append(made)

    def _find_caller(self, made: FunctionEvent) -> None:
        """made: a call of a vendor's interface."""
        self.no_hosts.add(id(made))
        holders = [
            e
            for e in self.around[:-1] + self.opened
            if e._site.is_operator and e.depth < made.depth
        ]
        if holders:
            made._caller_id = max(holders, key=attrgetter("depth"))._external_id

    def _settle(self) -> None:
        """Finds the parents again if events of the thread cross each other, and appends memory
        outside all events to the thread's events."""
        if not self.has_crossed:
            return
        self.has_crossed = self.is_sorted = False
        is_as_torch = self.options.merges_only_children
        events = [e for e in self.found[self.first :] if not e._site.is_memory]
        ordered = _nesting.find_parents([e for e in events if not e.is_async], is_as_torch)
        outside = _nesting.charge_all(ordered, self.opened, self.charges, is_as_torch)
        self.found[self.first :] = events
        for charge in outside:
            self._add_outside(charge)
        del self.twins[self.first_twin :]
        for e in ordered if is_as_torch else ():
            if _nesting.is_twin(e) and id(e) not in self.no_hosts:
                self.twins.append(e)

    def finish(self) -> List[FunctionEvent]:
        """Returns the events by their begins."""
        self._settle()
        for e in self.cut:
            inner = sum(c._end_ns - c._start_ns for c in e._children or () if not c.is_skipped)
            e._self_ns = max(e._end_ns - e._start_ns - inner, 0)
        if self.launched:
            hosts = [e for e in self.found if id(e) not in self.no_hosts]
            _charge_launched(self.launched, hosts, device_of([self.window]))
        made_of, walked = self.made, self.found
        sites = [known[2] for known in made_of.sites.values()]
        made_of.has_operators = any(site.has_numbers for site in sites)
        found = walked
        if not self.is_sorted:
            found = sorted(walked, key=lambda e: (e._start_ns, -e._end_ns))
        if any(site.has_python_id for site in sites):
            made_of.python_ids = _number_calls(walked, self.is_sorted, self.outer_calls)
        gone = _merge_only_children(self.twins)
        if gone:
            found = [e for e in found if id(e) not in gone]
        if self.options.with_stack:
            ends_ns = self.window.trace._function_ends()
            callers = Callers(self.frames, ends_ns, self.functions_before)
            made_of.unsettled = Unsettled(found, walked, callers)
        return found
