"""What a trace holds as averages, added up in C, and as single calls, made in Python."""

from __future__ import annotations

import bisect
import contextlib
import gc
import weakref
from operator import attrgetter
from typing import (
    Any,
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
from . import flops as _flops
from ._averages import Either, FunctionEventAvg
from ._event_list import EventList
from ._events import FunctionEvent
from ._library import whole
from ._read_events import (
    ASYNC,
    CALL,
    NO_THREAD,
    ON_DEVICE,
    SKIPPED,
    USER_SCOPE,
    Briefs,
    is_told_by_place,
)
from ._sites import Made, Site, Unsettled
from ._stacks import FRAMES_MOST, Callers, Frames, Function
from ._times import ANNOTATION, MEMORY_CATEGORY, MEMORY_ROW, STEP, STEPS
from .device import TYPES
from .trace import ONLY_CHILDREN, OUTER_FUNCTIONS, Row, Rows, Trace


class Window(NamedTuple):
    """A stretch of a trace: what began from from_ns on, and before to_ns (0: up to its end), ns
    from the capture's start. origin_ns: where its profile counts from. lost: scopes of it that are
    not there, for want of room."""

    trace: Trace
    from_ns: int
    to_ns: int
    origin_ns: int
    lost: int
    whole: Optional[Trace] = None
    """The whole capture, if `trace` is the view of one thread's profile."""


def _average(row: Row, by_shape: bool, frames: Frames) -> FunctionEventAvg:
    average = FunctionEventAvg(STEPS if row.name.startswith(STEP) else row.name)
    # what ran on a device, and belongs to no scope of the host's: how often it ran there
    average.count = row.count or row.device_count
    average.cpu_time_total, average.self_cpu_time_total = row.total_ns / 1e3, row.self_ns / 1e3
    average.inner_cpu_time = (row.calls_ns - row.total_ns) / 1e3
    average.inner_device_time = (row.calls_device_ns - row.device_total_ns) / 1e3
    average.open_count, average.skipped_count = row.open_count, row.skipped_count
    average.is_crosswise = row.is_crosswise
    average.place = f"{row.file}:{row.line}" if row.file else ""
    average.cpu_memory_usage, average.self_cpu_memory_usage = (
        row.memory_bytes,
        row.self_memory_bytes,
    )
    average.device_memory_usage, average.self_device_memory_usage = (
        row.device_memory_bytes,
        row.self_device_memory_bytes,
    )
    average.device_time_total, average.self_device_time_total = (
        row.device_total_ns / 1e3,
        row.self_device_ns / 1e3,
    )
    average.min_us, average.max_us = row.min_ns / 1e3, row.max_ns / 1e3
    average.scope = row.record_scope or (USER_SCOPE if row.category == ANNOTATION else 0)
    average.category, average.level = row.category, row.level
    average.is_user_annotation, average.is_async = row.category == ANNOTATION, row.is_async
    average.input_shapes = _flops.parsed(row.shape) if by_shape else ""
    average.stack = list(frames.of(row.stack))
    return average


def _put_outside(rows: Rows) -> None:
    """Memory of no scope as a row of its own, where its first event puts it."""
    memory, device = rows.outside_memory_bytes, rows.outside_device_memory_bytes
    count, first_ns = rows.outside_memory_count, rows.outside_memory_first_ns
    outside = Row(
        MEMORY_ROW,
        "",
        "",
        "",
        None,
        1,
        count,
        0,
        0,
        0,
        0,
        0,
        0,
        memory,
        memory,
        device,
        device,
        0,
        0,
        0,
        first_ns=first_ns,
    )
    rows.insert(bisect.bisect_right([row.first_ns for row in rows], first_ns), outside)


def _device_of(windows: Sequence[Window]) -> Optional[str]:
    """The type of the first device that scopes were put on, as torch.profiler names it."""
    for window in windows:
        for device in window.trace.devices():
            names = [name for name, code in TYPES.items() if code == device.device.type]
            return next((n for n in names if n != "ext_dev"), "device")  # "ext_dev" says no more
    return None


def averages(
    windows: Sequence[Window],
    by_shape: bool,
    stack_frames: int,
    profile_memory: bool,
    with_flops: bool,
    functions: bool = True,
    modules: bool = True,
    rules: int = 0,
) -> EventList[FunctionEventAvg]:
    """All scopes of the windows, added up in C by name and, where asked for, shapes and innermost
    frames; a user's annotation apart from an operator of its name. functions, modules: whether
    traced ones, and calls of modules, have rows. In the order of their first calls."""
    stack_frames = whole(stack_frames, "group_by_stack_n", 0, FRAMES_MOST)  # the user's word
    group = ["name", "annotation"] + ["shape"] * by_shape + ["stack"] * (stack_frames > 0)
    merged: Dict[Tuple[Any, ...], FunctionEventAvg] = {}
    frames = Frames()

    def rows(
        window: Window, more: List[str], memory: bool, _rules: int = rules
    ) -> Iterable[Tuple[Tuple[Any, ...], Row]]:
        found = window.trace.aggregate(
            group + more,
            "first",
            from_ns=window.from_ns,
            to_ns=window.to_ns,
            stack_frames=stack_frames,
            functions=functions,
            modules=modules,
            memory=memory,
            _rules=_rules,
        )
        if found.outside_memory_count:
            _put_outside(found)
        for row in found:
            name = STEPS if row.name.startswith(STEP) else row.name
            place = (row.file, row.line) if is_told_by_place(row.category) else None
            shape = _flops.shapes_of(row.shape) if "flops" in more else row.shape
            yield (
                (name, row.category == ANNOTATION, shape if by_shape else "", row.stack, place),
                row,
            )

    for window in windows:
        for key, row in rows(window, [], profile_memory):
            average = _average(row, by_shape, frames)
            if key in merged:
                merged[key].add(average)
            else:
                merged[key] = average
        for of_torch in (True, False) if with_flops else ():
            for key, row in rows(window, ["flops"], False, _flops.rules(rules, of_torch)):
                if key in merged:
                    merged[key].flops += _flops.of_row(row, of_torch)
    device = _device_of(windows)
    for average in merged.values():
        average.use_device = device
    found = EventList(
        merged.values(), use_device=device, profile_memory=profile_memory, with_flops=with_flops
    )
    has_outer = bool(rules & OUTER_FUNCTIONS)

    def events() -> EventList[FunctionEvent]:
        return single_events(
            windows,
            profile_memory,
            with_flops,
            with_stack=has_outer or stack_frames > 0,
            shows_functions=not has_outer,
            modules=modules,
            merges_only_children=bool(rules & ONLY_CHILDREN),
        )

    if rules & ONLY_CHILDREN and any(e.is_crosswise and not e.is_async for e in found):
        # C counts each moment of a thread once, and torch.profiler does not.
        found = events().key_averages(by_shape, stack_frames, False, functions)
    else:
        firsts = _Firsts(by_shape, stack_frames, events)
        for average in found:
            average.set_family(firsts)
    found.lost = sum(window.lost for window in windows)
    return found


class _Firsts:
    """The first call of each row of averages()."""

    def __init__(
        self, by_shape: bool, stack_frames: int, events: Callable[[], Iterable[FunctionEvent]]
    ) -> None:
        self._by_shape, self._stack_frames, self._events = by_shape, stack_frames, events
        self._found: Optional[Dict[Any, FunctionEvent]] = None

    def first_of(self, row: FunctionEventAvg) -> Optional[FunctionEvent]:
        if self._found is None:
            found: Dict[Any, FunctionEvent] = {}
            for e in self._events():
                found.setdefault(
                    self._key(e, e.stack[: self._stack_frames] if self._stack_frames else []), e
                )
            self._found = found
        return self._found.get(self._key(row, row.stack))

    def _key(self, e: Either, stack: List[str]) -> Any:
        place = e.place if is_told_by_place(e.category) else ""
        shapes = str(e.input_shapes) if self._by_shape else ""
        return e.key, e.is_user_annotation, shapes, place, tuple(stack)


def _charge(device: int, count: int, around: Sequence[FunctionEvent]) -> None:
    """Bytes of memory are the innermost scope's own, and part of all around it."""
    if device == TYPES["cpu"]:
        around[-1].self_cpu_memory_usage += count
        for scope in around:
            scope.cpu_memory_usage += count
    else:
        around[-1].self_device_memory_usage += count
        for scope in around:
            scope.device_memory_usage += count


def _charge_open(device: int, count: int, opened: Iterable[FunctionEvent]) -> None:
    """The same for open scopes, which have no bytes of their own."""
    for scope in opened:
        if device == TYPES["cpu"]:
            scope.cpu_memory_usage += count
        else:
            scope.device_memory_usage += count


def _charge_device(host: FunctionEvent, ran: Iterable[_Ran], device: Optional[str]) -> None:
    """What ran on a device is its host's scope's own, and part of all around it."""
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
    """The innermost scope of a thread that stood open then: what a kernel that a vendor's tracing
    told was launched in."""
    place = bisect.bisect_right(starts, moment_ns)
    host = scopes[place - 1][0] if place else None
    while host is not None and ends[id(host)] < moment_ns:
        host = host.cpu_parent
    return host


def _charge_launched(
    launched: Dict[Tuple[int, int], List[_Ran]],
    hosts: Sequence[FunctionEvent],
    device: Optional[str],
) -> None:
    """What ran on devices, by what launched it."""
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
    """Each scope of the windows, by its start; those that had not ended are marked. with_stack:
    what has no stack of its own has the traced functions around it. modules: whether calls of
    modules are more than functions, which key_averages() leaves out. merges_only_children: a call
    that is the only one in a call of its name is part of that one, as in torch.profiler. What takes
    time to make of an event is made when it is asked for: the trace is in use as long as one of
    them lives, also when it is closed."""
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
        events, use_device=_device_of(windows), profile_memory=profile_memory, with_flops=with_flops
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
    """Garbage is collected later. Beside so many new objects, of which none is garbage, the
    collector would look at all of the process's again and again: it took half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def number(events: Iterable[FunctionEvent], first: int, python_ids: int) -> None:
    """Behind so many others, of which calls of functions and of modules have ids up to that."""
    for place, event in enumerate(events, first):
        event.id = place
        if python_ids and event._site.has_python_id:
            event._python_id += python_ids


def _number_calls(walked: Iterable[FunctionEvent], is_sorted: bool, outer: int) -> int:
    """Numbers calls of functions and modules by begin, thread by thread, as torch.profiler and
    src/export/python_ids.c do. outer: how many began before the window, and are no events. Returns
    the last number."""
    calls = [event for event in walked if event._site.has_python_id]
    if not is_sorted:
        calls.sort(key=lambda e: e._start_ns)
    for number, event in enumerate(calls, outer + 1):
        event._python_id = number
    return outer + len(calls)


def _may_be_only_child(child: Site, holder: Site) -> bool:
    """Sites of two that stand in each other and have one name."""
    return child is holder or not is_told_by_place(child.category) or child.place == holder.place


class _Crossed(NamedTuple):
    """A thread on which events cross each other: what it needs to give them their parents anew."""

    first: int
    """Of the thread, in the list of all events; next, in that of twins."""
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
        """Ends with the memory that no event holds, behind the thread's events."""
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
    """Makes a call part of the one around it where it is the only one there. calls: each is in one
    of its name, and outer ones come first. Gives the id() of those that are gone."""
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
    around: List[FunctionEvent] = []  # what stands open
    opened: List[FunctionEvent] = []  # of the thread: what had not ended
    launched: Dict[Tuple[int, int], List[_Ran]] = {}
    no_hosts: Set[int] = set()  # by id()
    twins: List[FunctionEvent] = []  # inside of one of their name
    cut: List[FunctionEvent] = []  # began before the window, or end behind it
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
                    around.pop()  # what comes may be in the step, and deeper
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
        _charge_launched(launched, hosts, _device_of([window]))
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
