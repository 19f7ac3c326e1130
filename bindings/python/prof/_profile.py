"""torch.profiler's profile: starts, steps and stops a recording. What is recorded is the process's
one capture, and a profile is a time range of it. So several profiles may be open at once, and a
runtime in C that records into the capture is in the same tables."""

from __future__ import annotations

import copy
import operator
import sys
import threading
import warnings
from os import getpid, urandom  # by name: a program may have traced the modules
from time import monotonic_ns
from typing import Any, Callable, Dict, Iterable, List, Optional, Set

from . import _activities, _arguments, _recording, tables
from ._activities import ProfilerActivity, chosen
from ._library import C, short
from ._recorded import Recorded
from ._recording import Counts, outside, request_level
from ._schedule import RECORDING, ProfilerAction, Schedule, ScheduleError, StateError, action_at
from ._scope import functions, modules, operators, record_function
from .device import member_of
from .tables import Window
from .trace import Trace

_NOT_STARTED = "Profiler must be initialized before stopping trace: call start() first"


def _level(level: Any) -> int:
    try:
        level = operator.index(level)
    except TypeError:
        raise TypeError(f"level must be 1 or 2, not {short(level)}") from None
    if level not in (1, 2):
        raise ValueError(
            f"level must be 1 (kernels and operators) or 2 (also the runtime around them), not "
            f"{short(level)}"
        )
    return int(level)


class profile(Recorded):  # noqa: N801 (torch's name)
    """Records the code inside, and what runs meanwhile on all threads. As a context manager, or by
    start() and stop().

    activities: with CPU alone, scopes. With a device's activity, also what devices record
    themselves: recording begins when all back ends are ready, or after one second. None: scopes,
    and the devices' records that cost nothing to enable.

    These options are torch.profiler's: schedule, on_trace_ready, record_shapes, profile_memory,
    with_stack, with_flops, acc_events, custom_trace_id_callback. Of experimental_config,
    profile_all_threads and record_python_gc_info have an effect. A warning names the others that
    are set. The observer execution_trace_observer, torch's or another one, starts and stops with
    the recording. A call of events() checks post_processing_timeout_s between cycles. As in torch,
    use_cuda is another way to give an activity.

    These are not torch.profiler's. level: 1 records kernels and operators, 2 also the runtime
    around them. torch: records PyTorch's operators on the thread that calls start() and step(). It
    uses prof.torch.observe() with the options of this profile, and start() raises what that raises.
    Without torch, with_modules has no effect. docs/reference/torch-differences.md lists what
    differs.

    Any thread may call a profile. It calls on_trace_ready after the change of state and without the
    lock, so that this may call start(), step() and stop(). An exception of the callback leaves the
    profile in a valid state. In a forked child the profile has ended, without a message."""

    _is_inherited = False
    """Was it recording when this process was forked?"""

    _has_failed = False
    """Did its `with` block end with an exception?"""

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
        self.level = _level(level)
        self._take_activities(activities, use_cuda)
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
        self._reset()
        all_threads = experimental_config is not None and self._take_experimental(
            experimental_config
        )
        if torch:
            self._observe_torch(all_threads)

    def _reset(self) -> None:
        """The state before the first start()."""
        self.step_num = 0
        self.current_action = action_at(self.schedule, 0)
        self._lock, self._pid = threading.RLock(), getpid()
        self._is_open = self._is_recording = False
        self._step_scope: Any = None
        self._from_ns = 0
        self._observer: Any = None
        self._missing_device = ""
        self._collections: Any = None
        self._functions_before = self._modules_before = self._operators_before = 0
        self._shows_functions = self._shows_modules = self._shows_operators = False
        self._before = Counts(0, 0, 0)
        self._forks_before = self._processes_before = 0
        self._cycles: List[Window] = []
        self._has_started = False
        self._trace_id: Optional[str] = None
        self._metadata: Dict[str, str] = {}

    def _take_activities(
        self, activities: Optional[Iterable[ProfilerActivity]], use_cuda: Optional[bool]
    ) -> None:
        self._chosen = {ProfilerActivity.CPU}
        self.activities: Set[Any] = set(self._chosen)
        """As they were given, which may be torch's own members."""
        left_out: Set[ProfilerActivity] = set()
        if activities is not None:
            found, without, ignored = _activities.flat(_activities.listed(activities))
            self._chosen, left_out = chosen(found), chosen(without)
            self.activities = set(found)
            if ignored:
                words = f"activities: of {', '.join(ignored)} all types are recorded"
                warnings.warn(words, UserWarning, stacklevel=outside())
        if use_cuda is not None:
            warnings.warn(
                "use_cuda is deprecated, use activities argument instead",
                FutureWarning,
                stacklevel=outside(),
            )
            self._choose(ProfilerActivity.CUDA, use_cuda)
        if not self._chosen and not left_out:
            raise ScheduleError("No valid profiler activities found")
        is_default = activities is None and use_cuda is None
        self._devices = (
            _recording.DEVICES_DEFAULT
            if is_default
            else _recording.DEVICES_RECORDS
            if self._chosen - {ProfilerActivity.CPU}
            else _recording.DEVICES_SCOPES
        )
        self._devices_now, self._is_paused = self._devices, False  # of the cycle that is recorded

    def _observe_torch(self, all_threads: bool) -> None:
        from .torch import observe  # imports torch

        self._missing_device = _activities.missing_device(self._chosen, sys.modules.get("torch"))
        self._observer = observe(
            self.record_shapes,
            self.profile_memory,
            self.with_stack,
            self.with_modules,
            profile_all_threads=all_threads,
        )

    def _choose(self, activity: ProfilerActivity, is_wanted: bool) -> None:
        (self._chosen.add if is_wanted else self._chosen.discard)(activity)
        given = {one for one in self.activities if member_of(ProfilerActivity, one) is activity}
        if not is_wanted:
            self.activities -= given
        elif not given:
            self.activities.add(activity)

    def _take_experimental(self, config: Any) -> bool:
        """Returns profile_all_threads. Warns of options that change nothing."""
        from . import _experimental

        found = _experimental.Experimental(config)
        if found.ignored:
            warnings.warn(found.warning(), UserWarning, stacklevel=outside())
        if found.with_collections and self.with_stack:  # torch, too, has none without stacks
            self._collections = _experimental.Collections()
        return found.all_threads

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
        """Copies a profile that was never started. TypeError after a start(): it has a part of the
        capture."""
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
        """A profile that was dropped without a stop() records no longer."""
        try:
            if _recording.has_request(self):
                request_level(self, 0)
            if self._observer is not None:
                self._observer.leave()
        except Exception:  # the interpreter ends
            pass

    def _held(self) -> Any:
        """The lock around its state. In a forked child the profile has ended, since the recording
        is the parent's. There the lock is new, since another thread may have held it."""
        if self._pid != getpid():
            self._lock, self._pid = threading.RLock(), getpid()
            self._is_inherited = self._is_inherited or self._is_recording
            self._is_open = self._is_recording = False
            self._step_scope = None
            if self._observer is not None:
                self._observer.leave()
        return self._lock

    def start(self) -> None:
        """Begins with step 0. After a stop() it goes on with the steps counted so far. RuntimeError
        if it was started and not stopped."""
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
        """Ends it: what has been recorded becomes the trace. Calls on_trace_ready if the schedule
        was recording. A second time it does nothing. AssertionError without a start, as
        torch.profiler, if the schedule begins with something else than NONE."""
        with self._held():
            if not self._has_started and self.current_action is not ProfilerAction.NONE:
                raise StateError(_NOT_STARTED)
            # recording and not open: an exception has interrupted a stop()
            if not self._is_open and not self._is_recording:
                if self._observer is not None:
                    # another thread may have stopped the profile, and could not stop this
                    self._observer.stop()
                return
            self._is_open = False
            self._end_step()
            is_ready = self._leave(self.current_action, None)
        if is_ready and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def prepare_trace(self) -> None:
        """Does nothing: start_trace() needs no preparation, except in torch.profiler."""

    def start_trace(self) -> None:
        """Records until stop_trace(), without the schedule. RuntimeError if it records already."""
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
        """Ends start_trace(): what has been recorded becomes the trace. on_trace_ready is not
        called. A second time it does nothing. AssertionError without a start."""
        with self._held():
            if not self._has_started:
                raise StateError(_NOT_STARTED)
            self._is_open = False
            self._end_step()
            if self._is_recording:
                self._stop_recording()

    def wait_for_exports(self) -> None:
        """Does nothing: exports are complete when they return."""

    def take_pending_cuspy_export(self) -> None:
        """None, as in torch.profiler if cuspy does not record."""

    def step(self) -> None:
        """Begins the next step. Outside of start() and stop() it only counts the step."""
        try:
            with self._held():
                before, self.current_action = (
                    self.current_action,
                    action_at(self.schedule, self.step_num + 1),
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
        """Starts what the current action asks for and is not yet running: the recording, and the
        scope of the step."""
        if self._is_open and self.current_action in RECORDING and not self._is_recording:
            self._start_recording()
        if self._is_open and self.record_steps and self._step_scope is None:
            self._step_scope = record_function(f"{tables.STEP}{self.step_num}")
            self._step_scope.__enter__()

    def _end_step(self) -> None:
        scope, self._step_scope = self._step_scope, None
        if scope is not None:
            scope.__exit__(None, None, None)

    def _leave(self, before: ProfilerAction, now: Optional[ProfilerAction]) -> bool:
        """Stops recording if the next action does not go on with it. Returns whether there is a
        trace for on_trace_ready."""
        is_saved = before is ProfilerAction.RECORD_AND_SAVE or (
            now is None and before is ProfilerAction.RECORD
        )
        if before in RECORDING and (is_saved or now not in RECORDING):
            was_recording = self._is_recording
            if was_recording:
                self._stop_recording()
            if now is not None and not is_saved:
                warnings.warn(f"Incorrect schedule: RECORD followed by {now.name}", stacklevel=3)
            return is_saved and was_recording
        if before is ProfilerAction.WARMUP and now not in (*RECORDING, ProfilerAction.WARMUP):
            self._start_recording(is_brief=True)
            self._stop_recording()
            if now is not None:
                warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        return False

    def _give_up(self) -> None:
        """Discards a recording that has begun."""
        self._is_recording = False
        self._release()

    def _release(self) -> None:
        """Ends what was started for the recording. The open functions of stacks end first: after
        the recording they would count as lost."""
        try:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()
            if self._collections is not None:
                self._collections.stop()
            if self._observer is not None:
                self._observer.stop()
        finally:
            request_level(self, 0)

    def _start_recording(self, is_brief: bool = False) -> None:
        trace_id = (
            self.custom_trace_id_callback()
            if self.custom_trace_id_callback is not None
            else urandom(16).hex().upper()
        )
        # the callback may have called start(), step() or stop()
        if self._is_recording or not (self._is_open or is_brief):
            return
        try:
            self._devices_now, self._is_paused = self._devices, False
            request_level(self, self.level)
            self._trace_id = trace_id
            self._functions_before, self._modules_before = functions.before(), modules.before()
            self._operators_before = operators.before()
            self._forks_before = _recording.fork_count()
            self._processes_before = _recording.process_count()
            if self._observer is not None:
                self._observer.start()
            if self._missing_device:
                warnings.warn(self._missing_device, UserWarning, stacklevel=outside())
                self._missing_device = ""
            if self._collections is not None:
                self._collections.start()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.start()
            if not self.acc_events:
                if self._cycles and self._observer is not None:
                    _recording.warn_of_cleared_events()
                self._cycles, self._shows_functions, self._shows_modules = [], False, False
                self._shows_operators = False
            self._before = _recording.counts_now()
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
            if not self._is_recording:  # else a signal's handler has begun a new one
                self._release()
        lost = window.lost
        if lost:
            warnings.warn(
                f"{lost} scopes of this profile are not in it: {self.loss_text()}. "
                f"{_recording.advice(was_full=self._before.other > 0)}",
                RuntimeWarning,
                stacklevel=outside(),
            )
        # An observer has PyTorch's memory, even if nothing was allocated yet.
        is_unseen = self._observer is None and not _recording.is_memory_recorded()
        if self.profile_memory and not self._has_failed and is_unseen:
            warnings.warn(_recording.NO_MEMORY, RuntimeWarning, stacklevel=outside())
        made = _recording.process_count() - self._processes_before
        workers = max(_recording.fork_count() - self._forks_before, made)
        if workers > 0:
            who = "1 process was" if workers == 1 else f"{workers} processes were"
            words = f"{who} begun while this profile recorded: {_recording.NO_WORKERS}"
            warnings.warn(words, RuntimeWarning, stacklevel=outside())

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes the recording of this profile. Does nothing while the schedule does not
        record. With a device's activity alone: only the records of devices. What the program or
        another profile records meanwhile is in this profile's time range all the same."""
        given = chosen(activities)
        with self._held():
            if not self._is_recording or not given:
                return
            if ProfilerActivity.CPU in given:
                self._is_paused = not enable
            if given - {ProfilerActivity.CPU}:
                self._devices_now = (
                    _recording.DEVICES_RECORDS if enable else _recording.DEVICES_SCOPES
                )
            C.check(
                C.prof_level_want_with(
                    id(self),
                    _recording.LEVEL_PAUSED if self._is_paused else self.level,
                    self._devices_now,
                )
            )

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
            _recording.lost_between(self._before, _recording.counts_of(trace)),
            trace,
        )

    def _view_of(self, trace: Trace) -> Optional[Trace]:
        """The view of this profile's thread. None: it has the whole trace."""
        if self._observer is None:
            return None
        without = not self.with_stack and not self._are_functions_shown()
        wish = self._observer.wish(self._from_ns, without, without and not self.with_modules)
        return None if wish is None else trace._view(wish)

    def _windows(self) -> List[Window]:
        with self._held():
            running = [self._window(Trace.now(), 0)] if self._is_recording else []
        if not self._cycles and not running:
            raise StateError(
                "the profile has ended: this process was forked from the one that it records"
                if self._is_inherited
                else "there is no trace yet: the profile has not recorded (see its schedule)"
            )
        return self._cycles + running
