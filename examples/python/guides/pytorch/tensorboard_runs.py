# Guide: PyTorch Profiler for AMD GPUs
# Section: Profiling Multiple Runs

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile, tensorboard_trace_handler

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

for run_idx in range(3):
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        on_trace_ready=tensorboard_trace_handler(f"./log/pytorch_profiler/run_{run_idx}"),
    ) as prof:
        model(x)
