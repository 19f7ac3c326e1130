"""FunctionEventAvg: all calls of one key, added up."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Protocol, Union, cast

from ._events import FunctionEvent
from ._library import short
from ._times import Times

_SUMMED = (
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "inner_cpu_time",
    "inner_device_time",
    "open_count",
    "skipped_count",
)
_INCLUSIVE = ("cpu_time_total", "device_time_total", "cpu_memory_usage", "device_memory_usage")
_TAKEN = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
    "category",
    "place",
)


class Family(Protocol):
    """Finds the first calls of rows."""

    def first_of(self, row: "FunctionEventAvg") -> Optional["FunctionEvent"]: ...


class FunctionEventAvg(Times):
    """All calls of one key."""

    _parent: Optional["FunctionEvent"] = None
    _children: Optional[List["FunctionEvent"]] = None
    _family: Optional[Family] = None
    """Only in a row that C has made, until its parent or its children are read."""
    _like: Optional["FunctionEventAvg"] = None
    """The row whose first call is this one's. None: itself."""
    category = ""
    """Not in torch: of record_function() "user_annotation"."""
    level = 1
    """Not in torch: 2 for what runs around operators, and for rows of another tool's trace that are
    not operators."""

    def __init__(self, key: Optional[str] = None) -> None:
        self.key = cast(str, key)  # None until the first call is added
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: Any = ""
        self.stack: List[str] = []
        self.flops = 0
        self.min_us, self.max_us = math.inf, 0.0
        """Not in torch: the shortest and the longest call."""

    @property
    def name(self) -> str:
        return self.key

    @property
    def cpu_parent(self) -> Optional["FunctionEvent"]:
        """The parent of the first call."""
        self._find_first()
        return self._parent

    @cpu_parent.setter
    def cpu_parent(self, parent: Optional["FunctionEvent"]) -> None:
        self._find_first()
        self._parent = parent

    @property
    def cpu_children(self) -> Optional[List["FunctionEvent"]]:
        """The children of the first call. None: no call has been added yet."""
        self._find_first()
        return self._children

    @cpu_children.setter
    def cpu_children(self, children: Optional[List["FunctionEvent"]]) -> None:
        self._find_first()
        self._children = children

    def set_family(self, family: Family) -> None:
        self._family, self._children = family, []

    def _find_first(self) -> None:
        """Reads all calls of the profile, at some us each."""
        if self._family is None:
            return
        first = self._family.first_of(self._like or self)
        if first is not None:
            self._parent, self._children = first.cpu_parent, first.cpu_children
        self._family = self._like = None

    def _take_first(self, other: "Either") -> None:
        if isinstance(other, FunctionEventAvg):
            self._parent, self._children = other._parent, other._children
            self._family, self._like = other._family, other._like or other
        else:
            self._parent, self._children = other.cpu_parent, other.cpu_children

    def __getstate__(self) -> Dict[str, Any]:
        """A copy has no trace: it keeps the parent and children that were read before."""
        left_out = ("_family", "_like")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def add(self, other: "Either", is_inner: bool = False) -> "FunctionEventAvg":
        """Adds calls of the same key. If this average has no key yet, it takes theirs.

        is_inner: they are inside another call that is added, so their time is part of that call's.
        Raises AssertionError for another key."""
        if not isinstance(other, Times):
            raise AssertionError(
                f"a FunctionEvent or a FunctionEventAvg can be added, not {short(other)}"
            )
        if self.key is None:
            for field in _TAKEN:
                setattr(self, field, getattr(other, field))
            self._take_first(other)
        elif other.key != self.key:
            raise AssertionError(f"only calls of one key add up, not {other.key!r} to {self.key!r}")
        # as in C's rows: part of the time of a mixed row is some thread's
        self.is_async = self.is_async and other.is_async
        self.is_crosswise = self.is_crosswise or other.is_crosswise
        if isinstance(other, FunctionEvent) and other.is_skipped:
            self.skipped_count += 1
            return self
        for field in _SUMMED:
            if not (is_inner and field in _INCLUSIVE):
                setattr(self, field, getattr(self, field) + getattr(other, field))
        if is_inner:
            self.inner_device_time += other.device_time_total
        if isinstance(other, FunctionEvent) and other.is_open:
            self.open_count += 1
        if is_inner:
            self.inner_cpu_time += other.cpu_time_total
        if not (isinstance(other, FunctionEvent) and other._is_repeated):
            self.flops += other.flops or 0
        least = most = other.cpu_time_total
        if isinstance(other, FunctionEventAvg):
            least, most = other.min_us, other.max_us
        self.min_us, self.max_us = min(self.min_us, least), max(self.max_us, most)
        return self

    def __iadd__(self, other: "Either") -> "FunctionEventAvg":
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} "
            f" self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )


Either = Union[FunctionEvent, FunctionEventAvg]
