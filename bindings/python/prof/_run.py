"""``python -m prof._run WORDS -- SCRIPT``: how the command ``prof run`` runs a script in Python.

The command is the only one that reads options: it passes their values here, each as --NAME=VALUE,
under the option's long name. Values are not checked again, and what is not given is not asked
for."""

from __future__ import annotations

import os
import sys
from typing import Dict, List

if getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "") == "prof._run":
    # they would begin a capture of this process's own when the library is opened: those of a run
    # around this one, say
    for _word in ("PROF_LEVEL", "PROF_MEMORY", "PROF_OUTPUT", "PROF_TORCH", "PROF_PYTHON"):
        os.environ.pop(_word, None)
    # libraries of the script, and its children, may start prof themselves
    os.environ["PROF_JOIN"] = "1"

from . import _run_script


def _request(words: List[str]) -> _run_script.Request:
    begin = words.index("--")
    given: Dict[str, List[str]] = {}
    for word in words[:begin]:
        name, _, value = word[2:].partition("=")
        given.setdefault(name, []).append(value)
    is_module = words[begin + 1] == "-m"
    script, *arguments = words[begin + 1 + is_module :]
    return _run_script.Request(given, is_module, script, arguments)


if __name__ == "__main__":
    _status = _run_script.run(_request(sys.argv[1:]))
    if _status:  # else python -i would show a SystemExit
        sys.exit(_status)
