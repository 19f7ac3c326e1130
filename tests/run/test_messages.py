"""What ``prof run`` says before a run that cannot start, and which program a script's first line
names."""

import json
import os
import subprocess
import sys
import unittest

import test_shown
from test_processes import HANG_SECONDS, LOOKS, PROF

WAIT = f"""{LOOKS}
until = looks() + 20
while looks() < until:
    time.sleep(0.005)
"""


class FirstLines(test_shown.Shown):
    """Of an executable SCRIPT.py."""

    def run_script(self, text, mode=0o755, **variables):
        self.prepare_python("")
        del self.env["PROF_PYTHON_PROGRAM"]
        self.write("x.py", text, mode)
        return self.run_prof("x.py", "a b", "$c", env={**self.env, **variables})

    def test_one_that_names_no_python_runs_it_as_it_is(self):
        done = self.run_script('#!/bin/sh\nprintf "%s|" "$0" "$@"\napp 0\n')
        self.assertEqual((done.returncode, done.stdout), (0, b"./x.py|a b|$c|"), done.stderr)
        self.assertIn(b"\nwork ", done.stderr)

    def test_one_that_names_a_python_runs_it_there(self):
        self.write("mine", f'#!/bin/sh\nexport MINE=1\nexec {sys.executable} "$@"\n', 0o755)
        os.rename(self.path("mine"), self.path("python3.99"))
        script = "import os, sys; print(os.environ.get('MINE'), sys.argv[1:])\n"
        for line in (
            f"#!{self.path('python3.99')} -u",
            "#!/usr/bin/env python3.99",
            "#!/usr/bin/env -S python3.99 -u",
        ):
            path = f"{self.folder}:{self.env['PATH']}"
            done = self.run_script(f"{line}\n{script}", PATH=path)
            self.assertEqual(done.stdout, b"1 ['a b', '$c']\n", done.stderr)
            self.assertIn(b"\nx.py ", done.stderr)
        done = self.run_script(f"#!/bin/python9\n{script}", PROF_PYTHON_PROGRAM=sys.executable)
        self.assertEqual(done.stdout, b"None ['a b', '$c']\n", done.stderr)

    def test_that_of_a_file_that_is_not_executable_does_not_count(self):
        script = "#!/bin/sh\nimport sys; print(sys.argv[1:])\n"
        done = self.run_script(script, 0o644, PROF_PYTHON_PROGRAM=sys.executable)
        self.assertEqual(done.stdout, b"['a b', '$c']\n", done.stderr)


class Refused(test_shown.Shown):
    def refuse(self, *words, **options):
        """One line, and nothing has run."""
        done = self.run_prof(*words, **options)
        text = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (125, b""), text)
        self.assertEqual(len(text.splitlines()), 1, text)
        return text

    def test_python_without_a_script_is_told_as_such(self):
        text = self.refuse("--python", "--", "python3", "-c", "print(1)")
        self.assertIn("needs a script or a module behind 'python3'", text)

    def test_a_cmd_that_is_no_shell_text(self):
        for key, told in (
            ("tools", [{"name": "strace", "cmd": 'echo "'}]),
            ("encapsulate_script", 'echo "'),
        ):
            context = json.dumps({key: told})
            text = self.refuse("--additional-context", context, "--", "echo", "ran")
            self.assertIn("""is no text for sh: 'echo "'; """, text)
        good = [{"name": "strace", "cmd": 'X="a b"; echo "$X" && '}]
        done = self.run_prof("--additional-context", json.dumps({"tools": good}), "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, b"a b\nran\n"), done.stderr)

    def test_the_first_bytes_of_some_editors_are_no_fault(self):
        self.write("stack.json", '\ufeff{"tools": [{"name": "strace", "cmd": "echo cmd"}]}')
        done = self.run_prof("--stack", "stack.json", "--", "ran")
        self.assertEqual(done.returncode, 127, done.stderr)
        self.assertIn(b"the workload 'ran' is not on PATH", done.stderr)

    def test_a_program_with_address_sanitizer_under_memory(self):
        with open(self.path("a.c"), "w", encoding="utf-8") as file:
            file.write('char name[] = "libasan.so.8"; int main(void) { return !*name; }\n')
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run([*compiler, "a.c", "-o", "a"], cwd=self.folder, check=True)
        self.assertIn("AddressSanitizer, which './a' is built with", self.refuse("--memory", "./a"))
        self.run_well("./a")

    def test_a_dry_run_sees_a_folder_that_cannot_be_written(self):
        os.mkdir(self.path("fixed"))
        script = 'mount -t tmpfs -o ro none fixed || exit 77; cd fixed; "$@"'
        for words, status in ((("-o", "a/b"), 125), (("-t", "rocblas_trace"), 125), ((), 0)):
            done = subprocess.run(
                ["unshare", "-rm", "sh", "-c", script, "sh", PROF, "run", "--dry-run", *words]
                + ["app", "0"],
                cwd=self.folder,
                env=self.env,
                capture_output=True,
                timeout=HANG_SECONDS,
                check=False,
            )
            if done.returncode == 77:
                self.skipTest("no file system can be mounted here")
            self.assertEqual(done.returncode, status, done.stderr)
            told = b"cannot write to the folder '.': Read-only file system" in done.stderr
            self.assertEqual(told, status != 0, done.stderr)


class Ends(test_shown.Shown):
    def test_each_line_of_a_rank_names_it(self):
        env = {**self.env, "RANK": "3", "WORLD_SIZE": "4"}
        text = self.run_well("true", env=env)
        self.assertTrue(text.startswith("prof run: rank 3: nothing was recorded"), text)
        text = self.run_well("-o", "out", "app", "0", env=env)
        self.assertIn("prof run: rank 3: app 0: status 0, ", text)

    def test_heaptrack_follows_one_program_alone(self):
        script = '#!/bin/sh\nshift 2\ntouch heaptrack_output/heaptrack.zst\nexec "$@"\n'
        self.write("heaptrack", script, 0o755)
        env = {**self.env, "PATH": f"{self.folder}:{self.env['PATH']}"}
        told = "heaptrack followed 'sh' alone"
        text = self.run_well("-t", "heaptrack", "--", "sh", "-c", "app 0; true", env=env)
        self.assertEqual(text.count(told), 1, text)
        self.assertNotIn(told, self.run_well("-t", "heaptrack", "--", "app", "0", env=env))

    def test_a_run_inside_of_another_has_the_captures(self):
        self.write("work", WAIT)
        inner = [PROF, "run", "-q", "--", sys.executable, "work"]
        text = self.run_well("--", *inner)
        self.assertIn("nothing was recorded here: a prof run inside of this one has", text)


if __name__ == "__main__":
    unittest.main()
