"""Signals to ``prof run`` at each step, and what happens when one of its processes is killed."""

import contextlib
import ctypes
import json
import os
import platform
import signal
import subprocess
import unittest

from case import HANG_SECONDS, PROF, Case

WAYS = ((), ("-t", "rocblas_trace"))
"""Inherited streams; streams that are read."""


def processes():
    """{pid: (parent, group, name)} of those that run."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                begin, _, rest = file.read().rpartition(")")
            state, parent, group = rest.split()[:3]
            if state not in "ZX":
                found[int(pid)] = int(parent), int(group), begin.partition("(")[2]
    return found


def children(pid):
    return [x for x, (parent, _, _) in processes().items() if parent == pid]


class Steps(Case):
    """The script of each step, and the program, waits for the file "go" beside its own name."""

    def setUp(self):
        super().setUp()
        # bash 5.2 can send itself SIGINT for ever if one comes when it begins or ends a wait.
        self.write("step.sh", 'exec sh body.sh "$1"\n')
        self.write(
            "body.sh",
            'trap "echo $1 got INT; exit 9" INT; trap "echo $1 got TERM; exit 8" TERM\n'
            'echo "$1"; if [ -e "hold-$1" ]; then while ! [ -e go ]; do sleep 0.01; done; fi\n'
            'echo "$1 ended"\n',
        )
        tools = {
            name: {
                "pre_scripts": [{"path": "step.sh", "args": f"pre-{name}"}],
                "cmd": "env",
                "post_scripts": [{"path": "step.sh", "args": f"post-{name}"}],
            }
            for name in ("in", "out")
        }
        self.write("steps.json", json.dumps({"tools": tools}))

    def start(self, *words, **options):
        process = subprocess.Popen(
            [
                *(PROF, "run", "-q", "--tools-config", "steps.json", "-t", "in"),
                *("-t", "out", "-o", "o", *words),
            ],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def expect(self, process, line):
        for seen in iter(process.stdout.readline, b""):
            if seen == line.encode() + b"\n":
                return
        self.fail(f"{line!r} did not come: {process.stderr.read()}")

    def end(self, process):
        """(status, the rest of the lines)."""
        rest = process.stdout.read().decode().splitlines()
        return process.wait(HANG_SECONDS), rest

    def interrupt(self, step, number, *more, times=1):
        """Sends it while the step runs. (status, lines behind it, summary)"""
        self.write(f"hold-{step}", "")
        for way in WAYS:
            process = self.start(*way, *more, "--", "bash", "step.sh", "main")
            self.expect(process, step)
            for _ in range(times):
                process.send_signal(number)
            with self.subTest(step=step, number=number, way=way):
                yield *self.end(process), json.loads(self.read("o/summary.json"))
            for root, _, names in os.walk(os.path.join(self.folder, "o"), topdown=False):
                for name in names:
                    os.unlink(os.path.join(root, name))
                os.rmdir(root)

    LAST = ["post-in", "post-in ended", "post-out", "post-out ended"]

    def test_a_signal_in_set_up_goes_to_the_script_and_no_program_follows(self):
        for number, name in ((signal.SIGINT, "INT"), (signal.SIGTERM, "TERM")):
            for step in ("pre-out", "pre-in"):
                for status, lines, summary in self.interrupt(step, number):
                    self.assertEqual(lines, [f"{step} got {name}", *self.LAST])
                    self.assertEqual((status, summary["status"]), (128 + number,) * 2)
                os.unlink(os.path.join(self.folder, f"hold-{step}"))

    def test_a_signal_to_the_program_is_followed_by_tear_down_and_files(self):
        for number, status_of_it in ((signal.SIGINT, 9), (signal.SIGTERM, 8)):
            for status, lines, summary in self.interrupt("main", number):
                self.assertEqual(lines[1:], self.LAST)
                self.assertEqual((status, summary["status"]), (status_of_it,) * 2)

    def test_a_signal_in_tear_down_goes_to_the_script_and_files_follow(self):
        for status, lines, summary in self.interrupt("post-in", signal.SIGINT):
            self.assertEqual(lines, ["post-in got INT", *self.LAST[2:]])
            self.assertEqual((status, summary["status"]), (0, 0))
            self.assertEqual(len(summary["scripts"]), 4)

    def test_many_signals_lose_no_file(self):
        for status, _, summary in self.interrupt("main", signal.SIGINT, times=50):
            self.assertEqual(summary["status"], status)
            self.assertEqual(len(summary["scripts"]), 4)
            self.assertTrue(os.path.exists(os.path.join(self.folder, "o/run.live.log")))

    def test_a_signal_ends_repeated_runs_after_the_present_one(self):
        self.write("hold-main", "")
        process = self.start("-n", "5", "--", "bash", "step.sh", "main")
        self.expect(process, "main")
        process.send_signal(signal.SIGINT)
        status, lines = self.end(process)
        self.assertEqual((status, lines), (9, ["main got INT", *self.LAST]))
        self.assertIn(b"1 of 5 runs", process.stderr.read())
        names = sorted(os.listdir(os.path.join(self.folder, "o")))
        self.assertEqual(names, ["run-1", "summary.json"])

    def test_an_ignored_signal_does_not_end_it(self):
        self.write("hold-pre-in", "")
        process = self.start(
            *("--", "bash", "step.sh", "main"),
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        self.expect(process, "pre-in")
        process.send_signal(signal.SIGHUP)
        self.write("go", "")
        status, lines = self.end(process)
        self.assertEqual(status, 0)
        self.assertIn("main ended", lines)


class Kills(Case):
    """SIGKILL to each process of ours, and to each layer of a stack."""

    def start(self, *words):
        process = subprocess.Popen(
            [PROF, "run", *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    PROGRAM = (
        "echo $$ > pid; echo ready; while ! [ -e go ]; do sleep 0.01; done; echo more; "
        "echo over > over; exit 3"
    )

    def wait_for_file(self, name):
        while not os.path.exists(os.path.join(self.folder, name)):
            pass
        return self.read(name)

    def test_killed_prof_leaves_the_program_and_the_log_goes_on(self):
        process = self.start("-o", "o", "--", "sh", "-c", self.PROGRAM)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.kill()
        process.wait(HANG_SECONDS)
        self.write("go", "")
        self.assertEqual(process.stdout.read(), b"more\n")
        self.assertEqual(self.wait_for_file("over"), "over\n")
        self.assertEqual(self.read("o/run.live.log"), "ready\nmore\n")

    def test_the_keeper_is_there_before_the_program(self):
        """Else the program dies by SIGPIPE if prof run is killed at once."""
        script = "read first rest < /proc/$PPID/task/$PPID/children; test $first != $$"
        done = self.run_prof("-q", "-o", "o", "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_killed_prof_leaves_sigpipe_to_the_program(self):
        process = self.start("-o", "o", "--", "sh", "-c", self.PROGRAM + "; yes")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.kill()
        process.wait(HANG_SECONDS)
        pid = int(self.read("pid"))
        process.stdout.close()
        self.write("go", "")
        while pid in processes():
            pass

    def test_a_killed_keeper_costs_nothing(self):
        process = self.start("-q", "-o", "o", "--", "sh", "-c", self.PROGRAM)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        all_of_them = processes()
        for pid in children(process.pid):
            if all_of_them[pid][2] == "prof run keeper":
                os.kill(pid, signal.SIGKILL)
        self.write("go", "")
        self.assertEqual(process.stdout.read(), b"more\n")
        self.assertEqual(process.wait(HANG_SECONDS), 3)
        self.assertEqual(self.read("o/run.live.log"), "ready\nmore\n")

    def test_a_killed_outer_tool_leaves_the_program_which_is_named(self):
        tools = {
            "layer": {"cmd": "true outer; env"},
            "inner": {"cmd": "true inner; env"},
        }
        self.write("layers.json", json.dumps({"tools": tools}))
        for way in WAYS:
            process = self.start(
                *("--tools-config", "layers.json", *way, "-t", "inner", "-t", "layer"),
                *("-o", "o", "--", "sh", "-c", self.PROGRAM),
            )
            self.assertEqual(process.stdout.readline(), b"ready\n")
            pid = int(self.read("pid"))
            (outer,) = (x for x in children(process.pid) if processes()[x][2] != "prof run keeper")
            os.kill(outer, signal.SIGKILL)
            self.assertEqual(process.wait(HANG_SECONDS), 128 + 9)
            self.write("go", "")
            text = process.stderr.read().decode()
            self.assertIn(f"still runs, and is not waited for: sh ({pid})", text)
            self.assertEqual(process.stdout.read(), b"more\n")
            os.unlink(os.path.join(self.folder, "go"))

    def test_a_killed_program_ends_all_layers(self):
        tools = {"layer": {"cmd": "true outer; env"}}
        self.write("layers.json", json.dumps({"tools": tools}))
        for way in WAYS:
            process = self.start(
                *("--tools-config", "layers.json", *way, "-t", "layer"),
                *("--", "sh", "-c", self.PROGRAM),
            )
            self.assertEqual(process.stdout.readline(), b"ready\n")
            os.kill(int(self.read("pid")), signal.SIGKILL)
            self.assertEqual(process.wait(HANG_SECONDS), 128 + 9)

    def test_a_daemon_keeps_its_streams_and_is_named(self):
        program = (
            "setsid sh -c 'echo $$ > pid; while ! [ -e go ]; do sleep 0.01; done; echo late; "
            "echo done > over' & while ! [ -s pid ]; do sleep 0.01; done; echo early; exit 2"
        )
        process = self.start("-o", "o", "--", "sh", "-c", program)
        self.assertEqual(process.stdout.readline(), b"early\n")
        self.assertEqual(process.wait(HANG_SECONDS), 2)
        pid = int(self.read("pid"))
        seen = b""
        while b"not waited for" not in seen:
            line = process.stderr.readline()
            self.assertTrue(line, seen)
            seen += line
        self.assertIn(f"sh ({pid})".encode(), seen)
        self.write("go", "")
        self.assertEqual(process.stdout.read(), b"late\n")
        self.assertEqual(self.wait_for_file("over"), "done\n")

    def test_a_program_that_stops_itself_goes_on_when_continued(self):
        for way in WAYS:
            process = self.start(
                *("-q", *way, "--", "sh", "-c"),
                "echo $$; kill -STOP $$; echo more; exit 4",
            )
            pid = int(process.stdout.readline())
            while True:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    if file.read().rpartition(")")[2].split()[0] == "T":
                        break
            os.kill(pid, signal.SIGCONT)
            self.assertEqual(process.stdout.read(), b"more\n")
            self.assertEqual(process.wait(HANG_SECONDS), 4)


SYS_RT_SIGACTION = {"x86_64": 13, "aarch64": 134}.get(platform.machine())
LIBC_SIGNALS = (32, 33)


def ignore_libc_signals(ignored):
    """Between fork and exec. sigaction() of libc refuses these; the kernel does not."""
    call = ctypes.CDLL(None).syscall
    for number in LIBC_SIGNALS:
        action = ctypes.create_string_buffer(32)  # the default: all is 0
        action[0] = int(number in ignored)  # SIG_IGN is 1
        assert call(SYS_RT_SIGACTION, number, action, None, ctypes.c_size_t(8)) == 0


@unittest.skipUnless(SYS_RT_SIGACTION, "the number of rt_sigaction() is not known here")
class LibcSignals(Case):
    """libc keeps two signals for itself. make ignores them."""

    def ignored(self, ignored, *words):
        """Which of the two the program ignores."""
        done = subprocess.run(
            [*words, "sh", "-c", "grep SigIgn /proc/self/status > state"],
            cwd=self.folder,
            preexec_fn=lambda: ignore_libc_signals(ignored),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        bits = int(self.read("state").split()[1], 16)
        return tuple(number for number in LIBC_SIGNALS if bits >> (number - 1) & 1)

    def test_a_program_ignores_what_the_caller_ignored(self):
        for ignored in ((), (32,), (33,), LIBC_SIGNALS):
            self.assertEqual(self.ignored(ignored), ignored)
            for way in (*WAYS, ("-o", "out")):
                words = (PROF, "run", "-q", *way, "--")
                self.assertEqual(self.ignored(ignored, *words), ignored, way)


if __name__ == "__main__":
    unittest.main(verbosity=2)
