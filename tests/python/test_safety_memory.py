"""What must not go wrong, of operators' profiles, memory and names: as test_safety.py has it of
traces and profiles."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from hang_guard import HANG_SECONDS
from recorded import work
from test_safety import Base

import prof
from prof import memory_profiler, op_profiler, profiler
from prof._library import C


class Operators(Base):
    def test_keys_do_not_run_together(self):
        of = op_profiler._keys.of
        alike = [
            (lambda: print(1, 23456), lambda: print(12, 3456)),
            (lambda a=1, b=23: None, lambda a=12, b=3: None),
            (lambda: ("a", "bc"), lambda: ("ab", "c")),
            (lambda *, a=1, b=2: None, lambda *, a=2, b=1: None),
            (lambda a, *, b=1: None, lambda a=1, *, b: None),
        ]
        for first, second in alike:
            self.assertNotEqual(of(first, (), {}).split("@")[1], of(second, (), {}).split("@")[1])

    @unittest.skipUnless(
        sys.implementation.name == "cpython",
        "PyPy's ctypes is Python itself, and a signal may come in the middle of it",
    )
    def test_a_signal_during_a_measurement_is_never_lost(self):
        told = []
        hook, sys.unraisablehook = sys.unraisablehook, told.append
        self.addCleanup(setattr, sys, "unraisablehook", hook)

        def send(wait):
            time.sleep(wait)
            os.kill(os.getpid(), signal.SIGINT)

        for i in range(60):
            thread = threading.Thread(target=send, args=(0.001 + i * 0.0001,))
            with self.assertRaises(KeyboardInterrupt):
                thread.start()
                for _ in range(100):
                    op_profiler.profile(lambda: None, time_limit_s=0.2, no_reuse=1, precision=1e-9)
            thread.join()
        self.assertEqual(told, [])

    def test_what_is_raised_comes_out_once(self):
        def fail():
            raise SystemExit(3)

        for callbacks in ({"prepare": fail}, {"cleanup": fail}, {"workspace": fail}):
            with self.assertRaises(SystemExit):
                op_profiler.profile(
                    op_profiler.Op(lambda: None, key=str(callbacks), **callbacks), time_limit_s=0.01
                )
        with self.assertRaises(SystemExit):
            op_profiler.profile_in_turn([lambda: None, fail], time_limit_s=0.01)

    def test_comparisons_say_who_and_why(self):
        short, long = op_profiler.profile_in_turn(
            [lambda: None, lambda: sum(range(300))], time_limit_s=0.1
        )
        times = r"\d+(\.\d+)?(e[+-]\d+)?"
        said = rf"the second takes {times} times as long( \({times} to {times}\))?"
        # a halt of the machine makes it unclear, in any of these words
        self.assertRegex(
            repr(op_profiler.compare(short, long)),
            rf"^<(slower: {said}|unclear: {said}, but (the (first|second) .+|both are "
            rf"possible|there are too few samples))>$",
        )
        found = op_profiler._op_structs.OpComparison(
            order=0, doubts=4, ratio=31.16, ratio_low=31.1, ratio_high=31.234
        )
        self.assertEqual(
            str(op_profiler.Comparison(found, 4 | 2, 0)),
            "unclear: the second takes 31.16 times as long (31.10 to 31.23), but the first was "
            "drifting",
        )
        found = op_profiler._op_structs.OpComparison(
            order=2, ratio=0.5, ratio_low=0.4987, ratio_high=0.50123
        )
        self.assertEqual(
            str(op_profiler.Comparison(found)),
            "faster: the second takes 0.5000 times as long (0.4987 to 0.5012)",
        )
        found = op_profiler._op_structs.OpComparison(
            order=0, ratio=12345.6, ratio_low=0, ratio_high=float("inf")
        )
        self.assertEqual(
            str(op_profiler.Comparison(found)),
            "unclear: the second takes 1.235e+04 times as long, but there are too few samples",
        )
        for bad in ((short, 1), (None, long), (lambda: None, lambda: None)):
            with self.assertRaisesRegex(
                TypeError, r"compare\(\) takes two Results, of profile\(\) or profile_in_turn\(\)"
            ):
                op_profiler.compare(*bad)
        for bad in (-1, 2, float("nan")):
            with self.assertRaisesRegex(ValueError, "threshold"):
                op_profiler.compare(short, long, bad)

    def test_options_that_are_none(self):
        values = {
            "caches": ("hot", 1, ["warm"]),
            "time_limit_s": (float("inf"), float("nan"), -1),
            "least_ns": (-1, 1 << 64),
            "time_limit_ns": (-1, 1 << 70),
            "precision": (-0.1, 2),
            "no_reuse": (2, -1),
            "repeat_all": (7,),
            "repeat": (-1,),
        }
        for name, bad in values.items():
            for value in bad:
                with self.assertRaisesRegex(ValueError, f"{name} must be"):
                    op_profiler.profile(lambda: None, **{name: value})
        for name, value in (
            ("time_limit_s", "1"),
            ("precision", "1"),
            ("least_ns", 1.5),
            ("no_reuse", "no"),
            ("no_such", 1),
        ):
            with self.assertRaisesRegex(TypeError, name):
                op_profiler.profile(lambda: None, **{name: value})


class Memory(Base):
    def test_what_a_query_raises(self):
        errors = [KeyboardInterrupt(), SystemExit(3), ZeroDivisionError(), GeneratorExit()]

        def ask():
            raise error

        self.addCleanup(memory_profiler.set_query, "cpu", None)
        memory_profiler.set_query("cpu", ask)
        profiler.start()
        for error in errors:
            if isinstance(error, Exception):
                memory_profiler.sample("x")
                continue
            with self.assertRaises(type(error)) as raised:
                memory_profiler.sample("x")
            self.assertIs(raised.exception, error)
            error = ZeroDivisionError()
            memory_profiler.sample("the error is not raised again")
        error = KeyboardInterrupt()
        with self.assertRaises(KeyboardInterrupt):  # C asks
            C.prof_memory_sample(prof.device.of("cpu"), b"c", 1)
            for _ in range(1000):
                time.sleep(0.01)

    def test_pools_take_integers(self):
        with memory_profiler.Pool() as pool:
            for use in (pool.alloc, pool.reserve, pool.release):
                for arguments, what in (
                    ((-1, 2), "address"),
                    ((1, -2), "bytes"),
                    ((1 << 64, 2), "address"),
                    ((1, 1 << 70), "bytes"),
                ):
                    with self.assertRaisesRegex(ValueError, f"{what} must be"):
                        use(*arguments)
                for arguments, what in (
                    (("1", 2), "address"),
                    ((1, 2.5), "bytes"),
                    ((None, 1), "address"),
                ):
                    with self.assertRaisesRegex(TypeError, f"{what} must be an int"):
                        use(*arguments)
            with self.assertRaisesRegex(ValueError, "given_bytes"):
                pool.alloc(1, 2, -3)
            with self.assertRaisesRegex(ValueError, "given_bytes"):
                pool.free(1, -3)
            with self.assertRaisesRegex(TypeError, "address"):
                pool.free("1")

    def test_a_closed_pool_takes_nothing(self):
        for checked in (False, True):
            pool = memory_profiler.Pool("it's \U0001f600", checked=checked)
            self.assertIn("\U0001f600", repr(pool))
            pool.close()
            pool.close()
            for use in (
                lambda: pool.alloc(1, 2),
                lambda: pool.free(1, 2),
                lambda: pool.reserve(1, 2),
                lambda: pool.release(1, 2),
            ):
                with self.assertRaisesRegex(ValueError, "the pool is closed"):
                    use()

    def test_pools_are_closed_while_threads_use_them(self):
        memory_profiler.start()
        pools = [memory_profiler.Pool(checked=True)]
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)

        def use():
            while pools:
                with contextlib.suppress(ValueError, IndexError):
                    pool = pools[0]
                    pool.alloc(16, 16)
                    pool.free(16, 16)

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(2000):
            old, pools[0] = pools[0], memory_profiler.Pool(checked=True)
            old.close()
        pools.clear()
        for thread in threads:
            thread.join()

    def test_what_is_no_query_and_no_answer(self):
        with self.assertRaisesRegex(TypeError, "query must be something to call, or None, not 3"):
            memory_profiler.set_query("cpu", 3)
        self.addCleanup(memory_profiler.set_query, "cpu", None)
        profiler.clear()
        memory_profiler.start()
        for answer in ("x", (-1, 5), (1 << 64, 0), (1, 1 << 70), (1.5, 2), None, (1,), (1, 2, 3)):
            memory_profiler.set_query("cpu", lambda answer=answer: answer)
            memory_profiler.sample("bad")
        self.assertNotIn("bad", memory_profiler.get_memory_trace("cpu"))
        memory_profiler.set_query("cpu", lambda: (1 << 20, 2 << 20))
        memory_profiler.sample("good")
        self.assertRegex(memory_profiler.get_memory_trace("cpu"), r"good\s+1\.0*\s+2\.0*")

    def test_a_query_is_replaced_while_another_thread_is_in_it(self):
        inside, go_on = threading.Event(), threading.Event()

        def ask():
            inside.set()
            go_on.wait(HANG_SECONDS)
            return 1, 2

        self.addCleanup(memory_profiler.set_query, "cpu", None)
        memory_profiler.start()
        memory_profiler.set_query("cpu", ask)
        other = threading.Thread(target=memory_profiler.sample)
        other.start()
        inside.wait(HANG_SECONDS)
        threading.Timer(0.05, go_on.set).start()
        memory_profiler.set_query("cpu", None)
        self.assertTrue(go_on.is_set())
        other.join()

    def test_a_report_of_nothing_says_what_to_call(self):
        done = subprocess.run(
            [sys.executable, "-c", "from prof import memory_profiler\nmemory_profiler.report()"],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertIn(
            "ProfRuntimeError: no memory was recorded: call memory_profiler.start() or "
            "profiler.start() first",
            done.stderr,
        )


class Names(Base):
    def test_errors_are_short(self):
        for use in (
            lambda: prof.set_thread_name([1] * 1000000),
            lambda: memory_profiler.Pool("x" * 1000000 + "\0"),
            lambda: prof.profile().add_metadata_json("k", "[" * 1000000),
            lambda: prof.Trace("x" * 1000000),
        ):
            with self.assertRaises((TypeError, ValueError)) as raised:
                use()
            self.assertLess(len(str(raised.exception)), 600)

    def test_what_is_no_pointer_makes_no_trace(self):
        for no in ("now.prof", 0, None):
            with self.assertRaisesRegex(TypeError, r"Trace.open\(path\) or Trace.now\(\)"):
                prof.Trace(no)

    def test_lone_surrogates_are_repaired(self):
        name = "x\udc80\ud800y"
        profiler.start()
        with memory_profiler.Pool(name) as pool:
            pool.alloc(1, 2, tag=name)
            pool.free(1, 2)
        memory_profiler.sample(name)
        prof.set_thread_name(name)
        self.addCleanup(prof.set_thread_name)
        self.assertEqual(
            op_profiler.profile(op_profiler.Op(lambda: None, key=name), time_limit_s=0.01).key, name
        )
        with prof.record_function(name):
            pass
        self.assertEqual(profiler.total(name)[1], 1)
        profiler.stop()
        with prof.Trace.now() as trace:
            found = json.loads(
                trace.json("chrome", metadata={name: '"a\ud800"', "plain": '"\xe9"'})
            )
            self.assertEqual(found["plain"], "\xe9")
            self.assertIn("a\ud800", found.values())
            self.assertIn("x\ufffd", trace.memory_text())
        p = prof.profile()
        p.add_metadata(name, name)
        with p:
            pass
        with tempfile.TemporaryDirectory() as folder:
            p.export_chrome_trace(os.path.join(folder, "x.json"))
            with open(os.path.join(folder, "x.json"), encoding="utf-8") as f:
                self.assertIn(name, json.load(f).values())

    def test_what_dir_shows(self):
        self.assertEqual(dir(prof), sorted({*prof.__all__, "__version__"}))
        for name in (
            "device",
            "flops",
            "memory_profiler",
            "names",
            "op_profiler",
            "profiler",
            "session",
            "tables",
            "trace",
        ):
            module = getattr(prof, name)
            self.assertEqual(dir(module), sorted(set(module.__all__)), name)
            for word in module.__all__:
                self.assertTrue(hasattr(module, word), word)

    def test_errors_have_names_that_can_be_caught(self):
        from prof import session, tables

        with self.assertRaises(session.ScheduleError):
            prof.schedule(wait=-1, warmup=0, active=1)
        with prof.profile() as p:
            work()
        with self.assertRaises(session.StateError):
            p.export_stacks("x")
        with self.assertRaises(tables.SortError):
            p.key_averages().table(sort_by="nothing")


if __name__ == "__main__":
    unittest.main()
