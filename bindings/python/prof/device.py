"""Devices as RAF, TVM and torch name them."""

from __future__ import annotations

import ctypes
import enum
import re
from typing import Any, List, Optional, Type, TypeVar, Union

from . import _structs as s

_Kind = TypeVar("_Kind", bound=enum.Enum)

TYPES = {
    "cpu": 1,
    "cuda": 2,
    "gpu": 2,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "hip": 10,
    "rocm": 10,
    "ext_dev": 12,
    "oneapi": 14,
}
"""DLPack's codes. The first name of a code is the one in tables. "gpu" and "rocm" are names of RAF
and TVM."""


class DeviceType(enum.Enum):
    """The device of a row of a table, with torch's names and numbers. A member is equal to torch's
    member of the same name."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __eq__(self, other: object) -> bool:
        return self is other or is_theirs(self, other)

    def __hash__(self) -> int:
        return hash(self.value)  # as torch's


def is_theirs(own: enum.Enum, other: object) -> bool:
    """Is it torch's member of the same name?"""
    kind = type(other)
    if kind is type(own) or kind.__name__ != type(own).__name__:
        return False
    return getattr(other, "name", None) == own.name


def member_of(kind: Type[_Kind], value: Any) -> Optional[_Kind]:
    """The member of prof's enumeration for a value, or None. The value may be torch's member of the
    same name, since a program that changes from one to the other has both for a while."""
    if isinstance(value, kind):
        return value
    if type(value).__name__ != kind.__name__:
        return None
    return kind.__members__.get(str(getattr(value, "name", "")))


class Device:
    """A device: ``Device("cuda")``, ``Device("cuda", 1)``, ``Device("cuda(1)")`` as RAF,
    ``Device("cuda:1")`` as torch. ValueError for another text."""

    __slots__ = ("type", "index")

    def __init__(self, name: str = "cpu", index: int = 0) -> None:
        if not isinstance(name, str):
            from ._library import short

            raise TypeError(f"a device is named by a str, not {short(name)}")
        found = re.fullmatch(r"([a-z]+)(?:\((\d+)\)|:(\d+))?", name)
        number = int(found[2] or found[3] or index) if found else -1
        if not found or found[1] not in TYPES or not 0 <= number < 1 << 31:
            raise ValueError(
                f"{name!r} is no device: one of {', '.join(TYPES)}, with :0 or (0) behind it"
            )
        self.type = found[1]
        self.index = number

    def __repr__(self) -> str:
        return f"Device('{self.type}({self.index})')"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and (TYPES[self.type], self.index) == (
            TYPES[other.type],
            other.index,
        )

    def __hash__(self) -> int:
        return hash((TYPES[self.type], self.index))


def of(device: Union[Device, str, Any]) -> s.Device:
    """Converts a device for C. It is a Device, its name, or an object with ``type`` and ``index``,
    as torch.device has them. An index of None is 0."""
    if isinstance(device, str):
        device = Device(device)
    kind, index = getattr(device, "type", None), getattr(device, "index", None)
    if not isinstance(kind, str) or kind not in TYPES:
        from ._library import short

        raise TypeError(f"{short(device)} is no device: give prof.Device or its name")
    number = int(index or 0)
    if not 0 <= number < 1 << 31:
        raise ValueError(f"{device!r} is no device: its index is {number}")
    return s.Device(TYPES[kind], number)


def backends() -> List[s.BackendState]:
    """What `prof doctor` says of each back end: whether it works here (result 0), its abilities.
    If it does not work: the cause (reason) and what to do (advice). The first call looks for the
    vendors' libraries, which takes some ms each. Touches no device. RuntimeError if another
    thread has been looking for two seconds."""
    # here, since a program that only names a device needs no library
    from ._library import NOT_FOUND, C, sized

    found: List[s.BackendState] = []
    while True:
        state = sized(s.BackendState)
        status = C.prof_backend_status(len(found), ctypes.byref(state))
        if status == NOT_FOUND:
            return found
        C.check(status)
        found.append(state)


def load_backends(paths: str) -> None:
    """Loads further back ends, for the life of the process. paths: absolute paths of files, or of
    folders with *.so, separated by ":". OSError and its subclasses, ValueError."""
    from ._library import C, encoded

    C.check(C.prof_backend_load(encoded(paths, "path")))


__all__ = ["Device", "DeviceType", "TYPES", "backends", "load_backends", "of"]


def __dir__() -> List[str]:
    return list(__all__)
