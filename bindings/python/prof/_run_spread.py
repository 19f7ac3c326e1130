"""What ``python -m prof run`` traces, in its own process and in those of Python that come out of
it. Those import this module alone: nothing of the command, and nothing of its tables."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional

_SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_site")


class _Again:
    """An object among those that multiprocessing gives to a process that it spawns, or that a
    server forks. When it is unpickled there, the modules and functions are traced, and torch is
    seen. Its pickle is a text that imports prof. If prof is not available, the process runs without
    it."""

    def __init__(
        self,
        names: List[str],
        functions: Optional[Dict[str, Any]],
        torch: Optional[Dict[str, bool]],
    ) -> None:
        self.names, self.functions, self.torch = names, functions, torch

    def __reduce__(self) -> Any:
        source = (
            f"import sys\nsys.path[:] = {sys.path!r}\ntry:\n    import prof._run_spread\n"
            f"    prof._run_spread.trace({self.names!r}, {self.functions!r}, {self.torch!r})\n"
            f"except Exception:\n    pass"
        )
        return exec, (source, {})


def reach_started_processes(
    functions: Optional[Dict[str, Any]], torch: Optional[Dict[str, bool]]
) -> None:
    """Those of Python that the script starts, in whatever way: _site/sitecustomize.py."""
    import json

    for variable, asked in (("PROF_PYTHON", functions), ("PROF_TORCH", torch)):
        if asked is not None:
            os.environ[variable] = json.dumps(asked)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [_SITE, *filter(None, [os.environ.get("PYTHONPATH")])]
    )


def trace(
    names: List[str], functions: Optional[Dict[str, Any]], torch: Optional[Dict[str, bool]] = None
) -> Any:
    """trace_module() of each, and trace_functions() of these arguments, which it gives, and
    observe() of these, when torch is imported; here and in the processes that multiprocessing
    begins from here."""
    from importlib import import_module
    from multiprocessing import spawn

    tracing = None
    if names:
        from .modules import trace_module

        for name in names:
            trace_module(import_module(name))
    if functions is not None:
        from .functions import is_traced, trace_functions

        if not is_traced():  # it was started so
            tracing = trace_functions(**functions)
            tracing.start()
    if torch is not None:
        from ._run_torch import watch

        watch(torch)
    module: Any = spawn
    prepared = module.get_preparation_data

    def get_preparation_data(name: str) -> Any:
        # prepare() takes the keys that it knows
        return {**prepared(name), "prof": _Again(names, functions, torch)}

    module.get_preparation_data = get_preparation_data
    return tracing
