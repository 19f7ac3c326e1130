"""Help and tables fit a terminal. A pipe has every column and every name whole, at any width."""

import json
import os
import re
import subprocess
import sys
import unittest

from case import HANG_SECONDS, HAS_SANITIZER, PROF, TerminalCase

SOURCE = os.environ.get("PROF_TEST_SOURCE_DIR", os.getcwd())
BUILD = os.path.dirname(PROF)
IN_PYTHON = [
    "env",
    "PYTHONPATH=" + os.path.join(SOURCE, "bindings", "python"),
    "PROF_LIBRARY=" + os.path.join(BUILD, "libprof.so"),
    sys.executable,
]
EXAMPLE = os.path.join(BUILD, "examples", "threads_and_args")


def plain(shown):
    """The text of a terminal, without its bold letters."""
    return re.sub("\x1b\\[[01]m", "", shown.decode().replace("\r", ""))


class Help(unittest.TestCase):
    def test_each_line_has_at_most_80_columns(self):
        for words in (["--help"], ["run", "--help"], ["table", "--help"]):
            done = subprocess.run(
                [PROF, *words],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                check=True,
            )
            wide = [line for line in done.stdout.splitlines() if len(line) > 80]
            self.assertEqual(wide, [], words)
            self.assertGreater(len(done.stdout.splitlines()), 10)


class Table(TerminalCase):
    """A program with names of 50 characters, which differ at their ends alone."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "long.prof")
        trace = {
            "traceEvents": [
                {
                    "name": f"a_function_with_a_rather_long_name_for_a_terminal_{i}",
                    "cat": "operator",
                    "ph": "X",
                    "pid": 1,
                    "tid": 1,
                    "ts": 100 * i,
                    "dur": 10 + i,
                }
                for i in range(3)
            ]
        }
        self.write("long.json", json.dumps(trace))
        words = [PROF, "import", "long.json", "-o", "long.prof"]
        subprocess.run(
            words,
            cwd=self.folder,
            timeout=HANG_SECONDS,
            check=True,
            capture_output=True,
        )

    def on_terminal(self, columns, *words):
        """What a terminal of that width shows."""
        size = 'stty cols %d; exec "$@"' % columns
        _, master = self.start_program("sh", "-c", size, "sh", *words)
        return plain(self.rest(master)).splitlines()

    def test_reasons_of_doctor_are_broken_between_words(self):
        lines = self.on_terminal(60, PROF, "doctor")
        whole = subprocess.run(
            [PROF, "doctor"], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
        ).stdout
        self.assertEqual(" ".join(lines).split(), whole.split())
        titles = ("  why ", "  what to do ", " " * 15)
        for line in lines:
            if line.startswith(titles) and len(line) > 60:
                self.assertNotIn(" ", line[15:])  # a path

    def commands(self):
        yield [PROF, "table", self.path]
        if not HAS_SANITIZER:  # Python cannot load its library
            yield [*IN_PYTHON, "-m", "prof", "table", self.path]

    def test_it_is_as_wide_as_the_terminal(self):
        for words in self.commands():
            for columns in (80, 100, 120):
                lines = self.on_terminal(columns, *words)
                self.assertLessEqual(max(map(len, lines)), columns, lines)
                self.assertEqual(len(lines[0]), columns if columns > 80 else len(lines[0]))
                rows = [line.split()[0] for line in lines if line.startswith("a_func")]
                self.assertEqual(len(set(rows)), 3, rows)
                for row in rows:
                    self.assertRegex(row, r"^a_func.*\.\.\..*terminal_[012]$")

    def test_columns_without_room_are_named(self):
        for words in self.commands():
            lines = self.on_terminal(80, *words)
            titles = re.split(" {2,}", lines[1].strip())
            text = " ".join(lines)
            named = re.search(r"No room in 80 columns for: (.*?)\. A file", text).group(1)
            whole = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            self.assertIn("a_function_with_a_rather_long_name_for_a_terminal_0 ", whole)
            self.assertNotIn("No room", whole)
            every = re.split(" {2,}", whole.splitlines()[1].strip())
            self.assertEqual(sorted([*titles, *named.split(", ")]), sorted(every))

    def test_the_column_of_the_order_stays(self):
        for by, title in (("max", "Max"), ("mean", "Mean")):
            lines = self.on_terminal(70, PROF, "table", self.path, "--sort", by)
            self.assertIn(title, re.split(" {2,}", lines[1].strip()))

    def test_prof_run_does_it_too(self):
        _, master = self.start_program(
            "sh", "-c", 'stty cols 80; exec "$@"', "sh", PROF, "run", "--", EXAMPLE
        )
        lines = plain(self.rest(master)).splitlines()
        lines = lines[lines.index("the trace is threads_and_args.json") :]  # behind its own
        self.assertTrue([line for line in lines if line.startswith("Name ")], lines)
        self.assertLessEqual(max(map(len, lines)), 80, lines)


if __name__ == "__main__":
    unittest.main(verbosity=2)
