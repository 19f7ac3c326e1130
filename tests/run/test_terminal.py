"""``prof run`` on a terminal, under a shell with job control: pipes, scripts, background, ends."""

import contextlib
import fcntl
import os
import signal
import struct
import sys
import termios
import unittest

import preload
from case import PROF, TerminalCase

WAYS = ("-q", "-q -o out", "-q -t rocblas_trace")
"""Inherited streams; a log; lines that are read."""

PAGER = (
    "import sys\n"
    "text = sys.stdin.read()\n"
    "tty = open('/dev/tty')\n"
    "print('page', text.strip(), flush=True)\n"
    "print('read', tty.readline().strip(), flush=True)\n"
)


# Not a shell with sleep: a stop between vfork() and exec() leaves its parent running.
HOLD = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "print(os.getppid(), file=open('parent', 'w'))\n"
    "print(os.getpid(), file=open('own', 'w'))\n"
    "print('ready', file=sys.stderr, flush=True)\n"
    "while not os.path.exists('go'): time.sleep(0.01)\n"
    "if 'read' in sys.argv: print('=' + sys.stdin.readline().strip() + '=')\n"
    "print('end', flush=True)\n"
    "open('over', 'w').close()\n"
)
HOLDER = f"{sys.executable} -S hold.py"

# prof waits in its first sigpending(), behind the look and before it stops itself.
AT_STOP = """
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int sigpending(sigset_t *set) {
  int (*next)(sigset_t *) = dlsym(RTLD_NEXT, "sigpending");
  static int is_over;
  const int status = next(set);
  if (!is_over++) {
    char pid[16];
    const int file = open("at-stop", O_CREAT | O_WRONLY, 0600);
    write(file, pid, sprintf(pid, "%d", getpid()));
    close(file);
    while (access("go", F_OK) != 0) usleep(1000);
  }
  return status;
}
"""


class Jobs(TerminalCase):
    def setUp(self):
        super().setUp()
        self.write("hold.py", HOLD)

    def begin(self):
        for name in ("go", "over"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, name))
        pid, self.master = self.start_shell()
        self.addCleanup(self.end_shell, pid)
        self.resize(40, 300)
        self.expect(self.master, b"prompt> ")

    def end_shell(self, pid):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def type(self, text):
        os.write(self.master, text.encode())

    def see(self, text):
        return self.expect(self.master, text.encode())

    def command(self, text):
        """Types it; the echo is behind us."""
        self.type(text + "\n")
        self.see(text[-20:] + "\r\n")

    def check_that_the_shell_works(self, status):
        self.see("prompt> ")
        self.type("echo status=$?=\n")
        self.see(f"status={status}=\r\n")
        self.see("prompt> ")

    def test_a_pager_behind_it_has_the_terminal(self):
        self.write("pager.py", PAGER)
        self.begin()
        for way in WAYS:
            self.command(f"{PROF} run {way} -- echo text | {sys.executable} pager.py")
            self.see("page text\r\n")
            self.type("typed\n")
            self.see("read typed\r\n")
            self.check_that_the_shell_works(0)

    def test_a_program_with_a_pipe_behind_it_can_read_the_terminal(self):
        self.begin()
        for way in WAYS:
            self.command(f"{PROF} run {way} -- sh -c 'read x; echo =$x=' | cat")
            self.type("typed\n")
            self.see("=typed=\r\n")
            self.check_that_the_shell_works(0)

    def test_ctrl_z_and_fg_with_a_pipe_behind_it(self):
        for way in WAYS:
            self.begin()
            self.command(f"{PROF} run {way} -- {HOLDER} | cat")
            self.see("ready\r\n")
            self.type("\x1a")
            self.see("Stopped")
            self.see("prompt> ")
            self.write("go", "")
            self.command("fg")
            self.see("end\r\n")
            self.check_that_the_shell_works(0)

    def test_ctrl_c_ends_a_loop_and_a_script(self):
        for way in (*WAYS, "-q --tools-config tools.json -t test_tools_A"):
            loop = f"for i in 1 2 3; do {PROF} run {way} -- {HOLDER}; done; echo be''hind"
            self.write("loop.sh", loop)
            for command in (loop, "bash loop.sh"):
                self.begin()
                self.command(command)
                self.see("ready\r\n")
                self.type("\x03")
                self.assertNotIn(b"behind", self.see("prompt> "))
                self.type("echo status=$?=\n")
                self.see("status=130=\r\n")

    def test_ctrl_c_ends_repeated_runs(self):
        for way in (*WAYS, "-q --tools-config tools.json -t test_tools_A"):
            self.begin()
            self.command(f"{PROF} run -n 3 {way} -- {HOLDER}")
            self.see("ready\r\n")
            self.type("\x03")
            self.see("1 of 3 runs")
            self.check_that_the_shell_works(130)

    def test_ctrl_z_stops_a_script_around_it(self):
        for way in WAYS:
            self.write("s.sh", f"{PROF} run {way} -- {HOLDER}; echo script $?")
            self.begin()
            self.command("bash s.sh")
            self.see("ready\r\n")
            self.type("\x1a")
            self.see("Stopped")
            self.see("prompt> ")
            self.write("go", "")
            self.command("fg")
            self.see("end\r\n")
            self.see("script 0\r\n")
            self.check_that_the_shell_works(0)

    def test_fg_before_prof_has_seen_the_stop_continues_it(self):
        """The shell sees that the script has stopped, and continues it, while prof has not looked
        yet: then its program's stop and SIGCONT await it together."""
        self.write("s.sh", f"{PROF} run -q -- {HOLDER}; echo script $?")
        self.begin()
        self.command("bash s.sh")
        self.see("ready\r\n")
        prof, own = (int(self.read(name)) for name in ("parent", "own"))
        self.stop(prof, signal.SIGSTOP)
        self.type("\x1a")
        self.see("Stopped")
        self.see("prompt> ")
        self.stop(own, signal.SIGTSTP)
        self.write("go", "")
        self.command("fg")
        self.assertNotIn(b"Stopped", self.see("script 0\r\n"))
        self.check_that_the_shell_works(0)

    def stop(self, pid, number):
        os.kill(pid, number)
        state = None
        while state != "T":
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rpartition(")")[2].split()[0]

    def test_a_running_program_comes_to_the_foreground_and_reads(self):
        for way in WAYS:
            self.begin()
            self.command(f"{PROF} run {way} -- {HOLDER} read &")
            self.see("ready\r\n")
            self.command("fg")
            self.write("go", "")
            self.type("typed\n")
            self.see("=typed=\r\n")
            self.check_that_the_shell_works(0)

    def test_a_program_that_reads_in_the_background_waits_for_fg(self):
        """A job that stops while bash runs fg stays stopped, also without prof: bash takes it for
        a running one and sends no SIGCONT. So bash must know of the stop before."""
        self.write("p.sh", "read x; echo =$x=; exit 5")
        for way in WAYS:
            self.begin()
            self.command(f"{PROF} run {way} -- sh p.sh &")
            if way == WAYS[0]:  # the others read a terminal of their own, and do not stop
                self.see("prompt> ")
                self.command('until [ "$(jobs -s)" ]; do :; done')
                self.see("Stopped")
                self.see("prompt> ")
            self.command("fg")
            self.see("p.sh")
            self.type("typed\n")
            self.see("=typed=\r\n")
            self.check_that_the_shell_works(5)

    def test_fg_while_prof_stops_for_a_reader_in_the_background(self):
        """The shell brings the job to the foreground when prof has seen that its program reads
        in the background, and before it has stopped itself."""
        self.write("p.sh", "read x; echo =$x=; exit 5")
        library = preload.environment(self.folder, AT_STOP)["LD_PRELOAD"]
        self.begin()
        self.command(f"LD_PRELOAD={library} {PROF} run -q -- sh p.sh &")
        prof = int(self.await_text("at-stop"))
        self.command("fg")
        while os.tcgetpgrp(self.master) != prof:
            pass
        self.write("go", "")
        self.type("typed\n")
        self.assertNotIn(b"Stopped", self.see("=typed=\r\n"))
        self.check_that_the_shell_works(5)

    def await_text(self, name):
        path, text = os.path.join(self.folder, name), ""
        while not text:
            with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
                text = file.read()
        return text

    def test_a_program_that_stops_itself_comes_back_by_fg(self):
        self.write("p.sh", "kill -STOP $$; read x; echo =$x=; exit 7")
        for way in WAYS:
            self.begin()
            self.command(f"{PROF} run {way} -- sh p.sh")
            self.see("Stopped")
            self.see("prompt> ")
            self.command("fg")
            self.type("typed\n")
            self.see("=typed=\r\n")
            self.check_that_the_shell_works(7)

    def test_a_window_s_size_reaches_the_program(self):
        program = (
            "import os, signal, sys\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])\n"
            "while True:\n"
            "    size = os.get_terminal_size()\n"
            "    print('size', *size, flush=True)\n"
            "    if size.lines == 50: break\n"
            "    signal.sigwait([signal.SIGWINCH])\n"
            "sys.stdin.readline()\n"
        )
        self.write("size.py", program)
        for way in WAYS:
            self.begin()
            self.command(f"{PROF} run {way} -- env {sys.executable} size.py")
            self.see("size 300 40")
            self.resize(50, 310)
            self.see("size 310 50")
            self.type("\n")
            self.check_that_the_shell_works(0)

    def resize(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


class NoShell(TerminalCase):
    """Nobody on the terminal has job control."""

    def test_ctrl_z_does_not_stop_it_for_ever(self):
        program = "echo ready; read x; echo =$x=; exit 6"
        for way in WAYS:
            pid, master = self.start(*way.split(), "--", "sh", "-c", program)
            self.expect(master, b"ready\r\n")
            os.write(master, b"\x1a")
            os.write(master, b"typed\n")
            self.expect(master, b"=typed=\r\n")
            self.rest(master)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 6)

    def test_killed_prof_leaves_a_usable_terminal(self):
        self.write("hold.py", HOLD)
        for way in WAYS:
            command = f"read x; {PROF} run {way} -- {HOLDER}; read x; exit 4"
            pid, master = self.start_program("sh", "-c", command)
            before = termios.tcgetattr(master)
            os.write(master, b"\n")
            self.expect(master, b"ready")
            os.kill(self.outermost(int(self.read("parent"))), signal.SIGKILL)
            while termios.tcgetattr(master) != before:
                pass
            self.write("go", "")
            while not os.path.exists(os.path.join(self.folder, "over")):
                pass
            os.write(master, b"\n")
            self.rest(master)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 4)
            for name in ("go", "over"):
                os.unlink(os.path.join(self.folder, name))

    def test_a_killed_keeper_hangs_the_terminal_up(self):
        """The kernel does, for the keeper leads the session. Who ignores that is waited for."""
        ignore = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        self.write("hold.py", ignore + HOLD)
        for ignores in (True, False):
            name = "hold.py" if ignores else "plain.py"
            self.write("plain.py", HOLD)
            pid, master = self.start(*("-t", "rocblas_trace", "--", sys.executable, "-S", name))
            self.expect(master, b"ready\r\n")
            os.kill(int(self.read("parent")), signal.SIGKILL)
            self.expect(master, b"the process that waits for the workload was killed")
            self.write("go", "")
            if ignores:
                self.expect(master, b"end")
            self.rest(master)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 125)
            self.assertEqual(os.path.exists(os.path.join(self.folder, "over")), ignores)
            for name in ("go", "over"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.folder, name))

    def outermost(self, pid):
        """The outermost process of the command around that one."""
        while os.readlink(f"/proc/{pid}/exe") == PROF:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                last, pid = pid, int(file.read().rpartition(")")[2].split()[1])
        return last


if __name__ == "__main__":
    unittest.main(verbosity=2)
