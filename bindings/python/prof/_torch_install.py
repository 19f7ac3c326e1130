"""prof in the place of torch.profiler, for code that is not yours: install().

Names of torch.profiler, and torch.autograd.profiler.profile, get prof's objects. They get them in
torch's own modules, and in every module that has already imported them from there. record_function
stays torch's: its ranges are recorded."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, TypeVar

from . import _torch_autograd, session

_STEPS = "ProfilerStep"
"""The name under which prof counts steps in torch's KinetoStepTracker."""


_Init = TypeVar("_Init", bound=Callable[..., None])


def with_options(init: _Init) -> _Init:
    """For an __init__() that passes its options on to prof.profile: inspect.signature() gives their
    names. Programs choose by these what they pass (Lightning's PyTorchProfiler)."""
    found = inspect.signature(session.profile.__init__)
    words = [
        word.replace(default=True) if word.name == "torch" else word
        for word in found.parameters.values()
    ]
    init.__signature__ = found.replace(parameters=words)  # type: ignore[attr-defined]
    return init


_OF_PROFILE_ALONE = ("schedule", "on_trace_ready", "use_cuda")
"""Options that torch.profiler._KinetoProfile does not have."""


def _without_these(init: _Init) -> _Init:
    """with_options(), but for those."""
    found = inspect.signature(with_options(init))
    words = [word for word in found.parameters.values() if word.name not in _OF_PROFILE_ALONE]
    init.__signature__ = found.replace(parameters=words)  # type: ignore[attr-defined]
    return init


class KinetoProfile(_torch_autograd.InPlace):
    """torch.profiler._KinetoProfile: with PyTorch's operators, and without a schedule."""

    @_without_these
    def __init__(self, **options: Any) -> None:
        for name in [name for name in _OF_PROFILE_ALONE if name in options]:
            raise TypeError(f"_KinetoProfile() takes no {name}: torch.profiler.profile() does")
        super().__init__(**{"torch": True, **options})
        self._name_activities(options)

    def _name_activities(self, options: Dict[str, Any]) -> None:
        """Those that were not given are torch's members, as its own profile has them."""
        if options.get("activities") is None:
            theirs = getattr(import_module("torch.profiler"), "ProfilerActivity", None)
            self.activities = {
                getattr(theirs, activity.name, activity) for activity in self._chosen
            }


class profile(KinetoProfile):  # noqa: N801 (torch's name)
    """prof.profile with PyTorch's operators, which torch.profiler.profile always has."""

    @with_options
    def __init__(self, **options: Any) -> None:
        # Past the class that takes fewer options.
        super(KinetoProfile, self).__init__(**{"torch": True, **options})
        self._name_activities(options)
        self._tracker = getattr(
            import_module("torch.autograd.profiler"), "KinetoStepTracker", None
        )  # torch 2.0 has it
        if self._tracker is not None:
            self._tracker.init_step_count(_STEPS)

    def step(self) -> None:
        super().step()
        if self._tracker is not None and os.environ.get("KINETO_USE_DAEMON"):  # as torch's
            self._tracker.increment_step(_STEPS)

    def __exit__(self, *error: Any) -> None:
        try:
            super().__exit__(*error)
        finally:
            if self._tracker is not None:
                self._tracker.erase_step_count(_STEPS)


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> session.Schedule:
    """prof.schedule(). An object of its own, so that uninstall() finds it."""
    return session.schedule(
        wait=wait,
        warmup=warmup,
        active=active,
        repeat=repeat,
        skip_first=skip_first,
        skip_first_wait=skip_first_wait,
    )


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: Optional[str] = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[session.profile], None]:
    """prof.tensorboard_trace_handler(), as schedule()."""
    return session.tensorboard_trace_handler(dir_name, worker_name, use_gzip, use_python_export)


def profiler_enabled() -> bool:
    """torch.autograd._profiler_enabled(): whether this thread has a profile, prof's included."""
    place = next(p for p in _PLACES if p.ours is profiler_enabled)
    theirs = installed._theirs.get(place)
    return bool(theirs and theirs()) or bool(import_module("prof.torch")._is_observed())


class _Place(NamedTuple):
    """A name of torch's, the module that has it first, and prof's object in its place."""

    home: str
    name: str
    ours: Any
    is_ours_alone: bool = True
    """True: only modules that imported the object from torch since install() have it. False: other
    modules have it, too, and torch's own profile keeps torch's object, which may have more
    members."""


_PLACES = (
    _Place("torch.profiler", "profile", profile),
    _Place("torch.profiler", "_KinetoProfile", KinetoProfile),
    _Place("torch.profiler", "schedule", schedule),
    _Place("torch.profiler", "tensorboard_trace_handler", tensorboard_trace_handler),
    _Place("torch.profiler", "ProfilerAction", session.ProfilerAction, False),
    _Place("torch.autograd.profiler", "profile", _torch_autograd.profile),
    _Place("torch.autograd", "_profiler_enabled", profiler_enabled),
)
_COMPILED = "torch._C"
"""Of modules in C, where names keep torch's objects."""
_BENEATH = ("torch.profiler.profiler", "prof")
"""Torch's own profile is made of what this names: the module torch.autograd.profiler."""


class _AsItWas(ModuleType):
    """A module, but for a name that has its object of before."""

    def __init__(self, module: ModuleType, **before: Any) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(before)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _holders(value: Any) -> List[Tuple[ModuleType, str]]:
    """The names that refer to it, in all modules but prof's own two."""
    found = []
    apart = (__name__, _torch_autograd.__name__)
    for module in [
        m
        for m in list(sys.modules.values())
        if isinstance(m, ModuleType)
        and m.__name__ not in apart
        and not f"{m.__name__}.".startswith(f"{_COMPILED}.")
    ]:
        found += [(module, name) for name, there in list(vars(module).items()) if there is value]
    return found


class Installed:
    """What install() gives: uninstall(), or the end of a ``with`` block, takes it back."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._replaced: List[Tuple[ModuleType, str, Any]] = []
        self._theirs: Dict[_Place, Any] = {}

    def install(self) -> "Installed":
        """A second time replaces what modules have imported meanwhile."""
        with self._lock:
            for place in _PLACES:
                theirs = self._theirs.get(
                    place, getattr(import_module(place.home), place.name, None)
                )
                if theirs is None or not self._keep_beneath(place, theirs):
                    continue
                self._theirs[place] = theirs
                for module, name in _holders(theirs):
                    if place.is_ours_alone or module.__name__ != _BENEATH[0]:
                        self._replace(module, name, place.ours)
        return self

    def _replace(self, module: ModuleType, name: str, ours: Any) -> None:
        self._replaced.append((module, name, getattr(module, name)))
        setattr(module, name, ours)

    def _keep_beneath(self, place: _Place, theirs: Any) -> bool:
        """Objects and subclasses of torch's own profile, made before, go on with what they are made
        of. False: this torch makes them otherwise, and the name stays torch's."""
        if place.home != "torch.autograd.profiler":
            return True
        module, home = import_module(_BENEATH[0]), import_module(place.home)
        beneath = getattr(module, _BENEATH[1], None)
        if beneath is home:
            self._replace(module, _BENEATH[1], _AsItWas(home, **{place.name: theirs}))
        return beneath is home or isinstance(beneath, _AsItWas)

    def uninstall(self) -> None:
        """A name that somebody else has set meanwhile stays. A second time does nothing."""
        with self._lock:
            while self._replaced:
                module, name, original = self._replaced.pop()
                there = getattr(module, name, None)
                if isinstance(there, _AsItWas) or any(there is place.ours for place in _PLACES):
                    setattr(module, name, original)
            for place, theirs in self._theirs.items():
                for module, name in _holders(place.ours) if place.is_ours_alone else ():
                    setattr(module, name, theirs)
            self._theirs.clear()

    def __enter__(self) -> "Installed":
        return self

    def __exit__(self, *error: Any) -> None:
        self.uninstall()


installed = Installed()
