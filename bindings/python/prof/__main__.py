"""``python -m prof run script.py``, ``python -m prof table FILE``, ``python -m prof dump FILE OUT``."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from typing import Any, List, NoReturn, Optional

from ._library import ProfError


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m prof", description="Profiles a Python program, or shows what was recorded.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a script, then print its table to stderr", description="Runs a script as python would, and prints a table of its scopes to stderr when it ends. Its exit status is the script's.")
    run.add_argument("-o", "--output", metavar="FILE", help="write the trace, too: .json, .json.gz, or .prof")
    run.add_argument("-l", "--level", type=int, choices=(1, 2), default=1, help="1 operators, 2 also the runtime around them (default 1)")
    run.add_argument("-s", "--sort", choices=("total", "self", "calls", "mean", "max", "name", "memory"), default="total", help="the table's order (default total)")
    run.add_argument("-r", "--rows", type=int, default=30, metavar="N", help="at most so many rows (default 30; -1: all)")
    run.add_argument("-q", "--quiet", action="store_true", help="no table, no progress")
    run.add_argument("-t", "--trace", action="append", default=[], metavar="MODULE", help="see this module's functions as operators, with shapes (numpy); may be repeated")
    run.add_argument("-m", dest="module", action="store_true", help="script is a module's name, as python -m has it")
    run.add_argument("script", help="the script, or the module with -m")
    run.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    table = commands.add_parser("table", help="the table of a capture")
    table.add_argument("file")
    table.add_argument("-s", "--sort", choices=("total", "self", "calls", "mean", "max", "name", "memory"), default="total")
    table.add_argument("-r", "--rows", type=int, default=100, metavar="N")
    table.add_argument("-g", "--group", action="append", choices=("name", "category", "device", "thread", "shape", "stack"))
    dump = commands.add_parser("dump", help="write a capture as a trace")
    dump.add_argument("file")
    dump.add_argument("output", help=".json, .json.gz, or .prof")
    dump.add_argument("-f", "--format", choices=("chrome", "raf", "capture"), default="")
    return parser


def _fail(text: str) -> NoReturn:
    print(f"prof: {text}", file=sys.stderr)
    sys.exit(2)


class _Progress:
    """A line on a terminal while something takes longer than two seconds."""

    def __init__(self, what: str, is_wanted: bool) -> None:
        self._over = threading.Event()
        self._what = what
        self._thread: Optional[threading.Thread] = None
        if is_wanted and sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()

    def _show(self) -> None:
        begun = time.monotonic()
        is_shown = False
        while not self._over.wait(2.0 if not is_shown else 1.0):
            is_shown = True
            sys.stderr.write(f"\rprof: {self._what}, {time.monotonic() - begun:.0f} s ")
            sys.stderr.flush()
        if is_shown:
            sys.stderr.write("\r\033[K")

    def end(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()


def _execute(options: argparse.Namespace) -> Any:
    """What sys.exit() is to be given. The script's own exceptions come through."""
    import runpy

    sys.argv = [options.script, *options.args]
    try:
        if options.module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
            runpy.run_path(options.script, run_name="__main__")
    except SystemExit as e:
        return e.code
    return 0


def _report(options: argparse.Namespace, pid: int) -> None:
    from .trace import Trace

    if os.getpid() != pid:  # a child that came out of the script by fork
        return
    with Trace.now() as trace:
        if options.output:
            progress = _Progress(f"writing {options.output}", not options.quiet)
            try:
                trace.dump(options.output)
            finally:
                progress.end()
        if not options.quiet:
            print(trace.table(sort=options.sort, rows=options.rows), file=sys.stderr)
            if options.output:
                print(f"prof: the trace is in {options.output}; open it in https://ui.perfetto.dev", file=sys.stderr)


def _run(options: argparse.Namespace) -> Any:
    from importlib import import_module

    from . import profiler
    from ._scope import scope
    from .modules import trace_module

    if not options.module and not os.path.exists(options.script):
        _fail(f"there is no script {options.script!r}")
    if options.output and not os.path.isdir(os.path.dirname(os.path.abspath(options.output))):
        _fail(f"there is no directory for {options.output!r}")
    output = os.path.abspath(options.output) if options.output else None
    options.output = output
    for name in options.trace:
        try:
            trace_module(import_module(name))
        except ImportError as e:
            _fail(f"--trace {name}: {e}")
    pid = os.getpid()
    profiler.start(options.level)
    try:
        with scope(os.path.basename(options.script), "script"):
            return _execute(options)
    finally:
        profiler.stop()
        try:
            _report(options, pid)
        except (ProfError, OSError) as e:
            print(f"prof: {e}", file=sys.stderr)


def main(arguments: Optional[List[str]] = None) -> Any:
    """The command; what it gives is for sys.exit()."""
    options = _arguments().parse_args(arguments)
    if options.command == "run":
        return _run(options)
    from .trace import Trace

    try:
        with Trace.open(options.file) as trace:
            if options.command == "table":
                print(trace.table(group=options.group or ("name", "category"), sort=options.sort, rows=options.rows))
            else:
                trace.dump(options.output, options.format)
    except (ProfError, OSError) as e:
        _fail(str(e))
    return 0


if __name__ == "__main__":
    sys.exit(main())
