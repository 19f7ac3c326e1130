"""record_function and scope: nesting, decorators, generators, tasks, threads, forks, hostile names;
C's type and the slower one alike."""

import asyncio
import contextlib
import copy
import gc
import pickle
import signal
import sys
import threading
import unittest
from unittest import mock

import prof
from prof import _scope, _slow, profiler


def recorded(clear=True):
    """(name, category, args) of each scope, by thread and start."""
    with prof.Trace.now() as trace:
        found = [
            (e.name, e.category, e.args, e.depth, e.thread)
            for e in trace.events()
            if e.kind == "scope"
        ]
    if clear:
        profiler.clear()
    return found


def names():
    return [f[0] for f in recorded()]


class Scopes(unittest.TestCase):
    record_function = staticmethod(_scope.record_function)
    scope = staticmethod(_scope.scope)
    set_stack_frames = staticmethod(_scope.set_stack_frames)

    def setUp(self):
        profiler.start()
        profiler.clear()

    def tearDown(self):
        profiler.stop()

    def test_scopes_nest(self):
        with self.record_function("outer"):
            for _ in range(3):
                with self.record_function("inner"):
                    pass
        self.assertEqual([(f[0], f[3]) for f in recorded()], [("outer", 0)] + [("inner", 1)] * 3)

    def test_categories_and_arguments(self):
        with (
            self.record_function("f", "text"),
            self.scope("s", "cat", 1, n=-3, x=1.5, yes=True, word="é", other=[1], big=1 << 80),
        ):
            pass
        found = recorded()
        self.assertEqual(found[0][:3], ("f", "user_annotation", {"args": "text"}))
        self.assertEqual(
            found[1][:3],
            (
                "s",
                "cat",
                {"n": -3, "x": 1.5, "yes": True, "word": "é", "other": "[1]", "big": str(1 << 80)},
            ),
        )

    def test_shapes(self):
        with self.scope("mm", "operator", 1, _shapes=[(0x0220, 2, 3), (0x0220, 3, 4)]):
            pass
        with prof.Trace.now() as trace:
            self.assertEqual(
                [r.shape for r in trace.aggregate(["name", "shape"])], ["[[2, 3], [3, 4]]"]
            )

    def test_enter_and_exit_by_hand(self):
        kind = type(self.record_function("x"))
        a = self.record_function("by hand")
        self.assertIs(a.__enter__(), a)
        self.assertIsNone(a.__exit__(None, None, None))
        b = self.record_function("by the type")
        self.assertIs(kind.__enter__(b), b)
        self.assertIsNone(kind.__exit__(b, None, None, None))
        with contextlib.ExitStack() as stack:
            self.assertIsInstance(stack.enter_context(self.record_function("on a stack")), kind)
            stack.enter_context(self.record_function("inside of it"))
        with self.assertRaises(KeyError), self.record_function("raises"):
            raise KeyError
        self.assertEqual(
            names(), ["by hand", "by the type", "on a stack", "inside of it", "raises"]
        )

    def test_enter_and_exit_of_what_is_no_scope(self):
        kind = type(self.record_function("x"))
        enter, leave = kind.__dict__["__enter__"], kind.__dict__["__exit__"]
        for part, count in ((enter, 0), (leave, 3)):
            for wrong in (5, None, kind, enter, object()):
                with self.assertRaises((TypeError, AttributeError)):
                    part.__get__(wrong, kind)(*[None] * count)
                with self.assertRaises((TypeError, AttributeError)):
                    part(wrong, *[None] * count)
            with self.assertRaises(TypeError):
                part()
        for wrong in ((), (1,), (1, 2), (None, None, None)):
            with self.assertRaises(TypeError):
                self.record_function("x")(*wrong)
        with self.assertRaises(TypeError):
            self.record_function("x")(function=len)
        self.assertEqual(names(), [])

    def test_what_stands_open_has_its_name(self):
        name = "open"  # a constant: at its second coming it has a call site
        for i in range(3):
            with self.record_function(name), self.scope("inner", "c"):
                found = recorded(clear=False)
                with prof.Trace.now() as trace:
                    self.assertEqual(
                        [(e.kind, e.name, e.category) for e in trace.events()][2 * i :],
                        [("open", "open", "user_annotation"), ("open", "inner", "c")],
                    )
            self.assertEqual(len(found), 2 * i)

    def test_an_empty_name_is_one_name(self):
        for _ in range(4):
            with self.record_function(""):
                pass
        self.assertEqual(names(), [""] * 4)

    def test_what_only_says_that_it_is_one(self):
        class Lying:
            @property
            def __class__(self):
                raise KeyError

        with self.scope(
            "lies", integer=mock.Mock(spec=int), real=mock.Mock(spec=float), none=Lying()
        ):
            pass
        [(_, _, args, _, _)] = recorded()
        self.assertEqual([type(v) for v in args.values()], [str] * 3)
        with self.assertRaises(TypeError):
            self.scope("x", _shapes=self.scope("y"))
        with self.assertRaises(TypeError):
            self.scope("x", _shapes=3)

    def test_names_that_begin_scopes_when_they_go(self):
        others = [f"n{i}" for i in range(300)]
        begin = self.record_function

        class Name(str):
            def __del__(self):
                for other in others:
                    with begin(other):
                        pass

        for i in range(500):
            with begin(Name(f"x{i}")):
                pass
        gc.collect()
        others.clear()  # some are held until their place is another name's

    def test_an_argument_that_begins_scopes_when_it_becomes_text(self):
        scope = self.scope

        class Again:
            def __str__(self):
                with scope("inside", x=self):
                    return "text"

        with scope("outside", x=Again()):
            pass
        thread = threading.Thread(target=lambda: str(Again()))
        thread.start()
        thread.join()
        self.assertEqual(sorted(set(names())), ["inside", "outside"])

    def test_shapes_in_shapes(self):
        shapes = ()
        for _ in range(100000):
            shapes = (self.scope("x", _shapes=shapes),)
        del shapes

    def test_a_handle_outlives_its_name(self):
        leave = self.record_function("kept").__enter__().__exit__
        gc.collect()
        leave(None, None, None)
        self.assertEqual(names(), ["kept"])

    def test_stacks(self):
        self.set_stack_frames(2)
        try:
            with self.record_function("begun"):
                pass

            @self.scope("decorated")
            def f():
                pass

            f()
        finally:
            self.set_stack_frames(0)
        stacks = [args["Call stack"].split(";") for _, _, args, _, _ in recorded()]
        self.assertEqual([len(s) for s in stacks], [2, 2])
        self.assertRegex(stacks[0][0], r"test_scopes\.py\(\d+\): test_stacks$")
        self.assertTrue(any("test_stacks" in frame for frame in stacks[1]), stacks[1])

    def test_category_and_level_by_name(self):
        class Two:  # as numpy's integers are
            def __index__(self):
                return 2

        profiler.start(2)
        with (
            self.scope("vm", category="runtime", level=Two(), n=3),
            self.scope("half", "c", level=1),
            self.scope("other", category="d"),
        ):
            pass
        self.assertEqual(
            [
                (e.name, e.category, e.level, e.args)
                for e in sorted(prof.Trace.now().events(), key=lambda e: e.start_ns)
                if e.name in ("vm", "half", "other")
            ],
            [("vm", "runtime", 2, {"n": 3}), ("half", "c", 1, None), ("other", "d", 1, None)],
        )
        for wrong, error, words in (
            (lambda: self.scope("x", "c", category="d"), TypeError, "'category'"),
            (lambda: self.scope("x", "c", 1, level=1), TypeError, "'level'"),
            (lambda: self.scope("x", level=3), ValueError, "level must be 1 or 2, not 3"),
            (lambda: self.scope("x", level="1"), TypeError, ""),
            (lambda: self.scope("x", level=1.0), TypeError, ""),
            (lambda: self.scope("x", category=4), TypeError, "category must be a str, not 4"),
            (lambda: self.scope(name="x"), TypeError, ""),
            (lambda: self.scope([1] * 1000000), TypeError, "name must be a str"),
        ):
            with self.assertRaisesRegex(error, words) as raised:
                wrong()
            self.assertLess(len(str(raised.exception)), 400)

    def test_levels(self):
        with self.scope("runtime", "vm", 2), self.scope("operator", "x", 1):
            pass
        self.assertEqual(names(), ["operator"])
        profiler.start(2)
        with self.scope("runtime", "vm", 2):
            pass
        self.assertEqual(names(), ["runtime"])

    def test_exceptions_pass_and_scopes_close(self):
        with self.assertRaises(ZeroDivisionError):
            with self.record_function("outer"), self.record_function("inner"):
                1 / 0
        self.assertEqual(names(), ["outer", "inner"])

    def test_decorated_functions(self):
        @self.record_function("decorated")
        def f(a, *, b=2):
            """text"""
            return a + b

        self.assertEqual((f(1), f(1, b=3), f.__name__, f.__doc__), (3, 4, "f", "text"))

        @self.record_function("recursive")
        def down(n):
            return n and down(n - 1)

        down(3)
        self.assertEqual(names(), ["decorated"] * 2 + ["recursive"] * 4)

    def test_generators_are_timed_while_they_run(self):
        @self.record_function("generator")
        def numbers():
            got = yield 1
            try:
                yield got
            except KeyError:
                yield 3
            return 4

        def outer():
            return (yield from numbers())

        g = outer()
        self.assertEqual(next(g), 1)
        with self.record_function("between"):
            pass
        self.assertEqual(g.send(2), 2)
        self.assertEqual(g.throw(KeyError("x")), 3)
        with self.assertRaises(StopIteration) as stopped:
            next(g)
        self.assertEqual(stopped.exception.value, 4)
        self.assertEqual(names(), ["generator", "between", "generator", "generator", "generator"])

    def test_coroutines_and_asynchronous_generators(self):
        @self.record_function("coroutine")
        async def wait(n):
            await asyncio.sleep(0.001)
            return n

        @self.record_function("agen")
        async def numbers():
            for i in range(2):
                await asyncio.sleep(0)
                yield i

        async def main():
            return await asyncio.gather(wait(1), wait(2)), [x async for x in numbers()]

        self.assertEqual(asyncio.run(main()), ([1, 2], [0, 1]))
        found = names()
        self.assertEqual(found.count("coroutine"), 4)  # two tasks of two steps
        self.assertGreaterEqual(found.count("agen"), 3)

    def test_tasks_that_take_turns_may_end_in_any_order(self):
        async def task(name, first, second):
            with self.record_function(name):
                await asyncio.sleep(first)
            await asyncio.sleep(second)

        async def main():
            await asyncio.gather(task("a", 0.004, 0), task("b", 0.001, 0), task("c", 0.002, 0))

        asyncio.run(main())
        self.assertEqual(sorted(names()), ["a", "b", "c"])

    def test_what_is_not_entered_is_copied_and_pickled(self):
        made = [
            self.record_function("layer"),
            self.record_function("layer", "given"),
            self.scope("mm", "c", 2, a=1, _shapes=[(0x0220, 2, 3)]),
        ]
        for again in (copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))):
            with prof.profile(level=2) as p:
                for one in made:
                    with again(one), one:
                        with self.assertRaisesRegex(TypeError, "entered"):
                            again(one)
            events = [(e.name, e.category, e.args, e.input_shapes) for e in p.events()]
            self.assertEqual(events[::2], events[1::2])
            self.assertEqual([e[0] for e in events[::2]], ["layer", "layer", "mm"])

    def test_one_object_may_be_entered_again(self):
        again = self.record_function("again")
        with again:
            with again:
                with again:
                    pass
        again.__exit__(None, None, None)  # one too many does nothing
        self.assertEqual(names(), ["again"] * 3)

    def test_threads(self):
        def work():
            for _ in range(100):
                with self.record_function("on a thread"):
                    pass

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        found = recorded()
        self.assertEqual(len(found), 400)
        self.assertEqual(len({f[4] for f in found}), 4)

    def test_hostile_names(self):
        for name in ("", "a\0b", "\ud800", "é" * 300, "\u2028<script>", "x" * 100000, "%s%n"):
            for _ in range(10):  # a name that comes often has a call site of its own
                with self.record_function(name):
                    pass
        found = names()
        self.assertEqual(len(found), 70)
        self.assertEqual(found[0], "")
        self.assertTrue(found[30].startswith("é"))

    def test_names_that_are_made_anew(self):
        for i in range(10000):
            with self.record_function(f"step {i % 1000}"):
                pass
        gc.collect()
        with prof.Trace.now() as trace:
            rows = trace.aggregate("name")
        self.assertEqual(len(rows), 1000)
        self.assertEqual({r.count for r in rows}, {10})

    def test_wrong_types(self):
        for call in (
            lambda: self.record_function(1),
            lambda: self.record_function(),
            lambda: self.record_function("a", 1),
            lambda: self.record_function("a", nothing=1),
            lambda: self.scope("a", 1),
            lambda: self.record_function("a")(1),
        ):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(ValueError):
            self.scope("a", "b", 3)

    def test_arguments_that_cannot_be_told(self):
        class Bad:
            def __str__(self):
                raise RuntimeError("no")

        class Interrupted:
            def __str__(self):
                raise KeyboardInterrupt

        with self.scope("bad", "x", 1, value=Bad()):
            pass
        with self.assertRaises(KeyboardInterrupt):
            with self.scope("interrupted", "x", 1, value=Interrupted()):
                self.fail("not entered")
        found = recorded()
        self.assertEqual(found[0][2], {"value": "<no text>"})

    def test_an_interrupted_argument_comes_out_whatever_stands_beside_it(self):
        class Interrupted:
            def __str__(self):
                asked.append(self)
                raise KeyboardInterrupt

        class Told:
            def __str__(self):
                asked.append(self)
                return "\udc80"

        gc.collect()
        for name, category, args in (
            ("first", "x", {"a": Interrupted(), "b": Told(), "c": Told()}),
            ("bad\udc80name", "x", {"a": Interrupted()}),
            ("category", "bad\udc80", {"a": Interrupted()}),
            ("later key", "x", {"a": Interrupted(), "\udc80": 1}),
            ("later value", "x", {"a": Interrupted(), "b": "\udc80"}),
            ("both", "x", {"a": Interrupted(), "b": Interrupted()}),
        ):
            asked = []
            with self.assertRaises(KeyboardInterrupt, msg=name):
                with self.scope(name, category, 1, **args):
                    self.fail("not entered")
            # what would run with the error pending is not asked
            self.assertEqual(asked, [args["a"]], name)
        with self.scope("after", "x", 1, a=1):
            pass
        self.assertEqual([f[:3] for f in recorded()], [("after", "x", {"a": 1})])

    @unittest.skipUnless(sys.implementation.name == "cpython", "PyPy runs handlers a little later")
    def test_what_a_handler_raises_meanwhile_comes_out(self):
        class Alarm(Exception):
            pass

        def fail(*_):
            raise Alarm

        def send():
            sent.append(1)
            if len(sent) == 1:
                signal.raise_signal(signal.SIGALRM)

        class Value:
            def __str__(self):
                send()
                return "text"

        class Dims:
            def __len__(self):
                return 3

            def __getitem__(self, i):
                send()
                return (0x0220, 2, 3)[i]

        class Shapes(list):
            def __getitem__(self, i):
                send()
                return super().__getitem__(i)

            def __iter__(self):
                send()
                return super().__iter__()

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, fail))
        for name, args in (
            ("value", {"a": Value(), "\udc80": Value()}),
            ("bad\udc80name", {"a": Value()}),
            ("dims", {"_shapes": [Dims(), Dims()]}),
            ("shapes", {"_shapes": Shapes([(0x0220, 2)]), "\udc80": 1}),
        ):
            sent = []
            with self.assertRaises(Alarm, msg=name):
                with self.scope(name, "x", 1, **args):
                    self.fail("not entered")
        self.assertEqual(recorded(), [])

    def test_an_interrupted_shape_comes_out(self):
        class Dims:
            def __init__(self, at):
                self.at = at

            def __len__(self):
                return 3

            def __getitem__(self, i):
                if i == self.at:
                    raise KeyboardInterrupt
                return (0x0220, 2, 3)[i]

        for at in range(3):
            with self.assertRaises(KeyboardInterrupt):
                with self.scope("\udc80", "x", 1, _shapes=[Dims(at), (0x0220, 4)], a=1):
                    self.fail("not entered")
        self.assertEqual(recorded(), [])

    def test_off_nothing_is_recorded(self):
        profiler.stop()
        with self.record_function("off"):
            pass
        profiler.start()
        self.assertEqual(names(), [])

    @unittest.skipUnless(hasattr(sys, "getrefcount"), "this interpreter counts no references")
    def test_nothing_is_kept_of_objects(self):
        before = sys.getrefcount("a name that is counted")
        name = "".join(["a name", " of its own"])
        own = sys.getrefcount(name)
        for _ in range(100):
            with self.record_function(name):
                pass
        self.assertLessEqual(sys.getrefcount(name), own + 2)  # the place where names are known
        self.assertEqual(sys.getrefcount("a name that is counted"), before)


class SlowScopes(Scopes):
    record_function = staticmethod(_slow.record_function)
    scope = staticmethod(_slow.scope)

    @staticmethod
    def set_stack_frames(count):
        _slow.stack_frames = count


if __name__ == "__main__":
    unittest.main()
