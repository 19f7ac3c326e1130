"""torch.autograd.profiler.profile's face, for prof.torch.install(): the profiler of before
torch.profiler, and what that is made on. Its words are other ones than prof.profile's."""

from __future__ import annotations

import logging
import warnings
from importlib import import_module
from typing import Any, Callable, Dict, Optional, Set

from . import session
from ._recording import outside
from .tables import EventList, FunctionEvent, FunctionEventAvg

_UNFINISHED = "<unfinished torch.autograd.profile>"


def _device_of(name: Optional[str]) -> Optional[session.ProfilerActivity]:
    """The activity of a device that torch has here. A warning, and None: it has no such."""
    if name is None:
        return None
    torch = import_module("torch")
    custom = torch._C._get_privateuse1_backend_name()
    if name == custom and name != "privateuseone":
        return session.ProfilerActivity.PrivateUse1
    found = session.ProfilerActivity.__members__.get(name.upper())
    if found in (None, session.ProfilerActivity.CPU):
        warnings.warn(f"The {name} is not a valid device option.", stacklevel=outside())
        return None
    module = getattr(torch, name, None)
    if module is not None and not module.is_available():
        warnings.warn(
            f"{name.upper()} is not available, disabling {name.upper()} profiling",
            stacklevel=outside(),
        )
        return None
    return found


class InPlace(session.profile):
    """What programs of torch's may look for: its log has what torch logs, and traces end in the
    rows in which Kineto's end."""

    _has_window_marks = True

    def _note_timeout(self, cycles: int, count: int) -> None:
        super()._note_timeout(cycles, count)
        logging.getLogger("torch.autograd.profiler").warning(
            "events() timed out after %.3f seconds, returning partial results with %d events",
            self.post_processing_timeout_s,
            count,
        )


class profile(InPlace):  # noqa: N801 (torch's name)
    """As a context manager, once: RuntimeError a second time. With enabled=False it does nothing.
    AssertionError where neither the
    CPU nor a device is to be recorded, or no CPU without use_kineto."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_device: Optional[str] = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Optional[Callable[[], str]] = None,
        post_processing_timeout_s: Optional[float] = None,
        activity_filters: Optional[Dict[Any, Any]] = None,
        _profiler_extensions: Optional[Dict[str, str]] = None,
        use_cuda: Optional[bool] = None,
    ) -> None:
        self.enabled, self.use_cpu = bool(enabled), bool(use_cpu)
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.use_device = "cuda" if use_cuda else use_device
        activities: Set[session.ProfilerActivity] = set()
        if use_cpu:
            activities.add(session.ProfilerActivity.CPU)
        device = _device_of(self.use_device) if self.enabled else None
        if device is not None:
            activities.add(device)
        else:
            self.use_device = None
        if not activities:
            raise AssertionError("No activities specified for the profiler")
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            experimental_config=experimental_config,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            torch=self.enabled,
        )
        self._function_events: Optional[EventList[FunctionEvent]] = None
        self.entered = False

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._function_events = None
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.enabled:
            super().__exit__(*error)

    @property
    def function_events(self) -> EventList[FunctionEvent]:
        """events(), made once. AssertionError before anything was recorded."""
        if self._function_events is None or self._is_recording:
            self._function_events = self.events()
        return self._function_events

    def __str__(self) -> str:
        return str(self.function_events) if self._cycles else _UNFINISHED

    def __repr__(self) -> str:
        return repr(self.function_events) if self._cycles else _UNFINISHED

    def table(self, *words: Any, **named: Any) -> str:
        """Of all calls, one by one."""
        return self.function_events.table(*words, **named)

    def total_average(self) -> FunctionEventAvg:
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """us."""
        return self.function_events.self_cpu_time_total
