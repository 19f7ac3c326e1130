# Guide: DeepLink, Profiler
# Section: all
"""The guide to DeepLink's profiler (DIPU) with prof in its place, on a model in plain Python. Files
go into the current folder. Run: python3 deeplink_tutorial.py"""

import sys
from pathlib import Path

# 1. Libraries. The original has: import torch_dipu; import torch; import torchvision.models as
# models; from torch.profiler import profile, record_function, ProfilerActivity
sys.path.append(str(Path(__file__).resolve().parents[2]))  # models.py, operators.py
import models
import operators

import prof
from prof import ProfilerActivity, profile, record_function

prof.trace_module(operators)  # DIPU's operators are seen without this line

# 2. The model
model = models.resnet()
inputs = operators.randn(1, 3, 8, 8)

# 3. How long operators take
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
    with record_function("model_inference"):
        model(inputs)

print(p.key_averages().table(sort_by="cpu_time_total", row_limit=10))
print(p.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10))

# On a device. Where prof records none, its columns are not there, and the rest of the table is the
# same
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as p:
    with record_function("model_inference"):
        model(inputs)

print(p.key_averages().table(sort_by="cuda_time_total", row_limit=20))

# 4. How much memory they take
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as p:
    model(inputs)

print(p.key_averages().table(sort_by="cpu_memory_usage", row_limit=10))

# 5. To see it in chrome://tracing
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    model(inputs)

p.export_chrome_trace("trace.json")

# 6. Who called them
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True) as p:
    model(inputs)

print(p.key_averages(group_by_stack_n=5).table(sort_by="self_cuda_time_total", row_limit=2))
p.export_stacks("stacks.txt", "self_cpu_time_total")


# 7. Tasks that run for long: one step is left out, one warms up, two are recorded, and so on
def trace_handler(p):
    output = p.key_averages().table(sort_by="self_cuda_time_total", row_limit=10)
    print(output)
    p.export_chrome_trace("trace_" + str(p.step_num) + ".json")


with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=prof.schedule(wait=1, warmup=1, active=2),
    on_trace_ready=trace_handler,
) as p:
    for idx in range(8):
        model(inputs)
        p.step()

# The same for TensorBoard: tensorboard --logdir log
with profile(
    schedule=prof.schedule(skip_first=1, wait=1, warmup=1, active=3, repeat=2),
    on_trace_ready=prof.tensorboard_trace_handler("log", worker_name="worker0", use_gzip=True),
) as p:
    for idx in range(12):
        model(inputs)
        p.step()
