"""The notebooks of examples run, cell by cell. They find what prof's own tables have."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

from hang_guard import HANG_SECONDS

import prof

SOURCE = os.environ["PROF_TEST_SOURCE_DIR"]
NOTEBOOKS = os.path.join(SOURCE, "examples", "python", "notebooks")
IS_VENV = os.path.realpath(sys.prefix) == os.path.realpath(os.path.join(SOURCE, ".venv"))
PROGRAM = """
import sys, prof
for i in range(int(sys.argv[1])):
    with prof.scope("load", i=i):
        with prof.scope("decode"):
            sum(range(20000))
if sys.argv[1] == "60":
    with prof.scope("only in the second run"):
        pass
"""


def missing():
    for name in ("pyarrow", "pandas", "duckdb"):
        try:
            __import__(name)
        except ImportError:
            return name
    return None


@unittest.skipIf(not IS_VENV and missing(), f"this Python has no {missing()}")
class Notebooks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for run, count in (("base", 40), ("new", 60)):
            subprocess.run(
                [sys.executable, "-c", PROGRAM, str(count)],
                env={**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": f"{run}.prof"},
                timeout=HANG_SECONDS,
                check=True,
            )

    def cells(self, name):
        with open(os.path.join(NOTEBOOKS, name), encoding="utf-8") as f:
            notebook = json.load(f)
        self.assertEqual(notebook["nbformat"], 4)
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for cell in code:
            self.assertEqual(cell["outputs"], [], "a notebook is kept without outputs")
        return ["".join(cell["source"]) for cell in code]

    def test_captures_are_compared(self):
        names, said = {"__name__": "__main__"}, io.StringIO()
        with contextlib.redirect_stdout(said):
            for text in self.cells("captures.ipynb"):
                exec(compile(text, "captures.ipynb", "exec"), names)
        self.assertIn("base", said.getvalue())
        self.assertIn("no loss", said.getvalue())
        with prof.Trace.open("base.prof") as trace:
            rows = {row.name: row for row in trace.aggregate()}
        self.assertEqual(set(names["top"]["name"]), {"load", "decode"})
        for found in names["top"].itertuples():
            row = rows[found.name]
            self.assertEqual(
                (found.calls, found.self_ns, found.total_ns),
                (row.count, row.self_ns, row.total_ns),
            )
        for found in names["quantiles"].itertuples():
            row = rows[found.name]
            self.assertEqual((found.least, found.most), (row.min_ns, row.max_ns))
        self.assertEqual(int(names["powers"].sum()), 40)
        change = names["change"].set_index("name")
        self.assertEqual(change.loc["load", "calls_before"], 40)
        self.assertEqual(change.loc["load", "calls_after"], 60)
        self.assertEqual(change.loc["only in the second run", "calls_after"], 1)


if __name__ == "__main__":
    unittest.main()
