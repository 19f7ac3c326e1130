"""uftrace: it ends with 1 for any failure of the program, and refuses programs that are not built
for it; under prof run the program runs, and its status is kept. A stand-in, and the real one if it
is installed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from case import HAS_SANITIZER

BUILD = os.environ.get("PROF_TEST_BUILD_DIR", "build/dev")
PROF = os.path.join(os.path.abspath(BUILD), "prof")
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))

# uftrace record --force -d FOLDER WORDS: 1 if the program fails, as uftrace 0.13 does.
UFTRACE = """#!/bin/sh
[ "$1 $2 $3" = "record --force -d" ] || exit 99
mkdir -p "$4"; shift 4
"$@" || exit 1
"""
SOURCE = """
#include <stdio.h>
__attribute__((noinline)) int work(int x) { return x * 3 + 1; }
int main(int count, char **words) { printf("%d %s\\n", work(count), words[1]); return 4; }
"""


class Uftrace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.path("bin"))
        with open(self.path("bin", "uftrace"), "w", encoding="utf-8") as file:
            file.write(UFTRACE)
        os.chmod(self.path("bin", "uftrace"), 0o755)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_prof(self, *words, path=None):
        return subprocess.run(
            [PROF, "run", "-q", "-t", "uftrace", "--", *words],
            cwd=self.folder,
            env={**os.environ, "PATH": path or f"{self.path('bin')}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )

    def test_the_status_is_the_program_s(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)):
            self.assertEqual(self.run_prof("sh", "-c", script).returncode, status)

    def test_the_words_are_the_program_s_and_no_variable_is_left(self):
        program = "import os, sys; print(sys.argv[1:], 'PROF_RUN_STATUS' in os.environ)"
        done = self.run_prof(sys.executable, "-c", program, "", "$x", "--", "*")
        self.assertEqual(done.stdout, "['', '$x', '--', '*'] False\n", done.stderr)

    def test_a_tool_that_does_not_begin_the_program_has_its_own_status(self):
        with open(self.path("bin", "uftrace"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 42\n")
        self.assertEqual(self.run_prof("true").returncode, 42)

    def test_a_process_that_is_left_does_not_hold_it(self):
        """It has every descriptor that the program has."""
        script = f"sleep {HANG_SECONDS * 10} >/dev/null 2>&1 & echo $!; exit 5"
        done = self.run_prof("sh", "-c", script)
        os.kill(int(done.stdout), signal.SIGKILL)
        self.assertEqual(done.returncode, 5)

    @unittest.skipUnless(shutil.which("uftrace") and shutil.which("gcc"), "no uftrace or gcc")
    @unittest.skipIf(HAS_SANITIZER, "a sanitizer must be loaded before uftrace's library")
    def test_the_real_one(self):
        with open(self.path("u.c"), "w", encoding="utf-8") as file:
            file.write(SOURCE)
        subprocess.run(["gcc", "-pg", "-O1", "u.c", "-o", "u"], cwd=self.folder, check=True)
        done = self.run_prof("./u", "a b", path=os.environ["PATH"])
        self.assertEqual((done.returncode, done.stdout), (4, "7 a b\n"), done.stderr)
        report = subprocess.run(
            ["uftrace", "report", "-d", self.path("uftrace_output", "uftrace.data"), "--no-pager"],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=True,
        ).stdout
        functions = {line.split()[-1] for line in report.splitlines()[2:]}
        self.assertLessEqual({"main", "work"}, functions)
        # of our own processes nothing is recorded
        self.assertFalse(functions & {"waitpid", "fork", "execvp", "getenv"}, report)


if __name__ == "__main__":
    unittest.main(verbosity=2)
