"""``prof run`` and the program's streams: closed ends and descriptors, full disks, many writers.

What a program sees and writes is compared with the same program without prof.
"""

import os
import shutil
import subprocess
import sys
import unittest

from case import HANG_SECONDS, PROF, Case

WAYS = (("-q",), ("-q", "-o", "out"), ("-q", "-t", "rocblas_trace"))
"""Inherited streams; a log; lines that are read."""

STATE = (
    "import os\n"
    "fds = sorted(int(fd) for fd in os.listdir('/proc/self/fd'))\n"
    "def kind(fd):\n"
    "    try: mode = os.fstat(fd).st_mode\n"
    "    except OSError: return None\n"
    "    return oct(mode >> 12)\n"
    "text = repr({fd: kind(fd) for fd in fds if kind(fd)})\n"
    "names = 'SigPnd', 'ShdPnd', 'SigBlk', 'SigIgn', 'SigCgt'\n"
    "text += ''.join(x for x in open('/proc/self/status') if x[:6] in names)\n"
    "open('state', 'a').write(text + '\\n')\n"
)
"""Appends the open descriptors and the signals' state to the file "state"."""


class Shell(Case):
    def shell(self, text, **options):
        """Runs it in a bash, where $PROF is the command."""
        return subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder,
            env={
                **os.environ,
                "PROF": f"{PROF} run",
                "PYTHON": sys.executable,
                "TMPDIR": self.make_folder("tmp"),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=HANG_SECONDS,
            check=False,
            **options,
        )

    def make_folder(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path


class BrokenEnds(Shell):
    def test_a_program_whose_reader_has_closed_gets_sigpipe(self):
        for way in WAYS:
            done = self.shell(f"$PROF {' '.join(way)} -- yes | head -1; echo ${{PIPESTATUS[0]}}")
            self.assertEqual(done.stdout, b"y\n141\n", way)

    def test_the_other_stream_goes_on(self):
        program = "yes; for i in 1 2 3; do echo $i >&2; done; exit 6"
        for way in WAYS:
            done = self.shell(
                f"$PROF {' '.join(way)} -- sh -c '{program}' | head -1; exit ${{PIPESTATUS[0]}}"
            )
            self.assertEqual((done.returncode, done.stdout), (6, b"y\n"), way)
            self.assertTrue(done.stderr.endswith(b"1\n2\n3\n"), done.stderr)

    def test_a_program_that_ignores_sigpipe_gets_the_error(self):
        program = "trap '' PIPE; while echo y; do :; done 2>/dev/null; exit 4"
        for way in WAYS:
            done = self.shell(
                f'$PROF {" ".join(way)} -- sh -c "{program}" | head -1; exit ${{PIPESTATUS[0]}}'
            )
            self.assertEqual(done.returncode, 4, way)

    def test_the_status_stays_where_the_table_cannot_be_written(self):
        for stderr in ("2>/dev/full", "2>&-", "2> >(exec 0<&-)", ">&- 2>&-"):
            for way in ("", "-o out", "-t rocblas_trace"):
                done = self.shell(
                    f"$PROF {way} -- sh -c 'exit 7' {stderr}; echo $? > status; ls tmp"
                )
                self.assertEqual(self.read("status"), "7\n", (stderr, way))
                self.assertEqual(done.stdout, b"", (stderr, way))

    def test_the_status_stays_where_its_own_output_cannot_be_written(self):
        for way in ("-o out", "-t rocblas_trace"):
            done = self.shell(
                f"$PROF {way} -- sh -c 'echo x; sleep 0.1; echo y; exit 7' > /dev/full"
            )
            self.assertEqual(done.returncode, 7)
            self.assertIn(b"stdout: No space left on device", done.stderr)

    def test_a_reader_that_does_not_read_keeps_no_signal_from_the_program(self):
        for way in WAYS:
            done = self.shell(
                f"mkfifo {way[-1]}.fifo; exec 3<>{way[-1]}.fifo\n"
                f"$PROF {' '.join(way)} -- $PYTHON -c \"import os; open('begun', 'w'); \n"
                "while True: os.write(1, b'x' * 100000)\" >&3 &\n"
                "while ! [ -e begun ]; do sleep 0.01; done\n"
                "kill -TERM $!; rm begun\n"
                "while kill -0 $! 2>/dev/null; do sleep 0.01; kill -TERM $! 2>/dev/null; done\n"
                "wait $!"
            )
            self.assertEqual(done.returncode, 143, (way, done.stderr))


class Descriptors(Shell):
    def states(self, redirections):
        """What a program sees without prof, and then by each way."""
        self.write("state.py", STATE)
        program = "$PYTHON -S state.py"
        ways = ["", *(f"$PROF {' '.join(way)} -- /usr/bin/env" for way in WAYS)]
        done = self.shell(
            "rm -f state\n" + "".join(f"({way} {program} {redirections})\n" for way in ways)
        )
        states = self.read("state").split("\n\n")
        self.assertEqual(len(states), 5, (redirections, done.stderr))
        return states[:4]

    def test_a_program_has_no_descriptor_and_no_signal_of_ours(self):
        for redirections in (
            "",
            "</dev/null",
            "<&-",
            ">&-",
            "2>&-",
            "<&- >&- 2>&-",
            ">&- 2>&-",
            "7</dev/null",
            "2>&1",
        ):
            plain, *others = self.states(redirections)
            for other, way in zip(others, WAYS):
                self.assertEqual(other, plain, (redirections, way))

    def test_ignored_signals_stay_ignored(self):
        plain, *others = self.states("7</dev/null")
        self.write("ignoring.py", "")
        done = self.shell(
            "trap '' PIPE HUP INT CHLD; rm -f state\n"
            + "".join(
                f"({way} $PYTHON -S state.py)\n"
                for way in ["", *(f"$PROF {' '.join(way)} --" for way in WAYS)]
            ).replace("-- $PYTHON", "-- env $PYTHON")
        )
        states = self.read("state").split("\n\n")[:4]
        self.assertEqual(len(set(states)), 1, (states, done.stderr))

    def test_nothing_is_printed_into_a_file_that_got_the_number_of_a_stream(self):
        for way in ("", "-o out", "-t rocblas_trace -o out"):
            for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
                done = self.shell(f"$PROF {way} -- sh -c 'echo text > file; exit 3' {closed}")
                self.assertEqual(done.returncode, 3)
                self.assertEqual(self.read("file"), "text\n")
        for root, _, names in os.walk(os.path.join(self.folder, "out")):
            for name in names:
                self.assertNotIn("prof run:", self.read(os.path.join(root, name)))

    def test_each_of_several_runs_begins_the_same(self):
        self.write("state.py", STATE + "open('env', 'a').write(repr(os.environ))\n")
        for way in WAYS:
            self.shell(f"rm -f state env; $PROF {' '.join(way)} -n 3 -- env $PYTHON -S state.py")
            states = self.read("state").split("\n\n")[:-1]
            self.assertEqual((len(states), len(set(states))), (3, 1), states)


class Output(Shell):
    """The bytes are those of the same program without prof."""

    def check(self, program, status=0, ways=WAYS):
        self.write("program.py", program)
        plain = self.shell("$PYTHON program.py")
        self.assertEqual(plain.returncode, status, plain.stderr)
        for way in ways:
            done = self.shell(f"$PROF {' '.join(way)} -- env $PYTHON program.py")
            self.assertEqual(done.returncode, status, (way, done.stderr))
            self.assertTrue(done.stdout == plain.stdout, way)
            self.assertTrue(done.stderr == plain.stderr, way)

    def test_a_line_without_an_end(self):
        self.check("import os\nfor i in range(200): os.write(1, b'x' * 100000)\n")

    def test_a_program_that_closes_its_streams_early(self):
        self.check(
            "import os, time\nos.write(1, b'text'); os.close(1); os.close(2)\n"
            "time.sleep(0.05)\nos._exit(5)\n",
            5,
        )

    def test_a_program_that_makes_its_streams_non_blocking(self):
        self.check(
            "import os, select\n"
            "for fd in (0, 1, 2): os.set_blocking(fd, False)\n"
            "left = 3000000\n"
            "while left:\n"
            "    select.select([], [1], [])\n"
            "    try: left -= os.write(1, b'y' * min(left, 70000))\n"
            "    except BlockingIOError: pass\n"
        )

    def test_non_blocking_streams_are_blocking_again_for_who_comes_next(self):
        program = "import os; [os.set_blocking(fd, False) for fd in (0, 1, 2)]"
        look = "import os; print([os.get_blocking(fd) for fd in (0, 1, 2)])"
        for way in WAYS:
            done = self.shell(
                f"$PROF {' '.join(way)} -- env $PYTHON -c '{program}'; $PYTHON -c '{look}'"
            )
            self.assertEqual(done.stdout, b"[True, True, True]\n", way)

    def test_a_program_that_closes_its_stdin_ends_who_writes_there(self):
        program = "exec <&-; while ! [ -e ended ]; do sleep 0.01; done; exit 9"
        inner = f"{PROF} run-status {PROF} run-status-of"
        for way in (*((*way, "--") for way in WAYS), ("-q", "--", inner)):
            text = f"{' '.join(way)} sh -c '{program}'"
            done = self.shell(f"{{ yes; touch ended; }} | $PROF {text}")
            self.assertEqual(done.returncode, 9, (way, done.stderr))
            os.unlink(os.path.join(self.folder, "ended"))

    def test_scripts_and_runs_that_follow_have_the_rest_of_stdin(self):
        done = self.shell("seq 3 | $PROF -q -n 3 -- sh -c 'read x; echo got $x'")
        self.assertEqual(done.stdout, b"got 1\ngot 2\ngot 3\n", done.stderr)
        self.write("read.sh", "read x; echo then $x\n")
        context = "{'post_scripts': [{'path': 'read.sh'}]}"
        done = self.shell(
            f'seq 2 | $PROF -q --additional-context "{context}" -- sh -c "read x; echo got \\$x"'
        )
        self.assertEqual(done.stdout, b"got 1\nthen 2\n", done.stderr)

    def test_two_writers_of_a_line(self):
        self.check(
            "import os\n"
            "r, w = os.pipe()\n"
            "for i in range(300):\n"
            "    if os.fork() == 0:\n"
            "        os.write(1, b'second part\\n'); os._exit(0)\n"
            "    os.write(1, b'') ; os.wait(); os.write(1, b'first part, ')\n"
        )

    def test_a_hundred_children_at_once_and_a_thousand_one_by_one(self):
        self.check(
            "import subprocess\n"
            "all = [subprocess.Popen(['cat'], stdin=subprocess.PIPE) for i in range(100)]\n"
            "for i, one in enumerate(all):\n"
            "    one.stdin.write(b'%d\\n' % i); one.stdin.close(); one.wait()\n",
            ways=(*WAYS, ("-q", "-o", "out", "--memory")),
        )
        self.check(
            "import os\n"
            "text = 'i=0; while [ $i -lt 1000 ]; do /bin/echo $i; i=$((i+1)); done'\n"
            "os.execvp('sh', ['sh', '-c', text])\n"
        )


class Fails(Shell):
    def test_what_fails_after_the_program_does_not_change_its_status(self):
        for way in ("-t rocblas_trace", "-t rocblas_trace -t prof"):
            done = self.shell(
                f"$PROF {way} -o out -- sh -c 'rm -r out; exit 6'; s=$?; ls tmp; exit $s"
            )
            self.assertEqual(done.returncode, 6, done.stderr)
            self.assertIn(b"library_trace", done.stderr)
            self.assertEqual(done.stdout, b"")

    def test_tear_down_follows_when_the_program_cannot_be_started(self):
        self.write("echo.sh", 'echo "$1"\n')
        context = (
            "{'tools': [{'name': 'rocblas_trace'}], "
            "'post_scripts': [{'path': 'echo.sh', 'args': 'torn down'}]}"
        )
        done = self.shell(f'$PROF -q --additional-context "{context}" -- env no-such-program')
        self.assertEqual((done.returncode, done.stdout), (127, b"torn\n"), done.stderr)


class Sudo(Shell):
    """A program of another user, which we may not signal."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o777)
        words = ["sudo", "-n", "-u", "nobody", "true"]
        if not shutil.which("sudo") or subprocess.run(words, check=False).returncode != 0:
            self.skipTest("sudo -u nobody does not work here")

    def test_sudo_runs_in_it_and_it_in_sudo(self):
        program = "sudo -n -u nobody sh -c 'id -un; echo err >&2; exit 5'"
        for way in WAYS:
            done = self.shell(f"$PROF {' '.join(way)} -- {program}")
            self.assertEqual((done.returncode, done.stdout), (5, b"nobody\n"), way)
            self.assertEqual(done.stderr, b"err\n", way)

    def test_a_signal_reaches_the_program_through_sudo_once(self):
        """sudo passes it on. Its group must not get it as well."""
        program = (
            "import signal, sys\n"
            "both = {signal.SIGTERM, signal.SIGUSR1}\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, both)\n"
            "open('begun', 'w').close()\n"
            "while signal.sigwait(both) == signal.SIGTERM: print('got', flush=True)\n"
            "sys.exit(4)\n"
        )
        with open(os.path.join(self.folder, "program.py"), "w", encoding="utf-8") as file:
            file.write(program)
        for way in WAYS:
            done = self.shell(
                "rm -f begun; : > text\n"
                f"$PROF {' '.join(way)} -- sudo -n -u nobody python3 -S program.py > text &\n"
                "while ! [ -e begun ]; do sleep 0.01; done\n"
                "kill -TERM $!; while ! [ -s text ]; do sleep 0.01; done\n"
                "kill -USR1 $!; wait $!; status=$?; cat text; exit $status"
            )
            self.assertEqual((done.returncode, done.stdout), (4, b"got\n"), done)


class Disk(Shell):
    def setUp(self):
        super().setUp()
        self.small = self.make_folder("small")
        words = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", self.small]
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            self.skipTest("a small file system cannot be mounted: not root")
        self.addCleanup(subprocess.run, ["umount", "-l", self.small], check=True)

    def test_a_full_disk_costs_files_alone(self):
        program = "i=0; while [ $i -lt 20000 ]; do echo this is line number $i; i=$((i+1)); done"
        for way in ("", "-t rocblas_trace", "-t rocblas_trace -t prof"):
            done = self.shell(f"$PROF {way} -o small/out -- sh -c '{program}; exit 9'")
            self.assertEqual(done.returncode, 9, done.stderr)
            lines = done.stdout.decode().splitlines()
            self.assertEqual(lines, [f"this is line number {i}" for i in range(20000)])
            self.assertIn(b"No space left on device", done.stderr)
            shutil.rmtree(os.path.join(self.small, "out"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
