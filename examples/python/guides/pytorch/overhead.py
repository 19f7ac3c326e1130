# Guide: PyTorch Profiler for AMD GPUs
# Section: Common Issues, 3. Profiler Overhead

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile, schedule

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
GPU = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU

with profile(
    activities=[GPU],
    schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
) as prof:
    for _ in range(6):
        model(x)
        prof.step()

print(prof.key_averages().table())
