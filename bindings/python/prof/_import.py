"""``prof import`` from Python. The prof command runs in a process of its own. So the memory that a
trace needs is not taken from this process."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings
from typing import List, Optional, Union

from ._library import C, Library, encoded, error_class
from .trace import Trace

COMMAND = "prof"
NO_DISK, NO_MEMORY, NO_TRACE = -6, -5, -10  # PROF_E_IO, PROF_E_NO_MEMORY, PROF_E_FORMAT
_STATUSES = (
    ("cannot write", NO_DISK),
    ("cannot keep", NO_DISK),
    ("cannot open", NO_DISK),
    ("cannot read", NO_DISK),
    ("cannot map", NO_MEMORY),
    ("no memory", NO_MEMORY),
)


def _is_foreign(path: str) -> bool:
    """PyPI's prof, another program, has a command of this name. `prof doctor` names it, too."""
    try:
        with open(path, "rb") as file:
            begin = file.read(4096)
    except OSError:
        return False
    return begin[:2] == b"#!" and (b"from prof.main import" in begin or b"prof==" in begin)


def _on_path() -> Optional[str]:
    """What a shell finds, but for foreign ones."""
    for folder in os.get_exec_path():
        found = shutil.which(COMMAND, path=folder or os.curdir)
        if found is not None and not _is_foreign(found):
            return found
    return None


def command(library: Library = C) -> str:
    """Its absolute path: beside libprof.so, as it is built or installed, in the package, or where a
    shell finds it. FileNotFoundError."""
    beside = os.path.dirname(library.path) if os.sep in library.path else ""
    places = [
        beside,
        beside and os.path.join(beside, os.pardir, "bin"),
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"),
    ]
    for place in filter(None, places):
        path = os.path.join(place, COMMAND)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    found = _on_path()
    if found is None:
        raise FileNotFoundError(
            f"no prof command, which runs scripts and reads traces, was found: not beside "
            f"libprof.so ({library.path}), not in the package, not on PATH.\n"
            f"make install installs it, and so "
            f"does pip install of a checkout"
        )
    return os.path.abspath(found)


def run(words: List[str]) -> int:
    """What `prof import` does with these words, and its exit status; what it says goes where this
    process's own words go."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    status = subprocess.call([command(), "import", *words])
    return status if status >= 0 else 128 - status


TAKEN = "what stands whole before is taken"
"""The command's words for what it makes of a trace that is cut short."""


def _error(said: List[str]) -> Exception:
    text = "; ".join(
        line.partition("prof import: ")[2] or line for line in said if line.startswith("prof")
    )
    return error_class(
        next((status for begin, status in _STATUSES if text.startswith(begin)), NO_TRACE)
    )(text)


def _import(path: bytes, output: bytes, partial: bool) -> Trace:
    made = output + b".%d" % os.getpid()  # what is refused never stands under its name
    try:
        return _taken(path, made, output, partial)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made)


def _taken(path: bytes, made: bytes, output: bytes, partial: bool) -> Trace:
    done = subprocess.run(
        [os.fsencode(command()), b"import", b"-o", made, b"--", path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    said = (
        done.stderr.decode(errors="replace")
        .replace(made.decode(errors="replace"), output.decode(errors="replace"))
        .splitlines()
    )
    if done.returncode < 0:
        raise error_class(NO_MEMORY)(
            f"prof import ended by signal {-done.returncode} while it read {os.fsdecode(path)!r}"
        )
    is_written = done.stdout.startswith(b"written to ")
    if done.returncode and not (partial and is_written):
        raise _error(
            [
                line.replace(TAKEN, f"partial=True takes {TAKEN[: -len(' is taken')]}")
                for line in said
            ]
        )
    os.replace(made, output)
    trace = Trace.open(os.fsdecode(output))
    trace.notes = tuple(line.strip() for line in said if line.startswith("  "))
    if done.returncode:
        warnings.warn(str(_error(said)), RuntimeWarning, stacklevel=3)
    return trace


def import_trace(
    path: Union[str, "os.PathLike[str]"],
    output: Optional[Union[str, "os.PathLike[str]"]] = None,
    *,
    partial: bool = False,
) -> Trace:
    """Reads a trace in the JSON format of chrome://tracing (.json or .json.gz), as torch.profiler
    exports it, or a database of AMD's rpd or rocprofv3. A database is read whole or not at all.

    output: the capture's file, which is overwritten. None: a temporary file, removed with the
    Trace. The Trace's notes say what was left out or changed, one line for each reason.
    ValueError, with the place, if the trace is cut short, damaged or no trace. partial=True: gives
    the events before that place, with a RuntimeWarning. OSError, MemoryError."""
    source = encoded(path, "path")
    mode = os.stat(os.fsdecode(source)).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{os.fsdecode(source)!r} is a directory; name one trace in it")
    if output is not None:
        target = encoded(output, "path")
        if os.path.exists(target) and os.path.samefile(source, target):
            raise ValueError(f"output {os.fsdecode(target)!r} is the trace itself")
        return _import(source, target, bool(partial))
    folder = tempfile.mkdtemp(prefix="prof-import-")
    try:
        # mapped: it stays until it is closed
        return _import(source, os.fsencode(os.path.join(folder, "trace.prof")), bool(partial))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["import_trace"]
