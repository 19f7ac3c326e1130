"""``prof run`` of a program in Python: how it is named, its options, and its interpreter."""

import os
import re
import subprocess
import sys
import unittest

from case import HANG_SECONDS
from words import PACKAGE, Words

READ = """
from prof import _run_script
names = set()
class Given(dict):
    def __contains__(self, name): return names.add(name) is None
    def __getitem__(self, name): return self.get(name)
    def get(self, name, *default): return names.add(name) or ["1"]
_run_script.Request(Given(), False, "s.py", [])
print(*names)
"""
SCRIPT = """import sys
from prof import scope
with scope("of the script"):
    print(sys.argv[1:])
"""


class Python(Words):
    def setUp(self):
        super().setUp()
        self.write("s.py", SCRIPT)

    def run_python(self, *words, **options):
        done = self.run_prof(*words, env=PACKAGE, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def test_each_way_to_name_a_program_records_its_scopes(self):
        for words in (
            ["s.py"],
            ["--", "s.py"],
            ["-m", "s"],
            ["-ms"],
            ["--", "-m", "s"],
            ["--", "-ms"],
            [sys.executable, "s.py"],
            ["--", sys.executable, "-u", "-W", "ignore", "s.py"],
            ["--", sys.executable, "-um", "s"],
        ):
            out, error = self.run_python(*words, "-q", "--", "a", "--")
            self.assertEqual(out, "['-q', '--', 'a', '--']\n", words)
            self.assertIn("of the script", error, words)

    def test_other_ways_to_run_python_are_python_s(self):
        for words in (["-c", "print(1)"], ["-V"], ["-u", "-c", "print(1)"]):
            _, error = self.run_python(sys.executable, *words)
            self.assertIn("nothing was recorded", error)
        done = self.run_prof(sys.executable, "nofile.py", env=PACKAGE)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"can't open file", done.stderr)

    def test_a_python_without_the_package_runs_as_it_is(self):
        env = {**os.environ, "PYTHONPATH": ""}
        self.write("plain.py", "print(__name__)\n")
        done = self.run_prof(sys.executable, "-I", "plain.py", env=env)
        self.assertEqual((done.returncode, done.stdout), (0, b"__main__\n"))
        self.refuse(
            ["--torch", sys.executable, "-I", "plain.py"],
            "prof's Python package",
            env=env,
        )

    def test_a_package_that_cannot_be_imported_keeps_nothing_from_running(self):
        package = os.path.join(self.folder, "broken", "prof")
        os.makedirs(package)
        self.write("broken/prof/__init__.py", "")
        self.write("broken/prof/_run.py", "raise ImportError\n")
        env = {**os.environ, "PYTHONPATH": os.path.dirname(package)}
        self.write("plain.py", "print(__name__)\n")
        done = self.run_prof(sys.executable, "plain.py", env=env)
        self.assertEqual((done.returncode, done.stdout), (0, b"__main__\n"))

    def test_a_package_of_another_version_is_not_run(self):
        """One that has no _run_script.py would not run the script."""
        os.mkdir(os.path.join(self.folder, "prof"))
        for name in ("__init__.py", "_run.py"):
            self.write(os.path.join("prof", name), "")
        self.write("x.py", "print('ran')\n")
        env = {**PACKAGE, "PYTHONPATH": self.folder}
        self.refuse(["x.py"], "cannot import prof's Python package", env=env)

    def test_a_package_without_its_library_has_a_command_that_shows_why(self):
        self.write("x.py", "")
        env = {**PACKAGE, "PROF_LIBRARY": "/nonexistent"}
        done = self.run_prof("x.py", env=env)
        self.assertEqual(done.returncode, 125)
        command = re.search(r"To see why: (.*)\n$", done.stderr.decode())[1]
        done = subprocess.run(
            ["sh", "-c", command], env=env, capture_output=True, timeout=HANG_SECONDS, check=False
        )
        self.assertIn(b"PROF_LIBRARY='/nonexistent' cannot be opened", done.stderr)

    def test_the_look_for_the_package_records_nothing(self):
        self.write("x.py", "print('ran')\n")
        path = os.path.join(self.folder, "of-all.prof")
        env = {**PACKAGE, "PROF_LEVEL": "1", "PROF_OUTPUT": path}
        done = self.run_prof("-q", "x.py", env=env)
        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"), done.stderr)
        self.assertEqual(os.listdir(self.folder).count("of-all.prof"), 0)

    def run_by_package(self, *words, python=("-m", "prof")):
        return subprocess.run(
            [sys.executable, *python, "run", *words],
            cwd=self.folder,
            env=PACKAGE,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )

    def test_python_m_prof_run_is_the_command(self):
        """What is printed before anything runs is the same, and so is the status."""
        plan = ("--dry-run", "--python", "-o", "x.json", "-b", "line,rank", "s.py", "a", "--", "-b")
        for words in (
            ("--help",),
            ("--no-such",),
            ("--by", "name,name", "s.py"),
            ("--by", "nothing", "s.py"),
            ("--rows", "0", "s.py"),
            ("-l", "3", "s.py"),
            ("-o", "x.txt", "s.py"),
            ("no.py",),
            (),
            plan,
        ):
            with self.subTest(words):
                one, two = self.run_prof(*words, env=PACKAGE), self.run_by_package(*words)
                self.assertEqual(
                    (two.returncode, two.stdout, two.stderr),
                    (one.returncode, one.stdout, one.stderr),
                )

    def test_a_program_in_place_of_a_script_has_a_hint(self):
        done = self.run_by_package("true", "a")
        self.assertEqual(
            (done.returncode, done.stderr.decode()),
            (
                127,
                "prof run: there is no script 'true'; python -m prof run executes Python only: "
                "type prof run true for the program\n",
            ),
        )

    def test_the_interpreter_s_options_are_the_script_s(self):
        self.write("i.py", "import sys; print(sys.flags.optimize, sys._xoptions, sys.argv)\n")
        for python, seen in (
            (("-O", "-X", "a=b", "-m", "prof"), "1 {'a': 'b'} ['i.py', '-m']\n"),
            (("-Om", "prof"), "1 {} ['i.py', '-m']\n"),
            (("-OOmprof",), "2 {} ['i.py', '-m']\n"),
            (("-mprof",), "0 {} ['i.py', '-m']\n"),
        ):
            with self.subTest(python):
                done = self.run_by_package("-q", "i.py", "-m", python=python)
                self.assertEqual((done.stdout.decode(), done.stderr), (seen, b""))

    def test_a_script_on_stdin_is_recorded(self):
        done = subprocess.run(
            [sys.executable, "-m", "prof", "run", "-"],
            input=b"import prof\nwith prof.scope('of stdin'): pass\n",
            env=PACKAGE,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        self.assertRegex(done.stderr, rb"(?m)^stdin +script ")
        self.assertRegex(done.stderr, rb"(?m)^of stdin ")

    def test_each_option_reaches_the_package(self):
        """Each of the help text but those that the command has used up itself."""
        text = self.run_prof("--help").stdout.decode().split("Of the tool prof:", maxsplit=1)[1]
        options = set(re.findall(r"^ +(?:-\w(?: \S+)?, )?--([a-z-]+)", text, re.MULTILINE))
        self.assertIn("record-shapes", options)
        read = subprocess.run(
            [sys.executable, "-c", READ],
            env=PACKAGE,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=True,
        ).stdout.split()
        self.assertEqual(
            options - {"sample"},
            set(read) - {"captures-in", "output", "output-in-folder", "quiet"},
        )

    def test_each_group_has_its_rows(self):
        self.write("g.py", "import prof\ndef f(): pass\nwith prof.scope('s', part=7): f()\n")
        env = {**PACKAGE, "RANK": "3", "WORLD_SIZE": "4"}
        for words, row in (
            (("--python", "-b", "line,name"), r"^f .* \S*g\.py:2$"),
            (("-b", "rank,name"), "^s +3 "),
            (("-b", "arg:part"), "^7 "),
        ):
            with self.subTest(words):
                done = self.run_prof(*words, "g.py", env=env)
                self.assertRegex(done.stderr.decode(), f"(?m){row}")

    def test_its_options_reach_it(self):
        self.write("f.py", "def of_mine(): pass\nof_mine()\n")
        _, error = self.run_python("--python", "--rows", "all", "--sort=name", "f.py")
        self.assertIn("of_mine", error)
        _, error = self.run_python("--by", "category", "--devices", "s.py")
        self.assertNotIn("of the script", error)
        self.assertIn("Category", error)

    def test_a_program_whose_first_line_names_python_takes_them_too(self):
        self.write("tool", f"#!{sys.executable}\n{SCRIPT}", 0o755)
        out, error = self.run_python("--python", "./tool", "a")
        self.assertEqual(out, "['a']\n")
        self.assertIn("of the script", error)

    def test_a_file_has_its_trace(self):
        self.run_python("-q", "-o", "x.json", "s.py")
        self.assertIn("of the script", self.read("x.json"))

    def test_a_library_that_starts_prof_joins(self):
        self.write(
            "own.py",
            "from prof import _structs as s, scope\n"
            "from prof._library import C, sized\n"
            "def start():\n"
            "    C.check(C.prof_start_with(sized(s.Options, level=2, path=b'own.json')))\n"
            "start()\n"
            "with scope('first'): pass\n"
            "C.check(C.prof_stop())\n"
            "C.check(C.prof_dump(None))\n"
            "start()\n"
            "with scope('second'): pass\n",
        )
        _, error = self.run_python("-o", "out", "own.py")
        self.assertIn("first", error)
        self.assertIn("second", error)
        self.assertIn("first", self.read("own.json"))
        (name,) = os.listdir(os.path.join(self.folder, "out/prof_output"))
        table = self.table(f"out/prof_output/{name}")
        self.assertIn("second", table)


class NoPackage(Words):
    def test_the_end_says_that_the_script_s_python_lacks_the_package(self):
        """The interpreter is a stand-in, which fails at each import and runs each script."""
        python = self.write("python3", '#!/bin/sh\n[ "$1" != -c ] || exit 1\necho done\n', 0o755)
        self.write("x.py", "")
        done = self.run_prof(python, "x.py")
        self.assertEqual((done.returncode, done.stdout), (0, b"done\n"), done.stderr)
        self.assertIn(f"{python} cannot import prof's Python package", done.stderr.decode())


if __name__ == "__main__":
    unittest.main(verbosity=2)
