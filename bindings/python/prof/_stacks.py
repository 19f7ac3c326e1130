"""Stacks of calls, as torch.profiler shows them: those that were recorded, and those of traced functions that stand open around."""

from __future__ import annotations

import bisect
import os
import sys
from typing import TYPE_CHECKING, Dict, List, Sequence, Tuple

if TYPE_CHECKING:
    from .trace import Event

FRAMES_MOST = (1 << 32) - 1


class Frames:
    """Of a recorded stack its frames, innermost first, without the folder of sys.path that they stand in, as torch.profiler shows them."""

    def __init__(self) -> None:
        folders = {os.path.join(os.path.abspath(folder), "") for folder in sys.path}
        self.folders = sorted(folders, key=len, reverse=True)
        self.known: Dict[str, str] = {}
        self.stacks: Dict[str, List[str]] = {"": []}

    def of(self, stack: str) -> List[str]:
        """One list for all that have this stack."""
        found = self.stacks.get(stack)
        if found is None:
            found = self.stacks[stack] = [self.known.get(frame) or self._short(frame) for frame in stack.split(";")]
        return found

    def _short(self, frame: str) -> str:
        folder = next((f for f in self.folders if frame.startswith(f)), "")
        self.known[frame] = frame[len(folder) :]
        return self.known[frame]


class Callers:
    """Of one thread the traced functions that stand open, as its events come by: the stack of what has none of its own. A list for each way to get somewhere, which all that was begun by it share."""

    def __init__(self, frames: Frames, ends_ns: Sequence[int] = ()) -> None:
        """ends_ns: when a tracing ended; what began before is no stack of what begins from there on."""
        self._frames, self._ends_ns = frames, ends_ns
        self._outside: List[str] = []
        self._open: List[Tuple[int, int, List[str], int]] = []
        """Depth, end, the stack of what it calls, and begin."""
        self._ways: Dict[Tuple[int, str], List[str]] = {}

    def next_thread(self) -> None:
        self._open = []

    def of(self, event: Event) -> List[str]:
        """What stands around it."""
        end = event.start_ns + event.duration_ns
        while self._open and (self._open[-1][1] < event.start_ns or (self._open[-1][1] == event.start_ns and self._open[-1][0] >= event.depth)):
            self._open.pop()
        around, from_ns = self._outside, 0
        if self._ends_ns:
            place = bisect.bisect_right(self._ends_ns, event.start_ns)
            from_ns = self._ends_ns[place - 1] if place else 0
        for _, until, inner, start_ns in reversed(self._open):
            if end <= until and start_ns >= from_ns:  # the last but for what overlaps
                around = inner
                break
        if event.frame:
            key = id(around), event.frame
            if key not in self._ways:
                self._ways[key] = self._frames.of(event.frame) + around
            self._open.append((event.depth, end, self._ways[key], event.start_ns))
        return around
