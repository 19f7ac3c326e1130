"""Averages and their table as torch.profiler has them: the names that other modules and programs
use, of the files that have one idea each."""

from __future__ import annotations

from typing import List

from ._averages import FunctionEventAvg
from ._event_list import EventList, SortError
from ._events import FunctionEvent, Kernel
from ._from_trace import averages
from ._single_events import number, single_events
from ._text_units import format_memory, format_time
from ._times import STEP, Interval
from ._whole_file import write_whole
from .trace import Window

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "STEP",
    "SortError",
    "averages",
    "format_memory",
    "format_time",
    "number",
    "single_events",
    "Window",
    "write_whole",
]


def __dir__() -> List[str]:
    return list(__all__)
