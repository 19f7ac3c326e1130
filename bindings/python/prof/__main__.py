"""``python -m prof run script.py`` runs a script here. All else is the command ``prof``, which this
process becomes: ``python -m prof table FILE...``, ``python -m prof --help``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any, List, NoReturn, Optional

from . import _run, _table
from .trace import GROUPS


def _output(text: str) -> str:
    """A shell's variable that is not set, say, must not be taken for "no output"."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return text


def _add_recording(run: argparse.ArgumentParser) -> None:
    """Where the trace is written, and what is in it."""
    run.add_argument(
        "-o",
        "--output",
        type=_output,
        metavar="FILE",
        help="write the trace, too; the ending selects a format of prof dump",
    )
    # Passed by the command prof run, which has checked that FILE is a capture.
    run.add_argument("--pack", action="store_true", help=argparse.SUPPRESS)
    # of the command prof run, which names the captures there
    run.add_argument("--output-in-folder", action="store_true", help=argparse.SUPPRESS)
    # a folder of that command: captures are there, and what is not reported here, it reports
    run.add_argument("--captures-in", help=argparse.SUPPRESS)
    run.add_argument(
        "-l",
        "--level",
        type=int,
        choices=(1, 2),
        default=1,
        help="1 operators, 2 also the runtime around them (default 1)",
    )


def _add_table(run: argparse.ArgumentParser) -> None:
    """The rows of the table, and their order."""
    run.add_argument(
        "-s",
        "--sort",
        choices=_table.SORT_WORDS,
        default="total",
        metavar="BY",
        help=f"the table's order: {', '.join(_table.SORT_WORDS)} (default total)",
    )
    run.add_argument(
        "-r",
        "--rows",
        type=_table.rows,
        default=30,
        metavar="N",
        help="at most so many rows (default 30; all, or -1: all of them)",
    )
    run.add_argument(
        "-b",
        "--by",
        type=_table.groups,
        action="append",
        default=[],
        metavar="GROUPS",
        help=(
            f"what is one row of the table: {','.join(GROUPS)}; may be repeated (default "
            f"name,category)"
        ),
    )
    run.add_argument(
        "-c",
        "--category",
        help=(
            "only scopes of this category in the table: cpu_op, PyTorch's operators, say (default: "
            "of all)"
        ),
    )
    frames = "by stack or scopes: the innermost so many frames; 0: all (default 0)"
    run.add_argument(
        "-f", "--stack-frames", type=_table.frames, default=0, metavar="N", help=frames
    )
    run.add_argument("-q", "--quiet", action="store_true", help="no table, no progress")


def _add_functions(run: argparse.ArgumentParser) -> None:
    """Functions of Python and of modules."""
    run.add_argument(
        "-t",
        "--trace",
        action="append",
        default=[],
        metavar="MODULE",
        help="see this module's functions as operators, with shapes (numpy); may be repeated",
    )
    run.add_argument(
        "--python",
        choices=("own", "all"),
        metavar="own|all",
        help=(
            "see every Python function of the script: --python, all but the standard library's; "
            "--python=all, those, too"
        ),
    )
    run.add_argument(
        "--python-include",
        action="append",
        default=[],
        metavar="MODULE",
        help=(
            "see the Python functions of this module and those below it, of a pattern of modules "
            "(*.tests), or of a file or folder (with a /), and no others. May be repeated"
        ),
    )
    run.add_argument(
        "--python-exclude",
        action="append",
        default=[],
        metavar="MODULE",
        help="leave these out; may be repeated",
    )
    run.add_argument(
        "--python-no-imports",
        action="store_true",
        help="leave out imports, and modules' own code that they run",
    )
    run.add_argument(
        "--python-c", action="store_true", help="see the functions of C that they call, too"
    )


def _add_torch(run: argparse.ArgumentParser) -> None:
    """torch.profiler's options."""
    run.add_argument(
        "--torch",
        action="store_true",
        help="see PyTorch's operators, of all threads, from where the script imports torch; "
        "the next four are torch.profiler's, and imply this one",
    )
    run.add_argument(
        "--record-shapes",
        action="store_true",
        help="with their inputs' shapes: -b name,shape has a row for each",
    )
    run.add_argument(
        "--with-flops",
        action="store_true",
        help="a second table: how many floating point operations each took; "
        "implies --record-shapes",
    )
    run.add_argument(
        "--with-modules", action="store_true", help="a scope around each call of an nn.Module"
    )
    run.add_argument(
        "--with-stack",
        action="store_true",
        help=(
            "with the functions of Python around them, from torch's import on: -b name,stack has a "
            "row for each; the functions themselves have no rows, unless --python or -c "
            "python_function asks for them"
        ),
    )
    run.add_argument(
        "--replace-torch-profiler",
        action="store_true",
        help=(
            "the script's own torch.profiler.profile is prof's (prof.torch.install()); implies "
            "--torch"
        ),
    )


def _add_memory_and_devices(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--profile-memory",
        action="store_true",
        help="each row's memory of the processor: with --torch and its like, what torch's "
        "allocators report; else malloc() is recorded, by libprof_memory.so in LD_PRELOAD, with "
        "which the command executes itself again",
    )
    run.add_argument(
        "--devices",
        action="store_true",
        help="see kernels and copies of devices, too, of each back end that can record them",
    )


def _add_script(run: argparse.ArgumentParser) -> None:
    """The last: what follows the script is the script's."""
    run.add_argument(
        "-m",
        dest="module",
        action="store_true",
        help="script is a module's name, as python -m has it",
    )
    run.add_argument(
        "script",
        help="the script, a folder or an archive, the module with -m; -: what stands on stdin",
    )
    run.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m prof", description="Profiles a Python program, or shows what was recorded."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a script, then print its table to stderr",
        description=(
            "Runs a script as python would, and prints a table of its scopes, and of those of the "
            "processes that it has started, to stderr when it ends. Its exit status is the "
            "script's."
        ),
    )
    for add in (
        _add_recording,
        _add_table,
        _add_functions,
        _add_torch,
        _add_memory_and_devices,
        _add_script,
    ):
        add(run)
    return parser


def _behind_script(words: List[str], found: List[str]) -> List[str]:
    """The script's words. argparse has left out a "--" among them."""
    count, start = sum(word != "--" for word in found), len(words)
    while count > 0 or words[start - 1] == "--":
        start -= 1
        count -= words[start] != "--"
    return words[start:]


def _parsed(words: List[str]) -> argparse.Namespace:
    """--python alone is --python=own: an option that may have a value would take the script for it.
    What stands behind the script is the script's."""
    parser = _arguments()
    options, unknown = parser.parse_known_args(
        ["--python=own" if word == "--python" else word for word in words]
    )
    if unknown:
        parser.error(
            f"{options.command} does not know {' '.join(unknown)}; python -m prof "
            f"{options.command} --help has what it knows"
        )
    options.args = _behind_script(words, options.args)
    return options


def _become_command(words: List[str]) -> NoReturn:
    """The command takes this process's place: signals, terminal and status are its own."""
    from . import _import

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    try:
        path = _import.command()
        os.execv(path, [path, *words])
    except OSError as e:
        _run.fail(str(e))


def main(arguments: Optional[List[str]] = None) -> Any:
    """The command; what it gives is for sys.exit()."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] != ["run"]:
        _become_command(words)
    return _run.run(_parsed(words))


if __name__ == "__main__":
    sys.exit(main())
