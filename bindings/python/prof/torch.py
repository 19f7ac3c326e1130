"""PyTorch's operators, seen without a change in the program and without a compiler: observe().

    import prof.torch                          # before torch: see below
    import torch

    with prof.profile() as p, prof.torch.observe():
        model(x)

PyTorch of PyPI's x86 wheels has ITT in it, Intel's interface for tools. It looks for a tool once, when torch is imported: so this module imports torch, and meanwhile INTEL_LIBITTNOTIFY64 names libprof_itt.so (src/preload/itt).
Where torch was imported before, or has no ITT, observe() says so."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from importlib import import_module
from typing import Any, List, Optional

from ._library import C, short

COLLECTOR = "libprof_itt.so"
VARIABLE = "INTEL_LIBITTNOTIFY64"
PROBE = "prof.torch.observe()"
"""A task of this name the collector takes for a question, and records it not."""


class _Place(ctypes.Structure):
    """Dl_info."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def _address(library: Any) -> int:
    return ctypes.cast(library.prof_version, ctypes.c_void_p).value or 0


def collector() -> str:
    """The path of libprof_itt.so, which stands beside the libprof.so in use: for INTEL_LIBITTNOTIFY64, which also a program that imports torch first, or one in C, can be started with. FileNotFoundError when it is not there."""
    place = _Place()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Place)]
    found = os.fsdecode(place.file) if dladdr(_address(C), ctypes.byref(place)) and place.file else C.path
    path = os.path.join(os.path.dirname(os.path.abspath(found)), COLLECTOR)
    if not os.path.exists(path):
        raise FileNotFoundError(f"prof: {COLLECTOR} is not beside the libprof.so in use: there is no {path}. Install prof again (pip install ./bindings/python, or make install)")
    return path


class _Torch:
    """torch, and why its operators cannot be seen, where they cannot."""

    def __init__(self) -> None:
        self.module: Any = None
        self.error: Optional[Exception] = None
        self._collector: Any = None
        try:
            self._open(collector())
        except (ImportError, OSError, RuntimeError) as e:
            self.error = e

    def _open(self, path: str) -> None:
        was_there = "torch" in sys.modules
        before = os.environ.get(VARIABLE)
        if before is not None and not self._is_same(before, path):
            raise RuntimeError(f"prof: {VARIABLE} names another collector, {short(before)}, and a process has one: start the program without it, or with {VARIABLE}={path}")
        self._collector = ctypes.CDLL(path)
        if _address(self._collector) != _address(C):
            raise RuntimeError(f"prof: {path} records into another copy of libprof.so than the one in use, {C.path}: unset PROF_LIBRARY, or link the shared library")
        os.environ[VARIABLE] = path
        try:
            self.module = self._import()
            if self._is_ours():
                return
        finally:  # what the program starts is not to load it
            if before is None:
                del os.environ[VARIABLE]
        version = getattr(self.module, "__version__", "of an unknown version")
        if not self._has_itt():
            raise RuntimeError(f"prof: torch {version} has no ITT, by which prof sees its operators: torch 1.13 or later from PyPI for x86-64 has it. prof.trace_module(torch) and prof.scope() see what is called by name")
        if was_there:
            raise RuntimeError(f"prof: torch was imported before prof.torch, and looks for who listens only once: import prof.torch first, or start the program with {VARIABLE}={path}")
        raise RuntimeError(f"prof: torch {version} did not take {path}: another part of this process had begun with ITT, or its ITT is of another version than 3")

    @staticmethod
    def _is_same(a: str, b: str) -> bool:
        try:
            return os.path.samefile(a, b)
        except OSError:
            return False

    @staticmethod
    def _import() -> Any:
        try:
            return import_module("torch")
        except ImportError as e:
            raise ImportError(f"prof: torch cannot be imported: {e}. Install it (pip install torch), in the Python that runs: {sys.executable}") from e

    def _has_itt(self) -> bool:
        try:
            return bool(import_module("torch.profiler.itt").is_available()) and hasattr(import_module("torch.autograd.profiler"), "emit_itt")
        except (ImportError, AttributeError):
            return False

    def _is_ours(self) -> bool:
        """Has a task of torch's come to the collector? The first has torch look for one."""
        if not self._has_itt():
            return False
        self.module.profiler.itt.mark(PROBE)
        return bool(self._collector.prof_i_itt_seen_1())

    def get(self) -> Any:
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.module


class observe:  # noqa: N801 (as profile)
    """The operators of the code inside are scopes of the category cpu_op, nested as torch.profiler's: those that this thread calls, and those that autograd's threads run for it, while somebody records (prof.profile(),
    prof.profiler.start(), PROF_LEVEL). As a context manager, or by start() and stop(), again and again. torch's own emit_itt() does it; the program computes what it computes without.

    ImportError without torch; RuntimeError where torch's operators cannot be seen, with the reason, and where this thread is observed already, or in torch.profiler."""

    def __init__(self) -> None:
        self._running: Any = None
        self._thread = 0

    def __enter__(self) -> "observe":
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def start(self) -> None:
        """RuntimeError a second time without a stop()."""
        torch = _torch.get()
        if self._running is not None:
            raise RuntimeError("this observe() has been started already; stop() it first")
        if torch.autograd._profiler_enabled():
            raise RuntimeError("a profiler of torch's is on in this thread: torch.profiler, emit_itt(), emit_nvtx(), or another observe(). There can be one at a time")
        running = torch.autograd.profiler.emit_itt()
        running.__enter__()
        self._running, self._thread = running, threading.get_ident()

    def stop(self) -> None:
        """Without a start it does nothing. RuntimeError on another thread than start()'s: then it goes on."""
        if self._running is None:
            return
        if self._thread != threading.get_ident():
            raise RuntimeError("observe() is stopped by the thread that has started it, and goes on there")
        running, self._running = self._running, None
        running.__exit__(None, None, None)


_torch = _Torch()

__all__ = ["collector", "observe"]


def __dir__() -> List[str]:
    return list(__all__)
