"""torch.profiler's interface: profile, schedule, ProfilerAction, ProfilerActivity,
tensorboard_trace_handler. Also health(), the state of the profiler itself."""

from __future__ import annotations

import os
from os import getpid  # by name: a program may have traced the module
from time import time_ns
from typing import Callable, List, Optional

from ._activities import ProfilerActivity, supported_activities
from ._library import short
from ._profile import profile
from ._recording import health
from ._schedule import ProfilerAction, ScheduleError, StateError, schedule
from ._schedule import Schedule as Schedule


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: Optional[str] = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """An on_trace_ready that writes "WORKER.NANOSECONDS.pt.trace.json" into a directory, which it
    creates. use_gzip adds ".gz". worker_name is "HOST_PID" by default. use_python_export changes
    nothing. RuntimeError if it cannot create the directory. ValueError for a worker_name with a
    slash."""
    if not isinstance(dir_name, (str, os.PathLike)):
        raise TypeError(
            f"dir_name must be the path of a directory, a str, not {short(dir_name)} of "
            f"{type(dir_name).__name__}"
        )
    worker_name = str(worker_name) if worker_name else None
    if worker_name is not None and os.path.basename(worker_name) != worker_name:
        raise ValueError(
            f"worker_name is part of a file's name, and has no slash: {short(worker_name)}"
        )

    def handler(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as e:
            raise RuntimeError(f"Can't create directory: {dir_name}") from e
        import socket

        worker = worker_name or f"{socket.gethostname()}_{getpid()}"
        prof.export_chrome_trace(
            os.path.join(
                dir_name, f"{worker}.{time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
            )
        )

    return handler


__all__: List[str] = [
    "ProfilerAction",
    "ProfilerActivity",
    "ScheduleError",
    "StateError",
    "health",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __dir__() -> List[str]:
    return list(__all__)
