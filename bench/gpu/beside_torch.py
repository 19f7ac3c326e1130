"""usage: python3 bench/gpu/beside_torch.py --library LIBPROF.so [--rounds 4] [--launches 2000]

What a launch of torch's costs the host: bare, under torch.profiler (CUDA activity alone: kernels,
as prof's level 1), and under prof, preloaded, with records. The same loop of small operators in a
process of its own for each, in turn, since one tool at a time has CUPTI. Medians over all batches,
the 10 and 90 % points, and what each adds to bare. Exit status 77 where there is no torch with
CUDA, with a line that says so."""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

WAYS = ("bare", "torch.profiler", "prof")
BATCHES = 10


def point(values, share):
    ordered = sorted(values)
    return ordered[int((len(ordered) - 1) * share + 0.5)]


def why_not():
    """None where there is a torch with CUDA."""
    try:
        import torch
    except ImportError as error:
        return str(error)
    except OSError as error:  # a library of its own that is not there
        return "torch does not load: %s" % error
    return (
        None if torch.cuda.is_available() else "torch %s finds no CUDA device" % torch.__version__
    )


def batches(torch, launches):
    """ns a launch, a figure for each batch."""
    values = torch.zeros(16, device="cuda")
    found = []
    for batch in range(BATCHES + 2):
        torch.cuda.synchronize()
        begun = time.perf_counter_ns()
        for _ in range(launches):
            values.add_(1)
        took = time.perf_counter_ns() - begun
        if batch >= 2:  # the first ones load kernels, and fill a tool's first buffers
            found.append(took / launches)
    torch.cuda.synchronize()
    return found


def child(way, launches):
    import torch

    torch.zeros(16, device="cuda").add_(1)
    torch.cuda.synchronize()
    if way == "torch.profiler":
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            found = batches(torch, launches)
        kernels = sum(
            1
            for event in recorded.events()
            if "elementwise" in event.name or "vectorized" in event.name
        )
    else:
        time.sleep(0.2)  # prof looks for CUDA every 20 ms
        found, kernels = batches(torch, launches), None
    print(json.dumps({"ns": found, "kernels": kernels}))


class Info(ctypes.Structure):
    """The first two fields of prof_trace_info: a smaller size is taken."""

    _fields_ = [("size", ctypes.c_size_t), ("event_count", ctypes.c_uint64)]


def recorded_by_prof(library, path):
    """How many events, and what was lost, in prof's words."""
    prof = ctypes.CDLL(library)
    prof.prof_free.argtypes = [ctypes.c_void_p]
    trace, text, info = ctypes.c_void_p(), ctypes.c_char_p(), Info(size=ctypes.sizeof(Info))
    if prof.prof_trace_open(path.encode(), ctypes.byref(trace)) != 0:
        return 0, "no capture"
    prof.prof_trace_info_get(trace, ctypes.byref(info))
    prof.prof_trace_loss_text(trace, ctypes.byref(text))
    words = (text.value or b"").decode()
    prof.prof_free(ctypes.cast(text, ctypes.c_void_p))
    prof.prof_trace_destroy(trace)
    return info.event_count, words


def run(way, library, launches, folder):
    """One process of that way: what it measured, and how many launches were recorded in it."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PROF_") or name.startswith("PROF_BACKEND_")
    }
    output = os.path.join(folder, "t.prof")
    if way == "prof":
        environment.update(
            LD_PRELOAD=library, PROF_LEVEL="1", PROF_DEVICES="records", PROF_OUTPUT=output
        )
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "--child", way, "--launches", str(launches)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"ns"')]
    if done.returncode != 0 or not lines:
        sys.exit(
            "failed   %s: status %d: %s"
            % (way, done.returncode, (done.stderr or done.stdout).strip()[-500:])
        )
    found = json.loads(lines[-1])
    words = None
    if way == "prof":
        found["kernels"], words = recorded_by_prof(library, output)
        if os.path.exists(output):
            os.unlink(output)
    return found["ns"], found["kernels"], words


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", help="libprof.so")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--launches", type=int, default=2000)
    parser.add_argument("--child", choices=WAYS)
    given = parser.parse_args()
    if given.rounds < 1 or given.launches < 1:
        parser.error("rounds and launches are 1 at least")
    if given.child:
        child(given.child, given.launches)
        return 0
    why = why_not()
    if why:
        print("%-8s %-32s no torch with CUDA: %s" % ("skipped", "torch", why))
        return 77
    if not given.library or not os.path.exists(given.library):
        parser.error("--library names no file")
    return measure(os.path.abspath(given.library), given.rounds, given.launches)


def measure(library, rounds, launches):
    import torch

    print(
        "torch %s, CUDA %s; %d rounds of %d batches of %d launches"
        % (torch.__version__, torch.version.cuda, rounds, BATCHES, launches),
        flush=True,
    )
    found = {way: [] for way in WAYS}
    kernels, words = {}, None
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for way in WAYS[turn % len(WAYS) :] + WAYS[: turn % len(WAYS)]:
                ns, kernels[way], told = run(way, library, launches, folder)
                found[way] += ns
                words = told or words
    bare = point(found["bare"], 0.5)
    for way in WAYS:
        middle = point(found[way], 0.5)
        print(
            "%-15s %9.1f ns a launch (%.1f to %.1f), %+9.1f ns"
            % (way, middle, point(found[way], 0.1), point(found[way], 0.9), middle - bare)
        )
    least = BATCHES * launches
    print(
        "recorded in the last process of each: torch.profiler %s kernels, prof %s events (%s); "
        "launches %d and a few"
        % (kernels["torch.profiler"], kernels["prof"], words, least + 2 * launches)
    )
    is_there = kernels["prof"] >= least
    print(
        "%-8s %-32s %d of at least %d"
        % (
            "ok" if is_there else "failed",
            "prof has recorded torch's kernels",
            kernels["prof"],
            least,
        )
    )
    return 0 if is_there else 1


if __name__ == "__main__":
    sys.exit(main())
