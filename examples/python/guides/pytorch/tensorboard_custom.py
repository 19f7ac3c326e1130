# Guide: PyTorch Profiler for AMD GPUs
# Section: Custom TensorBoard Logging

import os

import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)


def custom_trace_handler(prof):
    dir_name = f"./log/pytorch_profiler/custom_{prof.step_num}"
    os.makedirs(dir_name)  # not in the guide: the folder has to be there
    prof.export_chrome_trace(f"{dir_name}/trace.json")
    prof.export_stacks(f"{dir_name}/stacks.txt", "self_cuda_time_total")
    print(f"Exported trace to {dir_name}")


with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    with_stack=True,  # not in the guide: export_stacks() needs it
    on_trace_ready=custom_trace_handler,
) as prof:
    for _ in range(5):
        model(x)
        prof.step()
