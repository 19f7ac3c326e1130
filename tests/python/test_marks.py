"""counter() and instant(): what C's PROF_COUNTER() and PROF_INSTANT() record, out of Python."""

import ctypes
import gc
import json
import sys
import threading
import tracemalloc
import unittest

import prof
from prof import _library, marks, profiler


class Text:
    """What an argument is asked for."""

    def __init__(self, action=None):
        self.asked = 0
        self.action = action

    def __str__(self):
        self.asked += 1
        if self.action:
            self.action()
        return "as text"


def record(work):
    """The marks that work() records."""
    profiler.clear()
    profiler.start()
    try:
        work()
    finally:
        profiler.stop()
    with prof.Trace.now() as trace:
        return [event for event in trace.events() if event.kind in ("counter", "instant")]


class Marks(unittest.TestCase):
    def setUp(self):
        profiler.stop()
        profiler.clear()

    def test_a_counter_has_its_values_in_order(self):
        def work():
            for value in (1, 2.5, -3, True, 0):
                prof.counter("loss", value)
            prof.counter("another", 7)

        found = [(e.kind, e.name, e.value) for e in record(work)]
        values = [("counter", "loss", value) for value in (1.0, 2.5, -3.0, 1.0, 0.0)]
        self.assertEqual(found, [*values, ("counter", "another", 7.0)])

    def test_an_instant_has_its_category_and_arguments(self):
        def work():
            prof.instant("plain")
            prof.instant("epoch", "train", number=3, rate=0.5, last=True, text="a", other=Text())
            prof.instant("by name", category="train")

        plain, epoch, by_name = record(work)
        self.assertEqual((plain.name, plain.category, plain.args), ("plain", "instant", None))
        self.assertEqual((plain.duration_ns, plain.level), (0, 1))
        args = {"number": 3, "rate": 0.5, "last": True, "text": "a", "other": "as text"}
        self.assertEqual((epoch.category, epoch.args), ("train", args))
        self.assertEqual(by_name.category, "train")

    def test_they_stand_in_chromes_json_as_cs_do(self):
        c_site, c_text = prof._structs.Site(file=b"", function=b"", level=1), b"of C"

        def work():
            prof.counter("of Python", 2)
            _library.C.prof_i_counter_1(c_site, c_text, 2)
            prof.instant("of Python", "x", a=1)

        record(work)
        with prof.Trace.now() as trace:
            events = [e for e in json.loads(trace.json())["traceEvents"] if e["ph"] in "Ci"]
        counters = [{**e, "name": None, "ts": None} for e in events if e["ph"] == "C"]
        self.assertEqual(len(counters), 2)
        self.assertEqual(counters[0], counters[1])
        self.assertEqual(list(counters[0]["args"].values()), [2])
        mark = next(e for e in events if e["name"] == "of Python" and e["ph"] == "i")
        self.assertEqual((mark["cat"], mark["s"], mark["args"]["a"]), ("x", "t", 1))

    def test_they_have_no_row_in_tables(self):
        def work():
            with prof.scope("row", "x"):
                prof.counter("counter", 1)
                prof.instant("instant")

        record(work)
        with prof.Trace.now() as trace:
            self.assertEqual([row.name for row in trace.aggregate("name")], ["row"])
            self.assertNotIn("instant", trace.table())

    def test_they_stand_in_a_profile(self):
        with prof.profile() as p:
            prof.counter("loss", 1)
            prof.instant("epoch")
        found = {(e.kind, e.name) for e in p.trace.events()}
        self.assertLessEqual({("counter", "loss"), ("instant", "epoch")}, found)

    def test_they_stand_on_the_thread_that_called(self):
        def work():
            other = threading.Thread(target=lambda: (prof.instant("there"), prof.counter("n", 2)))
            prof.instant("here")
            other.start()
            other.join()

        found = {e.name: e.thread for e in record(work)}
        self.assertNotEqual(found["here"], found["there"])
        self.assertEqual(found["there"], found["n"])

    def test_any_text_is_a_name(self):
        names = ["", "a\0b", "\udc80", "\u2028", "x" * 5000]

        def work():
            for name in names:
                prof.counter(name, 1)
                prof.instant(name, name, **{name or "key": name})

        self.assertEqual(len(record(work)), 2 * len(names))

    def test_names_made_at_run_time_are_bounded(self):
        def work():
            for i in range(marks.NAMES_MOST + 10):
                prof.counter(f"counter {i}", 1)
                prof.instant(f"instant {i}")

        self.addCleanup(marks._kept.update, dict(marks._kept))
        self.addCleanup(marks._kept.clear)  # before that
        found = record(work)
        self.assertEqual(len({e.name for e in found if e.kind == "instant"}), marks.NAMES_MOST + 10)
        names = [e.name for e in found if e.kind == "counter"]
        self.assertEqual(len(names), marks.NAMES_MOST + 10)
        self.assertGreaterEqual(names.count(marks.OTHERS), 10)
        self.assertLessEqual(len(marks._kept), marks.NAMES_MOST + 1)

    def test_what_they_are_given_is_checked_recording_or_not(self):
        def check():
            for name in (None, 3, b"x"):
                with self.assertRaisesRegex(TypeError, r"^counter\(\) name must be a str, not "):
                    prof.counter(name, 1)
                with self.assertRaisesRegex(TypeError, r"^instant\(\) name must be a str, not "):
                    prof.instant(name)
            for value in (None, "3", b"3", [1]):
                with self.assertRaisesRegex(TypeError, r"^counter\(\) value must be a number, not "):
                    prof.counter("x", value)
            with self.assertRaisesRegex(TypeError, r"^instant\(\) category must be a str, not 3$"):
                prof.instant("x", 3)

        check()
        self.assertEqual(record(check), [])
        self.assertRaises(OverflowError, record, lambda: prof.counter("x", 10**400))

    def test_numbers_of_other_classes_are_values(self):
        class Number:
            def __float__(self):
                return 1.5

        found = record(lambda: (prof.counter("x", Number()), prof.counter("x", float("nan"))))
        self.assertEqual(found[0].value, 1.5)
        self.assertNotEqual(found[1].value, found[1].value)

    def test_an_argument_that_marks_in_its_own_text_comes_to_an_end(self):
        text = Text()
        text.action = lambda: prof.instant("inside", again=text)
        self.assertEqual([e.args for e in record(lambda: prof.instant("x", a=text))][-1], {"a": "as text"})
        self.assertEqual(text.asked, 1)

    def test_an_argument_without_a_text_is_left_out(self):
        text = Text(lambda: 1 // 0)
        (found,) = record(lambda: prof.instant("x", a=text))
        self.assertEqual(found.args, {"a": "<no text>"})

    def test_while_nothing_records_nothing_is_asked_and_nothing_kept(self):
        """Cost is bench's to say. Here: C is not called but for the level, no memory is taken, and no argument becomes text."""
        calls, text = [], Text()
        real = {name: getattr(_library.C, name) for name in ("prof_i_counter_1", "prof_i_instant_1")}
        for name in real:
            setattr(_library.C, name, lambda *args, name=name: calls.append(name))
        try:
            before = len(marks._kept)
            for i in range(100):
                prof.counter(f"off {i}", i)
                prof.instant(f"off {i}", a=text)
            self.assertEqual((calls, text.asked, len(marks._kept)), ([], 0, before))
        finally:
            for name, function in real.items():
                setattr(_library.C, name, function)

    @unittest.skipUnless(sys.implementation.name == "cpython", "allocations are CPython's to count")
    def test_while_nothing_records_no_memory_is_taken(self):
        names = [f"off {i}" for i in range(1000)]
        prof.counter("warm", 1.0)
        prof.instant("warm")
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.take_snapshot()
            for name in names:
                prof.counter(name, 1.0)
                prof.instant(name)
            after = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        only = [tracemalloc.Filter(True, marks.__file__), tracemalloc.Filter(True, ctypes.__file__)]
        grown = after.filter_traces(only).compare_to(before.filter_traces(only), "filename")
        self.assertLess(sum(one.size_diff for one in grown), 1000)


if __name__ == "__main__":
    unittest.main()
