"""A file whose interpreter cannot be executed is no program: the status is the same with a tool
around it as without one."""

import os
import subprocess
import sys
import unittest

from case import Case


class Interpreter(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.folder, "bin"))
        self.write("bin/perf", "#!/bin/sh\nexit 255\n", 0o755)
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        self.env = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": path}
        self.write("no_program", "")

    def run_both(self, name, status, *texts):
        for words in ((), ("-t", "perf")):
            done = self.run_prof(*words, "--", name, env=self.env)
            lines = done.stderr.decode().splitlines()
            self.assertEqual((done.returncode, len(lines)), (status, 1), (words, lines))
            for text in texts:
                self.assertIn(text, lines[0])
            self.assertFalse(os.path.exists(os.path.join(self.folder, "perf_output")))

    def test_of_a_script(self):
        self.write("a", "#!/no/such -x\n", 0o755)
        self.run_both("./a", 127, "'./a'", "'/no/such' is not there")
        self.write("b", f"#! {self.folder}/no_program\n", 0o755)
        self.run_both("./b", 126, "'./b'", "no_program' is no program")
        self.write("c", f"#!{self.folder}/a\n", 0o755)
        self.run_both("./c", 127, "'./c'", "'/no/such' is not there")

    def test_of_a_program_on_the_path(self):
        self.write("bin/some", "#!/no/such\n", 0o755)
        self.run_both("some", 127, "'some'", "'/no/such' is not there")

    def test_loaders(self):
        self.write("a.c", "int main(void) { return 0; }\n")
        compiler = os.environ.get("CC", "cc")
        words = [compiler, "a.c", "-o", "a", "-Wl,--dynamic-linker=/no/such.so"]
        subprocess.run(words, cwd=self.folder, check=True)
        self.run_both("./a", 127, "'./a'", "'/no/such.so' is not there")

    def test_what_can_be_executed_is(self):
        self.write("a", "#!/bin/sh\necho a\n", 0o755)
        self.write("b", f"#!{self.folder}/a\n", 0o755)
        self.write("c", "echo c\n", 0o755)  # without a first line
        self.write("e", f"#!{sys.executable}\nprint('e')\n", 0o755)
        for name, seen in (("a", b"a\n"), ("b", b"a\n"), ("c", b"c\n"), ("e", b"e\n")):
            done = self.run_prof("-q", "--", f"./{name}")
            self.assertEqual((done.returncode, done.stdout), (0, seen), (name, done.stderr))


if __name__ == "__main__":
    unittest.main(verbosity=2)
