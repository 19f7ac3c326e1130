"""usage: python3 bench/python/table.py

With PYTHONPATH=bindings/python and PROF_LIBRARY, as bench/run.sh sets them; BENCH_QUICK=1: fewer
rounds; BENCH_DIR: where captures are written.

How long torch.profiler's table takes of a capture with a million operators (operators.py), the
file's opening included: by name, and by shapes. If this Python has torch and the prof command is
beside the library, also of a trace that the real torch.profiler recorded.
Bounds are of processor time. One thread reads what is in the page cache, so on a quiet machine that
is the wall time. If the wall time is longer, the two lines below it say why. They count how often
the kernel gave the processor to another process, and how often the thread waited (for the disk, a
lock), which it does not. Prints a line a promise, as cost.py."""

import contextlib
import gc
import importlib.util
import os
import platform
import resource
import subprocess
import sys
import tempfile

import operators
from cost import IS_QUICK, row, timed, timed_both

import prof

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
BOUND_S = 0.5


def table(path, **options):
    with prof.Trace.open(path) as trace:
        return trace.key_averages(**options).table(sort_by="self_cpu_time_total")


def measure(what, path, rounds, **options):
    found, switches = [], []
    for _ in range(rounds):
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF)
        found.append(timed_both(lambda: table(path, **options)))
        after = resource.getrusage(resource.RUSAGE_SELF)
        switches.append((after.ru_nivcsw - before.ru_nivcsw, after.ru_nvcsw - before.ru_nvcsw))
    row(what, [cpu for _, cpu in found], "s", 1, BOUND_S)
    row("  in wall time", [wall for wall, _ in found], "s", 1)
    row("  the processor was given to others", [taken for taken, _ in switches], "times", 1)
    row("  the thread waited", [waited for _, waited in switches], "times", 1)


def check(path, count):
    """Nothing was left out."""
    with prof.Trace.open(path) as trace:
        found = sum(average.count for average in trace.key_averages())
    assert found == count, (found, count)


def measure_import(folder, rounds):
    """A million operators of the real torch, each with its shapes."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    command = os.path.join(os.path.dirname(os.environ["PROF_LIBRARY"]), "prof")
    if not os.access(command, os.X_OK):
        print(f"skip: {command} is not there to import torch's trace")
        return
    model, x = (
        torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)),
        torch.randn(2, 8),
    )

    def recorded(turns):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
            for _ in range(turns):
                model(x).sum().backward()
        return p

    json_path, path = os.path.join(folder, "torch.json"), os.path.join(folder, "torch.prof")
    each = len(recorded(100).profiler.kineto_results.events()) / 100
    p = recorded(round(operators.COUNT / each))
    p.export_chrome_trace(json_path)
    del p
    gc.collect()
    took = timed(
        lambda: subprocess.run(
            [command, "import", json_path, "-o", path],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
    os.unlink(json_path)
    with prof.Trace.open(path) as trace:
        count = sum(average.count for average in trace.key_averages())
    assert 0.95 < count / operators.COUNT < 1.1, count
    row(f"prof import of torch's trace, {count} operators", [took], "s", 1)
    measure("the same of torch's trace, imported", path, rounds)
    measure(
        "the same of torch's trace, imported, by shapes", path, rounds, group_by_input_shape=True
    )


def under(depth, then):
    return under(depth - 1, then) if depth else then()


def measure_many(rounds):
    """The averages of 200 000 events in memory."""
    empty = prof.record_function("many")(lambda: None)
    with prof.profile() as p:
        for _ in range(200000):
            empty()
    row(
        "key_averages(), 200 000 events in memory",
        [timed_both(p.key_averages)[1] for _ in range(rounds)],
        "s",
        1,
        0.1,
    )


def measure_deep(rounds):
    """Rows by stack: a scope 600 functions deep beside one at 1. A walk to the outside for each
    would be 600 times."""
    sys.setrecursionlimit(3000)

    def work(scopes):
        for _ in range(scopes):
            with prof.scope("leaf"):
                pass

    found = []
    for depth, scopes in ((1, 20000), (600, 20), (600, 20000)):
        with prof.profile(with_stack=True) as p, prof.trace_functions():
            under(depth, lambda scopes=scopes: work(scopes))
        found.append(
            [timed_both(lambda p=p: p.trace.aggregate(["name", "stack"]))[1] for _ in range(rounds)]
        )
    # the 600 rows' own texts are in both
    deep = [all_ - few for all_, few in zip(found[2], found[1])]
    row("rows by stack, 20 000 scopes 600 deep, beside 1 deep", deep, "s", 1, 20, found[0])


def main():
    rounds = 5 if IS_QUICK else 15
    print(
        f"python table: Python {platform.python_version()}, {rounds} rounds; opened, "
        f"key_averages().table(), a million operators, {operators.THREADS} threads"
    )
    measure_many(rounds)
    measure_deep(rounds)
    with tempfile.TemporaryDirectory(
        prefix="prof-bench-", dir=os.environ.get("BENCH_DIR")
    ) as folder:
        path = os.path.join(folder, "operators.prof")
        check(path, operators.record(path, False))
        measure("Trace.open(), key_averages().table()", path, rounds)
        check(path, operators.record(path, True))
        measure("the same, each operator with three shapes", path, rounds)
        measure("the same, group_by_input_shape=True", path, rounds, group_by_input_shape=True)
        os.unlink(path)
        if importlib.util.find_spec("torch"):
            measure_import(folder, rounds)
        else:
            print("skip: this Python has no torch whose trace could be imported")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
