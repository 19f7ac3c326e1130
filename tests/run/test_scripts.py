"""Pre- and post-scripts of ``prof run``: what runs in bash, and what is executed."""

import json
import os
import shutil
import sys
import unittest

from case import Case


class Scripts(Case):
    def run_script(self, path, *options, status=0):
        context = {"pre_scripts": [{"path": path, "args": "a 'b c' $((1 + 1))"}]}
        words = (*options, "--additional-context", json.dumps(context), "--", "echo", "ran")
        done = self.run_prof("-q", "-o", "out", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.decode().splitlines()

    def test_executables_that_are_no_shell_scripts_are_executed(self):
        python = "import sys\nprint(sys.argv[1:])\n"
        self.write("x=y.py", f"#!{sys.executable} -u\n{python}", 0o755)
        self.write("env.py", f"#!/usr/bin/env -S A=1 python3 -u\n{python}", 0o755)
        os.mkdir(os.path.join(self.folder, "a=b"))
        self.write("a=b/x.py", f"#!{sys.executable}\n{python}", 0o755)
        for name in ("x=y.py", "./x=y.py", "env.py", "a=b/x.py", f"{self.folder}/env.py"):
            self.assertEqual(self.run_script(name), ["['a', 'b c', '2']", "ran"], name)
        shutil.copy(shutil.which("printenv"), os.path.join(self.folder, "program"))
        context = json.dumps({"post_scripts": [{"path": "program", "args": "PATH"}]})
        done = self.run_prof("-q", "--additional-context", context, "--", "true")
        self.assertEqual(done.stdout.decode().strip(), os.environ["PATH"], done.stderr)
        summary = json.loads(self.read("out/summary.json"))
        self.assertEqual(summary["scripts"][0]["command"], "./x=y.py a 'b c' $((1 + 1))")
        printed = self.run_script("env.py", "--dry-run")
        self.assertEqual(printed[0], "./env.py a 'b c' $((1 + 1))")

    def test_all_others_run_in_bash(self):
        text = "[[ $BASH ]] && echo $# $2\n"
        for first, mode in (
            ("", 0o755),
            ("#!/bin/sh\n", 0o755),
            ("#! /usr/bin/env -S bash -e\n", 0o755),
            ("#!\n", 0o755),
            ("#!/usr/bin/python3\n", 0o644),
        ):
            self.write("x.sh", first + text, mode)
            self.assertEqual(self.run_script("x.sh"), ["3 b c", "ran"], first)

    def test_an_interpreter_that_is_not_there_is_a_failure(self):
        self.write("x", "#!/no/such/interpreter\n", 0o755)
        self.assertEqual(self.run_script("x", status=125), [])


if __name__ == "__main__":
    unittest.main()
