"""RAF's three profilers, as its tutorial uses them."""

import functools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from hang_guard import HANG_SECONDS

import prof
from prof import memory_profiler, op_profiler, profiler
from prof.op_profiler import GetCacheSize, Op, Profile, ProfileGroup, ResetCache

MIB = 1 << 20


def busy(us):
    end = time.perf_counter() + us / 1e6
    while time.perf_counter() < end:
        pass


def holding(x):
    return lambda: x


class Thing:
    def __call__(self):
        pass

    def method(self):
        pass


class Latency(unittest.TestCase):
    def setUp(self):
        profiler.stop()
        profiler.clear()

    def test_the_tutorial(self):
        prof.profiler.clear()
        prof.profiler.start()
        with prof.scope("conv2d", "Default Stream"):
            busy(100)
        prof.profiler.stop()
        result = prof.profiler.get()
        begin, end = result["traceEvents"]
        self.assertEqual(
            (begin["name"], begin["cat"], begin["ph"], end["ph"], begin["tid"]),
            ("conv2d", "Default Stream", "B", "E", "Default Stream"),
        )
        self.assertGreaterEqual(prof.profiler.get_duration(result, "conv2d", "Default Stream"), 0.1)
        ms, count = prof.profiler.total("conv2d")
        self.assertEqual(count, 1)
        self.assertGreaterEqual(ms, 0.1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profile.json")
            prof.profiler.dump(path)
            with open(path) as f:
                self.assertEqual(json.load(f), result)
            self.assertEqual(os.listdir(folder), ["profile.json"])
        prof.profiler.clear()
        self.assertEqual(prof.profiler.get()["traceEvents"], [])

    def test_durations_that_are_not_there(self):
        profiler.start()
        for _ in range(2):
            with prof.scope("twice", "x"):
                pass
        profiler.stop()
        with self.assertRaisesRegex(ValueError, "does not exist"):
            profiler.get_duration(profiler.get(), "never")
        with self.assertRaisesRegex(ValueError, "2 events"):
            profiler.get_duration(profiler.get(), "twice")

    def test_data_that_is_no_trace(self):
        trace = {"traceEvents": [{"name": "x" * 1000, "ph": "B", "ts": 1}] * 1000}
        for arguments in (
            ({}, "x"),
            (None, "x"),
            ("s", trace),
            ({"traceEvents": 3}, "x"),
            ({"traceEvents": ["x"]}, "x"),
            ({"traceEvents": [{"name": "x", "ph": "B"}]}, "x"),
        ):
            with self.assertRaisesRegex(TypeError, r"^data is what get\(\) gave, not .") as raised:
                profiler.get_duration(*arguments)
            self.assertLess(len(str(raised.exception)), 130)
        for use in (
            lambda: profiler.get_duration(trace, trace),
            lambda: profiler.total(trace, "s"),
            lambda: profiler.total("s", trace),
        ):
            with self.assertRaisesRegex(
                TypeError, "^(event|category) must be a str, not {'traceEvents'"
            ) as raised:
                use()
            self.assertLess(len(str(raised.exception)), 130)

    def test_levels(self):
        for bad in (3, -1, 1 << 40):
            with self.assertRaises(ValueError) as raised:
                profiler.start(bad)
            self.assertIsInstance(raised.exception, prof.ProfError)
        with self.assertRaises(TypeError):
            profiler.start("1")
        profiler.stop()
        profiler.stop()

    def test_paths(self):
        profiler.start()
        profiler.stop()
        with self.assertRaises(FileNotFoundError):
            profiler.dump("/no/such/directory/x.json")
        with self.assertRaises(TypeError):
            profiler.dump(3)
        with self.assertRaises(ValueError):
            profiler.dump("a\0b")

    def test_before_anything_was_started(self):
        code = (
            "import prof\nassert prof.profiler.get()['traceEvents'] == []\nprof.profiler.stop()\n"
            "prof.profiler.clear()\nprof.memory_profiler.reset()\nprof.memory_profiler.stop()\n"
            "assert prof.memory_profiler.get_memory_trace('cpu') == ''\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Memory(unittest.TestCase):
    def setUp(self):
        profiler.stop()
        memory_profiler.stop()

    def test_a_query(self):
        state = [10 * MIB, 32 * MIB]
        device = prof.Device("cuda", 3)
        memory_profiler.set_query(device, lambda: tuple(state))
        memory_profiler.reset()
        memory_profiler.start()
        memory_profiler.sample("first", device)
        state[:] = [20 * MIB, 64 * MIB]
        memory_profiler.sample("second", device)
        state[:] = [5 * MIB, 40 * MIB]
        memory_profiler.sample("third", device)
        memory_profiler.stop()
        result = memory_profiler.get_max_memory_info(device)
        self.assertEqual(
            (
                result["max_used"].value,
                result["max_allocated"].value,
                result["num_gc"].value,
                result["max_trace_idx"].value,
            ),
            (20.0, 64.0, 1, 1),
        )
        lines = memory_profiler.get_memory_trace(device).splitlines()
        self.assertTrue(lines[1].startswith("#Trace"))
        self.assertEqual(
            [line.split()[:2] for line in lines[2:]],
            [["0", "first"], ["1", "second"], ["2", "third"]],
        )
        memory_profiler.set_query(device, None)

    def test_the_report_is_as_wide_as_asked(self):
        profiler.start()
        with memory_profiler.Pool("wide", "cpu") as pool:
            pool.alloc(0x1000, 1000, 1024)
        profiler.stop()
        narrow, wide = (
            memory_profiler.report(width=60, ascii=True),
            memory_profiler.report(width=120),
        )
        self.assertGreater(max(map(len, wide.splitlines())), max(map(len, narrow.splitlines())))
        self.assertTrue(narrow.isascii())
        with self.assertRaises(ValueError):
            memory_profiler.report(width=3)
        with self.assertRaises(LookupError):
            memory_profiler.report(pool=99999)

    def test_a_pool(self):
        profiler.start()
        with memory_profiler.Pool("pool", "cuda:1") as pool:
            pool.reserve(0x1000, MIB)
            with prof.scope("dense"):
                pool.alloc(0x1000, 1000, 1024, tag="weights")
            pool.alloc(0x2000, 500, 512)
            pool.free(0x2000, 512)
        profiler.stop()
        result = memory_profiler.get_max_memory_info("cuda:1")
        self.assertEqual((result["max_used_bytes"], result["max_allocated_bytes"]), (1536, MIB))
        text = memory_profiler.report()
        self.assertIn("weights", text)
        self.assertIn("dense", text)
        with self.assertRaises(ValueError):
            memory_profiler.get_max_memory_info("toaster")
        with self.assertRaises(TypeError):
            memory_profiler.get_max_memory_info(1)

    def test_a_query_that_fails(self):
        device = prof.Device("cuda", 4)
        memory_profiler.set_query(device, lambda: 1 / 0)
        memory_profiler.start()
        memory_profiler.sample("x", device)
        memory_profiler.stop()
        memory_profiler.set_query(device, None)
        self.assertEqual(memory_profiler.get_memory_trace(device), "")


class Devices(unittest.TestCase):
    def test_names(self):
        self.assertEqual(prof.Device("cuda(1)"), prof.Device("cuda:1"))
        self.assertEqual(prof.Device("cuda", 1), prof.Device("gpu:1"))
        self.assertNotEqual(prof.Device("cpu"), prof.Device("cuda"))
        self.assertEqual(repr(prof.Device("rocm:2")), "Device('rocm(2)')")
        for bad in ("", "cuda:", "cuda:x", "CPU", "cuda:-1"):
            with self.assertRaises(ValueError):
                prof.Device(bad)


class Operators(unittest.TestCase):
    def setUp(self):
        ResetCache()

    def test_the_tutorial(self):
        device = prof.Device("cpu")
        expr = Op(busy, 100)
        ResetCache(device)
        self.assertEqual(GetCacheSize(device), 0)
        res = Profile(expr, device)
        lat, ws_size = res["latency"], res["workspace_size"]
        self.assertEqual(len(lat), 1)
        self.assertGreaterEqual(lat[0].value, 100)
        self.assertEqual(ws_size.value, 0)
        self.assertEqual(GetCacheSize(device), 1)
        Profile(expr, device)
        self.assertEqual(GetCacheSize(device), 1)
        res = Profile(expr, device, 1, 1, 2)
        self.assertEqual(len(res["latency"]), 2)
        self.assertEqual(GetCacheSize(device), 2)

    def test_how_often_it_runs(self):
        runs = []
        op = Op(
            lambda: runs.append(1),
            prepare=lambda: runs.append("prepare"),
            cleanup=lambda: runs.append("cleanup"),
            workspace=lambda: 4096,
        )
        res = Profile(op, "cpu", 3, 5, 4)
        self.assertEqual((runs.count(1), runs[0], runs[-1]), (3 + 5 * 4, "prepare", "cleanup"))
        self.assertEqual(res["workspace_size"].value, 4096)

    def test_what_a_key_is(self):
        self.assertEqual(Op(busy, 5).key, Op(busy, 5).key)
        self.assertNotEqual(Op(busy, 5).key, Op(busy, 6).key)
        self.assertEqual(Op(functools.partial(busy, 5)).key, Op(busy, 5).key)
        self.assertNotEqual(Op(lambda: 1).key, Op(lambda: 2).key)
        # what a closure holds is not seen
        self.assertNotEqual(Op(holding(1)).key, Op(holding(2)).key)
        f = holding(3)
        self.assertEqual(Op(f).key, Op(f).key)
        self.assertEqual(Op(f, key="mine").key, "mine")
        self.assertEqual(Op(math.sqrt, 2.0).key, "math.sqrt(2.0)")
        self.assertEqual(Op(len, (1, "a")).key, "builtins.len(tuple(1, 'a'))")

    def test_values_that_a_function_finds_are_seen(self):
        keys = set()
        for n in (1, 2, 3):
            scope = {"n": n}
            exec("f = lambda: (lambda: range(n))()\ndef g(x=%d): return x" % n, scope)
            keys.update((Op(scope["f"]).key, Op(scope["g"]).key))
        self.assertEqual(len(keys), 6)

    def test_objects_are_known_by_themselves(self):
        ones = [Thing() for _ in range(50)]
        self.assertEqual(len({Op(one).key for one in ones}), 50)
        self.assertEqual(Op(ones[0]).key, Op(ones[0]).key)
        self.assertEqual(Op(ones[0].method).key, Op(ones[0].method).key)
        self.assertNotEqual(Op(ones[0].method).key, Op(ones[1].method).key)
        # at addresses that come again
        self.assertEqual(len({Op(Thing()).key for _ in range(50)}), 50)
        self.assertEqual(len({Op(len, [object()] * 3).key for _ in range(50)}), 50)
        # no weak references to a list
        self.assertEqual(len({Op([i].count, 1).key for i in range(50)}), 50)

    def test_another_process_takes_no_result_that_is_not_its_own(self):
        code = (
            "def f(): return %s\ndef g(x): return lambda: x\nfrom prof.op_profiler import Op\n"
            "print(Op(f).key, Op(g(1)).key, sep='|')"
        )
        said = [
            subprocess.run(
                [sys.executable, "-c", code % text],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                check=True,
            )
            .stdout.strip()
            .split("|")
            for text in ("1", "1", "2")
        ]
        self.assertEqual(said[0][0], said[1][0])
        self.assertNotEqual(said[0][0], said[2][0])
        self.assertEqual(len({closure for _, closure in said}), 3)

    def test_exceptions_come_through(self):
        for error in (ZeroDivisionError, KeyboardInterrupt):

            def fail(error=error):
                raise error

            with self.assertRaises(error):
                Profile(fail)
        with self.assertRaises(ValueError):
            Profile(busy, "cpu", -1)
        with self.assertRaises(ValueError):
            Profile(busy, "cpu", 1, 0)
        with self.assertRaises(TypeError):
            Profile(Op(busy, 1), "cpu", 1, "2")
        with self.assertRaises(TypeError):
            Op(3)

    def test_results_are_judged_and_compared(self):
        first, second = op_profiler.profile_in_turn(
            [Op(busy, 20), Op(busy, 60)], warmup=1, time_limit_s=0.3
        )
        self.assertGreater(min(first.samples), 18)  # without what the timer takes
        self.assertGreater(min(second.samples), 54)
        self.assertEqual(len(first.samples), first.sample_count)
        self.assertIn("us", str(first))
        compared = op_profiler.compare(first, second)
        rounds = [other / one for one, other in zip(first.samples, second.samples)]
        self.assertTrue(min(rounds) <= compared.ratio <= max(rounds), (compared, rounds))
        self.assertIn(compared.order, ("slower" if compared.ratio > 1 else "faster", "unclear"))

    def test_results_and_operators_are_shown(self):
        op = Op(busy, 5, key="busy", workspace=lambda: 4096)
        self.assertEqual(repr(op), "<Op busy, with workspace>")
        result = op_profiler.profile(op, time_limit_s=0.01)
        self.assertRegex(repr(result), r"^<Result busy: .*us")
        self.assertLessEqual(
            {"median_us", "workspace_bytes", "samples", "doubts"}, set(dir(result))
        )
        self.assertFalse({"size", "reserved"} & set(dir(result)))
        for name in dir(result):
            getattr(result, name)
        with self.assertRaisesRegex(
            AttributeError, r"^a Result has no attribute 'median'; did you mean 'median_us'\?$"
        ):
            result.median
        for name in ("zzz", "_private", "reserved"):
            self.assertFalse(hasattr(result, name))

    def test_a_workspace_that_no_device_has(self):
        for bad, error in (
            (2**64 + 5, ValueError),
            (-1, ValueError),
            (2**70, ValueError),
            (1.5, TypeError),
            (None, TypeError),
        ):
            op = Op(busy, 1, workspace=lambda bad=bad: bad)
            for _ in range(2):
                with self.assertRaisesRegex(
                    error, "^workspace must be .*not " + re.escape(str(bad))
                ):
                    op_profiler.profile(op, time_limit_s=0.01)
        self.assertEqual(GetCacheSize(), 0)

    def test_a_workspace_is_part_of_the_key(self):
        ops = [Op(busy, 1), Op(busy, 1, workspace=lambda: 10), Op(busy, 1, workspace=lambda: 20)]
        self.assertEqual(
            [op_profiler.profile(op, time_limit_s=0.01).workspace_bytes for op in ops], [0, 10, 20]
        )
        self.assertEqual(Op(busy, 1, workspace=busy).key, Op(busy, 1, workspace=busy).key)

    def test_how_many_take_turns(self):
        for count in (0, 1025):
            with self.assertRaisesRegex(
                ValueError, rf"^profile_in_turn\(\) takes 1 to 1024 operators, not {count}$"
            ):
                op_profiler.profile_in_turn([Op(busy, 1)] * count)

    def test_a_group(self):
        res = ProfileGroup([Op(time.sleep, 0.001), Op(time.sleep, 0.002)], "cpu", [], 1, 1, 5)
        self.assertEqual(len(res["latency"]), 5)
        self.assertGreaterEqual(res["latency"][0].value, 2000)
        with self.assertRaises(ValueError):
            ProfileGroup([])

    def test_other_threads_run_meanwhile(self):
        """An operator that gives the GIL away goes on when another thread has run inside of it,
        each time: how soon, the machine decides."""
        asked, ran = threading.Semaphore(0), threading.Semaphore(0)
        answers, over = [], threading.Event()

        def answer():
            while asked.acquire(timeout=HANG_SECONDS) and not over.is_set():
                ran.release()

        def ask():
            asked.release()
            answers.append(ran.acquire(timeout=HANG_SECONDS))

        thread = threading.Thread(target=answer)
        thread.start()
        op_profiler.profile(Op(ask), warmup=1, time_limit_s=0.2, no_reuse=1)
        over.set()
        asked.release()
        thread.join()
        self.assertGreater(len(answers), 1)
        self.assertEqual(set(answers), {True})


if __name__ == "__main__":
    unittest.main()
