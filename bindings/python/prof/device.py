"""Devices as RAF, TVM and torch name them."""

from __future__ import annotations

import enum
import re
from typing import Any, List, Union

from . import _structs as s

TYPES = {"cpu": 1, "cuda": 2, "gpu": 2, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10, "hip": 10, "oneapi": 14}
"""DLPack's codes."""


class DeviceType(enum.Enum):
    """What a row of a table is of: torch's names and numbers."""

    CPU = 0
    CUDA = 1
    OPENCL = 4
    HIP = 6
    Vulkan = 10
    Metal = 11
    XPU = 12
    HPU = 15
    MTIA = 19
    PrivateUse1 = 20


class Device:
    """A device: ``Device("cuda")``, ``Device("cuda", 1)``, ``Device("cuda(1)")`` as RAF, ``Device("cuda:1")`` as torch. ValueError for another text."""

    __slots__ = ("type", "index")

    def __init__(self, name: str = "cpu", index: int = 0) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a device is named by a str, not {name!r}")
        found = re.fullmatch(r"([a-z]+)(?:\((\d+)\)|:(\d+))?", name)
        if not found or found[1] not in TYPES or index < 0:
            raise ValueError(f"{name!r} is no device: one of {', '.join(TYPES)}, with :0 or (0) behind it")
        self.type = found[1]
        self.index = int(found[2] or found[3] or index)

    def __repr__(self) -> str:
        return f"Device('{self.type}({self.index})')"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and (TYPES[self.type], self.index) == (TYPES[other.type], other.index)

    def __hash__(self) -> int:
        return hash((TYPES[self.type], self.index))


def of(device: Union[Device, str, Any]) -> s.Device:
    """As C takes it: a Device, its name, or what has ``type`` and ``index`` as torch.device has them (an index of None is 0)."""
    if isinstance(device, str):
        device = Device(device)
    kind, index = getattr(device, "type", None), getattr(device, "index", None)
    if not isinstance(kind, str) or kind not in TYPES:
        raise TypeError(f"{device!r} is no device: give prof.Device or its name")
    return s.Device(TYPES[kind], int(index or 0))


__all__ = ["Device", "DeviceType", "TYPES", "of"]


def __dir__() -> List[str]:
    return list(__all__)
