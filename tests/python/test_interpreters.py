"""Several interpreters in one process, an interpreter that ends, signals and forks at bad moments:
never a crash, never half a file, never a lost scope."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from hang_guard import HANG_SECONDS

BEGIN = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def create(kind):
    if sys.version_info >= (3, 13):
        return interpreters.create(kind)
    return interpreters.create(isolated=kind == "isolated")

def run(one, text):
    run = interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string
    said = run(one, "import sys; sys.path[:0] = %r\\n" % sys.path + text)
    assert said is None, said

INNER = (
    "import prof\\nfor i in range(1000):\\n"
    "    with prof.record_function('inner'), prof.scope('s', 'c', 1, x=i): pass\\n"
)

def counted(prof):
    counts = {}
    for e in prof.Trace.now().events():
        counts[e.name] = counts.get(e.name, 0) + 1
    return counts
"""
# there an interpreter with a GIL of its own cannot import ctypes
has_ctypes_in_all = sys.version_info[:2] != (3, 12)


def run_python(text, **more):
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=HANG_SECONDS, **more
    )


@unittest.skipUnless(
    sys.implementation.name == "cpython", "this Python has one interpreter a process"
)
class Several(unittest.TestCase):
    def check(self, text):
        done = run_python(BEGIN + text)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_beside_the_first(self):
        for kind in ("legacy", "isolated")[: 2 if has_ctypes_in_all else 1]:
            self.check(
                f"""
import prof
from prof import _scope, profiler
profiler.start()
assert _scope.is_fast
with prof.record_function("outer"):
    one = create({kind!r})
    run(one, INNER + "from prof import _scope; assert not _scope.is_fast")
    interpreters.destroy(one)
    with prof.record_function("after"): pass
assert counted(prof) == dict(outer=1, inner=1000, s=1000, after=1), counted(prof)
"""
            )

    @unittest.skipIf(has_ctypes_in_all, "here ctypes can be imported in every interpreter")
    def test_one_that_cannot_have_ctypes_gets_an_import_error(self):
        done = run_python(BEGIN + "run(create('isolated'), INNER)")
        self.assertIn("ImportError", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_before_the_first(self):
        self.check(
            """
one = create("legacy")
run(one, "from prof import profiler, _scope\\nprofiler.start()\\nassert _scope.is_fast\\n" + INNER)
interpreters.destroy(one)
import prof
from prof import _scope
assert not _scope.is_fast
for _ in range(1000):
    with prof.record_function("outer"): pass
assert counted(prof) == dict(inner=1000, s=1000, outer=1000), counted(prof)
"""
        )

    def test_each_ones_profiles_are_its_own(self):
        self.check(
            """
import prof
one = create("legacy")
def once():
    with prof.profile() as p:
        with prof.record_function("in"): pass
    return p.key_averages()[0].count
assert once() == 1
run(one, "import ctypes")  # it forgets which types of pointers there are, before 3.13
assert once() == 1
run(one, "import prof\\np = prof.profile(level=2)\\np.start()")
with prof.profile() as p:
    with prof.scope("before", "c", 2): pass
    run(one, "p.stop()")
    with prof.scope("after", "c", 1): pass
    with prof.scope("not recorded", "c", 2): pass
assert [a.key for a in p.key_averages()] == ["before", "after"], p.key_averages()
"""
        )

    @unittest.skipUnless(
        sys.version_info >= (3, 13),
        "before 3.13 two interpreters that run at once share one GIL, or have no ctypes",
    )
    def test_at_once(self):
        self.check(
            """
import prof, threading
from prof import profiler
profiler.start()
ones = [create("isolated") for _ in range(3)]
threads = [threading.Thread(target=run, args=(one, INNER)) for one in ones]
for t in threads: t.start()
for _ in range(20000):
    with prof.record_function("outer"), prof.scope("o", x=1): pass
for t in threads: t.join()
for one in ones: interpreters.destroy(one)
assert counted(prof) == dict(inner=3000, s=3000, outer=20000, o=20000), counted(prof)
"""
        )


class Ends(unittest.TestCase):
    def test_threads_that_outlive_the_interpreter(self):
        text = """
import prof, threading, sys
from prof import profiler
profiler.start()
name = "".join(["made", "at run time"])
def forever():
    while True:
        with prof.record_function("constant"), prof.record_function(name):
            with prof.scope("x", "y", 1, n=3):
                pass
for _ in range(3): threading.Thread(target=forever, daemon=True).start()
import time; time.sleep(0.02)
"""
        for _ in range(10):
            done = run_python(text)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_objects_that_are_left_to_the_end(self):
        text = """
import prof
from prof import profiler, op_profiler, memory_profiler
class Late:
    def __del__(self):
        with prof.record_function("late"): pass
profiler.start()
late = Late(); late.itself = late
trace = prof.Trace.now(); cursor = trace.events()
result = op_profiler.profile(int, time_limit_s=0.01)
pool = memory_profiler.Pool("p", "cpu"); pool.reserve(4096, 4096); pool.alloc(4096, 10, 16)
with prof.record_function("x"): pass
p = prof.profile(); p.start(); scope = prof.record_function("open"); scope.__enter__()
import sys; sys.modules["late"] = late
"""
        done = run_python(text)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


@unittest.skipUnless(hasattr(os, "fork"), "no fork")
class Signals(unittest.TestCase):
    RECORD = """
import os, prof, signal, sys, threading, time
from prof import profiler
profiler.start()
for i in range(100000):
    with prof.record_function("x"): pass
def interrupt():
    time.sleep(float(sys.argv[2])); os.kill(os.getpid(), signal.SIGINT)
"""

    def test_an_interrupt_while_a_trace_is_written(self):
        for what in (
            "prof.Trace.now().dump(path)",
            "with_metadata(path)",
            "prof.Trace.now().json()",
        ):
            for delay in (0.0, 0.005):
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "t.json")
                    text = (
                        self.RECORD
                        + f"""
def with_metadata(path):
    with prof.profile() as p:
        with prof.record_function("y"): pass
    p.add_metadata("k", "v"); p.export_chrome_trace(path)
path = sys.argv[1] + ".first"
{what}  # all that is imported at first use is there before the interrupt
if os.path.exists(path): os.unlink(path)
path = sys.argv[1]
try:
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    {what}
    thread.join()
    time.sleep(5)
except KeyboardInterrupt:
    pass
assert prof.Trace.now().info().scope_count >= 100000
"""
                    )
                    done = run_python_with(text, path, str(delay))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    # Python itself, of an interrupt that comes while it finalizes
                    if not done.stderr.startswith("Exception ignored in: <function Trace.__del__"):
                        self.assertEqual(done.stderr, "", what)
                    self.assertIn(os.listdir(folder), ([], ["t.json"]), what)
                    if os.path.exists(path):
                        with open(path) as f:
                            json.load(f)

    def test_an_interrupt_between_any_two_steps_of_a_scope(self):
        text = """
import os, prof, signal, sys
from prof import profiler
# loaded before the first interrupt
record_function, scope, now = prof.record_function, prof.scope, prof.Trace.now
profiler.start()
class Interrupt(Exception): pass
is_armed = False
def handler(*_):
    global is_armed
    if is_armed:
        is_armed = False
        raise Interrupt
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
caught = 0
while caught < 300:
    try:
        while True:
            # Again: Python reports and drops what a handler raises in a __del__ of PyPy's ctypes.
            is_armed = True
            with record_function("outer"), scope("inner", "c", 1, text="t", number=3 + 1j):
                pass
    except Interrupt:
        caught += 1
# The signal is not ignored: Python warns of one that is pending and has no handler any more.
signal.setitimer(signal.ITIMER_REAL, 0)
with record_function("last"): pass
assert [e.kind for e in now().events() if e.name == "last"] == ["scope"]
assert sum(now().info().lost_count) == 0, list(now().info().lost_count)
"""
        done = run_python(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        if sys.implementation.name == "cpython":
            self.assertEqual(done.stderr, "")

    def test_a_fork_in_the_middle_of_everything(self):
        text = """
import os, prof, sys, threading, time, warnings
from prof import profiler
warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of forks beside threads
with prof.profile() as p:
    stop = []
    def work():
        while True:  # once at least, however late it comes
            with prof.record_function("thread"), prof.scope("s", x=1): time.sleep(0.00001)
            if stop: break
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads: t.start()
    with prof.record_function("around the fork"):
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                with prof.record_function("nobody's"): pass
                own = prof.profile()
                own.start()
                with prof.record_function("child"): pass
                p.step()
                names = {e.name for e in prof.Trace.now().events()}
                prof.Trace.now().json()
                os._exit(0 if names == {"child"} else 1)
            status = os.waitpid(pid, 0)[1]
            if status: break
    stop.append(1)
    for t in threads: t.join()
assert status == 0, status
names = {e.name for e in p.events()}
assert names == {"thread", "s", "around the fork"}, names
"""
        done = run_python(text)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


def run_python_with(text, *arguments):
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )


if __name__ == "__main__":
    unittest.main()
