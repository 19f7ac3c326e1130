"""Scopes of Python and its process: C's type, interpreters that end, forks, memory, imports."""

import json
import os
import subprocess
import sys
import unittest
from unittest import mock

from hang_guard import HANG_SECONDS

import prof
from prof import _scope


@unittest.skipUnless(_scope.is_fast, "this interpreter has not C's type")
class TypeOfC(unittest.TestCase):
    def test_scopes_are_made_by_functions_alone(self):
        for make in (
            prof.Scope,
            lambda: object.__new__(prof.Scope),
            lambda: type(prof.Scope.__dict__["__enter__"])(),
        ):
            with self.assertRaises(TypeError):
                make()

    def test_what_only_says_that_it_is_one_is_not_entered(self):
        with self.assertRaises(TypeError):
            prof.Scope.__enter__(mock.Mock(spec=prof.Scope))


class Processes(unittest.TestCase):
    def test_c_has_made_the_type(self):
        self.assertEqual(_scope.is_fast, sys.implementation.name == "cpython")

    def run_python(self, text, **environment):
        return subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )

    def test_an_interpreter_that_ends_inside_of_a_scope(self):
        done = self.run_python(
            "import prof, os\nfrom prof import profiler\nprofiler.start()\n"
            "s = prof.record_function('open')\ns.__enter__()\n"
            "import signal, threading\nbegun = threading.Event()\ndef begin():\n"
            "    t = prof.record_function('t')\n    t.__enter__()\n    begun.set()\n"
            "    signal.pause()\n"
            "threading.Thread(target=begin, daemon=True).start()\nbegun.wait()\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_forked_child_has_its_own_capture(self):
        done = self.run_python(
            "import os, prof\nfrom prof import profiler\nprofiler.start()\n"
            "with prof.record_function('parent'): pass\n"
            "pid = os.fork()\nif pid == 0:\n    with prof.record_function('child'): pass\n"
            "    names = [e.name for e in prof.Trace.now().events()]\n"
            "    os._exit(0 if names == ['child'] else 1)\n"
            "assert os.waitpid(pid, 0)[1] == 0\n"
            "assert [e.name for e in prof.Trace.now().events()] == ['parent']\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipIf(
        "libasan" in os.environ.get("LD_PRELOAD", ""), "the sanitizer keeps what is freed"
    )
    @unittest.skipUnless(
        os.path.exists("/proc/self/status") and _scope.is_fast,
        "no /proc, or this interpreter has not C's type",
    )
    def test_names_that_are_made_anew_and_come_again_take_no_memory_for_good(self):
        done = self.run_python(
            """
import prof
from prof import profiler

def status():
    with open("/proc/self/status", encoding="ascii") as f:
        lines = [line for line in f if line.startswith(("VmRSS", "VmSize"))]
    return {line.split(":")[0]: int(line.split()[1]) >> 10 for line in lines}

def run(first, last, comings):
    for i in range(first, last):
        scope = prof.record_function(f"anew {comings} {i}")
        for _ in range(comings):
            with scope:
                pass
        if i % 2000 == 0:
            profiler.clear()

profiler.start()
for comings, count in ((2, 200000), (10, 50000)):
    run(0, 10000, comings)  # the tables, a capture, and the sites that names may have
    before = status()
    run(10000, count, comings)
    after = status()
    assert after["VmRSS"] - before["VmRSS"] < 40, (before, after)
    assert after["VmSize"] - before["VmSize"] < 100, (before, after)
profiler.clear()
for _ in range(20):
    with prof.record_function("a constant after them"):
        pass
assert [e.name for e in prof.Trace.now().events()] == ["a constant after them"] * 20
"""
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_import_starts_nothing_and_loads_little(self):
        done = self.run_python(
            "import sys\nbefore = set(sys.modules)\nimport prof\n"
            "assert 'ctypes' not in set(sys.modules) - before, 'ctypes'\nprof.record_function\n"
            "from prof._library import C\nassert C.prof_level() == 0\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_library_that_is_not_there_says_what_to_do(self):
        done = self.run_python(
            "import prof\nprof.record_function", PROF_LIBRARY="/no/such/libprof.so"
        )
        self.assertIn(
            "ImportError: prof: PROF_LIBRARY='/no/such/libprof.so' cannot be opened", done.stderr
        )
        done = self.run_python("import prof\nprof.record_function", PROF_LIBRARY="libc.so.6")
        self.assertIn("is no libprof.so", done.stderr)


class Numbers(unittest.TestCase):
    def test_operators_that_were_called_once_are_numbered(self):
        """The first call of a name has its category in its record alone."""
        with prof.profile() as p:
            with prof.scope("a", "cpu_op"):
                with prof.scope("b", "cpu_op", number=1):
                    pass
            with prof.scope("other", "other"):
                pass
            with prof.scope("c", "cpu_op"):
                pass
        rows = [e for e in json.loads(p.trace.json())["traceEvents"] if e["ph"] == "X"]
        numbers = {e["name"]: e.get("args", {}).get("Ev Idx") for e in rows}
        self.assertEqual(numbers, {"a": 0, "b": 1, "c": 2, "other": None})


if __name__ == "__main__":
    unittest.main()
