# Guide: PyTorch Profiler for AMD GPUs
# Section: Basic Memory Profiling

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    profile_memory=True,
    record_shapes=True,
) as prof:
    model(x)

print(prof.key_averages().table(sort_by=f"self_{device}_memory_usage", row_limit=10))
