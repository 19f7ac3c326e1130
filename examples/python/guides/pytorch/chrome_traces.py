# Guide: PyTorch Profiler for AMD GPUs
# Section: Analyzing Chrome Traces

import torch
from torch import nn

from prof.torch import profile, record_function

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

with profile() as prof:
    with record_function("model_inference"):
        model(x)

prof.export_chrome_trace("trace.json")  # load it in chrome://tracing or ui.perfetto.dev
