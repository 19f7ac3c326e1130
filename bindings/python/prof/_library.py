"""libprof.so: which copy of it, what it has, and what its errors become. The list of C functions
stands here, once."""

from __future__ import annotations

import ctypes
import errno
import os
import warnings
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)
from operator import index
from typing import Any, Dict, List, NoReturn, Optional, Type, TypeVar

from . import _op_structs
from . import _structs as s

VERSION = "0.1.0"
SONAME = "libprof.so.0"

_text = POINTER(c_void_p)  # char **: given to prof_free()

RowsPointer = POINTER(s.Rows)
"""Made once: ctypes forgets which pointer types it has made, for the whole process, when another
interpreter imports it."""

# name: result, parameters. Pointers to opaque things are c_void_p.
FUNCTIONS: Dict[str, List[Any]] = {
    "prof_version": [c_char_p],
    "prof_status_name": [c_char_p, c_int],
    "prof_status_text": [c_char_p, c_int],
    "prof_last_error": [c_char_p],
    "prof_loss_name": [c_char_p, c_int],
    "prof_loss_text": [c_char_p, c_int],
    "prof_free": [None, c_void_p],
    # life
    "prof_start": [c_int, c_int],
    "prof_level_want": [c_int, c_void_p, c_int],
    "prof_level_want_with": [c_int, c_void_p, c_int, c_uint32],
    "prof_start_with": [c_int, POINTER(s.Options)],
    "prof_mute": [c_int, c_char_p, c_char_p, c_int],
    "prof_stop": [c_int],
    "prof_clear": [c_int],
    "prof_level": [c_int],
    "prof_get": [c_int, POINTER(c_void_p)],
    "prof_get_json": [c_int, _text, POINTER(c_size_t)],
    "prof_get_duration": [c_int, c_char_p, c_char_p, POINTER(c_uint64), POINTER(c_uint64)],
    "prof_dump": [c_int, c_char_p],
    "prof_dump_with": [c_int, c_char_p, POINTER(s.DumpOptions)],
    "prof_health_get": [c_int, POINTER(s.Health)],
    # scopes by calls, steps, names
    "prof_scope_begin": [c_uint64, c_int, c_char_p, c_char_p, c_void_p],
    "prof_scope_end": [None, c_uint64],
    "prof_i_counter_1": [None, POINTER(s.Site), c_char_p, c_double],
    "prof_i_instant_1": [None, POINTER(s.Site), POINTER(s.Details)],
    "prof_step": [None],
    "prof_flow_begin": [None, c_uint64, c_char_p],
    "prof_flow_end": [None, c_uint64, c_char_p],
    "prof_process_set_name": [c_int, c_char_p],
    "prof_thread_set_name": [c_int, c_char_p],
    "prof_rank_set": [c_int, c_int, c_int],
    "prof_i_python_1": [c_char_p, c_void_p],
    "prof_i_python_stacks_1": [None, c_int],
    "prof_i_python_silence_1": [None, c_void_p],
    "prof_i_python_functions_1": [c_char_p, c_void_p],
    "prof_i_python_arguments_1": [c_int64, c_void_p, c_void_p, c_uint64, c_void_p, c_uint64],
    # devices
    "prof_backend_status": [c_int, c_uint32, POINTER(s.BackendState)],
    "prof_backend_load": [c_int, c_char_p],
    "prof_sampler_start": [c_int, POINTER(s.SamplerOptions)],
    "prof_sampler_stop": [c_int],
    "prof_sampler_get": [c_int, POINTER(s.SamplerState)],
    # reading
    "prof_trace_open": [c_int, c_char_p, POINTER(c_void_p)],
    "prof_trace_part_count": [c_int, c_char_p, POINTER(c_uint32)],
    "prof_trace_destroy": [None, c_void_p],
    "prof_i_trace_view_1": [c_int, c_void_p, POINTER(s.ViewWish), POINTER(c_void_p)],
    "prof_trace_info_get": [c_int, c_void_p, POINTER(s.TraceInfo)],
    "prof_trace_thread_get": [c_int, c_void_p, c_uint32, POINTER(s.TraceThread)],
    "prof_trace_device_get": [c_int, c_void_p, c_uint32, POINTER(s.TraceDevice)],
    "prof_trace_aggregate": [c_int, c_void_p, POINTER(s.AggregateOptions), POINTER(RowsPointer)],
    "prof_rows_destroy": [None, RowsPointer],
    "prof_trace_site_get": [c_int, c_void_p, c_uint32, POINTER(s.TraceSite)],
    "prof_rows_more": [c_int, RowsPointer, c_uint64, POINTER(s.RowMore)],
    "prof_traces_aggregate": [
        c_int,
        POINTER(c_void_p),
        c_size_t,
        POINTER(s.AggregateOptions),
        POINTER(RowsPointer),
    ],
    "prof_traces_table": [c_int, POINTER(c_void_p), c_size_t, POINTER(s.AggregateOptions), _text],
    "prof_trace_table": [c_int, c_void_p, POINTER(s.AggregateOptions), _text],
    "prof_trace_loss_text": [c_int, c_void_p, _text],
    "prof_trace_frame_text": [c_int, c_void_p, c_uint32, _text],
    "prof_trace_function_ends": [c_uint32, c_void_p, POINTER(c_uint64), c_uint32],
    "prof_trace_dump": [c_int, c_void_p, c_char_p, POINTER(s.DumpOptions)],
    "prof_trace_json": [c_int, c_void_p, POINTER(s.DumpOptions), _text, POINTER(c_size_t)],
    "prof_trace_arrow": [
        c_int,
        c_void_p,
        POINTER(s.ArrowOptions),
        POINTER(s.ArrowStream),
    ],
    "prof_i_trace_arrow_1": [c_int, c_void_p, POINTER(s.ArrowWish), POINTER(s.ArrowStream)],
    "prof_i_python_capsule_1": [py_object, POINTER(s.ArrowStream)],
    "prof_cursor_create": [c_int, c_void_p, POINTER(c_void_p)],
    "prof_cursor_destroy": [None, c_void_p],
    "prof_cursor_skip_before": [c_int, c_void_p, c_uint64],
    "prof_cursor_next": [c_int, c_void_p, POINTER(s.Event)],
    "prof_cursor_read": [c_int64, c_void_p, POINTER(s.EventBrief), c_uint64],
    "prof_trace_event_get": [c_int, c_void_p, POINTER(s.EventBrief), POINTER(s.Event)],
    # memory
    "prof_memory_is_on": [c_int],
    "prof_memory_start": [c_int],
    "prof_memory_stop": [c_int],
    "prof_memory_reset": [c_int],
    "prof_memory_set_query": [c_int, s.Device, s.MemoryQuery, c_void_p],
    "prof_memory_sample": [None, s.Device, c_char_p, c_uint32],
    "prof_memory_max_get": [c_int, s.Device, c_int, POINTER(s.MemoryMax)],
    "prof_memory_trace_text": [c_int, c_void_p, s.Device, _text],
    "prof_pool_create": [c_int, POINTER(s.PoolOptions), POINTER(c_void_p)],
    "prof_pool_destroy": [None, c_void_p],
    "prof_memory_tag": [c_uint32, c_char_p],
    "prof_memory_alloc_for": [None, c_void_p, c_void_p, c_uint64, c_uint64, c_uint32, c_uint64],
    "prof_memory_free": [None, c_void_p, c_void_p, c_uint64],
    "prof_memory_reserve": [None, c_void_p, c_void_p, c_uint64],
    "prof_memory_release": [None, c_void_p, c_void_p, c_uint64],
    "prof_memory_oom": [c_int, s.Device, c_uint64],
    "prof_memory_read": [c_int, c_void_p, POINTER(c_void_p)],
    "prof_memory_destroy": [None, c_void_p],
    "prof_memory_text": [c_int, c_void_p, POINTER(s.MemoryTextOptions), _text],
    "prof_memory_svg_dump": [c_int, c_void_p, c_uint32, c_char_p],
    # operators
    "prof_op_profile": [
        c_int,
        POINTER(_op_structs.Op),
        POINTER(_op_structs.OpOptions),
        POINTER(c_void_p),
    ],
    "prof_op_profile_in_turn": [
        c_int,
        POINTER(_op_structs.Op),
        c_size_t,
        POINTER(_op_structs.OpOptions),
        POINTER(c_void_p),
    ],
    "prof_op_profile_group": [
        c_int,
        POINTER(_op_structs.Op),
        c_size_t,
        c_int,
        POINTER(_op_structs.OpOptions),
        POINTER(c_void_p),
        POINTER(_op_structs.OpOverlap),
    ],
    "prof_op_timer_create": [c_int, POINTER(_op_structs.OpStream), POINTER(c_void_p)],
    "prof_op_timer_destroy": [None, c_void_p],
    "prof_op_result_destroy": [None, c_void_p],
    "prof_op_info_get": [c_int, c_void_p, POINTER(_op_structs.OpInfo)],
    "prof_op_samples": [POINTER(c_double), c_void_p, POINTER(c_size_t)],
    "prof_op_text": [c_size_t, c_void_p, c_void_p, c_size_t],
    "prof_op_workspace_alloc": [None, c_uint64],
    "prof_op_workspace_free": [None, c_uint64],
    "prof_op_compare": [c_int, c_void_p, c_void_p, c_double, POINTER(_op_structs.OpComparison)],
    "prof_op_cache_open": [c_int, c_char_p],
    "prof_op_cache_reset": [None, POINTER(s.Device)],
    "prof_op_cache_count": [c_size_t, POINTER(s.Device)],
}

# Called with the GIL held: they are short, take no lock that Python code may hold, and giving the
# GIL up costs more than they do.
HOLD_GIL = {
    "prof_i_python_1",
    "prof_i_python_stacks_1",
    "prof_i_python_silence_1",
    "prof_i_python_functions_1",
    "prof_i_python_arguments_1",
    "prof_i_python_capsule_1",
    "prof_scope_begin",
    "prof_scope_end",
    "prof_i_counter_1",
    "prof_i_instant_1",
    "prof_level",
    "prof_last_error",
    "prof_version",
    "prof_status_name",
    "prof_status_text",
    "prof_memory_is_on",
    "prof_op_workspace_alloc",
    "prof_op_workspace_free",
}


# prof_status, of those that callers look at
RUNNING, NOT_RUNNING, NOT_FOUND, BUSY = -3, -4, -7, -17


class ProfError(Exception):
    """A call of prof that failed. ``status`` is C's code (``prof_status``), negative; the text has
    its values."""

    status: int = 0


_BASES: Dict[int, Type[Exception]] = {
    -1: ValueError,
    -2: ValueError,
    -3: RuntimeError,
    -4: RuntimeError,
    -5: MemoryError,
    -6: OSError,
    -7: FileNotFoundError,
    -8: PermissionError,
    -9: OSError,
    -10: ValueError,
    -11: ValueError,
    -12: ValueError,
    -13: OverflowError,
    -14: NotImplementedError,
    -15: RuntimeError,
    -16: OSError,
    -17: RuntimeError,
    -18: RuntimeError,
}

_ERRNOS = {-7: errno.ENOENT, -8: errno.EACCES, -9: errno.ENOSPC}

_T = TypeVar("_T", bound=Structure)
_classes: Dict[int, Type[ProfError]] = {}


def error_class(status: int) -> Type[ProfError]:
    """ProfError, and Python's own error for the same thing: PROF_E_INVALID is a ValueError, too,
    PROF_E_PERMISSION a PermissionError."""
    made = _classes.get(status)
    if made is None:
        base = _BASES.get(status, RuntimeError)
        made = type(
            "Prof" + base.__name__, (ProfError, base), {"__module__": "prof", "status": status}
        )
        _classes[status] = made
    return made


def _in_process() -> Optional[ctypes.CDLL]:
    """A copy that is here already, by its SONAME or linked into the program."""
    try:
        return ctypes.CDLL(SONAME, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        pass
    whole = ctypes.CDLL(None)
    return whole if hasattr(whole, "prof_version") and hasattr(whole, "prof_i_level_1") else None


def _place(library: ctypes.CDLL) -> Any:
    """Where a copy's code is: two handles of one copy have the same."""
    return (
        ctypes.cast(library.prof_version, c_void_p).value
        if hasattr(library, "prof_version")
        else None
    )


class Library:
    """libprof.so, opened. C's functions are attributes, by their names."""

    path: str
    """Where it came from."""

    def __init__(self) -> None:
        tried: List[str] = []
        found = self._open(tried)
        if found is None:
            raise ImportError(
                "prof: no libprof.so could be opened. Tried:\n  "
                + "\n  ".join(tried)
                + (
                    "\nInstall the wheel again: pip install --force-reinstall libprof, or pip "
                    "install ./bindings/python of a checkout. Or set PROF_LIBRARY to the file, or "
                    "load a runtime that links prof before prof is first used"
                )
            )
        version = getattr(found, "prof_version", None)
        if version is None:
            raise ImportError(f"prof: {self.path} is no libprof.so: it has no prof_version()")
        version.restype = c_char_p
        have = version().decode()
        if have.rsplit(".", 1)[0] != VERSION.rsplit(".", 1)[0]:
            raise ImportError(
                f"prof: {self.path} is version {have}, this package needs {VERSION}. Install both "
                f"from one release, or set PROF_LIBRARY to a fitting file"
            )
        self._library = found
        # PyPy has none
        self._holding = (
            ctypes.PyDLL(self.path, handle=found._handle) if hasattr(ctypes, "PyDLL") else found
        )

    def _open(self, tried: List[str]) -> Optional[ctypes.CDLL]:
        told = os.environ.get("PROF_LIBRARY")
        if told:
            self.path = told
            here = _in_process()
            try:
                found = ctypes.CDLL(told)
            except OSError as e:
                raise ImportError(f"prof: PROF_LIBRARY={told!r} cannot be opened: {e}") from None
            if here is not None and _place(here) != _place(found):
                warnings.warn(
                    f"prof: PROF_LIBRARY={told!r} is another copy than the one that this process "
                    f"has already: what a runtime records into that one is not seen. Unset "
                    f"PROF_LIBRARY, or set it to that file",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return found
        here = _in_process()
        if here is not None:
            self.path = "the copy in this process"
            return here
        for path in (
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", SONAME),
            SONAME,
        ):
            self.path = path
            try:
                return ctypes.CDLL(path)
            except OSError as e:
                tried.append(str(e) if path in str(e) else f"{path}: {e}")
        return None

    def __getattr__(self, name: str) -> Any:
        signature = FUNCTIONS.get(name)
        if signature is None:
            raise AttributeError(name)
        try:
            function = getattr(self._holding if name in HOLD_GIL else self._library, name)
        except AttributeError:
            raise ImportError(
                f"prof: {self.path} has no {name}(): it is older than this package ({VERSION})"
            ) from None
        function.restype = signature[0]
        function.argtypes = signature[1:]
        setattr(self, name, function)
        return function

    def check(self, status: int) -> None:
        """Raises what a status says, with what the call had to say about it."""
        if status < 0:
            self.fail(status)

    def fail(self, status: int) -> NoReturn:
        said = self.prof_last_error().decode(errors="replace")
        text = self.prof_status_text(status).decode()
        # what the system says of a file is the same words
        is_told = not said or text.lower() in said.lower()
        error = error_class(status)(said or text if is_told else f"{text}: {said}")
        if isinstance(error, OSError):
            error.errno = _ERRNOS.get(status, errno.EIO)
        raise error

    def text(self, pointer: c_void_p) -> str:
        """Of a text that C has made for its caller; frees it."""
        try:
            return ctypes.string_at(pointer.value or 0).decode(errors="replace")
        finally:
            self.prof_free(pointer)

    def asked(self, function: Any, *arguments: Any) -> str:
        """The text that a function of C's puts into its last parameter."""
        out = c_void_p()
        self.check(function(*arguments, ctypes.byref(out)))
        return self.text(out)


def sized(kind: Type[_T], **values: Any) -> _T:
    """One of C's structs that begin with their size."""
    return kind(size=ctypes.sizeof(kind), **values)


C = Library()
"""The one library of the process."""


def short(value: Any) -> str:
    """What an error shows of a value: its repr, or the begin of it."""
    from ._own_calls import OwnCall

    with OwnCall(value, "__repr__"):
        text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"


def encoded(text: Any, what: str) -> bytes:
    """A path or a name as C takes it. NUL bytes cannot stand in one. Lone surrogates of a name pass
    as those of a scope's: readers repair what is not UTF-8."""
    if not isinstance(text, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} must be a str, not {short(text)}")
    raw = (
        text.encode("utf-8", "surrogatepass")
        if isinstance(text, str) and what != "path"
        else os.fsencode(text)
    )
    if b"\0" in raw:
        raise ValueError(f"{what} holds a NUL: {short(text)}")
    return raw


def whole(value: Any, what: str, least: int = 0, most: int = (1 << 64) - 1) -> int:
    """A number as C takes it. ctypes would cut it to its width without a message. TypeError,
    ValueError."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {short(value)}") from None
    if not least <= number <= most:
        raise ValueError(f"{what} must be from {least} to {most}, not {short(number)}")
    return number


class Owner:
    """What owns something of C's. A copy would free it, too."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it owns memory of libprof.so"
        )


class Shared:
    """A pointer of C's that any thread may use while another one closes it. It is freed after the
    last use. ``with`` begins a use and gives the pointer.

    It has no lock: a signal's handler or a forked child could find that taken. A use enters itself
    before it checks whether the pointer is closed. close() marks the pointer before it checks for
    uses. So one of them sees the other. Only one of them can take the pointer out of its list."""

    __slots__ = ("_owned", "_uses", "_is_closed", "_free", "_what")

    def __init__(self, pointer: c_void_p, free: str, what: str) -> None:
        self._owned = [pointer]
        self._uses: List[int] = []
        self._is_closed = False
        self._free, self._what = free, what

    def __enter__(self) -> c_void_p:
        self._uses.append(1)
        if not self._is_closed:
            return self._owned[0]
        self.__exit__()
        raise ValueError(f"the {self._what} is closed")

    def __exit__(self, *error: Any) -> None:
        self._uses.pop()
        self._free_unused()

    def close(self) -> None:
        """Frees it, now or behind the last use. A second time does nothing."""
        self._is_closed = True
        self._free_unused()

    def _free_unused(self) -> None:
        if not self._is_closed or self._uses:
            return
        try:
            pointer = self._owned.pop()
        except IndexError:
            return
        if pointer:
            getattr(C, self._free)(pointer)
