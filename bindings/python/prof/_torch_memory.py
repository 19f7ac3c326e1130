"""PyTorch's allocations by its own reports (inject/torch/memory.c), without a preload.

Proven by known allocations before any is recorded. Torch's own profiler and ours take turns at one
place of the thread: so the functions that start and end torch's are wrapped meanwhile."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from typing import Any, Callable, List, Optional, Set, Tuple

from . import _torch_calls

_BESIDE, _NOT = 1, -1
"""attached of memory.c: torch's profiler is on, and reports to both; nothing is reported."""

_STARTS = ("_enable_profiler", "_enable_profiler_legacy")
_ENDS = ("_disable_profiler", "_disable_profiler_legacy")
_MODULES = (
    "torch._C._autograd",
    "torch.autograd",
    "torch.autograd.profiler",
    "torch.autograd.profiler_legacy",
)
_PROVED_BYTES = (1 << 16) + 1


class _Proof(ctypes.Structure):
    """proof of memory.c: the last report, and how many came."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("bytes", ctypes.c_int64),
        ("count", ctypes.c_uint32),
        ("device_type", ctypes.c_int8),
        ("device_index", ctypes.c_int8),
    ]


class Memory:
    """Opened and proven. Raises OSError without the library, _torch_calls.Unproven."""

    def __init__(self, path: str, torch: Any) -> None:
        self._c = library = ctypes.CDLL(path)
        library.prof_i_torch_memory_open_1.restype = ctypes.c_char_p
        library.prof_i_torch_memory_prove_1.argtypes = [ctypes.POINTER(_Proof)]
        for name in ("forget", "yield"):
            getattr(library, f"prof_i_torch_memory_{name}_1").restype = None
        is_rocm = getattr(torch.version, "hip", None) is not None
        missing = library.prof_i_torch_memory_open_1(int(is_rocm))
        if missing is not None:
            raise _torch_calls.Unproven(f"{missing.decode()} is not there")
        _torch_calls.apart(lambda: self._prove(torch))
        self._graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self._wrapped: List[Tuple[Any, str, Any, Any]] = []
        self._is_kept = False
        self._users: Set[Tuple[int, object]] = set()
        """The users that request reports, each with the thread of its request. A thread may have
        several."""
        self._own = threading.local()
        self._lock = threading.Lock()

    def reports(self) -> "Reports":
        """For one observe()."""
        return Reports(self)

    def thread(self) -> object:
        """Stands for this one, also when another has got its number."""
        if not hasattr(self._own, "thread"):
            self._own.thread = object()
        return self._own.thread

    def want(self, user: int, thread: object) -> None:
        with self._lock:
            self._users.add((user, thread))
            self._wrap()
        if self._c.prof_i_torch_memory_want_1(1) == _NOT:
            self.leave(user, thread, False)
            raise RuntimeError(
                "prof: torch's memory cannot be recorded on this thread: what is registered there "
                "for profilers is not torch's, or cannot be read"
            )

    def leave(self, user: int, thread: object, is_gone: bool) -> None:
        """A second time does nothing."""
        with self._lock:
            if (user, thread) not in self._users:
                return
            self._users.discard((user, thread))
            if any(other is thread for _, other in self._users):
                return
            if is_gone:
                self._c.prof_i_torch_memory_forget_1()
            else:
                self._c.prof_i_torch_memory_want_1(0)
            # Autograd puts back what this thread had before the node that it runs: so ours comes
            # back behind it, and must go before torch's profiler starts here.
            self._is_kept = self._is_kept or self._graph_task() != -1
            if not self._users and not self._is_kept:
                self._unwrap()

    def renew_lock(self) -> None:
        """In a forked child."""
        self._lock = threading.Lock()

    # ---- torch's own profilers ----

    def _wrap(self) -> None:
        """What is wrapped already stays so; modules may have come since."""
        for module in filter(None, map(sys.modules.get, _MODULES)):
            for names, wrapper in ((_STARTS, self._starting), (_ENDS, self._ending)):
                for name in names:
                    original = getattr(module, name, None)
                    if original is None or isinstance(original, _Wrapper):
                        continue
                    wrapped = wrapper(original)
                    setattr(module, name, wrapped)
                    self._wrapped.append((module, name, original, wrapped))

    def _unwrap(self) -> None:
        """What somebody else has put there meanwhile stays."""
        for module, name, original, wrapped in self._wrapped:
            if getattr(module, name, None) is wrapped:
                setattr(module, name, original)
        self._wrapped.clear()

    def _resume(self) -> None:
        if self._c.prof_i_torch_memory_resume_1() == _NOT:
            warnings.warn(_NO_COLUMNS, RuntimeWarning, stacklevel=4)

    def _starting(self, original: Callable[..., Any]) -> "_Wrapper":
        def start(*args: Any, **words: Any) -> Any:
            self._c.prof_i_torch_memory_yield_1()
            try:
                return original(*args, **words)
            finally:
                self._resume()

        return _Wrapper(original, start)

    def _ending(self, original: Callable[..., Any]) -> "_Wrapper":
        def end(*args: Any, **words: Any) -> Any:
            try:
                return original(*args, **words)
            finally:
                self._resume()

        return _Wrapper(original, end)

    # ---- the proof ----

    def _prove(self, torch: Any) -> None:
        """On a thread of its own, on which no profiler is on."""
        proof = _Proof()
        try:
            if self._c.prof_i_torch_memory_prove_1(proof) != 0:
                raise _torch_calls.Unproven("what is registered for memory is not found again")
            made = torch.empty(_PROVED_BYTES, dtype=torch.uint8, device="cpu")
            address = made.data_ptr()
            self._check(proof, 1, address, _PROVED_BYTES)
            del made
            self._check(proof, 2, address, -_PROVED_BYTES)
        finally:
            self._c.prof_i_torch_memory_prove_1(None)

    @staticmethod
    def _check(proof: _Proof, count: int, address: int, size: int) -> None:
        got = (proof.count, proof.address, proof.bytes, proof.device_type)
        wanted = (count, address, size, 0)
        if got != wanted:
            raise _torch_calls.Unproven(
                f"a known allocation is {wanted} (count, address, bytes, device type), and torch "
                f"reports {got}"
            )


class Reports:
    """Of the thread that calls start(), and of autograd's threads that work for it."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._thread = memory, memory.thread()

    def start(self) -> None:
        """RuntimeError where torch cannot report to prof on this thread."""
        self._memory.want(id(self), self._thread)

    def stop(self) -> None:
        """On the thread that has started it. A second time does nothing."""
        self._memory.leave(id(self), self._thread, False)

    def forget(self) -> None:
        """In place of stop(), when that thread has ended."""
        self._memory.leave(id(self), self._thread, True)


class _Wrapper:
    """In place of a function of torch's; looks like it."""

    def __init__(self, original: Callable[..., Any], call: Callable[..., Any]) -> None:
        self._call, self.__wrapped__ = call, original
        self.__name__, self.__doc__ = getattr(original, "__name__", ""), original.__doc__

    def __call__(self, *args: Any, **words: Any) -> Any:
        return self._call(*args, **words)


_NO_COLUMNS = (
    "prof: a profiler of torch's is on in this thread, and its object cannot report to prof beside "
    "it: "
    "torch's memory is not recorded until it ends"
)
_lock = threading.Lock()
_opened: Optional[Memory] = None


def _in_child() -> None:
    """Another thread may have held a lock."""
    global _lock
    _lock = threading.Lock()
    if _opened is not None:
        _opened.renew_lock()


os.register_at_fork(after_in_child=_in_child)


def opened(path: str, torch: Any) -> Memory:
    """The process's one. A failure is tried again the next time: a mode of torch's may have been in
    the way."""
    global _opened
    with _lock:
        if _opened is None:
            _opened = Memory(path, torch)
        return _opened
