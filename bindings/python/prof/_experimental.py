"""torch.profiler's experimental_config: which of its options prof honours, and which change
nothing."""

from __future__ import annotations

import gc
import re
from typing import Any, Callable, Dict, List, Optional

from ._library import short
from ._scope import scope

_FULFILLED = ("verbose", "trace_only", "adjust_profiler_step")
"""verbose asks for what is recorded anyway: call stacks in the JSON. trace_only asks for no tables,
and prof makes tables only on request. adjust_profiler_step changes nothing in torch either."""

_HONOURED = ("profile_all_threads", "record_python_gc_info")


def fields(config: Any) -> Dict[str, Any]:
    """The options by name. config: torch's _ExperimentalConfig, a dictionary, or an object with
    attributes."""
    if config is None:
        return {}
    if isinstance(config, dict):
        return dict(config)
    values = _state(config)
    if values is not None:
        # torch's has hardly an attribute that can be read: its constructor's text has the names.
        names = re.findall(
            r"(\w+): (?:[^=,()\[]|\[[^\]]*\])+ = ", type(config).__init__.__doc__ or ""
        )
        if len(names) == len(values):
            return dict(zip(names, values))
    found = getattr(config, "__dict__", None)
    if found:
        return dict(found)
    return {
        name: getattr(config, name)
        for name in dir(config)
        if not name.startswith("_") and not callable(getattr(config, name))
    }


def _state(config: Any) -> Optional[Any]:
    """What pickle would keep, where that is a tuple."""
    ask: Optional[Callable[[], Any]] = (
        getattr(type(config), "__getstate__", None) and config.__getstate__
    )
    found = ask() if ask is not None else None
    return found if isinstance(found, tuple) else None


class Experimental:
    """Of one profile."""

    def __init__(self, config: Any) -> None:
        given = fields(config)
        self.all_threads = bool(given.get("profile_all_threads"))
        self.with_collections = bool(given.get("record_python_gc_info"))
        self.ignored: List[str] = [
            f"{name}={short(value)}"
            for name, value in given.items()
            if value and name not in _FULFILLED + _HONOURED
        ]

    def warning(self) -> str:
        """Of what changes nothing; "": there is none."""
        if not self.ignored:
            return ""
        return (
            f"experimental_config: {', '.join(self.ignored)} change nothing in prof. "
            f"docs/reference/torch-differences.md says what prof has instead"
        )


class Collections:
    """Each garbage collection of Python is a scope "Python GC", as torch.profiler names it, between
    start() and stop()."""

    def __init__(self) -> None:
        self._open: List[Any] = []

    def start(self) -> None:
        if self._note not in gc.callbacks:
            gc.callbacks.append(self._note)

    def stop(self) -> None:
        """A second time does nothing."""
        while self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: Dict[str, int]) -> None:
        if phase == "start":
            one = scope("Python GC", "python_gc", 1, generation=info.get("generation", 0))
            one.__enter__()
            self._open.append(one)
        elif self._open:
            self._open.pop().__exit__(None, None, None)
