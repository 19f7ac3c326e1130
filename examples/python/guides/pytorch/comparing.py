# Guide: PyTorch Profiler for AMD GPUs
# Section: Debugging Tips, 2. Compare Implementations

import torch

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.randn(32, 100, device=device)
GPU = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU


def implementation1(x):
    return torch.softmax(x, 1)


def implementation2(x):
    return x.exp() / x.exp().sum(1, keepdim=True)


with profile(activities=[GPU]) as prof:
    output1 = implementation1(x)
print("Implementation 1:")
print(prof.key_averages().table())

with profile(activities=[GPU]) as prof:
    output2 = implementation2(x)
print("Implementation 2:")
print(prof.key_averages().table())
