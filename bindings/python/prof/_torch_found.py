"""Finds torch in this process, and the libraries by which prof sees its operators: libprof_itt.so
and libprof_torch.so. PyTorch looks for the first one when it is imported. The second one belongs to
_torch_calls.py."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from importlib import import_module
from typing import Any, Callable, Iterator, List, Optional, Tuple

from . import _torch_calls, _torch_memory
from ._library import C, short

COLLECTOR = "libprof_itt.so"
MEMORY = "libprof_memory.so"
VARIABLE = "INTEL_LIBITTNOTIFY64"
PROBE = "prof.torch.observe()"
"""A task of this name the collector takes for a question, and records it not."""


class _Place(ctypes.Structure):
    """Dl_info."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def _address(library: Any) -> int:
    return ctypes.cast(library.prof_version, ctypes.c_void_p).value or 0


def beside(name: str) -> str:
    """The path of one of prof's libraries, which stands beside the libprof.so in use.
    FileNotFoundError when it is not there."""
    place = _Place()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Place)]
    found = (
        os.fsdecode(place.file)
        if dladdr(_address(C), ctypes.byref(place)) and place.file
        else C.path
    )
    path = os.path.join(os.path.dirname(os.path.abspath(found)), name)
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"prof: {name} is not beside the libprof.so in use: there is no {path}. Install prof "
            f"again (pip install ./bindings/python, or make install)"
        )
    return path


def is_profiler_on(torch: Any) -> bool:
    """Is a profiler of torch's on in this thread? This is torch's own answer: install() puts prof's
    into torch.autograd."""
    for place in ("_C._autograd", "autograd"):
        found: Any = torch
        for name in place.split("."):
            found = getattr(found, name, None)
        if callable(getattr(found, "_profiler_enabled", None)):
            return bool(found._profiler_enabled())
    return False


def memory_library() -> str:
    """The path of libprof_memory.so, for LD_PRELOAD: with PROF_MEMORY=1 it records malloc().
    FileNotFoundError when it is not there."""
    return beside(MEMORY)


def preloaded_memory() -> Any:
    """The library, where it is there since the process began; else None."""
    try:
        return ctypes.CDLL(MEMORY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def is_malloc_seen() -> bool:
    """Is it there since the process began, and does it record?"""
    library = preloaded_memory()
    return library is not None and bool(library.prof_i_malloc_is_reported_1())


def _same_copy(path: str) -> Any:
    library = ctypes.CDLL(path)
    if _address(library) != _address(C):
        raise RuntimeError(
            f"prof: {path} records into another copy of libprof.so than the one in use, {C.path}: "
            f"unset PROF_LIBRARY, or link the shared library"
        )
    return library


def collector() -> str:
    """The path of libprof_itt.so, for INTEL_LIBITTNOTIFY64, which a program that calls emit_itt(),
    or one in C, can be started with. FileNotFoundError when it is not there."""
    return beside(COLLECTOR)


def _without_frames(error: Exception) -> Exception:
    """It is kept for good: so are not the callers, and what they hold, a profile that has been
    dropped, say."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


waiting: List[Callable[[], None]] = []
"""What waits until prof.torch is whole: where that is imported first, it imports torch."""


def tell_of_torch() -> None:
    while waiting:
        waiting.pop()()


@contextlib.contextmanager
def telling_torch(path: str) -> Iterator[None]:
    """While torch is imported: it finds the collector. RuntimeError where another one is named."""
    before = os.environ.get(VARIABLE)
    if before is not None and not _is_same(before, path):
        raise RuntimeError(
            f"prof: {VARIABLE} names another collector, {short(before)}, and a process has one: "
            f"start the program without it, or with {VARIABLE}={path}"
        )
    os.environ[VARIABLE] = path
    try:
        yield
    finally:  # what the program starts is not to load it
        if before is None:
            os.environ.pop(VARIABLE, None)


def _is_same(a: str, b: str) -> bool:
    try:
        return os.path.samefile(a, b)
    except OSError:
        return False


class Torch:
    """torch, and why its operators cannot be seen, where they cannot."""

    def __init__(self) -> None:
        self.module: Any = None
        self.error: Optional[Exception] = None
        self._collector: Any = None
        try:
            self._open(collector())
        except (ImportError, OSError, RuntimeError) as e:
            self.error = _without_frames(e)
        # The dispatcher's callbacks need no collector.
        if self.error is not None and not isinstance(self.error, ImportError):
            with contextlib.suppress(ImportError):
                self.module = import_module("torch")

    def _open(self, path: str) -> None:
        was_there = "torch" in sys.modules
        with telling_torch(path):
            self._collector = _same_copy(path)
            self.module = self._import()
            if self._is_ours():
                return
        version = getattr(self.module, "__version__", "of an unknown version")
        if not self._has_itt():
            raise RuntimeError(
                f"prof: torch {version} has no ITT, by which prof sees its operators. "
                f"It comes with torch 1.13 or later from PyPI for x86-64. "
                f"prof.trace_module(torch) and prof.scope() record what is called by name"
            )
        if was_there:
            raise RuntimeError(
                f"prof: torch was imported before prof.torch, and looks for who listens only once: "
                f"import prof.torch first, or start the program with {VARIABLE}={path}"
            )
        raise RuntimeError(
            f"prof: torch {version} did not take {path}: another part of this process had begun "
            f"with ITT, or its ITT is of another version than 3"
        )

    @staticmethod
    def _import() -> Any:
        try:
            return import_module("torch")
        except ImportError as e:
            raise ImportError(
                f"prof: torch cannot be imported: {e}. Install it (pip install torch), in the "
                f"Python that runs: {sys.executable}"
            ) from e

    def _has_itt(self) -> bool:
        try:
            return bool(import_module("torch.profiler.itt").is_available()) and hasattr(
                import_module("torch.autograd.profiler"), "emit_itt"
            )
        except (ImportError, AttributeError):
            return False

    def _is_ours(self) -> bool:
        """Has a task of torch's come to the collector? The first has torch look for one."""
        if not self._has_itt():
            return False
        self.module.profiler.itt.mark(PROBE)
        return bool(self._collector.prof_i_itt_seen_1())

    def get(self) -> Any:
        """torch. Raises why it is not there."""
        if self.module is None:
            raise (self.error or RuntimeError("prof: torch cannot be imported")).with_traceback(
                None
            )
        return self.module

    def calls(self) -> Tuple[Optional[_torch_calls.Calls], str]:
        """The dispatcher's callbacks, or why they are not to be had."""
        try:
            path = beside(_torch_calls.LIBRARY)
            library = _same_copy(path)
            found = _torch_calls.opened(path, self.module), ""
            if self._collector is not None:  # emit_itt() in a profile tells of the same operators
                self._collector.prof_i_itt_ask_1(library.prof_i_torch_recorded_name_1)
            return found
        except (OSError, RuntimeError) as e:
            return None, str(e)

    def memory(self) -> Tuple[Optional[_torch_memory.Memory], str]:
        """Torch's own reports of its allocations, or why they are not to be had."""
        try:
            path = beside(_torch_calls.LIBRARY)
            _same_copy(path)
            return _torch_memory.opened(path, self.module), ""
        except (OSError, RuntimeError) as e:
            version = getattr(self.module, "__version__", "of an unknown version")
            return None, f"torch {version}: {e}"
