"""Averages and their table as torch.profiler has them: names of attributes, columns, widths, units, continuation rows and footer are its own (torch.autograd.profiler_util), so that what reads them goes on reading."""

from __future__ import annotations

import csv
import io
import math
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from . import flops as _flops
from .trace import Event, Row, Trace

US, MS, S = 1.0, 1e3, 1e6
STEP = "ProfilerStep#"


def format_time(us: float, unit: Optional[str] = None) -> str:
    """By magnitude, or in one unit: "12.345us", "1.234ms", "1.234s"."""
    if unit not in (None, "us", "ms", "s"):
        raise ValueError(f"time_unit must be 's', 'ms', 'us' or None, not {unit!r}")
    if unit == "s" or (unit is None and us >= S):
        return f"{us / S:.3f}s"
    if unit == "ms" or (unit is None and us >= MS):
        return f"{us / MS:.3f}ms"
    return f"{us:.3f}us"


def format_memory(count: int) -> str:
    """ "1.50 MB" of 2^20 bytes, as torch.profiler has it."""
    for power, word in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(count) >= 1 << power:
            return f"{count / (1 << power):.2f} {word}"
    return f"{count} B"


def _share(part: float, whole: float) -> str:
    return "NaN" if whole == 0 else f"{part * 100.0 / whole:.2f}%"


class Interval:
    """From start to end, in us from the capture's start."""

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


class _Times:
    """What torch's mixin adds to both kinds of rows. Times are in us; those of devices are 0 until a device's back end says them."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float
    device_memory_usage: int
    self_device_memory_usage: int

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

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


class FunctionEventAvg(_Times):
    """All calls of one key."""

    def __init__(self, key: Optional[str] = None) -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: Any = ""
        self.overload_name = ""
        self.stack: List[str] = []
        self.flops = 0
        self.node_id = -1
        self.scope = 0
        self.category = ""
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.use_device: Optional[str] = None
        self.device_type = "cpu"
        self.cpu_parent: Optional[Any] = None
        self.min_us, self.max_us = math.inf, 0.0
        """Beyond torch: the shortest and the longest call."""

    @property
    def name(self) -> Optional[str]:
        return self.key

    def add(self, other: "FunctionEventAvg") -> "FunctionEventAvg":
        self.count += other.count
        for field in (
            "cpu_time_total",
            "self_cpu_time_total",
            "device_time_total",
            "self_device_time_total",
            "cpu_memory_usage",
            "self_cpu_memory_usage",
            "device_memory_usage",
            "self_device_memory_usage",
            "flops",
        ):
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.min_us, self.max_us = min(self.min_us, other.min_us), max(self.max_us, other.max_us)
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_cuda_time={self.self_device_time_total_str} cuda_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.device_memory_usage}>"
        )


class FunctionEvent(_Times):
    """One call."""

    def __init__(self, number: int, event: Event) -> None:
        self.id = number
        self.name = self.key = self.trace_name = event.name
        self.category = event.category
        self.thread = event.thread
        self.count = 1
        self.time_range = Interval(event.start_ns / 1e3, (event.start_ns + event.duration_ns) / 1e3)
        self.cpu_time_total = event.duration_ns / 1e3
        self.self_cpu_time_total = event.self_ns / 1e3
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.depth = event.depth
        self.cpu_parent: Optional[FunctionEvent] = None
        self.cpu_children: List[FunctionEvent] = []
        args = event.args if isinstance(event.args, dict) else {}
        self.args = args
        self.input_shapes: Any = [list(a) for a in event.args if isinstance(a, tuple)] if isinstance(event.args, list) else []
        self.stack: List[str] = str(args["Call stack"]).split(";") if "Call stack" in args else []
        self.overload_name = ""
        self.flops = _flops.of(self.name, str(self.input_shapes)) if self.input_shapes else 0
        self.kernels: List[Any] = []
        self.node_id = -1
        self.scope = 0
        self.is_async = self.is_remote = self.is_legacy = False
        self.is_user_annotation = event.category == "user_annotation"
        self.use_device: Optional[str] = None
        self.device_type = "cpu"
        self.device_index = 0

    def __repr__(self) -> str:
        return f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} thread={self.thread} input_shapes={self.input_shapes}>"


_Either = Union[FunctionEvent, FunctionEventAvg]

_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]


def _attribute(name: str) -> str:
    """Names of devices are aliases of "device"."""
    for device in ("cuda", "xpu", "privateuse1"):
        name = name.replace(device, "device")
    return name


class _SortError(ValueError, AttributeError):
    """torch.profiler raises an AttributeError."""


class EventList(List[_Either]):
    """A list of events or averages, with its table."""

    def __init__(self, events: Iterable[_Either] = (), profile_memory: bool = False, with_flops: bool = False) -> None:
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops

    @property
    def self_cpu_time_total(self) -> float:
        """us."""
        return sum(e.self_cpu_time_total for e in self)

    def total_average(self) -> FunctionEventAvg:
        """All in one, with the key "Total"."""
        total = FunctionEventAvg("Total")
        for e in self:
            total.count += e.count
            for field in ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "flops"):
                setattr(total, field, getattr(total, field) + getattr(e, field))
        return total

    def _sorted(self, sort_by: Optional[str]) -> List[_Either]:
        if sort_by is None:
            return list(self)
        attribute = _attribute(sort_by)
        try:
            return sorted(self, key=lambda e: getattr(e, attribute), reverse=True)  # type: ignore[no-any-return]
        except AttributeError:
            known = "cpu_time, cpu_time_total, self_cpu_time_total, cpu_memory_usage, self_cpu_memory_usage, count, flops, and those of cuda"
            raise _SortError(f"sort_by={sort_by!r} is no attribute of a row: {known}") from None

    def table(
        self,
        sort_by: Optional[str] = None,
        row_limit: int = 100,
        max_src_column_width: Optional[int] = 75,
        max_name_column_width: Optional[int] = 55,
        max_shapes_column_width: Optional[int] = 80,
        header: Optional[str] = None,
        top_level_events_only: bool = False,
        time_unit: Optional[str] = None,
    ) -> str:
        """torch.profiler's table. row_limit -1: all rows; time_unit: "s", "ms", "us", or None: by magnitude. Shares are of the sum of the self times of all rows. "" without rows."""
        format_time(0, time_unit)
        if not self:
            return ""
        events = self._sorted(sort_by)
        return _Table(events, self._profile_memory, self._with_flops, max_src_column_width, max_name_column_width, max_shapes_column_width, time_unit).text(row_limit, header, top_level_events_only)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Notebooks show it."""
        from html import escape

        columns, rows = self._columns()
        head = "".join(f"<th>{escape(c)}</th>" for c in columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(str(v))}</td>" for v in row) + "</tr>" for row in rows[:100])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _columns(self) -> Tuple[List[str], List[List[Any]]]:
        names = ["name", "count", "cpu_time_total", "self_cpu_time_total", "cpu_time"]
        if self._profile_memory:
            names += ["cpu_memory_usage", "self_cpu_memory_usage"]
        if any(e.input_shapes for e in self):
            names.append("input_shapes")
        if any(e.stack for e in self):
            names.append("stack")
        if self._with_flops:
            names.append("flops")
        return names, [[getattr(e, n) for n in names] for e in self]

    def to_dict(self) -> Dict[str, List[Any]]:
        """A list for each column; times in us, memory in bytes."""
        names, rows = self._columns()
        return {n: [row[i] for row in rows] for i, n in enumerate(names)}

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of to_dict(). ImportError without pandas."""
        import pandas

        return pandas.DataFrame(self.to_dict())

    def to_arrow(self) -> Any:
        """A pyarrow.Table of to_dict(). ImportError without pyarrow."""
        import pyarrow

        columns = self.to_dict()
        for name in ("input_shapes", "stack"):
            if name in columns:
                columns[name] = [str(v) for v in columns[name]]
        return pyarrow.table(columns)

    def to_csv(self) -> str:
        """Comma-separated, with a heading."""
        names, rows = self._columns()
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
        return out.getvalue()

    def supported_export_stacks_metrics(self) -> List[str]:
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Stacks and a metric (us) each, for flame graphs: a line "outer;inner 1234". Needs with_stack."""
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {_METRICS}, not {metric!r}")
        replaced = str.maketrans(" ;\t\n", "____")
        lines = []
        for e in self:
            value = int(getattr(e, _attribute(metric)))
            if e.stack and value > 0:
                lines.append(";".join(frame.translate(replaced) for frame in reversed(e.stack)) + f" {value}\n")
        write_whole(path, "".join(lines))


def write_whole(path: str, text: str) -> None:
    """Under another name first: the final one never holds half a file."""
    write_whole_bytes(path, text.encode("utf-8", "replace"))


def write_whole_bytes(path: str, data: bytes) -> None:
    """The same of bytes."""
    import os
    import tempfile

    directory = os.path.dirname(os.path.abspath(path))
    handle, name = tempfile.mkstemp(prefix=os.path.basename(path) + ".", suffix=".tmp", dir=directory)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    import os

    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class _Table:
    """One table; widths come first."""

    WIDTH, GAP = 12, "  "

    def __init__(
        self,
        events: List[_Either],
        profile_memory: bool,
        with_flops: bool,
        max_src: Optional[int],
        max_name: Optional[int],
        max_shapes: Optional[int],
        time_unit: Optional[str],
    ) -> None:
        self.events, self.unit, self.max_name, self.memory = events, time_unit, max_name, profile_memory
        self.self_total = sum(e.self_cpu_time_total for e in events)
        self.has_device = any(e.self_device_time_total > 0 for e in events)
        self.has_device_memory = profile_memory and any(e.self_device_memory_usage > 0 for e in events)
        self.has_shapes = any(e.input_shapes for e in events)
        self.has_stack = any(e.stack for e in events)
        rates = [e.flops for e in events if e.flops > 0] if with_flops else []
        self.flops_power = min(int(math.log10(min(rates)) / 3), 5) if rates else -1
        self.shapes_width = self._width((len(str(e.input_shapes)) for e in events), max_shapes)
        self.src_width = self._width((len(f) for e in events for f in e.stack), max_src)
        columns = [("Name", self._width((len(e.key or "") for e in events), max_name))]
        columns += [(c, self.WIDTH) for c in ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg")]
        if self.has_device:
            columns += [(c, self.WIDTH) for c in ("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg")]
        if self.memory:
            columns += [("CPU Mem", self.WIDTH), ("Self CPU Mem", self.WIDTH)]
        if self.has_device_memory:
            columns += [("CUDA Mem", self.WIDTH), ("Self CUDA Mem", self.WIDTH)]
        columns.append(("# of Calls", self.WIDTH))
        if self.has_shapes:
            columns.append(("Input Shapes", self.shapes_width))
        if self.has_stack:
            columns.append(("Source Location", self.src_width))
        if self.flops_power >= 0:
            columns.append(("Total " + ("", "K", "M", "G", "T", "P")[self.flops_power] + "FLOPs", self.WIDTH))
        self.columns = columns

    @staticmethod
    def _width(lengths: Iterable[int], most: Optional[int]) -> int:
        width = max(lengths, default=0) + 4
        return width if most is None else min(width, most)

    def _line(self, cells: List[str]) -> str:
        parts = []
        for (title, width), cell in zip(self.columns, cells):
            parts.append(cell.ljust(width) if title == "Source Location" else cell.rjust(width))
        return "".join(p + self.GAP for p in parts)

    def _name(self, name: str) -> str:
        if self.max_name is not None and len(name) >= self.max_name - 3:
            return name[: self.max_name - 3] + "..."
        return name

    def _source(self, frame: str) -> str:
        if len(frame) <= self.src_width:
            return frame
        cut = frame[len(frame) - self.src_width :]
        return "..." + cut[3:] if len(cut) > 3 else cut

    def _cells(self, e: _Either) -> List[str]:
        cells = [
            self._name(e.key or ""),
            _share(e.self_cpu_time_total, self.self_total),
            format_time(e.self_cpu_time_total, self.unit),
            _share(e.cpu_time_total, self.self_total),
            format_time(e.cpu_time_total, self.unit),
            format_time(e.cpu_time, self.unit),
        ]
        if self.has_device:
            whole = sum(x.self_device_time_total for x in self.events)
            cells += [
                format_time(e.self_device_time_total, self.unit),
                _share(e.self_device_time_total, whole),
                format_time(e.device_time_total, self.unit),
                format_time(e.device_time, self.unit),
            ]
        if self.memory:
            cells += [format_memory(e.cpu_memory_usage), format_memory(e.self_cpu_memory_usage)]
        if self.has_device_memory:
            cells += [format_memory(e.device_memory_usage), format_memory(e.self_device_memory_usage)]
        cells.append(str(e.count))
        if self.has_shapes:
            cells.append(str(e.input_shapes)[: self.shapes_width])
        if self.has_stack:
            cells.append(self._source(e.stack[0]) if e.stack else "")
        if self.flops_power >= 0:
            cells.append(f"{e.flops * 10.0 ** (-3 * self.flops_power):8.3f}" if e.flops > 0 else "--")
        return cells

    def text(self, row_limit: int, header: Optional[str], top_level_only: bool) -> str:
        rule = "".join("-" * width + self.GAP for _, width in self.columns)
        line = "=" * (sum(width + len(self.GAP) for _, width in self.columns) - len(self.GAP))
        lines = [line, header] if header is not None else []
        if top_level_only:
            lines += [line, "This report only display top-level ops statistics"]
        lines += [rule, self._line([title for title, _ in self.columns]), rule]
        shown = 0
        at_source = next((i for i, c in enumerate(self.columns) if c[0] == "Source Location"), -1)
        for e in self.events:
            if shown == row_limit:
                break
            if top_level_only and e.cpu_parent is not None:
                continue
            shown += 1
            lines.append(self._line(self._cells(e)))
            if not self.has_stack:
                continue
            for frame in e.stack[1:]:
                cells = [""] * len(self.columns)
                cells[at_source] = self._source(frame)
                lines.append(self._line(cells))
            lines.append(self._line([""] * len(self.columns)))
        lines += [rule, f"Self CPU time total: {format_time(self.self_total, self.unit)}"]
        if self.has_device:
            lines.append(f"Self CUDA time total: {format_time(sum(e.self_device_time_total for e in self.events), self.unit)}")
        return "\n".join(lines) + "\n"


# ---- from a trace ----


def _average(row: Row, by_shape: bool) -> FunctionEventAvg:
    average = FunctionEventAvg("ProfilerStep*" if row.name.startswith(STEP) else row.name)
    average.count = row.count
    average.cpu_time_total, average.self_cpu_time_total = row.total_ns / 1e3, row.self_ns / 1e3
    average.cpu_memory_usage, average.self_cpu_memory_usage = row.memory_bytes, row.self_memory_bytes
    average.device_memory_usage, average.self_device_memory_usage = row.device_memory_bytes, row.self_device_memory_bytes
    average.min_us, average.max_us = row.min_ns / 1e3, row.max_ns / 1e3
    average.category = row.category
    average.is_user_annotation = row.category == "user_annotation"
    average.flops = _flops.of(row.name, row.shape) * row.count
    average.input_shapes = row.shape if by_shape else ""
    average.stack = row.stack.split(";") if row.stack else []
    return average


def averages(trace: Trace, from_ns: int, to_ns: int, by_shape: bool, stack_frames: int, profile_memory: bool, with_flops: bool) -> EventList:
    """All scopes that began in between, added up in C by name and, where asked for, shapes and innermost frames."""
    group = ["name"]
    if by_shape or with_flops:
        group.append("shape")
    if stack_frames > 0:
        group.append("stack")
    merged: Dict[Tuple[Any, ...], FunctionEventAvg] = {}
    for row in trace.aggregate(group, "total", from_ns=from_ns, to_ns=to_ns, stack_frames=stack_frames):
        average = _average(row, by_shape)
        key = (average.key, average.input_shapes, tuple(average.stack))
        if key in merged:
            merged[key].add(average)
        else:
            merged[key] = average
    return EventList(merged.values(), profile_memory, with_flops)


def single_events(trace: Trace, from_ns: int, to_ns: int, profile_memory: bool, with_flops: bool) -> EventList:
    """Each scope that began in between. Made one by one in Python: some us each."""
    events: List[_Either] = []
    around: List[FunctionEvent] = []
    thread = -1
    for event in trace.events():
        if event.kind != "scope" or event.start_ns < from_ns or (to_ns and event.start_ns >= to_ns):
            continue
        made = FunctionEvent(len(events), event)
        if event.thread != thread:
            thread, around = event.thread, []
        while around and around[-1].depth >= made.depth:
            around.pop()
        if around and made.time_range.end <= around[-1].time_range.end:
            made.cpu_parent = around[-1]
            around[-1].cpu_children.append(made)
        around.append(made)
        events.append(made)
    return EventList(events, profile_memory, with_flops)
