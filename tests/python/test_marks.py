"""counter() and instant(): what C's PROF_COUNTER() and PROF_INSTANT() record, out of Python."""

import ctypes
import gc
import inspect
import json
import subprocess
import sys
import threading
import tracemalloc
import unittest

from hang_guard import HANG_SECONDS

import prof
from prof import _library, _scope, marks, profiler


class Text:
    """What an argument must give."""

    def __init__(self, action=None):
        self.asked = 0
        self.action = action

    def __str__(self):
        self.asked += 1
        if self.action:
            self.action()
        return "as text"


class Failing:
    """A value that must not be asked for."""

    def __float__(self):
        return 1 / 0


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


class Marks:
    """Of both ways to make them."""

    def setUp(self):
        profiler.stop()
        profiler.clear()

    def test_a_counter_has_its_values_in_order(self):
        def work():
            for value in (1, 2.5, -3, True, 0):
                self.counter("loss", value)
            self.counter("another", 7)

        found = [(e.kind, e.name, e.value) for e in record(work)]
        values = [("counter", "loss", value) for value in (1.0, 2.5, -3.0, 1.0, 0.0)]
        self.assertEqual(found, [*values, ("counter", "another", 7.0)])

    def test_an_instant_has_its_category_and_arguments(self):
        def work():
            self.instant("plain")
            self.instant("epoch", "train", number=3, rate=0.5, last=True, text="a", other=Text())
            self.instant("by name", category="train")

        plain, epoch, by_name = record(work)
        self.assertEqual((plain.name, plain.category, plain.args), ("plain", "instant", None))
        self.assertEqual((plain.duration_ns, plain.level), (0, 1))
        args = {"number": 3, "rate": 0.5, "last": True, "text": "a", "other": "as text"}
        self.assertEqual((epoch.category, epoch.args), ("train", args))
        self.assertEqual(by_name.category, "train")

    def test_they_stand_in_chromes_json_as_cs_do(self):
        c_site, c_text = prof._structs.Site(file=b"", function=b"", level=1), b"of C"

        def work():
            self.counter("of Python", 2)
            _library.C.prof_i_counter_1(c_site, c_text, 2)
            self.instant("of Python", "x", a=1)

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
                self.counter("counter", 1)
                self.instant("instant")

        record(work)
        with prof.Trace.now() as trace:
            self.assertEqual([row.name for row in trace.aggregate("name")], ["row"])
            self.assertNotIn("instant", trace.table())

    def test_they_stand_in_a_profile(self):
        with prof.profile() as p:
            self.counter("loss", 1)
            self.instant("epoch")
        found = {(e.kind, e.name) for e in p.trace.events()}
        self.assertLessEqual({("counter", "loss"), ("instant", "epoch")}, found)

    def test_they_stand_on_the_thread_that_called(self):
        def work():
            other = threading.Thread(target=lambda: (self.instant("there"), self.counter("n", 2)))
            self.instant("here")
            other.start()
            other.join()

        found = {e.name: e.thread for e in record(work)}
        self.assertNotEqual(found["here"], found["there"])
        self.assertEqual(found["there"], found["n"])

    def test_any_text_is_a_name(self):
        names = ["", "a\0b", "\udc80", "\u2028", "x" * 5000]

        def work():
            for name in names:
                self.counter(name, 1)
                self.instant(name, name, **{name or "key": name})

        self.assertEqual(len(record(work)), 2 * len(names))

    def test_names_made_at_run_time_are_bounded(self):
        """In a process of its own: such a name is its graph's for good."""
        code = f"""
import prof
from prof import marks
most, kept = marks.NAMES_MOST, f"{{0}} of those that were there"
prof.profiler.start()
marks.{self.way[0]}(kept, 1)
for i in range(most + 9):
    marks.{self.way[0]}(f"counter {{i}}", i)
    marks.{self.way[1]}(f"instant {{i}}")
marks.{self.way[0]}(kept, 2)
prof.profiler.stop()
with prof.Trace.now() as trace:
    found = list(trace.events())
assert len({{e.name for e in found if e.kind == "instant"}}) == most + 9
values = [(e.name, e.value) for e in found if e.kind == "counter"]
assert [name for name, _ in values[1:most]] == [f"counter {{i}}" for i in range(most - 1)]
assert values[most:-1] == [("{marks.OTHERS}", most - 1 + i) for i in range(10)], values[most:]
assert (values[0], values[-1]) == ((kept, 1), (kept, 2))
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_they_are_given_is_checked(self):
        def check_names():
            for name in (None, 3, b"x"):
                with self.assertRaisesRegex(TypeError, r"^counter\(\) name must be a str, not "):
                    self.counter(name, 1)
                with self.assertRaisesRegex(TypeError, r"^instant\(\) name must be a str, not "):
                    self.instant(name)
            with self.assertRaisesRegex(TypeError, r"^instant\(\) category must be a str, not 3$"):
                self.instant("x", 3)
            with self.assertRaisesRegex(TypeError, r"^instant\(\) category must be a str, not 3$"):
                self.instant("x", category=3)
            for wrong in (
                lambda: self.counter("x"),
                lambda: self.counter("x", 1, 2),
                lambda: self.counter("x", value=1),
            ):
                self.assertRaises(TypeError, wrong)
            for wrong in (
                lambda: self.instant(),
                lambda: self.instant("x", "y", 3),
                lambda: self.instant("x", "y", category="z"),
            ):
                self.assertRaises(TypeError, wrong)

        def check_values():
            for value in (None, "3", b"3", [1]):
                with self.assertRaisesRegex(
                    TypeError, r"^counter\(\) value must be a number, not "
                ):
                    self.counter("x", value)
            self.assertRaises(OverflowError, self.counter, "x", 10**400)
            self.assertRaises(ZeroDivisionError, self.counter, "x", Failing())

        check_names()
        self.assertEqual(record(check_names), [])
        self.assertEqual(record(check_values), [])

    def test_numbers_of_other_classes_are_values(self):
        class Number:
            def __float__(self):
                return 1.5

        found = record(lambda: (self.counter("x", Number()), self.counter("x", float("nan"))))
        self.assertEqual(found[0].value, 1.5)
        self.assertNotEqual(found[1].value, found[1].value)

    def test_an_argument_that_marks_in_its_own_text_comes_to_an_end(self):
        text = Text()
        text.action = lambda: self.instant("inside", again=text)
        self.assertEqual(
            [e.args for e in record(lambda: self.instant("x", a=text))][-1], {"a": "as text"}
        )
        self.assertEqual(text.asked, 1)

    def test_an_argument_without_a_text_is_left_out(self):
        text = Text(lambda: 1 // 0)
        (found,) = record(lambda: self.instant("x", a=text))
        self.assertEqual(found.args, {"a": "<no text>"})

    def test_while_nothing_records_nothing_is_looked_at(self):
        """Benchmarks measure the cost. Here: no value must give its number, no argument its text,
        and no memory is taken."""
        text, names = Text(), [f"off {i}" for i in range(1000)]
        self.counter("off", Failing())
        self.instant("off", a=text)
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.take_snapshot()
            for name in names:
                self.counter(name, 1.0)
                self.instant(name)
            after = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        only = [
            tracemalloc.Filter(True, file) for file in (marks.__file__, ctypes.__file__, __file__)
        ]
        grown = after.filter_traces(only).compare_to(before.filter_traces(only), "filename")
        self.assertLess(sum(one.size_diff for one in grown), 1000)
        self.assertEqual(text.asked, 0)
        self.assertEqual(record(lambda: None), [])


class OfThisInterpreter(Marks, unittest.TestCase):
    way = ("counter", "instant")
    counter, instant = staticmethod(prof.counter), staticmethod(prof.instant)

    def test_they_say_what_they_take(self):
        self.assertEqual(
            str(inspect.signature(prof.counter))
            .replace(": float", "")
            .replace(": str", "")
            .split(" ->")[0],
            "(name, value, /)",
        )
        for function in (prof.counter, prof.instant):
            self.assertIn("Any thread", " ".join(function.__doc__.split()))

    @unittest.skipUnless(_scope.is_fast, "this interpreter has the slow ones alone")
    def test_they_are_cs(self):
        self.assertEqual({type(prof.counter), type(prof.instant)}, {type(len)})


class Slow(Marks, unittest.TestCase):
    way = ("_counter_slowly", "_instant_slowly")
    counter, instant = staticmethod(marks._counter_slowly), staticmethod(marks._instant_slowly)


if __name__ == "__main__":
    unittest.main()
