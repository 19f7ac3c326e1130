# Guide: DeepLink, Profiler
# Section: 4. Memory consumption

import torch
import torchvision.models as models

from prof.torch import ProfilerActivity, profile

model = models.resnet18()
inputs = torch.randn(5, 3, 224, 224)

with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as prof:
    model(inputs)

print(prof.key_averages().table(sort_by="cpu_memory_usage", row_limit=10))
