"""The table's options of ``python -m prof run``, which are those of the command ``prof table``."""

from __future__ import annotations

import argparse
import math
import os
from typing import Any, Dict, List

from ._totals import ALL_ROWS, GROUPS, SORTS
from .trace import Traces

SORT_WORDS = [word.replace("_", "-") for word in SORTS]


def groups(text: str) -> List[str]:
    words = text.split(",")
    for word in words:
        if word not in GROUPS:
            raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(GROUPS)}")
    return words


def rows(text: str) -> int:
    """A number of rows, or all of them: -1."""
    if text == "all":
        return -1
    try:
        number = int(text)
    except ValueError:
        number = -2
    if number < -1 or number == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of rows; -1 is all, and so is the word all"
        )
    return number


def frames(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < ALL_ROWS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of frames; 0 is all")
    return int(text)


def group_of(options: argparse.Namespace) -> List[str]:
    """What --by asks for."""
    group = {word for words in options.by for word in words} or {"name", "category"}
    if "kernel" in group:
        group |= {"name", "category"}  # its rows are kernels' names
    return sorted(group)


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
