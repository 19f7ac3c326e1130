"""``prof table``: each word is taken, gives another table or is refused. And
``python -m prof table``, which executes it with the same words."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

from hang_guard import HANG_SECONDS

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))

LINES = (
    (),
    ("--by", "name"),
    ("-b", "name", "-b", "category,thread"),
    ("--by", "device,shape"),
    ("--by", "stack"),
    ("--by", "name,stack", "--stack-frames", "1"),
    ("-b", "stack", "-f", "2"),
    ("-b", "stack", "-F"),
    ("--no-functions",),
    ("--by", "kernel"),
    ("--by", "kernel,thread", "--sort", "self-device"),
    ("--by", "name,category,device,thread,process,shape,stack"),
    ("--by", "process"),
    *(
        ("--sort", word)
        for word in (
            "total",
            "self",
            "calls",
            "mean",
            "max",
            "name",
            "memory",
            "self-memory",
            "first",
            "device",
            "self-device",
            "median",
            "p99",
            "device-mean",
            "self-net",
            "total-net",
            "open",
            "open-for",
            "skipped",
        )
    ),
    ("-s", "calls", "-r", "2"),
    ("--rows", "all"),
    ("--rows", "-1"),
    ("-r", "1", "-l", "1"),
    ("--level", "2"),
    ("--level", "0", "--category", "operator"),
    ("-c", "none of these"),
    ("--by=name", "--sort=name", "--rows=3"),
)
WRONG = (
    (),
    ("--by", "color", "FIRST"),
    ("--by", "", "FIRST"),
    ("-b", "name,,thread", "FIRST"),
    ("--sort", "size", "FIRST"),
    ("--sort", "self_memory", "FIRST"),
    ("--rows", "", "FIRST"),
    ("--level", "3", "FIRST"),
    ("--level", "-1", "FIRST"),
    ("--stack-frames", "few", "FIRST"),
    ("--stack-frames", "-1", "FIRST"),
    ("--colour", "FIRST"),
    ("-x", "FIRST"),
    ("FIRST", "--rows"),
)
# Words that Python would take for its own, change or split.
PASSED = (
    (),
    ("-b", "name", "-b", "category,thread"),
    ("-c", "none of these"),
    ("--by=name", "--sort=name", "--rows=3"),
    ("--rows", "-1"),
    ("-x",),
    ("--by", ""),
)


def record(folder):
    """Two captures: names, categories, levels, threads, shapes, stacks and memory that tell all
    orders apart."""
    code = """
import sys, threading, time, prof
def work(count):
    pool = prof.memory_profiler.Pool("tensors", "cpu")
    with prof.profile(level=2, with_stack=True):
        for n in range(count):
            with prof.scope("convolution", category="operator"):
                pool.alloc(0x1000 + n * 0x100000, (n + 1) << 10, (n + 1) << 10)
                with prof.scope("transform", category="operator", shapes=[(n % 2 + 1, 3)]):
                    time.sleep(0.0001)
            with prof.scope("setting", category="runtime", level=2):
                pool.alloc(0x20 + n * 0x100000, 64, 64)
        def record_one():
            with prof.scope("on another thread"):
                pass
        other = threading.Thread(target=record_one)
        other.start()
        other.join()
        prof.Trace.now().dump(sys.argv[1])
work(int(sys.argv[2]))
"""
    paths = [os.path.join(folder, name) for name in ("first.prof", "second.prof")]
    for count, path in enumerate(paths, 3):
        subprocess.run(
            [sys.executable, "-c", code, path, str(count)], check=True, timeout=HANG_SECONDS
        )
    return paths


@unittest.skipUnless(os.access(COMMAND, os.X_OK), "the prof command is not built")
class Beside(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.paths = record(cls.folder.name)

    def table(self, *words, command=(COMMAND,)):
        words = [self.paths[0] if word == "FIRST" else word for word in words]
        return subprocess.run(
            [*command, "table", *words], capture_output=True, text=True, timeout=HANG_SECONDS
        )

    def both(self, *words):
        return self.table(*words), self.table(*words, command=(sys.executable, "-m", "prof"))

    def test_the_help_is_one_text(self):
        for word in ("--help", "-h"):
            of_c, of_python = self.both(word)
            self.assertEqual((of_c.returncode, of_python.returncode), (0, 0))
            self.assertEqual(of_c.stdout, of_python.stdout)

    def test_the_help_names_every_option_that_there_is(self):
        told = set(re.findall(r"--[a-z-]+", self.both("--help")[0].stdout))
        self.assertEqual(
            told,
            {
                "--by",
                "--sort",
                "--rows",
                "--level",
                "--category",
                "--stack-frames",
                "--no-functions",
                "--name",
                "--thread",
                "--process",
                "--rank",
                "--device",
                "--min",
                "--arg",
                "--from",
                "--to",
                "--step",
                "--width",
                "--columns",
                "--json",
                "--csv",
                "--strict",
                "--help",
            },
        )

    def test_each_line_of_words_gives_a_table_of_its_own(self):
        texts = set()
        for files in (self.paths[:1], self.paths):
            for words in LINES:
                with self.subTest(words=words, files=len(files)):
                    done = self.table(*words, *files)
                    is_empty = "none of these" in words
                    said = "prof table: no scope passed the filter\n" if is_empty else ""
                    self.assertEqual((done.returncode, done.stderr), (3 if is_empty else 0, said))
                    texts.add(done.stdout)
        self.assertGreater(len(texts), len(LINES) - 8, "the captures do not tell the options apart")

    def test_python_passes_each_word_as_it_is(self):
        for words in PASSED:
            with self.subTest(words=words):
                of_c, of_python = self.both(*words, *self.paths)
                self.assertEqual(
                    (of_python.returncode, of_python.stdout, of_python.stderr),
                    (of_c.returncode, of_c.stdout, of_c.stderr),
                )

    def test_options_may_stand_behind_the_files(self):
        before, behind = (
            self.both(*words)
            for words in (("--sort", "name", "FIRST"), ("FIRST", "--sort", "name"))
        )
        self.assertEqual({done.stdout for done in before}, {done.stdout for done in behind})
        self.assertEqual([done.returncode for done in behind], [0, 0])

    def test_a_depth_of_stacks_is_one_of_them(self):
        for done in self.both("--by", "stack", "-f", "1", "FIRST"):
            self.assertIn("<string>(7): work\n", done.stdout)
            self.assertNotRegex(done.stdout, r"(?m)^ +<string>\(\d+\): <module>$")
        for done in self.both("--by", "stack", "FIRST"):
            self.assertRegex(done.stdout, r"<string>\(7\): work\n +<string>\(20\): <module>\n\n")

    def test_wrong_words_are_refused(self):
        for words in WRONG:
            with self.subTest(words=words):
                done = self.table(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertTrue(done.stderr)

    def test_a_wrong_number_of_rows_is_told_what_is_right(self):
        for rows in ("-7", "-2", "0", "many", "\u00b2", "1.5"):
            done = self.table("-r", rows, "FIRST")
            self.assertEqual((done.returncode, done.stdout), (2, ""), rows)
            self.assertIn("takes all, or a number from 1", done.stderr, rows)


if __name__ == "__main__":
    unittest.main()
