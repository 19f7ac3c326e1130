"""Stacks of calls, as torch.profiler shows them: recorded ones, and those of the traced functions
around an event."""

from __future__ import annotations

import bisect
import os
import sys
from typing import Dict, List, Sequence, Tuple

FRAMES_MOST = (1 << 32) - 1
Function = Tuple[int, int, int, int, str]
"""A call of a traced function: thread, begin, end, depth, frame."""


class Frames:
    """Of a recorded stack its frames, innermost first, without the folder of sys.path that they
    stand in, as torch.profiler shows them."""

    def __init__(self) -> None:
        folders = {os.path.join(os.path.abspath(folder), "") for folder in sys.path}
        self.folders = sorted(folders, key=len, reverse=True)
        self.known: Dict[str, str] = {}
        self.stacks: Dict[str, List[str]] = {"": []}

    def of(self, stack: str) -> List[str]:
        """One list for all that have this stack."""
        found = self.stacks.get(stack)
        if found is None:
            frames = [self.known.get(frame) or self._short(frame) for frame in stack.split(";")]
            found = self.stacks.setdefault(stack, frames)  # another thread's, if it was first
        return found

    def _short(self, frame: str) -> str:
        folder = next((f for f in self.folders if frame.startswith(f)), "")
        self.known[frame] = frame[len(folder) :]
        return self.known[frame]


class Callers:
    """The traced functions of one thread that are open, while its events are read in order. They
    are the stack of an event that has no stack of its own. Events with the same open calls share
    one list."""

    def __init__(
        self, frames: Frames, ends_ns: Sequence[int] = (), before: Sequence[Function] = ()
    ) -> None:
        """ends_ns: when each tracing of functions ended. Calls that began before such an end are
        in no stack of events that begin after it. before: calls that began before all events
        asked about, in their order."""
        self._frames, self._ends_ns = frames, ends_ns
        self._first_end_ns = ends_ns[0] if ends_ns else 1 << 64
        self._outside: List[str] = []
        self._open: List[Tuple[int, int, List[str], int]] = []
        """Depth, end, the stack of what it calls, and begin."""
        self._ways: Dict[Tuple[int, str], List[str]] = {}
        self._before: Dict[int, List[Function]] = {}
        for call in before:
            self._before.setdefault(call[0], []).append(call)

    def next_thread(self, thread: int) -> None:
        self._open = []
        for _, begin_ns, end_ns, depth, frame in self._before.get(thread, ()):
            self.of(begin_ns, end_ns, depth, frame)

    def of(self, begin_ns: int, end_ns: int, depth: int, frame: str) -> List[str]:
        """What stands around an event. frame: of a traced function."""
        opened = self._open
        while opened and (
            opened[-1][1] < begin_ns or (opened[-1][1] == begin_ns and opened[-1][0] >= depth)
        ):
            opened.pop()
        around = self._outside
        if begin_ns < self._first_end_ns and opened and end_ns <= opened[-1][1]:
            around = opened[-1][2]
        elif opened:
            around = self._around(begin_ns, end_ns)
        if frame:
            key = id(around), frame
            if key not in self._ways:
                self._ways[key] = self._frames.of(frame) + around
            self._open.append((depth, end_ns, self._ways[key], begin_ns))
        return around

    def _around(self, begin_ns: int, end_ns: int) -> List[str]:
        place = bisect.bisect_right(self._ends_ns, begin_ns)
        from_ns = self._ends_ns[place - 1] if place else 0
        for _, until, inner, start_ns in reversed(self._open):
            if end_ns <= until and start_ns >= from_ns:  # the last but for what overlaps
                return inner
        return self._outside
