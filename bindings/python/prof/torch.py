"""PyTorch's operators, seen without a change in the program and without a compiler: observe().

    import prof.torch                          # before torch: see below
    import torch

    with prof.profile() as p, prof.torch.observe():
        model(x)

PyTorch of PyPI's x86 wheels has ITT in it, Intel's interface for tools. It looks for a tool once, when torch is imported: so this module imports torch, and meanwhile INTEL_LIBITTNOTIFY64 names libprof_itt.so (src/preload/itt).
Where torch was imported before, or has no ITT, observe() says so."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
from importlib import import_module
from typing import Any, List, Optional

from . import names
from ._library import C, short
from ._scope import scope
from .modules import shapes_of

COLLECTOR = "libprof_itt.so"
MEMORY = "libprof_memory.so"
VARIABLE = "INTEL_LIBITTNOTIFY64"
CATEGORY = "cpu_op"
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
        if self.error is not None and not isinstance(self.error, ImportError):  # modes need no collector
            with contextlib.suppress(ImportError):
                self.module = import_module("torch")

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

    def get(self, without_itt: bool) -> Any:
        """torch. Raises why it is not there, or why ITT of it is not."""
        if self.error is not None and not (without_itt and self.module is not None):
            raise self.error.with_traceback(None)
        return self.module


def _dispatch_mode(torch: Any) -> Any:
    """A mode of torch's, which is shown each call with its arguments, when autograd is done with it. What it calls in turn it does not see."""
    try:
        base = import_module("torch.utils._python_dispatch").TorchDispatchMode
    except (ImportError, AttributeError):
        raise RuntimeError(f"prof: torch {torch.__version__} has no TorchDispatchMode, by which observe() has shapes and stacks: it is there from 1.13 on") from None

    class Operators(base):  # type: ignore[misc,valid-type]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not C.prof_level():
                return func(*args, **(kwargs or {}))
            with scope(func._schema.name, CATEGORY, 1, _shapes=shapes_of(args)):
                return func(*args, **(kwargs or {}))

    return Operators()


def _check_memory() -> None:
    """RuntimeError where malloc() is not recorded."""
    try:
        ctypes.CDLL(MEMORY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        is_there = os.environ.get("PROF_MEMORY", "0") != "0"
    except OSError:
        is_there = False
    if not is_there:
        raise RuntimeError(f"prof: torch's memory is seen as the process's malloc() is: start the program with LD_PRELOAD={MEMORY} (which make install brings) and PROF_MEMORY=1")


def _tell_rank(torch: Any) -> None:
    """torch.distributed knows it, also where no launcher has set RANK: of torch.multiprocessing.spawn()'s processes, say."""
    distributed = getattr(torch, "distributed", None)
    if names.is_rank_said or distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    C.check(C.prof_rank_set(distributed.get_rank(), distributed.get_world_size()))


class observe:  # noqa: N801 (as profile)
    """The operators of the code inside are scopes of the category cpu_op, nested as torch.profiler's: those that this thread calls, and those that autograd's threads run for it, while somebody records (prof.profile(),
    prof.profiler.start(), PROF_LEVEL). As a context manager, or by start() and stop(), again and again. torch's own emit_itt() does it; the program computes what it computes without.

    record_shapes, with_stack (where the profile has it, too): by a TorchDispatchMode instead, which is shown fewer calls, and takes some us for each. profile_memory: asks only whether malloc() is recorded, by which each
    row of the processor has its memory. docs/python.md says what each column costs.

    ImportError without torch; RuntimeError where torch's operators cannot be seen, with the reason, and where this thread is observed already, or in torch.profiler."""

    def __init__(self, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False) -> None:
        self._by_mode = bool(record_shapes or with_stack)
        self._with_memory = bool(profile_memory)
        self._running: Any = None
        self._thread = 0

    def __enter__(self) -> "observe":
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def start(self) -> None:
        """RuntimeError a second time without a stop()."""
        torch = _torch.get(self._by_mode)
        if self._running is not None:
            raise RuntimeError("this observe() has been started already; stop() it first")
        if torch.autograd._profiler_enabled() or getattr(_by_modes, "count", 0):
            raise RuntimeError("a profiler of torch's is on in this thread: torch.profiler, emit_itt(), emit_nvtx(), or another observe(). There can be one at a time")
        if self._with_memory:
            _check_memory()
        running = _dispatch_mode(torch) if self._by_mode else torch.autograd.profiler.emit_itt()
        _tell_rank(torch)
        running.__enter__()
        self._running, self._thread = running, threading.get_ident()
        atexit.register(self._stop_at_exit)
        _by_modes.count = int(self._by_mode)

    def stop(self) -> None:
        """Without a start it does nothing. RuntimeError on another thread than start()'s: then it goes on."""
        if self._running is None:
            return
        if self._thread != threading.get_ident():
            raise RuntimeError("observe() is stopped by the thread that has started it, and goes on there")
        atexit.unregister(self._stop_at_exit)
        running, self._running = self._running, None
        _by_modes.count = 0
        running.__exit__(None, None, None)
        _tell_rank(_torch.module)  # where the program has joined its group meanwhile

    def _stop_at_exit(self) -> None:
        """Never stopped: torch would warn of a leaked callback when its thread's state goes. One of another thread is past help."""
        if self._thread == threading.get_ident():
            self.stop()


_by_modes = threading.local()
"""count: of this thread, observe()s that torch's own profilers do not know of."""

_torch = _Torch()

__all__ = ["collector", "observe"]


def __dir__() -> List[str]:
    return list(__all__)
