"""python -m prof run beside python: what a script, a module, a folder, an archive and stdin see is
the same, and so is how they end."""

import json
import os
import py_compile
import re
import signal
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import zipfile

from hang_guard import HANG_SECONDS

import prof
from prof import _import, _run_script
from prof._library import C

PACKAGE = os.path.dirname(os.path.abspath(prof.__file__))

SEES = (
    "import sys\nprint(__name__, __file__, __package__, getattr(__spec__, 'name', None), sys.argv, "
    "sys.path[0], sys._getframe().f_code.co_filename, type(__loader__).__name__)\n"
)
LATE = SEES + (
    "import atexit, pickle\nclass Thing: pass\n"
    "def late(): print('late', type(pickle.loads(pickle.dumps(Thing()))) is Thing)\n"
    "atexit.register(late)\n"
)
POOL = """
import multiprocessing, os
def work(n): return n * n
if __name__ == "__main__":
    os.chdir("/")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1, 2, 3]))
"""
TRACED = """
import json, math, multiprocessing, sys
def work(n): return math.gamma(n)
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.map(work, [2, 4]))
"""


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(os.path.realpath(self.folder.name), name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def python(self, *arguments, **more):
        return subprocess.run(
            [sys.executable, *arguments],
            **{
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                "timeout": HANG_SECONDS,
                "cwd": self.folder.name,
                **more,
            },
        )

    def prof(self, *arguments, **more):
        return self.python("-m", "prof", *arguments, **more)

    def assert_same(self, *arguments, **more):
        plain, ours = self.python(*arguments, **more), self.prof("run", "-q", *arguments, **more)
        self.assertEqual(
            (ours.returncode, ours.stdout, ours.stderr),
            (plain.returncode, plain.stdout, plain.stderr),
        )
        return ours

    def test_it_sees_what_python_shows(self):
        self.write("script.py", LATE)
        self.write("pkg/__init__.py", "")
        self.write("pkg/beside.py", "")
        self.write("pkg/__main__.py", "from . import beside\n" + LATE)
        self.write("folder/__main__.py", LATE)
        os.makedirs(self.path("links"))
        os.symlink(self.path("script.py"), self.path("links/link.py"))
        py_compile.compile(self.path("script.py"), self.path("compiled.pyc"), dfile="script.py")
        with zipfile.ZipFile(self.path("archive.any"), "w") as archive:
            archive.writestr("__main__.py", LATE)
        for arguments in (
            ("script.py",),
            ("links/link.py",),
            ("-m", "pkg"),
            ("-m", "pkg.__main__"),
            ("-m", "script"),
            ("folder",),
            ("compiled.pyc",),
            ("archive.any",),
        ):
            with self.subTest(arguments):
                self.assertIn("late True", self.assert_same(*arguments, "a").stdout)
        self.assert_same("-", "a", input=SEES.replace("__file__, ", ""))

    def test_the_options_of_python_reach_the_script(self):
        self.write(
            "script.py",
            "import sys\nprint(sys.flags, sys._xoptions, sys.warnoptions, sys.argv)\n"
            "print(sys.stdout.write_through)\n",
        )
        for options, module in (
            (("-u", "-X", "a=b", "-Wignore", "-B"), ("-m", "prof")),
            (("-OO", "-Xc"), ("-mprof",)),
            (("-W", "error", "-q"), ("-um", "prof")),
        ):
            with self.subTest(options):
                joined = options if module[0][:2] == "-m" else (*options, module[0][:-1])
                plain = self.python(*joined, "script.py", "-m", "prof")
                ours = self.python(*options, *module, "run", "-q", "script.py", "-m", "prof")
                self.assertEqual((ours.stdout, ours.stderr), (plain.stdout, plain.stderr))

    @unittest.skipUnless(sys.implementation.name == "cpython", "PyPy shows its first __main__")
    def test_an_interactive_python_goes_on_behind_the_script(self):
        self.write("script.py", "x = 5\n")
        said = []
        for words in ((), ("-m", "prof", "run", "-q")):
            done = self.python("-i", *words, "script.py", input="print('still', x)\n")
            said.append((done.returncode, done.stdout, done.stderr))
        self.assertEqual(said[1], said[0])

    def test_an_isolated_python_has_the_same_path(self):
        script = self.write("script.py", "import sys\nprint(sys.path)\n")
        placed = (
            f"import sys\nbefore = list(sys.path)\nsys.path.append({os.path.dirname(PACKAGE)!r})\n"
            f"from prof import _script\nsys.path[:] = before\n_script.place({script!r}, False)\n"
            f"print(sys.path)\n"
        )
        plain, ours = self.python("-I", script), self.python("-I", "-c", placed)
        self.assertEqual((ours.stdout, ours.stderr), (plain.stdout, ""))

    def test_a_folder_has_its_own_name(self):
        self.write("of mine/__main__.py", "print('ran')\n")
        for word, place in (("of mine/", ""), (".", "of mine"), ("..", "of mine/below")):
            os.makedirs(self.path("of mine/below"), exist_ok=True)
            with self.subTest(word):
                done = self.prof("run", "-o", "out", word, cwd=self.path(place))
                self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
                self.assertRegex(done.stderr, r"(?m)^of mine +script ")
                (name,) = os.listdir(self.path(os.path.join(place, "out", "prof_output")))
                self.assertRegex(name, r"^of mine\.\d+\.prof$")

    def test_the_library_s_path_may_be_relative(self):
        if os.sep not in C.path:
            self.skipTest("the library has no path")
        self.write("script.py", "import os\nos.makedirs('far/away')\nos.chdir('far/away')\n")
        path = os.path.relpath(C.path, self.path("."))
        done = self.prof("run", "script.py", env={**os.environ, "PROF_LIBRARY": path})
        self.assertRegex(done.stderr, r"(?m)^script\.py +script ")
        self.assertNotIn("makes no table", done.stderr)

    @unittest.skipIf(os.path.exists(os.path.join(PACKAGE, "lib", "prof")), "it is in the package")
    def test_another_program_of_this_name_is_not_executed(self):
        """As pip and setuptools make the script of PyPI's package prof."""
        nowhere = types.SimpleNamespace(path="libprof.so.0")
        self.write("bin/prof", "#!/usr/bin/python3\nfrom prof.main import main\nmain()\n")
        self.write("old/prof", "#!/usr/bin/python3\n__requires__ = 'prof==1.0'\n")
        self.write("ours/prof", "#!/bin/sh\n# starts ours\n")
        for folder in ("bin", "old", "ours"):
            os.chmod(self.path(f"{folder}/prof"), 0o755)
        foreign = os.pathsep.join([self.path("none"), self.path("bin"), self.path("old")])
        with unittest.mock.patch.dict(os.environ, PATH=foreign):
            self.assertRaisesRegex(FileNotFoundError, "no prof command", _import.command, nowhere)
            os.environ["PATH"] += os.pathsep + self.path("ours")
            self.assertEqual(_import.command(nowhere), self.path("ours/prof"))

    def test_a_script_without_scopes_is_told_how_to_see_more(self):
        hint = "\nprof: the script has no scopes: --python shows its functions"
        plain, scoped = "print(1)\n", "import prof\nwith prof.scope('x'): pass\n"
        forks = (
            "import os, prof\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
            "else:\n with prof.scope('x'): pass\n"
        )
        self.write("torch/__init__.py", "")
        for script, words, wanted in (
            (plain, (), hint + "\n"),
            ("import torch\n", (), hint + ", --torch PyTorch's operators\n"),
            (scoped, (), None),
            (forks, (), None),
            (plain, ("--python",), None),
            (plain, ("-q",), None),
        ):
            with self.subTest(script=script, words=words):
                stderr = self.prof("run", *words, self.write("bare.py", script)).stderr
                if wanted is None:
                    self.assertNotIn(hint.strip(), stderr)
                else:
                    self.assertTrue(stderr.endswith(wanted), stderr)

    def test_a_rank_says_which_it_is_and_where_its_trace_is(self):
        self.write("script.py", "pass\n")
        done = self.prof(
            "run",
            "-o",
            "of-%r-100%%.prof",
            "script.py",
            env={**os.environ, "RANK": "1", "WORLD_SIZE": "2"},
        )
        self.assertIn("prof: rank 1 of 2:\n", done.stderr)
        path = self.path("of-1-100%.prof")
        self.assertRegex(
            done.stderr,
            rf"prof: the trace is in {path}; (python -m )?prof table {path} shows it\n",
        )
        self.assertTrue(os.path.exists(path))
        self.assertNotIn("rank", self.prof("run", "script.py").stderr)

    def test_processes_are_spawned_whatever_the_folder_is(self):
        self.write("script.py", POOL)
        self.write("pkg/__init__.py", "")
        # a __main__ of a package is not imported in a child, by python either
        self.write("pkg/program.py", POOL.replace('    os.chdir("/")\n', ""))
        for arguments in (("script.py",), ("-m", "pkg.program")):
            with self.subTest(arguments):
                if "-m" not in arguments or sys.implementation.name == "cpython":
                    self.assertEqual(self.assert_same(*arguments).stdout, "[1, 4, 9]\n")

    def test_a_scripts_builtins_are_the_module(self):
        self.write("s.py", "__builtins__.shout = lambda: print('shouted')\nshout()\n")
        self.assert_same("s.py")

    def test_a_run_inside_of_a_run(self):
        self.write("inner.py", "import prof\nwith prof.record_function('inner'): print('ran')\n")
        self.write(
            "outer.py",
            "import subprocess, sys\nsys.exit(subprocess.run([sys.executable, '-m', 'prof', "
            "'run', '-o', 'inner.json', 'inner.py']).returncode)\n",
        )
        done = self.prof("run", "-o", "outer.json", "outer.py")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        with open(self.path("inner.json")) as file:
            self.assertIn('"inner"', file.read())
        done = self.prof(
            "run",
            "inner.py",
            env={**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": self.path("outer.json")},
        )
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)

    def test_it_ends_as_python_does(self):
        for text in (
            "class Other(BaseException): pass\nraise Other(1)",
            "raise KeyboardInterrupt",
            "import sys\ndef hook(*a): print('hook', a[0].__name__)\nsys.excepthook = hook\n1 / 0",
            "import sys\nsys.excepthook = None\n1 / 0"
            if sys.implementation.name == "cpython"
            else "1 / 0",
            "import sys\ndef hook(*a): raise KeyError(1)\nsys.excepthook = hook\n1 / 0"
            if sys.implementation.name == "cpython"
            else "1 / 0",
            "def f(:",
        ):
            with self.subTest(text):
                plain, ours = (
                    self.python(self.write("script.py", text)),
                    self.prof("run", "-q", self.path("script.py")),
                )
                status = plain.returncode  # of a signal: as a shell has it
                status = status if status >= 0 else 128 - status
                self.assertEqual((ours.returncode, ours.stdout), (status, plain.stdout))
                if sys.implementation.name == "cpython":
                    self.assertEqual(ours.stderr, plain.stderr)
                self.assertNotIn("prof/", ours.stderr)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_child_that_leaves_by_sys_exit_is_whole(self):
        script = self.write(
            "script.py",
            "import os, sys, prof\nif os.fork() == 0:\n"
            "    with prof.record_function('child'): pass\n    sys.exit(0)\nos.wait()\n",
        )
        done = self.prof("run", script)
        self.assertEqual(done.returncode, 0)
        self.assertIn("child", done.stderr)
        self.assertNotIn("not whole", done.stderr)

    def test_a_script_that_starts_and_stops_does_not_end_the_run(self):
        script = self.write(
            "script.py",
            "import prof\nprof.profiler.start(2)\nprof.profiler.stop()\nprof.profiler.stop()\n"
            "with prof.record_function('behind'): pass\n",
        )
        done = self.prof("run", script)
        self.assertIn("behind", done.stderr)
        self.assertIn("script.py", done.stderr)
        self.assertIn("no loss", done.stderr)

    def test_a_wrong_number_of_rows_is_told_before_the_script_runs(self):
        script = self.write("script.py", "print(1)")
        for rows in ("-7", "-2", "0", "x", "\u00b2", "1.5"):
            done = self.prof("run", "-r", rows, script)
            self.assertEqual((done.returncode, done.stdout), (125, ""))
            self.assertIn("--rows takes all, or a number from 1", done.stderr)
        for rows in ("-1", "1", "7"):
            self.assertEqual(self.prof("run", "-r", rows, script).stdout, "1\n")

    def test_what_cannot_be_run_is_told_as_python_tells_it(self):
        os.makedirs(self.path("empty"))
        for arguments in (("-m", "no_such_module"), ("-m", "xml"), ("empty",)):
            with self.subTest(arguments):
                self.assert_same(*arguments)
                before = set(os.listdir(self.folder.name))
                done = self.prof("run", "-o", "nothing.prof", *arguments)
                self.assertEqual(
                    (
                        done.returncode,
                        done.stdout,
                        len(done.stderr.splitlines()),
                        set(os.listdir(self.folder.name)),
                    ),
                    (1, "", 1, before),
                    done.stderr,
                )

    def test_without_stderr_the_table_goes_nowhere(self):
        self.write("plain.py", "print('out')")
        self.write("closes.py", "import sys\nprint('out')\nsys.stderr.close()")
        self.write("none.py", "import sys\nprint('out')\nsys.stderr = None")
        for name, redirect in (
            ("plain.py", "2>&-"),
            ("plain.py", "2>/dev/full"),
            ("closes.py", ""),
            ("none.py", ""),
        ):
            with self.subTest((name, redirect)):
                done = subprocess.run(
                    ["bash", "-c", f'"{sys.executable}" -m prof run -o t.json {name} {redirect}'],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    timeout=HANG_SECONDS,
                    cwd=self.folder.name,
                )
                self.assertEqual((done.stdout, done.stderr), ("out\n", ""))
                with open(self.path("t.json")) as f:
                    self.assertIn(name, f.read())
                os.unlink(self.path("t.json"))
                self.assertEqual(
                    [n for n in os.listdir(self.folder.name) if ".run-" in n],
                    [],
                    "a capture was left",
                )

    def test_what_cannot_be_written_is_told_with_where_it_is(self):
        self.write("script.py", "import os\nos.mkdir('t.json')")
        done = self.prof("run", "-o", "t.json", "script.py")
        self.assertEqual(done.returncode, 0)
        left = re.search(r"the capture is '(\S+)'$", done.stderr, re.M)
        self.assertTrue(left and os.path.exists(self.path(left[1])), done.stderr)
        self.assertEqual(self.prof("table", left[1]).returncode, 0)
        self.assertIn(
            "script.py", done.stderr.split("cannot write")[0], "the table is printed all the same"
        )

    def test_a_folder_for_captures_that_is_not_there_is_refused(self):
        self.write("script.py", "print('ran')")
        done = self.prof(
            "run", "script.py", env={**os.environ, "PROF_CAPTURE_DIR": self.path("no")}
        )
        if done.returncode:
            self.assertEqual((done.returncode, done.stdout), (125, ""))
            self.assertEqual(
                len(
                    [line for line in done.stderr.splitlines() if "the script was not run" in line]
                ),
                1,
                done.stderr,
            )
        else:
            self.assertEqual(done.stdout, "ran\n")
        self.assertNotIn("Traceback", done.stderr)

    def test_the_command_that_it_names_can_be_pasted(self):
        """prof if a shell finds it, and it is ours: PyPI's package prof has such a command, too."""
        script, ours = self.write("script.py", "pass\n"), os.path.join(self.folder.name, "prof")
        path = self.path("of mine/t.prof")
        os.mkdir(os.path.dirname(path))
        environment = {**os.environ, "PATH": self.folder.name + os.pathsep + os.environ["PATH"]}
        os.symlink(_import.command(), ours)
        done = self.prof("run", "-o", path, script, env=environment)
        self.assertIn(f"; prof table '{path}' shows it\n", done.stderr)
        os.remove(ours)
        self.write("prof", "#!/bin/sh\n")
        os.chmod(ours, 0o755)
        done = self.prof("run", "-o", path, script, env=environment)
        self.assertIn(f"; python -m prof table '{path}' shows it\n", done.stderr)

    def test_names_of_what_is_written(self):
        self.write(
            "script.py",
            "import os, prof\nif os.fork() == 0:\n    with prof.record_function('child'): pass\n"
            "else:\n    os.wait()\n",
        )
        done = self.prof("run", "-o", "t_%p.json", "script.py")
        names = sorted(n for n in os.listdir(self.folder.name) if n.startswith("t_"))
        self.assertEqual(len(names), 2)
        self.assertTrue(all(re.fullmatch(r"t_\d+\.json", n) for n in names), names)
        self.assertRegex(
            done.stderr,
            r"the trace is in \S*/t_\d+\.json, that of 1 more process beside it; open it in https",
        )
        done = self.prof("run", "-o", "t.prof", "script.py")
        self.assertRegex(done.stderr, f"prof table {self.path('t.prof')} shows it")

    def test_the_ending_selects_the_format(self):
        self.write("script.py", "print('ran')")
        for name, begin, said in (
            ("t.csv", b"kind,", ""),
            ("t.pftrace", b"\x0a", "; open it in https://ui.perfetto.dev"),
            ("t.speedscope.json", b'{"$schema"', "; open it in https://www.speedscope.app"),
            ("t.pb", b"\x0a", "; go tool pprof reads it"),
        ):
            done = self.prof("run", "-o", name, "script.py")
            with open(self.path(name), "rb") as file:
                self.assertEqual(file.read(len(begin)), begin, name)
            self.assertRegex(done.stderr, rf"the trace is in \S*{name}{said}\n")

    def test_another_ending_is_refused_before_anything_runs(self):
        self.write("script.py", "print('ran')")
        done = self.prof("run", "-o", "t.txt", "script.py")
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertIn("writes no format with this ending. The endings are .json, ", done.stderr)
        self.prof("run", "-q", "-o", "t.prof", "script.py")
        done = self.prof("dump", "t.prof", "-o", "t.txt")
        self.assertEqual(done.returncode, 2)
        text = re.search(r"The endings are (.*); or give --format", done.stderr)[1]
        tables = [".parquet", ".arrow"]  # which prof run does not write
        self.assertEqual(sorted(text.split(", ")), sorted([*_run_script.ENDINGS, *tables]))
        self.assertEqual(self.prof("dump", "-f", "raf", "t.prof", "-o", "t.txt").returncode, 0)

    def test_groups_and_version(self):
        self.write("script.py", "print('ran')")
        self.prof("run", "-q", "-o", "t.prof", "script.py")
        one, two = (
            self.prof("table", "-b", "name,thread", "t.prof"),
            self.prof("table", "-b", "name", "-b", "thread", "t.prof"),
        )
        self.assertEqual((one.returncode, one.stdout), (0, two.stdout), one.stderr)
        self.assertEqual(self.prof("table", "-b", "name,nothing", "t.prof").returncode, 2)
        done = self.prof("--version")
        self.assertEqual(
            (done.returncode, bool(re.fullmatch(r"prof \d+\.\d+\.\d+\n", done.stdout))), (0, True)
        )

    def test_a_reader_that_goes_is_no_error(self):
        self.write("script.py", "print('ran')")
        self.prof("run", "-q", "-o", "t.prof", "script.py")
        done = subprocess.run(
            [
                "bash",
                "-c",
                f'"{sys.executable}" -m prof table t.prof | true; exit ${{PIPESTATUS[0]}}',
            ],
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder.name,
        )
        self.assertIn(done.returncode, (0, 128 + signal.SIGPIPE))
        self.assertEqual(done.stderr, "")

    def test_what_a_killed_process_has_left_is_reported(self):
        self.write(
            "script.py", "import os, prof\nwith prof.record_function('x'): os.kill(os.getpid(), 9)"
        )
        done = self.prof("run", "-o", "t.prof", "script.py")
        self.assertEqual(done.returncode, 128 + signal.SIGKILL)
        for text in (done.stderr, self.prof("table", "t.prof").stdout):
            self.assertRegex(text, r"(?m)^script\.py +script ")
            self.assertIn("2 scopes had not ended yet", text)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["script.py", "t.prof"])

    def test_an_interrupt_of_the_table_is_no_error(self):
        """prof run prints the table then."""
        self.write("script.py", "import prof\nwith prof.scope('x'): pass\n")
        os.symlink(os.path.realpath(C.path), self.path("libprof.so"))
        self.write(
            "prof",
            f'#!/bin/sh\nif [ "$1" = table ]; then kill -INT $PPID; kill -STOP $$; fi\n'
            f'exec "{_import.command()}" "$@"\n',
        )
        os.chmod(self.path("prof"), 0o755)
        done = self.prof(
            "run", "script.py", env={**os.environ, "PROF_LIBRARY": self.path("libprof.so")}
        )
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertRegex(done.stderr, r"(?m)^x ")
        self.assertNotIn("Traceback", done.stderr)
        self.assertNotIn("prof/", done.stderr)

    def test_a_killed_process_has_as_many_rows(self):
        text = "import os, prof\nfor i in range(40):\n    with prof.scope(f'row {i}'): pass\n"
        for end in ("", "os.kill(os.getpid(), 9)"):
            done = self.prof("run", self.write("script.py", text + end))
            self.assertIn(" 41 groups (11 not shown)\n", done.stderr)

    def test_modules_are_traced_in_processes_however_they_come(self):
        self.write("script.py", TRACED)
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                done = self.prof(
                    "run", "-o", f"{method}.json", "--trace", "math", "script.py", method
                )
                self.assertEqual((done.returncode, done.stdout), (0, "[1.0, 6.0]\n"), done.stderr)
                count = 0
                for name in os.listdir(self.folder.name):
                    if re.fullmatch(rf"{method}(\.\d+)?\.json", name):
                        with open(self.path(name)) as f:
                            count += sum(
                                e["name"] == "math.gamma" and e["ph"] == "X"
                                for e in json.load(f)["traceEvents"]
                            )
                self.assertEqual(count, 2)


if __name__ == "__main__":
    unittest.main()
