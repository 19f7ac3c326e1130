"""The tool rpd: trace.json is made of trace.rpd, by prof itself. runTracer.sh is a stand-in that
leaves a database as rocmProfileData writes it."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import amd_databases  # noqa: E402

BUILD = os.environ.get("PROF_TEST_BUILD_DIR", "build/dev")
PROF = os.path.join(os.path.abspath(BUILD), "prof")
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))

# Options as runTracer.sh has them: -o FILE, then the program.
TRACER = """#!/bin/sh
if [ "$1" = -o ]; then to=$2; shift 2; else to=trace.rpd; fi
[ -e "$PREPARED" ] && cp "$PREPARED" "$to"
exec "$@"
"""
# As `rtl trace --mode lite -o FILE PROGRAM`.
RTL = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
cp "$PREPARED" "$2"; shift 2
exec "$@"
"""


class Rpd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.prepared = self.path("prepared")
        os.mkdir(self.path("bin"))
        for name, text in (("runTracer.sh", TRACER), ("rtl", RTL)):
            with open(self.path("bin", name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(self.path("bin", name), 0o755)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_tool(self, *words, status=0):
        done = subprocess.run(
            [PROF, "run", "-q", *words],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{self.path('bin')}:{os.environ['PATH']}",
                "PREPARED": self.prepared,
            },
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        for word in ("SQLite cannot be opened", "has no SQLite"):
            if word in done.stderr:
                self.skipTest(done.stderr.strip())
        return done

    def check_json(self, path):
        """Each call and each operation of the database is an event, once."""
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        file = sqlite3.connect(self.prepared)
        try:
            (calls,) = file.execute("SELECT count(*) FROM rocpd_api").fetchone()
            (ops,) = file.execute("SELECT count(*) FROM rocpd_op").fetchone()
            ((total,),) = file.execute("SELECT sum(end - start) FROM rocpd_op").fetchall()
        finally:
            file.close()
        on_device = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_sync", "gpu_other")
        work = [e for e in events if e["ph"] == "X" and e["cat"] in on_device]
        others = [e for e in events if e["ph"] in "Xi" and e["cat"] not in (*on_device, "prof")]
        self.assertEqual((len(others), len(work)), (calls, ops))
        self.assertEqual(sum(round(e["dur"] * 1000) for e in work), total)

    def test_rpd_leaves_a_database_and_a_json(self):
        amd_databases.random_rpd(self.prepared, 3)
        done = self.run_tool("-t", "rpd", "--", "sh", "-c", "echo ran; exit 3", status=3)
        self.assertEqual((done.stdout, done.stderr), ("ran\n", ""))
        self.assertEqual(sorted(os.listdir(self.path("rpd_output"))), ["trace.json", "trace.rpd"])
        self.check_json(self.path("rpd_output", "trace.json"))

    def test_a_cmd_that_writes_beside_the_program(self):
        amd_databases.random_rpd(self.prepared, 4)
        cmd = json.dumps({"tools": [{"name": "rpd", "cmd": "runTracer.sh"}]})
        self.run_tool("-o", "out", "--additional-context", cmd, "--", "true")
        self.check_json(self.path("out", "rpd_output", "trace.json"))
        self.assertFalse(os.path.exists(self.path("trace.rpd")))

    def test_rocm_trace_lite_too(self):
        amd_databases.random_rpd(self.prepared, 5)
        self.run_tool("-t", "rocm_trace_lite", "--", "true")
        self.check_json(self.path("rocm_trace_lite_output", "trace.json"))

    def test_what_cannot_be_read_stays_with_one_line(self):
        for content, why in (
            (b"", "is empty"),
            (b"SQLite format 3\0" + bytes(10), "cut off"),
            (b"<html>", "XML or HTML"),
        ):
            with self.subTest(why):
                shutil.rmtree(self.path("rpd_output"), ignore_errors=True)
                with open(self.prepared, "wb") as file:
                    file.write(content)
                (told,) = self.run_tool("-t", "rpd", "--", "true").stderr.splitlines()
                self.assertIn("'rpd_output/trace.rpd' stays", told)
                self.assertIn(why, told)
                self.assertEqual(os.listdir(self.path("rpd_output")), ["trace.rpd"])

    def test_without_a_database_nothing_is_made(self):
        done = self.run_tool("-t", "rpd", "--", "true")
        self.assertIn("rpd wrote no trace.rpd", done.stderr)
        self.assertFalse(os.path.exists(self.path("rpd_output")))

    def test_a_json_of_the_tool_itself_stays(self):
        amd_databases.random_rpd(self.prepared, 6)
        self.run_tool("-t", "rpd", "--", "sh", "-c", "echo theirs > trace.json")
        with open(self.path("rpd_output", "trace.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "theirs\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
