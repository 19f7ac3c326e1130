"""Averages of a trace, added up in C. The first calls of rows are read when a program asks for
them."""

from __future__ import annotations

import bisect
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
    Tuple,
)

from . import flops as _flops
from ._averages import Either, FunctionEventAvg
from ._event_list import EventList
from ._events import FunctionEvent
from ._library import whole
from ._read_events import USER_SCOPE, is_told_by_place
from ._single_events import device_of, single_events
from ._stacks import FRAMES_MOST, Frames
from ._times import ANNOTATION, MEMORY_ROW, STEP, STEPS
from ._totals import ONLY_CHILDREN, OUTER_FUNCTIONS, Row, Rows
from .trace import Window


def _average(row: Row, by_shape: bool, frames: Frames) -> FunctionEventAvg:
    average = FunctionEventAvg(STEPS if row.name.startswith(STEP) else row.name)
    # work of a device without a scope of the host: the number of its runs there
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
    """Inserts a row for memory outside all scopes, in the order of first events."""
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


_Key = Tuple[Any, ...]


class _Request(NamedTuple):
    """What averages() was called with."""

    windows: Sequence[Window]
    by_shape: bool
    stack_frames: int
    profile_memory: bool
    with_flops: bool
    functions: bool
    modules: bool
    rules: int

    def rows(
        self, window: Window, more: List[str], memory: bool, rules: int
    ) -> Iterator[Tuple[_Key, Row]]:
        """more: further groups. Rows with equal keys are one average."""
        group = ["name", "annotation"] + ["shape"] * self.by_shape
        group += ["stack"] * (self.stack_frames > 0)
        found = window.trace.aggregate(
            group + more,
            "first",
            from_ns=window.from_ns,
            to_ns=window.to_ns,
            stack_frames=self.stack_frames,
            functions=self.functions,
            modules=self.modules,
            memory=memory,
            _rules=rules,
        )
        if found.outside_memory_count:
            _put_outside(found)
        for row in found:
            name = STEPS if row.name.startswith(STEP) else row.name
            place = (row.file, row.line) if is_told_by_place(row.category) else None
            shape = _flops.shapes_of(row.shape) if "flops" in more else row.shape
            yield (
                (
                    name,
                    row.category == ANNOTATION,
                    shape if self.by_shape else "",
                    row.stack,
                    place,
                ),
                row,
            )

    def averages(self) -> List[FunctionEventAvg]:
        merged: Dict[_Key, FunctionEventAvg] = {}
        frames = Frames()
        for window in self.windows:
            for key, row in self.rows(window, [], self.profile_memory, self.rules):
                average = _average(row, self.by_shape, frames)
                if key in merged:
                    merged[key].add(average)
                else:
                    merged[key] = average
            for of_torch in (True, False) if self.with_flops else ():
                rules = _flops.rules(self.rules, of_torch)
                for key, row in self.rows(window, ["flops"], False, rules):
                    if key in merged:
                        merged[key].flops += _flops.of_row(row, of_torch)
        return list(merged.values())

    def events(self) -> EventList[FunctionEvent]:
        has_outer = bool(self.rules & OUTER_FUNCTIONS)
        return single_events(
            self.windows,
            self.profile_memory,
            self.with_flops,
            with_stack=has_outer or self.stack_frames > 0,
            shows_functions=not has_outer,
            modules=self.modules,
            merges_only_children=bool(self.rules & ONLY_CHILDREN),
        )


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
    """All scopes of the windows, added up in C by name, in the order of their first calls.
    by_shape, stack_frames: also by shapes and innermost frames. A user's annotation and an operator
    of the same name are two rows. functions, modules: whether traced functions and calls of modules
    have rows."""
    stack_frames = whole(stack_frames, "group_by_stack_n", 0, FRAMES_MOST)
    request = _Request(
        windows, by_shape, stack_frames, profile_memory, with_flops, functions, modules, rules
    )
    rows, device = request.averages(), device_of(windows)
    for average in rows:
        average.use_device = device
    found = EventList(rows, use_device=device, profile_memory=profile_memory, with_flops=with_flops)
    if rules & ONLY_CHILDREN and any(e.is_crosswise and not e.is_async for e in found):
        # C counts each moment of a thread once, and torch.profiler does not.
        found = request.events().key_averages(by_shape, stack_frames, False, functions)
    else:
        firsts = _Firsts(by_shape, stack_frames, request.events)
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
