"""What the end of ``prof run`` tells: losses and their reasons, tools whose disk is full, repeated
runs, and variables of the user that a tool replaces. Also that the command does not record itself.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

import test_shown
from test_processes import HANG_SECONDS, LOOKS, PROF

# perf record OPTIONS -- WORDS: as perf does if the disk is full, it ends the program, and itself.
PERF = """#!/bin/sh
while test "$1" != --; do shift; done
shift
"$@" &
until test -e begun; do sleep 0.01; done
head -c 3000000 /dev/zero >perf_output/perf.data 2>full
kill -TERM $!
exit 255
"""
STRACE = """#!/bin/sh
while test "$1" != --; do shift; done
shift
"$@"
status=$?
head -c 3000000 /dev/zero >strace_output/strace.txt 2>full
exit $status
"""


# Ends when prof has looked at it.
WAIT = """
until = looks() + 20
while looks() < until:
    time.sleep(0.005)
"""


class Losses(test_shown.Shown):
    def test_a_muted_scope_is_told_with_its_number(self):
        text = self.run_well("app", "0", env={**self.env, "PROF_MUTE": "work"})
        self.assertIn("lost 1: 1 muted", text)
        self.assertNotIn("nothing was recorded", text)

    def test_what_was_cleared_is_no_loss(self):
        text = self.run_well("app", "clear")
        self.assertIn("nothing was recorded", text)


class Itself(test_shown.Shown):
    def test_the_command_does_not_record_itself(self):
        env = {**self.env, "PROF_LEVEL": "1", "PROF_OUTPUT": "mine.json"}
        subprocess.run(["app", "0"], cwd=self.folder, env=env, check=True)
        with open(self.path("mine.json"), encoding="utf-8") as file:
            before = file.read()
        self.assertIn('"work"', before)
        self.run_well("-o", "out", "true", env=env)
        commands = (["--version"], ["run", "--list"], ["help"])
        for words in commands:
            subprocess.run(
                [PROF, *words],
                cwd=self.folder,
                env=env,
                stdout=subprocess.DEVNULL,
                timeout=HANG_SECONDS,
                check=True,
            )
        with open(self.path("mine.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), before)

    def test_programs_have_the_variables_as_they_were(self):
        env = {**self.env, "PROF_LEVEL": "1", "PROF_OUTPUT": "mine.json"}
        self.run_well("-t", "therock_check", "app", "0", env=env)
        with open(self.path("mine.json"), encoding="utf-8") as file:
            self.assertIn('"work"', file.read())


class FullDisk(test_shown.Shown):
    def run_on_small_disk(self, tool, text, program):
        self.write(tool, text, 0o755)
        os.mkdir(self.path("small"))
        script = 'mount -t tmpfs -o size=1m none small || exit 77; cd small; "$@"'
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script, "sh", PROF, "run", "-t", tool, "--"]
            + ["sh", "-c", program],
            cwd=self.folder,
            env={**self.env, "PATH": f"{self.folder}:{self.env['PATH']}"},
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        if done.returncode == 77:
            self.skipTest("no file system can be mounted here")
        return done

    def test_perf_that_fails_does_not_end_the_program(self):
        program = "touch begun; until test -e full; do sleep 0.01; done; echo end; exit 4"
        done = self.run_on_small_disk("perf", PERF, program)
        self.assertEqual((done.returncode, done.stdout), (4, b"end\n"), done.stderr)
        self.assertIn(b"perf itself ended with status 255, so its files may not", done.stderr)
        self.assertIn(b"the disk of 'perf_output' is full, so files in it may not", done.stderr)

    def test_a_tool_that_does_not_tell(self):
        done = self.run_on_small_disk("strace", STRACE, "exit 4")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn(b"the disk of 'strace_output' is full, so files in it may not", done.stderr)


class Repeated(test_shown.Shown):
    def test_runs_without_captures_are_not_compared(self):
        done = self.run_prof("-n", "2", "-o", "out", "--", "sh", "-c", "exit 3")
        self.assertEqual(done.returncode, 3)
        self.assertNotIn(b"to compare two runs", done.stderr)
        told = self.run_well("-n", "2", "-o", "two", "app", "0")
        self.assertIn("to compare two runs: prof diff two/run-1 two/run-2\n", told)

    def test_an_interrupted_run_is_not_in_the_statistics(self):
        program = "test -e x && kill -INT $$; touch x"
        done = self.run_prof("-n", "4", "-o", "out", "--", "sh", "-c", program)
        self.assertEqual(done.returncode, 128 + signal.SIGINT)
        with open(self.path("out", "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        first = summary["runs"][0]["seconds"]
        self.assertEqual(len(summary["runs"]), 2)
        self.assertEqual(summary["seconds"], {"median": first, "least": first, "most": first})
        self.assertRegex(done.stderr.decode(), r"(?m)^ +2 .* out/run-2  interrupted$")


class Names(test_shown.Shown):
    def test_a_folder_or_file_may_begin_with_a_dash(self):
        for name in ("-", "-x"):
            self.assertIn("work", self.run_well("-o", name, "app", "0"))
            self.assertIn("work", self.run_well("-n", "2", "-o", name, "app", "0"))
            shutil.rmtree(self.path(name))
        self.run_well("-o", "-x.json", "app", "0")
        self.assertTrue(os.path.exists(self.path("-x.json")))

    def test_a_capture_has_the_whole_name_of_its_program(self):
        name = "benchmark_of_matrices"
        shutil.copy(os.path.join(self.programs, "app"), self.path(name))
        self.run_well("-q", "-o", "out", "--", "sh", "-c", f"./{name} 0; true")
        (capture,) = self.captures()
        self.assertRegex(capture, rf"^{name}\.\d+\.prof$")
        self.assertIn(f"{name} (", self.table(f"out/prof_output/{capture}", "-b", "process"))

    def test_a_folder_that_is_gone_is_the_reason(self):
        self.write("work", LOOKS + WAIT, 0o644)
        program = 'app 0; mv out gone; "$0" work'
        text = self.run_well("-o", "out", "--", "sh", "-c", program, sys.executable)
        self.assertIn("folder of captures 'out/prof_output' is not there any more", text)
        self.assertRegex(text, r"no capture of .*: the folder of captures is not there any more")
        self.assertNotIn("does not use prof", text)


class Variables(test_shown.Shown):
    def test_one_that_a_tool_replaces_is_told_once(self):
        for tool, name in (
            ("rccl_trace", "NCCL_DEBUG_FILE"),
            ("nccl_trace", "NCCL_DEBUG_FILE"),
            ("hipblaslt_trace", "HIPBLASLT_LOG_FILE"),
            ("cublaslt_trace", "CUBLASLT_LOG_FILE"),
            ("cublas_trace", "CUBLAS_LOGDEST_DBG"),
        ):
            text = self.run_well("-t", tool, "true", env={**self.env, name: "/tmp/mine"})
            told = re.findall(rf"(?m)^prof run: {tool}: {name} was '/tmp/mine', and is '.*$", text)
            self.assertEqual(len(told), 1, text)
            self.assertNotIn(name, self.run_well("-t", tool, "true"))


if __name__ == "__main__":
    unittest.main()
