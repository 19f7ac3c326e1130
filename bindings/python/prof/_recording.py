"""What all profiles of the process share: its one capture, and who records into it. Also what a
profile warns of when it ends."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from ctypes import byref
from typing import TYPE_CHECKING, Dict, NamedTuple, Set, Tuple

from . import _structs as s
from ._library import C, sized
from ._scope import set_stack_frames
from .device import TYPES
from .trace import Trace

if TYPE_CHECKING:
    from ._profile import profile

STACK_FRAMES = 32
LEVEL_PAUSED = -1  # PROF_LEVEL_PAUSED of <prof/profiler.h>
DEVICES_ASKED = 16
"""How many devices of each type is_memory_recorded() reads."""

DEVICES_DEFAULT, DEVICES_SCOPES, DEVICES_RECORDS = range(3)  # prof_devices

_users: Dict[int, Tuple["weakref.ref[profile]", bool]] = {}
"""The profiles that record, by id(), and whether with stacks."""


def request_level(user: "profile", level: int) -> None:
    """Requests a level on behalf of the profile. Level 0 releases the request. C has all requests,
    and the program's own.

    There is no lock, since a signal's handler that raises could leave it taken. Such a handler can
    also interrupt the release at the end of a profile. The next call releases what was left."""
    if level:
        _users[id(user)] = (weakref.ref(user), user.with_stack)
    C.check(C.prof_level_want_with(id(user), level, user._devices))
    if not level:
        _users.pop(id(user), None)
    for owner, (found, _) in list(_users.items()):
        if found() is None:
            C.prof_level_want(owner, 0)
            _users.pop(owner, None)
    _set_stacks()


def has_request(user: "profile") -> bool:
    return id(user) in _users


def _set_stacks() -> None:
    while True:
        wanted = any(with_stack for _, with_stack in list(_users.values()))
        set_stack_frames(STACK_FRAMES if wanted else 0)
        # another thread may have changed them meanwhile
        if wanted == any(with_stack for _, with_stack in list(_users.values())):
            return


def _forget_users() -> None:
    """In a forked child the parent's profiles have ended. Only profiles that the child starts
    record there."""
    if _users:
        _users.clear()
        _set_stacks()


_forks = 0
"""Forks while a profile recorded, in a program that uses multiprocessing."""


def _count_fork() -> None:
    global _forks
    # With PROF_OUTPUT each child writes a capture of its own.
    if _users and "multiprocessing.popen_fork" in sys.modules and "PROF_OUTPUT" not in os.environ:
        _forks += 1


def fork_count() -> int:
    return _forks


def process_count() -> int:
    """How many processes multiprocessing has made here so far, by any start method. Its own counter
    has the number of the next one: "count(3)"."""
    counter = getattr(sys.modules.get("multiprocessing.process"), "_process_counter", None)
    digits = repr(counter)[len("count(") : -1]
    return int(digits) if digits.isdigit() and "PROF_OUTPUT" not in os.environ else 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_users, after_in_parent=_count_fork)


_CLEARED = (
    "Profiler clears events at the end of each cycle. Only events from the current cycle will be "
    "reported. To keep events across cycles, set acc_events=True."
)
_warned: Set[str] = set()


def warn_of_cleared_events() -> None:
    """Once a process, as torch.profiler does."""
    if _CLEARED not in _warned:
        _warned.add(_CLEARED)
        warnings.warn(_CLEARED, UserWarning, stacklevel=outside())


def health() -> s.Health:
    """The state of the profiler itself: what was recorded, and what was lost by reason (lost_count:
    full, overwritten, disk, ...). Room and cap in bytes, the clock and its error in ns, what a
    scope costs, threads, the path of the capture."""
    found = sized(s.Health)
    C.check(C.prof_health_get(byref(found)))
    return found


class Counts(NamedTuple):
    """What a capture holds at one moment, and what it lost for want of room. These losses are the
    first five of prof_loss. The second of them is a ring's: overwritten."""

    held: int
    overwritten: int
    other: int


def counts_of(trace: Trace) -> Counts:
    info = trace.info()
    lost = info.lost_count[:5]
    return Counts(int(info.event_count), lost[1], sum(lost) - lost[1])


def counts_now() -> Counts:
    """The counts of this process's capture now. Makes no trace, which would take longer."""
    found = health()
    lost = found.lost_count[:5]
    held = found.recorded_count + found.open_count
    return Counts(int(held), lost[1], sum(lost) - lost[1])


def lost_between(before: Counts, now: Counts) -> int:
    """A ring overwrites its oldest events first: these are not the profile's."""
    return max(now.overwritten - before.overwritten - before.held, 0) + max(
        now.other - before.other, 0
    )


def advice(was_full: bool) -> str:
    """What to do when the capture has no room, by what has filled it."""
    if os.environ.get("PROF_MEMORY") == "1":
        return (
            f"The capture {'was full before it began' if was_full else 'is full'}: with "
            f"PROF_MEMORY=1 it takes each malloc() and free() from the program's begin on. Set "
            f"PROF_MEMORY_MIN=4096, which leaves smaller blocks out, PROF_POLICY=ring, "
            "in which the oldest give way, or a larger PROF_CAP_BYTES; or call "
            "prof.profiler.clear() just before the profile, which forgets what came before it"
        )
    begin = (
        "The capture was full before it began: prof.profiler.clear() forgets"
        if was_full
        else "Where the capture is full, record less at once (schedule, a shorter profile); "
        "prof.profiler.clear() forgets"
    )
    return (
        f"{begin} what profiler.start() or memory_profiler.start() has left in it; or begin the "
        f"process with PROF_LEVEL=1 and PROF_CAP_BYTES, or with PROF_POLICY=ring"
    )


def is_memory_recorded() -> bool:
    """Has any device's memory been recorded?"""
    found = sized(s.MemoryMax)
    return any(
        C.prof_memory_max_get(s.Device(code, index), 0, byref(found)) == 0
        for code in TYPES.values()
        for index in range(DEVICES_ASKED)
    )


NO_MEMORY = (
    "profile_memory=True, and nothing tells prof of memory: the columns of memory have nothing to "
    "show. prof.profile(torch=True) records PyTorch's, `python3 -m prof run --profile-memory "
    "SCRIPT` records each malloc() and free(), "
    "prof.memory_profiler's Pool and <prof/memory.h> what an allocator of your own hands out"
)
NO_WORKERS = (
    "a profile has the scopes of its own process alone, not those of a pool's workers. `python3 -m "
    "prof run -o FILE SCRIPT`, or PROF_LEVEL=1 and PROF_OUTPUT=FILE in the environment, "
    "makes a capture of each process, and `python3 -m prof table FILE...` adds them up"
)


def outside() -> int:
    """The stacklevel of a warning that shows the caller of the profile."""
    level, frame = 1, sys._getframe(1)
    inner = f"{__package__}."
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str) or not name.startswith(inner):  # exec() may have any name
            break
        level, frame = level + 1, frame.f_back
    return level
