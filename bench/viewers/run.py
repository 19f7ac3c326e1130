#!/usr/bin/env python3
"""usage: run.py [--scopes N,...] [--threads N,...] [--runs N] [BUILD]

What Perfetto's engine takes to load a .pftrace and the Chrome JSON of the same scopes. BUILD is
where CMake built prof; build/release by default. For each number of scopes and of threads the
script records a capture and writes both files, in TMPDIR. Then it loads the files in turn, in a new
process each time. Needs node 18, and the network once, for the engine.

Prints a line for each figure, as bench/frame.h does: what | measured | bound | verdict. All are
medians. A time is the processor time of all threads of node, because a busy machine hardly changes
it. A peak is the most memory that node ever had. The engine's memory is a part of it, grows by a
fifth at a time, and is not all used. An engine in WebAssembly has 4 GiB. A file that does not fit
there has no figures."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENDINGS = ("json", "pftrace")
FIGURES = (
    ("processor_seconds", "time", "s", 1, 1.0),
    ("seconds", "by the clock", "s", 1, None),
    ("peak_kib", "peak", "MiB", 1024, 0.6),
    ("engine_bytes", "engine's memory", "MiB", 1 << 20, None),
)
BYTES_BOUNDS = {"json": None, "pftrace": 29, "pftrace.gz": None}


def line(what, measured, bound="-", is_held=None):
    verdict = "shown" if is_held is None else "held" if is_held else "NOT"
    print(f"{what:<56} | {measured:<60} | {bound:<11} | {verdict}", flush=True)


def build_recorder(build, folder):
    words = ["-std=c11", "-O2", f"-I{ROOT / 'include'}", str(HERE / "record.c")]
    link = [f"-L{build}", "-lprof", "-pthread", f"-Wl,-rpath,{build}"]
    program = folder / "record"
    subprocess.run([os.environ.get("CC", "cc"), *words, *link, "-o", str(program)], check=True)
    return program


def load(engines, trace):
    command = ["node", str(HERE / "load.mjs"), engines, str(trace)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.startswith("{"):  # the engine's memory has ended in the middle of something
        return {"error": f"exit status {done.returncode}"}
    return json.loads(done.stdout)


def show_sizes(files, scopes):
    """Only one has a bound: JSON repeats the texts of a scope, and .gz depends on the durations."""
    for ending, path in files.items():
        size, bound = path.stat().st_size / scopes, BYTES_BOUNDS[ending]
        measured = f"{size:.1f} bytes a scope"
        if bound is None:
            line(f"size of .{ending}", measured)
        else:
            line(f"size of .{ending}", measured, f"{bound} bytes", size <= bound)


def show_loads(loads):
    errors = {e: load["error"] for e in ENDINGS for load in loads[e] if load["error"]}
    for ending, error in errors.items():
        line(f"load .{ending}", error.strip().split("\n")[0][:60])
    if errors:
        return
    for key, what, unit, divisor, bound in FIGURES:
        medians = [statistics.median(load[key] for load in loads[e]) for e in ENDINGS]
        text, packets = (value / divisor for value in medians)
        measured = f"{packets / text:.3f}x: {packets:.1f} of {text:.1f} {unit}"
        what = f"load of .pftrace over .json, {what}"
        if bound is None:
            line(what, measured)
        else:
            line(what, measured, f"{bound}x", packets / text <= bound)
    slices = {load["slices"] for e in ENDINGS for load in loads[e]}
    health = [row for e in ENDINGS for load in loads[e] for row in load["health"]]
    is_whole = len(slices) == 1 and not health
    line("slices of both; health", f"{sorted(slices)}; {health}", "one, []", is_whole)


def measure(options, engines, program, folder, scopes, threads):
    print(f"{scopes} scopes, {threads} thread(s)")
    capture = folder / "t.prof"
    capture.unlink(missing_ok=True)
    subprocess.run([str(program), str(scopes), str(threads), str(capture)], check=True)
    files = {ending: folder / f"t.{ending}" for ending in BYTES_BOUNDS}
    for path in files.values():
        prof = options.build / "prof"
        words = [str(prof), "dump", str(capture), "-o", str(path)]
        subprocess.run(words, check=True)
    show_sizes(files, scopes)
    loads = {ending: [] for ending in ENDINGS}
    for run in range(options.runs):
        for ending in ENDINGS if run % 2 == 0 else reversed(ENDINGS):
            loads[ending].append(load(engines, files[ending]))
    show_loads(loads)


def main():
    def numbers(text):
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--scopes", type=numbers, default=[2000000])
    parser.add_argument("--threads", type=numbers, default=[1, 4])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    options.build = options.build.resolve()
    engines = subprocess.run(
        [str(ROOT / "tests/viewers/fetch-engines.sh")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="prof-viewers-") as name:
        folder = pathlib.Path(name)
        program = build_recorder(options.build, folder)
        for scopes in options.scopes:
            for threads in options.threads:
                measure(options, engines, program, folder, scopes, threads)


if __name__ == "__main__":
    main()
