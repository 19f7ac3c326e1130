# Guide: RAF, Profile Your Model
# Section: all
"""RAF's tutorial "Profile Your Model" with prof in its place, and callables in place of its IR:
latency, single operators, memory. Files go into the current folder. Run: python3 raf_tutorial.py"""

import ctypes
import json
import sys
import time
from pathlib import Path

# The original has: import raf; from raf._ffi.op_profiler import Profile, ProfileGroup, ResetCache,
# GetCacheSize; and raf.testing for a model
sys.path.append(str(Path(__file__).resolve().parents[2]))  # models.py, operators.py
import models
import operators

import prof as raf
from prof.op_profiler import GetCacheSize, Op, Profile, ProfileGroup, ResetCache

MIB = 1 << 20
raf.trace_module(operators, category="Default Stream")  # RAF's operators are seen without this line


def setup_model():
    return models.resnet(), [operators.randn(1, 3, 8, 8)]


def run_vm_executor(executor, args):
    with raf.scope("run", "VM", 2):
        executor(*args)


# ---- Profile Latency ----

executor, args = setup_model()
for _ in range(3):
    run_vm_executor(executor, args)

raf.utils.profiler.clear()
raf.utils.profiler.start()
run_vm_executor(executor, args)
raf.utils.profiler.stop()

result = raf.utils.profiler.get()
with open("profile.json", "w") as filep:
    json.dump(result, filep, indent=4)  # chrome://tracing opens it
print("Entries:", len(result["traceEvents"]))
print("linear: %.3f ms" % raf.utils.profiler.get_duration(result, "operators.linear"))
raf.utils.profiler.dump("dumped.json")  # the same, without the dictionary
raf.utils.profiler.clear()

# Level 2 has the VM around them, too
raf.utils.profiler.start(prof_level=2)
run_vm_executor(executor, args)
raf.utils.profiler.stop()
print("VM: %.3f ms in %d run" % raf.utils.profiler.total("run", "VM"))
raf.utils.profiler.clear()

# ---- Profile Op Latency: of a callable, of numpy's, of a function in C ----

expr = Op(operators.conv2d, *args, operators.randn(27, 4))
device = raf.Device("cpu")

# First reset the op profiler cache.
ResetCache(device)

res = Profile(expr, device)
lat, ws_size = res["latency"], res["workspace_size"]
print("Latency:", lat[0].value)  # By default it only profiles once.
print("Workspace size:", ws_size.value)

res = Profile(expr, device, 1, 1, 2)  # warm-up, runs a sample, samples
print("Samples:", len(res["latency"]))
print("Cached:", GetCacheSize(device))

try:
    import numpy

    matrix = numpy.ones((64, 64), "float32")
    print(
        "numpy.matmul: %.1f us"
        % Profile(Op(numpy.matmul, matrix, matrix), device)["latency"][0].value
    )
except ImportError:
    print("numpy.matmul: numpy is not installed")

sched_yield = ctypes.CDLL(None).sched_yield  # any int f(void *); Python is not on its way
print(
    "sched_yield: %.2f us" % Profile(Op(sched_yield, key="sched_yield"), device)["latency"][0].value
)

res = ProfileGroup([Op(time.sleep, 0.001), Op(time.sleep, 0.002)], device, [1, 2], 1, 1, 3)
print("Two at once: %.1f ms" % (res["latency"][0].value / 1000))

# ---- Profile Memory: the runtime's pool is queried, RAF's way ----


class MemoryPool:
    """What is used of it, and what it has taken from the system."""

    def __init__(self):
        self.used = self.allocated = 0

    def alloc(self, bytes):
        self.used += bytes
        self.allocated = max(self.allocated, self.used)

    def free(self, bytes):
        self.used -= bytes


pool = MemoryPool()
raf.utils.memory_profiler.set_query(raf.Device("cuda"), lambda: (pool.used, pool.allocated))

raf.utils.memory_profiler.reset()
raf.utils.memory_profiler.start()
for tag, bytes in (("conv1", 24 * MIB), ("conv2", 40 * MIB), ("dense", 4 * MIB)):
    pool.alloc(bytes)
    # PROFILE_MEMORY() of a runtime in C++
    raf.utils.memory_profiler.sample(tag, raf.Device("cuda"))
    pool.free(bytes // 2)
raf.utils.memory_profiler.stop()

result = raf.utils.memory_profiler.get_max_memory_info(raf.Device("cuda"))
print("Max used memory (MBs):", result["max_used"].value)
print("Max allocated memory (MBs):", result["max_allocated"].value)
print("Memory Trace:")
print(raf.utils.memory_profiler.get_memory_trace(raf.Device("cuda")))

# ---- or it tells each piece ----

raf.utils.memory_profiler.start()
with raf.utils.memory_profiler.Pool("workspace", raf.Device("cuda", 1)) as told:
    told.reserve(0x10000000, 64 * MIB)
    told.alloc(0x10000000, 30 * MIB, tag="weights")
    told.alloc(0x12000000, 10 * MIB, tag="workspace")
    told.free(0x12000000, 10 * MIB)
raf.utils.memory_profiler.stop()
result = raf.utils.memory_profiler.get_max_memory_info(raf.Device("cuda", 1))
print("Max used memory (MBs):", result["max_used"].value)
print("Max allocated memory (MBs):", result["max_allocated"].value)
