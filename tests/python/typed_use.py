"""A user's program that mypy --strict has to understand: all names by `prof.`, with their types. It
is checked, not run."""

from typing import Callable, List, Optional

import prof
from prof import (
    Device,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    ProfilerAction,
    ProfilerActivity,
    Trace,
    profile,
    record_function,
    schedule,
)
from prof import torch as with_torch


def handler(p: profile) -> None:
    p.export_chrome_trace(f"trace-{p.step_num}.json")


def operators() -> str:
    activities = [with_torch.ProfilerActivity.CPU]
    with with_torch.profile(activities=activities) as p, with_torch.record_function("forward"):
        p.step()
    return p.key_averages().table()


plan: Callable[[int], ProfilerAction] = schedule(wait=1, warmup=1, active=2, repeat=1)
with prof.profile(
    activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=handler, record_shapes=True
) as p:
    for _ in range(4):
        with record_function("step"), prof.scope("mm", "operator", 1, rows=3):
            pass
        p.step()

averages: EventList[FunctionEventAvg] = p.key_averages(group_by_input_shape=True)
text: str = averages.table(sort_by="self_cpu_time_total", row_limit=10)
events: EventList[FunctionEvent] = p.events()
either: EventList = p.events()
for e in p.events():
    print(e.time_range.start, e.is_open)
for row in p.key_averages():
    key: str = row.key
for event in events:
    start: float = event.time_range.start
    parent: Optional[FunctionEvent] = event.cpu_parent
for one in events.key_averages():
    name: str = one.key
    average_of_one: FunctionEventAvg = one
ordered: List[FunctionEventAvg] = sorted(averages, key=lambda a: a.self_cpu_time_total)
made: EventList[FunctionEvent] = EventList(events[:1])
trace: Trace = p.trace
rows: List[str] = [row.name for row in trace.aggregate("name")]
device: Device = Device("cuda", 1)


@record_function("decorated")
def decorated(x: int, y: Optional[str] = None) -> float:
    return float(x)


value: float = decorated(3)
with profile(torch=True, with_stack=True) as of_torch:
    frames: List[str] = of_torch.key_averages(group_by_stack_n=5, include_python_functions=True)[
        0
    ].stack
prof.counter("loss", 0.5)
prof.instant("epoch", category="train", number=3)
prof.profiler.start(prof_level=2)
prof.profiler.stop()
prof.utils.profiler.clear()
with prof.trace_functions(
    ["numpy", "*.models"], exclude="numpy.linalg", c_functions=True
) as tracing:
    tracing.stop()
found: Optional[FunctionEvent] = None
average: Optional[FunctionEventAvg] = None
