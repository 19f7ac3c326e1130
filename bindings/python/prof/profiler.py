"""RAF's latency profiler: start, stop, clear, get, dump, get_duration; for the whole process,
whoever records into it. Beside them stand the names of torch.profiler, for code that says
``prof.profiler.profile``."""

from __future__ import annotations

import ctypes
import json
import os
import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from ._library import C, encoded, short
from .trace import Trace

NOT_RUNNING = -4


def start(prof_level: int = 1) -> None:
    """Records from now on. While it records already, this sets the level.

    Level 1 is kernels and operators. Level 2 is also the runtime around them. Level 0 is RAF's way
    to record nothing: it does what stop() does. ValueError for another level, TypeError."""
    if not isinstance(prof_level, int):
        raise TypeError(f"prof_level must be 0, 1 or 2, not {short(prof_level)}")
    if prof_level == 0:
        stop()
        return
    C.check(C.prof_start(prof_level if abs(prof_level) < 1 << 31 else -1))


def stop() -> None:
    """Records no more what start() began. A second time does nothing, as in RAF. Profiles go on:
    each ends by itself."""
    status = C.prof_stop()
    if status != NOT_RUNNING:
        C.check(status)


def clear() -> None:
    """Forgets all that has been recorded."""
    status = C.prof_clear()
    if status != NOT_RUNNING:
        C.check(status)


def _empty() -> Dict[str, Any]:
    """The log before anything was started."""
    return {"traceEvents": [], "displayTimeUnit": "ms"}


def get() -> Dict[str, Any]:
    """RAF's log as a dictionary that json.dump() writes and chrome://tracing opens.

    Each scope has two entries, B and E, with the same "args": {"args_string": "a;b"}. There are
    none if nothing was ever started. OverflowError past 1 GiB: call dump() instead."""
    try:
        with Trace.now() as trace:
            found: Dict[str, Any] = json.loads(trace.json("raf"))
            return found
    except RuntimeError as e:
        if getattr(e, "status", 0) == NOT_RUNNING:
            return _empty()
        raise


def _filled(path: Union[str, "os.PathLike[str]"]) -> str:
    """The path with C's places filled in: %p, %r, %h and %%."""
    rank = os.environ.get("RANK", "")
    host = os.uname().nodename.replace("/", "_")
    words = {"%p": str(os.getpid()), "%r": rank if rank.isdecimal() else "0", "%h": host, "%%": "%"}
    return re.sub("%[prh%]", lambda found: words[found[0]], os.fsdecode(encoded(path, "path")))


def dump(filename: Union[str, "os.PathLike[str]"] = "profile.json") -> None:
    """Writes what get() gives, at C's rate and in constant memory. An empty log if nothing was
    ever started. OSError and its kin, TypeError, ValueError."""
    try:
        with Trace.now() as trace:
            trace.dump(filename, "raf")
    except RuntimeError as e:
        if getattr(e, "status", 0) != NOT_RUNNING:
            raise
        from ._whole_file import write_whole

        write_whole(_filled(filename), json.dumps(_empty()))


def _cut(value: Any) -> str:
    """A value as an error shows it: a trace has millions of entries."""
    import reprlib

    text = reprlib.repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _name(value: Any, what: str) -> None:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{what} must be a str, not {_cut(value)}")


def get_duration(data: Dict[str, Any], event: str, category: Optional[str] = None) -> float:
    """The duration of the event of that name (and category, unless None) in ms, as RAF's: of what
    get() gave. ValueError when there is none, or more than one (RAF asserts): see total().
    TypeError for other data."""
    begins, ends = [], []
    try:
        for e in data["traceEvents"]:
            if e.get("name") == event and (not category or e.get("cat") == category):
                if e.get("ph") == "B":
                    begins.append(float(e["ts"]))
                elif e.get("ph") == "E":
                    ends.append(float(e["ts"]))
    except (KeyError, TypeError, AttributeError):
        raise TypeError(f"data is what get() gave, not {_cut(data)}") from None
    _name(event, "event")
    if not begins or not ends:
        raise ValueError(f"the start or end time stamp of event {event!r} does not exist")
    if len(begins) > 1:
        raise ValueError(f"there are {len(begins)} events named {event!r}; total() adds them up")
    return (ends[0] - begins[0]) / 1000.0


def total(event: str, category: Optional[str] = None) -> Tuple[float, int]:
    """Of what has been recorded so far: how long all scopes of that name (and category, unless
    None) took together, in ms, and how many there were. Scopes that a jump left are in neither.
    Added up in C. TypeError."""
    _name(event, "event")
    if category is not None:
        _name(category, "category")
    ns, count = ctypes.c_uint64(), ctypes.c_uint64()
    C.check(
        C.prof_get_duration(
            encoded(event, "event"),
            None if category is None else encoded(category, "category"),
            ctypes.byref(ns),
            ctypes.byref(count),
        )
    )
    return ns.value / 1e6, count.value


_TORCH = (
    "profile",
    "schedule",
    "record_function",
    "ProfilerAction",
    "ProfilerActivity",
    "supported_activities",
    "tensorboard_trace_handler",
)

if TYPE_CHECKING:
    from ._scope import record_function
    from .session import (
        ProfilerAction,
        ProfilerActivity,
        profile,
        schedule,
        supported_activities,
        tensorboard_trace_handler,
    )

__all__ = [
    "clear",
    "dump",
    "get",
    "get_duration",
    "start",
    "stop",
    "total",
    "profile",
    "schedule",
    "record_function",
    "ProfilerAction",
    "ProfilerActivity",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __getattr__(name: str) -> Any:
    if name not in _TORCH:
        raise AttributeError(f"module 'prof.profiler' has no attribute {name!r}")
    import prof

    return getattr(prof, name)


def __dir__() -> List[str]:
    return list(__all__)
