"""``prof run`` as a container's first process, with few descriptors, and without a system call."""

import json
import os
import resource
import shutil
import subprocess
import unittest

import preload
from case import HANG_SECONDS, HAS_SANITIZER, PROF, Case

NO_PPOLL = """
int ppoll(void *polls, unsigned long count, const void *timeout, const void *mask) {
  errno = ENOSYS;
  return -1;
}
"""


class Limits(Case):
    def test_as_pid_1_it_reaps_orphans(self):
        unshare = ("unshare", "-rpfm", "--mount-proc")
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no PID namespaces")
        script = (
            "for i in 1 2 3 4 5; do (true &); done; "
            "while grep -q '^State:.Z' /proc/[0-9]*/status; do :; done; exit 7"
        )
        done = subprocess.run(
            [*unshare, PROF, "run", "-q", "--", "sh", "-c", script],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, 7, done.stderr)

    def test_four_descriptors_are_enough(self):
        """One more than those that the program gets."""
        done = self.run_prof(
            *("-q", "--", "sh", "-c", "exit 9"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)),
        )
        self.assertEqual((done.returncode, done.stderr), (9, b""))

    def test_without_proc_tools_with_variables_work(self):
        tools = {"in": {"cmd": "env", "env_vars": {"A": "a b"}}, "out": {"cmd": "env"}}
        self.write("env.json", json.dumps({"tools": tools}))
        mount = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
        if subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no mount namespaces")
        words = ("-q", "--tools-config", "env.json", "-t", "in", "-t", "out")
        for prof in (PROF, os.path.relpath(PROF, self.folder)):
            done = subprocess.run(
                [*mount, prof, "run", *words, "--", "sh", "-c", 'echo "$A"; exit 9'],
                cwd=self.folder,
                capture_output=True,
                timeout=HANG_SECONDS,
                check=False,
            )
            self.assertEqual((done.returncode, done.stdout), (9, b"a b\n"), done)

    def test_a_stack_has_256_tools(self):
        for count in (256, 257):
            tools = {f"t{i}": {"cmd": "", "env_vars": {f"A{i}": "1"}} for i in range(count)}
            self.write("many.json", json.dumps({"tools": tools}))
            stack = {"tools": [{"name": name} for name in tools]}
            words = ("--tools-config", "many.json", "--additional-context", json.dumps(stack))
            done = self.run_prof("-q", *words, "--", "printenv", "A0", f"A{count - 1}")
            if count == 256:
                self.assertEqual((done.returncode, done.stdout), (0, b"1\n1\n"), done.stderr)
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertIn(b"tool 't256' is number 257 of the stack, which holds 256", done.stderr)

    @unittest.skipIf(HAS_SANITIZER, "a sanitizer needs more memory")
    def test_a_table_does_not_hold_all_captures_in_memory(self):
        words = ("-q", "-o", "one", "-t", "rocblas_trace", "-t", "prof", "--")
        self.assertEqual(self.run_prof(*words, "echo", "./rocblas-bench -f gemm").returncode, 0)
        names = [f"{i}.prof" for i in range(5)]
        for name in names:
            path = shutil.copy(os.path.join(self.folder, "one/library_trace.prof"), self.folder)
            os.truncate(path, 60 << 20)
            os.rename(path, os.path.join(self.folder, name))
        done = subprocess.run(
            [PROF, "table", *names],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20)),
        )
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"1 process: 5 recorded", done.stdout)  # the same, five times

    def test_a_refused_ppoll_does_not_keep_the_keeper(self):
        env = preload.environment(self.folder, NO_PPOLL)
        done = self.run_prof("-q", "-o", "out", "--", "sh", "-c", "echo a; exit 9", env=env)
        self.assertEqual((done.returncode, done.stdout), (9, b"a\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
