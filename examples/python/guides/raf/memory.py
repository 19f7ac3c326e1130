# Guide: RAF, Profile Your Model
# Section: Profile Memory

from setup_model import run_vm_model, setup_model

import prof as raf

model, args = setup_model()

raf.utils.memory_profiler.reset()
raf.utils.memory_profiler.start()

# The VM's pool is queried behind each run. The first run counts as well as any.
run_vm_model(model, "cpu", args)

raf.utils.memory_profiler.stop()

result = raf.utils.memory_profiler.get_max_memory_info(raf.Device("cpu"))
print("Max used memory (MBs):", result["max_used"].value)
print("Max allocated memory (MBs):", result["max_allocated"].value)

print("Memory Trace:")
print(raf.utils.memory_profiler.get_memory_trace(raf.Device("cpu")))
