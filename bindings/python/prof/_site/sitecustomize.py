"""Traces functions and observes torch in a process that ``python -m prof run`` starts.

Python runs this file when it starts: with --python or --torch, the command puts the file's folder
into PYTHONPATH. The sitecustomize that would have run otherwise runs first. Then functions are
traced as $PROF_PYTHON says, and torch is seen as $PROF_TORCH says. If something fails here, the
program runs as without prof, which is then not available in that Python."""

import os
import sys
from importlib import import_module


def _run_next() -> None:
    """The program's, or the distribution's own."""
    this, here = sys.modules[__name__], os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    del sys.modules[__name__]
    try:
        import_module(__name__)
    except ImportError as e:
        if e.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, this)


def _trace(package: str) -> None:
    """The prof that the parent had, if this Python does not have another."""
    before = list(sys.path)
    sys.path.append(os.path.dirname(package))
    try:
        import prof

        if os.path.realpath(os.path.dirname(prof.__file__)) == os.path.realpath(package):
            import json

            functions, torch = (
                json.loads(os.environ.get(name) or "null") for name in ("PROF_PYTHON", "PROF_TORCH")
            )
            if torch is not None:
                from prof._run_torch import watch

                watch(torch)
            if functions is not None:
                import prof._run_spread  # now: a worker of multiprocessing imports it when traced
                from prof.functions import trace_functions

                trace_functions(**functions).start()
    except Exception:
        pass
    finally:
        sys.path[:] = before


try:
    _run_next()
finally:
    if (os.environ.get("PROF_PYTHON") or os.environ.get("PROF_TORCH")) and os.environ.get(
        "PROF_LEVEL"
    ):
        _trace(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
