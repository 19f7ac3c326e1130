"""``python -m prof run``: a script as python would run it, its table at the end. Its processes, forked or spawned, record into captures of their own, which stand beside the output, or where captures stand, while they run; in the end
they are added up by name."""

from __future__ import annotations

import argparse
import atexit
import glob
import os
import sys
import threading
import time
from types import ModuleType
from typing import Any, List, NoReturn, Optional

from ._library import C, ProfError, encoded, sized


def fail(text: str) -> NoReturn:
    """What is wrong with what was asked for."""
    print(f"prof: {text}", file=sys.stderr)
    sys.exit(2)


class Progress:
    """A line on a terminal while something takes longer than two seconds."""

    def __init__(self, what: str, is_wanted: bool) -> None:
        self._over = threading.Event()
        self._what = what
        self._thread: Optional[threading.Thread] = None
        if is_wanted and sys.stderr is not None and sys.stderr.isatty():
            try:
                self._thread = threading.Thread(target=self._show, daemon=True)
                self._thread.start()
            except RuntimeError:  # the interpreter ends: there is no thread any more
                self._thread = None

    def _show(self) -> None:
        begun = time.monotonic()
        is_shown = False
        while not self._over.wait(2.0 if not is_shown else 1.0):
            is_shown = True
            sys.stderr.write(f"\rprof: {self._what}, {time.monotonic() - begun:.0f} s ")
            sys.stderr.flush()
        if is_shown:
            sys.stderr.write("\r\033[K")

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: Any) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()


# ---- the script ----


def _set_path(first: str) -> None:
    """What Python puts first for a script, in place of what it has put for ``-m prof``."""
    if getattr(sys.flags, "safe_path", False):
        return
    sys.path[0:1] = [first]


def _execute(options: argparse.Namespace) -> None:
    """SystemExit and the script's other exceptions come through."""
    import runpy

    sys.argv = [options.script, *options.args]
    if options.module:
        _set_path(os.getcwd())
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        return
    if os.path.isdir(options.script) or options.script.endswith((".zip", ".pyz")):
        del sys.path[0:1]  # it puts itself there
        runpy.run_path(options.script, run_name="__main__")
        return
    from importlib.machinery import SourceFileLoader

    _set_path(os.path.dirname(os.path.abspath(options.script)))
    # It stays: threads, functions for atexit and processes that are spawned look for it.
    main = sys.modules["__main__"] = ModuleType("__main__")
    loader = SourceFileLoader("__main__", options.script)
    main.__dict__.update(__file__=options.script, __loader__=loader, __builtins__=__builtins__, __cached__=None, __package__=None)
    if sys.version_info < (3, 14):
        main.__dict__["__annotations__"] = {}
    exec(loader.source_to_code(loader.get_data(options.script), options.script), main.__dict__)


def _show_exception(error: Exception) -> None:
    """As python would, without the frames that run the script."""
    frame = error.__traceback__
    while frame is not None and (frame.tb_frame.f_globals.get("__name__") in (__name__, "prof.__main__", "runpy") or "importlib" in frame.tb_frame.f_code.co_filename):
        frame = frame.tb_next
    sys.excepthook(type(error), error.with_traceback(frame), frame)


# ---- what was recorded ----


class _Recording:
    """The captures of this process and of those that come out of it: files of one stem."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.pid = os.getpid()
        self.has_ended = False
        folder = os.path.dirname(options.output) if options.output else os.environ.get("PROF_CAPTURE_DIR") or os.environ.get("TMPDIR") or "/tmp"
        stem = os.path.basename(options.output or options.script).replace("%", "_")[:100]
        self.folders = list(dict.fromkeys([os.path.abspath(folder), *filter(None, (os.environ.get("PROF_CAPTURE_DIR"), os.environ.get("TMPDIR"))), "/tmp", "/dev/shm"]))
        self.name = f"{stem}.run-{self.pid}-{time.time_ns():x}"
        self.path = os.path.join(self.folders[0], self.name)

    def begin(self) -> None:
        C.check(C.prof_start_with(sized_options(self.options.level, f"{self.path}.prof")))
        os.environ["PROF_LEVEL"] = str(self.options.level)  # processes that do not come by fork
        os.environ["PROF_OUTPUT"] = f"{self.path}.%p.prof"

    def captures(self) -> List[str]:
        found = [path for folder in self.folders for path in glob.glob(os.path.join(glob.escape(folder), glob.escape(self.name) + ".*"))]
        return sorted(set(found))

    def end(self) -> None:
        """In the process that began it: the table, the traces; captures of processes that have ended go."""
        if os.getpid() != self.pid or self.has_ended:  # a child that came out of the script by fork
            return
        self.has_ended = True
        C.prof_stop()
        try:
            self._report()
        except (ProfError, OSError) as e:
            print(f"prof: {e}; what was recorded is in {self.path}.*", file=sys.stderr)

    def _report(self) -> None:
        from .trace import Trace, Traces

        own, children = Trace.now(), []
        ended: List[str] = []
        running: List[str] = []
        for path in self.captures():
            try:
                trace = Trace.open(path)
            except (ProfError, OSError) as e:
                print(f"prof: {e}", file=sys.stderr)
                continue
            info = trace.info()
            (running if info.is_live and info.pid != self.pid else ended).append(path)
            if info.pid != self.pid and info.event_count + info.open_count > 0:
                children.append(trace)
        with Traces([own, *children]) as traces:
            written = [self._write(t, None if t is own else int(t.info().pid)) for t in traces.traces] if self.options.output else []
            if not self.options.quiet:
                print(traces.table(sort=self.options.sort, rows=self.options.rows), file=sys.stderr)
        for path in ended:
            os.unlink(path)
        if running:
            print(f"prof: still running, of its processes: {len(running)}; what they record is in {', '.join(running)}", file=sys.stderr)
        if written and not self.options.quiet:
            print(f"prof: the trace is in {written[0]}{f', those of {len(children)} more processes beside it' if children else ''}; open it in https://ui.perfetto.dev", file=sys.stderr)

    def _write(self, trace: Any, pid: Optional[int]) -> str:
        path: str = self.options.output
        if pid is not None:
            base, dot, end = path, "", ""
            for known in (".json.gz", ".json", ".prof"):
                if path.endswith(known):
                    base, dot, end = path[: -len(known)], "", known
            path = f"{base}.{pid}{dot}{end}"
        with Progress(f"writing {path}", not self.options.quiet):
            trace.dump(path)
        return path


def sized_options(level: int, path: str) -> Any:
    """prof_options of a capture that stays until it is removed."""
    from . import _structs as s

    return sized(s.Options, level=level, path=encoded(path, "path"), keep_capture=1)


def run(options: argparse.Namespace) -> Any:
    """What it gives is for sys.exit()."""
    from importlib import import_module

    from ._scope import scope
    from .modules import trace_module

    if not options.module and not os.path.exists(options.script):
        fail(f"there is no script {options.script!r}")
    if options.output:
        options.output = os.path.abspath(options.output)
        if not os.path.isdir(os.path.dirname(options.output)):
            fail(f"there is no directory for {options.output!r}")
    for name in options.trace:
        try:
            trace_module(import_module(name))
        except ImportError as e:
            fail(f"--trace {name}: {e}")
    recording = _Recording(options)
    recording.begin()
    atexit.register(recording.end)  # the first that is registered is the last that is called: behind the script's own, and its threads
    try:
        with scope(os.path.basename(options.script), "script"):
            _execute(options)
    except KeyboardInterrupt:  # Python ends by the signal, PyPy without what atexit has
        recording.end()
        raise
    except Exception as e:
        _show_exception(e)
        return 1
    return 0
