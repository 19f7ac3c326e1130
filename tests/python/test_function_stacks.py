"""The traced functions around a scope are its stack: in tables, events and traces, on all threads,
at any depth."""

import json
import os
import re
import sys
import tempfile
import threading
import unittest
import warnings

import slices
from hang_guard import HANG_SECONDS

import prof

MODULE = __name__
is_traced = sys.implementation.name == "cpython"


def stacked(n):
    with prof.scope("op"):
        return n


def over(n):
    return stacked(n)


def under(n, then):
    return under(n - 1, then) if n else then()


def here(frame):
    """A frame of this file, without its folder."""
    return re.sub(r"^.*test_function_stacks\.py\(\d+\): ", "", frame)


def named(key):
    return key[len(MODULE) + 1 :] if key.startswith(f"{MODULE}.") else key


@unittest.skipUnless(is_traced, "functions are traced in CPython alone")
class Stacks(unittest.TestCase):
    def line(self, function):
        return f"test_function_stacks.py({function.__code__.co_firstlineno}): {function.__name__}"

    def profiled(self, work, **options):
        with prof.profile(with_stack=True) as p, prof.trace_functions(**options):
            work()
        return p

    def rows(self, p, frames=3):
        return {
            (named(row.key), *map(here, row.stack)): row.count
            for row in p.key_averages(group_by_stack_n=frames)
        }

    def test_what_stands_open_around_scopes_and_functions(self):
        def work():
            over(1)
            over(2)
            stacked(3)

        p = self.profiled(work)
        rows = self.rows(p, 2)
        self.assertEqual(
            (
                rows["op", "stacked", "over"],
                rows["op", "stacked", "work"],
                rows["stacked", "over", "work"],
                rows["over", "work", "profiled"],
            ),
            (2, 1, 2, 2),
        )
        op = next(row for row in p.key_averages(group_by_stack_n=1) if row.key == "op")
        self.assertTrue(op.stack[0].endswith(self.line(stacked)), op.stack)
        self.assertEqual(op.count, 3)

    def test_events_have_the_same(self):
        p = self.profiled(lambda: (over(1), stacked(2)))
        ops = [list(map(here, e.stack[:3])) for e in p.events() if e.name == "op"]
        self.assertEqual(
            ops, [["stacked", "over", "<lambda>"], ["stacked", "<lambda>", "profiled"]]
        )
        over_of = next(e for e in p.events() if named(e.name) == "over")
        self.assertTrue(over_of.is_python_function)
        self.assertEqual(here(over_of.stack[0]), "<lambda>")
        by_event, by_c = (
            p.events().key_averages(group_by_stack_n=4),
            p.key_averages(group_by_stack_n=4),
        )
        self.assertEqual(
            sorted((a.key, a.stack, a.count) for a in by_event),
            sorted((a.key, a.stack, a.count) for a in by_c),
        )

    def test_without_with_stack_events_have_none(self):
        with prof.profile() as p, prof.trace_functions():
            over(1)
        self.assertEqual([e.stack for e in p.events() if e.stack], [])
        self.assertNotIn("Call stack", p.trace.json("chrome"))

    def test_the_stack_begins_with_what_ran_before_the_profile(self):
        def inside():
            with prof.profile(with_stack=True) as p:
                over(1)
            return p

        with prof.trace_functions():
            profiles = [under(2, inside), under(1, inside)]
        for p, depth in zip(profiles, (3, 2)):
            op = next(e for e in p.events() if e.name == "op")
            self.assertEqual(
                list(map(here, op.stack[: 4 + depth])),
                [
                    "stacked",
                    "over",
                    "inside",
                    *["under"] * depth,
                    "test_the_stack_begins_with_what_ran_before_the_profile",
                ],
            )
            self.assertEqual(
                {
                    named(row.key): row.count
                    for row in p.key_averages()
                    if named(row.key) in ("over", "under")
                },
                {"over": 1},
            )

    def test_each_cycle_of_a_schedule(self):
        found = []
        p = prof.profile(
            with_stack=True,
            schedule=prof.schedule(wait=0, warmup=1, active=1, repeat=3),
            on_trace_ready=lambda p: found.append(self.rows(p, 3)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # of losses

            def loop():
                for _ in range(6):
                    over(1)
                    p.step()

            with prof.trace_functions(), p:
                loop()
        self.assertEqual([rows["op", "stacked", "over", "loop"] for rows in found], [1, 1, 1])

    def test_other_threads_new_and_old(self):
        go, over_now = threading.Event(), threading.Event()

        def old():
            go.wait(HANG_SECONDS)
            over(1)
            over_now.set()

        thread = threading.Thread(target=old)
        thread.start()
        with prof.profile(with_stack=True) as p, prof.trace_functions():
            go.set()
            over_now.wait(HANG_SECONDS)
            thread.join()
            new = threading.Thread(target=lambda: over(2))
            new.start()
            new.join()
        rows = self.rows(p)
        self.assertEqual(
            (rows["op", "stacked", "over", "old"], rows["op", "stacked", "over", "<lambda>"]),
            (1, 1),
        )

    def test_in_the_trace(self):
        p = self.profiled(lambda: over(1))
        events = {
            named(e["name"]): e
            for e in json.loads(p.trace.json("chrome", stacks=True))["traceEvents"]
            if e["ph"] == "X"
        }
        frames = events["op"]["args"]["Call stack"].split(";")
        self.assertEqual(list(map(here, frames[:3])), ["stacked", "over", "<lambda>"])
        self.assertNotIn("Call stack", events["over"]["args"])
        with tempfile.TemporaryDirectory() as folder:
            p.export_chrome_trace(os.path.join(folder, "trace.json"))
            with open(os.path.join(folder, "trace.json")) as f:
                self.assertIn("Call stack", f.read())
            p.export_stacks(os.path.join(folder, "stacks"))
            with open(os.path.join(folder, "stacks")) as f:
                self.assertRegex(f.read(), r"<lambda>;.*over;.*stacked;\S+ \d+\n")

    def test_in_the_trace_every_call_of_a_module_has_one(self):
        """However long it took, and whatever is beside it. Other functions have none, because
        theirs are around them."""
        t = slices.Trace()
        t.function("train.py(1): main", 0, 900000)
        for begin, us in ((10, 1000), (2000, 200000), (300000, 20)):
            t.function("nn.Module: Linear_0", begin, begin + us)
            t.function("layer.py(3): forward", begin + 400000, begin + 400000 + us)
        t.put("beside", 300010, 300030, "user_annotation", asynchronous=True)
        with (
            tempfile.TemporaryDirectory() as folder,
            t.read(os.path.join(folder, "trace.json")) as read,
        ):
            events = json.loads(read.json("chrome", stacks=True))["traceEvents"]
        stacks = [(e["name"], e["args"].get("Call stack")) for e in events if e["ph"] == "X"]
        self.assertEqual(stacks.count(("nn.Module: Linear_0", "train.py(1): main")), 3, stacks)
        self.assertEqual(stacks.count(("layer.py(3): forward", None)), 3, stacks)

    def test_a_stack_that_a_scope_has_itself_stays(self):
        def work():
            with prof.scope("told", **{"Call stack": "where.c(1): it_was"}):
                pass

        self.assertEqual(self.rows(self.profiled(work))["told", "where.c(1): it_was"], 1)

    def test_a_scope_that_overlaps_functions_has_those_that_hold_it_whole(self):
        one = prof.scope("overlaps")

        def opens():
            one.__enter__()

        def closes():
            one.__exit__(None, None, None)

        def work():
            opens()
            closes()

        p = self.profiled(work)
        self.assertEqual(self.rows(p, 1)["overlaps", "work"], 1)
        self.assertEqual([here(e.stack[0]) for e in p.events() if e.name == "overlaps"], ["work"])

    def test_functions_of_c(self):
        p = self.profiled(lambda: sorted([2, 1], key=stacked), c_functions=True)
        self.assertEqual(self.rows(p)["op", "stacked", "<built-in function sorted>", "<lambda>"], 2)

    def test_a_capture_shows_functions_where_asked(self):
        p = self.profiled(lambda: sorted([over(1)]), c_functions=True)
        shown = {row.category for row in p.trace.key_averages(include_python_functions=True)}
        self.assertLessEqual({"python_function", "c_function"}, shown)
        self.assertEqual(
            {row.category for row in p.trace.key_averages()},
            shown - {"python_function", "c_function"},
        )

    def test_a_relative_path(self):
        here = os.path.relpath(os.path.dirname(os.path.abspath(__file__)))
        for include, is_there in (
            (os.path.join(os.curdir, here, ""), True),
            (os.path.join(os.curdir, here), True),
            (os.path.join(os.curdir, "elsewhere"), False),
        ):
            p = self.profiled(lambda: over(1), include=include)
            self.assertEqual(
                any(
                    row.key.endswith("over")
                    for row in p.key_averages(include_python_functions=True)
                ),
                is_there,
                include,
            )

    def test_a_filter_is_the_stacks_too(self):
        p = self.profiled(lambda: over(1), include="nothing_here")
        self.assertEqual(
            [row.stack for row in p.key_averages(group_by_stack_n=5) if row.key == "op"], [[]]
        )

    # bench/python/table.py has how long that takes
    def test_deep_recursions_and_many_scopes_have_their_stacks(self):
        def work(scopes):
            for _ in range(scopes):
                with prof.scope("leaf"):
                    pass

        sys.setrecursionlimit(3000)
        for depth, scopes in ((1, 2000), (600, 20), (600, 2000)):
            with prof.profile(with_stack=True) as p, prof.trace_functions():
                under(depth, lambda: work(scopes))
            rows = p.trace.aggregate(["name", "stack"])
            leaf = next(row for row in rows if row.name == "leaf")
            self.assertEqual((leaf.count, here(leaf.stack.split(";")[0])), (scopes, "work"))
            self.assertEqual(leaf.stack.count("under"), min(depth + 1, 254))

    def test_scopes_take_no_stack_of_their_own_meanwhile(self):
        p = self.profiled(lambda: over(1))
        self.assertEqual([e.args for e in p.trace.events() if e.name == "op"], [None])
        with prof.profile(with_stack=True) as p:
            over(1)
        self.assertIn("Call stack", next(e.args for e in p.trace.events() if e.name == "op"))


class Module:
    """As torch's nn.Module: what is called is a function of its own, which calls forward()."""

    def __init__(self, *inner):
        self.inner = inner

    def _wrapped_call_impl(self, *args):
        return self._call_impl(*args)

    def _call_impl(self, *args):
        return self.forward(*args)

    def forward(self, n):
        for one in self.inner:
            one(n)
        return stacked(n)

    __call__ = _wrapped_call_impl


class Named:
    """As _torch_modules.Modules."""

    is_for_stacks = True

    def __init__(self):
        self.thread, self.numbers, self.was_lost = threading.get_ident(), 0, 0

    def call(self, module):
        self.numbers += 1
        return f"nn.Module: {'Outer' if module.inner else 'Inner'}_0", self.numbers, 0

    def lose_functions(self):
        self.was_lost += 1
        prof.functions.leave_modules(self)


@unittest.skipUnless(is_traced, "functions are traced in CPython alone")
class Modules(unittest.TestCase):
    """What prof.torch.observe(with_modules=True) follows, without torch."""

    STACK = [
        "stacked",
        "forward",
        "_call_impl",
        "nn.Module: Inner_0",
        "forward",
        "_call_impl",
        "nn.Module: Outer_0",
    ]

    def setUp(self):
        self.named = Named()

    def tearDown(self):
        self.assertFalse(prof.functions._modules)

    def profiled(self, work, **options):
        with prof.profile(with_stack=True) as p, prof.trace_functions(**options):
            work()
        return p

    def follow(self):
        prof.functions.follow_modules(Module._wrapped_call_impl.__code__, self.named)

    def stacks(self, p, frames=7):
        return [list(map(here, e.stack[:frames])) for e in p.events() if e.name == "op"]

    def numbers(self, p):
        rows = sorted(
            (e for e in p.trace.events() if e.name.startswith("nn.Module: ")),
            key=lambda e: e.start_ns,
        )
        return [
            (e.name[len("nn.Module: ") :], e.args["Python id"], e.args["Python parent id"])
            for e in rows
        ]

    def test_a_call_stands_in_the_place_of_the_modules_own_function(self):
        def work():
            model = Module(Module(), Module())
            model(0)  # as a function
            self.follow()
            model(1)
            prof.functions.leave_modules(self.named)
            model(2)

        p = self.profiled(work)
        plain = ["_wrapped_call_impl" if frame.startswith("nn.") else frame for frame in self.STACK]
        outer = [*self.STACK[:3], "nn.Module: Outer_0", "work", "profiled"]
        found = self.stacks(p)
        self.assertEqual(
            (found[0], found[3], found[4], found[6]), (plain, self.STACK, self.STACK, plain)
        )
        self.assertEqual(found[5][:6], outer)
        self.assertEqual(self.numbers(p), [("Outer_0", 1, 0), ("Inner_0", 2, 1), ("Inner_0", 3, 1)])

    def test_many_inside_of_each_other(self):
        model = Module()
        for _ in range(100):
            model = Module(model)

        def work():
            self.follow()
            model(1)
            Module()(2)
            prof.functions.leave_modules(self.named)

        numbers = self.numbers(self.profiled(work))
        self.assertEqual(
            [(number, around) for _, number, around in numbers],
            [*((n, n - 1) for n in range(1, 102)), (102, 0)],
        )

    def test_what_runs_when_the_profile_begins(self):
        def begin(n):
            self.profile.start()
            stacked(n)
            self.profile.stop()

        self.profile, inner = prof.profile(with_stack=True), Module()
        inner.forward = begin
        with prof.trace_functions():
            self.follow()
            Module(inner)(1)
            prof.functions.leave_modules(self.named)
        self.assertEqual(self.stacks(self.profile), [["stacked", "begin", *self.STACK[2:]]])

    def test_left_out_by_the_filter(self):
        def work():
            self.follow()
            Module(Module())(1)
            thread = threading.Thread(target=Module(), args=(1,))
            thread.start()
            thread.join()
            prof.functions.leave_modules(self.named)

        p = self.profiled(work, include="nothing_here")
        self.assertEqual(
            self.stacks(p),
            [["nn.Module: Inner_0", "nn.Module: Outer_0"], ["nn.Module: Outer_0"], []],
        )

    def test_exceptions_and_a_naming_that_fails(self):
        def fails(n):
            raise ValueError(n)

        model, inner = None, Module()
        inner.forward = fails
        model = Module(inner)

        def work():
            self.follow()
            with self.assertRaises(ValueError):
                model(1)
            Module()(2)
            self.named.call = lambda module: 1 / 0  # prof's own failure reaches no caller
            Module()(3)
            prof.functions.leave_modules(self.named)

        p = self.profiled(work)
        self.assertEqual(self.numbers(p), [("Outer_0", 1, 0), ("Inner_0", 2, 1), ("Inner_0", 3, 0)])
        self.assertEqual(
            [stack[:5] for stack in self.stacks(p)],
            [
                ["stacked", "forward", "_call_impl", "nn.Module: Inner_0", "work"],
                ["stacked", "forward", "_call_impl", "work", "profiled"],
            ],
        )

    def test_an_end_of_the_tracing_is_told(self):
        with prof.trace_functions():
            self.follow()
        self.assertEqual(self.named.was_lost, 1)


if __name__ == "__main__":
    unittest.main()
