"""Calls as Python's objects: attributes, copies, arguments, stacks, recursion, and the garbage
collector that they do not wake."""

import copy
import ctypes.util
import gc
import os
import pickle
import sys
import tempfile
import threading
import unittest
from unittest import mock

from test_events import F32, of_all_kinds, recorded

import prof
from prof import _read_events, tables
from prof._library import C

is_traced = sys.implementation.name == "cpython"


class Calls(unittest.TestCase):
    ATTRIBUTES = (
        "args",
        "kwinputs",
        "input_shapes",
        "structured_input_shapes",
        "structured_input_strides",
        "concrete_inputs",
        "input_dtypes",
        "cpu_children",
        "kernels",
    )

    def two(self):
        def work():
            for _ in range(2):
                with prof.scope("plain"):
                    pass

        return recorded(work).events()

    def test_what_a_call_has_nothing_of_is_its_own_and_stays(self):
        one, other = self.two()
        for name in self.ATTRIBUTES:
            with self.subTest(name):
                empty = {} if name in ("args", "kwinputs") else []
                self.assertEqual(getattr(one, name), empty)
                self.assertIs(getattr(one, name), getattr(one, name))
                self.assertIsNot(getattr(one, name), getattr(other, name))
        one.kwinputs["a"] = 1
        one.input_shapes.append([2])
        self.assertEqual(
            (one.args, one.input_shapes, other.args, other.input_shapes), ({"a": 1}, [[2]], {}, [])
        )

    def test_a_name_that_is_none_of_a_calls_is_an_attribute_error(self):
        with self.assertRaisesRegex(
            AttributeError, "'FunctionEvent' object has no attribute 'kernel_count'"
        ):
            _ = self.two()[0].kernel_count

    def test_calls_are_copied_and_pickled(self):
        one = self.two()[0]
        for made in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            self.assertEqual(
                (made.name, made.args, made.kernels, made.time_range.start),
                ("plain", {}, [], one.time_range.start),
            )

    @unittest.skipUnless(is_traced, "the collector of CPython counts objects")
    def test_a_call_is_one_object_of_the_collectors(self):
        def work():
            for _ in range(2000):
                with prof.record_function("call"):
                    pass

        p = recorded(work, with_stack=True)
        p.events()  # what is made once
        gc.collect()
        before = len(gc.get_objects())
        events = p.events()
        gc.collect()
        each = (len(gc.get_objects()) - before) / len(events)
        self.assertEqual(len(events), 2000)
        self.assertLess(each, 1.5)  # its other parts are made on request

    @unittest.skipUnless(is_traced, "calls are counted in CPython")
    def test_what_calls_have_as_arguments_is_read_by_few_calls(self):
        """Counted, not timed. Before, the arguments of each event were read one by one."""

        def work():
            for i in range(2000):
                shapes = [(F32, 2, 3), (F32, 3), (F32, 4)]
                beside = {"Concrete Inputs": '["","",""]', "Thread id": 1, "Sequence number": i}
                with prof.scope(
                    "operator", "cpu_op", 1, _shapes=shapes, **beside, step=i, more=0.5
                ):
                    pass

        p = recorded(work)
        for name in ("input_shapes", "stack", "flops", "sequence_nr", "kwinputs", "input_dtypes"):
            events, calls = p.events(), [0]

            def count(frame, event, arg, calls=calls):
                calls[0] += event in ("call", "c_call")

            sys.setprofile(count)
            try:
                found = [getattr(e, name) for e in events]
            finally:
                sys.setprofile(None)
            self.assertEqual(len(found), 2000)
            with self.subTest(name):
                self.assertLess(calls[0] / len(events), 28)

    def test_what_differs_in_numbers_alone_is_each_calls_own(self):
        def work():
            for i in range(700):
                with prof.scope(
                    "call", "cpu_op", 1, _shapes=[(F32, 2, 3)], n=i, x=i / 2, odd=i % 2 == 1
                ):
                    pass

        events = recorded(work).events()
        expected = [{"n": i, "x": i / 2, "odd": i % 2 == 1} for i in range(700)]
        self.assertEqual([e.args for e in events], expected)
        events[1].input_shapes[0].append(9)
        events[600].args["n"] = None
        self.assertEqual((events[0].input_shapes, events[699].input_shapes), ([[2, 3]], [[2, 3]]))
        self.assertEqual([events[i].args["n"] for i in (0, 699, 600)], [0, 699, None])

    def test_a_long_text_among_others_is_read_whole(self):
        texts = ["x" * (900 * (i % 17)) + "\xe9" for i in range(600)]

        def work():
            for text in texts:
                with prof.record_function("call", text):
                    pass

        events = recorded(work).events()
        self.assertEqual([next(iter(e.args.values())) for e in events], texts)

    def of_each_kind(self):
        def work():
            of_all_kinds()
            begun = C.prof_scope_begin(1, b"ended elsewhere", b"cpu_op", None)
            thread = threading.Thread(target=lambda: (of_all_kinds(), C.prof_scope_end(begun)))
            thread.start()
            thread.join()

        return recorded(work)

    def test_calls_are_what_the_traces_events_say(self):
        p = self.of_each_kind()
        origin_ns = p._windows()[0].origin_ns
        expected = []
        for e in p.trace.events():
            if e.kind != "scope":
                continue
            args = e.args if isinstance(e.args, dict) else e.more
            values = e.args if isinstance(e.args, list) else []
            shapes = [list(a) for a in values if isinstance(a, tuple)]
            begin = e.start_ns - origin_ns
            times = begin / 1e3, (begin + e.duration_ns) / 1e3, e.duration_ns / 1e3, e.self_ns / 1e3
            told = e.name, e.category, *times, e.depth, e.thread + 1, e.is_async, args, shapes
            expected.append((e.start_ns, -e.duration_ns, *told))
        expected.sort(key=lambda row: row[:2])
        found = []
        for e in p.events():
            times = e.time_range.start, e.time_range.end, e.cpu_time_total, e.self_cpu_time_total
            told = e.trace_name, e.category, *times, e.depth, e.thread, e.is_async
            found.append((*told, e.args, e.input_shapes))
        self.assertEqual(found, [row[2:] for row in expected])
        self.assertGreater(len({e.thread for e in p.events()}), 1)

    def test_arguments_are_read_when_the_trace_is_closed(self):
        p = self.of_each_kind()
        expected = [(e.args, e.input_shapes) for e in p.events()]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.prof")
            p.trace.dump(path, "capture")
            with prof.Trace.open(path) as trace:
                events = tables.single_events([tables.Window(trace, 0, 0, 0, 0)], False, False)
            with self.assertRaises(ValueError):
                trace.info()
            self.assertEqual([(e.args, e.input_shapes) for e in events], expected)
            shared = trace._shared
            self.assertTrue(shared._owned)
            del events
            gc.collect()
            self.assertFalse(shared._owned)  # the last event has freed it

    def test_threads_that_read_arguments_get_the_same(self):
        p = self.of_each_kind()
        expected = [(e.args, e.input_shapes, e.stack) for e in p.events()]
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)  # threads change within a read
        for _ in range(20):
            events, found = p.events(), []
            start = threading.Barrier(3)

            def read(events=events, found=found, start=start):
                start.wait()
                found.append([(e.args, e.input_shapes, e.stack) for e in events])

            threads = [threading.Thread(target=read) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(found, [expected] * 3)
            for rows in zip(*found):
                ids = [[id(part) for part in row] for row in rows]
                self.assertEqual(ids, ids[:1] * 3)

    def test_what_a_user_sets_stays(self):
        e = next(e for e in self.of_each_kind().events() if e.input_shapes)
        given = {"name": "mine", "args": {"a": 1}, "stack": ["frame"], "flops": 7}
        given.update({"time_range": None, "cpu_children": [e], "place": "here", "note": "new"})
        for name, value in given.items():
            setattr(e, name, value)
        self.assertEqual({name: getattr(e, name) for name in given}, given)
        self.assertEqual((e.kwinputs, e.trace_name), ({}, "shapes"))

    def test_vars_has_what_dir_names(self):
        e = self.two()[0]
        kind, inherited = vars(type(e)), set(dir(type(e).__mro__[1]))
        named = {name for name in dir(e) if not name.startswith("_")} - inherited
        methods = {name for name in named if callable(getattr(e, name))}
        constant = {name for name in named if name in kind and not hasattr(kind[name], "__get__")}
        self.assertEqual(named - methods - constant, set(vars(e)) - inherited)
        self.assertEqual((vars(e)["name"], vars(e)["args"]), ("plain", {}))

    def test_calls_by_one_way_share_their_stack(self):
        def work():
            for _ in range(3):
                with prof.record_function("call"):
                    pass

        one, other, last = recorded(work, with_stack=True).events()
        self.assertTrue(one.stack and "test_events_calls.py" in one.stack[0], one.stack)
        self.assertIs(one.stack, other.stack)
        self.assertIs(one.stack, last.stack)

    @unittest.skipUnless(is_traced, "functions are traced in CPython alone")
    def test_a_traced_functions_call_says_where_that_is_defined(self):
        def traced():
            with prof.scope("call"):
                pass

        with prof.trace_functions(), prof.profile(with_stack=True) as p:
            traced()
        by_name = {event.name.rpartition(".")[2]: event for event in p.events()}
        self.assertRegex(
            by_name["traced"].frame,
            rf"test_events_calls\.py\({traced.__code__.co_firstlineno}\): traced$",
        )
        self.assertEqual(by_name["call"].frame, "")
        self.assertEqual(by_name["call"].stack[0], by_name["traced"].frame)

    def test_rows_have_stacks_of_their_own(self):
        def work():
            for name in ("a", "b"):
                with prof.record_function(name):
                    pass

        one, other = recorded(work, with_stack=True).key_averages(group_by_stack_n=3)
        self.assertEqual(one.stack, other.stack)
        one.stack.clear()
        self.assertTrue(other.stack)

    def test_averages_of_calls_have_the_shortest_and_the_longest(self):
        events = self.two()
        (row,) = events.key_averages()
        times = sorted(event.cpu_time_total for event in events)
        self.assertEqual((row.min_us, row.max_us, row.count), (times[0], times[1], 2))
        row.add(row)
        self.assertEqual((row.min_us, row.max_us, row.count), (times[0], times[1], 4))

    def test_a_captures_events_are_read_again_from_a_file(self):
        p = recorded(of_all_kinds)
        formats = ("capture", "packed") if ctypes.util.find_library("zstd") else ("capture",)
        with tempfile.TemporaryDirectory() as folder:
            for name in formats:
                path = os.path.join(folder, name + ".prof")
                p.trace.dump(path, name)
                with prof.Trace.open(path) as trace:
                    self.assertEqual(
                        [tuple(event) for event in trace.events()],
                        [tuple(event) for event in p.trace.events()],
                    )


class Recursions(unittest.TestCase):
    def check(self, p, **options):
        """Averages made in C, and of events() made in Python, which are equal; by key.

        Times of events are rounded to a nanosecond each, so sums may differ by a few of them.
        """
        made = (p.key_averages(**options), p.events().key_averages(**options))
        of_c, of_events = (
            sorted(averages, key=lambda r: (r.key, r.place, r.count, r.cpu_time_total))
            for averages in made
        )
        exact = [
            [(r.key, r.count, r.open_count, r.place) for r in rows] for rows in (of_c, of_events)
        ]
        self.assertEqual(*exact)
        for row, other in zip(of_c, of_events):
            for name in ("cpu_time_total", "self_cpu_time_total", "cpu_time"):
                self.assertAlmostEqual(getattr(row, name), getattr(other, name), delta=0.05)
        return {r.key: r for r in p.key_averages(**options)}

    def test_a_total_is_the_outermost_calls(self):
        def descend(depth):
            with prof.record_function("descend"), prof.scope("operator", category="a"):
                if depth:
                    # of one name with its enclosing scopes
                    with prof.scope("operator", category="b"):
                        descend(depth - 1)

        with prof.profile() as p:
            descend(20)
            descend(0)
        for options in ({}, {"group_by_stack_n": 2}):
            rows = self.check(p, **options)
            whole = sum(r.self_cpu_time_total for r in rows.values())
            self.assertEqual(
                {key: r.count for key, r in rows.items()}, {"descend": 22, "operator": 42}
            )
            outermost = sum(e.cpu_time_total for e in p.events() if e.cpu_parent is None)
            self.assertAlmostEqual(rows["descend"].cpu_time_total, outermost, 2)
            self.assertLess(rows["operator"].cpu_time_total, outermost)
            self.assertAlmostEqual(whole, outermost, 2)
            calls = [e.cpu_time_total for e in p.events() if e.key == "descend"]
            self.assertAlmostEqual(rows["descend"].cpu_time, sum(calls) / len(calls), 2)
        shares = [
            float(word[:-1])
            for word in p.key_averages().table().split()
            if word.endswith("%") and word != "%"
        ]
        self.assertTrue(shares and max(shares) <= 100.0, shares)

    def test_with_flops_rows_are_not_of_shapes(self):
        with prof.profile(record_shapes=True, with_flops=True) as p:
            with (
                prof.scope("matmul", "operator", 1, _shapes=[(F32, 2, 3), (F32, 3, 4)]),
                prof.scope("matmul", "operator", 1, _shapes=[(F32, 5, 6), (F32, 6, 7)]),
            ):
                pass
        (row,) = p.key_averages()
        outer = max(e.cpu_time_total for e in p.events())
        self.assertEqual((row.count, row.flops), (2, 2 * 2 * 3 * 4 + 2 * 5 * 6 * 7))
        self.assertAlmostEqual(row.cpu_time_total, outer, 2)

    def test_open_scopes_are_calls_and_no_time_of_their_thread(self):
        with prof.profile() as p:
            scope = prof.record_function("open")
            scope.__enter__()
            with prof.record_function("ended"):
                pass
        rows = self.check(p)
        counts = {key: (r.count, r.open_count) for key, r in rows.items()}
        self.assertEqual(counts, {"open": (1, 1), "ended": (1, 0)})
        self.assertGreaterEqual(rows["open"].cpu_time_total, rows["ended"].cpu_time_total)
        self.assertEqual(rows["open"].self_cpu_time_total, 0)
        self.assertEqual(
            sum(r.self_cpu_time_total for r in rows.values()), rows["ended"].cpu_time_total
        )
        scope.__exit__(None, None, None)

    @unittest.skipUnless(is_traced, "functions are traced in CPython alone")
    def test_two_lambdas_are_two_rows(self):
        one = lambda: None  # noqa: E731
        two = lambda: None  # noqa: E731
        with prof.profile() as p, prof.trace_functions(include=__name__):
            one(), two(), two()
        rows = [(r.place, r.count) for r in p.key_averages() if r.key.endswith("<lambda>")]
        line = one.__code__.co_firstlineno
        self.assertEqual(
            sorted(rows),
            [
                (f"{one.__code__.co_filename}:{line}", 1),
                (f"{one.__code__.co_filename}:{line + 1}", 2),
            ],
        )


class Collector(unittest.TestCase):
    """Garbage is not collected while events are made, and is afterwards where it was before."""

    def setUp(self):
        with prof.profile() as self.profile:
            for _ in range(20000):
                with prof.scope("call", shape=(1, 2)):
                    pass
        self.addCleanup(gc.enable)

    def collections(self, do):
        seen = []

        def callback(phase, info):
            seen.append(phase)

        gc.callbacks.append(callback)
        try:
            self.assertEqual(len(do()), 20000)
        finally:
            gc.callbacks.remove(callback)
        return len(seen)

    @unittest.skipUnless(hasattr(gc, "callbacks") and is_traced, "CPython's collector alone")
    def test_it_does_not_run(self):
        gc.collect()
        # One may run between the last event and the end of do().
        self.assertLessEqual(self.collections(self.profile.events), 2)
        self.assertTrue(gc.isenabled())

    def test_one_that_is_off_stays_off(self):
        gc.disable()
        self.assertEqual(len(self.profile.events()), 20000)
        self.assertFalse(gc.isenabled())

    def test_it_is_on_again_after_a_failure(self):
        with mock.patch.object(_read_events.Briefs, "__iter__", side_effect=MemoryError):
            with self.assertRaises(MemoryError):
                self.profile.events()
        self.assertTrue(gc.isenabled())


if __name__ == "__main__":
    unittest.main()
