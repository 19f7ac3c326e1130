"""The recipe of torch.profiler with prof in its place: execution time, shapes, memory, tracing,
stacks, long-running jobs. Files go into the current folder. Run: python3 torch_recipe.py"""

# 1. Import all necessary libraries. The original has: import torch; import torchvision.models as
# models; from torch.profiler import profile, ProfilerActivity, record_function
import models
import operators

import prof
from prof import ProfilerActivity, profile, record_function

prof.trace_module(operators)  # torch's operators are seen without this line

# 2. Instantiate a simple model
model = models.resnet()
inputs = operators.randn(1, 3, 8, 8)

# 3. Analyze execution time
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
    with record_function("model_inference"):
        model(inputs)

print(p.key_averages().table(sort_by="cpu_time_total", row_limit=10))

# Finer: operators by the shapes of their inputs
print(p.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10))

# If shapes say it: how many operations that were
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as p:
    model(inputs)

print(p.key_averages().table(sort_by="flops", row_limit=5))

# 4. Analyze memory consumption
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as p:
    model(inputs)

print(p.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=10))
print(p.key_averages().table(sort_by="cpu_memory_usage", row_limit=10))

# 5. Use tracing: open trace.json in ui.perfetto.dev or chrome://tracing
with profile(activities=[ProfilerActivity.CPU]) as p:
    model(inputs)

p.export_chrome_trace("trace.json")

# 6. Examine stack traces. torch.profiler needs
# experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True) beside with_stack
with profile(activities=[ProfilerActivity.CPU], with_stack=True) as p:
    model(inputs)

print(p.key_averages(group_by_stack_n=5).table(sort_by="self_cpu_time_total", row_limit=2))

# 7. Visualize data as a flame graph: flamegraph.pl profiler_stacks.txt
p.export_stacks("profiler_stacks.txt", "self_cpu_time_total")


# 8. Analyze long-running jobs: steps 0 and 1 are left out, 2 and 3 recorded, and again
def trace_handler(p):
    output = p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    print(output)
    p.export_chrome_trace("trace_" + str(p.step_num) + ".json")


with profile(
    activities=[ProfilerActivity.CPU],
    schedule=prof.schedule(wait=1, warmup=1, active=2),
    on_trace_ready=trace_handler,
) as p:
    for idx in range(8):
        model(inputs)
        p.step()
