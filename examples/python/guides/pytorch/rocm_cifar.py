# Guide: Torch Profiler (ROCm)
# Section: Torch Profiler
#
# The guide's train_cifar_100.py, with a small model and random pictures.

import contextlib
import sys

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile, schedule

is_profiled, rank = "--no-torch-profile" not in sys.argv, 0
device = "cuda" if torch.cuda.is_available() else "cpu"

if is_profiled:
    this_schedule = schedule(skip_first=3, wait=5, warmup=1, active=3, repeat=1)
    profiling_context = profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        record_shapes=True,
        schedule=this_schedule,
    )
else:
    profiling_context = contextlib.nullcontext()

model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 100)
).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

with profiling_context:
    for _ in range(13):
        images = torch.randn(4, 3, 32, 32, device=device)
        labels = torch.randint(100, (4,), device=device)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        if is_profiled and rank == 0:
            profiling_context.step()

if is_profiled and rank == 0:
    profiling_context.export_chrome_trace("trace_0_12.json")
    averages = profiling_context.key_averages(group_by_stack_n=5)
    print(averages.table(sort_by="cuda_time_total", row_limit=10))
