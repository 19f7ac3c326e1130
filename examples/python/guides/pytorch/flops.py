# Guide: PyTorch Profiler for AMD GPUs
# Section: FLOP Counting

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    with_flops=True,
) as prof:
    model(x)

print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=10))
