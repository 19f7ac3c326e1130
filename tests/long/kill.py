"""kill.py PROF FOLDER TIMES COMMAND...: kills a test subject with SIGKILL while it records, and
compares its capture with the counts that it had shared until then. Each ended scope is there, and
none before its end had begun.
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

HANG_SECONDS = int(os.environ.get("PROF_TEST_HANG_SECONDS") or 300)
FIELDS = struct.Struct("=QQQ")  # begun, ending, ended: as the host has them


def counts_of(path):
    try:
        with open(path, "rb") as file:
            found = file.read(FIELDS.size)
    except FileNotFoundError:
        found = b""
    return FIELDS.unpack(found) if len(found) == FIELDS.size else (0, 0, 0)


def run(*words):
    return subprocess.run(
        words, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout


def kill_once(folder, command, after):
    """The counts as they were at the death of a process that had ended `after` scopes or more."""
    progress = os.path.join(folder, "progress")
    process = subprocess.Popen(
        command, env=dict(os.environ, PROGRESS=progress), stdout=subprocess.DEVNULL
    )
    give_up = time.monotonic() + HANG_SECONDS
    while counts_of(progress)[2] < after and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if process.returncode != -signal.SIGKILL:
        raise SystemExit(f"FAILED  the host ended by itself, status {process.returncode}")
    return counts_of(progress)


def counted_scopes(trace):
    """Scopes that the host counts as progress: those by calls, of level 2, that have ended."""
    events = [
        e for e in trace["traceEvents"] if e["ph"] == "X" and e.get("cat") in ("lua", "statement")
    ]
    return sum(1 for e in events if not e.get("args", {}).get("unfinished"))


def check_once(prof, folder, command, after):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    begun, ending, ended = kill_once(folder, command, after)
    captures = [f for f in os.listdir(folder) if f.endswith(".prof")]
    if len(captures) != 1:
        raise SystemExit(f"FAILED  {len(captures)} captures are left, not one")
    capture = os.path.join(folder, captures[0])
    info = run(prof, "info", capture)
    run(prof, "memory", capture)
    listed = run(prof, "recover", folder)
    os.mkdir(os.path.join(folder, "recovered"))
    run(prof, "recover", folder, "-o", os.path.join(folder, "recovered"))
    traces = [f for f in os.listdir(os.path.join(folder, "recovered")) if f.endswith(".json")]
    with open(os.path.join(folder, "recovered", traces[0]), encoding="utf-8") as file:
        seen = counted_scopes(json.load(file))
    right = (
        ended <= seen <= ending and len(traces) == 1 and "died" in info and captures[0] in listed
    )
    print(
        f"{'ok    ' if right else 'FAILED'}  kill -9: begun {begun}, "
        f"ended {ended} to {ending}, in the capture {seen}"
    )
    if not right:
        print(info, listed, sep="\n")
    return right


def main():
    prof, folder, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
    results = [check_once(prof, folder, sys.argv[4:], 20000 + 30011 * i) for i in range(times)]
    sys.exit(not all(results))


main()
