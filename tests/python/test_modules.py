"""trace_module(): shapes, kinds of functions, pickles, and what it must not touch."""

import asyncio
import builtins
import copy
import inspect
import math
import pickle
import sys
import types
import unittest

import prof
from prof import modules, profiler

try:
    import numpy
except ImportError:
    numpy = None


class DType:
    kind, itemsize = "f", 4

    def __str__(self):
        raise AssertionError("str() of a dtype")


class Array:
    dtype = DType()

    def __init__(self, *shape):
        self.shape = shape


class Bad:
    @property
    def shape(self):
        raise ValueError("no shape")


class Callable:
    attribute = 7

    def __call__(self, *args):
        return len(args)


class Modules(unittest.TestCase):
    def setUp(self):
        self.module = types.ModuleType("made")
        sys.modules["made"] = self.module
        self.addCleanup(sys.modules.pop, "made", None)
        self.addCleanup(prof.untrace_module, self.module)
        profiler.start()
        profiler.clear()
        self.addCleanup(profiler.stop)

    def shapes(self):
        with prof.Trace.now() as trace:
            found = [(e.name, e.args) for e in trace.events() if e.kind == "scope"]
        profiler.clear()
        return found

    def test_shapes(self):
        self.module.f = lambda *args: len(args)
        prof.trace_module(self.module)
        self.assertEqual(self.module.f(Array(2, 3), 0, "text", 1.5), 4)
        self.assertEqual(self.module.f([Array(2), Array(3)], (Array(), 5)), 2)
        self.assertEqual(self.module.f(Bad(), Array(4)), 2)
        self.module.f(1, 2)
        self.assertEqual(self.shapes(), [("made.f", [(2, 3), (), ()]), ("made.f", [(2,), (3,), ()]), ("made.f", [(4,)]), ("made.f", None)])

    def test_dtypes_are_known_by_kind_and_size(self):
        self.assertEqual(modules.shapes_of([Array(2)]), [(0x0220, 2)])

    def test_what_prof_needs_is_refused_and_a_failure_leaves_nothing(self):
        for module in (builtins, sys, prof, modules, inspect):
            with self.assertRaisesRegex(ValueError, "prof itself"):
                prof.trace_module(module)
        self.module.f = f = lambda: 1
        with self.assertRaises(AttributeError):
            prof.trace_module(self.module, ["f", "missing"])
        self.assertIs(self.module.f, f)

    def test_generators_and_coroutines_stay_what_they_are(self):
        def generator():
            yield 1

        async def coroutine():
            return 2

        self.module.generator, self.module.coroutine = generator, coroutine
        prof.trace_module(self.module)
        self.assertTrue(inspect.isgeneratorfunction(self.module.generator) and inspect.iscoroutinefunction(self.module.coroutine))
        self.assertEqual((list(self.module.generator()), asyncio.run(self.module.coroutine())), ([1], 2))
        self.assertEqual({name for name, _ in self.shapes()}, {"made.generator", "made.coroutine"})

    def test_objects_are_copied_and_pickled_by_name(self):
        self.module.f = Callable()
        prof.trace_module(self.module)
        f = self.module.f
        self.assertTrue(isinstance(f, Callable) and f.attribute == 7)
        self.assertIs(copy.copy(f), f)
        self.assertIs(copy.deepcopy([f])[0], f)
        self.assertIs(pickle.loads(pickle.dumps(f)), f)
        prof.trace_module(math)
        try:
            self.assertIs(pickle.loads(pickle.dumps(math.sin)), math.sin)
        finally:
            prof.untrace_module(math)

    @unittest.skipIf(numpy is None, "numpy is missing")
    def test_only_what_the_program_calls_of_numpy_is_seen(self):
        a = numpy.ones((5,), numpy.float32)
        prof.trace_module(numpy)
        try:
            for _ in range(3):
                numpy.maximum(a, 0)
            numpy.concatenate([a, a])
            found = self.shapes()
            self.assertIsInstance(numpy.add, numpy.ufunc)
            self.assertIs(pickle.loads(pickle.dumps(numpy.add)), numpy.add)
        finally:
            prof.untrace_module(numpy)
        self.assertEqual(found, [("numpy.maximum", [(5,), ()])] * 3 + [("numpy.concatenate", [(5,), (5,)])])


if __name__ == "__main__":
    unittest.main()
