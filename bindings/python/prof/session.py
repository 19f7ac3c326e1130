"""torch.profiler's face: profile, schedule, ProfilerAction, ProfilerActivity,
tensorboard_trace_handler. What is recorded is the process's one capture; a profile is a stretch of
its time, so several may be open at once, and a runtime in C that records into it stands in the same
tables."""

from __future__ import annotations

import copy
import enum
import operator
import os
import sys
import threading
import warnings
import weakref
from os import getpid, urandom  # by name: a program may have traced the modules
from time import monotonic_ns, time_ns
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    NamedTuple,
    NoReturn,
    Optional,
    Set,
    Tuple,
    Type,
    TypeVar,
)

from . import _activities, _arguments, _torch_group, tables
from . import _structs as s
from ._library import C, Owner, encoded, short, sized, whole
from ._scope import functions, modules, operators, record_function, set_stack_frames
from ._stacks import FRAMES_MOST, Frames
from .device import is_theirs
from .tables import EventList, FunctionEvent, FunctionEventAvg, Window
from .trace import ONLY_CHILDREN, OPEN_CALLS, OUTER_FUNCTIONS, Trace

_Kind = TypeVar("_Kind", bound=enum.Enum)


class ProfilerAction(enum.Enum):
    """What a schedule says for a step. Equal to torch.profiler's of the same name: either profile
    takes the other one's schedule."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4
    """torch.profiler sets it itself. prof does not, and a schedule must not say it."""

    def __eq__(self, other: object) -> bool:
        return self is other or is_theirs(self, other)

    __hash__ = enum.Enum.__hash__  # by the name, as theirs


class ProfilerActivity(enum.Enum):
    """What is recorded. CPU: scopes. Any other: also what devices record themselves (kernels,
    copies), of all back ends, whichever device is named. Equal to torch.profiler's of the same
    name."""

    CPU = 0
    CUDA = 2
    XPU = 1
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5

    def __eq__(self, other: object) -> bool:
        return self is other or is_theirs(self, other)

    def __hash__(self) -> int:
        return hash(self.value)  # as theirs


Schedule = Callable[[int], ProfilerAction]


def supported_activities() -> Set[ProfilerActivity]:
    """What can be recorded here: CPU, and by torch's names the devices of back ends that work
    (CUDA, which HIP's are, too; PrivateUse1 for others as OpenCL). Looks for the vendors'
    libraries, some ms each the first time."""
    from .device import TYPES, backends

    working = {state.device_type for state in backends() if state.result == 0}
    cuda = {TYPES["cuda"], TYPES["hip"]}
    found = {ProfilerActivity.CPU}
    if working & cuda:
        found.add(ProfilerActivity.CUDA)
    if working - cuda:
        found.add(ProfilerActivity.PrivateUse1)
    return found


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Schedule:
    """After skip_first steps, cycles of wait, warmup and active steps; the last active one says
    RECORD_AND_SAVE. repeat 0: for as long as it goes; skip_first_wait 1: the first cycle does not
    wait. AssertionError (a ValueError, too) for negative counts and for active 0, as
    torch.profiler."""
    for name, value in (
        ("wait", wait),
        ("warmup", warmup),
        ("active", active),
        ("repeat", repeat),
        ("skip_first", skip_first),
    ):
        if not (hasattr(value, "__index__") or hasattr(value, "__float__")):
            raise TypeError(f"{name} must be an int, not {short(value)} of {type(value).__name__}")
        if value < (1 if name == "active" else 0):
            raise ScheduleError(
                f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), "
                f"warmup={warmup} (need >= 0), active={active} (need > 0), repeat={repeat} (need "
                f">= 0), skip_first={skip_first} (need >= 0)."
            )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ScheduleError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class ScheduleError(AssertionError, ValueError):
    """torch.profiler raises an AssertionError."""


class StateError(AssertionError, RuntimeError):
    """The same."""


_NOT_STARTED = "Profiler must be initialized before stopping trace: call start() first"
_CLEARED = (
    "Profiler clears events at the end of each cycle. Only events from the current cycle will be "
    "reported. To keep events across cycles, set acc_events=True."
)
_warned: Set[str] = set()


def _warn_of_cleared_events() -> None:
    """Once a process, as torch.profiler does."""
    if _CLEARED not in _warned:
        _warned.add(_CLEARED)
        warnings.warn(_CLEARED, UserWarning, stacklevel=_outside())


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: Optional[str] = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[["profile"], None]:
    """An on_trace_ready that writes "WORKER.NANOSECONDS.pt.trace.json" (and .gz) into a directory,
    which it makes; worker_name is "HOST_PID" by default. RuntimeError where the directory cannot be
    made. use_python_export changes nothing. ValueError for a worker_name with a slash."""
    if not isinstance(dir_name, (str, os.PathLike)):
        raise TypeError(
            f"dir_name must be the path of a directory, a str, not {short(dir_name)} of "
            f"{type(dir_name).__name__}"
        )
    worker_name = str(worker_name) if worker_name else None
    if worker_name is not None and os.path.basename(worker_name) != worker_name:
        raise ValueError(
            f"worker_name is part of a file's name, and has no slash: {short(worker_name)}"
        )

    def handler(prof: "profile") -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as e:
            raise RuntimeError(f"Can't create directory: {dir_name}") from e
        import socket

        worker = worker_name or f"{socket.gethostname()}_{getpid()}"
        prof.export_chrome_trace(
            os.path.join(
                dir_name, f"{worker}.{time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
            )
        )

    return handler


# ---- the capture that all profiles of the process share ----

STACK_FRAMES = 32
LEVEL_PAUSED = -1  # PROF_LEVEL_PAUSED of <prof/profiler.h>
DEVICES_ASKED = 16
"""How many devices of each type are asked whether their memory was recorded."""
DEVICES_DEFAULT, DEVICES_SCOPES, DEVICES_RECORDS = range(3)  # prof_devices
_users: Dict[int, Tuple["weakref.ref[profile]", bool]] = {}
"""Who records, and whether with stacks."""


def _wish(user: "profile", level: int) -> None:
    """The profile records from here on; level 0: no more. C counts who does, and what the program
    has asked for itself. There is no lock here, which a signal's handler that raises could leave
    taken; where one has cut this short in the very end of a profile, the next one finds it."""
    if level:
        _users[id(user)] = (weakref.ref(user), user.with_stack)
    C.check(C.prof_level_want_with(id(user), level, user._devices))
    if not level:
        _users.pop(id(user), None)
    for who, (found, _) in list(_users.items()):
        if found() is None:
            C.prof_level_want(who, 0)
            _users.pop(who, None)
    _set_stacks()


def _set_stacks() -> None:
    while True:
        wanted = any(with_stack for _, with_stack in list(_users.values()))
        set_stack_frames(STACK_FRAMES if wanted else 0)
        # else another thread came between
        if wanted == any(with_stack for _, with_stack in list(_users.values())):
            return


def _forget_users() -> None:
    """In a forked child nobody records but who has begun there; what the process does stays as it
    is."""
    if _users:
        _users.clear()
        _set_stacks()


_forks = 0
"""Forks, in a program that uses multiprocessing, while a profile recorded."""


def _count_fork() -> None:
    global _forks
    # With PROF_OUTPUT each child writes a capture of its own.
    if _users and "multiprocessing.popen_fork" in sys.modules and "PROF_OUTPUT" not in os.environ:
        _forks += 1


def _processes_made() -> int:
    """How many multiprocessing has made here so far, however they begin: by fork, spawned, or from
    a fork server, for a pool or alone. Its own counter shows the next one: "count(3)"."""
    counter = getattr(sys.modules.get("multiprocessing.process"), "_process_counter", None)
    digits = repr(counter)[len("count(") : -1]
    return int(digits) if digits.isdigit() and "PROF_OUTPUT" not in os.environ else 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_users, after_in_parent=_count_fork)

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile(Owner):  # noqa: N801 (torch's name)
    """Records the code inside, and what runs meanwhile on all threads. As a context manager, or by
    start() and stop().

    activities: with CPU alone, scopes. With a device's activity, also what devices record
    themselves: recording begins when all back ends are ready, or after one second. None: scopes,
    and the devices' records that cost nothing to enable.

    As torch.profiler's: schedule, on_trace_ready, record_shapes, profile_memory, with_stack,
    with_flops, acc_events, custom_trace_id_callback. Of experimental_config profile_all_threads and
    record_python_gc_info have an effect. A warning names the options that have none.
    execution_trace_observer, torch's or another one, starts and stops with the recording. events()
    checks post_processing_timeout_s between cycles. use_cuda is, as in torch, another way to give
    an activity.

    Beyond torch's: level: 1 records kernels and operators, 2 also the runtime around them. torch:
    records PyTorch's operators on the thread that calls start() and step(). It uses
    prof.torch.observe() with the profile's record_shapes, profile_memory, with_stack and
    with_modules, and start() raises what observe() raises. with_modules has no effect without
    torch. docs/reference/torch-differences.md lists what differs.

    Any thread may call it. A handler is called when the state has changed, without the lock: it may
    call start(), step() and stop(), and what it raises leaves the profile as it should be. In a
    forked child it has ended, in silence."""

    _has_window_marks = False
    """Do its traces end in Kineto's rows of a profile's begin and end?"""

    _is_inherited = False
    """Has it been recording when this process was forked?"""

    _has_failed = False
    """Did its `with` block end by an exception?"""

    def __init__(
        self,
        *,
        activities: Optional[Iterable[ProfilerActivity]] = None,
        schedule: Optional[Schedule] = None,
        on_trace_ready: Optional[Callable[["profile"], Any]] = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: Optional[bool] = None,
        custom_trace_id_callback: Optional[Callable[[], str]] = None,
        post_processing_timeout_s: Optional[float] = None,
        level: int = 1,
        torch: bool = False,
    ) -> None:
        try:
            level = operator.index(level)
        except TypeError:
            raise TypeError(f"level must be 1 or 2, not {level!r}") from None
        if level not in (1, 2):
            raise ValueError(
                f"level must be 1 (kernels and operators) or 2 (also the runtime around them), not "
                f"{level!r}"
            )
        self.level = level
        self._chosen = {ProfilerActivity.CPU}
        self.activities: Set[Any] = set(self._chosen)
        """As they were given: torch's own members, too."""
        left_out: Set[ProfilerActivity] = set()
        if activities is not None:
            found, without, ignored = _activities.flat(_activities.listed(activities))
            self._chosen, left_out = _chosen(found), _chosen(without)
            self.activities = set(found)
            if ignored:
                words = f"activities: of {', '.join(ignored)} all types are recorded"
                warnings.warn(words, UserWarning, stacklevel=_outside())
        if use_cuda is not None:
            warnings.warn(
                "use_cuda is deprecated, use activities argument instead",
                FutureWarning,
                stacklevel=2,
            )
            self._choose(ProfilerActivity.CUDA, use_cuda)
        if not self._chosen and not left_out:
            raise ScheduleError("No valid profiler activities found")
        is_default = activities is None and use_cuda is None
        self._devices = (
            DEVICES_DEFAULT
            if is_default
            else DEVICES_RECORDS
            if self._chosen - {ProfilerActivity.CPU}
            else DEVICES_SCOPES
        )
        self._devices_now, self._is_paused = self._devices, False  # of the cycle that is recorded
        schedule = _arguments.callback("schedule", schedule)
        self.with_flops = _arguments.flag("with_flops", with_flops)
        self.record_shapes = _arguments.flag("record_shapes", record_shapes) or self.with_flops
        self.profile_memory = _arguments.flag("profile_memory", profile_memory)
        self.with_stack = _arguments.flag("with_stack", with_stack)
        self.with_modules = _arguments.flag("with_modules", with_modules)
        self.experimental_config = _arguments.experimental_config(experimental_config)
        self.execution_trace_observer = _arguments.observer(execution_trace_observer)
        self.acc_events = bool(acc_events)
        self.custom_trace_id_callback = _arguments.callback(
            "custom_trace_id_callback", custom_trace_id_callback
        )
        self.post_processing_timeout_s = _arguments.timeout(post_processing_timeout_s)
        self.on_trace_ready = _arguments.callback("on_trace_ready", on_trace_ready)
        self.record_steps = schedule is not None
        self.schedule: Schedule = (
            schedule if schedule is not None else lambda _: ProfilerAction.RECORD
        )
        self.step_num = 0
        self.current_action = self._action_of(0)
        self._lock, self._pid = threading.RLock(), getpid()
        self._is_open = self._is_recording = False
        self._step_scope: Any = None
        self._from_ns = 0
        self._observer: Any = None
        self._collections: Any = None
        all_threads = experimental_config is not None and self._take_experimental(
            experimental_config
        )
        if torch:
            from .torch import observe  # imports torch

            self._observer = observe(
                self.record_shapes,
                self.profile_memory,
                self.with_stack,
                self.with_modules,
                profile_all_threads=all_threads,
            )
        self._functions_before, self._shows_functions, self._modules_before, self._shows_modules = (
            0,
            False,
            0,
            False,
        )
        self._operators_before, self._shows_operators = 0, False
        self._before = _Counts(0, 0, 0)
        self._forks_before = self._processes_before = 0
        self._cycles: List[Window] = []
        self._has_started = False
        self._trace_id: Optional[str] = None
        self._metadata: Dict[str, str] = {}

    def _choose(self, activity: ProfilerActivity, is_wanted: bool) -> None:
        (self._chosen.add if is_wanted else self._chosen.discard)(activity)
        given = {one for one in self.activities if _own(one, ProfilerActivity) is activity}
        if not is_wanted:
            self.activities -= given
        elif not given:
            self.activities.add(activity)

    def _take_experimental(self, config: Any) -> bool:
        """profile_all_threads. What changes nothing is a warning."""
        from . import _experimental

        found = _experimental.Experimental(config)
        if found.ignored:
            warnings.warn(found.warning(), UserWarning, stacklevel=_outside())
        if found.with_collections and self.with_stack:  # without stacks torch has none, either
            self._collections = _experimental.Collections()
        return found.all_threads

    def _action_of(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        found = _own(action, ProfilerAction)
        if found is None:
            raise TypeError(
                f"the schedule says {action!r} for step {step}, which is no ProfilerAction"
            )
        if found is ProfilerAction.DEVICE_STOPPED:
            raise ValueError(
                f"the schedule says DEVICE_STOPPED for step {step}. "
                "ProfilerAction.DEVICE_STOPPED is set internally by a profiler, never by a schedule"
            )
        return found

    # ---- life ----

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._has_failed = any(error)  # then no warning of empty columns: the exception says more
        self.stop()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()  # as torch's

    def __deepcopy__(self, memo: Dict[int, Any]) -> "profile":
        """One that has never started. TypeError for any other: it has a part of the capture."""
        with self._held():
            if self._is_open or self._is_recording or self._cycles or self._is_inherited:
                raise TypeError(
                    "a profile that was started cannot be copied: copy it before its start(), or "
                    "make another one"
                )
            state, made = dict(self.__dict__), type(self).__new__(type(self))
        memo[id(self)] = made
        del state["_lock"]
        made.__dict__.update(copy.deepcopy(state, memo))
        made._lock = threading.RLock()
        return made

    def __del__(self) -> None:
        """Dropped without a stop(): nothing is recorded for it any longer."""
        try:
            if id(self) in _users:
                _wish(self, 0)
            if self._observer is not None:
                self._observer.leave()
        except Exception:  # the interpreter ends
            pass

    def _held(self) -> Any:
        """The lock around its state. In a forked child a new one, since another thread may have
        held it, and the profile has ended: that recording is the parent's."""
        if self._pid != getpid():
            self._lock, self._pid = threading.RLock(), getpid()
            self._is_inherited = self._is_inherited or self._is_recording
            self._is_open = self._is_recording = False
            self._step_scope = None
            if self._observer is not None:
                self._observer.leave()
        return self._lock

    def start(self) -> None:
        """Begins with step 0; a second time, after a stop(), where the steps stand. RuntimeError
        when it has been started and not stopped."""
        with self._held():
            if self._is_open:
                raise RuntimeError(
                    "this profile has been started already; stop() it first, or make another one"
                )
            if self._observer is not None:
                self._observer.check()
            self._is_open = self._has_started = True
            try:
                self._settle()
            except BaseException:  # a signal's handler may raise anywhere
                self._is_open = False
                self._step_scope = None
                self._give_up()
                raise

    def stop(self) -> None:
        """Ends it; what has been recorded becomes the trace, and on_trace_ready is called, unless
        the schedule was not at it. A second time it does nothing. AssertionError without a start,
        unless the schedule does not begin with a recording, as torch.profiler's."""
        with self._held():
            if not self._has_started and self.current_action is not ProfilerAction.NONE:
                raise StateError(_NOT_STARTED)
            # recording alone: an interrupt has cut a stop() short
            if not self._is_open and not self._is_recording:
                if self._observer is not None:
                    # where another thread has stopped the profile, which could not stop this
                    self._observer.stop()
                return
            self._is_open = False
            self._end_step()
            is_ready = self._leave(self.current_action, None)
        if is_ready and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def prepare_trace(self) -> None:
        """Nothing has to be prepared for start_trace(), except in torch.profiler."""

    def start_trace(self) -> None:
        """Records until stop_trace(), whatever the schedule says. RuntimeError where it records
        already."""
        with self._held():
            if self._is_open or self._is_recording:
                raise RuntimeError("this profile has been started already; stop() it first")
            if self._observer is not None:
                self._observer.check()
            self._is_open = self._has_started = True
            try:
                self._start_recording()
            except BaseException:
                self._is_open = False
                self._give_up()
                raise

    def stop_trace(self) -> None:
        """What has been recorded becomes the trace. on_trace_ready is not called. A second time it
        does nothing. AssertionError without a start."""
        with self._held():
            if not self._has_started:
                raise StateError(_NOT_STARTED)
            self._is_open = False
            self._end_step()
            if self._is_recording:
                self._stop_recording()

    def wait_for_exports(self) -> None:
        """Exports are complete when they return, so there is nothing to wait for."""

    def take_pending_cuspy_export(self) -> None:
        """None, as in torch.profiler where cuspy does not record."""

    def step(self) -> None:
        """The next step begins. Outside of start() and stop() it is counted, and nothing else."""
        try:
            with self._held():
                before, self.current_action = (
                    self.current_action,
                    self._action_of(self.step_num + 1),
                )
                self.step_num += 1
                self._end_step()
                if not self.record_steps and self._is_recording:
                    C.prof_step()
                is_ready = self._is_open and self._leave(before, self.current_action)
            if is_ready and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        finally:
            with self._held():
                self._settle()

    def _settle(self) -> None:
        """Records, in a step's scope, where its action says so; what does so already goes on."""
        if self._is_open and self.current_action in _RECORDING and not self._is_recording:
            self._start_recording()
        if self._is_open and self.record_steps and self._step_scope is None:
            self._step_scope = record_function(f"{tables.STEP}{self.step_num}")
            self._step_scope.__enter__()

    def _end_step(self) -> None:
        scope, self._step_scope = self._step_scope, None
        if scope is not None:
            scope.__exit__(None, None, None)

    def _leave(self, before: ProfilerAction, now: Optional[ProfilerAction]) -> bool:
        """Stops recording where that action is not to go on. Is there a trace for
        on_trace_ready?"""
        is_saved = before is ProfilerAction.RECORD_AND_SAVE or (
            now is None and before is ProfilerAction.RECORD
        )
        if before in _RECORDING and (is_saved or now not in _RECORDING):
            was_recording = self._is_recording
            if was_recording:
                self._stop_recording()
            if now is not None and not is_saved:
                warnings.warn(f"Incorrect schedule: RECORD followed by {now.name}", stacklevel=3)
            return is_saved and was_recording
        if before is ProfilerAction.WARMUP and now not in (*_RECORDING, ProfilerAction.WARMUP):
            self._start_recording(is_brief=True)
            self._stop_recording()
            if now is not None:
                warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        return False

    def _give_up(self) -> None:
        """What has been begun is none."""
        self._is_recording = False
        self._end_wishes()

    def _end_wishes(self) -> None:
        """Functions that stood open for the stacks end first: behind the recording's end they would
        count as lost."""
        try:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()
            if self._collections is not None:
                self._collections.stop()
            if self._observer is not None:
                self._observer.stop()
        finally:
            _wish(self, 0)

    def _start_recording(self, is_brief: bool = False) -> None:
        trace_id = (
            self.custom_trace_id_callback()
            if self.custom_trace_id_callback is not None
            else urandom(16).hex().upper()
        )
        # the callback has called start(), step() or stop()
        if self._is_recording or not (self._is_open or is_brief):
            return
        try:
            self._devices_now, self._is_paused = self._devices, False
            _wish(self, self.level)
            self._trace_id = trace_id
            self._functions_before, self._modules_before = functions.before(), modules.before()
            self._operators_before = operators.before()
            self._forks_before, self._processes_before = _forks, _processes_made()
            if self._observer is not None:
                self._observer.start()
            if self._collections is not None:
                self._collections.start()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.start()
            if not self.acc_events:
                if self._cycles and self._observer is not None:
                    _warn_of_cleared_events()
                self._cycles, self._shows_functions, self._shows_modules = [], False, False
                self._shows_operators = False
            self._before = _counts_now()
            self._from_ns = monotonic_ns()
            self._is_recording = True
        except BaseException:
            self._give_up()
            raise
        if not (self._is_open or is_brief):  # a signal's handler has called stop() meanwhile
            self._give_up()

    def _stop_recording(self) -> None:
        to_ns = monotonic_ns()
        if not self._is_recording:
            return
        try:
            self._is_recording = False
            self._shows_functions = (
                self._shows_functions or functions.begun != self._functions_before
            )
            self._shows_modules = self._shows_modules or modules.begun != self._modules_before
            self._shows_operators = self._are_operators_shown(True)
            window = self._window(Trace.now(), to_ns)
            self._cycles.append(window)
        finally:
            if not self._is_recording:  # else a signal's handler has begun it anew
                self._end_wishes()
        lost = window.lost
        if lost:
            warnings.warn(
                f"{lost} scopes of this profile are not in it: {self.loss_text()}. "
                f"{_advice(was_full=self._before.other > 0)}",
                RuntimeWarning,
                stacklevel=_outside(),
            )
        # PyTorch tells an observer, though nothing may have been allocated yet.
        is_unseen = self._observer is None and not _is_memory_told()
        if self.profile_memory and not self._has_failed and is_unseen:
            warnings.warn(_NO_MEMORY, RuntimeWarning, stacklevel=_outside())
        made = _processes_made() - self._processes_before
        workers = max(_forks - self._forks_before, made)
        if workers > 0:
            who = "1 process was" if workers == 1 else f"{workers} processes were"
            words = f"{who} begun while this profile recorded: {_NO_WORKERS}"
            warnings.warn(words, RuntimeWarning, stacklevel=_outside())

    # ---- what was recorded ----

    def _window(self, trace: Trace, to_ns: int) -> Window:
        info = trace.info()
        error, start_ns = int(info.clock_error_ns) + 1, int(info.start_ns)
        begin = max(self._from_ns - start_ns - error, 0)
        view = self._view_of(trace)
        return Window(
            view or trace,
            begin,
            max(to_ns - start_ns + error, begin + 1) if to_ns else 0,
            max(self._from_ns - start_ns, 0),
            _lost_between(self._before, _counts(trace)),
            trace,
        )

    def _view_of(self, trace: Trace) -> Optional[Trace]:
        """The view of this profile's thread. None: the profile has the whole trace."""
        if self._observer is None:
            return None
        without = not self.with_stack and not self._are_functions_shown()
        wish = self._observer.wish(self._from_ns, without, without and not self.with_modules)
        return None if wish is None else trace._view(wish)

    def _windows(self) -> List[Window]:
        """What has been recorded, by cycles; of the one that goes on, so far."""
        with self._held():
            running = [self._window(Trace.now(), 0)] if self._is_recording else []
        if not self._cycles and not running:
            raise StateError(
                "the profile has ended: this process was forked from the one that it records"
                if self._is_inherited
                else "there is no trace yet: the profile has not recorded (see its schedule)"
            )
        return self._cycles + running

    @property
    def trace(self) -> Trace:
        """The capture as it was when the last recording ended. Beyond torch.profiler.
        AssertionError before that."""
        window = self._windows()[-1]
        return window.whole or window.trace

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: Optional[bool] = None,
    ) -> EventList[FunctionEventAvg]:
        """Scopes added up by name, and by input shapes and the innermost stack frames where asked
        for, in the order of their first calls. group_by_overload_name changes nothing: there are no
        overloads. include_python_functions: whether traced functions are rows; None: those of
        trace_functions() are, those that are traced for stacks alone are not; calls of modules are
        with with_modules. AssertionError before anything was recorded."""
        functions = (
            self._are_functions_shown()
            if include_python_functions is None
            else bool(include_python_functions)
        )
        if whole(group_by_stack_n, "group_by_stack_n", -FRAMES_MOST, FRAMES_MOST) < 0:
            return self.events().key_averages(  # as torch's: no groups
                bool(group_by_input_shape), group_by_stack_n, group_by_overload_name, functions
            )
        found = tables.averages(
            self._windows(),
            by_shape=bool(group_by_input_shape),
            stack_frames=group_by_stack_n,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            functions=functions,
            modules=functions or self._are_modules_shown(),
            rules=self._rules(),
        )
        if self._observer is None and "torch" in sys.modules:
            found._note = (
                "No scopes: of PyTorch's operators there are some with prof.profile(torch=True), "
                "inside of prof.torch.observe(), or by python -m prof run --torch script.py\n"
            )
            if not any(average.category == "cpu_op" for average in found):
                found._hint = (
                    "PyTorch's operators are not among these: prof.profile(torch=True) has them\n"
                )
        return found

    def _rules(self) -> int:
        """Of tables, as torch.profiler has them."""
        is_stack = self.with_stack and not self._are_functions_shown()
        rules = OPEN_CALLS | (OUTER_FUNCTIONS if is_stack else 0)
        return rules | (ONLY_CHILDREN if self._are_operators_shown() else 0)

    def _are_operators_shown(self, is_ending: bool = False) -> bool:
        """Whether PyTorch's were observed, by this profile or beside it."""
        is_recording = is_ending or self._is_recording
        return self._shows_operators or (is_recording and operators.begun != self._operators_before)

    def _are_functions_shown(self) -> bool:
        return self._shows_functions or (
            self._is_recording and functions.begun != self._functions_before
        )

    def _are_modules_shown(self) -> bool:
        """Of a profile that observes itself by its own word."""
        return self.with_modules or (
            self._observer is None
            and (
                self._shows_modules
                or (self._is_recording and modules.begun != self._modules_before)
            )
        )

    def events(self) -> EventList[FunctionEvent]:
        """Each scope, by its start. With post_processing_timeout_s: of as many cycles as are begun
        within that time; a warning says what is left out. AssertionError before anything was
        recorded."""
        windows = self._windows()
        if self.post_processing_timeout_s is None:
            return self._events_of(windows)
        deadline = monotonic_ns() + self.post_processing_timeout_s * 1e9
        found = self._events_of([])
        for place, window in enumerate(windows):
            if monotonic_ns() >= deadline:
                self._note_timeout(len(windows) - place, len(found))
                break
            part = self._events_of([window])
            tables.number(part, len(found), found._python_ids)
            found._python_ids += part._python_ids
            found.extend(part)
            found.lost += part.lost
            found._use_device = found._use_device or part._use_device
        return found

    def _events_of(self, windows: List[Window]) -> EventList[FunctionEvent]:
        return tables.single_events(
            windows,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            with_stack=self.with_stack,
            shows_functions=self._are_functions_shown(),
            modules=self._are_modules_shown(),
            merges_only_children=self._are_operators_shown(),
        )

    def _note_timeout(self, cycles: int, count: int) -> None:
        """events() has left out so many cycles."""
        warnings.warn(
            f"events() timed out after {self.post_processing_timeout_s:g} s "
            f"(post_processing_timeout_s), returning partial results with {count} events: {cycles} "
            "of the cycles are not among them",
            RuntimeWarning,
            stacklevel=_outside(),
        )

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Chrome JSON, compressed where the path ends in .gz; it opens in Perfetto,
        chrome://tracing and TensorBoard: of the last cycle. Written at C's rate; what is under the
        path is never half a file. use_python_export changes nothing. OSError and its kin."""
        encoded(path, "path")
        window = self._windows()[-1]
        metadata = self._all_metadata(window.trace.info(), path)
        window.trace.dump(
            path,
            "chrome",
            window.from_ns,
            window.to_ns,
            metadata,
            self.with_stack,
            self._has_window_marks,
            self.profile_memory,
            [f for f in Frames().folders if "\0" not in f] if self.with_stack else (),
        )

    def _all_metadata(self, trace: s.TraceInfo, path: str) -> Dict[str, str]:
        words = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
        found = {word: "1" for word in words if getattr(self, word)}
        if self._trace_id is not None:
            found["trace_id"] = _json().dumps(str(self._trace_id))
        found["traceName"] = _json().dumps(os.fspath(path))
        group = _torch_group.info(trace.rank, trace.world_size)
        if group:
            found["distributedInfo"] = _json().dumps(group, default=str)
        return {**found, **self._metadata}

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Stacks with a metric each, for flame graphs. RuntimeError (an AssertionError, too, as
        torch.profiler's) without with_stack."""
        if not self.with_stack:
            raise StateError("export_stacks() requires with_stack=True")
        self.key_averages(group_by_stack_n=STACK_FRAMES).export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: Optional[str] = None) -> NoReturn:
        """torch.profiler's, deprecated there. NotImplementedError, which says what to do
        instead."""
        raise NotImplementedError(
            "prof: there is no export_memory_timeline(), which torch has deprecated. With "
            "profile_memory=True, save the capture by "
            "p.trace.dump('FILE.prof', 'capture') and run `prof memory FILE.prof` (--svg for a "
            "picture); of a GPU's allocator, "
            "torch.cuda.memory._record_memory_history() and "
            "torch.cuda.memory._export_memory_snapshot()"
        )

    @property
    def profiler(self) -> NoReturn:
        """torch.profiler's internal objects. AttributeError, which names the public way."""
        raise AttributeError(
            "prof.profile has no 'profiler' and no 'kineto_results': they are internal objects of "
            "torch's. Public: events(), key_averages(), export_chrome_trace(), trace"
        )

    kineto_results = profiler

    def get_trace_id(self) -> Optional[str]:
        """Another one each cycle: what custom_trace_id_callback gave, or 32 random digits. None
        before the first."""
        return self._trace_id

    def set_custom_trace_id_callback(self, callback: Optional[Callable[[], str]]) -> None:
        """Who says the next cycles' ids."""
        self.custom_trace_id_callback = callback

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Records on for this profile, or not, while its schedule is at it; otherwise nothing
        happens. Of a device's activity alone: what devices record themselves. What the program or
        another profile records meanwhile is in this one's stretch of time all the same."""
        chosen = _chosen(activities)
        with self._held():
            if not self._is_recording or not chosen:
                return
            if ProfilerActivity.CPU in chosen:
                self._is_paused = not enable
            if chosen - {ProfilerActivity.CPU}:
                self._devices_now = DEVICES_RECORDS if enable else DEVICES_SCOPES
            C.check(
                C.prof_level_want_with(
                    id(self), LEVEL_PAUSED if self._is_paused else self.level, self._devices_now
                )
            )

    def add_metadata(self, key: str, value: str) -> None:
        """A text that the Chrome JSON has at its top."""
        self.add_metadata_json(key, _json().dumps(str(value)))

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same of a value that is JSON. ValueError when it is not."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata are texts, not {short(key)}: {short(value)}")
        if key in ("traceEvents", "prof"):
            raise ValueError(f"the metadata's key must not be {key!r}: the file is made of it")
        try:
            _json().loads(value, parse_constant=_no_number)
        except (ValueError, RecursionError) as e:
            raise ValueError(
                f"the metadata of {short(key)} is not JSON: {short(value)}: {e}"
            ) from None
        encoded(key, "key")
        self._metadata[key] = value

    preset_metadata_json = add_metadata_json

    def loss_text(self) -> str:
        """One line: what is in the capture that the profile is a stretch of, what is not, and why;
        "no loss" when nothing is missing. Beyond torch.profiler."""
        return self.trace.loss_text()


def _advice(was_full: bool) -> str:
    """What helps where the capture has no room: it depends on who has filled it."""
    if os.environ.get("PROF_MEMORY") == "1":
        return (
            f"The capture {'was full before it began' if was_full else 'is full'}: with "
            f"PROF_MEMORY=1 it takes each malloc() and free() from the program's begin on. Set "
            f"PROF_MEMORY_MIN=4096, which leaves smaller blocks out, PROF_POLICY=ring, "
            "in which the oldest give way, or a larger PROF_CAP_BYTES; or call "
            "prof.profiler.clear() just before the profile, which forgets what came before it"
        )
    begin = (
        "The capture was full before it began: prof.profiler.clear() forgets"
        if was_full
        else "Where the capture is full, record less at once (schedule, a shorter profile); prof.profiler.clear() forgets"
    )
    return (
        f"{begin} what profiler.start() or memory_profiler.start() has left in it; or begin the "
        f"process with PROF_LEVEL=1 and PROF_CAP_BYTES, or with PROF_POLICY=ring"
    )


def _is_memory_told() -> bool:
    """Has any device's memory been recorded?"""
    from .device import TYPES

    found = sized(s.MemoryMax)
    import ctypes

    return any(
        C.prof_memory_max_get(s.Device(code, index), 0, ctypes.byref(found)) == 0
        for code in TYPES.values()
        for index in range(DEVICES_ASKED)
    )


_NO_MEMORY = (
    "profile_memory=True, and nothing tells prof of memory: the columns of memory have nothing to "
    "show. prof.profile(torch=True) records PyTorch's, `python3 -m prof run --profile-memory "
    "SCRIPT` records each malloc() and free(), "
    "prof.memory_profiler's Pool and <prof/memory.h> what an allocator of your own hands out"
)
_NO_WORKERS = (
    "a profile has the scopes of its own process alone, not those of a pool's workers. `python3 -m "
    "prof run -o FILE SCRIPT`, or PROF_LEVEL=1 and PROF_OUTPUT=FILE in the environment, "
    "makes a capture of each process, and `python3 -m prof table FILE...` adds them up"
)


def _outside() -> int:
    """The stacklevel of a warning that is to be shown where this module was called from."""
    level, frame = 1, sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


class _Counts(NamedTuple):
    """Of a capture at one moment: what it holds, and what is not in it for want of room: of the
    words of prof_loss the first five, of which the second is a ring's, overwritten."""

    held: int
    overwritten: int
    other: int


def _counts(trace: Trace) -> _Counts:
    info = trace.info()
    lost = info.lost_count[:5]
    return _Counts(int(info.event_count), lost[1], sum(lost) - lost[1])


def _counts_now() -> _Counts:
    """The same of this process's capture, without a trace of it, which would take longer."""
    found = health()
    lost = found.lost_count[:5]
    held = found.recorded_count + found.open_count
    return _Counts(int(held), lost[1], sum(lost) - lost[1])


def _lost_between(before: _Counts, now: _Counts) -> int:
    """A ring overwrites its oldest first: what stood in it before is none of the profile's."""
    return max(now.overwritten - before.overwritten - before.held, 0) + max(
        now.other - before.other, 0
    )


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON's")


def _json() -> Any:
    """Loaded when it is needed: the import of this module is part of what a script's first scope
    costs."""
    import json

    return json


def _own(value: Any, kind: Type[_Kind]) -> Optional[_Kind]:
    """A member of prof's enumeration, or torch.profiler's of the same name in its place: who
    changes from one to the other has both for a while. None: neither."""
    if isinstance(value, kind):
        return value
    return (
        kind.__members__.get(str(getattr(value, "name", "")))
        if type(value).__name__ == kind.__name__
        else None
    )


def _chosen(activities: Iterable[Any]) -> Set[ProfilerActivity]:
    """Of activities, and of dictionaries that have them as keys."""
    found = set()
    for given in {
        key for item in activities for key in (item if isinstance(item, dict) else (item,))
    }:
        activity = _own(given, ProfilerActivity)
        if activity is None:
            raise TypeError(
                f"activities are of ProfilerActivity, not {given!r}: prof.ProfilerActivity has "
                f"{', '.join(ProfilerActivity.__members__)}"
            )
        found.add(activity)
    return found


def health() -> s.Health:
    """How the profiler itself is: what was recorded and lost (lost_count, by reason: full,
    overwritten, disk, ...), room and cap in bytes, the clock and its error in ns, what a scope
    costs, threads, the capture's path."""
    found = sized(s.Health)
    import ctypes

    C.check(C.prof_health_get(ctypes.byref(found)))
    return found


__all__: List[str] = [
    "ProfilerAction",
    "ProfilerActivity",
    "ScheduleError",
    "StateError",
    "health",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __dir__() -> List[str]:
    return list(__all__)
