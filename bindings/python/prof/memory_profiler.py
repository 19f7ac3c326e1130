"""RAF's memory profiler: the peaks of devices' pools, used and allocated, and the trace.

A runtime in C or C++ reports memory by <prof/memory.h>, and Python by Pool and set_query(). For
malloc() of the whole process, libprof_memory.so does."""

from __future__ import annotations

import _thread
import ctypes
import threading
from time import sleep
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _structs as s
from . import device as _device
from ._library import (
    BUSY,
    NOT_FOUND,
    NOT_RUNNING,
    C,
    Owner,
    Shared,
    encoded,
    error_class,
    short,
    sized,
    whole,
)
from .device import Device
from .trace import Trace

BYTES_UNKNOWN = NO_STREAM = (1 << 64) - 1
_SOURCES = {"any": 0, "pool": 1, "query": 2}


class Number(float):
    """A float that has itself as ``.value``, as RAF's numbers do."""

    __slots__ = ()

    @property
    def value(self) -> float:
        return float(self)


class Count(int):
    """The same of an int."""

    __slots__ = ()

    @property
    def value(self) -> int:
        return int(self)


def start() -> None:
    """Records memory from now on. profiler.start() does it, too."""
    C.check(C.prof_memory_start())


def stop() -> None:
    """No more. A second time does nothing, as in RAF."""
    status = C.prof_memory_stop()
    if status != NOT_RUNNING:
        C.check(status)


def reset() -> None:
    """Forgets peaks, collections and the samples of get_memory_trace(), as RAF's, recording or not.

    While memory is recorded, pools' peaks begin anew from what is used now, and a query's from the
    next sample(). If nothing was ever recorded there is nothing to reset. The capture keeps what is
    recorded: report() shows it. Any thread."""
    status = C.prof_memory_reset()
    if status != NOT_RUNNING:
        C.check(status)


def is_on() -> bool:
    """Is memory recorded?"""
    return bool(C.prof_memory_is_on())


def get_max_memory_info(device: Union[Device, str], source: str = "any") -> Dict[str, Any]:
    """The peaks of a device since the last start or reset(), as RAF's.

    max_used and max_allocated are in MB (2^20 bytes), each the highest at its own time.

    max_trace_idx is the line of get_memory_trace() at which most was used, -1 if there is none.

    num_gc counts collections.

    Beyond RAF: max_used_bytes, max_allocated_bytes, used_bytes, allocated_bytes. Each has
    ``.value``. If no memory of the device was recorded, all are 0, and max_trace_idx is -1.

    source: "pool" (reported piece by piece), "query" (queried by sample()), "any" (the pools if
    there are any, or else the query).

    ValueError, TypeError. Any thread."""
    if source not in _SOURCES:
        raise ValueError(f"source must be 'any', 'pool' or 'query', not {short(source)}")
    most = sized(s.MemoryMax)
    status = C.prof_memory_max_get(_device.of(device), _SOURCES[source], ctypes.byref(most))
    if status not in (NOT_FOUND, NOT_RUNNING):
        C.check(status)
    return {
        "max_used": Number(most.max_used_mb),
        "max_allocated": Number(most.max_allocated_mb),
        "max_trace_idx": Count(_peak_line(get_memory_trace(device))),
        "num_gc": Count(most.collection_count),
        "max_used_bytes": Count(most.max_used_bytes),
        "max_allocated_bytes": Count(most.max_allocated_bytes),
        "used_bytes": Count(most.used_bytes),
        "allocated_bytes": Count(most.allocated_bytes),
    }


def _peak_line(text: str) -> int:
    best, at = -1.0, -1
    for line in text.splitlines()[2:]:
        cells = line.split("\t")
        used = float(cells[2])
        if used > best:
            best, at = used, int(cells[0])
    return at


def get_memory_trace(device: Union[Device, str]) -> str:
    """A line for each sample() of the device since the last reset(), as RAF's.

    A line has the sample's number from 0, its tag, used and allocated in MB, with a tab between
    them. Two lines of headings are above. "" without a sample. ValueError, TypeError. Any
    thread."""
    where = _device.of(device)
    try:
        with Trace.now() as trace:
            return C.asked(C.prof_memory_trace_text, trace.pointer, where)
    except Exception as e:
        if getattr(e, "status", 0) in (NOT_FOUND, NOT_RUNNING):
            return ""
        raise


_queries: Dict[Tuple[int, int], Any] = {}


class _Asking(threading.local):
    """Is this thread in sample(), and what did the query raise?"""

    depth = 0
    error: Optional[BaseException] = None


_asking = _Asking()


def _interrupt_behind(left: List[bool]) -> None:
    """Once the query has been left, and C's call of it."""
    while not left:
        sleep(0.001)
    sleep(0.01)
    _thread.interrupt_main()


def set_query(device: Union[Device, str], query: Optional[Callable[[], Tuple[int, int]]]) -> None:
    """Sets the query of a device, which sample() calls. query: a callable that gives (used,
    allocated) in bytes. None: no query. A device has one query, in C or in Python.

    If the query raises an Exception, or gives anything but two numbers of bytes, that is no answer.
    KeyboardInterrupt, SystemExit and others that are no Exception come out of the sample() that
    called it. If C called it, a KeyboardInterrupt comes out of the main thread."""
    where = _device.of(device)
    if query is not None and not callable(query):
        raise TypeError(f"query must be something to call, or None, not {short(query)}")

    def ask(_: Any, used_out: Any, allocated_out: Any) -> int:
        left: List[bool] = []
        try:
            assert query is not None
            used, allocated = query()
            used_out[0], allocated_out[0] = whole(used, "used"), whole(allocated, "allocated")
            return 0
        except Exception:
            return 1
        except BaseException as e:
            if _asking.depth:
                _asking.error = e
            elif isinstance(e, KeyboardInterrupt):
                # from here it would be raised here, into C
                _thread.start_new_thread(_interrupt_behind, (left,))
            return 1
        finally:
            left.append(True)

    callback = s.MemoryQuery(ask) if query is not None else s.MemoryQuery()
    status = C.prof_memory_set_query(where, callback, None)
    # another thread is in it; in sample() itself there is nothing to wait for
    while status == BUSY and not _asking.depth:
        sleep(0.001)
        status = C.prof_memory_set_query(where, callback, None)
    C.check(status)
    _queries[where.type, where.index] = callback  # C calls it: it must not go


def sample(tag: str = "", device: Union[Device, str] = "cpu") -> None:
    """RAF's PROFILE_MEMORY(): asks the device's query, here, and records what it says. Nothing
    while memory is not recorded."""
    if C.prof_memory_is_on():
        raw, where = encoded(tag, "tag"), _device.of(device)
        _asking.depth += 1
        try:
            C.prof_memory_sample(where, raw, len(raw))
        finally:
            _asking.depth -= 1
            error, _asking.error = _asking.error, None
            if error is not None:
                raise error


class Pool(Owner):
    """An allocator's pool, told piece by piece. Addresses are ints, bytes too; recording or not,
    and from any thread, also while another one closes it. ValueError once it is closed."""

    def __init__(
        self, name: str = "pool", device: Union[Device, str] = "cpu", checked: bool = False
    ) -> None:
        options = sized(
            s.PoolOptions,
            name=encoded(name, "name"),
            device=_device.of(device),
            checked=int(bool(checked)),
        )
        pointer = ctypes.c_void_p()
        C.check(C.prof_pool_create(ctypes.byref(options), ctypes.byref(pointer)))
        self._name = name
        self._shared = Shared(pointer, "prof_pool_destroy", "pool")

    def __repr__(self) -> str:
        return f"<prof pool {short(self._name)}>"

    def alloc(self, address: int, bytes: int, given_bytes: int = 0, tag: str = "") -> None:
        """A piece was handed out: bytes asked for, given_bytes taken in the pool (0: the same)."""
        address, bytes, given_bytes = (
            whole(address, "address"),
            whole(bytes, "bytes"),
            whole(given_bytes, "given_bytes"),
        )
        with self._shared as pointer:
            C.prof_memory_alloc_for(
                pointer,
                address,
                bytes,
                given_bytes,
                C.prof_memory_tag(encoded(tag, "tag")) if tag else 0,
                NO_STREAM,
            )

    def free(self, address: int, given_bytes: int = BYTES_UNKNOWN) -> None:
        """A piece came back, of so many given bytes; a checked pool knows them."""
        with self._shared as pointer:
            C.prof_memory_free(
                pointer, whole(address, "address"), whole(given_bytes, "given_bytes")
            )

    def reserve(self, address: int, bytes: int) -> None:
        """A block was taken from the system."""
        with self._shared as pointer:
            C.prof_memory_reserve(pointer, whole(address, "address"), whole(bytes, "bytes"))

    def release(self, address: int, bytes: int) -> None:
        """And given back."""
        with self._shared as pointer:
            C.prof_memory_release(pointer, whole(address, "address"), whole(bytes, "bytes"))

    def close(self) -> None:
        """The pool goes; what it recorded stays. A second time does nothing."""
        self._shared.close()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the interpreter ends, or it was never made
            pass


def report(width: int = 80, rows: int = 10, pool: Optional[int] = None, ascii: bool = False) -> str:
    """prof memory's report of what has been recorded so far: a plot, both peaks, what was live
    then, who held it. Parameters as Trace.memory_text(). RuntimeError when nothing was recorded."""
    try:
        trace = Trace.now()
    except RuntimeError as e:
        if getattr(e, "status", 0) != NOT_RUNNING:
            raise
        raise error_class(NOT_RUNNING)(
            "no memory was recorded: call memory_profiler.start() or profiler.start() first"
        ) from None
    with trace:
        return trace.memory_text(width, rows, pool, ascii)


__all__ = [
    "BYTES_UNKNOWN",
    "Count",
    "NO_STREAM",
    "Number",
    "Pool",
    "get_max_memory_info",
    "get_memory_trace",
    "is_on",
    "report",
    "reset",
    "sample",
    "set_query",
    "start",
    "stop",
]


def __dir__() -> List[str]:
    return list(__all__)
