# Guide: PyTorch Profiler for AMD GPUs
# Section: Common Issues, 4. Missing Stack Traces

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)
GPU = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU

# torch.profiler has stacks in tables only with verbose. prof needs with_stack alone.
with profile(
    activities=[GPU],
    with_stack=True,
    experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
) as prof:
    model(x)

print(prof.key_averages(group_by_stack_n=5).table())
