# Guide: PyTorch Profiler for AMD GPUs
# Section: Basic TensorBoard Integration

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile, tensorboard_trace_handler

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    on_trace_ready=tensorboard_trace_handler("./log/pytorch_profiler"),
) as prof:
    model(x)

# tensorboard --logdir=./log/pytorch_profiler
