# Guide: PyTorch Profiler for AMD GPUs
# Section: Debugging Tips, 1. Isolate Components

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
GPU = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU
layer1, layer2 = model[0], model[2]

with profile(activities=[GPU]) as prof:
    hidden = layer1(x)
print(prof.key_averages().table())

with profile(activities=[GPU]) as prof:
    layer2(hidden)
print(prof.key_averages().table())
