# Guide: PyTorch Profiler for AMD GPUs
# Section: Profiling Schedules

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile, schedule

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

my_schedule = schedule(
    skip_first=10,  # steps that load and choose
    wait=5,
    warmup=1,
    active=3,
    repeat=2,
)

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=my_schedule,
) as prof:
    for _ in range(30):
        model(x)
        prof.step()  # without it the schedule stands still

print(prof.key_averages().table())
