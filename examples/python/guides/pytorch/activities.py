# Guide: PyTorch Profiler for AMD GPUs
# Section: Profiling Activities

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
GPU = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as both:
    model(x)

with profile(activities=[GPU]) as gpu_alone:
    model(x)

with profile(activities=[ProfilerActivity.CPU]) as cpu_alone:
    model(x)

for prof in (both, gpu_alone, cpu_alone):
    print(prof.key_averages().table())
