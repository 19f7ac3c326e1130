# Guide: PyTorch Profiler for AMD GPUs
# Section: Memory Bottlenecks

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile, record_function

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
y = torch.randint(10, (32,), device=device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
dataloader = [(x, y)] * 4
accumulation_steps = 2

optimizer.zero_grad()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as prof:
    for i, (x, y) in enumerate(dataloader):
        with record_function("batch"):
            output = model(x)
            loss = criterion(output, y) / accumulation_steps
            loss.backward()

        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()

print(prof.key_averages().table())
