# Guide: RAF, Profile Your Model
# Section: Profiling Levels

from setup_model import get_vm_executor, run_vm_executor, setup_model

import prof as raf

model, args = setup_model()
executor = get_vm_executor(model, "cpu")

for level in (1, 2):
    raf.utils.profiler.start(prof_level=level)
    run_vm_executor(executor, args)
    raf.utils.profiler.stop()
    found = raf.utils.profiler.get()["traceEvents"]
    print(f"Level {level}:", *sorted({event["cat"] for event in found}), sep=" | ")
    raf.utils.profiler.clear()
