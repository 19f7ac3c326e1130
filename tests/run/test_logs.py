"""Log files that libraries write beside the program, while they grow: files that are truncated,
renamed, deleted, too many, or no files at all. Nothing is lost, nothing is read twice."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get("PROF_TEST_BUILD_DIR", "build/dev")
PROF = os.path.join(os.path.abspath(BUILD), "prof")
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))

# The program of a test. The call log(name) gives a path in the folder that the library got. The
# call line(n) gives the text of a product with m = n. The call seen(n) waits until prof has read n
# lines.
HEAD = r"""
import os, sys, time
folder = os.path.dirname(os.environ["HIPBLASLT_LOG_FILE"])
def log(name): return os.path.join(folder, name)
def line(n): return f"hipblaslt-bench -m {n}\n"
def write(name, *numbers, mode="a", end=""):
    with open(log(name), mode) as file:
        file.write("".join(line(n) for n in numbers) + end)
def seen(count):
    while True:
        with open(os.path.join(folder, "..", "run.live.log")) as file:
            if file.read().count("hipblaslt-bench") >= count: return
        time.sleep(0.001)
"""


class Logs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_program(self, program, before=(), tools=(), **options):
        words = [*before, PROF, "run", "-q", "-o", "out", *tools]
        return subprocess.run(
            [*words, "-t", "hipblaslt_trace", "--", sys.executable, "-c", HEAD + program],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
            **options,
        )

    def calls(self):
        """{m: calls}"""
        with open(os.path.join(self.folder, "out", "library_trace.csv"), encoding="utf-8") as file:
            found = re.findall(r"hipblaslt-bench -m (\d+),(\d+)", file.read())
        return {int(m): int(calls) for m, calls in found}

    def test_a_truncated_file_is_read_from_its_begin(self):
        self.run_program(
            "write('a.1.log', 1, 2, 3)\nseen(3)\nwrite('a.1.log', 4, mode='w')\nseen(4)\n"
            "write('a.1.log', 5)\n"
        )
        self.assertEqual(self.calls(), {1: 1, 2: 1, 3: 1, 4: 1, 5: 1})

    def test_a_renamed_file_is_read_on_and_not_twice(self):
        self.run_program(
            "file = open(log('a.1.log'), 'a')\n"
            "def put(n): file.write(line(n)); file.flush()\n"
            "put(1)\nseen(1)\nos.rename(log('a.1.log'), log('b.1.log'))\nput(2)\nseen(2)\n"
            "os.rename(log('b.1.log'), log('a.1.log.old'))\nput(3)\nseen(3)\n"
            "write('a.1.log', 4)\nseen(4)\nos.link(log('a.1.log'), log('c.1.log'))\n"
            "write('c.1.log', 5)\nput(6)\n"
        )
        self.assertEqual(self.calls(), {n: 1 for n in range(1, 7)})

    def test_a_deleted_file_was_read_and_its_name_serves_again(self):
        self.run_program(
            "for n in range(1, 21):\n"
            "    write('a.1.log', n)\n"
            "    seen(n)\n"
            "    os.unlink(log('a.1.log'))\n"
        )
        self.assertEqual(self.calls(), {n: 1 for n in range(1, 21)})

    def test_what_a_process_writes_after_a_deletion_is_read(self):
        self.run_program(
            "file = open(log('a.1.log'), 'a')\n"
            "file.write(line(1)); file.flush(); seen(1)\n"
            "os.unlink(log('a.1.log'))\n"
            "file.write(line(2)); file.flush()\n"
        )
        self.assertEqual(self.calls(), {1: 1, 2: 1})

    def test_lines_in_pieces_and_with_carriage_returns(self):
        self.run_program(
            "file = open(log('a.1.log'), 'ab', buffering=0)\n"
            "for byte in (line(1)[:-1] + '\\r\\n' + line(2)).encode(): file.write(bytes([byte]))\n"
            "file.write(line(3)[:-1].encode())\n"
        )
        self.assertEqual(self.calls(), {1: 1, 2: 1, 3: 1})

    def test_more_files_than_may_be_open(self):
        """200 files, one after another, twice; and 60 descriptors for prof."""
        limit = ["sh", "-c", 'ulimit -n 60; exec "$@"', "sh"]
        program = (
            "import resource\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
            "for n in range(1, 201): write(f'a.{n}.log', n)\n"
            "for n in range(1, 201): write(f'a.{n}.log', n)\n"
        )
        done = self.run_program(program, limit)
        self.assertEqual(self.calls(), {n: 2 for n in range(1, 201)})
        self.assertNotIn(b"not read", done.stderr)

    def test_files_that_stay_open_are_more_than_prof_may_open(self):
        limit = ["sh", "-c", 'ulimit -S -n 60; exec "$@"', "sh"]
        program = (
            "import resource\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))\n"
            "files = [open(log(f'a.{n}.log'), 'a', buffering=1) for n in range(1, 201)]\n"
            "for _ in range(3):\n"
            "    for n, file in enumerate(files, 1): file.write(line(n))\n"
        )
        self.run_program(program, limit)
        self.assertEqual(self.calls(), {n: 3 for n in range(1, 201)})

    def test_links_fifos_and_folders_are_not_read(self):
        with open(os.path.join(self.folder, "secret"), "w", encoding="utf-8") as file:
            file.write("hipblaslt-bench -m 77\n")
        done = self.run_program(
            "os.symlink(os.path.join(folder, '..', '..', 'secret'), log('a.2.log'))\n"
            "os.mkfifo(log('a.3.log'))\nos.mkdir(log('a.4.log'))\n"
            "write('a.1.log', 1)\nseen(1)\nwrite('a.1.log', 2)\n"
        )
        self.assertEqual(self.calls(), {1: 1, 2: 1})
        with open(os.path.join(self.folder, "out", "run.live.log"), encoding="utf-8") as file:
            self.assertNotIn("77", file.read())
        errors = done.stderr.decode().splitlines()
        for name in ("a.2.log", "a.3.log", "a.4.log"):
            (told,) = [each for each in errors if name in each]
            self.assertIn("is not read: it is no regular file", told)

    @unittest.skipIf(os.getuid() == 0 and not shutil.which("setpriv"), "root may read any file")
    def test_a_file_that_may_not_be_read_is_told_once(self):
        os.chmod(self.folder, 0o777)
        before = ["setpriv", "--reuid=65534", "--clear-groups"] if os.getuid() == 0 else []
        program = (
            'folder=${HIPBLASLT_LOG_FILE%/*}; umask 777; exec 3>"$folder/a.2.log"; umask 022\n'
            "i=0; while [ $i -lt 50 ]; do echo hipblaslt-bench -m 7 >&3; i=$((i + 1)); done\n"
            'echo hipblaslt-bench -m 1 > "$folder/a.1.log"\n'
            'until grep -q hipblaslt "$folder/../run.live.log"; do :; done\n'
            "echo x >&3\n"
        )
        done = subprocess.run(
            [*before, PROF, "run", "-q", "-o", "out", "-t", "hipblaslt_trace"]
            + ["--", "sh", "-c", program],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        self.assertEqual(self.calls(), {1: 1})
        self.assertEqual(done.stderr.count(b"a.2.log"), 1, done.stderr)
        self.assertIn(b"Permission denied", done.stderr)

    def test_the_rank_of_a_file_s_process_is_in_its_environment(self):
        program = (
            "for rank in (3, 4):\n"
            "    code = 'import os, sys, time\\n'\n"
            "    code += 'path = os.environ[\"HIPBLASLT_LOG_FILE\"]'\n"
            "    code += '.replace(\"%i\", str(os.getpid()))\\n'\n"
            '    code += \'open(path, "w").write("hipblaslt-bench -m 1\\\\n")\\n\'\n'
            "    code += 'sys.stdin.read()'\n"
            "    import subprocess\n"
            "    child = subprocess.Popen([sys.executable, '-c', code], text=True,\n"
            "                             stdin=subprocess.PIPE,\n"
            "                             env={**os.environ, 'RANK': str(rank)})\n"
            "    seen(rank - 2)\n"
            "    child.communicate('')\n"
            "    print(f'rank {rank}, process {child.pid}')\n"
        )
        done = self.run_program(program, tools=("-t", "prof"))
        path = os.path.join(self.folder, "out", "library_trace.prof")
        about = subprocess.run(
            [PROF, "info", path], capture_output=True, timeout=HANG_SECONDS, check=True
        ).stdout.decode()
        for row in done.stdout.decode().splitlines():
            self.assertIn(row, about)


if __name__ == "__main__":
    unittest.main(verbosity=2)
