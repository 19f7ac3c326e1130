"""The command line of ``prof run``: options of the tool prof, contexts, errors, dry runs, and
programs that use prof themselves."""

import gzip
import json
import os
import re
import subprocess
import sys
import unittest

from case import HANG_SECONDS, PROF, Case

SOURCE = os.environ.get("PROF_TEST_SOURCE_DIR", os.getcwd())
BUILD = os.path.dirname(PROF)
EXAMPLE = os.path.join(BUILD, "examples", "threads_and_args")
PACKAGE = {
    **os.environ,
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": os.path.join(SOURCE, "bindings", "python"),
    "PROF_LIBRARY": os.path.join(BUILD, "libprof.so"),
    "PROF_PYTHON_PROGRAM": sys.executable,
}
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


class Words(Case):
    def table(self, path):
        done = subprocess.run(
            [PROF, "table", path],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        return done.stdout.decode()

    def refuse(self, words, *texts, status=125, lines=1, env=None):
        done = self.run_prof(*words, env=env or os.environ)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, status, (words, error))
        self.assertEqual(len(error.splitlines()), lines, error)
        for text in texts:
            self.assertIn(text, error)
        self.assertEqual(done.stdout, b"", words)

    def have_example(self):
        if not os.path.exists(EXAMPLE):
            self.skipTest("examples/threads_and_args was not built")


class Refusals(Words):
    def test_wrong_words_name_the_help_of_run(self):
        for words, text in (
            (["--no-such-option"], "--no-such-option"),
            ([], "needs a program"),
            (["-m"], "-m"),
            (["--level", "3", "true"], "not 3"),
            (["--repeat", "0", "true"], "not 0"),
            (["--repeat", "2x", "true"], "not 2x"),
            (["--repeat", "", "true"], "not "),
            (["--repeat", "99999999999999999999", "true"], "not 99999999999999999999"),
            (["--sample", "0", "true"], "not 0"),
            (["--sample", "soon", "true"], "not soon"),
            (["--python=some", "x.py"], "not some"),
            (["--sort", "colour", "true"], "colour"),
            (["--rows", "0", "true"], "0"),
            (["--output", "", "true"], "empty"),
            (["-n", "2", "-o", "x.json", "true"], "x.json"),
        ):
            self.refuse(words, text, "see prof run --help")

    def test_options_of_the_tool_prof_need_it(self):
        for words in (
            ["--memory"],
            ["-l", "2"],
            ["--devices"],
            ["--sample", "0.1"],
            ["--torch"],
            ["--rows", "5"],
            ["-o", "x.json"],
        ):
            self.refuse(["-t", "therock_check", *words, "--", "true"], "--tool prof")

    def test_options_of_python_need_a_program_in_python(self):
        for option in ("--python", "--torch", "--with-stack", "--trace=numpy"):
            self.refuse([option, "--", "true"], option.split("=")[0] + " is for", "'true'")

    def test_a_missing_script_and_a_missing_program_have_one_status(self):
        self.refuse(["nofile.py"], "nofile.py", status=127)
        self.refuse(["nofile"], "nofile", status=127)

    def test_a_python_without_the_package_is_named(self):
        self.write("x.py", "")
        python = self.write("python", "#!/bin/sh\nexit 1\n", 0o755)
        env = {**os.environ, "PROF_PYTHON_PROGRAM": python}
        self.refuse(["x.py"], python, "PYTHONPATH", env=env)

    def test_an_unknown_tool_has_the_nearest_names_and_columns_that_fit(self):
        for columns in (60, 120):
            done = self.run_prof(
                *("-t", "rocprofv4", "--", "true"),
                env={**os.environ, "COLUMNS": str(columns)},
            )
            lines = done.stderr.decode().splitlines()
            self.assertEqual(done.returncode, 125)
            self.assertIn("did you mean rocprofv3", lines[0])
            self.assertLessEqual(max(map(len, lines[1:])), columns)
            names = " ".join(lines[1:-1]).split()
            self.assertEqual(len(names), len(set(names)))
            self.assertIn("rocprofv3_pc_sampling", names)

    def test_a_tool_s_name_is_one_of_a_folder(self):
        for name in ("", "a/b", "..", "a\nb"):
            self.write("tools.json", json.dumps({"tools": {name: {"cmd": "env"}}}))
            self.refuse(["--tools-config", "tools.json", "true"], "names a folder")


class Contexts(Words):
    def test_each_bad_text_is_one_line_with_its_place(self):
        for text, reason in (
            ("{tools}", "line 1, column 2"),
            ('{"tools": [\n{"name": "perf"}\n{"name": "x"}]}', "line 3, column 1"),
            ("{'tools': [{'name': 'perf'} {'name': 'x'}]}", "line 1, column 29"),
            ("{'a': nan}", "line 1, column 7"),
            ("{'a': 'b", "no end"),
            ("{} x", "line 1, column 4"),
            ('{"a": 1, "a": 2}', '"a" is there twice'),
            ('{"a": "\\u0000"}', "NUL"),
            ("", "is empty"),
            ("[]", "a list"),
            ("{'tools': {'name': 'perf'}}", "an object"),
            ("{'tools': [{'name': 1}]}", "a number"),
            ("{'tools': [{'name': 'perf', 'env_vars': {'A\\nB': 'x'}}]}", "A\\x0aB"),
            ("{'tools': [{'name': 'perf', 'env_vars': {'A': None}}]}", "null"),
            ("{'pre_scripts': [{'args': 'x'}]}", '"path"'),
        ):
            self.refuse(["--additional-context", text, "--", "true"], reason)

    def test_each_bad_file_is_one_line(self):
        os.mkfifo(os.path.join(self.folder, "fifo"))
        self.write("empty", "")
        self.write("nul", '{"a"\0: 1}')
        self.write("deep", "[" * 100000)
        self.write("deep_literal", "{'a': " * 100000)
        with open(os.path.join(self.folder, "latin"), "wb") as file:
            file.write(b'{"a": "\xe9"}')
        with open(os.path.join(self.folder, "large"), "wb") as file:
            file.truncate(1 << 30)
        for name, reason in (
            (".", "directory"),
            ("fifo", "is empty"),
            ("empty", "is empty"),
            ("nul", "NUL"),
            ("deep", "more than 64 deep"),
            ("deep_literal", "more than 64 deep"),
            ("latin", "UTF8"),
            ("large", "16 MiB"),
        ):
            self.refuse(["--stack", name, "--", "true"], f"'{name}'", reason)

    def test_a_pipe_is_read_to_its_end(self):
        self.write("slow.sh", "printf '{\"tools\": '; printf '[]}'\n")
        done = subprocess.run(
            ["bash", "-c", f'"{PROF}" run -q --stack <(sh slow.sh) -- echo here'],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout), (0, b"here\n"), done.stderr)

    def test_unknown_keys_are_named_and_madengine_s_are_not(self):
        context = {
            "tool": [],
            "gpu_vendor": "AMD",
            "docker_env_vars": {},
            "_comment": "x",
            "colour": 1,
        }
        done = self.run_prof("-q", "--additional-context", json.dumps(context), "--", "true")
        lines = done.stderr.decode().splitlines()
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(lines), 2, lines)
        self.assertIn('"tool" is not known', lines[0])
        self.assertIn('did you mean "tools"?', lines[0])
        self.assertIn('"colour" is not known', lines[1])

    def test_an_unknown_key_of_a_tool_is_named(self):
        tool = {"cmd": "env", "env_var": {"A": "1"}, "_comment": ""}
        self.write("mine.json", json.dumps({"tools": {"mine": tool}}))
        done = self.run_prof(*("-q", "--tools-config", "mine.json", "-t", "mine", "true"))
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn('"tools"."mine": the key "env_var" is not known', lines[0])
        self.assertIn('did you mean "env_vars"?', lines[0])

    def test_numbers_of_variables_are_as_written(self):
        tools = [{"name": "test_tools_A", "cmd": "env", "env_vars": {"N": 10, "B": True}}]
        done = self.run_prof(
            *("-q", "--tools-config", "tools.json", "--additional-context"),
            *(json.dumps({"tools": tools}), "--", "sh", "-c", "echo $N $B"),
        )
        self.assertIn(b"\n10 true\n", done.stdout)


class Folders(Words):
    """$PROF_RUN_FOLDER is the tool's folder."""

    def test_a_cmd_a_script_and_a_value_have_it(self):
        self.write("touch.sh", 'touch "$PROF_RUN_FOLDER/$1"\n')
        tools = {
            "tools": {
                "mine": {
                    "pre_scripts": [{"path": "touch.sh", "args": "before"}],
                    "cmd": 'touch "$PROF_RUN_FOLDER/a b";',
                    "env_vars": {"WHERE": "$PROF_RUN_FOLDER/c ${PROF_RUN_FOLDER}"},
                    "post_scripts": [{"path": "touch.sh", "args": "after"}],
                },
                "outer": {"cmd": "env"},
            }
        }
        self.write("mine.json", json.dumps(tools))
        done = self.run_prof(
            *("-q", "--tools-config", "mine.json", "-t", "mine", "-t", "outer"),
            *("-o", "out", "--", "sh", "-c", 'echo "$WHERE"'),
        )
        folder = os.path.join(os.path.realpath(self.folder), "out", "mine_output")
        self.assertEqual(done.stdout.decode(), f"{folder}/c {folder}\n", done.stderr)
        self.assertEqual(sorted(os.listdir(folder)), ["a b", "after", "before"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out/outer_output")))

    def test_each_repeated_run_has_its_own(self):
        variables = {f"V{i}": "$PROF_RUN_FOLDER" for i in range(20)}
        tools = {"tools": {"mine": {"cmd": "env", "env_vars": variables}}}
        self.write("mine.json", json.dumps(tools))
        done = self.run_prof(
            *("-q", "--tools-config", "mine.json", "-t", "mine", "-t", "prof"),
            *("-o", "out", "-n", "3", "--", "sh", "-c", 'echo "$V0" "$V19"'),
        )
        out = os.path.join(os.path.realpath(self.folder), "out")
        folders = [f"{out}/run-{i}/mine_output" for i in (1, 2, 3)]
        self.assertEqual(done.stdout.decode().splitlines(), [f"{f} {f}" for f in folders])

    def test_a_cmd_of_the_context_writes_into_it(self):
        tools = [{"name": "strace", "cmd": 'touch "$PROF_RUN_FOLDER/x"; env'}]
        self.run_prof(
            *("-q", "-o", "out", "--additional-context"),
            *(json.dumps({"tools": tools}), "--", "true"),
        )
        self.assertEqual(os.listdir(os.path.join(self.folder, "out/strace_output")), ["x"])


class DryRun(Words):
    def test_it_prints_the_command_and_each_reason_against_it(self):
        tools = {
            "tools": {
                "a": {"cmd": "no-such-a"},
                "b": {"cmd": "no-such-b x |"},
                "c": {"cmd": "export A=1;", "env_vars": {"PYTHONPATH": "/c"}},
            }
        }
        self.write("mine.json", json.dumps(tools))
        done = self.run_prof(
            *("--dry-run", "--tools-config", "mine.json"),
            *("-t", "a", "-t", "b", "-t", "c", "no-such-program", "a b"),
            env={**os.environ, "PYTHONPATH": "/mine"},
        )
        lines = done.stderr.decode().splitlines()
        self.assertEqual(done.returncode, 125)
        self.assertEqual(len(lines), 3, lines)
        for line, name in zip(lines, ("no-such-a", "no-such-b", "no-such-program")):
            self.assertIn(name, line)
        self.assertTrue(done.stdout.startswith(b"PYTHONPATH=/c:/mine /bin/sh -c "))
        self.assertTrue(done.stdout.endswith(b"no-such-program 'a b'\n"), done.stdout)
        self.assertEqual(self.run_prof("--dry-run", "no-such-program").returncode, 127)

    def test_what_it_prints_can_be_run(self):
        done = self.run_prof(
            *("--dry-run", "--tools-config", "tools.json", "-t", "test_tools_A"),
            *("--", "sh", "-c", 'echo "$WHO" "$1"', "sh", "it's"),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode().splitlines()
        ran = subprocess.run(
            ["sh", "-c", "\n".join(text)],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        self.assertEqual(
            ran.stdout.decode().splitlines(),
            ["pre_script A", "cmd_A", "A it's", "post_script A"],
        )


class List(Words):
    def test_it_fits_the_terminal_and_has_each_tool_once(self):
        for columns in (50, 100):
            done = self.run_prof(
                "--list",
                env={**os.environ, "COLUMNS": str(columns), "PATH": "/nowhere"},
            )
            self.assertEqual(done.returncode, 0)
            head, tail = done.stdout.decode().split("\n\n")
            rows = [line for line in head.splitlines()[1:] if line[0] != " "]
            self.assertEqual(len({row.split()[0] for row in rows}), len(rows))
            self.assertLessEqual(max(map(len, head.splitlines())), columns)
            self.assertEqual({row.split()[1] for row in rows}, {"yes", "no"})
            strace = next(row for row in rows if row.startswith("strace "))
            self.assertEqual(strace.split()[1], "no")
            self.assertIn("apt-get install strace", " ".join(tail.split()))
            self.assertEqual(tail.count("neither rocprofv3 nor rocprof"), 1)

    def test_words_that_it_has_no_use_for_are_told(self):
        for words, text in (
            (["--list", "x"], "--list runs no program, so there is no use for x"),
            (["--list", "--", "x"], "no use for x"),
            (["--list", "-m", "x"], "no use for -m"),
            (["--list", "--no-such-option"], "--no-such-option"),
        ):
            self.refuse(words, text)
        done = self.run_prof("--list", "--tool", "nope")
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertIn(b"there is no tool 'nope'", done.stderr)
        self.assertEqual(self.run_prof("--list", "--tool", "prof").returncode, 0)


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


class OwnOutputs(Words):
    """Programs that start prof with one path do not write over each other, as without a run."""

    START = (
        "import os, sys\n"
        "from prof import _structs as s, scope\n"
        "from prof._library import C, sized\n"
        "C.check(C.prof_start_with(sized(s.Options, path=b'own.json')))\n"
        "def dump(name):\n"
        "    with scope(name): pass\n"
        "    C.prof_stop()\n"
        "    C.check(C.prof_dump(None))\n"
    )

    def check(self, *names):
        traces = [n for n in os.listdir(self.folder) if n.startswith("own.")]
        self.assertEqual(len(traces), len(names), traces)
        self.assertIn("own.json", traces)
        for name in names:
            self.assertTrue(any(name in self.read(path) for path in traces), name)

    def run_both_ways(self, words, *names):
        for run in ([PROF, "run", "-q", "-o", "out", "--"], []):
            done = subprocess.run(
                [*run, *words],
                cwd=self.folder,
                env=PACKAGE,
                capture_output=True,
                timeout=HANG_SECONDS,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check(*names)
            for name in os.listdir(self.folder):
                if name.startswith("own."):
                    os.unlink(os.path.join(self.folder, name))

    def test_a_forked_child_has_its_own(self):
        self.write(
            "fork.py",
            self.START + "pid = os.fork()\n"
            "dump('of the parent' if pid else 'of the child')\n"
            "if pid: os.waitpid(pid, 0)\n"
            "os._exit(0)\n",
        )
        self.run_both_ways([sys.executable, "fork.py"], "of the parent", "of the child")

    def test_a_process_beside_it_has_its_own(self):
        self.write(
            "beside.py",
            self.START + "print(1, flush=True)\nsys.stdin.readline()\ndump(sys.argv[1])\n",
        )
        one = f'"{sys.executable}" beside.py'
        self.write(
            "two.sh",
            "mkfifo go\n"
            f"{one} second <go >ready & exec 3>go\n"
            "until [ -s ready ]; do sleep 0.01; done\n"
            f"{one} first </dev/null || exit 1\n"
            "exec 3>&-\nwait $!\nstatus=$?\nrm go ready\nexit $status\n",
        )
        self.run_both_ways(["sh", "two.sh"], "first", "second")


class ProgramsWithProf(Words):
    """A program that starts prof itself, with a path of its own."""

    def setUp(self):
        super().setUp()
        self.have_example()

    def test_it_writes_its_own_trace_and_the_run_has_it_once(self):
        done = self.run_prof("-o", "out", EXAMPLE, "own.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"the trace is own.json", done.stdout)
        names = [e.get("name") for e in json.loads(self.read("own.json"))["traceEvents"]]
        self.assertEqual(names.count("multiply"), 12)
        captures = os.listdir(os.path.join(self.folder, "out/prof_output"))
        self.assertEqual(len(captures), 1, captures)
        row = next(
            line
            for line in self.table(f"out/prof_output/{captures[0]}").splitlines()
            if line.startswith("multiply ")
        )
        self.assertIn(" 12 ", row + " ")
        self.assertEqual(sorted(os.listdir(self.folder)).count("own.json"), 1)

    def test_a_file_for_each_process(self):
        two = f'"{EXAMPLE}" a.json & "{EXAMPLE}" b.json; wait'
        for pattern in ("t.json", "t.json.gz", "t.prof", "p-%p.json"):
            before = set(os.listdir(self.folder))
            done = self.run_prof("-o", pattern, "--", "sh", "-c", two)
            self.assertEqual(done.returncode, 0, done.stderr)
            made = set(os.listdir(self.folder)) - before - {"a.json", "b.json"}
            self.assertEqual(len(made), 2, made)
            error = done.stderr.decode()
            for name in made:
                self.assertIn(f"{name} has threads_and_args (", error)
                if name.endswith(".prof"):
                    self.assertIn("multiply", self.table(name))
                elif name.endswith(".gz"):
                    with gzip.open(os.path.join(self.folder, name), "rt") as file:
                        self.assertIn("multiply", file.read())
                else:
                    self.assertIn("multiply", self.read(name))
            self.assertEqual("%" not in pattern, pattern in made)

    def test_calls_of_libraries_have_a_file_beside_it(self):
        program = f'echo "./rocblas-bench -f gemm -m 1"; "{EXAMPLE}" own.json'
        done = self.run_prof(
            *("-o", "t.json", "-t", "prof", "-t", "rocblas_trace", "--", "sh", "-c"),
            program,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"t.library_trace.json has the calls of libraries", done.stderr)
        self.assertNotIn(b"left out", done.stderr)
        self.assertNotIn(b"cannot", done.stderr)
        self.assertIn("multiply", self.read("t.json"))
        self.assertIn("gemm", self.read("t.library_trace.json"))
        left = [n for n in os.listdir(self.folder) if n.startswith(".prof-run")]
        self.assertEqual(left, [])

    def test_a_file_that_cannot_be_written_leaves_the_captures(self):
        program = f'"{EXAMPLE}" own.json; mkdir t.json; touch t.json/x'
        done = self.run_prof("-o", "t.json", "--", "sh", "-c", program)
        error = done.stderr.decode()
        self.assertIn("cannot write 't.json'", error)
        folder = next(n for n in os.listdir(self.folder) if n.startswith(".prof-run"))
        (capture,) = os.listdir(os.path.join(self.folder, folder))
        self.assertIn(f"{folder}/{capture}", error)
        self.assertIn("multiply", self.table(f"{folder}/{capture}"))

    def test_a_file_that_is_not_written_is_named(self):
        for quiet in ([], ["-q"]):
            self.refuse([*quiet, "-o", "t.json", "true"], "nothing was recorded", status=0)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "t.json")))

    def test_a_rank_has_a_file_of_its_own(self):
        for pattern, name in (("r.json", "r-3.json"), ("%r-x.json", "3-x.json")):
            done = self.run_prof(
                "-q",
                "-o",
                pattern,
                EXAMPLE,
                "own.json",
                env={**os.environ, "RANK": "3"},
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("multiply", self.read(name))

    def test_a_folder_with_the_name_of_a_file_is_a_folder(self):
        os.mkdir(os.path.join(self.folder, "d.prof"))
        self.run_prof("-q", "-o", "d.prof", "true")
        self.assertIn("status", self.read("d.prof/summary.json"))
        self.refuse(["-o", "missing/x.json", "true"], "no folder 'missing'")

    def test_the_table_s_options_hold(self):
        done = self.run_prof("--by", "category", "-r", "1", EXAMPLE, "own.json")
        lines = [line.split()[0] for line in done.stderr.decode().splitlines() if line]
        self.assertIn("vm", lines)
        self.assertNotIn("operator", lines)


class Devices(Words):
    def test_its_variables_reach_the_program(self):
        out = self.run_prof("-q", "--devices", "env").stdout.decode()
        for name, library in (
            ("OPENCL_LAYERS", "libprof_opencl.so"),
            ("CUDA_INJECTION64_PATH", "libprof_cuda.so"),
            ("ROCP_TOOL_LIBRARIES", "libprof_hip.so"),
            ("INTEL_LIBITTNOTIFY64", "libprof_itt.so"),
        ):
            self.assertRegex(out, f"(?m)^{name}=/.*/{library}$")
            self.assertNotIn(f"{name}=/", self.run_prof("-q", "env").stdout.decode())
        self.assertIn("PROF_DEVICES=records\n", out)

    def test_a_list_keeps_what_is_there_and_a_single_one_is_refused(self):
        out = self.run_prof(
            *("-q", "--devices", "env"), env={**os.environ, "OPENCL_LAYERS": "/mine.so"}
        ).stdout.decode()
        self.assertRegex(out, "(?m)^OPENCL_LAYERS=/.*/libprof_opencl.so:/mine.so$")
        self.refuse(
            ["--devices", "true"],
            "CUDA_INJECTION64_PATH",
            "/mine.so",
            env={**os.environ, "CUDA_INJECTION64_PATH": "/mine.so"},
        )

    def test_another_tracer_of_devices_is_a_conflict(self):
        for name in ("nsys", "rocprof"):
            self.refuse(["--devices", "-t", "prof", "-t", name, "--", "true"], name, "tracing")


class NoPackage(Words):
    def test_the_end_says_that_the_script_s_python_lacks_the_package(self):
        """The interpreter is a stand-in, which fails at each import and runs each script."""
        python = self.write("python3", '#!/bin/sh\n[ "$1" != -c ] || exit 1\necho done\n', 0o755)
        self.write("x.py", "")
        done = self.run_prof(python, "x.py")
        self.assertEqual((done.returncode, done.stdout), (0, b"done\n"), done.stderr)
        self.assertIn(f"{python} cannot import prof's Python package", done.stderr.decode())


class Conflicts(Words):
    """Tools that are refused together. The programs are stand-ins, which only have to be there."""

    def setUp(self):
        super().setUp()
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        for name in ("heaptrack", "strace", "uftrace", "valgrind"):
            self.write(os.path.join(folder, name), "#!/bin/sh\n", 0o755)
        self.env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    def test_two_that_replace_malloc(self):
        self.refuse(["-t", "heaptrack", "-t", "valgrind", "true"], "malloc()", env=self.env)
        for name in ("heaptrack", "valgrind"):
            for words in (["-t", "prof", "-t", name], ["-t", name, "-t", "prof"]):
                self.refuse(["--memory", *words, "true"], name, "malloc()", env=self.env)
                done = self.run_prof("--dry-run", *words, "true", env=self.env)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_uftrace_does_not_end_around_strace(self):
        words = ["-t", "strace", "-t", "uftrace", "true"]
        self.refuse(words, "name uftrace before strace", env=self.env)
        words = ("--dry-run", "-t", "uftrace", "-t", "strace", "true")
        self.assertEqual(self.run_prof(*words, env=self.env).returncode, 0)

    def test_a_replaced_cmd_has_no_advice_for_the_old_program(self):
        self.write("new.json", json.dumps({"tools": [{"name": "perf", "cmd": "no-such-cmd -x "}]}))
        done = self.run_prof("--stack", "new.json", "true", env=self.env)
        self.assertEqual(done.returncode, 125)
        line = "prof run: perf cannot work here: there is no 'no-such-cmd' on PATH\n"
        self.assertEqual(done.stderr.decode(), line)

    def test_valgrind_checks_the_program_behind_other_tools(self):
        """Without this option it checks only the first program, such as strace."""
        words = ("--dry-run", "-t", "strace", "-t", "valgrind", "true")
        out = self.run_prof(*words, env=self.env).stdout.decode()
        self.assertIn("valgrind --trace-children=yes ", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
