"""Work that takes long: the line about it on a terminal, and what Ctrl-C leaves: nothing."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

from case import HANG_SECONDS, PROF, TerminalCase
from known_capture import Recorded, events

ERASE = b"\r\x1b[K"
LINE = rb"(?:^|prof dump: )\d+ %, about \d+ (?:s|min) left"
DIES = """
import ctypes, os, signal, sys
ctypes.CDLL(sys.argv[1]).prof_start(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def many_events():
    """An export of them is more than a pipe holds."""
    return [{**event, "tid": thread} for thread in range(20) for event in events()]


class Line(TerminalCase):
    """The output is a pipe that is not read before the line has come, however long that takes."""

    def setUp(self):
        super().setUp()
        # On one processor a dump has no thread that reads ahead. So a second thread is the line's,
        # and the program waits for nothing but the pipe.
        processors = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, processors)
        os.sched_setaffinity(0, {min(processors)})
        self.write("many.json", json.dumps({"traceEvents": many_events()}))
        subprocess.run(
            [PROF, "import", "many.json", "-o", "many.prof"],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            timeout=HANG_SECONDS,
            check=True,
        )
        self.pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(self.pipe)
        self.reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, self.reader)

    def expect_pattern(self, master, pattern):
        """Reads until it matches what has come since the last text that was expected."""
        end = time.monotonic() + HANG_SECONDS
        while not re.search(pattern, self.seen):
            ready, _, _ = select.select([master], [], [], max(end - time.monotonic(), 0))
            got = os.read(master, 65536) if ready else b""
            self.assertTrue(got, f"{pattern!r} did not come: {self.seen!r}")
            self.seen += got

    def discard(self, master):
        """What has come so far."""
        while select.select([master], [], [], 0)[0]:
            os.read(master, 65536)
        self.seen = b""

    def words(self, *variables, capture="many.prof"):
        return ("env", *variables, PROF, "dump", capture, "-f", "csv", "-o", "pipe")

    def drain(self):
        os.set_blocking(self.reader, True)
        count = 0
        while piece := os.read(self.reader, 1 << 20):
            count += len(piece)
        return count

    def test_a_terminal_has_a_line_with_an_estimate_which_goes(self):
        pid, master = self.start_program(*self.words("TERM=xterm", "CI="))
        self.expect(master, b"prof dump: ")
        # the line comes again and again: at 0 % without an estimate, which is in s or in min
        self.expect_pattern(master, LINE)
        self.assertGreater(self.drain(), 1 << 16)
        after = self.rest(master)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertIn(ERASE, after)
        self.assertNotIn(b"%", after.rpartition(ERASE)[2])

    def share(self, capture):
        """The percentage, when the dump waits for its output's reader."""
        pid, master = self.start_program(*self.words("TERM=xterm", "CI=", capture=capture))
        self.expect(master, b"prof dump: ")
        self.wait_until_blocked(pid)
        self.discard(master)  # the share of the next line changes no more
        self.expect(master, b"prof dump: ")
        percent = int(self.expect(master, b" %"))
        os.kill(pid, signal.SIGTERM)
        self.rest(master)
        os.waitpid(pid, 0)
        return percent

    def test_a_packed_capture_has_the_share_of_the_plain_one(self):
        done = subprocess.run(
            [PROF, "dump", "many.prof", "--pack", "-o", "packed.prof"],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        if b"zstd" in done.stderr:
            self.skipTest("there is no zstd")
        self.assertEqual(done.returncode, 0, done.stderr)
        shares = []
        for capture in ("many.prof", "packed.prof"):
            shares.append(self.share(capture))
        self.assertLess(shares[0], 90)
        self.assertLess(abs(shares[1] - shares[0]), 10, shares)

    def test_an_imported_trace_is_expected_as_its_capture(self):
        """A byte of the trace counts as five. Three passes over the capture follow."""
        sizes = []
        for name in ("many.json", "many.prof"):
            file = os.stat(os.path.join(self.folder, name))
            sizes.append(min(file.st_size, file.st_blocks * 512))
        imported, capture = 5 * sizes[0], 3 * sizes[1]
        expected = (imported + capture * self.share("many.prof") / 100) / (imported + capture)
        self.assertGreater(expected, 0.5)
        self.assertLess(abs(self.share("many.json") - 100 * expected), 8)

    def database(self, rows):
        """Of more than SQLite's cache of 2 MB."""
        words = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "dur": 1}
        events = [{**words, "ts": ts, "args": {"n": f"{ts:0200d}"}} for ts in range(rows)]
        self.write("rows.json", json.dumps(events))
        for command in (("import", "rows.json", "-o", "rows.prof"), ("dump", "rows.prof")):
            output = () if command[0] == "import" else ("-o", "rows.db")
            done = subprocess.run(
                [PROF, *command, *output],
                cwd=self.folder,
                capture_output=True,
                timeout=HANG_SECONDS,
                check=False,
            )
            if b"SQLite" in done.stderr:
                self.skipTest(done.stderr.decode().strip())
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_database_is_expected_as_its_capture(self):
        self.database(12000)
        sizes = []
        for name in ("rows.db", "rows.prof"):
            file = os.stat(os.path.join(self.folder, name))
            sizes.append(min(file.st_size, file.st_blocks * 512))
        imported, capture = 5 * sizes[0], 3 * sizes[1]
        expected = (imported + capture * self.share("rows.prof") / 100) / (imported + capture)
        self.assertGreater(expected, 0.5)
        self.assertLess(abs(self.share("rows.db") - 100 * expected), 8)

    @unittest.skipUnless(shutil.which("strace"), "there is no strace, which delays reads")
    def test_the_line_advances_while_a_database_is_imported(self):
        self.database(12000)
        pages = os.path.getsize(os.path.join(self.folder, "rows.db")) // 4096
        self.assertGreater(pages, 600)
        pid, master = self.start_program(
            *("env", "TERM=xterm", "CI=", "strace", "-qq", "-f", "-o", "log"),
            *("-e", "trace=pread64", "-e", f"inject=pread64:delay_enter={8_000_000 // pages}"),
            *(PROF, "import", "rows.db", "-o", "back.prof"),
        )
        text = self.rest(master)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, text)
        shares = [int(x) for x in re.findall(rb"prof import: (\d+) %", text)]
        self.assertEqual(shares, sorted(shares))
        self.assertGreater(len({x for x in shares if 0 < x < 99}), 2, shares)

    def test_a_folder_and_a_glob_have_the_share_of_their_capture(self):
        os.mkdir(os.path.join(self.folder, "found"))
        os.link(*(os.path.join(self.folder, x) for x in ("many.prof", "found/many.prof")))
        shares = [self.share(x) for x in ("many.prof", "found", "found/*.prof")]
        self.assertEqual(shares[1:], shares[:1] * 2)

    def test_the_estimate_is_the_time_so_far_by_the_share(self):
        """The line's N % is a share of N to N + 1, and it is of two seconds or later."""
        start = time.monotonic()
        pid, master = self.start_program(*self.words("TERM=xterm", "CI="))
        for _ in range(3):
            self.expect_pattern(master, LINE)
            passed = time.monotonic() - start
            text = re.search(LINE, self.seen)[0].decode()
            self.seen = b""
            percent, left, unit = re.search(r"(\d+) %, about (\d+) (s|min)", text).groups()
            seconds, half = (60 * int(left), 30) if unit == "min" else (int(left), 0.5)
            least, most = int(percent) / 100, (int(percent) + 1) / 100
            self.assertLessEqual(seconds - half, passed * (1 - least) / least)
            self.assertGreaterEqual(seconds + half, 2 * (1 - most) / most)
        os.kill(pid, signal.SIGTERM)
        self.rest(master)
        os.waitpid(pid, 0)

    def test_a_signal_removes_the_line(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            pid, master = self.start_program(*self.words("TERM=xterm", "CI="))
            self.expect(master, b"prof dump: ")
            os.kill(pid, number)
            after = self.rest(master)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -number)
            self.assertIn(ERASE, after)
            self.assertEqual(after.rpartition(ERASE)[2], b"")

    def wait_until_blocked(self, pid):
        """It writes into the pipe, which is full: the line's thread would be there."""
        end = time.monotonic() + HANG_SECONDS
        while time.monotonic() < end:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rpartition(")")[2].split()[0]
            links = [os.path.join(f"/proc/{pid}/fd", x) for x in os.listdir(f"/proc/{pid}/fd")]
            if state == "S" and any(os.path.realpath(x) == self.pipe for x in links):
                return
            time.sleep(0.01)
        self.fail(f"process {pid} does not wait for the pipe")

    def test_a_pipe_and_ci_have_no_line(self):
        for words in (("TERM=dumb", "CI="), ("TERM=xterm", "CI=true")):
            pid, master = self.start_program(*self.words(*words))
            self.wait_until_blocked(pid)
            self.assertEqual(len(os.listdir(f"/proc/{pid}/task")), 1)
            self.drain()
            self.assertNotIn(b"%", self.rest(master))
            os.waitpid(pid, 0)
            self.reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        with subprocess.Popen(
            self.words("TERM=xterm", "CI="), cwd=self.folder, stderr=subprocess.PIPE
        ) as process:
            self.wait_until_blocked(process.pid)
            self.assertEqual(len(os.listdir(f"/proc/{process.pid}/task")), 1)
            self.drain()
            self.assertNotIn(b"%", process.stderr.read())


@unittest.skipUnless(shutil.which("strace"), "there is no strace, which stops a program in a call")
class Killed(Recorded):
    """The signal comes in the last write of the output, before the file has its name."""

    COMMANDS = (
        ("dump", "trace.prof", "-o", "out/x.json"),
        ("dump", "trace.prof", "-o", "out/x.pftrace.gz"),
        ("merge", "trace.prof", "-o", "out/x.pftrace"),
        ("report", "trace.prof", "-o", "out/x.html"),
        ("flame", "trace.prof", "-o", "out/x.svg"),
        ("import", "trace.json", "-o", "out/x.prof"),
        ("recover", ".", "-o", "out"),
        ("table", "trace.json"),
    )
    CALL = re.compile(r"^(\w+)\((\d+|AT_FDCWD),? ?(.*)\) += (-?\d+)")

    def strace(self, words, *injections):
        out = os.path.join(self.folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        options = [x for injection in injections for x in ("-e", f"inject={injection}")]
        done = subprocess.run(
            ["strace", "-qq", "-o", "log", "-e", "trace=openat,write,pwrite64", *options]
            + [PROF, *words],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": out},
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        calls = [self.CALL.match(line) for line in self.read("log").splitlines()]
        return done.returncode, [call.groups() for call in calls if call]

    @staticmethod
    def numbers(calls, name, takes):
        """Which of the calls of that name they are."""
        of_name = [call for call in calls if call[0] == name]
        return [number for number, call in enumerate(of_name, 1) if takes(call)]

    def leave_capture(self):
        """Of a process that is killed while it records."""
        done = subprocess.run(
            [sys.executable, "-c", DIES, os.path.join(os.path.dirname(PROF), "libprof.so")],
            cwd=self.folder,
            env={**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": "died.json"},
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, -signal.SIGKILL)

    def test_nothing_is_left(self):
        self.record()
        self.write_trace()
        self.leave_capture()
        for words in self.COMMANDS:
            status, calls = self.strace(words)
            self.assertEqual(status, 0, words)
            is_import = words[0] in ("import", "table")
            kind = "O_WRONLY|O_CLOEXEC|O_TMPFILE" if is_import else "O_TMPFILE"
            opened = self.numbers(calls, "openat", lambda call, kind=kind: kind in call[2])
            self.assertEqual(len(opened), 1, words)
            file = [call for call in calls if call[0] == "openat"][opened[0] - 1][3]
            name = "pwrite64"
            last = self.numbers(calls, name, lambda call, file=file: call[1] == file)[-1]
            signal_at = f"{name}:signal=SIGINT:when={last}"
            for more in ((), (f"openat:error=EOPNOTSUPP:when={opened[0]}",)):
                status, calls = self.strace(words, signal_at, *more)
                self.assertEqual(status, -signal.SIGINT, (words, more))
                has_name = any(".tmp" in call[2] and "O_EXCL" in call[2] for call in calls)
                self.assertEqual(has_name, bool(more), words)
                self.assertEqual(os.listdir(os.path.join(self.folder, "out")), [], (words, more))


if __name__ == "__main__":
    unittest.main(verbosity=2)
