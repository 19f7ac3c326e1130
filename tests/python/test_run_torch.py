"""python -m prof run --torch and --profile-memory without torch. The script's own errors, what is
said if torch cannot be seen, and that the command executes itself again as it was.
test_observe_run.py has the real one."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from hang_guard import HANG_SECONDS

import prof
from prof import _import, _torch_found

STATE = """
import os, sys
print(sys.argv, sys.flags, sys._xoptions, sys.warnoptions, sys.path[0], __file__)
"""


of_cpython = unittest.skipIf(
    sys.implementation.name == "pypy", "PyPy allocates a bytearray in pieces, and frees it later"
)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="prof-run-torch-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {
            k: v for k, v in os.environ.items() if not k.startswith("PROF_") or k == "PROF_LIBRARY"
        }
        self.environment["TMPDIR"] = self.folder

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def python(self, *arguments, **variables):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        return done.returncode, done.stdout, done.stderr

    def assert_same(self, *arguments, options=("--torch",), before=(), **variables):
        plain, ours = (
            self.python(*before, *arguments, **variables),
            self.python(*before, "-m", "prof", "run", "-q", *options, *arguments, **variables),
        )
        self.assertEqual(ours, plain)
        self.assertEqual([name for name in os.listdir(self.folder) if ".run-" in name], [])
        return ours


class Torch(Case):
    def make_torch(self, text=""):
        self.write("torch/__init__.py", "__version__ = '9.0'\n" + text)

    def test_a_script_without_torch(self):
        self.make_torch("print('imported')")
        script = self.write(
            "script.py", "import sys\nprint('torch' in sys.modules, 'prof.torch' in sys.modules)"
        )
        self.assertEqual(self.assert_same(script)[1], "False False\n")

    def test_torch_is_missing(self):
        script = self.write(
            "script.py",
            "import sys\nsys.path[:] = [p for p in sys.path if 'packages' not in p]\n"
            "import torch\n",
        )
        code, _, stderr = self.assert_same(script)
        self.assertEqual(
            (code, stderr.splitlines()[-1]), (1, "ModuleNotFoundError: No module named 'torch'")
        )

    def test_torch_is_broken(self):
        self.make_torch("raise ImportError('libsomething.so: cannot open')")
        script = self.write(
            "script.py",
            "try:\n    import torch\nexcept ImportError as e:\n    print(e)\n"
            "import sys; print('torch' in sys.modules)",
        )
        self.assertEqual(self.assert_same(script)[1], "libsomething.so: cannot open\nFalse\n")

    def test_memory_of_a_script_without_torch(self):
        script = self.write("script.py", "import os; print('LD_PRELOAD' in os.environ)")
        words = ("-m", "prof", "run", "--torch", "--profile-memory", script)
        code, stdout, stderr = self.python(*words)
        self.assertEqual((code, stdout), (0, "False\n"), stderr)
        self.assertIn("prof: --memory with --torch has what torch's allocators", stderr)
        self.assertNotIn("CPU Mem", stderr)

    def test_a_folder_of_that_name(self):
        os.mkdir(os.path.join(self.folder, "torch"))
        script = self.write(
            "script.py",
            "import sys\nsys.path[:] = [p for p in sys.path if 'packages' not in p]\n"
            "import torch; print(torch.__path__)",
        )
        code, stdout, stderr = self.python("-m", "prof", "run", "-q", "--torch", script)
        self.assertEqual((code, stdout), self.python(script)[:2])
        self.assertRegex(stderr, r"^$|^prof: torch's operators are not seen: [^\n]*\n$")

    def test_torch_that_cannot_be_seen(self):
        """In a line, once, and the script runs; so do the processes that it starts."""
        self.make_torch()
        script = self.write(
            "script.py",
            "import subprocess, sys, torch\nfrom torch import __version__\n"
            "print(__version__, torch.__spec__.origin, torch.__loader__.__class__.__name__, "
            "flush=True)\nif sys.argv[1:]: subprocess.run([sys.executable, *sys.argv])",
        )
        child = [script, "child"]
        code, stdout, stderr = self.python("-m", "prof", "run", "-q", "--torch", *child[:1])
        self.assertEqual((code, stdout), self.python(script)[:2])
        self.assertRegex(
            stderr, r"^prof: torch's operators are not seen: torch 9.0 has no ITT[^\n]*\n$"
        )
        self.assertEqual(self.python("-c", "import torch; print(torch)")[2], "")

    def test_where_torch_is_imported_makes_no_difference(self):
        self.make_torch()
        for text in (
            "import threading\ndef work(): import torch; print(torch.__version__)\n"
            "t = threading.Thread(target=work); t.start(); t.join()",
            "import prof.torch; import torch; print(torch.__version__)",
            "import importlib; print(importlib.import_module('torch').__version__)",
        ):
            with self.subTest(text):
                code, stdout, stderr = self.python(
                    "-m", "prof", "run", "-q", "--torch", self.write("script.py", text)
                )
                self.assertEqual((code, stdout), (0, "9.0\n"), stderr)
                self.assertRegex(stderr, r"^prof: torch's operators are not seen: [^\n]*\n$")

    def test_the_finder_goes(self):
        self.make_torch()
        script = self.write(
            "script.py",
            "import sys\nbefore = len(sys.meta_path)\nimport torch\n"
            "print(before - len(sys.meta_path), any('_run_torch' in type(f).__module__ for f in "
            "sys.meta_path), 'exec_module' in vars(torch.__loader__))",
        )
        self.assertEqual(
            self.python("-m", "prof", "run", "-q", "--torch", script)[1], "1 False False\n"
        )


class Memory(Case):
    def setUp(self):
        super().setUp()
        try:
            self.library = _torch_found.memory_library()
        except FileNotFoundError:
            self.skipTest("libprof_memory.so is not beside the library")

    @of_cpython
    def test_the_table_has_what_was_allocated(self):
        script = self.write(
            "script.py",
            "import prof\nwith prof.record_function('held'): x = bytearray(1 << 26)\n"
            "with prof.record_function('freed'): del x\n",
        )
        code, _, stderr = self.python("-m", "prof", "run", "--profile-memory", script)
        self.assertEqual(code, 0, stderr)
        self.assertRegex(stderr, r"(?m)^held .*? 64\.\d+ MiB +64\.\d+ MiB +1$")
        self.assertRegex(stderr, r"(?m)^freed .*? -64\.\d+ MiB +-64\.\d+ MiB +1$")

    def test_the_process_is_as_it_was_begun(self):
        script = self.write("script.py", STATE)
        before = ["-X", "dev", "-W", "ignore", "-B", "-O"]
        for name in ("script.py", script):
            self.assert_same(
                name, "-X", "--profile-memory", options=["--profile-memory"], before=before
            )
        self.write("pkg/__init__.py", "")
        self.write("pkg/part.py", STATE.replace("sys.path[0], ", ""))
        self.assert_same("-m", "pkg.part", "a", options=["--profile-memory"], before=before)

    def test_what_was_preloaded_stays_and_once_is_enough(self):
        script = self.write(
            "script.py",
            "import os; print(os.environ['LD_PRELOAD'], os.environ.get('PROF_RUN'), os.getpid() "
            "== int(os.environ.get('SHELL_PID', os.getpid())))",
        )
        other = prof.torch.collector()
        code, stdout, stderr = self.python(
            "-m", "prof", "run", "-q", "--profile-memory", script, LD_PRELOAD=other
        )
        self.assertEqual((code, stdout, stderr), (0, f"{self.library}:{other} None True\n", ""))
        code, stdout, stderr = self.python(
            "-m",
            "prof",
            "run",
            "-q",
            "--profile-memory",
            script,
            LD_PRELOAD=self.library,
            PROF_MEMORY="1",
            PROF_OUTPUT=os.path.join(self.folder, "mine.prof"),
        )
        self.assertEqual((code, stdout, stderr), (0, f"{self.library} None True\n", ""))
        self.assertEqual(sorted(os.listdir(self.folder)), ["mine.prof", "script.py"])
        code, stdout, stderr = self.python(
            "-m",
            "prof",
            "run",
            "-q",
            "--profile-memory",
            script,
            LD_PRELOAD=f"{other} {self.library}",
        )
        self.assertEqual((code, stdout, stderr), (0, f"{self.library}:{other} None True\n", ""))

    def test_a_bad_least_size_is_said_once(self):
        script = self.write("script.py", "print('ran')")
        code, stdout, stderr = self.python(
            "-m", "prof", "run", "-q", "--profile-memory", script, PROF_MEMORY_MIN="4k"
        )
        self.assertEqual((code, stdout), (0, "ran\n"))
        self.assertRegex(stderr, r"PROF_MEMORY_MIN.*not a number")
        self.assertNotIn("LD_PRELOAD", stderr)

    @of_cpython
    def test_the_processes_that_it_starts(self):
        child = self.write(
            "child.py", "import prof\nwith prof.record_function('child'): x = bytearray(1 << 26)"
        )
        script = self.write(
            "script.py",
            f"import subprocess, sys\nsubprocess.run([sys.executable, {child!r}], check=True)",
        )
        code, _, stderr = self.python("-m", "prof", "run", "--profile-memory", script)
        self.assertEqual(code, 0, stderr)
        self.assertRegex(stderr, r"(?m)^child .*? 64\.\d+ MiB +1$")

    @of_cpython
    def test_a_run_inside_of_a_run(self):
        inner = self.write(
            "inner.py", "import prof\nwith prof.record_function('inner'): x = bytearray(1 << 26)"
        )
        outer = self.write(
            "outer.py",
            f"import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'prof', 'run', "
            f"*sys.argv[1:], {inner!r}], check=True)",
        )
        for options in ([], ["--profile-memory"]):
            code, _, stderr = self.python(
                "-m", "prof", "run", "-q", "--profile-memory", outer, *options
            )
            self.assertEqual(code, 0, stderr)
            self.assertRegex(stderr, r"(?m)^inner .*? 64\.\d+ MiB +1$")
            self.assertEqual(sorted(os.listdir(self.folder)), ["inner.py", "outer.py"])

    def test_a_library_that_is_missing(self):
        script = self.write("script.py", "print('ran')")
        copy = os.path.join(self.folder, "libprof.so.0")
        shutil.copy(os.path.join(os.path.dirname(self.library), "libprof.so.0"), copy)
        words = ("-m", "prof", "run", "--profile-memory", script)
        if not os.path.exists(os.path.join(os.path.dirname(prof.__file__), "lib", "prof")):
            code, stdout, stderr = self.python(*words, PROF_LIBRARY=copy, PATH="/nonexistent")
            self.assertEqual((code, stdout), (125, ""))
            self.assertRegex(stderr, "^prof: no prof command, .* not beside libprof.so ")
        os.symlink(_import.command(), os.path.join(self.folder, "prof"))
        code, stdout, stderr = self.python(*words, PROF_LIBRARY=copy)
        self.assertEqual((code, stdout), (125, ""))
        self.assertRegex(
            stderr,
            r"^prof: --memory: .*libprof_memory.so is not beside the libprof.so in use",
        )

    def test_a_path_that_cannot_be_preloaded(self):
        script = self.write("script.py", "print('ran')")
        place = os.path.join(self.folder, "a b")
        os.mkdir(place)
        for name in ("libprof.so.0", "libprof_memory.so"):
            shutil.copy(os.path.join(os.path.dirname(self.library), name), place)
        os.symlink(_import.command(), os.path.join(place, "prof"))
        code, stdout, stderr = self.python(
            "-m",
            "prof",
            "run",
            "--profile-memory",
            script,
            PROF_LIBRARY=os.path.join(place, "libprof.so.0"),
        )
        self.assertEqual((code, stdout), (125, ""))
        self.assertRegex(
            stderr,
            r"^prof: --memory: LD_PRELOAD takes no path with a blank or a colon, and "
            r"libprof_memory.so is /.*a b/libprof_memory.so\n$",
        )


class EmptyTable(Case):
    def test_it_says_how_operators_are_seen(self):
        code = (
            "import prof\nwith prof.profile() as p: pass\nprint(repr(p.key_averages().table()))\n"
        )
        self.assertEqual(self.python("-c", code), (0, "''\n", ""))
        self.write("torch/__init__.py", "")
        _, stdout, stderr = self.python("-c", "import torch\n" + code)
        self.assertEqual(stderr, "")
        self.assertRegex(
            stdout,
            r"^.No scopes: .*prof.profile\(torch=True\), .*prof.torch.observe\(\), .*python -m "
            r"prof run --torch",
        )
        range_ = "prof.record_function('x').__enter__().__exit__(None, None, None)"
        inside = code.replace("pass", range_)
        hint = "PyTorch's operators are not among these: prof.profile(torch=True) has them"
        stdout = self.python("-c", "import torch\n" + inside)[1]
        self.assertNotIn("No scopes", stdout)
        self.assertIn(hint, stdout)
        self.assertNotIn(hint, self.python("-c", inside)[1])  # without torch
        operator = range_.replace("prof.record_function('x')", "prof.scope('x', 'cpu_op')")
        seen = code.replace("pass", operator)
        self.assertNotIn(hint, self.python("-c", "import torch\n" + seen)[1])


if __name__ == "__main__":
    unittest.main()
