"""heaptrack follows one process until it executes another program: that must be the workload. A
stand-in, and the real one if it is installed."""

import json
import os
import re
import shutil
import subprocess
import unittest

from case import HAS_SANITIZER, Case

# Says what it would follow.
HEAPTRACK = '#!/bin/sh\nshift 2\necho "follows $1"\nexec "$@"\n'
SOURCE = """
#include <stdlib.h>
int main(void) {
  for (int i = 0; i < 1000; i++) {
    char *volatile piece = malloc(100);
    free(piece);
  }
  return 0;
}
"""


class Heaptrack(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.folder, "bin"))
        self.write("bin/heaptrack", HEAPTRACK, 0o755)
        for name in ("perf", "strace", "uftrace"):
            self.write(f"bin/{name}", "#!/bin/sh\n", 0o755)
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        self.env = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": path}

    def write_stack(self, *tools, **more):
        self.write("some.json", json.dumps({"tools": list(tools), **more}))
        return "--stack", "some.json"

    def test_it_follows_the_workload_which_has_the_inner_variables(self):
        variables = {"name": "miopen_trace", "env_vars": {"MINE": "a b"}}
        inner = self.write_stack(variables, {"name": "heaptrack"})
        script = 'echo "$MIOPEN_ENABLE_LOGGING_CMD,$PROF_LEVEL,$MINE"'
        for words, seen in (
            (("-t", "prof", "-t", "heaptrack"), ",1,"),
            (("-t", "heaptrack", "-t", "prof"), ",1,"),
            (("-t", "miopen_trace", "-t", "heaptrack"), "1,,"),
            (inner, "1,,a b"),
        ):
            done = self.run_prof("-q", *words, "--", "sh", "-c", script, env=self.env)
            self.assertEqual(done.stdout.decode(), f"follows sh\n{seen}\n", done.stderr)

    def test_a_tool_outside_of_it_does_not_have_the_inner_variables(self):
        self.write("bin/outer", '#!/bin/sh\necho "outer ${PROF_LEVEL-none}"\nexec "$@"\n', 0o755)
        self.write("mine.json", json.dumps({"tools": {"mine": {"cmd": "outer"}}}))
        words = ("--tools-config", "mine.json", "-t", "prof", "-t", "heaptrack", "-t", "mine")
        done = self.run_prof("-q", *words, "--", "true", env=self.env)
        self.assertEqual(done.stdout, b"outer none\nfollows true\n", done.stderr)

    def refuse(self, words, text):
        done = self.run_prof("-q", *words, "--", "true", env=self.env)
        lines = done.stderr.decode().splitlines()
        self.assertEqual((done.returncode, len(lines), done.stdout), (125, 1, b""), lines)
        self.assertIn(text, lines[0])

    def test_around_another_program_it_is_refused(self):
        for name in ("perf", "strace"):
            self.refuse(("-t", name, "-t", "heaptrack"), "name heaptrack first")
        self.refuse(("-t", "perf", "-t", "prof", "-t", "heaptrack"), "name heaptrack first")
        shell = self.write_stack({"name": "perf", "cmd": "echo x &&"}, {"name": "heaptrack"})
        self.refuse(shell, "name heaptrack first")
        done = self.run_prof("--dry-run", "-t", "heaptrack", "-t", "perf", "true", env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_beside_uftrace_it_is_refused(self):
        for words in (("heaptrack", "uftrace"), ("uftrace", "heaptrack")):
            self.refuse(("-t", words[0], "-t", words[1]), "leave one out")

    def test_around_the_text_that_begins_the_workload_it_is_refused(self):
        words = self.write_stack({"name": "heaptrack"}, encapsulate_script="nice")
        self.refuse(words, "encapsulate_script")
        words = self.write_stack({"name": "heaptrack"}, encapsulate_script=" ")
        done = self.run_prof("-q", *words, "--", "true", env=self.env)
        self.assertEqual(done.stdout, b"follows true\n", done.stderr)

    @unittest.skipUnless(shutil.which("heaptrack") and shutil.which("gcc"), "no heaptrack or gcc")
    @unittest.skipIf(HAS_SANITIZER, "a sanitizer has its own malloc()")
    def test_the_real_one(self):
        self.write("two.c", SOURCE)
        subprocess.run(["gcc", "-O0", "two.c", "-o", "two"], cwd=self.folder, check=True)
        for name in ("prof", "miopen_trace"):
            done = self.run_prof("-q", "-t", name, "-t", "heaptrack", "--", "./two")
            found = re.search(rb"\tallocations:\s+(\d+)", done.stdout + done.stderr)
            self.assertIsNotNone(found, done)
            self.assertGreaterEqual(int(found[1]), 1000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
