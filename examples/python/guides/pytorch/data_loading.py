# Guide: PyTorch Profiler for AMD GPUs
# Section: CPU Bottlenecks

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
dataset = TensorDataset(torch.randn(128, 100))
dataloader = DataLoader(dataset, batch_size=32, num_workers=2, pin_memory=device == "cuda")


def preprocess(x):
    return x.to(device, non_blocking=True) * 2


with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    for (x,) in dataloader:
        model(preprocess(x))

print(prof.key_averages().table(sort_by="cpu_time_total"))
