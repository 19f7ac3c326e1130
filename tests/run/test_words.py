"""The command line of ``prof run``: options of the tool prof, contexts, errors and dry runs."""

import json
import os
import subprocess
import unittest

from case import HANG_SECONDS, PROF
from words import Words


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
