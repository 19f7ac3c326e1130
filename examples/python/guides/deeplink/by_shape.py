# Guide: DeepLink, Profiler
# Section: 3. Execution time, by input shapes

import torch
import torchvision.models as models

from prof.torch import ProfilerActivity, profile, record_function

model = models.resnet18()
inputs = torch.randn(5, 3, 224, 224)

with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    with record_function("model_inference"):
        model(inputs)

by_shape = prof.key_averages(group_by_input_shape=True)
print(by_shape.table(sort_by="cpu_time_total", row_limit=10))
