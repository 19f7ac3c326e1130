"""``prof run`` of programs that start prof themselves, with a path of their own."""

import gzip
import json
import os
import subprocess
import sys
import unittest

from case import HANG_SECONDS, PROF
from words import EXAMPLE, PACKAGE, Words


class OwnOutputs(Words):
    """Programs that start prof with one path do not write over each other, as without a run."""

    START = (
        "import os, sys\n"
        "from prof import _structs as s, scope\n"
        "from prof._library import C, sized\n"
        "C.check(C.prof_start_with(sized(s.Options, path=b'own.json')))\n"
        "def dump(name):\n"
        "    with scope(name): pass\n"
        "    C.prof_stop()\n"
        "    C.check(C.prof_dump(None))\n"
    )

    def check(self, *names):
        traces = [n for n in os.listdir(self.folder) if n.startswith("own.")]
        self.assertEqual(len(traces), len(names), traces)
        self.assertIn("own.json", traces)
        for name in names:
            self.assertTrue(any(name in self.read(path) for path in traces), name)

    def run_both_ways(self, words, *names):
        for run in ([PROF, "run", "-q", "-o", "out", "--"], []):
            done = subprocess.run(
                [*run, *words],
                cwd=self.folder,
                env=PACKAGE,
                capture_output=True,
                timeout=HANG_SECONDS,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check(*names)
            for name in os.listdir(self.folder):
                if name.startswith("own."):
                    os.unlink(os.path.join(self.folder, name))

    def test_a_forked_child_has_its_own(self):
        self.write(
            "fork.py",
            self.START + "pid = os.fork()\n"
            "dump('of the parent' if pid else 'of the child')\n"
            "if pid: os.waitpid(pid, 0)\n"
            "os._exit(0)\n",
        )
        self.run_both_ways([sys.executable, "fork.py"], "of the parent", "of the child")

    def test_a_process_beside_it_has_its_own(self):
        self.write(
            "beside.py",
            self.START + "print(1, flush=True)\nsys.stdin.readline()\ndump(sys.argv[1])\n",
        )
        one = f'"{sys.executable}" beside.py'
        self.write(
            "two.sh",
            "mkfifo go\n"
            f"{one} second <go >ready & exec 3>go\n"
            "until [ -s ready ]; do sleep 0.01; done\n"
            f"{one} first </dev/null || exit 1\n"
            "exec 3>&-\nwait $!\nstatus=$?\nrm go ready\nexit $status\n",
        )
        self.run_both_ways(["sh", "two.sh"], "first", "second")


class ProgramsWithProf(Words):
    """A program that starts prof itself, with a path of its own."""

    def setUp(self):
        super().setUp()
        self.have_example()

    def test_it_writes_its_own_trace_and_the_run_has_it_once(self):
        done = self.run_prof("-o", "out", EXAMPLE, "own.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"the trace is own.json", done.stdout)
        names = [e.get("name") for e in json.loads(self.read("own.json"))["traceEvents"]]
        self.assertEqual(names.count("multiply"), 12)
        captures = os.listdir(os.path.join(self.folder, "out/prof_output"))
        self.assertEqual(len(captures), 1, captures)
        row = next(
            line
            for line in self.table(f"out/prof_output/{captures[0]}").splitlines()
            if line.startswith("multiply ")
        )
        self.assertIn(" 12 ", row + " ")
        self.assertEqual(sorted(os.listdir(self.folder)).count("own.json"), 1)

    def test_a_file_for_each_process(self):
        two = f'"{EXAMPLE}" a.json & "{EXAMPLE}" b.json; wait'
        for pattern in ("t.json", "t.json.gz", "t.prof", "p-%p.json"):
            before = set(os.listdir(self.folder))
            done = self.run_prof("-o", pattern, "--", "sh", "-c", two)
            self.assertEqual(done.returncode, 0, done.stderr)
            made = set(os.listdir(self.folder)) - before - {"a.json", "b.json"}
            self.assertEqual(len(made), 2, made)
            error = done.stderr.decode()
            for name in made:
                self.assertIn(f"{name} has threads_and_args (", error)
                if name.endswith(".prof"):
                    self.assertIn("multiply", self.table(name))
                elif name.endswith(".gz"):
                    with gzip.open(os.path.join(self.folder, name), "rt") as file:
                        self.assertIn("multiply", file.read())
                else:
                    self.assertIn("multiply", self.read(name))
            self.assertEqual("%" not in pattern, pattern in made)

    def test_calls_of_libraries_have_a_file_beside_it(self):
        program = f'echo "./rocblas-bench -f gemm -m 1"; "{EXAMPLE}" own.json'
        done = self.run_prof(
            *("-o", "t.json", "-t", "prof", "-t", "rocblas_trace", "--", "sh", "-c"),
            program,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"t.library_trace.json has the calls of libraries", done.stderr)
        self.assertNotIn(b"left out", done.stderr)
        self.assertNotIn(b"cannot", done.stderr)
        self.assertIn("multiply", self.read("t.json"))
        self.assertIn("gemm", self.read("t.library_trace.json"))
        left = [n for n in os.listdir(self.folder) if n.startswith(".prof-run")]
        self.assertEqual(left, [])

    def test_a_file_that_cannot_be_written_leaves_the_captures(self):
        program = f'"{EXAMPLE}" own.json; mkdir t.json; touch t.json/x'
        done = self.run_prof("-o", "t.json", "--", "sh", "-c", program)
        error = done.stderr.decode()
        self.assertIn("cannot write 't.json'", error)
        folder = next(n for n in os.listdir(self.folder) if n.startswith(".prof-run"))
        (capture,) = os.listdir(os.path.join(self.folder, folder))
        self.assertIn(f"{folder}/{capture}", error)
        self.assertIn("multiply", self.table(f"{folder}/{capture}"))

    def test_a_file_that_is_not_written_is_named(self):
        for quiet in ([], ["-q"]):
            self.refuse([*quiet, "-o", "t.json", "true"], "nothing was recorded", status=0)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "t.json")))

    def test_a_rank_has_a_file_of_its_own(self):
        for pattern, name in (("r.json", "r-3.json"), ("%r-x.json", "3-x.json")):
            done = self.run_prof(
                "-q",
                "-o",
                pattern,
                EXAMPLE,
                "own.json",
                env={**os.environ, "RANK": "3"},
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("multiply", self.read(name))

    def test_a_folder_with_the_name_of_a_file_is_a_folder(self):
        os.mkdir(os.path.join(self.folder, "d.prof"))
        self.run_prof("-q", "-o", "d.prof", "true")
        self.assertIn("status", self.read("d.prof/summary.json"))
        self.refuse(["-o", "missing/x.json", "true"], "no folder 'missing'")

    def test_the_table_s_options_hold(self):
        done = self.run_prof("--by", "category", "-r", "1", EXAMPLE, "own.json")
        lines = [line.split()[0] for line in done.stderr.decode().splitlines() if line]
        self.assertIn("vm", lines)
        self.assertNotIn("operator", lines)


if __name__ == "__main__":
    unittest.main(verbosity=2)
