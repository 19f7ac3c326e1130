"""Functions that prof calls itself are not recorded while functions are traced. Functions that the
program calls by way of prof are."""

import collections
import fractions
import os
import subprocess
import sys
import tempfile
import threading
import unittest

from hang_guard import HANG_SECONDS

import prof
from prof import _torch_calls, op_profiler

MODULE = __name__
FUNCTIONS = ("python_function", "c_function", "import")


# Frames of prof in each other, more than one block has room for. A name in <> is taken for the
# module's.
DEEP = """
import prof
space = {"__name__": "prof.deep"}
source = "def deep(count, run): return deep(count - 1, run) if count else run()"
exec(compile(source, "<deep>", "exec"), space)
def after(): pass
with prof.profile():
    tracing = prof.trace_functions()
    space["deep"](700, tracing.start)
    after()
    tracing.stop()
with prof.Trace.now() as trace:
    print(*[e.name for e in trace.events() if e.category == "python_function"])
"""


# prof.op_profiler and what it needs are imported while functions are traced.
FINDER = """
import sys, prof
class Finder:
    def find_spec(self, name, path=None, target=None):
        return seen.append(name)
def run():
    prof.op_profiler
seen = []
sys.meta_path.insert(0, Finder())
with prof.profile() as p, prof.trace_functions():
    seen.clear()
    run()
    met = len(seen)
with prof.Trace.now() as trace:
    names = [
        e.name.rpartition(".")[2] for e in trace.events() if e.category == "python_function"
    ]
print(met, *(name for name in names if name != "find_spec"), names.count("find_spec"))
"""


def schedule(step):
    return prof.ProfilerAction.RECORD_AND_SAVE if step % 2 else prof.ProfilerAction.RECORD


def ready(p):
    """Reads the results while functions are traced."""
    p.key_averages(group_by_input_shape=True).table()
    p.events()
    p.export_chrome_trace(f"{FunctionsOfProf.folder}/trace.json")
    p.export_stacks(f"{FunctionsOfProf.folder}/stacks.txt")


class Shown:
    def __str__(self):
        return "shown"


class Number:
    def __float__(self):
        return float(fractions.Fraction(1, 2))


class Text:
    def __init__(self):
        self.text = "shown"

    def __str__(self):
        return os.path.join(self.text, "more")


@prof.scope("decorated")
def decorated():
    return Shown()


def scopes():
    with prof.record_function("range", "args"):
        pass
    with prof.scope("made", x=Shown(), _shapes=[[1, 2]]):
        pass
    prof.counter("count", 1)
    prof.instant("moment", shown=Shown())
    decorated()

    @prof.scope("late")
    def late():
        pass

    late()
    prof.health()


def steps():
    """Two cycles of two steps, and what is left."""
    with prof.profile(schedule=schedule, on_trace_ready=ready, with_stack=True) as p:
        for _ in range(5):
            scopes()
            p.step()


@unittest.skipUnless(sys.implementation.name == "cpython", "functions are traced in CPython alone")
class FunctionsOfProf(unittest.TestCase):
    folder = ""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.folder = folder.name
        cls.addClassCleanup(folder.cleanup)

    def recorded(self, run, **options):
        """Category and name of each function that has run, without the module."""
        prof.profiler.clear()
        with prof.profile(), prof.trace_functions(**options):
            run()
        with prof.Trace.now() as trace:
            found = [(e.category, e.name) for e in trace.events() if e.category in FUNCTIONS]
        return [(category, name.replace(f"{MODULE}.", "")) for category, name in found]

    def everything(self, run):
        return self.recorded(run, standard_library=True, c_functions=True)

    def test_scopes_marks_and_decorators(self):
        found = self.everything(scopes)
        self.assertEqual({kind for kind, _ in found}, {"python_function"})
        names = [name.rpartition(".")[2] for _, name in found]
        self.assertEqual(sorted(names), ["__str__", "__str__", "decorated", "late", "scopes"])

    def test_steps_schedules_and_results(self):
        found = self.everything(steps)
        self.assertEqual({kind for kind, _ in found}, {"python_function"})
        names = [name.rpartition(".")[2] for _, name in found]
        counts = {name: names.count(name) for name in names}
        of_scopes = {"__str__": 10, "decorated": 5, "late": 5, "scopes": 5}
        self.assertEqual(counts, {"steps": 1, "schedule": 6, "ready": 3, **of_scopes})

    def test_a_profile_in_a_traced_program_adds_none(self):
        def run():
            with prof.profile(with_stack=True, experimental_config={"verbose": True}) as p:
                pass
            p.key_averages().table()
            p.events()
            prof.supported_activities()

        found = [name for _, name in self.everything(run)]
        self.assertEqual([name.rpartition(".")[2] for name in found], ["run"])

    def test_a_tracing_that_begins_and_ends_adds_none(self):
        prof.profiler.clear()
        with prof.profile(with_stack=True):
            with prof.trace_functions(
                "*", "nothing.*", standard_library=True, c_functions=True, imports=True
            ):
                pass
        with prof.Trace.now() as trace:
            names = {e.name for e in trace.events() if e.category in FUNCTIONS}
        whose = {"fnmatch", "ctypes", "namedtuple_Counts", "atexit", "enum", "threading"}
        self.assertEqual({name for name in names if name.split(".")[0] in whose}, set())

    def test_a_tracing_that_begins_below_hundreds_of_frames_of_prof(self):
        """Freed memory has other bytes, so that a use of it is seen."""
        done = subprocess.run(
            [sys.executable, "-c", DEEP],
            env={**os.environ, "MALLOC_PERTURB_": "165"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.split(), [b"after"])

    def test_what_the_program_calls_by_way_of_prof_is_recorded(self):
        def run():
            prof.scope("decorated")(os.path.join)("a", "b")
            list(prof.scope("steps")(os.walk)(""))
            with prof.scope("made", text=Text()):
                pass

        found = self.everything(run)
        names = [name for _, name in found]
        path = os.path.__name__
        self.assertEqual(names.count(f"{path}.join"), 2)  # and of Text
        self.assertIn(("c_function", "posix.fspath"), found)
        self.assertTrue({"os.walk", "os._walk"} & set(names), names)

    def test_code_that_is_left_out_between_prof_and_a_function_that_is_not(self):
        def handler(_):
            os.path.join("a", "b")

        def run():
            with prof.profile(on_trace_ready=handler):
                pass

        path = os.path.__name__
        found = self.recorded(run, include=path)
        self.assertEqual(found.count(("python_function", f"{path}.join")), 1)

    def test_texts_of_objects_that_are_not_the_programs(self):
        half, ordered = (
            fractions.Fraction(1, 2),
            collections.OrderedDict(a=collections.Counter(b=1)),
        )

        def run():
            with prof.scope("made", half=half, ordered=ordered, error=OSError(1, "text", "name")):
                pass
            prof.instant("moment", ordered=ordered)
            prof.counter("count", half)

        for options in (
            {"standard_library": True, "c_functions": True},
            {"include": ("fractions", "collections"), "c_functions": True},
        ):
            names = [name.rpartition(".")[2] for _, name in self.recorded(run, **options)]
            self.assertEqual(names, ["run"] if "include" not in options else [], options)

    def test_texts_of_the_programs_objects_in_others(self):
        def run():
            with prof.scope("made", several=[Shown(), Text()]):
                pass
            prof.counter("count", Number())

        class Shown:
            def __repr__(self):
                return os.path.join("a", "b")

        names = [name.rpartition(".")[2] for _, name in self.everything(run)]
        self.assertEqual(names.count("__repr__"), 1)
        self.assertEqual(names.count("join"), 1)
        self.assertEqual(names.count("__float__"), 2)  # of the Fraction that it makes, too

    def test_a_number_within_a_text(self):
        half = fractions.Fraction(1, 2)

        class Nested:
            def __repr__(self):
                prof.counter("inner", half)
                return "nested"

        def run():
            with prof.scope("outer", several=[Nested(), half]):
                pass

        self.assertEqual(self.recorded(run, include="fractions"), [])

    def test_what_follows_a_text_is_recorded(self):
        def run():
            with prof.scope("made", half=fractions.Fraction(1, 2)):
                str(fractions.Fraction(1, 2))
            str(fractions.Fraction(1, 2))

        names = [name.rpartition(".")[2] for _, name in self.everything(run)]
        self.assertEqual(names.count("__str__"), 2, names)

    def test_a_function_of_an_op(self):
        def run():
            device = prof.Device("cpu")
            op_profiler.profile(
                op_profiler.Op(os.path.basename, "a/b"), device, repeat=1, time_limit_s=0.01
            )

        names = [name for _, name in self.everything(run)]
        path = os.path.__name__
        self.assertGreaterEqual(names.count(f"{path}.basename"), 1)
        self.assertIn("posix.fspath", names)
        self.assertFalse([name for name in names if name.startswith(("contextlib.", "functools."))])

    def test_a_finder_of_the_program_while_prof_imports(self):
        done = subprocess.run(
            [sys.executable, "-c", FINDER],
            stdout=subprocess.PIPE,
            timeout=HANG_SECONDS,
            check=True,
        )
        met, *others, recorded = done.stdout.decode().split()
        self.assertEqual((recorded, others), (met, ["run"]))
        self.assertGreater(int(met), 0)

    def test_a_thread_of_prof(self):
        """Nothing on it is the program's: torch runs any library there."""
        done = []

        def prove():
            os.path.join("a", "b")
            done.append(fractions.Fraction(1, 2))

        def run():
            _torch_calls.apart(prove)

        self.assertEqual([name.rpartition(".")[2] for _, name in self.everything(run)], ["run"])
        self.assertEqual(len(done), 1)

    def test_a_thread_that_prof_does_not_begin(self):
        def run():
            with prof.scope("around"):
                thread = threading.Thread(target=lambda: os.path.join("a", "b"))
                thread.start()
                thread.join()

        self.assertIn(f"{os.path.__name__}.join", [name for _, name in self.everything(run)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
