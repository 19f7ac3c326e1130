"""PyPI's package prof is another program, with a command and a Python package of the same names."""

import os
import shutil
import subprocess
import sys

from case import HANG_SECONDS, PROF
from known_capture import Recorded

SOURCE = os.environ.get("PROF_TEST_SOURCE_DIR", os.getcwd())


class Foreign(Recorded):
    def doctor(self, path):
        done = self.prof("doctor", env={"PATH": f"{path}:{os.environ['PATH']}"})
        return [line for line in done.stdout.splitlines() if "PyPI" in line]

    def test_doctor_names_its_command(self):
        for text in ("from prof.main import main\n", "__requires__ = 'prof==1.3.0'\n"):
            path = self.write("prof", f"#!{sys.executable}\n{text}", 0o755)
            (line,) = self.doctor(self.folder)
            self.assertIn(f"{path} is the command of another program: pip uninstall prof", line)

    def test_doctor_leaves_others_alone(self):
        self.write("prof", "#!/bin/sh\nexec /opt/prof/bin/prof\n", 0o755)
        self.assertEqual(self.doctor(self.folder), [])
        self.assertEqual(self.doctor(os.path.dirname(PROF)), [])

    def test_doctor_names_its_package_beside_the_command(self):
        os.mkdir(os.path.join(self.folder, "bin"))
        own = shutil.copy(PROF, os.path.join(self.folder, "bin", "prof"))
        parsers = os.path.join(self.folder, "lib/python3.11/site-packages/prof/parsers")
        os.makedirs(parsers)
        done = subprocess.run(
            [own, "doctor"], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
        )
        self.assertIn("site-packages/prof/parsers is a part of another program", done.stdout)

    def imported(self):
        return subprocess.run(
            [sys.executable, "-c", "import prof; print(prof.__version__)"],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=True,
            env={**os.environ, "PYTHONPATH": self.folder, "PYTHONDONTWRITEBYTECODE": "1"},
        )

    def test_import_warns_of_files_of_both(self):
        package = os.path.join(self.folder, "prof")
        shutil.copytree(
            os.path.join(SOURCE, "bindings/python/prof"), package, ignore=lambda *_: ["lib"]
        )
        self.assertEqual(self.imported().stderr, "")
        os.mkdir(os.path.join(package, "parsers"))
        done = self.imported()
        self.assertIn("RuntimeWarning: PyPI's package prof, another program", done.stderr)
        self.assertIn("pip install --force-reinstall libprof", done.stderr)
        self.assertTrue(done.stdout)

    def test_help_names_the_package(self):
        self.assertIn("pip install libprof", self.prof("help").stdout)
