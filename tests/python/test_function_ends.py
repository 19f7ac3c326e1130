"""Where one thread ends the tracing of functions, calls that are open on other threads are in no
stack from then on: in events, tables and traces. What began before has its own stack, also when its
thread is gone."""

import json
import os
import re
import sys
import threading
import time
import unittest

from hang_guard import HANG_SECONDS

import prof
from prof._library import C

is_traced = sys.implementation.name == "cpython"


def op(name):
    """A scope of C's, as torch's operators are: prof.scope() has a stack of its own where no
    functions are traced."""
    C.prof_scope_end(C.prof_scope_begin(1, name.encode(), None, None))


def plain(frame):
    """A frame of this file, without folder and line."""
    return re.sub(r"^.*test_function_ends\.py\(\d+\): ", "", frame)


class Worker:
    """A thread that waits at each step until it may go on."""

    def __init__(self, body):
        self._go, self._is_there = threading.Semaphore(0), threading.Semaphore(0)
        self._error = None
        self._thread = threading.Thread(target=self._run, args=(body,))
        self._thread.start()

    def _run(self, body):
        try:
            body(self)
        except BaseException as e:
            self._error = e
        self._is_there.release()

    def wait(self):
        self._is_there.release()
        if not self._go.acquire(timeout=HANG_SECONDS):
            raise TimeoutError

    def until_it_waits(self):
        if not self._is_there.acquire(timeout=HANG_SECONDS):
            raise TimeoutError
        if self._error:
            raise self._error

    def go_on(self):
        self._go.release()
        self.until_it_waits()

    def join(self):
        """Returns when the system's thread is gone, too: Python's is before the thread's
        destructors have run."""
        self._go.release()
        self._thread.join(HANG_SECONDS)
        until = time.monotonic() + HANG_SECONDS
        while os.path.exists(f"/proc/self/task/{self._thread.native_id}"):
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(0.001)
        if self._error:
            raise self._error


@unittest.skipUnless(is_traced, "functions are traced in CPython alone")
class Ends(unittest.TestCase):
    def setUp(self):
        prof.profiler.clear()

    def stacks(self, p, frames=2):
        """Of each scope, by all that tell."""
        found = {
            e.name: [plain(frame) for frame in e.stack[:frames]]
            for e in p.events()
            if e.name.startswith("op ")
        }
        rows = {
            row.key: [plain(frame) for frame in row.stack]
            for row in p.key_averages(group_by_stack_n=frames)
            if row.key.startswith("op ")
        }
        rows_of_trace = json.loads(p.trace.json("chrome", stacks=True))["traceEvents"]
        shown = {
            row["name"]: [
                plain(frame)
                for frame in row.get("args", {}).get("Call stack", "").split(";")
                if frame
            ][:frames]
            for row in rows_of_trace
            if row["name"].startswith("op ")
        }
        self.assertEqual(rows, found)
        self.assertEqual(shown, found)
        return found

    def traced_until(self, body):
        """Traces a worker until it waits, ends the tracing here, and lets it go on to its end."""
        with prof.profile(with_stack=True) as p:
            with prof.trace_functions():
                worker = Worker(body)
                worker.until_it_waits()
            worker.join()
        return p

    def test_what_follows_on_another_thread_has_no_stack(self):
        def inner(worker):
            op("op before")
            worker.wait()
            op("op inside")

        def outer(worker):
            inner(worker)
            op("op outside")

        p = self.traced_until(outer)
        self.assertEqual(
            self.stacks(p), {"op before": ["op", "inner"], "op inside": [], "op outside": []}
        )

    def test_the_functions_of_a_thread_that_is_gone_are_there(self):
        """No event tells of their ends from sys.monitoring any more."""

        def inner(worker):
            worker.wait()

        def outer(worker):
            inner(worker)

        p = self.traced_until(outer)
        kinds = {
            e.name.rpartition(".")[2]: e.kind
            for e in p.trace.events()
            if e.category == "python_function"
        }
        self.assertEqual(
            (kinds.get("inner"), kinds.get("outer"), kinds.get("_run")), ("scope",) * 3
        )
        self.assertRegex(p.trace.loss_text(), "no loss$")

    def test_what_begins_before_and_ends_behind_keeps_its_stack(self):
        def outer(worker):
            around = C.prof_scope_begin(1, b"op around", None, None)
            worker.wait()
            op("op behind")
            C.prof_scope_end(around)

        self.assertEqual(
            self.stacks(self.traced_until(outer)), {"op around": ["outer", "_run"], "op behind": []}
        )

    def test_many_scopes_without_a_word_before_and_behind(self):
        """Segments of plain scopes are walked in another way."""

        def outer(worker):
            for _ in range(500):
                op("op before")
                op("op also")
            worker.wait()
            for _ in range(500):
                op("op behind")

        p = self.traced_until(outer)
        rows = {
            (row.key, *map(plain, row.stack)): row.count
            for row in p.key_averages(group_by_stack_n=2)
            if row.key.startswith("op ")
        }
        self.assertEqual(
            rows,
            {
                ("op before", "op", "outer"): 500,
                ("op also", "op", "outer"): 500,
                ("op behind",): 500,
            },
        )
        self.assertEqual(
            self.stacks(p),
            {"op before": ["op", "outer"], "op also": ["op", "outer"], "op behind": []},
        )

    def test_a_tracing_that_comes_next_has_its_own(self):
        def inner(worker):
            op("op first")
            worker.wait()
            op("op between")
            worker.wait()

        def again(worker):
            op("op second")
            worker.wait()
            op("op last")

        def outer(worker):
            inner(worker)
            again(worker)

        with prof.profile(with_stack=True) as p:
            with prof.trace_functions():
                worker = Worker(outer)
                worker.until_it_waits()
            worker.go_on()
            with prof.trace_functions():
                worker.go_on()
            worker.join()
        self.assertEqual(
            self.stacks(p),
            {
                "op first": ["op", "inner"],
                "op between": [],
                "op second": ["op", "again"],
                "op last": [],
            },
        )
        second = next(e for e in p.events() if e.name == "op second")
        self.assertNotIn("inner", map(plain, second.stack))

    def test_the_thread_that_ends_it_and_threads_with_nothing_open_leave_no_mark(self):
        with prof.profile(with_stack=True) as p:
            for _ in range(3):
                with prof.trace_functions():
                    worker = threading.Thread(target=op, args=("op there",))
                    worker.start()
                    worker.join()
                    op("op here")
                op("op untraced")
        self.assertEqual(p.trace._function_ends(), [])
        self.assertEqual(
            self.stacks(p, 1), {"op there": ["op"], "op here": ["op"], "op untraced": []}
        )

    def test_a_mark_for_each_end_that_left_something_open(self):
        def outer(worker):
            for _ in range(4):
                worker.wait()

        with prof.profile(with_stack=True) as p:
            with prof.trace_functions():
                worker = Worker(outer)
                worker.until_it_waits()
            for _ in range(3):
                with prof.trace_functions():
                    worker.go_on()
            worker.join()
        ends = p.trace._function_ends()
        self.assertEqual(len(ends), 4)
        self.assertEqual(ends, sorted(ends))
        self.assertRegex(p.trace.loss_text(), "no loss$")

    def test_threads_that_come_and_go_while_tracings_end(self):
        """Each thread's stack stands in a list, which the thread leaves without the interpreter's
        lock."""
        stop = threading.Event()

        def come_and_go():
            while not stop.is_set():
                threads = [threading.Thread(target=op, args=("op short",)) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

        busy = threading.Thread(target=come_and_go)
        busy.start()
        try:
            for _ in range(50):
                with prof.profile(with_stack=True) as p, prof.trace_functions():
                    op("op here")
        finally:
            stop.set()
            busy.join()
        self.assertEqual(
            next(e for e in p.events() if e.name == "op here").stack[0].rpartition(" ")[2], "op"
        )
