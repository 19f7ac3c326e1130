"""usage: .venv-torch/bin/python bench/python/torch_table.py [--json] [RUNS]

With PYTHONPATH=bindings/python and PROF_LIBRARY, as bench/run.sh sets them.

resnet18's table by prof.torch.observe() beside torch.profiler's, in one process and row for row.
Compares calls, self and total times of RUNS runs of each (9), in turns, and says which rows are not
within torch's own spread. Memory has runs of its own. Prints Markdown. --json prints what was
measured, with the groups by shape, too: tests/python/test_observe_table.py checks it by the same
rules."""

import collections
import json
import os
import statistics
import sys

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
import prof.torch  # before torch

RUNS = 9
OWN_US = 1.0
"""Of a call: what a profiler itself adds to it, of which a part is the call's and a part its
caller's: 0.2 us prof's, 0.4 torch's."""
COLD_US = 10.0
"""The part of a row by which prof's may be shorter. It is torch.profiler's own code where caches
are cold. Example: Behind a pooling of 16 MB, aten::max_pool2d's self time is 19 us by prof and 29
by torch, in every run."""
SHIFT, SHIFTS = "torch_table.py's own", 150
"""Scopes before the work, more with each run. prof's next piece of memory takes 40 to 160 us when
it is first touched, once in 16 to 64 KiB. That must not fall on the same call each time, as it does
if the same work is recorded from the same beginning."""


# ---- the rules ----


def is_within(mine, theirs, calls):
    """Is the median of mine where theirs are, or no further off than they are from each other, but
    for what profilers add?"""
    low, high = min(theirs), max(theirs)
    slack = (high - low) + OWN_US * calls
    return low - slack - COLD_US <= statistics.median(mine) <= high + slack


COLUMNS = ("self_us", "total_us")
"""Of a row, the times to compare."""


def calls_of(one):
    """Of a row in torch's table."""
    return one["theirs"].get("calls", [0])[-1]


# ---- what is measured ----


def resnet18():
    """Something to call."""
    import torch
    import torchvision

    torch.set_num_threads(1)
    torch.manual_seed(3)
    model, x = torchvision.models.resnet18(weights=None).eval(), torch.randn(5, 3, 224, 224)

    def work():
        with torch.no_grad():
            model(x)

    return work


def by_torch(work, **options):
    import torch.profiler

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as p:
        work()
    return p


def by_prof(work, turn, **options):
    with prof.profile(**options) as p, prof.torch.observe(**options):
        for _ in range(SHIFTS * turn):
            with prof.scope(SHIFT):
                pass
        work()
    return p


def note(found, side, averages, by_shape):
    for a in averages:
        if a.key == SHIFT:
            continue
        key = f"{a.key} {a.input_shapes}" if by_shape else a.key
        one = found.setdefault(
            key, {"mine": collections.defaultdict(list), "theirs": collections.defaultdict(list)}
        )[side]
        one["calls"].append(a.count)
        one["self_us"].append(a.self_cpu_time_total)
        one["total_us"].append(a.cpu_time_total)
        one["self_bytes"].append(a.self_cpu_memory_usage)
        one["total_bytes"].append(a.cpu_memory_usage)


def measure(runs, by_shape=False, with_memory=False):
    """Rows by their names: of both sides a list of a number a run."""
    work, found, options = (
        resnet18(),
        {},
        {"record_shapes": by_shape, "profile_memory": with_memory},
    )
    sides = [
        ("mine", lambda turn: by_prof(work, turn, **options)),
        ("theirs", lambda turn: by_torch(work, **options)),
    ]
    for _, of in sides:
        of(0)
    for turn in range(runs):
        for side, of in sides if turn % 2 else reversed(sides):
            p = of(turn)
            note(found, side, p.key_averages(group_by_input_shape=by_shape), by_shape)
    return found


# ---- what is shown ----


def kib(count):
    return f"{count / 1024:.1f} KiB"


def line(name, one, memory):
    """Of both sides calls, self and total time with torch's least and most; self memory; a word
    where the rules do not hold."""
    mine, theirs, words = one["mine"], one["theirs"], []
    calls = calls_of(one)
    for column in COLUMNS:
        if not is_within(mine[column], theirs[column], calls):
            words.append(f"{column} off")
    if set(mine["calls"]) != {calls}:
        words.append("calls off")
    both = memory[name]
    bytes_mine, bytes_theirs = (both[side]["self_bytes"][0] for side in ("mine", "theirs"))
    if any(
        both["mine"][column] != both["theirs"][column] for column in ("self_bytes", "total_bytes")
    ):
        words.append("memory off")
    us = lambda values: (  # noqa: E731
        f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"
    )
    cells = [
        name,
        mine["calls"][0],
        theirs["calls"][0],
        us(mine["self_us"]),
        us(theirs["self_us"]),
        f"{statistics.median(mine['total_us']):.1f}",
        f"{statistics.median(theirs['total_us']):.1f}",
        kib(bytes_mine),
        kib(bytes_theirs),
        ", ".join(words) or "held",
    ]
    return "| " + " | ".join(str(c) for c in cells) + " |"


def main():
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    runs = int(words[0]) if words else RUNS
    found = {"times": measure(runs), "memory": measure(3, with_memory=True)}
    if "--json" in sys.argv:
        print(json.dumps({**found, "shapes": measure(runs, by_shape=True)}))
        return
    import torch
    import torchvision

    print(
        f"resnet18 on (5,3,224,224): Python {sys.version.split()[0]}, torch {torch.__version__}, "
        f"torchvision {torchvision.__version__}, one thread, {runs} runs of each by turns; us: "
        f"medians (least-most)\n"
    )
    print(
        "| name | calls: prof | torch | self us: prof | torch | total us: prof | torch | self "
        "memory: prof | torch | |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for name, one in sorted(
        found["times"].items(), key=lambda item: -statistics.median(item[1]["theirs"]["self_us"])
    ):
        print(line(name, one, found["memory"]))


if __name__ == "__main__":
    main()
