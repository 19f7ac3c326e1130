"""usage: python3 bench/python/cost.py

With PYTHONPATH=bindings/python and PROF_LIBRARY, as bench/run.sh sets them; BENCH_QUICK=1: fewer
rounds; BENCH_DIR: where traces are written.

What the package costs in Python: a scope, the averages, an export, the import. In turns, so that a
busy machine disturbs all alike; medians, and the 10 and 90 % points. Where this Python has torch,
torch.profiler does the same beside it. Prints a line a promise, as bench/frame.h does: what |
measured | bound | held or NOT."""

import contextlib
import gc
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import time

import prof
from prof._library import C
from prof.profiler import clear

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
IS_QUICK = os.environ.get("BENCH_QUICK", "0") != "0"
LOOPS = 20000


def point(values, share):
    ordered = sorted(values)
    return ordered[int((len(ordered) - 1) * share + 0.5)]


def row(what, values, unit, scale, bound=None, beside=None):
    """beside: the same rounds' values of what it is compared with; the bound is then of the median
    ratio."""
    text = "%.3f %s (%.3f-%.3f)" % (
        point(values, 0.5) * scale,
        unit,
        point(values, 0.1) * scale,
        point(values, 0.9) * scale,
    )
    judged = point(values, 0.5) * scale
    if beside:
        judged = point([a / b for a, b in zip(values, beside)], 0.5)
        text += ", %.2fx" % judged
    word = "-" if bound is None else "%.2f%s" % (bound, "x" if beside else " " + unit)
    print(
        "%-56s | %-60s | %-11s | %s"
        % (what, text, word, "shown" if bound is None else "held" if judged <= bound else "NOT"),
        flush=True,
    )


def timed(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def timed_both(call):
    """Wall and processor time: the latter is what a call that waits for nothing takes of a machine
    that others use, too."""
    begun = time.process_time()
    wall = timed(call)
    return wall, time.process_time() - begun


def empty(count, _):
    for _ in range(count):
        pass


def scopes(count, record_function):
    for _ in range(count):
        with record_function("x"):
            pass


def counters(count, counter):
    for _ in range(count):
        counter("loss", 0.5)


def instants(count, instant):
    for _ in range(count):
        instant("epoch")


def nested(count, scope):
    """Five a turn: a layer, two operators, kernels in the first."""
    for _ in range(count // 5):
        with scope("layer"):
            with scope("conv"):
                with scope("kernel"):
                    pass
                with scope("copy"):
                    pass
            with scope("relu"):
                pass


def measure_scopes(torch, rounds):
    found = {name: [] for name in ("empty", "off", "on", "torch off", "torch on")}

    def one(name, loop, given):
        found[name].append(timed(lambda: loop(LOOPS, given)) / LOOPS)

    for _ in range(rounds):
        clear()
        gc.collect()
        one("empty", empty, None)
        one("off", scopes, prof.record_function)
        with prof.profile():
            one("on", scopes, prof.record_function)
        if torch:
            one("torch off", scopes, torch.profiler.record_function)
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
                one("torch on", scopes, torch.profiler.record_function)

    def less(name):
        return [a - b for a, b in zip(found[name], found["empty"])]

    row("with record_function(): pass, on, less the loop", less("on"), "us", 1e6, 0.13)
    row("with record_function(): pass, off, less the loop", less("off"), "us", 1e6, 0.10)
    if torch:
        row("rival torch.profiler, on, less the loop", less("torch on"), "us", 1e6)
        row("rival torch.profiler, off, less the loop", less("torch off"), "us", 1e6)


def measure_marks(rounds):
    loops = {
        "empty": (empty, None),
        "counter()": (counters, prof.counter),
        "instant()": (instants, prof.instant),
    }
    found = {(name, state): [] for name in loops for state in ("off", "on")}

    def turn(state):
        for name, (loop, given) in loops.items():
            found[name, state].append(timed(lambda: loop(LOOPS, given)) / LOOPS)

    for _ in range(rounds):
        clear()
        gc.collect()
        turn("off")
        with prof.profile():
            turn("on")
    for name in list(loops)[1:]:
        for state in ("on", "off"):
            less = [a - b for a, b in zip(found[name, state], found["empty", state])]
            row(f"{name}, {state}, less the loop", less, "us", 1e6)


def recorded(module, count, **options):
    scope = module.record_function
    with module.profile(activities=[module.ProfilerActivity.CPU], **options) as p:
        nested(count, scope)
    return p


def measure_averages(torch, rounds):
    clear()
    p, mine, theirs = recorded(prof, 200000), [], []
    assert sum(a.count for a in p.key_averages()) == 200000
    for _ in range(rounds):
        mine.append(timed(p.key_averages))
    row("key_averages() of 200 000 events", mine, "s", 1, 0.1)
    clear()
    p, mine = recorded(prof, 10000000), []
    assert sum(a.count for a in p.key_averages()) == 10000000
    for _ in range(3):
        mine.append(timed(lambda: p.key_averages().table()))
    row("key_averages().table() of 10 000 000 events", mine, "s", 1, 2.0)
    p = None
    if torch:
        for _ in range(1 if IS_QUICK else 3):  # a profile adds up once, and keeps it
            p = recorded(torch.profiler, 200000)
            theirs.append(timed(p.key_averages))
            del p
            gc.collect()
        row("rival torch.profiler, the first of a profile", theirs, "s", 1)


def measure_export(torch, rounds, folder):
    path = os.path.join(folder, "trace.json")
    for count, label in ((200000, "200 000"), (1000000, "1 000 000")):
        clear()
        p, by_c, by_python, with_more = recorded(prof, count), [], [], []
        pointer, name = p.trace.pointer, path.encode()
        for _ in range(rounds):
            by_c.append(timed(lambda: C.check(C.prof_trace_dump(pointer, name, None))))
            by_python.append(timed(lambda: p.export_chrome_trace(path)))
        p.add_metadata("model", "small")
        for _ in range(rounds):
            with_more.append(timed(lambda: p.export_chrome_trace(path)))
        row(f"prof_trace_dump() of {label} events", by_c, "ms", 1e3)
        row("export_chrome_trace(), against it", by_python, "ms", 1e3, 1.10, by_c)
        row("export_chrome_trace() with metadata, against it", with_more, "ms", 1e3, None, by_c)
        if torch and count == 200000:
            theirs = []
            for _ in range(1 if IS_QUICK else 3):
                rival = recorded(torch.profiler, count)
                theirs.append(timed(lambda: rival.export_chrome_trace(path)))
                del rival
                gc.collect()
            row("rival torch.profiler, 200 000 events", theirs, "ms", 1e3)
        p = None
        gc.collect()
    clear()


def measure_import(has_torch, rounds):
    codes = {
        "start": "pass",
        "prof": "import prof",
        "used": "import prof; prof.profile; prof.record_function",
    }
    if has_torch:
        codes["torch"] = "import torch.profiler"
    found = {name: [] for name in codes}
    # an installed package has its bytecode
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for turn in range(-1, rounds):
        for name, code in codes.items():
            if name == "torch" and turn > 3:
                continue
            took = timed(
                lambda: subprocess.run(
                    [sys.executable, "-c", code],
                    check=True,
                    env=environment,
                    stderr=subprocess.DEVNULL,
                )
            )
            if turn >= 0:
                found[name].append(took)

    def beyond(name):
        return [a - b for a, b in zip(found[name], found["start"])]

    row("python3 -c pass", found["start"], "ms", 1e3)
    row("import prof, beyond it", beyond("prof"), "ms", 1e3, 5)
    row("import prof; prof.profile; prof.record_function", beyond("used"), "ms", 1e3)
    if has_torch:
        row("rival import torch.profiler, beyond it", beyond("torch"), "ms", 1e3)


def main():
    has_torch = importlib.util.find_spec("torch") is not None
    torch = None
    rounds = 5 if IS_QUICK else 15
    print(f"python: Python {platform.python_version()}, {rounds} rounds, in turns")
    gc.disable()
    measure_import(has_torch, 2 * rounds)
    if has_torch:
        import torch
        import torch.profiler
    else:
        print("skip: this Python has no torch to compare with")
    measure_scopes(torch, rounds)
    measure_marks(rounds)
    measure_averages(torch, rounds)
    with tempfile.TemporaryDirectory(
        prefix="prof-bench-", dir=os.environ.get("BENCH_DIR")
    ) as folder:
        measure_export(torch, rounds, folder)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
