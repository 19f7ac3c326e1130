"""Tests with a folder of their own, and those that also run the prof command in it."""

import os
import subprocess
import sys
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

    def peaks_of_merges(self, capture, output):
        """KiB of memory at most while 2, and then 40, copies of the capture are merged."""
        script = (
            "import resource, subprocess, sys;"
            "subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        with open(self.path(capture), "rb") as f:
            data = f.read() + bytes(8 << 20)  # read as a whole, and free of records
        peaks = []
        for count in (2, 40):
            names = [f"copy{i}.prof" for i in range(count)]
            for name in names:
                with open(self.path(name), "wb") as f:
                    f.write(data)
            done = subprocess.run(
                [sys.executable, "-c", script, COMMAND, "merge", "-o", output, *names],
                check=True,
                capture_output=True,
                timeout=HANG_SECONDS,
                cwd=self.folder,
            )
            peaks.append(int(done.stdout))
        return peaks
