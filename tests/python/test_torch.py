"""prof.torch without torch: what observe() says where torch is absent, too old, without ITT, or where another listens. test_observe.py has the real one."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import prof

VARIABLE = "INTEL_LIBITTNOTIFY64"
ASK = """
import prof
try:
    prof.torch.observe().start()
except Exception as e:
    print(type(e).__name__, e)
"""


class Torch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prof-torch-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, path, text=""):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def run_code(self, code, **variables):
        environment = {k: v for k, v in os.environ.items() if k != VARIABLE}
        environment["PYTHONPATH"] = os.pathsep.join([self.folder, *filter(None, [environment.get("PYTHONPATH")])])
        done = subprocess.run([sys.executable, "-c", code], env={**environment, **variables}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def make_torch(self, version, has_itt=None):
        self.write("torch/__init__.py", f"__version__ = {version!r}\n" + ("from . import autograd, profiler\n" if has_itt is not None else ""))
        if has_itt is None:
            return
        self.write("torch/autograd/__init__.py")
        self.write("torch/autograd/profiler.py", "class emit_itt: pass\n")
        self.write("torch/profiler/__init__.py", "from . import itt\n")
        self.write("torch/profiler/itt.py", f"def is_available(): return {has_itt}\ndef mark(text): pass\n")

    def test_import_prof_imports_no_torch(self):
        self.make_torch("0")
        self.assertEqual(self.run_code("import inspect, prof, sys; from prof import *; inspect.getmembers(prof); print('torch' in sys.modules)"), "False")
        self.assertEqual(self.run_code("import prof.torch, sys; print('torch' in sys.modules)"), "True")

    def test_absent(self):
        self.assertRegex(self.run_code("import sys; sys.modules['torch'] = None" + ASK), r"^ImportError prof: torch cannot be imported: .*pip install torch")

    def test_broken(self):
        self.write("torch/__init__.py", "raise ImportError('libsomething.so: cannot open')")
        self.assertRegex(self.run_code(ASK), r"^ImportError prof: torch cannot be imported: libsomething.so: cannot open")

    def test_too_old(self):
        self.make_torch("1.9.0")
        self.assertRegex(self.run_code(ASK), r"^RuntimeError prof: torch 1.9.0 has no ITT.*torch 1.13 or later")

    def test_without_itt(self):
        self.make_torch("2.9.0", False)
        self.assertRegex(self.run_code(ASK), r"^RuntimeError prof: torch 2.9.0 has no ITT.*x86-64")

    def test_itt_that_does_not_come(self):
        self.make_torch("9.0", True)
        self.assertRegex(self.run_code(ASK), r"^RuntimeError prof: torch 9.0 did not take /.*libprof_itt.so")
        self.assertRegex(self.run_code("import torch\n" + ASK), r"^RuntimeError prof: torch was imported before prof.torch")

    def test_another_collector(self):
        self.make_torch("9.0", True)
        self.assertRegex(self.run_code(ASK, **{VARIABLE: "/opt/vtune/collector.so"}), r"^RuntimeError prof: INTEL_LIBITTNOTIFY64 names another collector, '/opt/vtune/collector.so'.*start the program without it")

    def test_the_collector_is_missing(self):
        copy = os.path.join(self.folder, "libprof.so.0")
        shutil.copy(os.path.join(os.path.dirname(prof.torch.collector()), "libprof.so.0"), copy)
        self.assertRegex(self.run_code(ASK, PROF_LIBRARY=copy), r"^FileNotFoundError prof: libprof_itt.so is not beside the libprof.so in use")

    def test_another_copy_of_prof(self):
        beside = prof.torch.collector()
        shutil.copy(os.path.join(os.path.dirname(beside), "libprof.so.0"), os.path.join(self.folder, "another.so"))
        shutil.copy(beside, self.folder)
        code = f"import ctypes; ctypes.CDLL({os.path.join(os.path.dirname(beside), 'libprof.so.0')!r})\nimport warnings; warnings.simplefilter('ignore')" + ASK
        self.assertRegex(self.run_code(code, PROF_LIBRARY=os.path.join(self.folder, "another.so")), r"^RuntimeError prof: /.* records into another copy of libprof.so")

    def test_the_environment_is_as_before(self):
        self.make_torch("9.0", True)
        code = "import os, prof; prof.torch; print(os.environ.get('INTEL_LIBITTNOTIFY64'))"
        self.assertEqual(self.run_code(code), "None")
        path = prof.torch.collector()
        self.assertEqual(self.run_code(code, **{VARIABLE: path}), path)

    def test_the_callbacks_without_torch(self):
        code = "import ctypes, prof; from prof.torch import _beside; opened = ctypes.CDLL(_beside('libprof_torch.so')); opened.prof_i_torch_open_1.restype = ctypes.c_char_p; print(opened.prof_i_torch_open_1().decode())"
        self.make_torch("9.0", True)
        self.assertEqual(self.run_code(code), "libtorch_cpu.so is not there")

    def test_neither_way(self):
        self.make_torch("2.9.0", False)
        self.assertRegex(self.run_code(ASK), r"has no ITT.*The dispatcher's callbacks, which need no ITT, are not to be had: .*libtorch_cpu.so is not there")

    def test_the_collector_opens_alone(self):
        self.assertTrue(ctypes.CDLL(prof.torch.collector()).prof_i_itt_seen_1() in (0, 1))


if __name__ == "__main__":
    unittest.main()
