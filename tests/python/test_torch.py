"""prof.torch without torch: what observe() says where torch is absent, too old, without ITT, or
where another listens. test_observe.py has the real one."""

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
        environment["PYTHONPATH"] = os.pathsep.join(
            [self.folder, *filter(None, [environment.get("PYTHONPATH")])]
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, **variables},
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def make_torch(self, version, has_itt=None):
        self.write(
            "torch/__init__.py",
            f"__version__ = {version!r}\n"
            + ("from . import autograd, profiler\n" if has_itt is not None else ""),
        )
        if has_itt is None:
            return
        self.write("torch/autograd/__init__.py")
        self.write("torch/autograd/profiler.py", "class emit_itt: pass\n")
        self.write("torch/profiler/__init__.py", "from . import itt\n")
        self.write(
            "torch/profiler/itt.py", f"def is_available(): return {has_itt}\ndef mark(text): pass\n"
        )

    def test_import_prof_imports_no_torch(self):
        self.make_torch("0")
        self.assertEqual(
            self.run_code(
                "import inspect, prof, sys; from prof import *; inspect.getmembers(prof); "
                "print('torch' in sys.modules)"
            ),
            "False",
        )
        self.assertEqual(
            self.run_code("import prof.torch, sys; print('torch' in sys.modules)"), "True"
        )

    def test_names_of_torch_profiler(self):
        """They are there without torch, but for record_function, which is torch's own."""
        code = """
from prof.torch import ProfilerAction, ProfilerActivity, profile, schedule
from prof.torch import tensorboard_trace_handler
print(schedule(wait=0, warmup=1, active=1)(1) is ProfilerAction.RECORD_AND_SAVE)
try:
    profile()
except ImportError as e:
    print(e)
try:
    from prof.torch import record_function
    print(record_function)
except ImportError as e:
    print(e)
"""
        absent = "import sys; sys.modules['torch'] = None" + code
        lines = self.run_code(absent).splitlines()
        self.assertEqual(lines[0], "True")
        self.assertRegex(lines[1], "^prof: torch cannot be imported: .*pip install torch")
        self.assertRegex(lines[2], "^cannot import name 'record_function' from 'prof.torch'")
        self.make_torch("1", True)
        self.write("torch/autograd/profiler.py", "class emit_itt: pass\nrecord_function = 'own'\n")
        self.assertEqual(self.run_code(code).splitlines()[-1], "own")

    def test_absent(self):
        self.assertRegex(
            self.run_code("import sys; sys.modules['torch'] = None" + ASK),
            r"^ImportError prof: torch cannot be imported: .*pip install torch",
        )

    def test_broken(self):
        self.write("torch/__init__.py", "raise ImportError('libsomething.so: cannot open')")
        self.assertRegex(
            self.run_code(ASK),
            r"^ImportError prof: torch cannot be imported: libsomething.so: cannot open",
        )

    def test_too_old(self):
        self.make_torch("1.9.0")
        self.assertRegex(
            self.run_code(ASK), r"^RuntimeError prof: torch 1.9.0 has no ITT.*torch 1.13 or later"
        )

    def test_without_itt(self):
        self.make_torch("2.9.0", False)
        self.assertRegex(self.run_code(ASK), r"^RuntimeError prof: torch 2.9.0 has no ITT.*x86-64")

    def test_itt_that_does_not_come(self):
        self.make_torch("9.0", True)
        self.assertRegex(
            self.run_code(ASK), r"^RuntimeError prof: torch 9.0 did not take /.*libprof_itt.so"
        )
        self.assertRegex(
            self.run_code("import torch\n" + ASK),
            r"^RuntimeError prof: torch was imported before prof.torch",
        )

    def test_another_collector(self):
        self.make_torch("9.0", True)
        self.assertRegex(
            self.run_code(ASK, **{VARIABLE: "/opt/vtune/collector.so"}),
            r"^RuntimeError prof: INTEL_LIBITTNOTIFY64 names another collector, "
            r"'/opt/vtune/collector.so'.*start the program without it",
        )

    def test_the_collector_is_missing(self):
        copy = os.path.join(self.folder, "libprof.so.0")
        shutil.copy(os.path.join(os.path.dirname(prof.torch.collector()), "libprof.so.0"), copy)
        self.assertRegex(
            self.run_code(ASK, PROF_LIBRARY=copy),
            r"^FileNotFoundError prof: libprof_itt.so is not beside the libprof.so in use",
        )

    def test_another_copy_of_prof(self):
        beside = prof.torch.collector()
        shutil.copy(
            os.path.join(os.path.dirname(beside), "libprof.so.0"),
            os.path.join(self.folder, "another.so"),
        )
        shutil.copy(beside, self.folder)
        code = (
            f"import ctypes; "
            f"ctypes.CDLL({os.path.join(os.path.dirname(beside), 'libprof.so.0')!r})\n"
            f"import warnings; warnings.simplefilter('ignore')" + ASK
        )
        self.assertRegex(
            self.run_code(code, PROF_LIBRARY=os.path.join(self.folder, "another.so")),
            r"^RuntimeError prof: /.* records into another copy of libprof.so",
        )

    def test_the_environment_is_as_before(self):
        self.make_torch("9.0", True)
        code = "import os, prof; prof.torch; print(os.environ.get('INTEL_LIBITTNOTIFY64'))"
        self.assertEqual(self.run_code(code), "None")
        path = prof.torch.collector()
        self.assertEqual(self.run_code(code, **{VARIABLE: path}), path)

    def test_the_callbacks_without_torch(self):
        code = (
            "import ctypes, prof; from prof._torch_found import beside; opened = "
            "ctypes.CDLL(beside('libprof_torch.so')); opened.prof_i_torch_open_1.restype = "
            "ctypes.c_char_p; print(opened.prof_i_torch_open_1().decode())"
        )
        self.make_torch("9.0", True)
        self.assertEqual(self.run_code(code), "libtorch_cpu.so is not there")

    def test_neither_way(self):
        self.make_torch("2.9.0", False)
        self.assertRegex(
            self.run_code(ASK),
            r"has no ITT.*The dispatcher's callbacks, which need no ITT, are not to be had: "
            r".*libtorch_cpu.so is not there",
        )

    def test_a_profile_says_what_observe_says(self):
        ask = (
            "\nimport prof\np = prof.profile(torch=True)\ntry:\n    p.start()\n"
            "except Exception as e:\n    print(type(e).__name__, e)\n"
            "with prof.profile() as q: pass\nprint(len(q.events()), prof.health().level)\n"
        )
        for setting, words in (
            (
                "import sys; sys.modules['torch'] = None",
                "ImportError prof: torch cannot be imported",
            ),
            ("import torch", "RuntimeError prof: torch was imported before prof.torch"),
        ):
            self.make_torch("9.0", True)
            said = self.run_code(setting + ask)
            self.assertRegex(said, f"^{words}")
            self.assertEqual(said.splitlines()[-1], "0 0")

    STAND_IN = """
import contextlib, os, types, warnings, prof
import prof.torch as t
warnings.simplefilter("ignore")  # a fork beside other threads is one, from Python 3.12 on
HANG_SECONDS = int(os.environ.get("PROF_TEST_HANG_SECONDS") or 300)
log = []
class emit_itt:
    on = False
    def __enter__(self): log.append("on"); emit_itt.on = True
    def __exit__(self, *error): log.append("off"); emit_itt.on = False
profiler = types.SimpleNamespace(emit_itt=emit_itt)
autograd = types.SimpleNamespace(_profiler_enabled=lambda: emit_itt.on, profiler=profiler)
t._torch.module = types.SimpleNamespace(__version__="9", autograd=autograd)
t._torch.error = None
"""

    def test_a_profile_observes_while_its_schedule_is_active(self):
        self.make_torch("9.0", True)
        code = (
            "p = prof.profile(torch=True, schedule=prof.schedule(wait=1, warmup=1, active=1, "
            "repeat=2))\nwith p:\n    for _ in range(6):\n"
            "        log.append(p.current_action.name)\n        p.step()\nprint(*log)"
        )
        self.assertEqual(
            self.run_code(self.STAND_IN + code),
            "NONE WARMUP on RECORD_AND_SAVE off NONE WARMUP on RECORD_AND_SAVE off",
        )

    def test_a_profile_that_could_not_begin_leaves_nothing_on(self):
        self.make_torch("9.0", True)
        code = (
            "emit_itt.on = True\np = prof.profile(torch=True)\ntry: p.start()\n"
            "except RuntimeError as e: print(str(e)[:27], prof.health().level)\n"
            "emit_itt.on = False\nwith p: print(log, prof.health().level)\n"
            "print(log, prof.health().level)"
        )
        self.assertEqual(
            self.run_code(self.STAND_IN + code).splitlines(),
            ["a profiler of torch's is on 0", "['on'] 1", "['on', 'off'] 0"],
        )

    def in_a_thread_that_python_did_not_begin(self, code):
        """threading knows it as little as one that C began."""
        body = "".join(f"    {line}\n" for line in code.splitlines())
        return self.run_code(
            f"{self.STAND_IN}\nimport _thread, os, threading\n"
            f"over = _thread.allocate_lock()\nover.acquire()\n"
            f"def work():\n{body}    over.release()\n"
            f"_thread.start_new_thread(work, ())\n"
            f"if not over.acquire(timeout=HANG_SECONDS): raise SystemExit('it takes too long')\n"
        )

    def test_a_fork_on_a_thread_that_python_did_not_begin(self):
        """It is the child's one thread: what it has begun ends there as in its parent."""
        self.make_torch("9.0", True)
        code = (
            "o = t.observe().start()\nchild = os.fork()\nif child == 0:\n    o.stop()\n"
            "    o.start().stop()\n    print('child', log, flush=True)\n    os._exit(0)\n"
            "os.waitpid(child, 0)\no.stop()\nprint('parent', log, flush=True)"
        )
        self.assertEqual(
            self.in_a_thread_that_python_did_not_begin(code).splitlines(),
            ["child ['on', 'off', 'on', 'off']", "parent ['on', 'off']"],
        )

    def test_a_fork_on_another_thread_than_the_one_that_python_did_not_begin(self):
        """In the child that one is gone, and torch's state with it."""
        self.make_torch("9.0", True)
        code = """
import _thread, os
o, begun, forked, over = t.observe(), *(_thread.allocate_lock() for _ in range(3))
for lock in (begun, forked, over): lock.acquire()
def work():
    o.start(); begun.release()
    if forked.acquire(timeout=HANG_SECONDS): o.stop()
    over.release()
_thread.start_new_thread(work, ())
begun.acquire(timeout=HANG_SECONDS)
child = os.fork()
if child == 0:
    o.stop(); print("child", log, flush=True); os._exit(0)
os.waitpid(child, 0)
forked.release(); over.acquire(timeout=HANG_SECONDS)
print("parent", log)
"""
        self.assertEqual(
            self.run_code(self.STAND_IN + code).splitlines(),
            ["child ['on']", "parent ['on', 'off']"],
        )

    def test_a_thread_that_python_did_not_begin_stays_unknown_to_it(self):
        """threading.current_thread() makes a dummy of it, which threading.enumerate() has, up to
        Python 3.12 for good."""
        self.make_torch("9.0", True)
        code = (
            "with t.observe(): pass\nwith prof.profile(torch=True): pass\n"
            "print([thread.name for thread in threading.enumerate()], log, flush=True)"
        )
        self.assertEqual(
            self.in_a_thread_that_python_did_not_begin(code),
            "['MainThread'] ['on', 'off', 'on', 'off']",
        )

    def test_what_nobody_stops_ends_with_the_program(self):
        """The main thread is not alive then, as threading has it, and can end it all the same."""
        self.make_torch("9.0", True)
        self.assertEqual(
            self.run_code(
                self.STAND_IN
                + "import atexit\natexit.register(lambda: print(log))\no = t.observe().start()"
            ),
            "['on', 'off']",
        )

    @unittest.skipUnless(
        sys.implementation.name == "cpython", "functions are traced in CPython alone"
    )
    def test_stacks_trace_functions_while_it_observes(self):
        self.make_torch("9.0", True)
        code = (
            "import prof.functions as f\np = prof.profile(torch=True, with_stack=True)\n"
            "print(f.is_traced())\nwith p:\n    print(f.is_traced())\n"
            "print(f.is_traced(), [a.key for a in p.key_averages()])"
        )
        self.assertEqual(self.run_code(self.STAND_IN + code), "False\nTrue\nFalse []")

    @unittest.skipIf(sys.implementation.name == "cpython", "CPython has them")
    def test_stacks_where_functions_cannot_be_traced(self):
        self.make_torch("9.0", True)
        code = (
            "p = prof.profile(torch=True, with_stack=True)\ntry: p.start()\n"
            "except NotImplementedError as e: print(e, log, prof.health().level)"
        )
        self.assertRegex(
            self.run_code(self.STAND_IN + code),
            r"^functions are traced through CPython's interface.* \[\] 0$",
        )

    def test_the_collector_opens_alone(self):
        self.assertTrue(ctypes.CDLL(prof.torch.collector()).prof_i_itt_seen_1() in (0, 1))


if __name__ == "__main__":
    unittest.main()
