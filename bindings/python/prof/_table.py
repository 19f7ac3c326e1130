"""What ``prof run`` prints of a script in Python besides the table of its scopes."""

from __future__ import annotations

import math
import os
from typing import Any, Dict

from .trace import Traces


def flops_text(traces: Traces) -> str:
    """The table of run --with-flops: floating point operations by name, most first, as in
    key_averages()."""
    from . import flops

    found: Dict[str, int] = {}
    for of_torch in (True, False):
        for row in traces.aggregate(["name", "flops"], _rules=flops.rules(0, of_torch)):
            count = flops.of_row(row, of_torch)
            if count:
                found[row.name] = found.get(row.name, 0) + count
    if not found:
        return "\nNo scope is known to take floating point operations\n"
    power = min(int(math.log10(min(found.values())) / 3), 5)  # as torch.profiler's column
    unit = ("", "K", "M", "G", "T", "P")[power]
    width = max(map(len, found))
    lines = [f"{'name':<{width}}  {f'{unit}FLOPs':>14}"]
    for name, count in sorted(found.items(), key=lambda item: -item[1]):
        lines.append(f"{name:<{width}}  {count / 1000**power:14.3f}")
    return "\n" + "\n".join(lines) + "\n"


def width_of(stream: Any) -> int:
    """Columns of the stream's terminal, or 0."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return 0
