# Guide: RAF, Profile Your Model
# Section: Profile Your Model
#
# What the other snippets run. RAF compiles a model and executes it in its VM. Here a small residual
# network in plain Python takes its place: models.py and operators.py, two folders up.

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import models
import operators

import prof as raf

CATEGORY = "Default Stream"
POOL_BYTES = 1 << 20


class Pool:
    """The VM's memory: what tensors use of it, and what it has taken from the system."""

    used, allocated = 0, POOL_BYTES

    def alloc(self, address, bytes):
        self.used += bytes

    def free(self, address, bytes):
        self.used -= bytes


operators.pool = pool = Pool()


def setup_model():
    return models.resnet(), [operators.randn(1, 3, 8, 8)]


def get_vm_executor(model, device):
    """A function of the inputs. Level 2 shows each run of it, and memory is sampled behind it."""
    raf.utils.memory_profiler.set_query(raf.Device(device), lambda: (pool.used, pool.allocated))
    raf.trace_module(operators, category=CATEGORY)  # RAF records its operators by itself

    def run(*inputs):
        with raf.scope("run", "VM", 2):
            result = model(*inputs)
        raf.utils.memory_profiler.sample("run", raf.Device(device))
        return result

    return run


def run_vm_executor(executor, args):
    return executor(*args)


def run_vm_model(model, device, args):
    return run_vm_executor(get_vm_executor(model, device), args)


if __name__ == "__main__":
    model, args = setup_model()
    print("Shape:", run_vm_model(model, "cpu", args).shape)
