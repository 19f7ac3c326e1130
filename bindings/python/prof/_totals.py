"""Scopes of one or several traces, added up in C: Row, Rows, aggregate() and the table."""

from __future__ import annotations

import ctypes
from typing import Any, ContextManager, Dict, List, NamedTuple, Optional, Tuple

from . import _structs as s
from ._library import C, Owner, RowsPointer, encoded, short, sized, whole

GROUPS = {
    "name": 1,
    "category": 2,
    "device": 4,
    "thread": 8,
    "process": 1024,
    "shape": 16,
    "stack": 32,
    "scopes": 256,
    "kernel": 64,
}
INNER_GROUPS = {"annotation": 128, "flops": 512}
"""PROF_GROUP_ANNOTATION and PROF_GROUP_FLOPS, which only key_averages() uses."""
SORTS = {
    "total": 0,
    "self": 1,
    "calls": 2,
    "mean": 3,
    "max": 4,
    "name": 5,
    "memory": 6,
    "self_memory": 7,
    "first": 8,
    "device": 9,
    "self_device": 10,
    "median": 11,
    "p99": 12,
    "device_mean": 13,
    "self_net": 14,
    "total_net": 15,
    "open": 16,
    "open_for": 17,
    "skipped": 18,
}
ALL_ROWS = (1 << 32) - 1
LEAVE_OUT_FUNCTIONS, LEAVE_OUT_MODULES, LEAVE_OUT_MEMORY = 1, 2, 4
OPEN_CALLS, OUTER_FUNCTIONS, ONLY_CHILDREN = 1, 2, 4
"""prof_aggregate_rule: the rules of torch.profiler."""


class Row(NamedTuple):
    """One group of scopes. Times are in ns, of scopes that have ended. A total counts only the
    outermost call of a recursion. calls_ns, median and p99 (exact to 1 %) are of all calls.

    Memory is in bytes: what was allocated less what was freed while it ran. So many scopes as
    `open_count` had not ended, and the oldest of them was open for `open_ns`. A jump left
    `skipped_count` scopes. Their end is not known, so no other field includes them. The members
    `file` and `line` are the place in the source, and `has_more_places` says that there are others.
    The time of devices for what was launched while it ran is `device_total_ns`. The part that it
    launched itself is `self_device_ns`, in `device_count` scopes of streams."""

    name: str
    category: str
    shape: str
    stack: str
    thread: Optional[int]
    level: int
    count: int  # type: ignore[assignment]  # scopes, not tuple's method
    total_ns: int
    self_ns: int
    min_ns: int
    max_ns: int
    median_ns: int
    p99_ns: int
    memory_bytes: int
    self_memory_bytes: int
    device_memory_bytes: int
    self_device_memory_bytes: int
    device_total_ns: int
    self_device_ns: int
    device_count: int
    is_async: bool = False
    """All its calls are asynchronous: they are not a thread's own time."""
    calls_ns: int = 0
    calls_device_ns: int = 0
    open_count: int = 0
    open_ns: int = 0
    file: str = ""
    line: int = 0
    has_more_places: bool = False
    child_count: int = 0
    """Scopes directly inside of its calls. inner_count: at any depth, of calls in total_ns."""
    inner_count: int = 0
    self_net_ns: int = 0
    """self_ns without the cost of child_count scopes. total_net_ns: without that of inner_count."""
    total_net_ns: int = 0
    first_ns: int = 0
    """The begin of its first call, if rows are sorted by that."""
    outer_count: int = 0
    """Its calls that are not in another call of it, if FLOPs were requested."""
    skipped_count: int = 0
    is_crosswise: bool = False
    """Calls of it overlap others of their thread without nesting, or are asynchronous: total_ns may
    be more than the time that passed."""
    record_scope: int = 0
    """at::RecordScope of the first call of one of PyTorch's operators, if rows are sorted by it."""
    total_share: Optional[float] = None
    """total_ns / all_self_ns of the rows. None: total_ns is no part of it. The calls are
    asynchronous, or overlap on their thread and add up to more."""
    process_pid: Optional[int] = None
    """For the group "process". Negative: the imported trace has a name for it, and no number."""
    process_name: str = ""


class Rows(List[Row]):
    """The result of Trace.aggregate(): a list of groups, and the sums of all groups."""

    total_self_ns: int = 0
    all_self_ns: int = 0
    """Includes what level, category, functions and modules left out. Shares in tables are of
    this."""
    all_row_count: int = 0
    has_memory: bool = False
    has_device_memory: bool = False
    total_self_device_ns: int = 0
    has_device: bool = False
    open_count: int = 0
    skipped_count: int = 0
    outside_memory_count: int = 0
    """Allocations and frees outside all scopes of their thread. The earliest was at
    outside_memory_first_ns. Bytes are those allocated less those freed."""
    outside_memory_first_ns: int = 0
    outside_memory_bytes: int = 0
    outside_device_memory_bytes: int = 0


def _share(row: s.Row, all_ns: int) -> Optional[float]:
    if row.is_async or row.total_ns > all_ns:
        return None
    return row.total_ns / all_ns if all_ns else 0.0


def _more(rows: Any, index: int) -> Tuple[Any, ...]:
    """The last fields of a Row, from calls_ns on."""
    more = sized(s.RowMore)
    C.check(C.prof_rows_more(rows, index, ctypes.byref(more)))
    return (
        more.calls_ns,
        more.calls_device_ns,
        more.open_count,
        more.open_ns,
        more.file.decode(errors="replace"),
        more.line,
        bool(more.has_more_places),
        more.child_count,
        more.inner_count,
        more.self_net_ns,
        more.total_net_ns,
        more.first_ns,
        more.outer_count,
        more.skipped_count,
        bool(more.is_crosswise),
        more.record_scope,
        _share(rows.contents.rows[index], rows.contents.all_self_ns),
        more.process_pid if more.has_process else None,
        more.process_name.decode(errors="replace"),
    )


def _row(r: s.Row, more: Tuple[Any, ...]) -> Row:
    return Row(
        r.name.decode(errors="replace"),
        r.category.decode(errors="replace"),
        r.shape.decode(errors="replace"),
        r.stack.decode(errors="replace"),
        None if r.thread == ALL_ROWS else r.thread,
        r.level,
        r.calls_count,
        r.total_ns,
        r.self_ns,
        r.min_ns,
        r.max_ns,
        r.median_ns,
        r.p99_ns,
        r.memory_bytes,
        r.self_memory_bytes,
        r.device_memory_bytes,
        r.self_device_memory_bytes,
        r.device_total_ns,
        r.self_device_ns,
        r.device_count,
        bool(r.is_async),
        *more,
    )


_SUMS = (
    "total_self_ns",
    "all_self_ns",
    "all_row_count",
    "total_self_device_ns",
    "open_count",
    "skipped_count",
    "outside_memory_count",
    "outside_memory_first_ns",
    "outside_memory_bytes",
    "outside_device_memory_bytes",
)
"""Members that Rows and prof_rows have by the same name."""


def _read_rows(rows: Any) -> Rows:
    """rows: a pointer to prof_rows."""
    got = rows.contents
    result = Rows(_row(r, _more(rows, index)) for index, r in enumerate(got.rows[: got.row_count]))
    for name in _SUMS:
        setattr(result, name, getattr(got, name))
    result.has_memory, result.has_device = bool(got.has_memory), bool(got.has_device)
    result.has_device_memory = bool(got.has_device_memory)
    return result


def choice(value: str, words: Dict[str, int], what: str) -> int:
    try:
        return words[value]
    except (KeyError, TypeError):
        raise ValueError(
            f"{what} must be one of {', '.join(repr(w) for w in words)}, not {short(value)}"
        ) from None


def row_limit(rows: int) -> int:
    return ALL_ROWS if rows == -1 else min(whole(rows, "rows", -1), ALL_ROWS - 1)


class Totals(Owner):
    """One trace, or several, whose scopes can be added up."""

    def _pointers(self) -> ContextManager[Any]:
        """An array of prof_trace *, in use inside ``with``."""
        raise NotImplementedError

    def _options(
        self,
        group: Any,
        sort: str,
        rows: int,
        level: int,
        category: Optional[str],
        from_ns: int = 0,
        to_ns: int = 0,
        stack_frames: int = 0,
        functions: bool = True,
        modules: bool = True,
        memory: bool = True,
        rules: int = 0,
    ) -> s.AggregateOptions:
        bits = 0
        for word in [group] if isinstance(group, str) else group:
            bits |= INNER_GROUPS.get(word) or choice(word, GROUPS, "group")
        return sized(
            s.AggregateOptions,
            group=bits,
            sort=choice(sort, SORTS, "sort"),
            rows_limit=row_limit(rows),
            level=whole(level, "level", 0, 2),
            category=None if category is None else encoded(category, "category"),
            stack_frames=whole(stack_frames, "stack_frames", 0, ALL_ROWS),
            from_ns=whole(from_ns, "from_ns"),
            to_ns=whole(to_ns, "to_ns"),
            leave_out=(0 if functions else LEAVE_OUT_FUNCTIONS)
            | (0 if modules else LEAVE_OUT_MODULES)
            | (0 if memory else LEAVE_OUT_MEMORY),
            rules=rules,
        )

    def aggregate(
        self,
        group: Any = ("name", "category"),
        sort: str = "total",
        rows: int = -1,
        level: int = 0,
        category: Optional[str] = None,
        from_ns: int = 0,
        to_ns: int = 0,
        stack_frames: int = 0,
        functions: bool = True,
        modules: bool = True,
        memory: bool = True,
        _rules: int = 0,
    ) -> Rows:
        """Scopes added up by group (words of GROUPS), sorted (a word of SORTS), at most so many
        rows (-1: all). Only scopes that begin at or after from_ns and before to_ns count. These are
        in ns from the capture's start, and 0 is no bound.

        stack_frames: the number of innermost frames in the group "stack" (0: all). functions,
        modules: whether traced functions and calls of modules have rows. memory: whether bytes of
        memory are added up. Without it they are 0, and it is faster."""
        options = self._options(
            group,
            sort,
            rows,
            level,
            category,
            from_ns,
            to_ns,
            stack_frames,
            functions,
            modules,
            memory,
            _rules,
        )
        out = RowsPointer()
        with self._pointers() as pointers:
            C.check(
                C.prof_traces_aggregate(
                    pointers, len(pointers), ctypes.byref(options), ctypes.byref(out)
                )
            )
        try:
            return _read_rows(out)
        finally:
            C.prof_rows_destroy(out)

    def table(
        self,
        group: Any = ("name", "category"),
        sort: str = "total",
        rows: int = 100,
        level: int = 0,
        category: Optional[str] = None,
        stack_frames: int = 0,
        functions: bool = True,
        modules: bool = True,
        width: int = 0,
    ) -> str:
        """The same as prof's own table, with the line of losses below it. For torch.profiler's
        table see profile.key_averages().table(). width: the greatest number of columns (0: no
        limit)."""
        options = self._options(
            group,
            sort,
            rows,
            level,
            category,
            stack_frames=stack_frames,
            functions=functions,
            modules=modules,
        )
        options.text_width = width
        with self._pointers() as pointers:
            return C.asked(C.prof_traces_table, pointers, len(pointers), ctypes.byref(options))
