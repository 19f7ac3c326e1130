# Guide: PyTorch Profiler for AMD GPUs
# Section: Analyzing Stack Traces

import torch
from torch import nn

from prof.torch import profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

with profile(
    with_stack=True,
    experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
) as prof:
    for _ in range(20):
        model(x)

prof.export_stacks("stacks.txt", f"self_{device}_time_total")
