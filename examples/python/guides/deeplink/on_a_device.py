# Guide: DeepLink, Profiler
# Section: 3. Execution time, on a device

import torch
import torchvision.models as models

from prof.torch import ProfilerActivity, profile, record_function

device = "cuda" if torch.cuda.is_available() else "cpu"
model = models.resnet18().to(device)
inputs = torch.randn(5, 3, 224, 224).to(device)

activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
with profile(activities=activities, record_shapes=True) as prof:
    with record_function("model_inference"):
        model(inputs)

print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=20))
