"""Packing of captures that are kept: in place, by prof run --pack, and at exit by PROF_PACK.

A library ends the processes by SIGKILL before their Nth call that changes a file, for each N. A
whole capture must be there each time.
"""

import ctypes.util
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from case import HANG_SECONDS, HAS_SANITIZER, PROF
from known_capture import Recorded

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(PROF)
KILLS_MAX = 300

PROGRAM = """
#include <prof/scope.h>
#include <stdlib.h>
int main(void) {
  for (int i = 0; i < 2000; i++) {
    PROF_SCOPE("outer");
    { PROF_SCOPE("inner"); }
  }
  if (!getenv("KILL_AFTER")) setenv("KILL_AFTER", "/", 1);
}
"""

# KILL_AT: the number of the call before which the program is killed. KILL_PROGRAM: the name of the
# program that counts its calls. KILL_AFTER: calls are counted only while this file exists.
KILLER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
static int calls;
static void count(void) {
  const char *const at = getenv("KILL_AT"), *const program = getenv("KILL_PROGRAM");
  const char *const after = getenv("KILL_AFTER");
  if (!at || !program || strcmp(program, program_invocation_short_name) != 0) return;
  if (!after || access(after, F_OK) != 0) return;
  if (++calls != atoi(at)) return;
  creat("killed", 0600);
  kill(0, SIGKILL);
}
#define WRAP(type, name, parameters, ...)                                   \
  type name parameters {                                                    \
    static type(*next) parameters;                                          \
    if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name);          \
    count();                                                                \
    return next(__VA_ARGS__);                                               \
  }
WRAP(ssize_t, write, (int fd, const void *from, size_t bytes), fd, from, bytes)
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t bytes, off_t at), fd, from, bytes, at)
WRAP(int, rename, (const char *from, const char *to), from, to)
WRAP(int, renameat, (int f, const char *from, int t, const char *to), f, from, t, to)
WRAP(int, link, (const char *from, const char *to), from, to)
WRAP(int, linkat, (int f, const char *from, int t, const char *to, int how), f, from, t, to, how)
WRAP(int, unlink, (const char *path), path)
WRAP(int, unlinkat, (int f, const char *path, int how), f, path, how)
WRAP(int, rmdir, (const char *path), path)
WRAP(int, ftruncate, (int fd, off_t bytes), fd, bytes)
WRAP(int, fchmod, (int fd, mode_t mode), fd, mode)
"""


@unittest.skipUnless(ctypes.util.find_library("zstd"), "zstd is not installed")
@unittest.skipIf(HAS_SANITIZER, "a sanitizer must be the first library")
class Kept(Recorded):
    def setUp(self):
        super().setUp()
        self.write("killer.c", KILLER)
        words = ["cc", "-shared", "-fPIC", "-O1", "killer.c", "-o", "killer.so", "-ldl"]
        subprocess.run(words, cwd=self.folder, check=True, timeout=HANG_SECONDS)
        self.write("program.c", PROGRAM)
        words = ["cc", "-O2", "-I" + os.path.join(SOURCE, "include"), "program.c", "-o", "program"]
        words += ["-L" + BUILD, "-lprof", "-Wl,-rpath," + BUILD]
        subprocess.run(words, cwd=self.folder, check=True, timeout=HANG_SECONDS)
        self.place = os.path.join(self.folder, "place")
        os.mkdir(self.place)

    def facts(self, path):
        return json.loads(self.prof("info", path, "--json").stdout)

    def is_packed(self, path):
        """And whether it is whole."""
        facts = self.facts(path)
        self.assertEqual((facts["damaged"], facts["lost"], facts["scopes"]), (0, {}, 4000), path)
        return facts["packed"] is not None

    def run_killed(self, number, program, words, env):
        """Whether it was killed, or a child in a group of its own."""
        done = subprocess.run(
            words,
            cwd=self.place,
            env={
                **os.environ,
                **env,
                "LD_PRELOAD": os.path.join(self.folder, "killer.so"),
                "KILL_AT": str(number),
                "KILL_PROGRAM": program,
            },
            start_new_session=True,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertIn(done.returncode, (0, -signal.SIGKILL), done.stderr)
        return os.path.exists(os.path.join(self.place, "killed"))

    def kill_everywhere(self, program, words, env, prepare):
        """Kills it before each call. Whether there was a packed capture, for each."""
        seen = []
        for number in range(1, KILLS_MAX):
            shutil.rmtree(self.place)
            os.mkdir(self.place)
            prepare()
            was_killed = self.run_killed(number, program, words, env)
            seen.append(self.whole_captures())
            if not was_killed:
                break
        self.assertFalse(was_killed, "there are more calls")
        self.assertTrue(seen[-1], "it is not packed in the end")
        self.assertGreater(seen.count(False), 2, "it was killed too rarely before it was packed")
        return seen

    def whole_captures(self):
        """Whether one of the captures is packed. All are whole. At least one is there."""
        patterns = ("*.prof", ".prof-run-*/*.prof", "*/*.prof", "*/*/*.prof")
        paths = {path for x in patterns for path in glob.glob(os.path.join(self.place, x))}
        self.assertTrue(paths, os.listdir(self.place))
        return any([self.is_packed(path) for path in paths])

    def record_plain(self):
        env = {**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": "kept.prof"}
        program = os.path.join(self.folder, "program")
        subprocess.run([program], cwd=self.place, env=env, check=True, timeout=HANG_SECONDS)

    def test_a_kill_in_place_leaves_the_plain_capture_or_the_packed_one(self):
        words = [PROF, "dump", "kept.prof", "-o", "kept.prof", "--pack"]
        self.kill_everywhere("prof", words, {"KILL_AFTER": "/"}, self.record_plain)
        self.assertEqual(os.listdir(self.place), ["kept.prof"])

    def test_a_kill_at_exit_leaves_a_whole_capture(self):
        """The program's own end begins the count."""
        env = {"PROF_LEVEL": "1", "PROF_OUTPUT": "kept.prof", "PROF_PACK": "1"}
        program = os.path.join(self.folder, "program")
        self.kill_everywhere("program", [program], env, lambda: None)
        self.assertEqual(os.listdir(self.place), ["kept.prof"])

    def test_a_kill_of_prof_run_leaves_a_whole_capture(self):
        """The shell says when the program has ended."""
        shell = f"{os.path.join(self.folder, 'program')}; touch ended"
        for output in "kept.prof", "folder":
            words = [PROF, "run", "--pack", "-q", "-o", output, "--", "sh", "-c", shell]
            self.kill_everywhere("prof", words, {"KILL_AFTER": "ended"}, lambda: None)


@unittest.skipUnless(ctypes.util.find_library("zstd"), "zstd is not installed")
class Commands(Recorded):
    def test_prof_run_packs_what_it_keeps(self):
        program = self.write("program.py", "import time\ntime.sleep(0)\n")
        package = os.path.join(SOURCE, "bindings", "python")
        env = {
            "PYTHONPATH": package,
            "PROF_LIBRARY": os.path.join(BUILD, "libprof.so"),
            "PROF_PYTHON_PROGRAM": sys.executable,
        }
        for output, found in (("one.prof", "one.prof"), ("all", "all/prof_output/*.prof")):
            self.prof("run", "--pack", "--python", "-q", "-o", output, program, env=env)
            paths = glob.glob(os.path.join(self.folder, found))
            self.assertEqual(len(paths), 1)
            self.assertIsNotNone(json.loads(self.prof("info", paths[0], "--json").stdout)["packed"])
            self.assertIn("program.py", self.prof("table", paths[0]).stdout)

    def test_what_cannot_be_packed_is_refused_before_the_program_runs(self):
        for words, said in (
            (("--pack",), "give -o DIR or -o FILE.prof"),
            (("--pack", "-o", "x.json"), "give -o FILE.prof, not"),
        ):
            done = self.prof("run", *words, "touch", "ran", status=125)
            self.assertIn(said, done.stderr)
        os.mkdir(os.path.join(self.folder, "lib"))
        self.write("lib/libzstd.so.1", "no library")
        env = {"LD_LIBRARY_PATH": os.path.join(self.folder, "lib")}
        done = self.prof("run", "--pack", "-o", "d", "touch", "ran", status=125, env=env)
        self.assertIn("zstd", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))

    def test_a_capture_that_is_being_recorded_is_not_packed_in_place(self):
        program = self.write("live.c", LIVE)
        words = ["cc", "-I" + os.path.join(SOURCE, "include"), program, "-o", "live"]
        words += ["-L" + BUILD, "-lprof", "-Wl,-rpath," + BUILD]
        subprocess.run(words, cwd=self.folder, check=True, timeout=HANG_SECONDS)
        env = {**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": "live.prof"}
        with subprocess.Popen(
            [os.path.join(self.folder, "live")],
            cwd=self.folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            self.assertEqual(process.stdout.readline(), b"open\n")
            path = glob.glob(os.path.join(self.folder, "live*.prof"))[0]
            inode = os.stat(path).st_ino
            done = self.prof("dump", path, "-o", path, "--pack", status=1)
            self.assertIn("cannot be packed in place: its process runs", done.stderr)
            self.assertEqual(os.stat(path).st_ino, inode)
            process.stdin.close()
            process.wait(HANG_SECONDS)

    def test_without_zstd_the_capture_at_exit_is_plain(self):
        os.mkdir(os.path.join(self.folder, "lib"))
        self.write("lib/libzstd.so.1", "no library")
        program = self.write("program.c", PROGRAM)
        words = ["cc", "-I" + os.path.join(SOURCE, "include"), program, "-o", "program"]
        words += ["-L" + BUILD, "-lprof", "-Wl,-rpath," + BUILD]
        subprocess.run(words, cwd=self.folder, check=True, timeout=HANG_SECONDS)
        for library, pack, output, said in (
            ("lib", "1", "kept.prof", "the capture is not packed"),
            ("none", "1", "kept.json", "PROF_PACK=1 has no effect"),
            ("none", "yes", "no.prof", "PROF_PACK='yes' is not a number"),
        ):
            env = {
                **os.environ,
                "LD_LIBRARY_PATH": os.path.join(self.folder, library),
                "PROF_LEVEL": "1",
                "PROF_OUTPUT": output,
                "PROF_PACK": pack,
            }
            done = subprocess.run(
                [os.path.join(self.folder, "program")],
                cwd=self.folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                check=True,
            )
            self.assertIn(said, done.stderr)
        facts = json.loads(self.prof("info", "kept.prof", "--json").stdout)
        self.assertEqual((facts["packed"], facts["scopes"]), (None, 4000))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "no.prof")))


MANY = """
#include <prof/scope.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
    PROF_SCOPE("many");
  }
}
"""


@unittest.skipUnless(ctypes.util.find_library("zstd"), "zstd is not installed")
class Large(Recorded):
    """PROF_PACK packs captures of up to 128 MiB, and of up to 64 MiB with PROF_MEMORY. A scope has
    16 bytes."""

    def setUp(self):
        super().setUp()
        self.write("many.c", MANY)
        words = ["cc", "-O2", "-I" + os.path.join(SOURCE, "include"), "many.c", "-o", "many"]
        words += ["-L" + BUILD, "-lprof", "-Wl,-rpath," + BUILD]
        subprocess.run(words, cwd=self.folder, check=True, timeout=HANG_SECONDS)

    def facts_after(self, scopes, **variables):
        """What the program said, and what its capture is."""
        env = {**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": "many.prof", "PROF_PACK": "1"}
        done = subprocess.run(
            [os.path.join(self.folder, "many"), str(scopes)],
            cwd=self.folder,
            env={**env, **variables},
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        facts = json.loads(self.prof("info", "many.prof", "--json").stdout)
        self.assertEqual((facts["scopes"], facts["lost"], facts["damaged"]), (scopes, {}, 0))
        os.remove(os.path.join(self.folder, "many.prof"))
        self.assertEqual([x for x in os.listdir(self.folder) if ".prof" in x], [])
        return done.stderr, facts["packed"]

    def test_the_limit_is_128_mib_and_half_with_memory(self):
        for limit, variables in ((128, {}), (64, {"PROF_MEMORY": "1"})):
            said, packed = self.facts_after((limit - 4) << 16, **variables)
            self.assertEqual(said, "")
            self.assertIsNotNone(packed, limit)
            said, packed = self.facts_after((limit + 4) << 16, **variables)
            self.assertIsNone(packed, limit)
            mib = int(re.search(r"PROF_PACK: the capture has (\d+) MiB, too many", said)[1])
            self.assertTrue(limit <= mib < limit + 12, said)
            self.assertRegex(said, r"to pack it: prof dump (\S+/many.prof) -o \1 --pack\n")


LIVE = """
#include <prof/scope.h>
#include <stdio.h>
int main(void) {
  PROF_SCOPE("open");
  puts("open");
  fflush(stdout);
  getchar();
}
"""


if __name__ == "__main__":
    unittest.main()
