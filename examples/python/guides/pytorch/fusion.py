# Guide: PyTorch Profiler for AMD GPUs
# Section: GPU Bottlenecks

import torch

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.randn(8, 3, 16, 16, device=device)
weight = torch.randn(4, 3, 3, 3, device=device)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as prof:
    x = torch.nn.functional.relu(torch.nn.functional.conv2d(x, weight, padding=1, bias=None))

print(prof.key_averages(group_by_input_shape=True).table())
