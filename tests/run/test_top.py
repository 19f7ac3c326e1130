"""prof top: tables of a process that records."""

import collections
import json
import os
import subprocess
import sys

from case import HANG_SECONDS, PROF
from known_capture import Recorded, events

LIBRARY = os.path.join(os.path.dirname(PROF), "libprof.so")

# 100 scopes, and 100 for each line that it reads. It says when they are recorded.
PROGRAM = """
import ctypes, sys
prof = ctypes.CDLL(sys.argv[1])
prof.prof_scope_begin.restype = ctypes.c_uint64
prof.prof_scope_begin.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
prof.prof_scope_end.argtypes = [ctypes.c_uint64]
line = "first"
while line:
    for _ in range(100):
        prof.prof_scope_end(prof.prof_scope_begin(1, b"turn", b"operator", None))
    print("recorded", flush=True)
    line = sys.stdin.readline()
"""


class Top(Recorded):
    def start(self):
        """A process that records 100 scopes for each line it gets."""
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, LIBRARY],
            cwd=self.folder,
            env={**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": "live.prof"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        def end():
            process.kill()
            process.wait(timeout=HANG_SECONDS)
            process.stdin.close()
            process.stdout.close()

        self.addCleanup(end)
        self.assertEqual(process.stdout.readline(), "recorded\n")
        return process

    def turns(self, text):
        """The calls of the row, of each table."""
        return [int(line.split()[-1]) for line in text.splitlines() if line.startswith("turn ")]

    def test_a_table_is_of_the_capture_as_it_is_then(self):
        process = self.start()
        first = self.prof("top", "--count", "1", str(process.pid)).stdout
        self.assertEqual(self.turns(first), [100])
        self.assertRegex(first, rf"^\S+.* \({process.pid}\): .*, level 1\n")
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "recorded\n")
        self.assertEqual(
            self.turns(self.prof("top", "--count", "1", str(process.pid)).stdout), [200]
        )

    def test_so_many_tables_are_printed(self):
        process = self.start()
        words = ("--count", "3", "--interval", "1ms", "--last", "1h")
        text = self.prof("top", *words, str(process.pid)).stdout
        self.assertEqual(self.turns(text), [100, 100, 100])
        heading = rf"\S+.* \({process.pid}\): \d+\.\d+\w+, level 1\n"
        self.assertRegex(text, rf"^{heading}(?s:.*)\n\n{heading}(?s:.*)\n\n{heading}")

    def test_it_ends_with_the_process(self):
        process = self.start()
        top = subprocess.Popen(
            [PROF, "top", "--interval", "1ms", str(process.pid)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.assertRegex(top.stdout.readline(), r"level 1\n$")
        process.stdin.close()
        rest = top.communicate(timeout=HANG_SECONDS)[0]
        self.assertEqual(top.returncode, 0, rest)

    def test_a_filter_and_an_order_hold(self):
        process = self.start()
        for name, turns in (("none", []), ("^turn$", [100])):
            words = ("--count", "1", "--name", name, str(process.pid))
            self.assertEqual(self.turns(self.prof("top", *words).stdout), turns)
        self.prof("top", "--sort", "size", "live.prof", status=2)
        self.prof("top", "--interval", "soon", "live.prof", status=2)
        self.prof("top", status=2)

    def test_a_process_without_a_capture_is_refused(self):
        done = self.prof("top", str(os.getpid()), status=1)
        self.assertIn(f"process {os.getpid()} has no capture", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_last_counts_the_scopes_that_began_in_that_time(self):
        """The capture lasts 19.9 ms. The steps begin at each whole ms."""
        capture = self.record()
        for last, first_us in (("4.9ms", 15000), ("4899999ns", 15001), ("20ms", 0), ("1h", 0)):
            with self.subTest(last=last):
                text = self.prof("top", "--last", last, capture).stdout
                counts = collections.Counter(e["name"] for e in events() if e["ts"] >= first_us)
                for name in ("step", "load", "convolution", "inner"):
                    (line,) = (x for x in text.splitlines() if x.startswith(name + " "))
                    self.assertEqual(int(line.split()[-1]), counts[name], line)

    def names(self, *words):
        """Of the rows, in their order."""
        text = self.prof("top", *words).stdout
        known = {event["name"].split()[0] for event in events()}
        words = [line.split() for line in text.splitlines()]
        return [line[0] for line in words if line and line[0] in known]

    def test_rows_are_by_self_time_or_as_asked_for(self):
        """A convolution has more time than a load, but not without what is inside of it."""
        capture = self.record()
        self.assertEqual(self.names(capture), ["step", "a", "load", "convolution", "inner"])
        by_total = self.names("--sort", "total", capture)
        self.assertEqual(by_total, ["step", "a", "convolution", "load", "inner"])

    def test_a_pipe_has_20_rows_or_as_many_as_asked_for(self):
        found = [
            {"ph": "X", "name": f"row{at:02}", "cat": "c", "pid": 1, "tid": 1}
            | {"ts": 1000 * at, "dur": 500 - at}
            for at in range(25)
        ]
        trace = self.write("rows.json", json.dumps({"traceEvents": found}))
        self.prof("import", trace, "-o", "rows.prof")
        for words, count in (((), 20), (("--rows", "7"), 7), (("--rows", "all"), 25)):
            lines = self.prof("top", *words, "rows.prof").stdout.splitlines()
            rows = [line.split()[0] for line in lines if line.startswith("row")]
            self.assertEqual(rows, [f"row{at:02}" for at in range(count)])

    def test_a_capture_that_has_ended_has_one_table(self):
        text = self.prof("top", self.record()).stdout
        self.assertEqual(text.count("Self time total"), 1)
        self.assertRegex(text, r"^ *\(7\): 19\.900ms, level 2; it has ended\n")

    def test_a_capture_that_has_ended_has_a_message_what_to_do(self):
        process = self.start()
        (live,) = (name for name in os.listdir(self.folder) if "live" in name)
        for word in (str(process.pid), live):
            self.assertEqual(self.prof("top", "--count", "1", word).stderr, "")
        done = self.prof("top", self.record())
        self.assertIn("prof top: no process records into", done.stderr)
        self.assertIn("prof table has more options, and prof top PID follows", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_file_that_does_not_exist_is_said(self):
        done = self.prof("top", "none.prof", status=1)
        self.assertIn("none.prof", done.stderr)
