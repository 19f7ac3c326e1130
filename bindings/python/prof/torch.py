"""PyTorch's operators, seen without a change in the program and without a compiler: observe().

    import prof.torch
    import torch

    with prof.profile() as p, prof.torch.observe(record_shapes=True):
        model(x)

A script of torch.profiler's changes its import alone, since this module has those names as well:

    from prof.torch import ProfilerActivity, profile, record_function

The first way is the dispatcher's callbacks (_torch_calls.py, inject/torch), if these can be proven
in the torch at hand. The second is ITT, Intel's interface for tools, which PyTorch of PyPI's x86
wheels has in it. torch looks for a tool once, when it is imported. So this module imports torch,
and meanwhile INTEL_LIBITTNOTIFY64 names libprof_itt.so (inject/annotation). If neither is
available, observe() says why."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import warnings
from importlib import import_module
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set

from . import _torch_calls, _torch_found, _torch_group, _torch_install, _torch_ranges, session
from ._library import sized
from ._recording import outside
from ._scope import operators
from ._structs import ViewWish
from ._torch_found import Torch, collector
from ._torch_modules import Modules
from ._torch_ways import ByCalls, Once
from .device import DeviceType
from .functions import begin_stacks, end_stacks
from .session import ProfilerAction, ProfilerActivity, schedule, tensorboard_trace_handler

if TYPE_CHECKING:
    from ._scope import record_function as record_function


class NoCallbacksError(RuntimeError):
    """Of profile_all_threads."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"prof: operators of all threads are seen by the dispatcher's callbacks alone, which "
            f"are not to be had: {reason}. observe() without profile_all_threads sees those of its "
            f"own thread"
        )
        self.reason = reason


class _OfThreads:
    """Threads that have their own observe(), by the kernel's numbers."""

    def __init__(self) -> None:
        self._on: Dict[int, Any] = {}
        self._ended: Dict[int, int] = {}
        """When it last ended, of a thread, while others were on."""

    def begin(self, one: Any) -> None:
        for other in list(self._on.values()):
            if other._pid != one._pid:  # of the process that this one was forked from
                self._on.pop(id(other), None)
        self._on[id(one)] = one

    def end(self, one: Any) -> None:
        """A second time does nothing."""
        if self._on.pop(id(one), None) is None:
            return
        if self._on:
            self._ended[one._native] = monotonic_ns()
        else:
            self._ended.clear()

    def beside(self, one: Any, from_ns: int) -> List[int]:
        """Threads that were observed since then, but the one that this is for."""
        on = [other for other in list(self._on.values()) if other._pid == os.getpid()]
        found = {other._native for other in on}
        found.update(native for native, at in list(self._ended.items()) if at >= from_ns)
        return sorted(found - {one._native})


def _listens_already(torch: Any) -> bool:
    """Does emit_itt() tell prof's collector of this thread?"""
    kinds = getattr(torch._C._profiler, "ActiveProfilerType", None)
    return (
        _torch.error is None
        and kinds is not None
        and torch._C._autograd._profiler_type() == kinds.ITT
    )


def _memory() -> Any:
    """How torch's memory is recorded: by its reports. None: as malloc(), which libprof_memory.so
    records already, and torch's allocations would count twice. RuntimeError: neither."""
    if _torch_found.is_malloc_seen():
        return None
    memory, reason = _torch.memory()
    if memory is None:
        raise RuntimeError(
            f"prof: the memory of PyTorch's operators cannot be recorded by its own reports "
            f"({reason}). To record each malloc() instead, start the program {_preloaded()}"
        )
    return memory


_NOT_OF_ALL = (
    "prof: with profile_all_threads no memory is recorded, as by torch.profiler: torch reports it "
    "to the threads that ask for it. "
    "`python3 -m prof run --profile-memory` records each malloc() of all threads"
)


def _preloaded() -> str:
    try:
        return (
            f"by python -m prof run --profile-memory, or with "
            f"LD_PRELOAD={_torch_found.memory_library()} and PROF_MEMORY=1"
        )
    except FileNotFoundError as e:
        return f"with LD_PRELOAD=libprof_memory.so and PROF_MEMORY=1; {e}"


def _this_thread() -> Optional[threading.Thread]:
    """None: Python did not begin it. threading.current_thread() would make a dummy of it, which the
    program then finds among its threads, up to Python 3.12 for good."""
    active: Dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
    thread = active.get(threading.get_ident())
    return None if isinstance(thread, threading._DummyThread) else thread


class _Observed:
    """one: the observe(profile_all_threads=True) of the process, of the program's or of ``python -m
    prof run``."""

    one: Any = None


_observed_all, _observed_run = _Observed(), _Observed()


class observe:  # noqa: N801 (as profile)
    """The operators of the code inside are scopes of the category cpu_op, and
    torch.profiler.record_function()'s ranges are scopes of user_annotation. They are nested as
    torch.profiler's, and have sequence numbers. They are those that this thread calls, and those
    that autograd's threads run for it.

    They are recorded while something records: prof.profile(), prof.profiler.start(), PROF_LEVEL. As
    a context manager, or by start() and stop(), again and again. The program computes what it
    computes without. `way` says which way was taken.

    record_shapes: The inputs' shapes and dtypes are recorded, too. ITT has none, and a warning says
    so.

    profile_memory: torch's allocators report to prof, on this thread and on autograd's that work
    for it. If libprof_memory.so records malloc() already, its records are used.

    with_stack (if the profile has it, too): Every function is traced, on all threads, as by
    trace_functions(), whose errors it raises. If the program traces functions itself, stacks are of
    those.

    with_modules: Each call of an nn.Module on this thread is a scope around its operators, and a
    frame of their stacks.

    docs/reference/pytorch.md says what each column costs, and what is done without the dispatcher's
    callbacks.

    ImportError without torch. RuntimeError if torch's operators cannot be seen, with the reason.
    RuntimeError if this thread, or with profile_all_threads the process, is observed already."""

    _who = _torch_calls.FOR_ALL
    """With profile_all_threads."""

    def __init__(
        self,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        *,
        profile_all_threads: bool = False,
    ) -> None:
        self._is_for_all = bool(profile_all_threads)
        self._place: Any = _observed_all if profile_all_threads else _observed
        self._with_shapes, self._with_stack, self._with_modules = (
            bool(record_shapes),
            bool(with_stack),
            bool(with_modules),
        )
        self._modules: Any = None
        self._memory: Any = None
        self._tracing: Any = None
        self._with_memory = bool(profile_memory)
        self._running: Any = None
        self._native = 0
        self._begun_on: Optional[threading.Thread] = None
        self._thread = self._pid = 0
        self._is_left = False
        self.way = ""
        """Of the last start(): "callbacks" or "ITT"."""
        self.reason = ""
        """Why it is not "callbacks"."""

    def __deepcopy__(self, memo: Dict[int, Any]) -> "observe":
        """One that is not on. TypeError for any other."""
        if self._running is not None:
            raise TypeError("an observe() that is on cannot be copied: stop() it first")
        copied = self._with_shapes, self._with_memory, self._with_stack, self._with_modules
        return observe(*copied, profile_all_threads=self._is_for_all)

    def __enter__(self) -> "observe":
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def start(self) -> "observe":
        """Gives itself, for stop(). RuntimeError a second time without one."""
        torch = _torch.get()
        place = self._place
        before = getattr(place, "one", None)
        if before is not None and before._is_forsaken():
            before._end()
        if self._running is not None:
            raise RuntimeError("this observe() has been started already; stop() it first")
        if getattr(place, "one", None) is not None:
            raise RuntimeError(
                "another observe() is on in this thread, of a profile or by itself. There can be "
                "one at a time: stop() what start() has given, or use it by with; "
                "prof.torch.stop() ends the one that is on"
                if place is _observed
                else "another observe(profile_all_threads=True) is on in this process. There can "
                "be one at a time: prof.torch.stop() ends it"
            )
        memory = self._way_of_memory()
        running = self._choose(torch)
        if self._with_shapes and self.way == "ITT":
            warnings.warn(
                f"prof: the shapes of PyTorch's operators are missing. ITT sees names and times "
                f"alone, and the dispatcher's callbacks, which see shapes, cannot be used: "
                f"{self.reason}",
                RuntimeWarning,
                stacklevel=outside(),
            )
        _torch_group.ask(torch)
        self._running, self._thread, self._pid, self._is_left = (
            running,
            threading.get_ident(),
            os.getpid(),
            False,
        )
        self._begun_on, self._native = _this_thread(), threading.get_native_id()
        if not self._is_for_all:
            _of_threads.begin(self)
        try:
            if self._with_modules or self._with_stack:
                self._modules = Modules(torch, self._is_for_all, not self._with_modules)
                self._modules.follow()
            if self._with_stack:
                self._tracing = begin_stacks(self)
            if self._modules is not None:
                self._modules.start()
            operators.begin(self)
            running.__enter__()
            if memory is not None:
                self._memory = memory.reports()
                self._memory.start()
            place.one = self
            _ranges.begin(torch, self)
            atexit.register(self._stop_at_exit)
        except BaseException:  # a signal's handler may raise anywhere
            self._end()
            raise
        return self

    def check(self) -> None:
        """Raises what start() would on account of this process's torch alone."""
        self._choose(_torch.get())
        if self._with_memory and not self._is_for_all:
            _memory()

    def _way_of_memory(self) -> Any:
        """None: nothing is to be begun for it."""
        if not self._with_memory:
            return None
        if self._is_for_all and not _torch_found.is_malloc_seen():
            warnings.warn(_NOT_OF_ALL, RuntimeWarning, stacklevel=4)
        return None if self._is_for_all else _memory()

    def _choose(self, torch: Any) -> Any:
        """The callbacks if they can be used, otherwise ITT."""
        calls, self.reason = _torch.calls()
        if calls is not None and self._is_for_all and not calls.has_for_all():
            raise NoCallbacksError("this torch does not export at::addGlobalCallback()")
        if calls is not None:
            if _listens_already(torch):
                raise RuntimeError(
                    "torch's emit_itt() is on in this thread, and its operators are recorded by "
                    "that already"
                )
            self.way = "callbacks"
            return ByCalls(
                calls, self._with_shapes, self._who if self._is_for_all else _torch_calls.FOR_THREAD
            )
        if self._is_for_all:
            raise NoCallbacksError(self.reason)
        if _torch.error is not None:
            raise type(_torch.error)(
                f"{_torch.error}. The dispatcher's callbacks, which need no ITT, are not to be "
                f"had: {self.reason}"
            ) from None
        if _torch_found.is_profiler_on(torch):
            raise RuntimeError(
                "a profiler of torch's is on in this thread: torch.profiler, emit_itt(), or "
                "emit_nvtx(). There can be one at a time"
            )
        self.way = "ITT"
        return Once(torch.autograd.profiler.emit_itt())

    def stop(self) -> None:
        """Without a start it does nothing. RuntimeError on another thread than start()'s while that
        lives, but with profile_all_threads: then it goes on, until its own thread stops it, or
        begins another."""
        if self._running is None:
            return
        if not self._may_end_here():
            self._is_left = True
            raise RuntimeError(
                "observe() is stopped by the thread that has started it, and goes on there"
            )
        self._end()
        _torch_group.ask(_torch.module)  # where the program has joined its group meanwhile

    def wish(self, from_ns: int, no_functions: bool, no_modules: bool) -> Any:
        """What a profile of this observe() has since then, by time.monotonic_ns(). None:
        everything, since no other thread was observed meanwhile."""
        others = [] if self._is_for_all else _of_threads.beside(self, from_ns)
        if not others:
            return None
        return sized(
            ViewWish,
            number=getattr(self._running, "number", 0),
            hides_functions=int(no_functions),
            hides_modules=int(no_modules),
            others=(ctypes.c_uint64 * len(others))(*others),
            other_count=len(others),
        )

    def leave(self) -> None:
        """Its user is gone, and any thread may have found that out. If observe() cannot end on that
        thread, it ends when its own thread begins another one."""
        self._is_left = True
        if self._running is not None and self._may_end_here():
            self._end()

    def _may_end_here(self) -> bool:
        return self._is_for_all or self._thread == threading.get_ident() or self._is_thread_gone()

    def _is_thread_gone(self) -> bool:
        """Of a thread that Python did not begin only a fork on another one says so: it may be
        anywhere. The main thread is not alive once the interpreter ends, and here nevertheless."""
        if self._begun_on is None:
            return self._pid != os.getpid() and self._thread != threading.get_ident()
        return self._begun_on is not _this_thread() and not self._begun_on.is_alive()

    def _is_forsaken(self) -> bool:
        """Nobody will stop it: somebody tried to, on another thread, or it is of the process that
        this one was forked from."""
        return self._is_left or self._pid != os.getpid()

    def _end(self) -> None:
        """An interrupt may come anywhere: then the next call does what is left. Each step may be
        done twice."""
        operators.end(self)
        if self._modules is not None:
            self._modules.remove()
            self._modules = None
        if self._memory is not None:
            self._end_memory()
        if self._is_for_all or not self._is_thread_gone():
            self._running.__exit__(None, None, None)
        else:
            self._running.forget()
        if self._tracing is not None:
            end_stacks(self._tracing, self)
            self._tracing = None
        if getattr(self._place, "one", None) is self:
            self._place.one = None
        _of_threads.end(self)
        _ranges.end(_torch.module, self)
        atexit.unregister(self._stop_at_exit)
        self._running = None

    def _end_memory(self) -> None:
        """Of another thread that lives it goes on: from here torch's part cannot be reached."""
        if self._is_thread_gone():
            self._memory.forget()
        elif self._thread == threading.get_ident():
            self._memory.stop()
        self._memory = None

    def _stop_at_exit(self) -> None:
        """Never stopped: torch would warn of a leaked callback when its thread's state goes. One of
        another thread is past help."""
        if self._may_end_here():
            self.stop()


class ObserveRun(observe):
    """Of ``python -m prof run --torch``: until the process ends, beside what the program observes
    itself. Operators are those of all threads, memory is that of the thread that calls start(), and
    of autograd's threads that work for it."""

    _who = _torch_calls.FOR_RUN

    def _way_of_memory(self) -> Any:
        return _memory() if self._with_memory else None

    def __init__(self, **asked: bool) -> None:
        super().__init__(profile_all_threads=True, **asked)
        self._place = _observed_run


_of_threads = _OfThreads()
_observed = threading.local()
"""one: the observe() of this thread."""


def _is_observed() -> bool:
    """Whether this thread is, by itself or with all."""
    places = (_observed, _observed_all, _observed_run)
    return any(getattr(place, "one", None) is not None for place in places)


def _asked_of_ranges() -> Optional[bool]:
    """_torch_ranges.Asked."""
    ones = [getattr(place, "one", None) for place in (_observed, _observed_all, _observed_run)]
    asked = [one._with_shapes for one in ones if one is not None]
    return any(asked) if asked else None


_ranges = _torch_ranges.Ranges(_asked_of_ranges)


def stop() -> None:
    """Ends what observe() has begun and nobody holds: this thread's, and that of all threads; not
    that of ``python -m prof run --torch``. Where none is on it does nothing; a later stop() of
    theirs does nothing, either."""
    for place in (_observed, _observed_all):
        one = getattr(place, "one", None)
        if one is not None:
            one.stop()


class profile(_torch_install.profile):  # noqa: N801 (torch's name)
    """prof.profile(torch=True), and what install() puts behind torch.profiler.profile. ImportError
    without torch."""

    @_torch_install.with_options
    def __init__(self, **options: Any) -> None:
        _torch.get()
        observer = getattr(import_module("torch.profiler"), "ExecutionTraceObserver", None)
        from_env = getattr(observer, "build_execution_trace_obs_from_env", None)
        if from_env is not None and not options.get("execution_trace_observer"):
            options["execution_trace_observer"] = from_env()  # None without torch's variable
        super().__init__(**options)


def install() -> "_torch_install.Installed":
    """Puts prof behind torch.profiler.profile, schedule, tensorboard_trace_handler and
    ProfilerAction, for code that is not yours: also in modules that have imported them already. A
    profile of theirs is then prof.profile(torch=True). uninstall(), or the end of ``with
    install():``, takes it back; profiles that were made meanwhile stay prof's. ImportError without
    torch."""
    _torch.get()
    return _torch_install.installed.install()


def uninstall() -> None:
    """Takes back what install() has replaced. Where nothing is installed it does nothing."""
    _torch_install.installed.uninstall()


_OF_TORCH = (
    "record_function",
    "kineto_available",
    "ExecutionTraceObserver",
    "ProfilerActivityConfig",
    "PerformanceMetricsConfig",
    "CuspyConfig",
)
"""Names of torch.profiler that prof leaves as torch's objects. record_function's ranges are
recorded, and torch.compile knows the class. An execution trace is not part of Kineto's trace. The
configurations of activities are only read. A release may lack some of the names."""


def __getattr__(name: str) -> Any:
    if name not in _OF_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    of = "autograd.profiler" if name == "record_function" else "profiler"
    try:
        theirs = import_module(f"torch.{of}")
    except ImportError as e:
        why = f"{name} is torch's, and torch cannot be imported: {e}"
        raise AttributeError(why) from e
    if not hasattr(theirs, name):
        version = getattr(sys.modules.get("torch"), "__version__", "")
        raise AttributeError(f"{name} is torch's, and the torch.{of} of {version} has none")
    return getattr(theirs, name)


def supported_activities() -> Set[ProfilerActivity]:
    """The activities that can be recorded here and that torch can use. prof.supported_activities()
    also has those of other programs (OpenCL)."""
    found = session.supported_activities()
    theirs: Set[Any] = import_module("torch.profiler").supported_activities()
    if all(activity.name != "PrivateUse1" for activity in theirs):
        found.discard(ProfilerActivity.PrivateUse1)
    return found


_torch = Torch()
_torch_found.tell_of_torch()

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "collector",
    "install",
    "observe",
    "profile",
    "record_function",
    "schedule",
    "stop",
    "supported_activities",
    "tensorboard_trace_handler",
    "uninstall",
]
__all__ += [name for name in _OF_TORCH[1:] if hasattr(sys.modules.get("torch.profiler"), name)]


def __dir__() -> List[str]:
    return list(__all__)
