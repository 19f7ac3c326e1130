"""trace_module(): shapes, kinds of functions, pickles, and what it must not touch."""

import asyncio
import builtins
import collections
import copy
import dataclasses
import enum
import functools
import inspect
import logging
import math
import pickle
import subprocess
import sys
import threading
import types
import typing
import unittest
import warnings

from hang_guard import HANG_SECONDS

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
    def __call__(self, *args):
        return len(args)

    def __getitem__(self, key):
        return key


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
        self.assertEqual(
            self.shapes(),
            [
                ("made.f", [(2, 3), (), ()]),
                ("made.f", [(2,), (3,), ()]),
                ("made.f", [(4,)]),
                ("made.f", None),
            ],
        )

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
        self.assertTrue(
            inspect.isgeneratorfunction(self.module.generator)
            and inspect.iscoroutinefunction(self.module.coroutine)
        )
        self.assertEqual(
            (list(self.module.generator()), asyncio.run(self.module.coroutine())), ([1], 2)
        )
        self.assertEqual({name for name, _ in self.shapes()}, {"made.generator", "made.coroutine"})

    def test_objects_are_copied_and_pickled_by_name(self):
        self.module.f = partial = functools.partial(max, 3)
        prof.trace_module(self.module)
        f = self.module.f
        self.assertTrue(
            isinstance(f, functools.partial)
            and f.func is max
            and f == partial
            and hash(f) == hash(partial)
            and f is not partial
        )
        self.assertIs(copy.copy(f), f)
        self.assertIs(copy.deepcopy([f])[0], f)
        self.assertIs(pickle.loads(pickle.dumps(f)), f)
        prof.trace_module(math)
        try:
            self.assertIs(pickle.loads(pickle.dumps(math.sin)), math.sin)
        finally:
            prof.untrace_module(math)

    def test_what_is_called_and_more_is_left_alone(self):
        self.module.f = f = Callable()
        self.module.kind = Callable
        self.assertEqual(prof.trace_module(self.module), 0)
        self.assertIs(self.module.f, f)
        self.assertEqual(self.module.f[3], 3)

    def test_attributes_are_the_functions(self):
        def count():
            self.module.count.calls += 1
            return self.module.count.calls

        count.calls = 0
        self.module.count, self.module.partial = count, functools.partial(max, 3)
        prof.trace_module(self.module)
        self.module.count.calls = 10
        self.module.partial.note = "kept"
        self.assertEqual((self.module.count(), self.module.partial.func), (11, max))
        self.assertEqual(str(inspect.signature(self.module.count)), "()")
        prof.untrace_module(self.module)
        self.assertIs(self.module.count, count)
        self.assertEqual(
            (count.__dict__, self.module.count(), self.module.partial.note),
            ({"calls": 12}, 12, "kept"),
        )

    def test_any_word_may_be_a_parameter(self):
        self.module.f = functools.partial(lambda **words: words)
        self.module.g = lambda **words: words
        prof.trace_module(self.module)
        for f in (self.module.f, self.module.g):
            self.assertEqual(f(self=1, args=2, function=3), {"self": 1, "args": 2, "function": 3})

    def test_one_function_of_two_names_stays_one(self):
        other = types.ModuleType("other")
        self.module.f = self.module.alias = other.f = f = lambda: 1
        prof.trace_module(self.module)
        prof.trace_module(other)
        self.assertTrue(self.module.f is self.module.alias is other.f is not f)
        self.module.f()
        prof.untrace_module(self.module)
        self.assertIs(self.module.f, f)
        self.assertIsNot(other.f, f)
        prof.untrace_module(other)
        self.assertIs(other.f, f)
        self.assertEqual(len(self.shapes()), 1)

    def test_what_asks_who_calls_it_is_refused(self):
        for module in (collections, dataclasses, enum, logging, typing, warnings):
            with self.assertRaisesRegex(
                ValueError,
                f"cannot trace {module.__name__}: its functions ask for the one that calls them",
            ):
                prof.trace_module(module)

    def test_odd_modules(self):
        class Lazy(types.ModuleType):
            def __getattr__(self, name):
                raise ImportError(name)

        odd = Lazy("odd")
        odd.__all__, odd.f = ["f", 5, "missing"], (lambda: 1)
        self.assertEqual(prof.trace_module(odd), 1)
        prof.untrace_module(odd)

    def test_many_threads_trace_one_module(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        for _ in range(100):
            originals = {f"f{i}": (lambda i=i: i) for i in range(20)}
            self.module.__dict__.update(originals)
            threads = [
                threading.Thread(target=prof.trace_module, args=(self.module,)) for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.module.f1()
            prof.untrace_module(self.module)
            for name, function in originals.items():
                self.assertIs(getattr(self.module, name), function)
        self.assertEqual(len(self.shapes()), 100)

    def test_profs_own_calls_are_no_rows(self):
        child = (
            "import os, time, prof\nprof.trace_module(os); prof.trace_module(time)\n"
            "with prof.profile() as p: os.getpid()\n"
            "print([(r.key, r.count) for r in p.key_averages()])"
        )
        done = subprocess.run(
            [sys.executable, "-c", child],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (0, "[('os.getpid', 1)]\n", "")
        )

    @unittest.skipIf(numpy is None, "numpy is missing")
    def test_numpys_protocols(self):
        class Number:
            def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
                return "added" if ufunc == numpy.add else handled.get(ufunc, NotImplemented)

            def __array_function__(self, function, types, args, keywords):
                return handled[function]

        prof.trace_module(numpy)
        try:
            handled = {numpy.mean: "mean", numpy.negative: "negative"}
            self.assertEqual(
                (numpy.add(Number(), 1), numpy.mean(Number()), numpy.negative(Number())),
                ("added", "mean", "negative"),
            )
            self.assertIs(numpy.abs, numpy.absolute)
            self.assertEqual(numpy.add.reduce([1, 2, 3]), 6)
        finally:
            prof.untrace_module(numpy)

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
        self.assertEqual(
            found, [("numpy.maximum", [(5,), ()])] * 3 + [("numpy.concatenate", [(5,), (5,)])]
        )


if __name__ == "__main__":
    unittest.main()
