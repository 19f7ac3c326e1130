"""Meters of devices and of the host, such as power, memory used and utilisation, read at an
interval. The readings are counters of the trace, and a CSV file. See docs/reference/backends.md for
what can be read."""

from __future__ import annotations

import ctypes
import os
from typing import Any, List, Optional, Union

from . import _structs as s
from ._library import BUSY, NOT_FOUND, NOT_RUNNING, RUNNING, C, encoded, error_class, short, sized

MODES = {"all": 0, "power": 1, "vram": 2, "utilisation": 3, "clock": 4}
"""What is read; "power" and "vram" are madengine's."""


class Sampler:
    """Samples while it is open; one at a time in a process. As a context manager, or by start() and
    stop(). Its readings are in the trace while something is recorded.

    interval: seconds, 0.001 and more.

    devices: "all"; the back ends' numbers, as "0,1"; or "host" for the host's meters alone.

    mode: a key of MODES.

    csv: A file's path. The file exists when the sampler has stopped. In modes "power" and "vram" it
    has madengine's format.

    ValueError."""

    def __init__(
        self,
        interval: float = 0.1,
        devices: str = "all",
        mode: str = "all",
        csv: Optional[Union[str, "os.PathLike[str]"]] = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {short(mode)}")
        if isinstance(interval, bool) or not isinstance(interval, (int, float)):
            raise TypeError(f"interval must be seconds, not {short(interval)}")
        if not 0.001 <= interval <= 1e9:
            raise ValueError(f"interval must be 0.001 to 1e9 seconds, not {short(interval)}")
        self.interval, self.devices, self.mode = interval, devices, mode
        self.csv = None if csv is None else os.fspath(csv)
        self._pid = 0  # that it was started in

    def start(self) -> None:
        """LookupError where nothing of that kind can be read here, with the reason; RuntimeError
        when a sampler runs already; OSError and its kin for the file; ValueError for the
        devices."""
        options = sized(
            s.SamplerOptions,
            interval_ns=round(self.interval * 1e9),
            devices=encoded(self.devices, "devices"),
            mode=MODES[self.mode],
        )
        options.csv_path = None if self.csv is None else encoded(self.csv, "path")
        _check(C.prof_sampler_start(ctypes.byref(options)))
        self._pid = os.getpid()

    def stop(self) -> None:
        """The file gets its name. RuntimeError when it does not run, or a back end has not answered
        for 100 ms: the file comes when it does; OSError and its kin."""
        _check(C.prof_sampler_stop())

    def state(self) -> s.SamplerState:
        """How it is, also when it has stopped."""
        found = sized(s.SamplerState)
        C.check(C.prof_sampler_get(ctypes.byref(found)))
        return found

    def __enter__(self) -> "Sampler":
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        """In a forked child this does nothing: the sampler is the parent's."""
        if self._pid == os.getpid():
            self.stop()


def _check(status: int) -> None:
    """C has one status for a meter and for a folder that are not there, and words of its own for
    what is not about captures."""
    if status >= 0:
        return
    said = C.prof_last_error().decode(errors="replace")
    if status == NOT_FOUND and said.startswith("there is no meter"):
        raise LookupError(said)
    if status in (RUNNING, NOT_RUNNING, BUSY):
        raise error_class(status)(said)
    C.fail(status)


__all__ = ["MODES", "Sampler"]


def __dir__() -> List[str]:
    return list(__all__)
