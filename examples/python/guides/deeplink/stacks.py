# Guide: DeepLink, Profiler
# Section: 6. Call stacks

import torch
import torchvision.models as models

from prof.torch import ProfilerActivity, profile

device = "cuda" if torch.cuda.is_available() else "cpu"
model = models.resnet18().to(device)
inputs = torch.randn(5, 3, 224, 224).to(device)

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    with_stack=True,
    experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
) as prof:
    model(inputs)

by_stack = prof.key_averages(group_by_stack_n=5)
print(by_stack.table(sort_by="self_cuda_time_total", row_limit=2))
