"""Rows by process: of imported traces that have several, of captures together, and of a run's
forked children."""

import json
import os
import re
import subprocess
import sys
import unittest

from folder import HAS_COMMAND
from hang_guard import HANG_SECONDS
from import_folder import ImportFolder
from import_traces import call, kernel, named, x

import prof

BY = ("name", "process")
RANKS = [
    named(11, "rank 0"),
    named(12, "rank 1"),
    x("run", 0, 50, pid=11),
    x("run", 0, 70, pid=12),
    x("run", 60, 5, pid=11, tid=3),
]
# Kernels stand in rows of their own, whose process is that of their launch.
LAUNCHES = [
    call("launch", 0, 5, 7, pid=100),
    kernel("k0", 10, 6, pid=1000, correlation=7),
    call("launch", 0, 5, 7, pid=200),
    kernel("k1", 11, 50, pid=2000, correlation=7),
]
FORKS = """
import os, prof
with prof.scope("both"):
    pass
pid = os.fork()
if pid == 0:
    with prof.scope("both"):
        pass
    os._exit(0)
os.waitpid(pid, 0)
print("parent", os.getpid(), "child", pid)
"""


def rows_of(trace, group=BY):
    rows = trace.aggregate(group=group)
    return {(r.name, r.process_pid, r.process_name): r.total_ns for r in rows}


class RowsByProcess(ImportFolder):
    @unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
    def test_an_imported_trace_has_a_row_for_each_process(self):
        opened = self.imported(json.dumps(RANKS))
        wanted = {("run", 11, "rank 0"): 55000, ("run", 12, "rank 1"): 70000}
        self.assertEqual(rows_of(opened), wanted)
        found = {(r.process_pid, r.thread is None) for r in opened.aggregate(group=BY)}
        self.assertEqual(found, {(11, True), (12, True)})
        self.assertEqual(len(opened.aggregate(group=(*BY, "thread"))), 3)
        for row in opened.aggregate(group="name"):
            self.assertEqual((row.process_pid, row.process_name), (None, ""))
        done = self.command("table", "--by", "process", "t.prof")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split("  ")[0] for line in done.stdout.splitlines()]
        self.assertEqual(lines[3:5], ["rank 1 (12)", "rank 0 (11)"])
        self.assertEqual(opened.table(group="process"), done.stdout)

    @unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
    def test_a_kernel_is_of_the_process_that_launched_it(self):
        opened = self.imported(json.dumps(LAUNCHES))
        rows = opened.aggregate(group=(*BY, "kernel"))
        found = {(r.name, r.process_pid, r.self_device_ns) for r in rows if r.name[0] == "k"}
        self.assertEqual(found, {("k0", 100, 6000), ("k1", 200, 50000)})

    @unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
    def test_a_process_without_a_number_has_its_text(self):
        opened = self.imported(json.dumps([x("a", 0, 5), x("a", 0, 9, pid="worker")]))
        found = {(r.process_name, r.total_ns) for r in opened.aggregate(group=BY)}
        self.assertEqual(found, {("", 5000), ("worker", 9000)})
        self.assertIn("\nworker ", opened.table(group="process"))

    @unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
    def test_captures_together_have_a_row_for_each_process(self):
        self.imported(json.dumps(RANKS), "one.prof")
        self.imported(json.dumps([named(11, "other"), x("run", 0, 3, pid=11)]), "two.prof")
        with prof.Traces.open([self.path("one.prof"), self.path("two.prof")]) as traces:
            self.assertEqual(
                rows_of(traces),
                {
                    ("run", 11, "rank 0"): 55000,
                    ("run", 12, "rank 1"): 70000,
                    ("run", 11, "other"): 3000,
                },
            )

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_forked_children_have_rows_of_their_own(self):
        with open(self.path("script.py"), "w") as f:
            f.write(FORKS)
        done = subprocess.run(
            [sys.executable, "-m", "prof", "run", "-b", "name,process", "script.py"],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        pids = re.findall(r"\d+", done.stdout)
        rows = re.findall(r"^both +\S.*?\((\d+)\)", done.stderr, re.MULTILINE)
        self.assertEqual(sorted(rows), sorted(pids), done.stderr)


if __name__ == "__main__":
    unittest.main()
