"""RAF's profilers as its tutorial uses them, with callables in place of its IR: latency, memory, single operators. Files go into the current folder. Run: python3 raf_tutorial.py"""

import ctypes
import json
import time

# The original has: import raf; from raf.utils import profiler, memory_profiler; from raf._core.profiler ... op_profiler
import prof
from prof import memory_profiler, op_profiler, profiler

MIB = 1 << 20
device = prof.Device("cpu")


def conv2d(count):
    total = 0.0
    for i in range(count):
        total += i * 0.5
    return total


class Arena:
    """Memory of a runtime: what is used of it, and what it has taken from the system."""

    def __init__(self):
        self.used = self.allocated = 0

    def request(self, bytes):
        self.used += bytes
        self.allocated = max(self.allocated, self.used)

    def give_back(self, bytes):
        self.used -= bytes


# ---- latency: start, run, stop, get ----

profiler.start()
for i in range(3):
    with prof.scope("raf.op.conv2d", "Default Stream"):
        conv2d(20000)
with prof.scope("raf.op.dense", "Default Stream"):
    conv2d(5000)
profiler.stop()

data = profiler.get()
print("events:", len(data["traceEvents"]))
print("dense took %.3f ms" % profiler.get_duration(data, "raf.op.dense"))
print("conv2d took %.3f ms in %d calls" % profiler.total("raf.op.conv2d"))
with open("profile.json", "w") as f:
    json.dump(data, f)  # chrome://tracing opens it
profiler.dump("dumped.json")  # the same, without the dictionary
profiler.clear()

# ---- memory, asked: the pool says what it has ----

arena = Arena()
memory_profiler.set_query(device, lambda: (arena.used, arena.allocated))
memory_profiler.reset()
memory_profiler.start()
for tag, bytes in (("conv1", 24 * MIB), ("conv2", 40 * MIB), ("dense", 4 * MIB)):
    arena.request(bytes)
    memory_profiler.sample(tag, device)
    arena.give_back(bytes // 2)
memory_profiler.stop()
memory_profiler.set_query(device, None)

info = memory_profiler.get_max_memory_info(device)
print("max used %.1f MB, max allocated %.1f MB" % (info["max_used"].value, info["max_allocated"].value))
print(memory_profiler.get_memory_trace(device))

# ---- memory, told: the pool says each piece ----

memory_profiler.reset()
memory_profiler.start()
with memory_profiler.Pool("workspace", device) as pool:
    pool.reserve(0x10000000, 64 * MIB)
    pool.alloc(0x10000000, 30 * MIB, tag="weights")
    pool.alloc(0x12000000, 10 * MIB, tag="workspace")
    pool.free(0x12000000, 10 * MIB)
memory_profiler.stop()
info = memory_profiler.get_max_memory_info(device, source="pool")
print("max used %.1f MB, max allocated %.1f MB" % (info["max_used"].value, info["max_allocated"].value))

# ---- one operator: a callable, a numpy function, a function in C ----

op_profiler.ResetCache(device)
res = op_profiler.Profile(op_profiler.Op(conv2d, 1000), device)
print("a callable: %.1f us, workspace %d bytes" % (res["latency"][0].value, res["workspace_size"].value))

res = op_profiler.Profile(op_profiler.Op(conv2d, 1000), device, 2, 5, 4)  # warm-up, runs a sample, samples
print("samples:", len(res["latency"]))

try:
    import numpy

    a = numpy.ones((64, 64), "float32")
    res = op_profiler.Profile(op_profiler.Op(numpy.matmul, a, a), device)
    print("numpy.matmul: %.1f us" % res["latency"][0].value)
except ImportError:
    print("numpy.matmul: numpy is not installed")

sched_yield = ctypes.CDLL(None).sched_yield  # any int f(void *): called without Python in between
res = op_profiler.Profile(op_profiler.Op(sched_yield, key="sched_yield"), device)
print("a function in C: %.2f us" % res["latency"][0].value)

res = op_profiler.ProfileGroup([op_profiler.Op(time.sleep, 0.001), op_profiler.Op(time.sleep, 0.002)], device, [1, 2], 1, 1, 3)
print("two at once: %.1f ms" % (res["latency"][0].value / 1000))
print("results kept:", op_profiler.GetCacheSize(device))
