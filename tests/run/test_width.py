"""Help and tables fit a terminal. A pipe has every column and every name whole, as far as ever."""

import fcntl
import os
import re
import struct
import subprocess
import termios
import unittest

from case import HANG_SECONDS, PROF, TerminalCase

EXAMPLE = os.path.join(os.path.dirname(PROF), "examples", "threads_and_args")


class Help(unittest.TestCase):
    def test_each_line_has_at_most_80_columns(self):
        for words in (["--help"], ["run", "--help"], ["table", "--help"]):
            done = subprocess.run(
                [PROF, *words], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
            )
            wide = [line for line in done.stdout.splitlines() if len(line) > 80]
            self.assertEqual(wide, [], words)
            self.assertGreater(len(done.stdout.splitlines()), 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
