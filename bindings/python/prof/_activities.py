"""The activities of a profile, with torch.profiler's finer choice:
activities=[{ProfilerActivity.CPU: ["CPU_OP"]}]. prof records all types of a group, so the names are
checked and change nothing. An empty list is different: it leaves out that group of devices."""

from __future__ import annotations

import enum
from typing import Any, Iterable, List, Set, Tuple

from ._library import short
from .device import TYPES, backends, is_theirs, member_of

_HOST = ("CPU_OP", "USER_ANNOTATION", "CPU_INSTANT_EVENT", "PYTHON_FUNCTION")
_BOTH = (
    "EXTERNAL_CORRELATION",
    "CUDA_RUNTIME",
    "CUDA_DRIVER",
    "XPU_RUNTIME",
    "XPU_DRIVER",
    "PRIVATEUSE1_RUNTIME",
    "PRIVATEUSE1_DRIVER",
)
_DEVICE = (
    "GPU_USER_ANNOTATION",
    "GPU_MEMCPY",
    "GPU_MEMSET",
    "CONCURRENT_KERNEL",
    "OVERHEAD",
    "MTIA_RUNTIME",
    "MTIA_CCP_EVENTS",
    "MTIA_INSIGHT",
    "MTIA_COUNTERS",
    "MTIA_WORKLOADD",
    "CUDA_SYNC",
    "CUDA_EVENT",
    "GLOW_RUNTIME",
    "CUDA_PROFILER_RANGE",
    "HPU_OP",
    "XPU_SYNC",
    "XPU_SCOPE_PROFILER",
    "COLLECTIVE_COMM",
    "GPU_PM_COUNTER",
)
"""Kineto's names of types (torch 2.15)."""


class ProfilerActivity(enum.Enum):
    """What is recorded. CPU: scopes. Any other: also the records of devices (kernels, copies), of
    all back ends, whichever device is named. A member is equal to torch.profiler's member of the
    same name."""

    CPU = 0
    CUDA = 2
    XPU = 1
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5

    def __eq__(self, other: object) -> bool:
        return self is other or is_theirs(self, other)

    def __hash__(self) -> int:
        return hash(self.value)  # as torch's


class DuplicateError(ValueError):
    """An activity is in the list twice, perhaps with other types."""


def _types_of(group: str, given: Any) -> Tuple[str, ...]:
    """Checks a list of names. RuntimeError, as torch's, for a name that the group does not have.
    XPU takes any name, which may be of a metric."""
    if isinstance(given, str):
        raise RuntimeError(f"types of an activity are a list of names, not {short(given)}")
    names = tuple(given)
    known = (*_HOST, *_BOTH) if group == "CPU" else (*_BOTH, *_DEVICE)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a type of {group}'s activities is a str, not {short(name)}")
        if name not in known and group != "XPU":
            raise RuntimeError(
                f"Unknown or non-member activity type name: {short(name)}. {group} has "
                f"{', '.join(known)}"
            )
    return names


def listed(activities: Any) -> List[Any]:
    """The activities as a list. TypeError for anything else."""
    items = None if isinstance(activities, (str, bytes)) else activities
    try:
        return list(items)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"activities must be a list, [ProfilerActivity.CPU] say, not {short(activities)} of "
            f"{type(activities).__name__}"
        ) from None


def flat(activities: Iterable[Any]) -> Tuple[List[Any], List[Any], List[str]]:
    """Reads a list as profile() takes it. Returns the activities, those of devices that an empty
    list of types leaves out, and texts of what changes nothing, "CPU: [CPU_OP]".
    DuplicateError, RuntimeError."""
    found: List[Any] = []
    left_out: List[Any] = []
    ignored: List[str] = []
    for item in activities:
        for key, given in item.items() if isinstance(item, dict) else ((item, None),):
            if key in found or key in left_out:
                raise DuplicateError(f"Activity {key} specified more than once")
            group = str(getattr(key, "name", key))
            more = getattr(given, "profiler_configs", None)
            given = getattr(given, "activity_types", given)
            names = None if given is None else _types_of(group, given)
            (left_out if names == () and group != "CPU" else found).append(key)
            if names:
                ignored.append(f"{group}: [{', '.join(names)}]")
            if more:
                ignored.append(f"{group}: {short(more)}")
    return found, left_out, ignored


def chosen(activities: Iterable[Any]) -> Set[ProfilerActivity]:
    """The activities that are given: each item is one, or a dictionary that has some as keys."""
    found = set()
    for given in {
        key for item in activities for key in (item if isinstance(item, dict) else (item,))
    }:
        activity = member_of(ProfilerActivity, given)
        if activity is None:
            raise TypeError(
                f"activities are of ProfilerActivity, not {short(given)}: prof.ProfilerActivity "
                f"has {', '.join(ProfilerActivity.__members__)}"
            )
        found.add(activity)
    return found


_IN_TORCHS_ORDER = (
    ProfilerActivity.CUDA,
    ProfilerActivity.XPU,
    ProfilerActivity.MTIA,
    ProfilerActivity.HPU,
)
"""torch.profiler checks the first of these that a profile requests, or PrivateUse1 if it requests
none."""
_NO_BACKEND = "privateuseone"
"""torch's name of PrivateUse1 if no back end has renamed it."""


def missing_device(chosen: Set[ProfilerActivity], torch: Any) -> str:
    """torch.profiler's warning that a device is not available. "": no device was requested, or
    torch or a back end of prof supports it. For MTIA torch raises an AssertionError instead."""
    for activity in _IN_TORCHS_ORDER:
        if activity not in chosen:
            continue
        module = getattr(torch, activity.name.lower(), None)
        is_there = module is not None and module.is_available()
        if is_there or activity in supported_activities():
            return ""
        return f"{activity.name} is not available, disabling {activity.name} profiling"
    if ProfilerActivity.PrivateUse1 not in chosen:
        return ""
    named = getattr(getattr(torch, "_C", None), "_get_privateuse1_backend_name", lambda: "")()
    if named != _NO_BACKEND or ProfilerActivity.PrivateUse1 in supported_activities():
        return ""
    return f"The {named} is not a valid device option."


def supported_activities() -> Set[ProfilerActivity]:
    """What can be recorded here: CPU, and the devices of back ends that work. CUDA stands for HIP,
    too, as in torch. PrivateUse1 stands for other back ends, such as OpenCL. The first call looks
    for the vendors' libraries, which takes some ms each."""
    working = {state.device_type for state in backends() if state.result == 0}
    cuda = {TYPES["cuda"], TYPES["hip"]}
    found = {ProfilerActivity.CPU}
    if working & cuda:
        found.add(ProfilerActivity.CUDA)
    if working - cuda:
        found.add(ProfilerActivity.PrivateUse1)
    return found
