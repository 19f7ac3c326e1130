"""A program that is killed: its open scopes end when it was last alive, not at its last event."""

import os
import re
import subprocess
import unittest

from test_processes import LOOKS, PROF, Case

# Of tables: s, ms, us, ns.
UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}

# Starts `app wait`, and kills it when prof has looked at it behind `until_ns`.
KILLER = f"""{LOOKS}
import signal
app = subprocess.Popen(["app", "wait"], stdin=subprocess.PIPE)
while not os.path.exists("ready"):
    time.sleep(0.001)
begin_ns = time.monotonic_ns()
for more in (20, 3):
    until = looks() + more
    while looks() < until:
        time.sleep(0.005)
    if more == 20:
        print(time.monotonic_ns() - begin_ns, file=open("elapsed", "w"))
app.kill()
app.wait()
"""


# Ends when prof has looked several times.
LOOKED = f"""{LOOKS}
until = looks() + 20
while looks() < until:
    time.sleep(0.005)
"""


class Killed(Case):
    def setUp(self):
        super().setUp()
        with open(os.path.join(self.folder, "looked.py"), "w", encoding="utf-8") as file:
            file.write(LOOKED)

    def open_ns(self):
        """Of the only scope of the only capture."""
        folder = os.path.join(self.folder, "out", "prof_output")
        (name,) = os.listdir(folder)
        words = [PROF, "table", os.path.join(folder, name)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        at = re.split(" {2,}", lines[1].strip()).index("Open for")
        (row,) = (line for line in lines if re.match(r"(wait|held) ", line))
        number, unit = re.fullmatch(r"([\d.]+)(\D+)", re.split(" {2,}", row.strip())[at]).groups()
        info = subprocess.run([PROF, "info", words[2]], capture_output=True, text=True, check=True)
        self.assertIn("before its process was last seen alive", info.stdout)
        return float(number) * UNITS[unit]

    def elapsed_ns(self):
        with open(os.path.join(self.folder, "elapsed"), encoding="utf-8") as file:
            return int(file.read())

    def check(self):
        # a table has three decimals, and the clock an error
        self.assertGreaterEqual(self.open_ns(), 0.99 * self.elapsed_ns())

    def test_the_program_itself(self):
        done = self.run_prof("-q", "-o", "out", "--", "app", "die")
        self.assertEqual(done.returncode, 137, done.stderr)
        self.check()

    def test_a_program_that_it_starts(self):
        with open(os.path.join(self.folder, "killer.py"), "w", encoding="utf-8") as file:
            file.write(KILLER)
        done = self.run_prof("-q", "-o", "out", "--", "python3", "killer.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check()

    def test_a_program_that_executed_another_ended_before(self):
        done = self.run_prof("-q", "-o", "out", "--", "app", "become")
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = os.path.join(self.folder, "out", "prof_output")
        (name,) = os.listdir(folder)
        path = os.path.join(folder, name)
        info = subprocess.run([PROF, "info", path], capture_output=True, text=True, check=True)
        self.assertIn("before the last thing recorded", info.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
