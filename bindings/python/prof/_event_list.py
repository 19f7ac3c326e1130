"""A list of calls or of averages, and what can be made of it: tables, columns, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, FrozenSet, Iterable, List, Optional, Set, Tuple, cast

from ._averages import Either, FunctionEventAvg
from ._events import FunctionEvent
from ._library import short, whole
from ._read_events import is_told_by_place
from ._stacks import FRAMES_MOST
from ._text_table import Table
from ._text_units import format_memory, format_time
from ._torch_classes import AsTorchs
from ._whole_file import write_whole

if TYPE_CHECKING:
    # checkers have it; its default lets EventList alone stand as a type
    from typing_extensions import TypeVar

    _Row = TypeVar("_Row", bound=Either, default=Any)
else:
    from typing import TypeVar

    _Row = TypeVar("_Row")

_METRICS = [
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
]


def _attribute(name: str) -> str:
    """Names of devices are aliases of "device"."""
    for device in ("cuda", "xpu", "privateuse1"):
        name = name.replace(device, "device")
    return name


def _inner(events: Iterable[Any], keys: Dict[int, Tuple[Any, ...]]) -> Set[int]:
    """The id() of each of them that is inside another event of the same key."""
    nothing: FrozenSet[Any] = frozenset()
    # By the id() of an event that holds others: its key and the keys of the events around it.
    around: Dict[int, FrozenSet[Any]] = {}
    found: Set[int] = set()
    for e in events:
        if id(e) not in keys:
            continue
        ways, parent = [], e.cpu_parent
        while parent is not None and id(parent) not in around:
            ways.append(parent)
            parent = parent.cpu_parent
        holders = nothing if parent is None else around[id(parent)]
        for holder in reversed(ways):
            key = keys.get(id(holder))
            if key is not None and key not in holders:
                holders = holders | {key}
            around[id(holder)] = holders
        if keys[id(e)] in holders:
            found.add(id(e))
    return found


class SortError(ValueError, AttributeError):
    """torch.profiler raises an AttributeError."""


class EventList(AsTorchs, List[_Row]):
    """A list of events or averages, with its table: an EventList[FunctionEvent] or an
    EventList[FunctionEventAvg]."""

    _is_of_events = False
    _shows_functions = False
    """Whether traced functions are rows of key_averages() where nothing is said of them."""
    _note = ""
    """What the table says where it has no rows."""
    _hint = ""
    """What it says behind those that it has."""
    _python_ids = 0
    """Of events, python ids are up to this."""
    lost = 0
    """Scopes that are not in it, for want of room. Beyond torch.profiler; where there are some, the
    table's last line says so."""

    def __init__(
        self,
        events: Iterable[_Row] = (),
        *,
        use_device: Optional[str] = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(events)
        self._use_device, self._profile_memory, self._with_flops = (
            use_device,
            profile_memory,
            with_flops,
        )

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
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: Optional[bool] = None,
    ) -> "EventList[FunctionEventAvg]":
        """Added up in Python, in the order of the first call. profile.key_averages() does it in C,
        and says what include_python_functions is."""
        if include_python_functions is None:
            include_python_functions = self._shows_functions
        whole(group_by_stack_n, "group_by_stack_n", -FRAMES_MOST, FRAMES_MOST)
        key_frames = max(group_by_stack_n, 0)  # torch's slices, which from below 0 are no groups
        merged: Dict[Tuple[Any, ...], FunctionEventAvg] = {}
        keys: Dict[int, Tuple[Any, ...]] = {}
        for e in self:
            if include_python_functions or not getattr(e, "is_python_function", False):
                stack = e.stack[:key_frames] if key_frames else ()
                shapes, overload = (
                    e.input_shapes if group_by_input_shapes else "",
                    e.overload_name if group_by_overload_name else "",
                )
                keys[id(e)] = (
                    e.key,
                    e.node_id,
                    e.device_type,
                    e.is_legacy,
                    e.is_user_annotation,
                    overload,
                    str(shapes),
                    e.place if is_told_by_place(e.category) else "",
                    *stack,
                )
        inner = _inner(self, keys)
        for e in self:
            if id(e) not in keys:
                continue
            key = keys[id(e)]
            average = merged.get(key)
            if average is None:
                average = merged[key] = FunctionEventAvg()
            average.add(e, id(e) in inner)
            average.stack = e.stack[:group_by_stack_n] if group_by_stack_n else []
            average.input_shapes, average.overload_name = (
                e.input_shapes if group_by_input_shapes else "",
                e.overload_name if group_by_overload_name else "",
            )
        return EventList(
            merged.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def export_chrome_trace(self, path: str) -> None:
        """Of events(): a list of them, as JSON. profile.export_chrome_trace() writes more, and
        faster."""
        rows: List[Any] = [
            {
                "name": e.trace_name,
                "ph": "X",
                "ts": e.time_range.start,
                "dur": e.time_range.elapsed_us(),
                "tid": e.thread - 1,
                "pid": "CPU functions",
                "args": {},
            }
            for e in self
            if isinstance(e, FunctionEvent) and e.trace_name is not None
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
            known = (
                "name, count, cpu_time, cpu_time_total, self_cpu_time_total, cpu_memory_usage, "
                "self_cpu_memory_usage, flops, and those of cuda"
            )
            raise SortError(f"sort_by={short(sort_by)} is no attribute of a row: {known}") from None

    def table(
        self,
        sort_by: Optional[str] = None,
        row_limit: Optional[int] = 100,
        max_src_column_width: Optional[int] = 75,
        max_name_column_width: Optional[int] = 55,
        max_shapes_column_width: Optional[int] = 80,
        header: Optional[str] = None,
        top_level_events_only: bool = False,
        time_unit: Optional[str] = None,
    ) -> str:
        """torch.profiler's table.

        row_limit: -1 or None prints all rows. time_unit: "s", "ms", "us", or None: by magnitude.
        Shares are of the sum of the self times of all rows. top_level_events_only: only averages
        whose first call was in no other call. This walks over all events, some us each.
        Without rows the text is empty. If torch is imported and the profile did not ask for its
        operators, the text is a line on how to record them. TypeError, ValueError."""
        format_time(0, time_unit)
        for name, text in (("sort_by", sort_by), ("header", header)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} must be a str or None, not {short(text)}")
        row_limit = -1 if row_limit is None else whole(row_limit, "row_limit", -(1 << 63))
        for name, width in (
            ("max_src_column_width", max_src_column_width),
            ("max_name_column_width", max_name_column_width),
            ("max_shapes_column_width", max_shapes_column_width),
        ):
            if width is not None:
                whole(width, name)
        if not self:
            return self._note
        events = self._sorted(sort_by)
        table = Table(
            events,
            self._profile_memory,
            self._with_flops,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            time_unit,
        )
        lost = f"Not in it, for want of room: {self.lost} scopes\n" if self.lost else ""
        return table.text(row_limit, header, bool(top_level_events_only)) + self._hint + lost

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Notebooks show it."""
        from html import escape

        columns, rows = self._columns()
        head = "".join(f"<th>{escape(c)}</th>" for c in columns)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(_shown(c, v))}</td>" for c, v in zip(columns, row))
            + "</tr>"
            for row in rows[:100]
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _columns(self) -> Tuple[List[str], List[List[Any]]]:
        names = _EVENT_COLUMNS if self._is_of_events else _COLUMNS
        names = names + ["cpu_memory_usage", "self_cpu_memory_usage"] * self._profile_memory
        names += [
            name
            for name in ("input_shapes", "stack", "args")
            if any(getattr(e, name, None) for e in self)
        ]
        names += ["flops"] * self._with_flops
        return names, [
            [_GETTERS[n](e) if n in _GETTERS else getattr(e, n) for n in names] for e in self
        ]

    def to_dict(self) -> Dict[str, List[Any]]:
        """A list for each column; times in us, memory in bytes. Of events a row each, with its id
        and its parent's."""
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
        """The text, comma-separated, with a heading; lines end in "\\n". csv.reader() gives back
        each name; of a file it needs open(..., newline=""), as its own documentation says."""
        import csv
        from types import SimpleNamespace

        names, rows = self._columns()
        lines: List[str] = []
        # before Python 3.13 a carriage return is put into quotes only where it ends lines
        writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
        writer.writerow(names)
        writer.writerows(rows)
        return "".join(f"{line[:-2]}\n" for line in lines)

    def supported_export_stacks_metrics(self) -> List[str]:
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Stacks and a metric (us) each, for flame graphs: a line "outer;inner;call 1234" for each
        stack and what was called there, added up, in whole us, at least 1. Needs with_stack."""
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {_METRICS}, not {short(metric)}")
        replaced = str.maketrans(" ;\t\n", "____")
        totals: Dict[str, float] = {}
        for e in self:
            if e.stack:
                frames = [*reversed(e.stack), getattr(e, "frame", "") or e.name]
                stack = ";".join(frame.translate(replaced) for frame in frames)
                totals[stack] = totals.get(stack, 0.0) + getattr(e, _attribute(metric))
        write_whole(
            path,
            "".join(
                f"{stack} {max(int(total), 1)}\n" for stack, total in totals.items() if total > 0
            ),
        )


_COLUMNS = ["name", "count", "cpu_time_total", "self_cpu_time_total", "cpu_time"]
_EVENT_COLUMNS = [
    "id",
    "name",
    "category",
    "thread",
    "depth",
    "start_us",
    "end_us",
    "cpu_time_total",
    "self_cpu_time_total",
    "parent_id",
    "is_open",
    "is_skipped",
]
_GETTERS: Dict[str, Any] = {
    "thread": lambda e: e.thread - 1,  # as the trace counts them
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
