"""What single events and averages have in common: the attributes of torch.profiler's rows
(torch.autograd.profiler_util), so that programs that read them go on working."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional

from ._text_units import format_time
from ._torch_classes import AsTorchs
from .device import DeviceType

if TYPE_CHECKING:
    from ._events import FunctionEvent

STEP, STEPS = "ProfilerStep#", "ProfilerStep*"
MEMORY_ROW, MEMORY_CATEGORY = "[memory]", "memory"
"""torch.profiler's name of what is allocated or freed in no scope."""
ANNOTATION = "user_annotation"


class Interval(AsTorchs):
    """From start to end, in us from the capture's start."""

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start!r}, end={self.end!r})"


class Times(AsTorchs):
    """The attributes that torch's mixin adds to both kinds of rows, and those with one value in all
    rows. Times are in us. Those of devices are 0 until a device's back end reports them."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    overload_name = ""
    flops: int
    node_id = -1
    scope = 0
    is_async = is_remote = is_legacy = False
    is_user_annotation: Optional[bool] = False
    use_device: Optional[str] = None
    device_type = DeviceType.CPU
    cpu_parent: Optional["FunctionEvent"] = None
    input_shapes: Any
    stack: List[str]
    inner_cpu_time = inner_device_time = 0.0
    """Not in torch: times of calls inside another call of their row. Only the mean includes
    them."""
    open_count = 0
    """Not in torch: scopes that had not ended. In a profile they count as calls up to its end."""
    skipped_count = 0
    """Not in torch: scopes that a jump left. No other count and no time includes them."""
    is_crosswise = False
    """Not in torch: calls overlap others of their thread without nesting, or are asynchronous."""
    place = ""
    """Not in torch: "file.c:12", if known."""

    @property
    def cpu_time(self) -> float:
        return (self.cpu_time_total + self.inner_cpu_time) / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return (self.device_time_total + self.inner_device_time) / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: format_time(self.self_cpu_time_total))
    device_time_str = property(lambda self: format_time(self.device_time))
    device_time_total_str = property(lambda self: format_time(self.device_time_total))
    self_device_time_total_str = property(lambda self: format_time(self.self_device_time_total))
    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cuda_memory_usage = property(lambda self: self.device_memory_usage)
    self_cuda_memory_usage = property(lambda self: self.self_device_memory_usage)
