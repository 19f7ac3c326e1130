"""torch.profiler's table as text: columns, widths, units, continuation rows and footer are its
own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Iterable, List, Optional, Sequence, Tuple

from ._text_units import format_memory, format_time
from .device import DeviceType

if TYPE_CHECKING:
    from ._averages import Either


def _share(part: float, whole: float) -> str:
    return "NaN" if whole == 0 else f"{part * 100.0 / whole:.2f}%"


NO_SHARE = (
    "CPU total % is empty where calls overlap on their thread: their sum is no part of its time"
)


class Table:
    """One table; widths come first."""

    WIDTH, GAP = 12, "  "

    def __init__(
        self,
        events: Sequence[Either],
        profile_memory: bool,
        with_flops: bool,
        max_src: Optional[int],
        max_name: Optional[int],
        max_shapes: Optional[int],
        time_unit: Optional[str],
    ) -> None:
        self.events, self.unit, self.max_name, self.memory = (
            events,
            time_unit,
            max_name,
            profile_memory,
        )
        self.self_total = sum(e.self_cpu_time_total for e in events)
        devices = [
            e
            for e in events
            if e.is_legacy or (e.device_type is not DeviceType.CPU and not e.is_user_annotation)
        ]
        # where devices have no rows of their own, the host's have it all
        self.device_total = sum(e.self_device_time_total for e in devices or events)
        self.has_no_share = False
        self.has_device = any(e.self_device_time_total > 0 for e in events)
        self.has_device_memory = profile_memory and any(
            e.self_device_memory_usage > 0 for e in events
        )
        self.has_overloads = any(e.overload_name for e in events)
        self.has_nodes = any(e.node_id != -1 for e in events)
        self.has_shapes = any(e.input_shapes for e in events)
        self.has_stack = any(e.stack for e in events)
        self.device = next((e.use_device for e in events if e.use_device), "cuda").upper()
        rates = [e.flops for e in events if e.flops] if with_flops else []
        self.flops_power = min(int(math.log10(min(rates)) / 3), 5) if rates else -1
        self.shapes_width = self._width((len(str(e.input_shapes)) for e in events), max_shapes)
        self.src_width = self._width((len(f) for e in events for f in e.stack), max_src)
        self.name_width = self._width((len(e.key or "") for e in events), max_name)
        self.columns = self._columns()

    def _columns(self) -> List[Tuple[str, int]]:
        """Titles and widths."""
        device = self.device
        names = ["Name"] + ["Overload Name"] * self.has_overloads
        titles = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if self.has_device:
            titles += [
                f"Self {device}",
                f"Self {device} %",
                f"{device} total",
                f"{device} time avg",
            ]
        if self.memory:
            titles += ["CPU Mem", "Self CPU Mem"]
        if self.has_device_memory:
            titles += [f"{device} Mem", f"Self {device} Mem"]
        titles += ["# of Calls"] + ["Node ID"] * self.has_nodes
        columns = [(title, self.name_width) for title in names]
        columns += [(title, self.WIDTH) for title in titles]
        if self.has_shapes:
            columns.append(("Input Shapes", self.shapes_width))
        if self.has_stack:
            columns.append(("Source Location", self.src_width))
        if self.flops_power >= 0:
            columns.append(
                ("Total " + ("", "K", "M", "G", "T", "P")[self.flops_power] + "FLOPs", self.WIDTH)
            )
        return columns

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

    def _total_share(self, e: Either) -> str:
        """Of calls that overlap on their thread, and add up to more than all, it is empty."""
        if e.is_async:
            return "0"
        share = _share(e.cpu_time_total, self.self_total)
        is_above = e.cpu_time_total > self.self_total and share not in ("NaN", "100.00%")
        if e.is_crosswise and is_above:
            self.has_no_share = True
            return ""
        return share

    def _cells(self, e: Either) -> List[str]:
        cells = [self._name(e.key or "")] + [self._name(e.overload_name or "")] * self.has_overloads
        cells += [
            _share(e.self_cpu_time_total, self.self_total),
            format_time(e.self_cpu_time_total, self.unit),
            self._total_share(e),
            format_time(e.cpu_time_total, self.unit),
            format_time(e.cpu_time, self.unit),
        ]
        if self.has_device:
            cells += [
                format_time(e.self_device_time_total, self.unit),
                _share(e.self_device_time_total, self.device_total),
                format_time(e.device_time_total, self.unit),
                format_time(e.device_time, self.unit),
            ]
        if self.memory:
            cells += [format_memory(e.cpu_memory_usage), format_memory(e.self_cpu_memory_usage)]
        if self.has_device_memory:
            cells += [
                format_memory(e.device_memory_usage),
                format_memory(e.self_device_memory_usage),
            ]
        cells += [str(e.count)] + [str(e.node_id)] * self.has_nodes
        if self.has_shapes:
            cells.append(str(e.input_shapes)[: self.shapes_width])
        if self.has_stack:
            cells.append(self._source(e.stack[0]) if e.stack else "")
        if self.flops_power >= 0:
            cells.append(f"{e.flops * 10.0 ** (-3 * self.flops_power):8.3f}" if e.flops else "--")
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
            lines.append(
                f"Self {self.device} time total: {format_time(self.device_total, self.unit)}"
            )
        if self.has_no_share:
            lines.append(NO_SHARE)
        return "\n".join(lines) + "\n"
