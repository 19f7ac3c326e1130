# Guide: RAF, Profile Your Model
# Section: Profile Latency

import json

from setup_model import get_vm_executor, run_vm_executor, setup_model

import prof as raf

model, args = setup_model()
executor = get_vm_executor(model, "cpu")

# The first runs compile.
for _ in range(3):
    run_vm_executor(executor, args)

raf.utils.profiler.clear()
raf.utils.profiler.start()

run_vm_executor(executor, args)

raf.utils.profiler.stop()

result = raf.utils.profiler.get()
with open("profile.json", "w") as filep:
    json.dump(result, filep, indent=4)
raf.utils.profiler.dump("dumped.json")  # the same, without the dictionary
raf.utils.profiler.clear()

print("Entries:", len(result["traceEvents"]))
