"""``prof run`` is killed, or one of its system calls fails: what it leaves, and its status."""

import json
import os
import shutil
import signal
import subprocess
import unittest

import preload
from case import HAS_SANITIZER, PROF, Case, TerminalCase

KILLED_AT = """
#include <stdio.h>

static void count(void) {
  static int calls;
  const char *const at = getenv("KILLED_AT");
  if (is_prof() && at && ++calls == atoi(at)) raise(SIGKILL);
}

#define COUNTED(type, name, parameters, ...)              \\
  type name parameters {                                  \\
    type (*next) parameters = dlsym(RTLD_NEXT, #name);    \\
    count();                                              \\
    return next(__VA_ARGS__);                             \\
  }
COUNTED(int, close, (int fd), fd)
COUNTED(FILE *, fopen, (const char *path, const char *mode), path, mode)
COUNTED(int, fclose, (FILE *file), file)
COUNTED(int, fflush, (FILE *file), file)
COUNTED(int, rename, (const char *from, const char *to), from, to)
COUNTED(int, mkdir, (const char *path, unsigned mode), path, mode)
"""


NO_POLL = """
int poll(void *polls, unsigned long count, int timeout) {
  int (*next)(void *, unsigned long, int) = dlsym(RTLD_NEXT, "poll");
  if (!is_prof()) return next(polls, count, timeout);
  errno = ENOMEM;
  return -1;
}
"""

NO_LONG_CONFIG = """
void *__libc_calloc(size_t count, size_t size);
void *calloc(size_t count, size_t size) {
  if (count * size < 15500 || count * size > 15999 || !is_prof()) return __libc_calloc(count, size);
  errno = ENOMEM;
  return NULL;
}
"""

NO_MEMORY_IN_THREADS = """
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
static int is_refused(void) { return is_prof() && gettid() != getpid() && (errno = ENOMEM); }
void *calloc(size_t count, size_t size) {
  return is_refused() ? NULL : __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
  return is_refused() ? NULL : __libc_realloc(old, size);
}
"""

NO_PROCESS = """
pid_t fork(void) {
  static int calls;
  pid_t (*next)(void) = dlsym(RTLD_NEXT, "fork");
  if (!is_prof() || ++calls != NUMBER) return next();
  errno = EAGAIN;
  return -1;
}
"""

NO_SIGNALS = """
int NAME(int number, const TYPE *now, TYPE *before) {
  int (*next)(int, const TYPE *, TYPE *) = dlsym(RTLD_NEXT, "NAME");
  if (!is_prof() || !now) return next(number, now, before);
  errno = EPERM;
  return -1;
}
"""

NO_TERMINAL = """
pid_t NAME PARAMETERS {
  pid_t (*next) PARAMETERS = dlsym(RTLD_NEXT, "NAME");
  if (!is_prof()) return next ARGUMENTS;
  errno = EPERM;
  return -1;
}
"""

NO_HANDLER = """
int sigaction(int number, const struct sigaction *now, struct sigaction *before) {
  int (*next)(int, const struct sigaction *, struct sigaction *) = dlsym(RTLD_NEXT, "sigaction");
  const int has_handler = now && now->sa_handler != SIG_DFL && now->sa_handler != SIG_IGN;
  if (number != SIGCHLD || !is_prof() || !has_handler) return next(number, now, before);
  errno = EPERM;
  return -1;
}
"""

TRUNCATED = """
#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>
void *mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset) {
  void *(*next)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  void *const map = next(at, bytes, access, flags, fd, offset);
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (fd >= 0 && is_prof() && readlink(link, path, sizeof path - 1) > 0)
    if (strstr(path, "/first.") || strstr(path, "/last.")) truncate(path, 0);
  return map;
}
void *mmap64(void *at, size_t bytes, int access, int flags, int fd, off_t offset) {
  return mmap(at, bytes, access, flags, fd, offset);
}
"""


class Killed(Case):
    def check_files(self, at):
        for root, _, names in os.walk(os.path.join(self.folder, "out")):
            for name in names:
                path = os.path.join(root, name)
                if name.endswith((".csv", ".json", ".prof")):
                    self.assertGreater(os.path.getsize(path), 0, (at, path))
                if name.endswith(".json"):
                    json.loads(self.read(path))

    def test_at_any_time_it_leaves_no_partial_file_under_a_final_name(self):
        env = preload.environment(self.folder, KILLED_AT)
        words = ("-q", "-o", "out", "-t", "rocblas_trace", "-t", "prof", "--", "true")
        for more in ((), ("-n", "2")):
            status, at = -9, 0
            while status == -9:
                at += 1
                done = self.run_prof(*more, *words, env={**env, "KILLED_AT": f"{at}"})
                status = done.returncode
                self.check_files(at)
                if more and os.path.exists(os.path.join(self.folder, "out/run-1")):
                    status = 0  # from now on it is as one run
                shutil.rmtree(os.path.join(self.folder, "out"), ignore_errors=True)
            self.assertEqual((status, done.stderr), (0, b""))
            self.assertGreater(at, 3)


class Refused(Case):
    """Its own calls fail while the program runs."""

    PROGRAM = "echo a; cat line >&2; read x; echo got $x; exit 9"

    def check(self, source, line="./rocblas-bench -f gemm", output=b"a\ngot b\n"):
        env = preload.environment(self.folder, source)
        self.write("line", line + "\n")
        words = ("-q", "-o", "out", "-t", "rocblas_trace", "--", "sh", "-c")
        done = self.run_prof(*words, self.PROGRAM, input=b"b\n", env=env)
        self.assertEqual((done.returncode, done.stdout), (9, output), done.stderr)
        summary = json.loads(self.read("out/summary.json"))
        self.assertEqual((summary["state"], summary["status"]), ("ended", 9))
        self.assertEqual(self.read("out/run.live.log").count("got b"), 1)
        return done.stderr.decode().splitlines(), summary

    def test_poll(self):
        lines, summary = self.check(NO_POLL)
        self.assertEqual((lines, summary["problems"]), (["./rocblas-bench -f gemm"], []))
        self.assertIn(",rocblas,", self.read("out/library_trace.csv"))

    @unittest.skipIf(HAS_SANITIZER, "a sanitizer has its own calloc()")
    def test_memory_while_the_output_is_read(self):
        line = "./rocblas-bench -f " + "gemm" * 3880
        lines, summary = self.check(NO_LONG_CONFIG, line)
        problem = "prof run had a fault while the program ran"
        self.assertEqual([x[:42] for x in summary["problems"]], [problem])
        self.assertEqual(lines[:2], [line, "prof run: out of memory"])

    @unittest.skipIf(HAS_SANITIZER, "a sanitizer has its own calloc()")
    def test_memory_in_the_thread_that_watches(self):
        lines, summary = self.check(NO_MEMORY_IN_THREADS)
        self.assertEqual((lines, summary["processes"]), (["./rocblas-bench -f gemm"], []))

    def test_a_process(self):
        """The first one is the keeper. Without it there may be room for the program."""
        for number in (1, 2):
            lines, _ = self.check(NO_PROCESS.replace("NUMBER", f"{number}"))
            self.assertEqual(len(lines), 2, lines)
            self.assertIn("prof run: there is no second process", lines[0])
            shutil.rmtree(os.path.join(self.folder, "out"))


class RefusedSignals(Case):
    """Without them the end of the program would not be seen."""

    def check(self, name, kind):
        source = NO_SIGNALS.replace("NAME", name).replace("TYPE", kind)
        env = preload.environment(self.folder, source)
        done = self.run_prof("-q", "--", "sh", "-c", "echo ran", env=env, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (125, b""), done.stderr)
        self.assertIn(b"prof run: signals cannot be set up: Operation not", done.stderr)

    def test_actions_and_masks(self):
        self.check("sigaction", "struct sigaction")
        self.check("sigprocmask", "sigset_t")


class RefusedTerminal(TerminalCase):
    """The program may not get the terminal, or the keeper no signals."""

    def start_with(self, source, *words):
        variables = preload.environment(self.folder, source)
        names = [f"{name}={variables[name]}" for name in ("LD_PRELOAD", "ASAN_OPTIONS")]
        return self.start_program("env", *names, PROF, "run", *words)

    def test_a_program_that_cannot_get_the_terminal_is_stopped_once(self):
        calls = (
            ("tcsetpgrp", "(int fd, pid_t group)", "(fd, group)"),
            ("tcgetpgrp", "(int fd)", "(fd)"),
        )
        for name, parameters, arguments in calls:
            source = NO_TERMINAL.replace("PARAMETERS", parameters).replace("ARGUMENTS", arguments)
            source = source.replace("NAME", name)
            pid, master = self.start_with(source, "-q", "--", "sh", "-c", "read x; echo =$x=")
            self.expect(master, b"the program uses the terminal, and cannot get it")
            os.write(master, b"\x03")
            self.assertNotIn(b"cannot get it", self.rest(master))
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            self.assertIn(status, (-signal.SIGINT, 130), name)

    def test_an_end_is_seen_without_its_signal(self):
        words = ("-q", "-t", "rocblas_trace", "--", "sh", "-c", "read x; exit 7")
        pid, master = self.start_with(NO_HANDLER, *words)
        os.write(master, b"x\n")
        self.rest(master)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)


class Truncated(Case):
    def test_captures_that_are_truncated_while_they_are_read_cost_no_status(self):
        line = "./rocblas-bench -f gemm"
        words = (
            "-q",
            "-o",
            "one",
            "-t",
            "rocblas_trace",
            "-t",
            "prof",
            "--",
            "echo",
            line,
        )
        self.assertEqual(self.run_prof(*words).returncode, 0)
        script = (
            "for name in first good last; do\n"
            "cp one/library_trace.prof ${PROF_OUTPUT%/*}/$name.prof\n"
            "truncate -s 100M ${PROF_OUTPUT%/*}/$name.prof; done; exit 9"  # large: mapped
        )
        env = preload.environment(self.folder, TRUNCATED)
        done = self.run_prof("-o", "out", "--", "sh", "-c", script, env=env)
        self.assertEqual(done.returncode, 9, done.stderr)
        for name in ("first", "last"):
            text = f"a capture is left out: 'out/prof_output/{name}.prof' cannot be read"
            self.assertIn(text.encode(), done.stderr)
        self.assertIn(b"gemm", done.stderr)
        summary = json.loads(self.read("out/summary.json"))
        self.assertEqual((summary["state"], summary["status"]), ("ended", 9))
        self.assertEqual(len(summary["captures"]), 3)


if __name__ == "__main__":
    unittest.main()
