"""Devices as RAF, TVM and torch name them."""

from __future__ import annotations

import ctypes
import enum
import re
from typing import Any, List, Union

from . import _structs as s

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
"""DLPack's codes. Of a code the first name is what tables say; "gpu" and "rocm", as RAF and TVM
have them, are taken, too."""


class DeviceType(enum.Enum):
    """What a row of a table is of: torch's names and numbers. Equal to torch's of the same name."""

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
        return hash(self.value)  # as theirs


def is_theirs(own: enum.Enum, other: object) -> bool:
    """Is it torch's member of the same name?"""
    kind = type(other)
    if kind is type(own) or kind.__name__ != type(own).__name__:
        return False
    return getattr(other, "name", None) == own.name


class Device:
    """A device: ``Device("cuda")``, ``Device("cuda", 1)``, ``Device("cuda(1)")`` as RAF,
    ``Device("cuda:1")`` as torch. ValueError for another text."""

    __slots__ = ("type", "index")

    def __init__(self, name: str = "cpu", index: int = 0) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a device is named by a str, not {name!r}")
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
    """As C takes it: a Device, its name, or what has ``type`` and ``index`` as torch.device has
    them (an index of None is 0)."""
    if isinstance(device, str):
        device = Device(device)
    kind, index = getattr(device, "type", None), getattr(device, "index", None)
    if not isinstance(kind, str) or kind not in TYPES:
        raise TypeError(f"{device!r} is no device: give prof.Device or its name")
    number = int(index or 0)
    if not 0 <= number < 1 << 31:
        raise ValueError(f"{device!r} is no device: its index is {number}")
    return s.Device(TYPES[kind], number)


def backends() -> List[s.BackendState]:
    """What `prof doctor` says: each back end of devices, whether it works here (result 0), what it
    can do, and if not, why (reason) and what to do (advice). Looks for the vendors' libraries, some
    ms each the first time; touches no device. RuntimeError while another thread looks, for two
    seconds."""
    # not before somebody asks: whoever names a device needs no library
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
    """Back ends of one's own, or of a vendor's: files, or folders with *.so in them, by ":",
    absolute. They stay. OSError and its kin, ValueError."""
    from ._library import C, encoded

    C.check(C.prof_backend_load(encoded(paths, "path")))


__all__ = ["Device", "DeviceType", "TYPES", "backends", "load_backends", "of"]


def __dir__() -> List[str]:
    return list(__all__)
