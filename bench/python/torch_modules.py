"""usage: torch_modules.py

What prof.torch.observe(with_modules=True) and torch.profiler with stacks add to a call of an
nn.Module. In us of the thread's processor time: medians of ROUNDS alternating rounds, and their
range."""

import os
import statistics
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
import prof
import prof.torch  # before torch

# isort: split
import torch

ROUNDS, CALLS = 9, 10000
module = torch.nn.Identity()


def cost():
    begin = time.thread_time_ns()
    for _ in range(CALLS):
        module(None)
    return (time.thread_time_ns() - begin) / CALLS / 1000


def plain():
    return cost()


def observed():
    with prof.profile(), prof.torch.observe(with_modules=True):
        return cost()


def not_recorded():
    with prof.torch.observe(with_modules=True):
        return cost()


def by_torch():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True):
        return cost()


def main():
    ways = (plain, observed, not_recorded, by_torch)
    found = {way.__name__: [] for way in ways}
    for _ in range(ROUNDS):
        for way in ways:
            found[way.__name__].append(way())
    floor = statistics.median(found["plain"])
    print(f"torch {torch.__version__}, a call takes {floor:.2f} us")
    for name, values in found.items():
        print(
            f"{name:14} {statistics.median(values) - floor:+6.2f} us  ({min(values):.2f} to "
            f"{max(values):.2f}), {statistics.median(values) / floor:.1f}x"
        )


if __name__ == "__main__":
    main()
