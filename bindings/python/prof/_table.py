"""The options of ``python -m prof table``: those of the command ``prof table``
(tools/prof/table.c), with its help; tests/python/test_table.py holds both beside each other."""

from __future__ import annotations

import argparse
import math
import os
import sys
from typing import Any, Dict, List

from ._totals import ALL_ROWS, GROUPS, SORTS
from .trace import Traces

SORT_WORDS = [word.replace("_", "-") for word in SORTS]

HELP = """\
Totals of a capture, or of several together (of a program's processes, say), as
a text table.

  -b, --by GROUPS        what is one row: name,category,device,thread,process,
                         shape,stack,scopes,kernel; may be repeated (default
                         name,category)
  -s, --sort BY          total, self, calls, mean, max, name, memory,
                         self-memory, first, device, self-device (default total)
  -r, --rows N           at most so many rows; all, or -1: all of them (default
                         100)
  -l, --level N          only scopes of this level, 1 or 2; 0: of both (default
                         0)
  -c, --category C       only scopes of this category (default: of all)
  -f, --stack-frames N   by stack or scopes: the innermost so many frames; 0:
                         all (default 0)
  -F, --no-functions     traced functions, and calls of modules, have no rows,
                         as in torch.profiler's tables
  -h, --help             this text

Numbers are sorted from the largest, name and first (call) from the front. By
kernel, kernels and copies on devices have rows of their own. On a terminal the
table is as wide as that: long names are cut in the middle, and a line below
names the columns that had no room. A pipe or a file has all of them.

Examples:
  prof table trace.prof
      the scopes that took most of the time
  prof table --by thread --sort self trace.prof
      what each thread did itself
  prof table --by kernel --rows 10 trace.prof
      the ten longest kernels and copies

Exit status: 0 done, 1 it could not be done, 2 wrong words, 3 done and the
answer is no."""


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


def add_options(parser: argparse.ArgumentParser) -> None:
    """The help is the one text above: argparse's own would be another than the command's."""
    parser.usage = "%(prog)s [OPTION...] FILE..."
    parser.description = HELP
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    hidden = argparse.SUPPRESS
    parser.add_argument(
        "-b", "--by", type=groups, action="append", default=[], metavar="GROUPS", help=hidden
    )
    parser.add_argument("-s", "--sort", choices=SORT_WORDS, default="total", help=hidden)
    parser.add_argument("-r", "--rows", type=rows, default=100, metavar="N", help=hidden)
    parser.add_argument("-l", "--level", type=int, choices=(0, 1, 2), default=0, help=hidden)
    parser.add_argument("-c", "--category", help=hidden)
    parser.add_argument("-f", "--stack-frames", type=frames, default=0, metavar="N", help=hidden)
    parser.add_argument("-F", "--no-functions", action="store_true", help=hidden)
    parser.add_argument("-h", "--help", action="help", help=hidden)
    parser.add_argument("files", metavar="FILE", nargs="+", help=hidden)


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


def text(options: argparse.Namespace) -> str:
    """The table that the options ask for."""
    with Traces.open(options.files) as traces:
        return traces.table(
            group=group_of(options),
            sort=options.sort.replace("-", "_"),
            rows=options.rows,
            level=options.level,
            category=options.category,
            stack_frames=options.stack_frames,
            functions=not options.no_functions,
            modules=not options.no_functions,
            width=width_of(sys.stdout),
        )
