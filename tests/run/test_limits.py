"""``prof run`` as a container's first process, with few descriptors, and without a system call."""

import os
import resource
import subprocess
import unittest

from case import HANG_SECONDS, PROF, Case

NO_PPOLL = """
#include <errno.h>
int ppoll(void *polls, unsigned long count, const void *timeout, const void *mask) {
  (void)polls, (void)count, (void)timeout, (void)mask;
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

    def test_a_refused_ppoll_does_not_keep_the_keeper(self):
        preload = os.path.join(self.folder, "no_ppoll.so")
        source = self.write("no_ppoll.c", NO_PPOLL)
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-shared", "-fPIC", source, "-o", preload], check=True)
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        env = {**os.environ, "LD_PRELOAD": preload, "ASAN_OPTIONS": sanitizer.lstrip(":")}
        done = self.run_prof("-q", "-o", "out", "--", "sh", "-c", "echo a; exit 9", env=env)
        self.assertEqual((done.returncode, done.stdout), (9, b"a\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
