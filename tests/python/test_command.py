"""python -m prof: run, table, dump."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = """
import sys, prof
with prof.record_function("scope of the script"):
    print("out", sys.argv[1:], __name__)
"""


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def script(self, text):
        with open(self.path("script.py"), "w") as f:
            f.write(text)
        return self.path("script.py")

    def prof(self, *arguments):
        return subprocess.run([sys.executable, "-m", "prof", *arguments], capture_output=True, text=True, timeout=120, cwd=self.folder.name)

    def test_run(self):
        done = self.prof("run", "-o", self.path("t.json"), self.script(SCRIPT), "a", "--b", "-o")
        self.assertEqual((done.returncode, done.stdout), (0, "out ['a', '--b', '-o'] __main__\n"))
        self.assertIn("scope of the script", done.stderr)
        self.assertIn("script.py", done.stderr)
        with open(self.path("t.json")) as f:
            names = [e["name"] for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sorted(names), ["scope of the script", "script.py"])

    def test_statuses(self):
        self.assertEqual(self.prof("run", "-q", self.script("import sys; sys.exit(7)")).returncode, 7)
        self.assertEqual(self.prof("run", "-q", self.script("raise SystemExit")).returncode, 0)
        done = self.prof("run", "-q", self.script("1 / 0"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("ZeroDivisionError", done.stderr)
        done = self.prof("run", "-q", self.script("import sys; sys.exit('a text')"))
        self.assertEqual((done.returncode, done.stderr.strip()), (1, "a text"))

    def test_a_module(self):
        self.script(SCRIPT)
        done = self.prof("run", "-m", "script", "x")
        self.assertEqual((done.returncode, done.stdout), (0, "out ['x'] __main__\n"))

    def test_a_module_of_others(self):
        done = self.prof("run", "--trace", "math", self.script("import math\nmath.sqrt(4)\n"))
        self.assertIn("math.sqrt", done.stderr)

    def test_captures(self):
        self.assertEqual(self.prof("run", "-q", "-o", self.path("t.prof"), self.script(SCRIPT)).returncode, 0)
        done = self.prof("table", self.path("t.prof"))
        self.assertIn("scope of the script", done.stdout)
        self.assertEqual(self.prof("dump", self.path("t.prof"), self.path("d.json")).returncode, 0)
        with open(self.path("d.json")) as f:
            json.load(f)

    def test_what_is_wrong_is_said(self):
        for arguments, text in (
            (("run", "nothing.py"), "there is no script 'nothing.py'"),
            (("run", "-o", "no/where.json", self.script("pass")), "no directory"),
            (("run", "--trace", "nomodule", self.script("pass")), "nomodule"),
            (("table", self.script("pass")), "not a prof capture"),
            (("table", self.path("none.prof")), "no such file"),
        ):
            done = self.prof(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(text, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
