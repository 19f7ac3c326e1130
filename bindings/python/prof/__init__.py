"""prof: what each operator costs, on the host and on devices, and where memory goes.

    import prof

    with prof.profile() as p:
        with prof.record_function("forward"):
            ...
    print(p.key_averages().table(sort_by="self_cpu_time_total"))
    p.export_chrome_trace("trace.json")        # opens in ui.perfetto.dev and chrome://tracing

Two faces, one recorder: torch.profiler's (profile, schedule, record_function, ...) and RAF's (prof.profiler, prof.memory_profiler, prof.op_profiler). Importing starts nothing; a copy of libprof that the process
has already is used. Names load what they need when they are first used."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own would cost more than all the rest of this import

__version__ = "0.1.0"

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
    "Device": "device",
    "DeviceType": "device",
    "ProfError": "_library",
    "EventList": "tables",
    "FunctionEvent": "tables",
    "FunctionEventAvg": "tables",
    "set_thread_name": "names",
    "set_process_name": "names",
    "set_rank": "names",
    "trace_module": "modules",
    "untrace_module": "modules",
}
_MODULES = ("profiler", "memory_profiler", "op_profiler", "session", "tables", "trace", "device", "flops", "modules", "names")

if TYPE_CHECKING:
    from typing import Any, List

    from . import device, flops, memory_profiler, modules, names, op_profiler, profiler, session, tables, trace
    from ._library import ProfError
    from ._scope import Scope, record_function, scope
    from .device import Device, DeviceType
    from .modules import trace_module, untrace_module
    from .names import set_process_name, set_rank, set_thread_name
    from .session import ProfilerAction, ProfilerActivity, health, profile, schedule, supported_activities, tensorboard_trace_handler
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
    "Device",
    "DeviceType",
    "ProfError",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "set_thread_name",
    "set_process_name",
    "set_rank",
    "trace_module",
    "untrace_module",
    "profiler",
    "memory_profiler",
    "op_profiler",
    "session",
    "tables",
    "trace",
    "device",
    "flops",
    "modules",
    "names",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "utils":  # raf.utils.profiler, where the import says "prof as raf"
        return import_module(__name__)
    if name in _MODULES:
        return import_module("." + name, __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'prof' has no attribute {name!r}")
    value = getattr(import_module("." + home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted([*__all__, "__version__"])
