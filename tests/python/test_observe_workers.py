"""A DataLoader's workers beside prof.torch.observe(). The program's own rows are torch.profiler's.
Workers are recorded where the whole program is. Nothing hangs at the end, and no file is left
behind. make test-torch."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from beside_torch import skip_without_torch
from hang_guard import HANG_SECONDS

import prof

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = 2 * 16  # of two epochs
WARNING = r"(?m)^\S+: RuntimeWarning: \d processes were begun while this profile .*\n .*\n"
"""And the line of the program that it is about."""


@skip_without_torch
class Workers(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prof-workers-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_loader(self, context, what, **variables):
        """What it printed. Nothing else may come but the warning of workers, and it must end."""
        environment = {**os.environ, "TMPDIR": self.folder, **variables}
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, "loader_of_two.py"), context, what],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual((done.returncode, re.sub(WARNING, "", done.stderr)), (0, ""))
        return json.loads(done.stdout)

    def files(self):
        """But sockets of multiprocessing's, and older torch's generated modules, which workers
        leave that are killed."""
        return [
            os.path.join(folder, name)
            for folder, _, names in os.walk(self.folder)
            for name in names
            if "pymp-" not in folder and name != "_remote_module_non_scriptable.py"
        ]

    def test_the_rows_are_those_of_torch_profiler(self):
        for context in ("fork", "spawn"):
            for what, found in self.run_loader(context, "compare").items():
                self.assertEqual(found["calls"], found["theirs"], (context, what))
                self.assertEqual(found["calls"]["aten::mul"], 8)
                self.assertNotIn("aten::square", found["calls"])  # the workers' own
                self.assertTrue(found["same bits"])
            self.assertEqual(self.files(), [])

    def test_workers_that_live_when_the_program_ends(self):
        for context in ("fork", "spawn"):
            self.run_loader(context, "never-stopped")
            self.assertEqual(self.files(), [])

    def recorded(self, context, what):
        """Of the program and of each worker the calls, where the whole program is recorded."""
        self.run_loader(
            context, what, PROF_LEVEL="1", PROF_OUTPUT=os.path.join(self.folder, f"{context}.prof")
        )
        own, workers = [], []
        for path in self.files():
            with prof.Trace.open(path) as trace:
                (own if path.endswith(f"{context}.prof") else workers).append(
                    {row.name: row.count for row in trace.aggregate(group="name")}
                )
        self.assertEqual(
            (len(own), len(workers)), (1, 2), glob.glob(os.path.join(self.folder, "*"))
        )
        return own[0], workers

    def test_workers_that_are_forked_are_observed_on(self):
        own, workers = self.recorded("fork", "observed")
        self.assertEqual(own["aten::mul"], 8)
        self.assertEqual([worker["aten::square"] for worker in workers], [SAMPLES // 2] * 2)

    def test_workers_that_are_spawned_observe_themselves(self):
        own, workers = self.recorded("spawn", "in-workers")
        self.assertNotIn("aten::mul", own)
        self.assertEqual([worker["aten::square"] for worker in workers], [SAMPLES // 2] * 2)


if __name__ == "__main__":
    unittest.main()
