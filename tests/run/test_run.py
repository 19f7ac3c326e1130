"""The command ``prof run``: words, order, streams, signals and ends, as who types it sees them.

Run by CTest: PROF_TEST_BUILD_DIR has the command. Every wait has the hang guard alone as its bound.
"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import unittest

from case import HANG_SECONDS, PROF, Case, TerminalCase

PRINT_WORDS = "import sys; sys.stdout.write(repr(sys.argv[1:]))"


class Words(Case):
    def test_words_arrive_as_they_are_through_a_stack_of_shell_texts(self):
        words = [
            "",
            "$HOME",
            "*",
            "--",
            "a b",
            "it's",
            '"',
            "\\",
            "\n",
            "é",
            "-c",
            "A=B",
        ]
        for tools in ([], ["--tools-config", "tools.json", "--stack", "stack.json"]):
            done = self.run_prof("-q", *tools, "--", sys.executable, "-c", PRINT_WORDS, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(repr(words), done.stdout.decode())

    def test_options_behind_the_program_are_the_program_s(self):
        done = self.run_prof("-q", sys.executable, "-c", PRINT_WORDS, "--help", "-o", "x")
        self.assertEqual(done.stdout.decode(), repr(["--help", "-o", "x"]))

    def test_a_word_with_an_equals_sign_is_the_program(self):
        path = self.write("a=b", "#!/bin/sh\necho here\n", 0o755)
        done = self.run_prof(
            "-q", "--tools-config", "tools.json", "--stack", "stack.json", "--", path
        )
        self.assertEqual(done.stdout.decode().splitlines()[4], "here")


class Python(Case):
    """python -m prof._run, here a stand-in, is what runs scripts and modules."""

    def run_python(self, *words):
        self.write("x.py", "")
        python = self.write("python", '#!/bin/sh\nprintf "%s\\n" "$@"\n', 0o755)
        done = self.run_prof(*words, env={**os.environ, "PROF_PYTHON_PROGRAM": python})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode().split("\n")[:-1]

    def run_recorded(self, *words):
        """The words but for the folder of captures, which each run makes."""
        found = self.run_python(*words)
        folders = [word for word in found if word.startswith("--captures-in=/")]
        self.assertEqual(len(folders), 1)
        return [word for word in found if word not in folders]

    def test_a_script_and_a_module_run_in_python(self):
        self.assertEqual(
            self.run_recorded("x.py", "-q"),
            ["-m", "prof._run", "--level=1", "--rows=30", "--", "x.py", "-q"],
        )
        self.assertEqual(
            self.run_recorded("-q", "--memory", "-l", "2", "-m", "mod", "-q"),
            [
                "-m",
                "prof._run",
                "--level=2",
                "--memory",
                "--quiet",
                "--rows=30",
                "--",
                "-m",
                "mod",
                "-q",
            ],
        )

    def test_a_script_without_the_tool_prof_runs_in_plain_python(self):
        self.assertEqual(self.run_python("-t", "therock_check", "x.py", "a"), ["x.py", "a"])


class Order(Case):
    RIGHT = [
        "pre_script B",
        "pre_script A",
        "cmd_B",
        "cmd_A",
        "A",
        "post_script A",
        "post_script B",
    ]

    def run_stack(self, *words):
        program = ["sh", "-c", 'echo "$WHO"']
        done = self.run_prof("-q", "--tools-config", "tools.json", *words, "--", *program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode().splitlines()

    def test_the_first_named_is_innermost(self):
        self.assertEqual(self.run_stack("--stack", "stack.json"), self.RIGHT)
        self.assertEqual(
            self.run_stack("--tool", "test_tools_A", "--tool", "test_tools_B"),
            self.RIGHT,
        )

    def test_a_context_is_json_or_a_python_literal(self):
        literal = "{'tools': [{'name': 'test_tools_A'}, {'name': \"test_tools_B\",},], 'x': None}"
        self.assertEqual(self.run_stack("--additional-context", literal), self.RIGHT)

    def test_a_cmd_replaces_and_variables_merge(self):
        context = {
            "tools": [
                {
                    "name": "test_tools_A",
                    "cmd": "env",
                    "env_vars": {"WHO": "me", "N": 6},
                },
            ]
        }
        done = self.run_prof(
            "-q",
            "--tools-config",
            "tools.json",
            "--additional-context",
            json.dumps(context),
            "--",
            "sh",
            "-c",
            'echo "$WHO $N $ONLY_A"',
        )
        self.assertEqual(
            done.stdout.decode().splitlines(),
            ["pre_script A", "me 6 A", "post_script A"],
        )

    def test_a_context_has_scripts_and_a_text_of_its_own(self):
        context = {
            "tools": [{"name": "test_tools_A"}],
            "pre_scripts": [{"path": "echo.sh", "args": "pre own"}],
            "post_scripts": [{"path": "echo.sh", "args": "post own"}],
            "encapsulate_script": "echo around; ",
        }
        self.assertEqual(
            self.run_stack("--additional-context", json.dumps(context)),
            [
                "pre_script A",
                "pre own",
                "cmd_A",
                "around",
                "A",
                "post own",
                "post_script A",
            ],
        )

    def test_an_outer_tool_does_not_see_the_variables_of_an_inner_one(self):
        tools = {
            "tools": {
                "inner": {"cmd": "env", "env_vars": {"DEEP": "1"}},
                "outer": {"cmd": 'echo "${DEEP-unset}";', "env_vars": {"WIDE": "2"}},
            }
        }
        self.write("two.json", json.dumps(tools))
        done = self.run_prof(
            *("-q", "--tools-config", "two.json", "-t", "inner", "-t", "outer"),
            *("--", "sh", "-c", 'echo "$DEEP $WIDE"'),
        )
        self.assertEqual(done.stdout.decode().splitlines(), ["unset", "1 2"])

    def test_a_list_is_joined_with_what_is_there(self):
        tools = {
            "tools": {
                "inner": {"cmd": "env", "env_vars": {"PYTHONPATH": "/in"}},
                "outer": {"cmd": "env", "env_vars": {"PYTHONPATH": "/out"}},
            }
        }
        self.write("two.json", json.dumps(tools))
        done = self.run_prof(
            *("-q", "--tools-config", "two.json", "-t", "inner", "-t", "outer"),
            *("--", "sh", "-c", 'echo "$PYTHONPATH"'),
            env={**os.environ, "PYTHONPATH": "/mine"},
        )
        self.assertEqual(done.stdout.decode().strip(), "/in:/out:/mine")


class Examples(Case):
    def test_each_stack_is_one(self):
        root = os.environ.get("PROF_TEST_SOURCE_DIR", os.getcwd())
        folder = os.path.join(root, "examples", "run")
        names = sorted(os.listdir(folder))
        self.assertEqual(names, ["amd.json", "cpu.json", "nvidia.json"])
        for name in names:
            for program in ("nsys", "rocprofv3", "perf", "strace"):
                self.write(program, "#!/bin/sh\n", 0o755)
            done = self.run_prof(
                *("--dry-run", "--stack", os.path.join(folder, name), "--", "true"),
                env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"},
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.endswith(b" true\n"), done.stdout)


class Ends(Case):
    def test_the_status_is_the_program_s(self):
        self.assertEqual(self.run_prof("-q", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.run_prof("-q", "sh", "-c", "kill -TERM $$").returncode, 128 + 15)

    def test_what_cannot_start_has_the_statuses_of_env(self):
        path = self.write("plain", "text\n")
        self.assertEqual(self.run_prof("no-such-program").returncode, 127)
        self.assertEqual(self.run_prof(path).returncode, 126)

    def test_post_scripts_and_files_come_after_a_failure_too(self):
        done = self.run_prof(
            *(
                "-q",
                "--tools-config",
                "tools.json",
                "--stack",
                "stack.json",
                "-o",
                "out",
            ),
            *("--", "sh", "-c", "exit 3"),
        )
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stdout.decode().splitlines()[-2:], ["post_script A", "post_script B"])
        self.assertEqual(json.loads(self.read("out/summary.json"))["status"], 3)

    def test_a_pre_script_that_fails_keeps_the_program_from_running(self):
        self.write("echo.sh", "exit 4\n")
        done = self.run_prof(
            *(
                "--tools-config",
                "tools.json",
                "--stack",
                "stack.json",
                "--",
                "echo",
                "ran",
            )
        )
        self.assertEqual(done.returncode, 125)
        self.assertNotIn(b"ran", done.stdout)
        self.assertIn(b"status 4", done.stderr)

    def test_wrong_words_are_one_message_with_the_value(self):
        for words, text in (
            (["-t", "strace", "-t", "strace", "--", "true"], "named twice"),
            (["--additional-context", "{'tools': 5}", "--", "true"], "a number"),
            (["--additional-context", "{tools}", "--", "true"], "cannot be read as"),
            (["--stack", "no-such-file", "--", "true"], "no-such-file"),
        ):
            done = self.run_prof(*words)
            self.assertEqual(done.returncode, 125, words)
            self.assertEqual(len(done.stderr.decode().splitlines()), 1, done.stderr)
            self.assertIn(text, done.stderr.decode())

    def test_a_signal_goes_to_the_program_and_the_tear_down_follows(self):
        program = "trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.01; done"
        with subprocess.Popen(
            [
                *(
                    PROF,
                    "run",
                    "-q",
                    "--tools-config",
                    "tools.json",
                    "-t",
                    "test_tools_A",
                ),
                *("--", "sh", "-c", program),
            ],
            cwd=self.folder,
            stdout=subprocess.PIPE,
        ) as process:
            self.addCleanup(process.kill)
            lines = iter(process.stdout.readline, b"")
            self.assertIn(b"ready\n", lines)
            process.send_signal(signal.SIGTERM)
            self.assertEqual([line.strip() for line in lines], [b"got", b"post_script A"])
            self.assertEqual(process.wait(HANG_SECONDS), 9)


class Streams(Case):
    TRACE = ("-q", "-t", "rocblas_trace")

    def test_bytes_and_streams_arrive_as_they_are(self):
        program = (
            "import os; os.write(1, bytes(range(256)) * 300); os.write(2, b'x' * 300000 + b'\\0')"
        )
        done = self.run_prof(*self.TRACE, "--", sys.executable, "-c", program)
        self.assertEqual(done.stdout, bytes(range(256)) * 300)
        self.assertEqual(done.stderr, b"x" * 300000 + b"\0")

    def test_one_file_for_both_keeps_the_order(self):
        program = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo $i >&2; done"
        done = subprocess.run(
            [PROF, "run", *self.TRACE, "--", "sh", "-c", program],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual(done.stdout.split(), [b"%d" % (1 + i // 2) for i in range(18)])

    def test_lines_stay_and_calls_are_counted(self):
        lines = [
            "./rocblas-bench -f gemm -m 1",
            "[1,0]<stderr>:./rocblas-bench -f gemm -m 1",
            '- { rocblas_function: "rocblas_gemm_ex", M: 2, call_count: 136 }',
            "hipblaslt-bench --api_method c -m 1024",
            "Running kernel: Cijk_Ailk_Bljk_SB_MT128x64x8",
            "Running kernel: of something else",
            "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 5",
            "MIOpen: Command [LogCmdFindConvolution] ./bin/MIOpenDriver conv -n 5",
            "h:1:2 [0] NCCL INFO AllReduce: opCount 1e7 sendbuff 0x1 recvbuff 0x2 count 1001 "
            "datatype 7 op 0 root 0 comm 0x3 [nranks=2] stream 0x4",
        ]
        tools = [f"{x}_trace" for x in ("rocblas", "hipblaslt", "miopen", "tensile", "rccl")]
        program = "".join(f"print({line!r})\n" for line in lines)
        done = self.run_prof(
            "-q",
            *(w for t in tools for w in ("-t", t)),
            "--",
            sys.executable,
            "-c",
            program,
        )
        self.assertEqual(done.stdout.decode().splitlines(), lines)
        rows = list(csv.reader(io.StringIO(self.read("library_trace.csv"), newline="")))
        self.assertEqual(rows[0], ["jobid", "created_date", "model", "library", "config", "calls"])
        self.assertEqual(
            [row[3:] for row in rows[1:]],
            [
                ["rocblas", "./rocblas-bench -f gemm -m 1", "2"],
                ["hipblaslt", "hipblaslt-bench --api_method c -m 1024", "1"],
                ["rocblas_function", lines[2].replace(", call_count: 136", ""), "136"],
                ["miopen", "./bin/MIOpenDriver conv -n 5", "1"],
                ["tensile", "Cijk_Ailk_Bljk_SB_MT128x64x8", "1"],
                ["miopen_find", "./bin/MIOpenDriver conv -n 5", "1"],
                [
                    "rccl",
                    "AllReduce count 1001 datatype float32 op 0 root 0 nranks 2 bytes 4004",
                    "1",
                ],
            ],
        )

    def test_a_second_run_does_not_write_over_the_first(self):
        for _ in range(2):
            self.run_prof(*self.TRACE, "--", "true")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "library_trace.csv")))
        self.assertTrue(os.path.exists(os.path.join(self.folder, "library_trace.2.csv")))

    def test_ranks_have_folders_of_their_own(self):
        for pattern, folder in (
            ("out", "out/rank-3"),
            ("r%r", "r3"),
            ("%%", "%/rank-3"),
        ):
            self.run_prof("-q", "-o", pattern, "--", "true", env={**os.environ, "RANK": "3"})
            self.assertEqual(json.loads(self.read(f"{folder}/summary.json"))["status"], 0)

    def test_a_log_has_every_line(self):
        done = self.run_prof("-o", "out", "-q", "--", "sh", "-c", "echo a; echo b >&2; echo c")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(sorted(self.read("out/run.live.log").split()), ["a", "b", "c"])

    def test_what_a_process_writes_that_is_left_behind_arrives(self):
        program = (
            "(while ! [ -e go ]; do sleep 0.01; done; echo late; echo done > over) & echo early"
        )
        with subprocess.Popen(
            [PROF, "run", "-t", "rocblas_trace", "--", "sh", "-c", program],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            self.assertEqual(process.wait(HANG_SECONDS), 0)
            lines = iter(process.stderr.readline, b"")
            self.assertTrue(any(b"still runs, and is not waited for: sh (" in x for x in lines))
            self.write("go", "")
            self.assertEqual(process.stdout.read(), b"early\nlate\n")
        self.assertEqual(self.read("over"), "done\n")

    def test_the_program_goes_on_where_prof_is_killed(self):
        path = os.path.join(self.folder, "done")
        program = f"echo ready; read line; seq 100000; echo end > {path}"
        with subprocess.Popen(
            [PROF, "run", *self.TRACE, "--", "sh", "-c", program],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.kill()
            process.wait(HANG_SECONDS)
            process.stdin.write(b"go\n")
            process.stdin.close()
            rest = process.stdout.read()
        self.assertEqual(rest.split(), [b"%d" % (i + 1) for i in range(100000)])
        self.assertTrue(os.path.exists(path))


class Terminal(TerminalCase):
    """On a terminal the program has one, too; Ctrl-C and Ctrl-Z reach it."""

    def check_kind(self, *options):
        program = "import os; print([os.isatty(i) for i in range(3)], os.get_terminal_size())"
        pid, master = self.start(*options, "--", sys.executable, "-c", program)
        rest = self.rest(master)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(rest.count(b"True, True, True"), 1, rest)

    def test_each_stream_stays_a_terminal(self):
        self.check_kind("-q")
        self.check_kind("-q", "-t", "rocblas_trace")

    def test_typed_text_and_ctrl_c_reach_the_program(self):
        program = (
            "trap 'echo got; exit 5' INT; echo ready; read x; echo \"=$x=\"; "
            "while :; do sleep 0.01; done"
        )
        for options in (["-q"], ["-q", "-t", "rocblas_trace"]):
            pid, master = self.start(*options, "--", "sh", "-c", program)
            self.expect(master, b"ready")
            os.write(master, b"typed\n")
            self.expect(master, b"=typed=")
            os.write(master, b"\x03")
            self.expect(master, b"got")
            self.rest(master)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 5)

    def test_ctrl_z_stops_it_and_fg_goes_on(self):
        program = "echo ready; while ! read x; do :; done; echo =$x=; exit 6"
        self.write("program.sh", program)
        for options in ("-q", "-q -t rocblas_trace"):
            pid, master = self.start_shell()
            os.write(master, f"{PROF} run {options} -- sh program.sh\n".encode())
            self.expect(master, b"ready\r\n")
            os.write(master, b"\x1a")
            self.expect(master, b"Stopped")
            self.expect(master, b"prompt> ")
            os.write(master, b"echo 'in the' shell; fg\n")
            self.expect(master, b"in the shell\r\n")
            self.expect(master, b"program.sh\r\n")
            os.write(master, b"typed\n")
            self.expect(master, b"=typed=\r\n")
            self.expect(master, b"prompt> ")
            os.write(master, b"echo status $?; exit\n")
            self.expect(master, b"status 6\r\n")
            self.rest(master)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
