"""``prof run`` is killed, or one of its system calls fails: what it leaves, and its status."""

import json
import os
import shutil
import unittest

import preload
from case import Case

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
                shutil.rmtree(os.path.join(self.folder, "out"), ignore_errors=True)
            self.assertEqual((status, done.stderr), (0, b""))
            self.assertGreater(at, 10)


if __name__ == "__main__":
    unittest.main()
