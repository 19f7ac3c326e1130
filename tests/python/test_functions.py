"""Every Python function seen: the same calls as independent counts have, nested as they were, on
all threads; what is left out; whatever else wants the interpreter's place for profilers."""

import asyncio
import cProfile
import gc
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

from hang_guard import HANG_SECONDS

import prof

HERE = os.path.abspath(__file__)


MODULE = __name__


is_traced = sys.implementation.name == "cpython"


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def numbers(n):
    for i in range(n):
        yield i


def delegating(n):
    yield from numbers(n)
    yield from numbers(n)


def raising(n):
    if n:
        raising(n - 1)
    raise ValueError(n)


class Thing:
    def method(self):
        return [self.inner(i) for i in range(3)]

    def inner(self, i):
        return (lambda: i)()

    @staticmethod
    def static():
        return sum(i for i in range(4))


def swallow(n):
    try:
        raising(n)
    except ValueError:
        pass


def deep(n):
    return n and deep(n - 1)


async def step(n):
    for _ in range(n):
        await asyncio.sleep(0)
    return n


async def tasks():
    return await asyncio.gather(*(step(n) for n in (3, 1, 2)))


def work():
    fib(12)
    list(delegating(5))
    unfinished = numbers(10)
    next(unfinished)
    next(unfinished)
    swallow(4)
    for _ in range(20):
        Thing().method()
    Thing.static()
    deep(200)
    eval("fib(3)")


def counted_by_setprofile(run):
    """By code object, in pure Python."""
    counts = {}

    def count(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename in (HERE, "<string>"):
            counts[code] = counts.get(code, 0) + 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return by_name(counts)


def by_name(counts):
    named = {}
    for code, count in counts.items():
        name = f"{MODULE}.{getattr(code, 'co_qualname', code.co_name)}"
        named[name] = named.get(name, 0) + count
    return named


def events_of(run, **options):
    prof.profiler.clear()
    with prof.profile(**options.pop("profile", {})):
        with prof.trace_functions(**options):
            run()
    return [e for e in prof.Trace.now().events() if e.category == "python_function"]


def counts_of(run, **options):
    counts = {}
    for e in events_of(run, **options):
        counts[e.name] = counts.get(e.name, 0) + 1
    return counts


def short(name):
    return name.rpartition(".")[2]


def run_python(text, **more):
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=HANG_SECONDS, **more
    )


class Balance(unittest.TestCase):
    def assert_nested(self, events):
        """On each thread every two scopes lie apart or one inside the other, and all have ended."""
        for thread in {e.thread for e in events}:
            open_ends = []
            for e in sorted(
                (e for e in events if e.thread == thread),
                key=lambda e: (e.start_ns, -e.duration_ns),
            ):
                while open_ends and open_ends[-1] <= e.start_ns:
                    open_ends.pop()
                end = e.start_ns + e.duration_ns
                self.assertTrue(
                    not open_ends or end <= open_ends[-1], f"{e.name} leaves what it began in"
                )
                self.assertEqual(e.kind, "scope", e.name)
                open_ends.append(end)


@unittest.skipUnless(is_traced, "functions are traced in CPython alone")
class Counts(Balance):
    def test_the_same_calls_as_a_profile_function_in_python_counts(self):
        expected = counted_by_setprofile(work)
        events = events_of(work)
        counts = {}
        for e in events:
            counts[e.name] = counts.get(e.name, 0) + 1
        self.assertEqual(counts, expected)
        self.assertEqual(counts[f"{MODULE}.fib"], 465 + 5)
        self.assert_nested(events)

    def test_the_same_calls_as_cprofile_counts(self):
        profiler = cProfile.Profile()
        profiler.enable()
        work()
        profiler.disable()
        expected = {}
        for entry in profiler.getstats():
            if not isinstance(entry.code, str) and entry.code.co_filename in (HERE, "<string>"):
                expected[entry.code] = entry.callcount
        self.assertEqual(counts_of(work), by_name(expected))

    def test_a_second_time_the_same(self):
        self.assertEqual(counts_of(work), counts_of(work))

    def test_threads_new_and_old(self):
        begin, end = threading.Event(), threading.Event()

        def waits():
            begin.wait(HANG_SECONDS)
            fib(10)
            end.set()

        old = threading.Thread(target=waits)
        old.start()

        def run():
            new = [threading.Thread(target=fib, args=(10,)) for _ in range(4)]
            for thread in new:
                thread.start()
            begin.set()
            end.wait(HANG_SECONDS)
            for thread in new:
                thread.join()

        events = events_of(run)
        old.join()
        named = [e for e in events if short(e.name) == "fib"]
        self.assertEqual((len(named), len({e.thread for e in named})), (5 * 177, 5))
        self.assert_nested(named)

    def test_tasks(self):
        events = events_of(lambda: asyncio.run(tasks()))
        counts = {}
        for e in events:
            counts[short(e.name)] = counts.get(short(e.name), 0) + 1
        self.assertEqual((counts["step"], counts["tasks"]), (4 + 2 + 3, 2), counts)
        self.assert_nested(events)

    def test_what_is_thrown_into_a_generator(self):
        def takes():
            while True:
                try:
                    yield
                except ValueError:
                    pass

        def run():
            generator = takes()
            next(generator)
            generator.throw(ValueError())
            generator.throw(ValueError())
            try:
                generator.throw(KeyError())
            except KeyError:
                pass
            fib(2)

        events = events_of(run)
        self.assertEqual([short(e.name) for e in events].count("takes"), 4)
        self.assert_nested(events)

    def test_deeper_than_the_recorder_shows_open(self):
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(5000)
        events = [e for e in events_of(lambda: deep(3000)) if short(e.name) == "deep"]
        self.assertEqual(len(events), 3001)
        self.assert_nested(events)

    def test_recursion_without_an_end(self):
        def endless():
            endless()

        def run():
            with self.assertRaises(RecursionError):
                endless()
            fib(2)

        events = events_of(run)
        self.assertGreater([short(e.name) for e in events].count("endless"), 500)
        self.assert_nested(events)

    def test_scopes_stand_inside(self):
        def inside():
            with prof.record_function("scope"):
                fib(1)

        prof.profiler.clear()
        with prof.profile(), prof.trace_functions():
            inside()
        rows = {short(e.name): e for e in prof.Trace.now().events()}
        self.assertLessEqual(rows["inside"].start_ns, rows["scope"].start_ns)
        self.assertLessEqual(rows["scope"].start_ns, rows["fib"].start_ns)
        self.assert_nested([rows[name] for name in ("inside", "scope", "fib")])

    def test_begun_and_ended_in_the_midst_of_calls(self):
        tracing = prof.trace_functions()

        def begins(n):
            return begins(n - 1) if n else tracing.start()

        def ends(n):
            return ends(n - 1) if n else tracing.stop()

        with prof.profile():
            prof.profiler.clear()
            begins(3)
            fib(3)
            ends(3)
            fib(3)
        events = [e for e in prof.Trace.now().events() if e.category == "python_function"]
        self.assertEqual(
            {n: [short(e.name) for e in events].count(n) for n in ("begins", "fib", "ends")},
            {"begins": 0, "fib": 5, "ends": 4},
        )
        self.assert_nested(events)

    def test_what_runs_on_another_thread_when_it_ends(self):
        """It stays open until its thread runs in the next tracing, and disturbs nothing there."""
        inside, go, between, again = (threading.Event() for _ in range(4))

        def outer():
            inside.set()
            go.wait(HANG_SECONDS)

        def on_thread():
            outer()
            between.set()
            again.wait(HANG_SECONDS)
            fib(3)

        thread = threading.Thread(target=on_thread)
        prof.profiler.clear()
        with prof.profile():
            with prof.trace_functions():
                thread.start()
                inside.wait(HANG_SECONDS)
            go.set()
            between.wait(HANG_SECONDS)
            with prof.trace_functions():
                again.set()
                thread.join()
        trace = prof.Trace.now()
        events = [
            (short(e.name), e.kind)
            for e in trace.events()
            if e.category == "python_function" and short(e.name) in ("outer", "on_thread", "fib")
        ]
        self.assertEqual(
            sorted(events), [("fib", "scope")] * 5 + [("on_thread", "scope"), ("outer", "scope")]
        )
        self.assertIn("no loss", trace.loss_text())

    def test_functions_of_c_as_a_profile_function_counts_them(self):
        pattern = re.compile("a")
        match = pattern.match  # of C, with a defining class

        def run():
            names = []
            pattern.search("a"), match("a"), match("b")
            for i in range(10):
                names.append(str(i))
            ",".join(sorted(names, key=lambda name: -int(name)))
            (
                max(names, key=len),
                dict.fromkeys(names),
                isinstance(names, list),
                list(map(len, names)),
            )
            for call in (lambda: names.index("no"), lambda: [].pop()):
                try:
                    call()
                except (ValueError, IndexError):
                    pass
            textwrap.dedent("x")  # what that calls is not wanted

        expected = {}

        def count(frame, event, called):
            if (
                event == "c_call"
                and frame.f_code.co_filename == HERE
                and isinstance(called, (type(len), type(list.append)))
            ):
                expected[called.__name__] = expected.get(called.__name__, 0) + 1

        sys.setprofile(count)
        run()
        sys.setprofile(None)
        expected.pop("setprofile", None)
        prof.profiler.clear()
        with prof.profile(), prof.trace_functions(c_functions=True):
            run()
        events = list(prof.Trace.now().events())
        counts = {}
        for e in events:
            if e.category == "c_function":
                counts[short(e.name)] = counts.get(short(e.name), 0) + 1
        self.assertEqual(counts, expected)
        self.assertEqual((counts["append"], counts["index"], counts["pop"]), (10, 1, 1))
        self.assertEqual((counts["search"], counts["match"]), (1, 2))
        self.assertIn("list.append", {e.name for e in events})
        self.assert_nested([e for e in events if e.kind == "scope"])
        self.assertNotIn("append", counts_of(run))

    def test_code_that_comes_and_goes(self):
        """Its address is another's then."""

        def run():
            for i in range(300):
                names = {"__name__": "made"}
                exec(f"def f{i}(): pass\nf{i}()", names)
                del names
                if i % 50 == 0:
                    gc.collect()

        counts = counts_of(run)
        self.assertEqual([counts.get(f"made.f{i}") for i in range(300)], [1] * 300)

    def test_where_it_stands(self):
        code = fib.__code__
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.prof")
            events_of(lambda: fib(1))
            prof.Trace.now().dump(path)
            with open(path, "rb") as f:
                self.assertIn(os.path.basename(code.co_filename).encode(), f.read())


FORKS = """
import gc, os, sys, prof
gc.disable()  # a collection would be an event
prof.profiler.start()
def f(n): return n and f(n - 1)
def child(): f(4)
def outer():
    pid = os.fork()
    if pid == 0:
        child()
        return 0
    return os.waitpid(pid, 0)[1]
with prof.trace_functions():
    status = outer()
f(9)
trace = prof.Trace.now()
events = [e.name for e in trace.events() if e.category == "python_function" and e.kind == "scope"]
print(" ".join(sorted(events)), "-", trace.loss_text(), flush=True)
os._exit(status)
"""


class Ends(unittest.TestCase):
    @unittest.skipUnless(is_traced, "functions are traced in CPython alone")
    def test_a_fork_in_the_midst(self):
        done = run_python(FORKS)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(
            sorted(done.stdout.splitlines()),
            ["child f f f f f - 6 recorded; no loss", "outer - 1 recorded; no loss"],
        )

    @unittest.skipUnless(is_traced, "functions are traced in CPython alone")
    def test_ends_of_all_kinds(self):
        begin = (
            "import os, sys, threading, prof\nprof.profiler.start()\n"
            "t = prof.trace_functions(standard_library=True)\nt.start()\n"
            "def f(n): return n and f(n - 1)\n"
        )
        for text, status in (
            ("f(3)", 0),
            ("def g(): sys.exit(3)\ng()", 3),
            ("def g(): os._exit(4)\ng()", 4),
            ("import atexit\natexit.register(f, 5)\nf(2)", 0),
            ("class D:\n    def __del__(self): f(3)\nd = D()\nthreading.local().d = D()", 0),
        ):
            done = run_python(begin + text)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (status, "", ""), text)
        endless = (
            "def forever():\n    while True: f(3)\n"
            "for _ in range(3): threading.Thread(target=forever, daemon=True).start()\nf(100)"
        )
        done = run_python(begin + endless)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @unittest.skipUnless(is_traced, "functions are traced in CPython alone")
    def test_an_interrupt_while_code_is_judged(self):
        text = """
import os, signal, sys, prof
from prof import functions
prof.profiler.start()
def interrupted(*_): raise KeyboardInterrupt
def f(n): return n and f(n - 1)
with prof.trace_functions():
    real = functions._described
    def described(code, module):
        if code.co_name == "f": raise KeyboardInterrupt
        return real(code, module)
    functions._described = described
    for _ in range(2):
        try: f(3)
        except KeyboardInterrupt: print("interrupted")
    functions._described = real
    assert f(3) == 0
print([e.name for e in prof.Trace.now().events()].count("f"))
"""
        done = run_python(text)
        self.assertEqual((done.stdout, done.stderr), ("interrupted\ninterrupted\n4\n", ""))

    @unittest.skipUnless(is_traced, "functions are traced in CPython alone")
    def test_a_handlers_exception_comes_through_and_a_failure_of_profs_does_not(self):
        text = """
import prof
from prof import functions
prof.profiler.start()
def f(n): return n and f(n - 1)
def g(n): return n and g(n - 1)
real, raised = functions._described, []
def described(code, module):
    if code.co_name == "f" and not raised:
        raised.append(1)
        raise TimeoutError
    if code.co_name == "g": raise TypeError
    return real(code, module)
functions._described = described
with prof.trace_functions():
    try: f(3)
    except TimeoutError: print("handled")
    assert f(3) == g(3) == 0
    functions._described = real
    g(2)
names = [e.name for e in prof.Trace.now().events()]
print(names.count("f"), names.count("g"))
"""
        done = run_python(text)
        self.assertEqual((done.stdout, done.stderr), ("handled\n4 3\n", ""))

    @unittest.skipIf(is_traced, "CPython has it")
    def test_another_python_says_so(self):
        with self.assertRaises(NotImplementedError):
            prof.trace_functions().start()

    @unittest.skipUnless(
        is_traced and sys.version_info >= (3, 10),
        "3.9 has one interpreter that can be made to do this",
    )
    def test_another_interpreter_says_so(self):
        text = """
import prof
try: import _interpreters as i
except ImportError: import _xxsubinterpreters as i
with prof.trace_functions(): pass
one = i.create("legacy") if __import__("sys").version_info >= (3, 13) else i.create(isolated=False)
said = (i.exec if hasattr(i, "exec") else i.run_string)(one, '''
import sys
sys.path[:] = %r
import prof
try: prof.trace_functions().start()
except RuntimeError as e: print("refused", e)
''' % __import__("sys").path)
i.destroy(one)
"""
        done = run_python(text)
        self.assertIn("refused functions are traced in one interpreter", done.stdout, done.stderr)
