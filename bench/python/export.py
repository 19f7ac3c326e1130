"""usage: python3 bench/python/export.py

With PYTHONPATH=bindings/python and PROF_LIBRARY, as bench/run.sh sets them; BENCH_QUICK=1: fewer
rounds; BENCH_DIR: where traces are written.

How many events a second export_chrome_trace() writes, of a million operators (operators.py). It is
compared with C's own prof_trace_dump() of the same capture, with the prof command beside the
library, and with torch.profiler's export if this Python has torch. They run in turns, so that a
busy machine disturbs all alike. Rates are of processor time. Beside them are those of wall time,
which includes what a busy machine and its disk add. Prints a line a promise, as cost.py; rates are
events a second, so a bound is the least."""

import contextlib
import gc
import importlib.util
import os
import platform
import subprocess
import tempfile

import operators
from cost import IS_QUICK, point, row, timed, timed_both

import prof
from prof._library import C

os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def rate(what, count, seconds, least=None):
    """A row of events a second: more is better, which row() does not know."""
    rates = [count / s / 1e6 for s in seconds]
    text = "%.2f M events/s (%.2f-%.2f)" % (point(rates, 0.5), point(rates, 0.1), point(rates, 0.9))
    word = "-" if least is None else ">= %.1f M/s" % least
    print(
        "%-56s | %-60s | %-11s | %s"
        % (
            what,
            text,
            word,
            "shown" if least is None else "held" if point(rates, 0.5) >= least else "NOT",
        ),
        flush=True,
    )


def both(what, count, found, least=None):
    rate(what, count, [cpu for _, cpu in found], least)
    rate("  in wall time", count, [wall for wall, _ in found])


def measure(what, path, out, count, rounds):
    """Of the profile's own face export_chrome_trace() is Trace.dump() with a window: cost.py holds
    the two against each other."""
    command = os.path.join(os.path.dirname(os.environ["PROF_LIBRARY"]), "prof")
    has_command = os.access(command, os.X_OK)
    by_python, by_c, by_command = [], [], []
    name = out.encode()
    with prof.Trace.open(path) as trace:
        for _ in range(rounds):
            gc.collect()
            by_c.append(timed_both(lambda: C.check(C.prof_trace_dump(trace.pointer, name, None))))
            by_python.append(timed_both(lambda: trace.dump(out, "chrome")))
            if has_command:
                by_command.append(
                    timed(
                        lambda: subprocess.run(
                            [command, "dump", path, "-o", out],
                            check=True,
                            stdout=subprocess.DEVNULL,
                        )
                    )
                )
    print(f"{what}: {os.path.getsize(out) / count:.0f} bytes an event")
    os.unlink(out)
    both(f"{what}, export from Python", count, by_python, 1.0)
    row(
        f"{what}, against prof_trace_dump()",
        [cpu for _, cpu in by_python],
        "ms",
        1e3,
        1.10,
        [cpu for _, cpu in by_c],
    )
    if has_command:
        row(
            f"{what}, against prof dump, opening too, wall",
            [wall for wall, _ in by_python],
            "ms",
            1e3,
            None,
            by_command,
        )


def measure_profile(out, rounds):
    """export_chrome_trace() of a profile that has just recorded."""
    with prof.profile(activities=[prof.ProfilerActivity.CPU]) as p:
        operators.steps(operators.COUNT // operators.STEP_COUNT, False)
    count = sum(average.count for average in p.key_averages())
    found = [timed_both(lambda: p.export_chrome_trace(out)) for _ in range(rounds)]
    os.unlink(out)
    both("profile.export_chrome_trace(), names alone", count, found, 1.0)


def measure_rival(out, rounds):
    import torch
    from torch.profiler import ProfilerActivity, profile

    x = torch.zeros(4)

    def export():
        with profile(activities=[ProfilerActivity.CPU]) as p:
            for _ in range(200000):
                x + x
        return timed_both(lambda: p.export_chrome_trace(out))

    found = []
    for _ in range(rounds):
        found.append(export())
        gc.collect()
    os.unlink(out)
    both("rival torch.profiler, names alone, 200 000 events", 200000, found)


def main():
    rounds = 5 if IS_QUICK else 15
    print(f"python export: Python {platform.python_version()}, {rounds} rounds, in turns")
    with tempfile.TemporaryDirectory(
        prefix="prof-bench-", dir=os.environ.get("BENCH_DIR")
    ) as folder:
        path, out = os.path.join(folder, "operators.prof"), os.path.join(folder, "trace.json")
        measure("names alone", path, out, operators.record(path, False), rounds)
        measure("with three shapes", path, out, operators.record(path, True), rounds)
        measure_profile(out, rounds)
        if importlib.util.find_spec("torch"):
            measure_rival(out, 2 if IS_QUICK else 5)
        else:
            print("skip: this Python has no torch to compare with")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
