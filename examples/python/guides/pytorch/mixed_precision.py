# Guide: PyTorch Profiler for AMD GPUs
# Section: Memory Optimization Techniques, 2. Mixed Precision Training

import torch
from torch import nn
from torch.amp import GradScaler, autocast  # the guide's torch.cuda.amp is deprecated

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
y = torch.randint(10, (32,), device=device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = GradScaler(device)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as prof:
    with autocast(device):
        output = model(x)
        loss = criterion(output, y)

    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

print(prof.key_averages().table())
