"""How ``prof run`` runs a script in Python: as python would, with its table at the end.

Its processes, forked or spawned, record into captures of their own, in the folder that the command
has made. At the end they are added up by name. The command reports what is not reported here."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import filecmp
import glob
import os
import re
import shlex
import shutil
import sys
import threading
import time
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional

from . import _command_line, _import, _run_reader, _run_spread, _script, _table
from . import _structs as s
from ._library import C, ProfError, encoded, sized

_AGAIN = "PROF_RUN"
"""In the environment of a process that records malloc() by _ensure_memory(), or by the process that
was __main__.py; libprof_memory.so looks for it, too."""
_RECORDS = 2  # PROF_DEVICES_RECORDS
_NOT_RUN = 125  # RUN_FAILED
_WIDTH_MIN = 40  # that prof table takes
# as the command has them: an ending before those that it ends in
ENDINGS = (
    *(".speedscope.json.gz", ".speedscope.json", ".json.gz", ".json", ".prof"),
    *(".pftrace.gz", ".pftrace", ".csv.gz", ".csv", ".folded.gz", ".folded", ".pb.gz", ".pb"),
    *(".db", ".rpd"),
)


def _is_command_on_path() -> bool:
    """PyPI's package prof has a command of this name, too."""
    found = shutil.which("prof")
    try:
        return found is not None and filecmp.cmp(found, _import.command())
    except OSError:
        return False


def _viewer(path: str) -> str:
    """What opens a file of this ending; "" where that is not one program."""
    if path.endswith((".speedscope.json", ".speedscope.json.gz")):
        return "open it in https://www.speedscope.app"
    if path.endswith((".json", ".json.gz", ".pftrace", ".pftrace.gz")):
        return "open it in https://ui.perfetto.dev"
    if path.endswith((".db", ".rpd")):
        return "sqlite3 reads it"
    return "go tool pprof reads it" if path.endswith((".pb", ".pb.gz")) else ""


def say(text: str) -> None:
    """On stderr; where it is closed, nowhere."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr)
    except (OSError, ValueError):
        pass


def _fail(text: str) -> NoReturn:
    """What is wrong with what was asked for."""
    say(f"prof: {text}")
    sys.exit(_NOT_RUN)


class Request:
    """What the command prof run has read, and checked."""

    def __init__(
        self, given: Dict[str, List[str]], is_module: bool, script: str, arguments: List[str]
    ) -> None:
        """given: the values of each option."""

        def last(name: str) -> Optional[str]:
            return given[name][-1] if name in given else None

        self.is_module, self.script, self.arguments = is_module, script, arguments
        self.level = int(given["level"][-1])
        self.captures_in = given["captures-in"][-1]
        self.output = last("output")
        self.output_in_folder = "output-in-folder" in given
        self.pack = "pack" in given
        self.quiet = "quiet" in given
        self.memory = "memory" in given
        self.devices = "devices" in given
        self.trace = given.get("trace", [])
        self.python = last("python")
        self.python_include = given.get("python-include", [])
        self.python_exclude = given.get("python-exclude", [])
        self.python_no_imports = "python-no-imports" in given
        self.python_c = "python-c" in given
        self.torch = "torch" in given
        self.record_shapes = "record-shapes" in given
        self.with_flops = "with-flops" in given
        self.with_modules = "with-modules" in given
        self.with_stack = "with-stack" in given
        self.replace_torch_profiler = "replace-torch-profiler" in given
        self.category = last("category")
        self.table_words = [
            f"--{name}={value}"
            for name in ("by", "sort", "rows", "category", "stack-frames")
            for value in given.get(name, ())
        ]


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it is closed
        return False


class Progress:
    """A line on a terminal while something takes longer than two seconds."""

    def __init__(self, what: str, is_wanted: bool) -> None:
        self._over = threading.Event()
        self._what = what
        self._thread: Optional[threading.Thread] = None
        if is_wanted and _is_terminal():
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


# ---- what was recorded ----


def _escaped(path: str) -> str:
    """As a pattern, in which % begins a mark."""
    return path.replace("%", "%%")


class _Captures(NamedTuple):
    """What this process and those that it has started have recorded."""

    own: Any
    children: List[Any]
    """Traces of other processes that have events."""
    read: List[str]
    """Paths of these captures."""
    paths: Dict[int, str]
    """By id() of the trace: captures to write, which have ended."""
    ended: List[str]
    """Paths of captures of processes that run no more."""


class _Recording:
    """The captures of this process and of those that come out of it: files of one stem."""

    def __init__(self, options: Request) -> None:
        self.options = options
        from .trace import Trace, Traces

        self.readers = Trace, Traces  # now: the script may take modules away
        self.read_peaks: Any = None
        if options.memory and not options.quiet:
            self.read_peaks = _run_reader.reader("run-peaks", is_quiet=True)
        self.read_table: Any = None
        if not options.quiet:
            self.read_table = _run_reader.reader("table", is_quiet=False)
        self.pid = os.getpid()
        self.has_ended = self.was_begun = False
        self.has_no_rank = True
        self.ranks = {0} if "%r" in (options.output or "") else set()  # of files that are written
        self.own_capture = ""
        self.tracing: Any = None  # of functions
        name = os.fsencode(_script.title(options.script).replace("%", "_"))
        stem = name[:100].decode("utf-8", "ignore")  # a file's name has at most 255 bytes
        self.folders = list(
            dict.fromkeys(
                [
                    os.path.abspath(options.captures_in),
                    *filter(None, (os.environ.get("PROF_CAPTURE_DIR"), os.environ.get("TMPDIR"))),
                    "/tmp",
                    "/dev/shm",
                ]
            )
        )
        self.name = f"{stem}.run-{self.pid}-{time.time_ns():x}"
        self.path = os.path.join(self.folders[0], self.name)

    def _mark(self, state: Optional[str], capture: str = "") -> None:
        """For the command prof run: what is not reported here, it reports. None: all was. capture:
        the path, if it has to say that this one is gone."""
        path = os.path.join(self.options.captures_in, f".unreported-{self.pid}")
        with contextlib.suppress(OSError):
            if state is None:
                os.unlink(path)
                return
            with open(path, "wb") as file:
                file.write(os.fsencode(f"{state}\n{capture}"))

    def begin(self) -> None:
        from ._torch_found import is_malloc_seen

        self.was_begun = is_malloc_seen()
        if self.was_begun:  # with the process, by libprof_memory.so
            C.prof_stop()
            C.prof_dump(None)  # where a path was given: a run's around this one, say
        options = sized(
            s.Options,
            level=self.options.level,
            path=encoded(f"{_escaped(self.path)}.prof", "path"),
            keep_capture=1,  # it stays until it is removed
            devices=_RECORDS if self.options.devices else 0,
        )
        try:
            C.check(C.prof_start_with(options))
        except ProfError as e:
            _fail(f"{e}; the script was not run")
        # so that the script's own profiler.stop() ends its own start() alone
        C.prof_level_want(id(self), self.options.level)
        health = sized(s.Health)
        C.prof_health_get(ctypes.byref(health))
        self.own_capture = os.fsdecode(health.capture_path)
        self._mark("all", self.own_capture)
        os.environ["PROF_LEVEL"] = str(self.options.level)  # for processes that are not forked
        os.environ["PROF_OUTPUT"] = f"{_escaped(self.path)}.%p.prof"
        if self.options.devices:
            os.environ["PROF_DEVICES"] = "records"
        if self.options.memory and _torch(self.options) is None:
            os.environ["PROF_MEMORY"] = "1"

    def _stop(self) -> None:
        if self.tracing is not None:
            self.tracing.stop()
            if not self.tracing.filter.has_met():
                say(
                    f"prof: nothing that ran in this process is of --python-include "
                    f"{', '.join(self.options.python_include)}"
                )
        C.prof_level_want(id(self), 0)
        C.prof_stop()

    def captures(self) -> List[str]:
        found = [
            path
            for folder in self.folders
            for path in glob.glob(os.path.join(glob.escape(folder), glob.escape(self.name) + ".*"))
        ]
        return sorted(set(found))

    def end(self) -> None:
        """In the process that began it: the table, the traces; captures of processes that have
        ended go."""
        if os.getpid() != self.pid or self.has_ended:  # a child that came out of the script by fork
            return
        self.has_ended = True
        self._stop()
        try:
            self._report()
        except Exception as e:  # the script has ended well or badly: nothing here changes that
            say(f"prof: {type(e).__name__}: {e}")
        except BaseException:  # Ctrl-C, say, or the script's handler of a signal
            pass
        self._end_what_was_begun()

    def _end_what_was_begun(self) -> None:
        """What began with the process writes at its end, to the path of the last start: it gets one
        without."""
        if self.was_begun:
            C.prof_start_with(sized(s.Options, level=1))
            C.prof_stop()

    def drop(self) -> None:
        """There was nothing to run: no table, no trace."""
        self.has_ended = True
        self._stop()
        for path in self.captures():
            os.unlink(path)
        self._mark(None)
        self._end_what_was_begun()

    def _open_captures(self) -> _Captures:
        Trace, _ = self.readers  # noqa: N806
        found = _Captures(Trace.now(), [], [self.own_capture], {}, [])
        for path in self.captures():
            try:
                trace = Trace.open(path)
            except (ProfError, OSError) as e:
                say(f"prof: {e}")
                continue
            info = trace.info()
            is_running = info.is_live and info.pid != self.pid
            if not is_running:
                found.ended.append(path)
            if info.pid != self.pid and info.event_count + info.open_count > 0:
                found.children.append(trace)
                found.read.append(path)
                if not is_running:  # else prof run takes it, once
                    found.paths[id(trace)] = path
            elif info.pid == self.pid:
                found.paths[id(found.own)] = path
        return found

    def _report(self) -> None:
        if os.path.exists(self.own_capture):
            self._mark("all")
        captures = self._open_captures()
        own, paths = captures.own, captures.paths
        done: List[str] = []
        errors: List[str] = []
        written: List[str] = []
        info = own.info()
        self.has_no_rank = info.world_size in (0, 1)
        _, Traces = self.readers  # noqa: N806
        with Traces([own, *captures.children]) as traces:
            for t in traces.traces if self.options.output else ():
                if t is not own and id(t) not in paths:
                    continue
                try:
                    written.append(self._write(t, None if t is own else int(t.info().pid)))
                    done += [paths[id(t)]] if id(t) in paths else []
                except (ProfError, OSError) as e:
                    errors.append(str(e))
            if not self.options.quiet:
                try:
                    self._say_table(traces, info, captures.read)
                except (ProfError, OSError) as e:
                    errors.append(str(e))
        if errors:
            for path in done:  # of the others prof run makes files
                os.unlink(path)
            say(f"prof: {'; '.join(errors)}")
            return
        for path in captures.ended:
            os.unlink(path)
        self._mark(None)
        if written and not self.options.quiet:
            self._say_written(written)

    def _say_table(self, traces: Any, info: Any, paths: List[str]) -> None:
        """info: of this process. paths: of the captures that are read, this process's first."""
        if info.world_size not in (0, 1):
            of = f" of {info.world_size}" if info.world_size > 0 else ""
            say(f"prof: rank {info.rank}{of}:")
        flops = _table.flops_text(traces) if self.options.with_flops else ""
        hint = self._hint(int(info.event_count), len(paths) - 1)
        say(self._table(paths) + flops + self._peaks() + hint)
        self._mark("files")

    def _say_written(self, written: List[str]) -> None:
        more = len(written) - 1
        beside = (
            f", {'that' if more == 1 else 'those'} of {more} more "
            f"process{'' if more == 1 else 'es'} beside it"
            if more
            else ""
        )
        is_capture = written[0].endswith(".prof")
        look = self._table_words(written) if is_capture else _viewer(written[0])
        say(f"prof: the trace is in {written[0]}{beside}{look and f'; {look}'}")

    def _hint(self, events: int, children: int) -> str:
        """Where the script itself is all that was recorded, or memory was asked for in vain."""
        if self.options.memory and _torch(self.options) and "torch" not in sys.modules:
            return _NO_TORCH
        if events > 1 or children or self.tracing is not None:
            return ""
        more = ", --torch PyTorch's operators" if "torch" in sys.modules else ""
        more = "" if _torch(self.options) is not None else more
        return f"\nprof: the script has no scopes: --python shows its functions{more}"

    def _table_words(self, written: List[str]) -> str:
        """The command that shows what was written: of all processes, if it is prof run's folder."""
        prof = "prof" if _is_command_on_path() else "python -m prof"
        if self.options.output_in_folder and len(written) > 1:
            return f"{prof} table {shlex.quote(os.path.dirname(written[0]))}/*.prof shows all"
        return f"{prof} table {shlex.quote(written[0])} shows it"

    def _peaks(self) -> str:
        """Of memory, by process."""
        if self.read_peaks is None:
            return ""
        found = [path for path in (self.own_capture, *self.captures()) if path]
        try:
            return str(self.read_peaks(list(dict.fromkeys(found)))).rstrip("\n")
        except ProfError:
            return ""

    def _table(self, paths: List[str]) -> str:
        """Functions that are traced for stacks alone have no rows, as in torch.profiler's
        tables."""
        options = self.options
        is_for_stacks = options.with_stack and _functions(options) is None and not options.category
        if is_for_stacks:
            from . import _scope

            is_for_stacks = not _scope.functions.begun  # by the script itself
        words = list(options.table_words)
        if is_for_stacks:
            words.append("--no-traced" if options.with_modules else "--no-functions")
        width = _table.width_of(sys.stderr)
        if width:
            words.append(f"--width={max(width, _WIDTH_MIN)}")
        try:
            return str(self.read_table([*words, "--", *paths])).rstrip("\n")
        except ProfError as e:
            raise ProfError(
                f"the script's process could not make the table ({e}), and leaves it to prof run"
            ) from e

    def _pattern(self, info: Any, pid: Optional[int]) -> str:
        """Of a process that the script has started: NAME.PID; NAME-RANK and NAME-RANK.PID if a
        launcher has set its rank, and no rank here."""
        path = str(self.options.output)
        if pid is None or "%p" in path:
            return path
        ending = next(e for e in ENDINGS if path.endswith(e))
        stem = path[: -len(ending)]
        if info.world_size not in (0, 1) and self.has_no_rank:
            is_new = info.rank not in self.ranks
            self.ranks.add(info.rank)
            stem = stem if "%r" in path else f"{stem}-{info.rank}"
            if is_new:
                return f"{stem}{ending}"
        return f"{stem}.{pid}{ending}"

    def _dump(self, trace: Any, path: str) -> None:
        """A capture that cannot be packed is written plain."""
        if self.options.pack:
            try:
                trace.dump(path, format="packed")
                return
            except ProfError as e:
                say(f"prof run: {path} is not packed: {e}")
        trace.dump(path)

    def _write(self, trace: Any, pid: Optional[int]) -> str:
        path = self._pattern(trace.info(), pid)
        number = str(pid or self.pid)
        path = re.sub("%[p%]", lambda mark: number if mark[0] == "%p" else mark[0], path)
        with Progress(f"writing {path}", not self.options.quiet):
            self._dump(trace, path)
        info = trace.info()
        # as the library fills them in
        words = {"%r": str(max(info.rank, 0)), "%h": os.fsdecode(info.host), "%%": "%"}
        return re.sub("%[rh%]", lambda word: words[word[0]], path)


_NO_TORCH = (
    "\nprof: --memory with --torch has what torch's allocators report, and the script has "
    "not imported torch. Without --torch it has each malloc()"
)


def _functions(options: Request) -> Optional[Dict[str, Any]]:
    """What --python and its like ask trace_functions() for."""
    if not (
        options.python
        or options.python_include
        or options.python_exclude
        or options.python_c
        or options.python_no_imports
    ):
        return None
    return {
        "include": options.python_include,
        "exclude": options.python_exclude,
        "standard_library": options.python == "all",
        "c_functions": options.python_c,
        "imports": not options.python_no_imports,
    }


def _with_memory(path: str) -> Dict[str, str]:
    """The environment in which malloc() is recorded."""
    preloaded = [
        word
        for word in os.environ.get("LD_PRELOAD", "").replace(" ", ":").split(":")
        if word not in ("", path)
    ]
    # first: it calls the next allocator
    return {
        **os.environ,
        "LD_PRELOAD": ":".join([path, *preloaded]),
        "PROF_MEMORY": "1",
        _AGAIN: "1",
    }


def _ensure_memory() -> None:
    """malloc() is recorded: by this process, or by the one that takes its place now, before
    anything has begun. Where it cannot be, that is said, and the script runs."""
    from ._torch_found import is_malloc_seen, memory_library, preloaded_memory

    is_again = os.environ.pop(_AGAIN, None) is not None
    if is_malloc_seen():
        return
    try:
        path = memory_library()
    except OSError as e:
        _fail(f"--memory: {e}")
    if is_again:
        if preloaded_memory() is None:  # else it has said itself why
            say(
                f"prof: --memory: malloc() is not recorded: LD_PRELOAD={path} was not "
                f"taken by {sys.executable}"
            )
        return
    if any(c in path for c in " :"):
        _fail(
            f"--memory: LD_PRELOAD takes no path with a blank or a colon, and "
            f"libprof_memory.so is {path}"
        )
    try:
        words = [sys.executable, *_command_line.read()[1:]]
        os.execve(sys.executable, words, _with_memory(path))
    except OSError as e:
        _fail(f"--memory: {sys.executable!r} cannot be executed again, with LD_PRELOAD={path}: {e}")


def _torch(options: Request) -> Optional[Dict[str, bool]]:
    """What --torch and its like ask observe() for."""
    words = ("record_shapes", "with_stack", "with_modules", "replace_torch_profiler")
    asked = {word: bool(getattr(options, word)) for word in words}
    asked["record_shapes"] = asked["record_shapes"] or bool(options.with_flops)
    is_asked = options.torch or any(asked.values())
    return {**asked, "profile_memory": options.memory} if is_asked else None


def run(options: Request) -> Any:
    """What it gives is for sys.exit()."""
    from ._scope import scope

    if options.output:  # the script may go to another folder
        options.output = os.path.join(_escaped(os.getcwd()), options.output)
    functions, torch = _functions(options), _torch(options)
    if options.memory and torch is None:
        _ensure_memory()
    os.environ.pop(_AGAIN, None)
    _script.place(options.script, options.is_module)
    recording = _Recording(options)
    if options.trace or functions is not None or torch is not None:
        try:
            recording.tracing = _run_spread.trace(options.trace, functions, torch)
            if functions is not None or torch is not None:
                _run_spread.reach_started_processes(functions, torch)
        except (ImportError, ValueError) as e:
            _fail(f"--trace {', '.join(options.trace)}: {e}")
        except (NotImplementedError, ProfError) as e:
            _fail(f"--python: {e}")
    recording.begin()
    # the first that is registered is the last that is called: behind the script's own, and its
    # threads
    atexit.register(recording.end)
    try:
        with scope(_script.title(options.script), "script"):
            _script.execute(options.script, options.arguments, options.is_module)
    except KeyboardInterrupt as e:  # Python ends by the signal, PyPy without what atexit has
        _script.show_once(e)
        recording.end()
        raise
    except _script.NotFoundError:
        recording.drop()
        raise
    except SystemExit:
        raise
    except BaseException as e:
        _script.show(e)
        return 1
    return 0
