# Guide: PyTorch Profiler for AMD GPUs
# Section: Common Issues, 2. Out of Memory

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
batch_size = 64

batch_size = batch_size // 2
torch.cuda.empty_cache()  # without a GPU it does nothing

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as prof:
    model(torch.randn(batch_size, 100, device=device))

print(prof.key_averages().table())
