"""torch.profiler's schedules: what a profile does at each step."""

from __future__ import annotations

import enum
import warnings
from typing import Callable

from ._library import short
from .device import is_theirs, member_of


class ProfilerAction(enum.Enum):
    """What a profile does at a step. A member is equal to torch.profiler's member of the same name,
    so either profile takes the other one's schedule."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4
    """torch.profiler sets it internally, and prof never does. A schedule must not return it."""

    def __eq__(self, other: object) -> bool:
        return self is other or is_theirs(self, other)

    __hash__ = enum.Enum.__hash__  # by the name, as torch's


Schedule = Callable[[int], ProfilerAction]

RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Schedule:
    """Returns a schedule. After skip_first steps it repeats cycles of wait, warmup and active
    steps. The last active step of a cycle is RECORD_AND_SAVE. With repeat 0 the cycles never end.
    With skip_first_wait 1 the first cycle does not wait. Negative counts and active 0 raise
    ScheduleError, as torch.profiler does."""
    for name, value in (
        ("wait", wait),
        ("warmup", warmup),
        ("active", active),
        ("repeat", repeat),
        ("skip_first", skip_first),
    ):
        if not (hasattr(value, "__index__") or hasattr(value, "__float__")):
            raise TypeError(f"{name} must be an int, not {short(value)} of {type(value).__name__}")
        if value < (1 if name == "active" else 0):
            raise ScheduleError(
                f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), "
                f"warmup={warmup} (need >= 0), active={active} (need > 0), repeat={repeat} (need "
                f">= 0), skip_first={skip_first} (need >= 0)."
            )
    if warmup == 0:
        from ._recording import outside

        words = "Profiler won't be using warmup, this can skew profiler results"
        warnings.warn(words, stacklevel=outside())

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ScheduleError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        index = step % cycle
        if index < wait:
            return ProfilerAction.NONE
        if index < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if index < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class ScheduleError(AssertionError, ValueError):
    """An invalid schedule. torch.profiler raises an AssertionError."""


class StateError(AssertionError, RuntimeError):
    """A call that this state of the profile does not allow. torch.profiler: an AssertionError."""


def action_at(schedule: Schedule, step: int) -> ProfilerAction:
    """What the schedule returns for the step. TypeError, ValueError for what is not an action."""
    action = schedule(step)
    found = member_of(ProfilerAction, action)
    if found is None:
        raise TypeError(
            f"the schedule says {short(action)} for step {step}, which is no ProfilerAction"
        )
    if found is ProfilerAction.DEVICE_STOPPED:
        raise ValueError(
            f"the schedule says DEVICE_STOPPED for step {step}. "
            "ProfilerAction.DEVICE_STOPPED is set internally by a profiler, never by a schedule"
        )
    return found
