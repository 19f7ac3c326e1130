# Guide: PyTorch Profiler for AMD GPUs
# Section: Recording Functions

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile, record_function

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
target = torch.randint(10, (32,), device=device)
criterion = nn.CrossEntropyLoss()

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    with record_function("forward_pass"):
        output = model(x)

    with record_function("loss_calculation"):
        loss = criterion(output, target)

    with record_function("backward_pass"):
        loss.backward()

print(prof.key_averages().table())
