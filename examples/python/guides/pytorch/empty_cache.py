# Guide: PyTorch Profiler for AMD GPUs
# Section: Memory Management

import torch

from prof.torch import ProfilerActivity, profile

if torch.cuda.is_available():
    torch.cuda.set_per_process_memory_fraction(0.8)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    x = torch.ones(1 << 10, device="cuda" if torch.cuda.is_available() else "cpu")
    del x
    torch.cuda.empty_cache()  # without a GPU it does nothing

print(prof.key_averages().table())
