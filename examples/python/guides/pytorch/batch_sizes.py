# Guide: PyTorch Profiler for AMD GPUs
# Section: Memory Optimization Techniques, 3. Batch Size Optimization

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
GPU = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU

batch_sizes = [16, 32, 64, 128]
for bs in batch_sizes:
    x = torch.randn(bs, 100, device=device)
    with profile(activities=[GPU], profile_memory=True) as prof:
        model(x)
    print(f"Batch size: {bs}")
    print(prof.key_averages().table(sort_by=f"{device}_memory_usage", row_limit=5))
