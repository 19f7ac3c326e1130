"""Decorated generators, coroutines and asynchronous generators: what is sent, thrown and closed
reaches the function, and they stay what they are."""

import asyncio
import contextlib
import gc
import inspect
import sys
import time
import types
import unittest

import prof
from prof import _scope, _slow


class Decorated(unittest.TestCase):
    record_function = staticmethod(_scope.record_function)

    def both(self, function, use):
        """What use() gives of the function and of the decorated one."""
        results = []
        for f in (function, self.record_function("f")(function)):
            try:
                results.append(use(f))
            except BaseException as e:
                results.append((type(e), str(e), type(e.__context__), type(e.__cause__)))
        self.assertEqual(results[1], results[0])
        return results[0]

    def test_an_asynchronous_context_manager_sees_what_is_raised_in_it(self):
        async def catches():
            try:
                yield 1
            except ValueError:
                pass

        async def changes():
            try:
                yield 1
            except ValueError:
                raise KeyError("other") from None

        async def passes():
            yield 1

        async def use(f):
            async with contextlib.asynccontextmanager(f)():
                raise ValueError("x")

        for function in (catches, changes, passes):
            self.both(function, lambda f: asyncio.run(use(f)))

    def test_an_asynchronous_generator_gets_all_that_is_sent_and_thrown(self):
        async def echo():
            got = None
            for _ in range(6):
                try:
                    got = yield got
                except ValueError as e:
                    got = str(e)

        async def use(f):
            generator = f()
            steps = [await generator.asend(None)]
            for value in ("a", ValueError("b"), ValueError("c"), "d"):
                steps.append(
                    await (
                        generator.athrow(value)
                        if isinstance(value, ValueError)
                        else generator.asend(value)
                    )
                )
            await generator.aclose()
            return steps

        self.assertEqual(self.both(echo, lambda f: asyncio.run(use(f))), [None, "a", "b", "c", "d"])

    def test_an_asynchronous_generator_is_closed(self):
        told = []

        async def endless():
            try:
                while True:
                    yield 1
            finally:
                await asyncio.sleep(0)
                told.append("closed")

        async def use(f):
            del told[:]
            generator = f()
            await generator.asend(None)
            await generator.aclose()
            return list(told)

        self.assertEqual(self.both(endless, lambda f: asyncio.run(use(f))), ["closed"])

    def test_one_that_does_not_end_is_told(self):
        async def stays():
            while True:
                try:
                    yield 1
                except GeneratorExit:
                    pass

        async def use(f):
            generator = f()
            await generator.asend(None)
            try:
                await generator.aclose()
            except RuntimeError as e:
                return str(e)

        async def main():
            return [await use(f) for f in (stays, self.record_function("f")(stays))]

        loop = asyncio.new_event_loop()  # asyncio.run() would tell of those that go on
        try:
            plain, decorated = loop.run_until_complete(main())
        finally:
            loop.close()
        self.assertEqual(decorated, plain)

    def test_a_generator_that_can_be_awaited_stays_so(self):
        @types.coroutine
        def step():
            got = yield
            return got

        async def use(f):
            return await f()

        self.assertEqual(self.both(step, lambda f: asyncio.run(use(f))), None)
        self.assertTrue(inspect.isawaitable(self.record_function("f")(step)()))

        def plain():
            yield 1

        self.assertFalse(inspect.isawaitable(self.record_function("f")(plain)()))

    def test_what_waits_for_an_iterator_without_throw_is_cancelled(self):
        class Waits:
            def __await__(self):
                return iter([None] * 1000)

        async def wait():
            await Waits()

        steps = getattr(inspect, "markcoroutinefunction", None)  # 3.12: any function may be one
        marked = steps(lambda: Waits()) if steps else wait

        async def use(f):
            task = asyncio.ensure_future(f())
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return "cancelled"

        decorated = self.record_function("f")(marked)
        self.assertEqual(asyncio.run(use(decorated)), "cancelled")
        self.assertEqual(asyncio.run(use(self.record_function("f")(wait))), "cancelled")

    def test_a_generator_gets_all_that_is_sent_and_thrown(self):
        def echo():
            got = None
            for _ in range(4):
                try:
                    got = yield got
                except ValueError as e:
                    got = str(e)
            return "end"

        def use(f):
            generator = f()
            return [
                next(generator),
                generator.send("a"),
                generator.throw(ValueError("b")),
                generator.throw(ValueError("c")),
                generator.close(),
            ]

        self.assertEqual(self.both(echo, use), [None, "a", "b", "c", None])

    def test_what_a_closed_generator_returns(self):
        """From Python 3.13 on close() gives it; before, None."""

        def plain(value):
            try:
                yield 1
            except GeneratorExit:
                return value

        def lets_it_pass():
            yield 1

        decorated, passes = (
            self.record_function("closed")(plain),
            self.record_function("passes")(lets_it_pass),
        )
        for value in ("last", 0, None):
            expected, found = plain(value), decorated(value)
            self.assertEqual((next(found), found.close()), (next(expected), expected.close()))
            self.assertEqual(list(found), [])
        generator = passes()
        self.assertEqual((next(generator), generator.close()), (1, None))
        generator = passes()
        next(generator)
        with self.assertRaises(GeneratorExit):
            generator.throw(GeneratorExit())

    def test_what_runs_when_it_is_closed_is_recorded(self):
        @self.record_function("generator")
        def generator():
            try:
                yield 1
            finally:
                time.sleep(0.01)

        @types.coroutine
        def wait():
            yield

        @self.record_function("coroutine")
        async def coroutine():
            try:
                await wait()
            finally:
                time.sleep(0.01)

        def close(function):
            function.close()

        # PyPy's collector drops the inner one without a close()
        ends = (close, lambda dropped: None) if sys.implementation.name == "cpython" else (close,)
        for name, make in (("generator", generator), ("coroutine", coroutine)):
            for end in ends:
                with self.subTest(name), prof.profile() as p:
                    begun = make()
                    begun.send(None)
                    end(begun)
                    del begun
                    gc.collect()
                (row,) = p.key_averages()
                self.assertEqual((row.key, row.count), (name, 2))
                self.assertGreater(row.cpu_time_total, 9000)

    def test_a_class_is_refused(self):
        class Thing:
            pass

        with self.assertRaisesRegex(
            TypeError,
            "generators, coroutines and asynchronous generators, not the class .*Thing: decorate "
            "its __init__",
        ):
            self.record_function("x")(Thing)


class SlowDecorated(Decorated):
    record_function = staticmethod(_slow.record_function)


if __name__ == "__main__":
    unittest.main()
