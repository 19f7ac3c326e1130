# Guide: PyTorch Profiler for AMD GPUs
# Section: Identifying Memory Bottlenecks

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10)).to(device)
x = torch.randn(32, 100, device=device)

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    profile_memory=True,
    record_shapes=True,
) as prof:
    model(x)

events = prof.events()
memory_events = []

# The guide's evt.cuda_memory_usage and evt.device are not in torch 2.15.
for evt in events:
    usage = evt.device_memory_usage if device == "cuda" else evt.cpu_memory_usage
    own = evt.self_device_memory_usage if device == "cuda" else evt.self_cpu_memory_usage
    if usage != 0:
        memory_events.append(
            {
                "name": evt.name,
                "memory_usage": usage / (1024 * 1024),
                "self_memory_usage": own / (1024 * 1024),
                "device": evt.device_type.name,
            }
        )

df = pd.DataFrame(memory_events)

plt.figure(figsize=(12, 6))
top_memory_ops = df.nlargest(10, "self_memory_usage")
plt.barh(top_memory_ops["name"], top_memory_ops["self_memory_usage"])
plt.xlabel("Self Memory Usage (MB)")
plt.title("Top 10 Memory-Intensive Operations")
plt.tight_layout()
plt.savefig("memory_usage_by_op.png")
