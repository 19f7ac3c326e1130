"""Threads of a trace as events() has them: by numbers from 1 as torch.profiler's, and by the
system's numbers."""

from __future__ import annotations

import ctypes
from typing import Dict, List, Optional

from . import _structs as s
from ._library import C, sized
from ._read_arguments import Source
from ._read_events import Briefs

_OPERATORS = "cpu_op"
_OPEN = 2


class Threads:
    """Of one trace. Any thread."""

    def __init__(self, briefs: Briefs) -> None:
        self._briefs = briefs
        self._natives: Dict[int, int] = {}
        self._pid: Optional[int] = None
        self._numbered: Optional[Dict[int, int]] = None
        self._count = 0

    @property
    def pid(self) -> int:
        if self._pid is None:
            info = sized(s.TraceInfo)
            C.check(C.prof_trace_info_get(self._briefs.pointer, ctypes.byref(info)))
            self._pid = int(info.pid)
        return self._pid

    def native(self, thread: int) -> int:
        """The system's number of the trace's thread."""
        found = self._natives.get(thread)
        if found is None:
            of = sized(s.TraceThread)
            C.check(C.prof_trace_thread_get(self._briefs.pointer, thread, ctypes.byref(of)))
            found = self._natives[thread] = int(of.tid)
        return found

    def numbered(self, number: int) -> int:
        """Converts torch's number of a thread to that of the trace, from 1. torch counts only
        threads that ran operators, in another order. If the trace has no number of torch's, the
        number stays. A thread without a forward call in the trace has a number above all others."""
        if self._numbered is None:
            self._numbered = self._find()
        if not self._numbered:
            return number
        return self._numbered.get(number) or self._count + number

    def _find(self) -> Dict[int, int]:
        """By torch's number. The first query reads the events of all threads."""
        sources: List[Source] = []
        categories: Dict[int, str] = {}
        for brief in self._briefs:
            record, kind, thread, at = brief[0], brief[1], brief[2], brief[7]
            category_at, category_bytes, arg_count = brief[10], brief[12], brief[15]
            self._count = max(self._count, thread + 1)
            if kind > _OPEN or not arg_count:
                continue
            category = categories.get(category_at)
            if category is None:
                category = categories[category_at] = self._briefs.text(category_at, category_bytes)
            if category == _OPERATORS:
                sources.append((record, kind, thread, at))
        found: Dict[int, int] = {}
        for source, given in zip(sources, self._briefs.arguments.many(sources)):
            number = given[0].operator(given[1])[2]
            if number is not None:
                found.setdefault(number, source[2] + 1)
        return found
