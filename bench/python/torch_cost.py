"""usage: .venv-torch/bin/python bench/python/torch_cost.py

With PYTHONPATH=bindings/python and PROF_LIBRARY, as bench/run.sh sets them; BENCH_QUICK=1: fewer
rounds.

What prof.torch.observe() adds to one operator of torch's (torch.add() of 4 floats), beside
torch.profiler, which records it, too: names and times, then each further column. In turns, so that
a busy machine disturbs all alike; medians, and the 10 and 90 % points of the thread's processor
time: what others do on the machine is not in it. ITT's own share, without a collector, is of
another process: one has a collector, or none, for its life. Prints a line a promise, as cost.py
does."""

import contextlib
import gc
import os
import subprocess
import sys
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
from cost import IS_QUICK, point, row

import prof

ROUNDS = 5 if IS_QUICK else 60
LOOPS = 5000
ALONE, PRELOADED = "without-a-collector", "with-malloc-recorded"


def adds(torch, x):
    """Seconds of one."""
    add, begun = torch.add, time.thread_time()
    for _ in range(LOOPS):
        add(x, x)
    return (time.thread_time() - begun) / LOOPS


def chained(torch, x):
    """The same, three functions deep, as a module's forward() is."""

    def call(x):
        return call_impl(x)

    def call_impl(x):
        return forward(x)

    def forward(x):
        return add(x, x)

    add, begun = torch.add, time.thread_time()
    for _ in range(LOOPS):
        call(x)
    return (time.thread_time() - begun) / LOOPS


def measure(torch, contexts, adds=adds):
    """What each adds to an operator, in seconds, round by round."""
    torch.set_num_threads(1)
    x, found = torch.ones(4), {name: [] for name in contexts}
    for turn in range(-1, ROUNDS):
        plain = adds(torch, x)
        for name, around in contexts.items():
            gc.collect()
            prof.profiler.clear()
            with contextlib.ExitStack() as stack:
                for one in around():
                    stack.enter_context(one)
                took = adds(torch, x)
            if turn >= 0:
                found[name].append(took if name in ("plain", "whole") else took - plain)
    return found


def in_another_process(word, **variables):
    done = subprocess.run(
        [sys.executable, __file__, word],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    return [float(v) for v in done.stdout.split()]


def other_process(word):
    if word == PRELOADED:
        observe = prof.torch.observe(profile_memory=True)
        import torch

        found = measure(torch, {"whole": lambda: (prof.profile(profile_memory=True), observe)})
    else:
        import torch

        found = measure(torch, {"itt": lambda: (torch.autograd.profiler.emit_itt(),)})
    print(*next(iter(found.values())))


def main():
    if sys.argv[1:]:
        return other_process(sys.argv[1])
    observe = prof.torch.observe
    import torch
    import torch.profiler

    def kineto(**options):
        return lambda: (
            torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options),
        )

    print(
        f"torch: Python {sys.version.split()[0]}, torch {torch.__version__}, {ROUNDS} rounds, in "
        f"turns"
    )
    found = measure(
        torch,
        {
            "plain": lambda: (),
            "nobody records": lambda: (observe(),),
            "nobody records shapes": lambda: (observe(record_shapes=True),),
            "on": lambda: (prof.profile(), observe()),
            "all threads": lambda: (prof.profile(), observe(profile_all_threads=True)),
            "all threads, and this one's": lambda: (
                prof.profile(),
                observe(profile_all_threads=True),
                observe(),
            ),
            "itt": lambda: (prof.profile(), torch.autograd.profiler.emit_itt()),
            "torch": kineto(),
            "shapes": lambda: (prof.profile(), observe(record_shapes=True)),
            "torch shapes": kineto(record_shapes=True),
            "stacks": lambda: (prof.profile(with_stack=True), observe(with_stack=True)),
            "torch stacks": kineto(with_stack=True),
            "memory": lambda: (prof.profile(profile_memory=True), observe(profile_memory=True)),
            "torch memory": kineto(profile_memory=True),
        },
    )
    in_functions = measure(
        torch,
        {
            "plain": lambda: (),
            "stacks": lambda: (prof.profile(with_stack=True), observe(with_stack=True)),
            "torch stacks": kineto(with_stack=True),
        },
        chained,
    )
    with prof.profile() as p, observe():
        adds(torch, torch.ones(4))
    assert {a.key: a.count for a in p.key_averages()}["aten::add"] == LOOPS
    row("torch.add() of 4 floats, nobody looks", found["plain"], "us", 1e6)
    row("ITT without a collector adds", in_another_process(ALONE), "us", 1e6)
    row("observe() adds, nobody records", found["nobody records"], "us", 1e6)
    row("the same with record_shapes", found["nobody records shapes"], "us", 1e6)
    row("observe() adds: names, times, sequence numbers", found["on"], "us", 1e6, 0.35)
    row("the same of all threads", found["all threads"], "us", 1e6)
    row("of all threads against of this one", found["all threads"], "us", 1e6, 1.1, found["on"])
    row("of all threads, and of this one beside", found["all threads, and this one's"], "us", 1e6)
    row("by ITT: names and times", found["itt"], "us", 1e6)
    row("rival torch.profiler adds: names and times", found["torch"], "us", 1e6)
    row("observe() against torch.profiler", found["on"], "us", 1e6, 1.0, found["torch"])
    row("with shapes and dtypes", found["shapes"], "us", 1e6, 0.65)
    row("rival torch.profiler: with shapes", found["torch shapes"], "us", 1e6)
    row(
        "with shapes against torch.profiler", found["shapes"], "us", 1e6, 1.2, found["torch shapes"]
    )
    row("with stacks", found["stacks"], "us", 1e6, 0.75)
    row("rival torch.profiler: with stacks", found["torch stacks"], "us", 1e6)
    row(
        "with stacks, against torch.profiler",
        found["stacks"],
        "us",
        1e6,
        1.0,
        found["torch stacks"],
    )
    row("torch.add() in three functions, nobody looks", in_functions["plain"], "us", 1e6)
    row("with stacks, the functions among them", in_functions["stacks"], "us", 1e6)
    row(
        "rival torch.profiler: with stacks, the functions among them",
        in_functions["torch stacks"],
        "us",
        1e6,
    )
    row(
        "with stacks and functions, against torch.profiler",
        in_functions["stacks"],
        "us",
        1e6,
        1.0,
        in_functions["torch stacks"],
    )
    row("with memory, as torch reports it", found["memory"], "us", 1e6, 0.80)
    row("rival torch.profiler: with memory", found["torch memory"], "us", 1e6)
    row(
        "with memory against torch.profiler", found["memory"], "us", 1e6, 1.0, found["torch memory"]
    )
    preload = os.path.join(os.path.dirname(prof.torch.collector()), "libprof_memory.so")
    if os.path.exists(preload):
        plain = point(found["plain"], 0.5)  # there malloc() is recorded from the start on
        row(
            "with memory (malloc() recorded)",
            [v - plain for v in in_another_process(PRELOADED, LD_PRELOAD=preload, PROF_MEMORY="1")],
            "us",
            1e6,
            0.80,
        )


if __name__ == "__main__":
    main()
