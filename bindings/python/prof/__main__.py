"""``python -m prof`` is the command ``prof``, which this process becomes.

``run`` gets the words of this interpreter, so that the script runs under it, with its options."""

from __future__ import annotations

import os
import signal
import sys
from typing import List, NoReturn, Optional

from . import _command_line


def _interpreter() -> List[str]:
    """The words in front of ``-m prof``. OSError."""
    words = _command_line.read()
    words = words[1 : len(words) - len(sys.argv) + 1]
    if words[-1:] == ["prof"] and words[-2:-1]:  # -m prof, or -Im prof
        last = words.pop(-2)[:-1] if words[-2].endswith("m") else None
        words.pop()
    elif words and words[-1].endswith("mprof"):  # -mprof
        last = words.pop()[: -len("mprof")]
    else:
        last = None
    if last is None:
        from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]

        return [sys.executable, *_args_from_interpreter_flags()]
    return [sys.executable, *words, *([last] if last != "-" else [])]


def _end_recording() -> None:
    """Of what libprof_memory.so has begun with this process: it would be left unfinished."""
    if "libprof_memory.so" not in os.environ.get("LD_PRELOAD", ""):
        return
    from ._library import C
    from ._torch_found import is_malloc_seen

    if is_malloc_seen():
        C.prof_stop()
        C.prof_dump(None)  # where a path was given
        os.environ["PROF_RUN"] = "1"  # libprof_memory.so does not ask for a path again


def main(arguments: Optional[List[str]] = None) -> NoReturn:
    """The command takes this process's place: signals, terminal and status are its own."""
    words = sys.argv[1:] if arguments is None else arguments
    is_run = words[:1] == ["run"]
    if is_run:
        for word in ("PROF_LEVEL", "PROF_OUTPUT"):  # of a run around this one
            os.environ.pop(word, None)
    try:
        from . import _import

        _end_recording()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        path = _import.command()
        told = [f"--interpreter={word}" for word in _interpreter()] if is_run else []
        os.execv(path, [path, *words[:1], *told, *words[1:]])
    except (ImportError, OSError) as e:
        print(f"prof: {str(e).removeprefix('prof: ')}", file=sys.stderr)
        sys.exit(125 if is_run else 2)


if __name__ == "__main__":
    main()
