"""prof in the place of torch.profiler, for code that is not yours: install().

Names of torch.profiler get prof's objects, in its own modules and in every module that has imported
them from there already. torch.profiler.record_function stays torch's: its ranges are recorded."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Any, Dict, List, Tuple

from . import session

_HOMES = ("torch.profiler", "torch.profiler.profiler")
_NAMES = ("profile", "schedule", "tensorboard_trace_handler", "ProfilerAction")


class profile(session.profile):  # noqa: N801 (torch's name)
    """prof.profile with PyTorch's operators, which torch.profiler.profile always has."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"torch": True, **options})


def schedule(**words: int) -> session.Schedule:
    """prof.schedule(). An object of its own, so that uninstall() finds it."""
    return session.schedule(**words)


def tensorboard_trace_handler(*words: Any, **named: Any) -> Any:
    """prof.tensorboard_trace_handler(), as schedule()."""
    return session.tensorboard_trace_handler(*words, **named)


_OURS: Dict[str, Any] = {
    "profile": profile,
    "schedule": schedule,
    "tensorboard_trace_handler": tensorboard_trace_handler,
    "ProfilerAction": session.ProfilerAction,
}
_FOUND_AGAIN = ("profile", "schedule", "tensorboard_trace_handler")
"""Nobody has these but who has imported them from torch.profiler meanwhile."""


def _holders(value: Any) -> List[Tuple[ModuleType, str]]:
    """The names of modules, but this one, that stand for it."""
    found = []
    for module in [
        m
        for m in list(sys.modules.values())
        if isinstance(m, ModuleType) and m.__name__ != __name__
    ]:
        found += [(module, name) for name, there in list(vars(module).items()) if there is value]
    return found


class Installed:
    """What install() gives: uninstall(), or the end of a ``with`` block, takes it back."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._replaced: List[Tuple[ModuleType, str, Any]] = []
        self._theirs: Dict[str, Any] = {}

    def install(self) -> "Installed":
        """A second time replaces what modules have imported meanwhile."""
        with self._lock:
            theirs = {name: getattr(import_module(_HOMES[0]), name, None) for name in _NAMES}
            for module, name, original in self._replaced:
                if module.__name__ == _HOMES[0] and theirs[name] is _OURS[name]:
                    theirs[name] = original
            for ours, original in theirs.items():
                if original is not None and original is not _OURS[ours]:
                    self._theirs[ours] = original
                    for module, name in _holders(original):
                        setattr(module, name, _OURS[ours])
                        self._replaced.append((module, name, original))
        return self

    def uninstall(self) -> None:
        """A name that somebody else has set meanwhile stays. A second time does nothing."""
        with self._lock:
            while self._replaced:
                module, name, original = self._replaced.pop()
                if any(getattr(module, name, None) is ours for ours in _OURS.values()):
                    setattr(module, name, original)
            for ours in _FOUND_AGAIN if self._theirs else ():
                for module, name in _holders(_OURS[ours]):
                    setattr(module, name, self._theirs[ours])
            self._theirs.clear()

    def __enter__(self) -> "Installed":
        return self

    def __exit__(self, *error: Any) -> None:
        self.uninstall()


installed = Installed()
