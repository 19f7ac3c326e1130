"""What the command makes of captures for ``prof run``: the table, and the peaks of memory behind
it. It runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
from typing import Callable, Dict, List

from ._import import command
from ._library import ProfError


def _environment() -> Dict[str, str]:
    """The command records nothing itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PROF_")}
    preloaded = kept.pop("LD_PRELOAD", "").replace(" ", ":").split(":")
    others = [w for w in preloaded if w and not os.path.basename(w).startswith("libprof_")]
    return {**kept, "LD_PRELOAD": ":".join(others)} if others else kept


_NOTHING = 3  # EXIT_NO: nothing matched


def reader(name: str, is_quiet: bool) -> Callable[[List[str]], str]:
    """Gives what the command of this name prints on stdout with more words. is_quiet: on stderr it
    prints nothing. ProfError: why it failed. It is made before the script runs, which may change
    what it needs."""
    try:
        path = command()
    except FileNotFoundError as e:
        path, missing = "", str(e)
    run, environment = subprocess.run, _environment()
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    error = null if is_quiet else None

    def read(words: List[str]) -> str:
        if not path:
            raise ProfError(missing)
        try:
            words = [path, name, *words]
            done = run(words, stdin=null, stdout=pipe, stderr=error, env=environment, check=False)
        except (OSError, ValueError, RuntimeError) as e:  # no process, or the interpreter ends
            raise ProfError(f"prof {name}: {e}") from e
        if done.returncode not in (0, _NOTHING):
            raise ProfError(f"prof {name}: status {done.returncode}")
        return done.stdout.decode(errors="replace")

    return read
