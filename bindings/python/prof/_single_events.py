"""Single calls of a trace, made in Python: their parents, memory, work of devices, and numbers."""

from __future__ import annotations

import bisect
import contextlib
import gc
import weakref
from operator import attrgetter
from typing import (
    Callable,
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
    launched in it."""
    index = bisect.bisect_right(starts, moment_ns)
    host = scopes[index - 1][0] if index else None
    while host is not None and ends[id(host)] < moment_ns:
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
    with _without_collections():
        for window in windows:
            with_outer = with_stack and not shows_functions
            part = _scopes(
                window, with_stack, profile_memory, modules, with_outer, merges_only_children
            )
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


class _Crossed(NamedTuple):
    """A thread on which events cross each other: the data to find their parents again."""

    first: int
    """The index of the thread's first event in the list of all events. first_twin: in that of
    twins."""
    first_twin: int
    charges: List[_nesting.Charge]
    opened: List[FunctionEvent]

    def settle(
        self,
        found: List[FunctionEvent],
        twins: List[FunctionEvent],
        no_hosts: Set[int],
        is_as_torch: bool,
        memory_event: Callable[[int], FunctionEvent],
    ) -> None:
        """Finds the parents, and appends memory outside all events to the thread's events."""
        events = [e for e in found[self.first :] if not e._site.is_memory]
        ordered = _nesting.find_parents([e for e in events if not e.is_async], is_as_torch)
        outside = _nesting.charge_all(ordered, self.opened, self.charges, is_as_torch)
        found[self.first :] = events
        for charge in outside:
            made = memory_event(charge.at_ns)
            _charge(charge.device, charge.bytes, [made])
            no_hosts.add(id(made))
            found.append(made)
        del twins[self.first_twin :]
        for e in ordered if is_as_torch else ():
            if _nesting.is_twin(e) and id(e) not in no_hosts:
                twins.append(e)


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


def _scopes(
    window: Window,
    with_stack: bool,
    with_memory: bool,
    modules: bool,
    with_outer: bool,
    merges_only_children: bool,
) -> List[FunctionEvent]:
    """with_outer: traced functions that ran when the window began are events that begin there."""
    found: List[FunctionEvent] = []
    around: List[FunctionEvent] = []  # the open scopes
    opened: List[FunctionEvent] = []  # of the thread: those that had not ended
    launched: Dict[Tuple[int, int], List[_Ran]] = {}
    no_hosts: Set[int] = set()  # by id()
    twins: List[FunctionEvent] = []  # in a call of their name
    cut: List[FunctionEvent] = []  # began before the window, or end after it
    in_thread, frames = -1, Frames()
    functions_before: List[Function] = []
    briefs = Briefs(window.trace._shared, window.from_ns)
    from_ns, to_ns = window.from_ns, window.to_ns or 1 << 64
    shown_frames = _forward_stacks.Shown().of if with_stack else None
    made_of = Made(briefs, window.origin_ns, frames, shown_frames, (from_ns, to_ns), modules)
    outside = Site(made_of, 0, MEMORY_ROW, MEMORY_CATEGORY)
    sites, new = made_of.sites, FunctionEvent.__new__
    last_ns, last_end_ns, is_sorted = 0, 0, True
    crossed = _Crossed(0, 0, [], opened)
    has_crossed = False

    def memory_event(at_ns: int) -> FunctionEvent:
        made = new(FunctionEvent)
        made._site, made._thread, made.depth, made.cpu_parent = outside, in_thread, 0, None
        made._start_ns, made._end_ns, made._self_ns, made._record = at_ns, at_ns, 0, 0
        made._range = made._children = made._same = None
        made._callers = None
        return made

    def settle() -> None:
        crossed.settle(found, twins, no_hosts, merges_only_children, memory_event)

    operators = 0  # by their begins, thread by thread: their ids in Chrome's JSON
    outer_calls = 0  # of functions and modules, which began before the window
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
    ) in briefs:
        is_memory = kind == _MEMORY
        if kind > _OPEN and not is_memory:
            if kind == _STEP and from_ns <= start_ns < to_ns:
                operators += 1
            if kind == _STEP and thread == in_thread:
                while around and around[-1]._end_ns <= start_ns:
                    around.pop()  # the next event may be in the step, and deeper
            continue
        end_ns = start_ns + duration_ns
        known = sites.get(at)
        if is_memory:
            site = outside
        elif known is not None and known[0] == name_at and known[1] == category_at:
            site = known[2]
        else:
            site = made_of.site(at, name_at, category_at, name_bytes, category_bytes)
        is_open = kind == _OPEN
        is_cut = False
        if start_ns < from_ns and with_outer and end_ns > from_ns and site.has_python_id:
            start_ns = from_ns
            duration_ns = end_ns - start_ns
            is_cut = True
        if start_ns < from_ns or start_ns >= to_ns:
            if start_ns < from_ns < end_ns and site.has_python_id:
                outer_calls += 1
            if site.full_frame and start_ns < from_ns:
                functions_before.append((thread, start_ns, end_ns, depth, site.full_frame))
            continue
        if is_open and end_ns > to_ns:
            end_ns = to_ns
            is_cut = True
        if flags & ON_DEVICE:
            of = more & NO_THREAD
            key = (-1 if of == NO_THREAD else of), word
            ran = _Ran(site.trace_name or site.name, device_index, duration_ns, self_ns)
            launched.setdefault(key, []).append(ran)
            continue
        if thread != in_thread:
            if has_crossed:
                settle()
                has_crossed = is_sorted = False
            in_thread, around, opened = thread, [], []
            crossed = _Crossed(len(found), len(twins), [], opened)
        is_async = flags & ASYNC or (is_open and not site.has_python_id)
        if is_async and is_open:  # as torch.profiler has it: no time of its thread
            self_ns = 0
        is_crosswise = False
        while around and around[-1].depth >= depth and not flags & ASYNC:
            is_crosswise |= around.pop()._end_ns > start_ns
        has_crossed |= is_crosswise
        if is_memory:
            count = _VERBS.get(word & NO_THREAD, 0) * last if with_memory else 0
            if not count:
                continue
            crossed.charges.append(_nesting.Charge(start_ns, device, count))
            if around and start_ns > around[-1]._end_ns:
                has_crossed = True
                continue
            if around:
                _charge(device, count, around)
            _charge_open(device, count, opened)
            if around or opened:
                continue
        made = new(FunctionEvent)
        made._site, made._thread, made.depth, made.cpu_parent = site, thread, depth, None
        made._start_ns, made._end_ns, made._self_ns = start_ns, end_ns, self_ns
        made._record = record if arg_count and not is_memory else 0
        made._range = made._children = made._same = None
        made._callers = None
        found.append(made)
        if site.is_operator:
            operators += 1
            made._external_id = operators
        if start_ns <= last_ns and (start_ns < last_ns or end_ns > last_end_ns):
            is_sorted = False
        last_ns, last_end_ns = start_ns, end_ns
        if is_memory:
            _charge(device, count, [made])
            no_hosts.add(id(made))
            continue
        if is_open:
            made.is_open = True
            if is_async:
                opened.append(made)
        if is_cut and not is_async:
            cut.append(made)
        is_skipped = flags & SKIPPED
        if is_skipped:  # when the jump left it is not known, so it holds nothing
            made.is_skipped = True
            no_hosts.add(id(made))
        if is_async:  # what its thread did meanwhile is not inside of it
            made.is_async = True
            no_hosts.add(id(made))
            continue
        if is_crosswise or (around and end_ns > around[-1]._end_ns):
            made.is_crosswise = has_crossed = True
        if around and end_ns <= around[-1]._end_ns:
            made.cpu_parent = holder = around[-1]
            if holder._children is None:
                holder._children = []
            holder._children.append(made)
            if merges_only_children and holder._site.name == site.name:
                is_other = is_open or is_skipped or flags & CALL or holder.is_open
                if not is_other and _may_be_only_child(site, holder._site):
                    twins.append(made)
        if is_skipped:
            continue
        around.append(made)
        if flags & CALL:
            no_hosts.add(id(made))
            holders = [e for e in around[:-1] + opened if e._site.is_operator and e.depth < depth]
            if holders:
                made._caller_id = max(holders, key=attrgetter("depth"))._external_id
    if has_crossed:
        settle()
        is_sorted = False
    for e in cut:
        inner = sum(c._end_ns - c._start_ns for c in e._children or () if not c.is_skipped)
        e._self_ns = max(e._end_ns - e._start_ns - inner, 0)
    if launched:
        hosts = [e for e in found if id(e) not in no_hosts]
        _charge_launched(launched, hosts, device_of([window]))
    made_of.has_operators = any(known[2].has_numbers for known in sites.values())
    walked = found
    if not is_sorted:
        found = sorted(walked, key=lambda e: (e._start_ns, -e._end_ns))
    if any(known[2].has_python_id for known in sites.values()):
        made_of.python_ids = _number_calls(walked, is_sorted, outer_calls)
    gone = _merge_only_children(twins)
    if gone:
        found = [e for e in found if id(e) not in gone]
    if with_stack:
        callers = Callers(frames, window.trace._function_ends(), functions_before)
        made_of.unsettled = Unsettled(found, walked, callers)
    return found
