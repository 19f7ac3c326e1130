"""What the tests of prof run's command line share."""

import os
import subprocess
import sys

from case import HANG_SECONDS, PROF, Case

SOURCE = os.environ.get("PROF_TEST_SOURCE_DIR", os.getcwd())
BUILD = os.path.dirname(PROF)
EXAMPLE = os.path.join(BUILD, "examples", "threads_and_args")
PACKAGE = {
    **os.environ,
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": os.path.join(SOURCE, "bindings", "python"),
    "PROF_LIBRARY": os.path.join(BUILD, "libprof.so"),
    "PROF_PYTHON_PROGRAM": sys.executable,
}


class Words(Case):
    def table(self, path):
        done = subprocess.run(
            [PROF, "table", path],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        return done.stdout.decode()

    def refuse(self, words, *texts, status=125, lines=1, env=None):
        done = self.run_prof(*words, env=env or os.environ)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, status, (words, error))
        self.assertEqual(len(error.splitlines()), lines, error)
        for text in texts:
            self.assertIn(text, error)
        self.assertEqual(done.stdout, b"", words)

    def have_example(self):
        if not os.path.exists(EXAMPLE):
            self.skipTest("examples/threads_and_args was not built")
