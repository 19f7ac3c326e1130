# Guide: PyTorch Profiler for AMD GPUs
# Section: Filtering and Sorting Results

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
model = nn.Sequential(nn.Conv1d(32, 32, 3).to(device), nn.ReLU())

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    record_shapes=True,
    profile_memory=True,
) as prof:
    model(x)

print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=10))

print(prof.key_averages().table(sort_by="self_cuda_memory_usage", row_limit=10))

# The guide's .filter() is not in torch: a list of rows has no such method.
by_shape = prof.key_averages(group_by_input_shape=True)
by_shape[:] = filter(lambda row: "conv" in row.key, by_shape)
print(by_shape.table())

print(prof.key_averages(group_by_input_shape=True).table())

print(prof.key_averages(group_by_input_shape=False).table())
