"""Events of one thread that overlap without nesting: tasks of asyncio, a range that a step crosses.
Which one holds which, and whose memory it is, goes by their times alone, as in torch.profiler."""

from __future__ import annotations

import bisect
from itertools import accumulate
from typing import Iterable, List, NamedTuple, Tuple

from ._events import FunctionEvent
from ._read_events import is_told_by_place
from .device import TYPES


class Charge(NamedTuple):
    """Memory that a thread took, or gave back (bytes below 0)."""

    at_ns: int
    device: int
    bytes: int


def _range(event: FunctionEvent) -> Tuple[int, int]:
    return event._start_ns, -event._end_ns


def find_parents(events: Iterable[FunctionEvent], gives_own_times: bool) -> List[FunctionEvent]:
    """Finds the parent of each event: the last one that began before it, of those that end after
    it. An event that crosses a later one holds nothing from then on. Returns the events by start.

    events: of one thread, none of them asynchronous.

    gives_own_times: Self times are those of torch.profiler, the time less that of the children. If
    events overlap, these add up to more than the time that passed. If children overlap, torch has
    times below 0, and prof has 0."""
    ordered = sorted(events, key=_range)
    for event in ordered:
        event.cpu_parent, event._children = None, None
        if event.is_crosswise:
            event.is_crosswise = False
        if gives_own_times and not event.is_skipped:
            event._self_ns = event._end_ns - event._start_ns
    around: List[FunctionEvent] = []
    for event in ordered:
        while around and (around[-1]._end_ns <= event._start_ns or _crosses(around[-1], event)):
            around.pop()
        if around and around[-1]._end_ns >= event._end_ns:
            _put_into(around[-1], event, gives_own_times)
        if not event.is_skipped:
            around.append(event)
    for event in ordered if gives_own_times else ():
        event._self_ns = max(event._self_ns, 0)
    return ordered


def _crosses(before: FunctionEvent, event: FunctionEvent) -> bool:
    """Where a jump left a scope is not known, so nothing ends because of it."""
    if event.is_skipped or before._end_ns >= event._end_ns:
        return False
    before.is_crosswise = event.is_crosswise = True
    return True


def _put_into(holder: FunctionEvent, event: FunctionEvent, gives_own_times: bool) -> None:
    event.cpu_parent, event.depth = holder, holder.depth + 1
    if holder._children is None:
        holder._children = []
    holder._children.append(event)
    if gives_own_times and not event.is_skipped:
        holder._self_ns -= event._end_ns - event._start_ns


def _set(event: FunctionEvent, name: str, value: int) -> None:
    """Most have 0 of the class's."""
    if getattr(event, name) != value:
        setattr(event, name, value)


class _Sums:
    """Bytes in a stretch of time."""

    def __init__(self, charges: List[Charge]) -> None:
        self._moments = [charge.at_ns for charge in charges]
        self._totals = [0, *accumulate(charge.bytes for charge in charges)]

    def within(self, event: FunctionEvent) -> int:
        first = bisect.bisect_left(self._moments, event._start_ns)
        last = bisect.bisect_right(self._moments, event._end_ns)
        return self._totals[max(last, first)] - self._totals[first]


def charge_all(
    ordered: List[FunctionEvent],
    opened: List[FunctionEvent],
    charges: List[Charge],
    gives_own_bytes: bool,
) -> List[Charge]:
    """Gives each event the memory of its time. Returns what no event holds.

    ordered: as find_parents() returns them.

    opened: Events that had not ended. They have no bytes of their own.

    gives_own_bytes: An event's own bytes are those of its time less its children's, as in
    torch.profiler. Otherwise they are those of the time in which it was the last one that had
    begun."""
    charges.sort(key=lambda charge: charge.at_ns)
    is_host = [charge.device == TYPES["cpu"] for charge in charges]
    kinds = (
        ("cpu", [c for c, host in zip(charges, is_host) if host]),
        (
            "device",
            [c for c, host in zip(charges, is_host) if not host],
        ),
    )
    holders = [event for event in ordered if not event.is_skipped]
    for kind, some in kinds:
        total, own = f"{kind}_memory_usage", f"self_{kind}_memory_usage"
        sums = _Sums(some)
        for event in [*holders, *opened]:
            _set(event, total, sums.within(event))
            _set(event, own, 0)
        for event in holders if gives_own_bytes else ():
            inner = sum(getattr(child, total) for child in event._children or ())
            _set(event, own, getattr(event, total) - inner)
    return _outside(holders, opened, charges, not gives_own_bytes)


def _outside(
    holders: List[FunctionEvent],
    opened: List[FunctionEvent],
    charges: List[Charge],
    gives_own: bool,
) -> List[Charge]:
    """gives_own: the event that began last has the bytes as its own."""
    running: List[FunctionEvent] = []
    first_open = min((event._start_ns for event in opened), default=None)
    left: List[Charge] = []
    at = 0
    for charge in charges:
        while at < len(holders) and holders[at]._start_ns <= charge.at_ns:
            running.append(holders[at])
            at += 1
        running = [event for event in running if event._end_ns >= charge.at_ns]
        if running and gives_own:
            kind = "cpu" if charge.device == TYPES["cpu"] else "device"
            own = f"self_{kind}_memory_usage"
            setattr(running[-1], own, getattr(running[-1], own) + charge.bytes)
        if not running and (first_open is None or charge.at_ns < first_open):
            left.append(charge)
    return left


def is_twin(event: FunctionEvent) -> bool:
    """It is in an event of its name, and both have ended."""
    holder = event.cpu_parent
    if holder is None or holder._site.name != event._site.name:
        return False
    site, other = event._site, holder._site
    is_of_one_place = (
        site is other or not is_told_by_place(site.category) or site.place == other.place
    )
    return is_of_one_place and not (event.is_open or holder.is_open)
