"""``python -m prof run --profile-memory``: the peaks of memory behind the table. The command beside
the library reads them, in a process of its own: ``prof run`` prints the same of other programs."""

from __future__ import annotations

import os
import subprocess
from typing import Callable, Dict, List

from ._import import command


def _environment() -> Dict[str, str]:
    """The command records nothing itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PROF_")}
    preloaded = kept.pop("LD_PRELOAD", "").replace(" ", ":").split(":")
    others = [w for w in preloaded if w and not os.path.basename(w).startswith("libprof_")]
    return {**kept, "LD_PRELOAD": ":".join(others)} if others else kept


def reader() -> Callable[[List[str]], str]:
    """Gives the text of captures: "" if none has memory, or they cannot be read. It is made before
    the script runs, which may change what it needs."""
    try:
        path = command()
    except FileNotFoundError:
        return lambda captures: ""
    run, environment = subprocess.run, _environment()
    pipe, null = subprocess.PIPE, subprocess.DEVNULL

    def read(captures: List[str]) -> str:
        try:
            words = [path, "run-peaks", *captures]
            done = run(words, stdin=null, stdout=pipe, stderr=null, env=environment, check=False)
        except (OSError, ValueError, RuntimeError):  # no process, or the interpreter ends
            return ""
        return done.stdout.decode(errors="replace") if done.returncode == 0 else ""

    return read
