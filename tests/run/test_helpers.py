"""Processes of prof and of a stack's tools are not the workload's: the report leaves them out."""

import json
import os
import shutil
import subprocess
import time
import unittest

import preload
import test_processes

HANG_SECONDS = test_processes.HANG_SECONDS

# heaptrack -o FILE WORDS: its helpers last as long as the program. The pipe is there: a mkfifo that
# a busy machine keeps running would be seen as a program of the workload.
HEAPTRACK = """#!/bin/sh
shift 2
for name in heaptrack_interpret zstd sed; do "$name" <pipe & done
exec 3>pipe
"$@" 3>&-
status=$?
exec 3>&-
wait
exit $status
"""


class Helpers(test_processes.Case):
    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        self.env["PATH"] = f"{self.bin}:{self.env['PATH']}"
        for name in ("heaptrack_interpret", "zstd", "sed"):
            shutil.copy(os.path.join(self.programs, "reader"), os.path.join(self.bin, name))
        path = os.path.join(self.bin, "heaptrack")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAPTRACK)
        os.chmod(path, 0o755)
        os.mkfifo(os.path.join(self.folder, "pipe"))

    def names(self):
        return set(self.groups()) - {"driver.py"}

    def test_those_of_a_tool(self):
        lines = self.drive(["reader"], words=("-t", "prof", "-t", "heaptrack"))
        self.assertEqual(self.names(), {"reader"}, lines)

    def test_those_of_nsys_and_ncu(self):
        """Stand-ins, with helpers of the names that these have."""
        helpers = {
            "nsys": ["nsys-launcher", "QdstrmImporter", "CudaGpuInfoDumper"],
            "ncu": ["TreeLauncherSubreaper", "TreeLauncherTargetLdPreloadHelper"],
        }
        for tool, names in helpers.items():
            for name in names:
                shutil.copy(os.path.join(self.programs, "reader"), os.path.join(self.bin, name))
            path = os.path.join(self.bin, tool)
            script = HEAPTRACK.replace("heaptrack_interpret zstd sed", " ".join(names))
            script = script.replace("shift 2\n", 'while [ "$1" != -- ]; do shift; done\nshift\n')
            with open(path, "w", encoding="utf-8") as file:
                file.write(script)
            os.chmod(path, 0o755)
            lines = self.drive(["reader"], words=("-t", "prof", "-t", tool))
            self.assertEqual(self.names(), {"reader"}, lines)
            shutil.rmtree(os.path.join(self.folder, "out"))

    def test_programs_of_the_workload_with_their_names(self):
        lines = self.drive(["reader"], ["zstd"], words=("-t", "prof", "-t", "heaptrack"))
        self.assertEqual(self.names(), {"reader", "zstd"}, lines)

    def test_the_shell_of_a_cmd(self):
        """Another one is the workload's."""
        tools = {"tools": {"mine": {"cmd": "echo begin &&"}}}
        with open(os.path.join(self.folder, "mine.json"), "w", encoding="utf-8") as file:
            json.dump(tools, file)
        words = ("--tools-config", "mine.json", "-t", "prof", "-t", "mine")
        self.drive(["reader"], words=words)
        self.assertEqual(self.names(), {"reader"})
        shutil.rmtree(os.path.join(self.folder, "out"))
        self.drive(["sh", "-c", "reader; true"], words=words)
        self.assertEqual(self.names(), {"reader", "sh"})
        shutil.rmtree(os.path.join(self.folder, "out"))
        self.drive(["reader"], words=(*words, "--", "sh", "-c", 'shift; "$@"; true', "sh"))
        self.assertEqual(self.names(), {"reader", "sh"})

    def test_a_shell_of_a_cmd_that_is_seen_while_it_is_executed_or_ends(self):
        """Its words are empty then."""
        tools = {"tools": {"mine": {"cmd": "echo begin &&"}}}
        with open(os.path.join(self.folder, "mine.json"), "w", encoding="utf-8") as file:
            json.dump(tools, file)
        words = ("--tools-config", "mine.json", "-t", "prof", "-t", "mine")
        source = test_processes.EMPTY_AT_FIRST.replace("environ", "cmdline")
        for when in ("!seen[pid]++", "seen[pid]++ > 2"):
            self.assertIn("!seen[pid]++", source)
            text = source.replace("!seen[pid]++", when)
            env = preload.environment(self.folder, text, PATH=self.env["PATH"])
            self.drive(["reader"], words=words, env=env)
            self.assertEqual(self.names(), {"reader"})
            shutil.rmtree(os.path.join(self.folder, "out"))

    @staticmethod
    def read(*names):
        try:
            with open("/".join(("/proc", *map(str, names))), "rb") as file:
                return file.read()
        except OSError:
            return b""

    def looks(self, pid):
        for task in os.listdir(f"/proc/{pid}/task"):
            lines = self.read(pid, "task", task, "status").decode().splitlines()
            if lines and lines[0] == "Name:\tprof-run-watch":
                return int(next(x for x in lines if x.startswith("voluntary_ctxt")).split()[1])
        return 0

    def wait_until(self, condition):
        until = time.monotonic() + HANG_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def children(self, pid):
        return [int(x) for x in self.read(pid, "task", pid, "children").split()]

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_prof_itself_in_valgrind(self):
        """Its processes keep valgrind's name when they execute the workload."""
        words = ("-o", "out", "-t", "prof", "-t", "valgrind", "--", "reader")

        def are_inside(word):
            return any(
                b"memcheck" in self.read(pid, "comm") and word in self.read(pid, "cmdline")
                for pid in self.children(process.pid)
            )

        with subprocess.Popen(
            [test_processes.PROF, "run", *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            self.addCleanup(process.kill)
            self.wait_until(lambda: are_inside(b"reader") and not are_inside(b"run-with"))
            seen = self.looks(process.pid)
            self.wait_until(lambda: self.looks(process.pid) >= seen + 3)
            _, error = process.communicate(timeout=HANG_SECONDS)
        self.assertEqual(process.returncode, 0, error)
        self.assertEqual(self.names(), {"reader"}, error)


if __name__ == "__main__":
    unittest.main(verbosity=2)
