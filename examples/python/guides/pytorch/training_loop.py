# Guide: PyTorch Profiler for AMD GPUs
# Section: Profiling Training Loops

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile, record_function

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
y = torch.randint(10, (32,), device=device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(3):
    optimizer.zero_grad()
    output = model(x)
    loss = criterion(output, y)
    loss.backward()
    optimizer.step()

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    for i in range(10):
        with record_function(f"iteration_{i}"):
            optimizer.zero_grad()

            with record_function("forward"):
                output = model(x)
                loss = criterion(output, y)

            with record_function("backward"):
                loss.backward()

            with record_function("optimizer_step"):
                optimizer.step()

print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=20))
