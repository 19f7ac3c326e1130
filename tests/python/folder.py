"""Tests with a folder of their own, and those that also run the prof command in it."""

import os
import subprocess
import tempfile
import unittest

from hang_guard import HANG_SECONDS

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))
HAS_COMMAND = os.access(COMMAND, os.X_OK)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)


class CommandFolder(Folder):
    def command(self, *words):
        return subprocess.run(
            [COMMAND, *words],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder,
        )

    def run_prof(self, *words, status=0):
        """Returns stdout and stderr."""
        done = self.command(*words)
        self.assertEqual(done.returncode, status, (words, done.stderr))
        return done.stdout, done.stderr
