"""prof: what each operator costs, on the host and on devices, and where memory goes.

    import prof

    with prof.profile() as p:
        with prof.record_function("forward"):
            ...
    print(p.key_averages().table(sort_by="self_cpu_time_total"))
    p.export_chrome_trace("trace.json")        # opens in ui.perfetto.dev and chrome://tracing

Two faces, one recorder: torch.profiler's (profile, schedule, record_function, ...) and RAF's
(prof.profiler, prof.memory_profiler, prof.op_profiler). Importing starts nothing; a copy of libprof
that the process has already is used. Names load what they need when they are first used."""

from __future__ import annotations

import os as _os
from _thread import RLock as _RLock

TYPE_CHECKING = False  # typing's own would cost more than all the rest of this import

__version__ = "0.1.0"

if _os.path.isdir(_os.path.join(_os.path.dirname(__file__), "parsers")):
    import warnings as _warnings

    _warnings.warn(
        f"PyPI's package prof, another program, is installed into the same folder "
        f"({_os.path.dirname(__file__)}), and files of both have one name: pip uninstall prof, "
        f"then pip install --force-reinstall libprof",
        RuntimeWarning,
        stacklevel=2,
    )

_HOMES = {
    "record_function": "_scope",
    "scope": "_scope",
    "Scope": "_scope",
    "profile": "session",
    "schedule": "session",
    "health": "session",
    "ProfilerAction": "session",
    "ProfilerActivity": "session",
    "supported_activities": "session",
    "tensorboard_trace_handler": "session",
    "Trace": "trace",
    "Traces": "trace",
    "import_trace": "_import",
    "Device": "device",
    "DeviceType": "device",
    "backends": "device",
    "load_backends": "device",
    "Sampler": "sampler",
    "ProfError": "_library",
    "EventList": "tables",
    "FunctionEvent": "tables",
    "FunctionEventAvg": "tables",
    "counter": "marks",
    "instant": "marks",
    "set_thread_name": "names",
    "set_process_name": "names",
    "set_rank": "names",
    "trace_functions": "functions",
    "trace_module": "modules",
    "untrace_module": "modules",
}
_MODULES = (
    "profiler",
    "memory_profiler",
    "op_profiler",
    "sampler",
    "session",
    "tables",
    "trace",
    "device",
    "flops",
    "functions",
    "marks",
    "modules",
    "names",
    "torch",
    "utils",
)

if TYPE_CHECKING:
    from typing import Any, List

    from . import (
        device,
        flops,
        functions,
        marks,
        memory_profiler,
        modules,
        names,
        op_profiler,
        profiler,
        sampler,
        session,
        tables,
        trace,
        utils,
    )
    from . import torch as torch
    from ._import import import_trace
    from ._library import ProfError
    from ._scope import Scope, record_function, scope
    from .device import Device, DeviceType, backends, load_backends
    from .functions import trace_functions
    from .marks import counter, instant
    from .modules import trace_module, untrace_module
    from .names import set_process_name, set_rank, set_thread_name
    from .sampler import Sampler
    from .session import (
        ProfilerAction,
        ProfilerActivity,
        health,
        profile,
        schedule,
        supported_activities,
        tensorboard_trace_handler,
    )
    from .tables import EventList, FunctionEvent, FunctionEventAvg
    from .trace import Trace, Traces

__all__ = [
    "record_function",
    "scope",
    "Scope",
    "profile",
    "schedule",
    "health",
    "ProfilerAction",
    "ProfilerActivity",
    "supported_activities",
    "tensorboard_trace_handler",
    "Trace",
    "Traces",
    "import_trace",
    "Device",
    "DeviceType",
    "backends",
    "load_backends",
    "Sampler",
    "ProfError",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "counter",
    "instant",
    "set_thread_name",
    "set_process_name",
    "set_rank",
    "trace_functions",
    "trace_module",
    "untrace_module",
    "profiler",
    "sampler",
    "memory_profiler",
    "op_profiler",
    "session",
    "tables",
    "trace",
    "device",
    "flops",
    "functions",
    "marks",
    "modules",
    "names",
    "utils",
]  # not torch: from prof import *, or reading all of dir(prof), would import PyTorch


class _Loading:
    """Loads a module of the package when a name is first used, on any thread. A thread that forks
    meanwhile waits. Otherwise its child would find the import's lock taken by a thread that it does
    not have."""

    def __init__(self) -> None:
        self.lock = _RLock()

    def before(self) -> None:
        self.lock.acquire()

    def after(self) -> None:
        self.lock.release()

    def load(self, name: str) -> Any:
        with self.lock:
            from importlib import import_module  # nobody may have loaded it so far

            return import_module(name)


_loading = _Loading()
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(
        before=_loading.before, after_in_child=_loading.after, after_in_parent=_loading.after
    )


def _named(name: str) -> Any:
    if name in _MODULES:
        return _loading.load(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'prof' has no attribute {name!r}")
    value = getattr(_loading.load(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # a name that is misspelt is to be seen there
    __getattr__ = _named


def __dir__() -> List[str]:
    return sorted([*__all__, "__version__"])
