# Guide: PyTorch Profiler for AMD GPUs
# Section: Memory Optimization Techniques, 1. Gradient Checkpointing

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as prof:
    output = checkpoint(model, x, use_reentrant=False)
    output.sum().backward()

print(prof.key_averages().table())
