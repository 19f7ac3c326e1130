# Guide: DeepLink, Profiler
# Section: 7. Long-running jobs, the schedule

import torch  # noqa: F401 (the guide imports it)

from prof.torch import schedule

my_schedule = schedule(skip_first=10, wait=5, warmup=1, active=3, repeat=2)

print(*(f"{step}: {my_schedule(step).name}" for step in range(30)), sep="\n")
