"""What must not go wrong whatever a program does meanwhile: threads that close what others read,
forks, signals, handlers that fail, values that no C integer has."""

import contextlib
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

from hang_guard import HANG_SECONDS
from recorded import counts, work

import prof
from prof import memory_profiler, op_profiler, profiler
from prof._library import C


class Base(unittest.TestCase):
    def setUp(self):
        profiler.stop()
        profiler.clear()

    def trace(self, n=2):
        profiler.start()
        work(n)
        profiler.stop()
        return prof.Trace.now()


class Traces(Base):
    def test_events_go_on_when_the_trace_is_closed(self):
        trace = self.trace(2000)
        events = trace.events()
        not_begun = trace.events()
        next(events)
        trace.close()
        trace.close()
        self.assertEqual(len(list(events)), 2000)
        for use in (
            trace.events,
            trace.json,
            trace.info,
            trace.loss_text,
            trace.table,
            trace.aggregate,
            trace.memory_text,
            lambda: trace.pointer,
            lambda: next(not_begun),
            prof.Traces([trace]).aggregate,
        ):
            with self.assertRaisesRegex(ValueError, "the trace is closed"):
                use()

    def test_a_cursor_that_is_dropped_frees_the_trace(self):
        trace = self.trace()
        events = trace.events()
        next(events)
        trace.close()
        self.assertEqual(len(trace._shared._owned), 1)
        del events
        gc.collect()
        self.assertEqual(trace._shared._owned, [])

    def test_threads_read_while_another_closes(self):
        for _ in range(20):
            trace = self.trace(3000)
            begun = threading.Barrier(5)
            errors = []

            def read(use, begun=begun, errors=errors):
                begun.wait()
                try:
                    while True:
                        use()
                except ValueError as e:
                    errors.append(str(e))

            uses = (
                trace.json,
                trace.aggregate,
                trace.loss_text,
                lambda trace=trace: list(trace.events()),
            )
            threads = [threading.Thread(target=read, args=(use,)) for use in uses]
            for t in threads:
                t.start()
            begun.wait()
            time.sleep(0.002)
            trace.close()
            for t in threads:
                t.join()
            self.assertEqual(errors, ["the trace is closed"] * 4)
            self.assertEqual(trace._shared._owned, [])

    def test_owners_are_not_copied(self):
        result = op_profiler.profile(lambda: None, time_limit_s=0.01)
        with prof.profile() as profile:
            pass
        with self.trace() as trace, memory_profiler.Pool() as pool:
            for owner in (trace, prof.Traces([trace]), result, pool, profile):
                for way in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, "cannot be copied"):
                        way(owner)

    def test_values_that_no_integer_of_c_has(self):
        with self.trace() as trace:
            for name, values in (
                ("from_ns", (-1, 1 << 64, 1 << 70)),
                ("to_ns", (-1, 1 << 70)),
                ("level", (-1, 3, 1 << 32)),
                ("stack_frames", (-1, 1 << 33)),
                ("rows", (-2, 1 << 70)),
            ):
                for value in values:
                    with self.assertRaisesRegex(ValueError, f"{name} must be .*, not {value}"):
                        trace.aggregate(**{name: value})
                with self.assertRaisesRegex(TypeError, name):
                    trace.aggregate(**{name: "1"})
            for use in (trace.json, lambda **times: trace.dump(os.devnull, **times)):
                for times in ({"from_ns": -1}, {"to_ns": 1 << 64}):
                    with self.assertRaisesRegex(ValueError, next(iter(times))):
                        use(**times)
            for bad in (
                {"rows": -2},
                {"pool": 1 << 32},
                {"pool": -1},
                {"width": -80},
                {"width": 1 << 40},
            ):
                with self.assertRaisesRegex(ValueError, next(iter(bad))):
                    trace.memory_text(**bad)
            self.assertEqual(len(trace.aggregate(rows=sys.maxsize)), 2)


class ProfileBase(Base):
    """After each of them a profile records as before, and nothing records behind it."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.check_that_profiles_record)

    def check_that_profiles_record(self):
        self.assertEqual(C.prof_level(), 0)
        with prof.profile() as p:
            work()
        self.assertEqual(counts(p.key_averages()), {"outer": 1, "inner": 2})
        self.assertEqual(C.prof_level(), 0)

    def run_python(self, text):
        import textwrap

        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text)],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )


class Profiles(ProfileBase):
    def test_a_handler_that_fails_at_a_step(self):
        def fail(p):
            called.append(p.step_num)
            if len(called) == 1:
                raise KeyError("handler")

        called = []
        p = prof.profile(schedule=prof.schedule(wait=0, warmup=1, active=1), on_trace_ready=fail)
        p.start()
        p.step()
        with self.assertRaises(KeyError):
            p.step()
        for _ in range(2):
            work()
            p.step()
        p.stop()
        p.stop()
        self.assertEqual(called, [2, 4])

    def test_a_handler_that_fails_between_two_recordings(self):
        def fail(p):
            raise KeyError("handler")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = prof.profile(
                schedule=prof.schedule(wait=0, warmup=0, active=1), on_trace_ready=fail
            )
        p.start()
        for _ in range(3):
            with self.assertRaises(KeyError):
                p.step()
        work()
        with self.assertRaises(KeyError):
            p.stop()
        self.assertEqual(counts(p.key_averages()), {"ProfilerStep*": 1, "outer": 1, "inner": 2})

    def test_a_callback_for_ids_that_fails_the_second_time(self):
        def number():
            calls.append(1)
            if len(calls) == 2:
                raise ZeroDivisionError
            return str(len(calls))

        calls, ready = [], []
        p = prof.profile(
            schedule=prof.schedule(wait=0, warmup=1, active=1),
            custom_trace_id_callback=number,
            on_trace_ready=lambda p: ready.append((p.step_num, p.get_trace_id())),
        )
        with contextlib.suppress(ZeroDivisionError), p:
            for _ in range(8):
                work()
                p.step()
        self.assertEqual(ready, [(2, "1")])
        with p:
            p.step()
        self.assertEqual(ready, [(2, "1"), (4, "3")])

    def test_a_handler_that_steps_and_stops(self):
        steps = []
        with prof.profile(
            schedule=prof.schedule(wait=0, warmup=1, active=1),
            on_trace_ready=lambda p: (steps.append(p.step_num), p.step()),
        ) as p:
            for _ in range(4):
                work()
                p.step()
        self.assertEqual((steps, p.step_num), ([2, 4, 6, 7], 8))
        with prof.profile(
            schedule=prof.schedule(wait=0, warmup=1, active=1), on_trace_ready=lambda p: p.stop()
        ) as p:
            for _ in range(5):
                work()
                p.step()
        self.assertEqual(p.step_num, 5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each = prof.schedule(wait=0, warmup=0, active=1)
        with prof.profile(schedule=each, on_trace_ready=lambda p: p.stop()) as p:
            p.step()
        self.assertEqual(C.prof_level(), 0)
        with prof.profile(
            schedule=each, on_trace_ready=lambda p: p.step() if p.step_num < 3 else None
        ) as p:
            p.step()
        self.assertEqual(p.step_num, 3)

    def test_threads_that_step_start_and_stop_one_profile(self):
        def run(use):
            for _ in range(100):
                with contextlib.suppress(RuntimeError):
                    use()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = prof.profile(
                schedule=prof.schedule(wait=0, warmup=0, active=2), on_trace_ready=lambda p: None
            )
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        threads = [
            threading.Thread(target=run, args=(use,)) for use in (p.step, p.start, p.stop) * 2
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        p.stop()
        self.assertEqual(p.step_num, 200)

    @unittest.skipUnless(
        hasattr(signal, "setitimer") and sys.implementation.name == "cpython",
        "no timers; or PyPy, which drops a profile later",
    )
    def test_signals_handlers_raise_anywhere(self):
        class Alarm(Exception):
            pass

        def raise_it(*_):
            raise Alarm

        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda _: None  # of __del__
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, raise_it))
        for i in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (i % 40 + 1))
                for _ in range(50):
                    with prof.profile(with_stack=True):
                        pass
            except Alarm:
                pass
            finally:
                with contextlib.suppress(Alarm):
                    signal.setitimer(signal.ITIMER_REAL, 0)
        gc.collect()
        # one that a handler has cut short in its very end is found by the next
        with prof.profile():
            pass
        self.check_that_profiles_record()

    def test_a_profile_that_is_dropped(self):
        p = prof.profile(level=2, with_stack=True)
        p.start()
        self.assertEqual(C.prof_level(), 2)
        del p
        gc.collect()

    def test_metadata_that_no_file_can_have(self):
        p = prof.profile()
        for key, value in (
            ("traceEvents", "[]"),
            ("prof", "1"),
            ("k", "NaN"),
            ("k", "[1, Infinity]"),
            ("k", "[" * 100000),
            ("k", "{"),
            ("k\0", "1"),
        ):
            with self.assertRaises(ValueError):
                p.add_metadata_json(key, value)
        for key in ("traceEvents", "prof"):
            with self.assertRaisesRegex(ValueError, "must not be"):
                p.add_metadata(key, "x")
        with p:
            work()
        with tempfile.TemporaryDirectory() as folder:
            p.export_chrome_trace(os.path.join(folder, "t.json"))

    def test_without_a_trace(self):
        for use in ("key_averages", "events"):
            with self.assertRaisesRegex(RuntimeError, "there is no trace yet"):
                getattr(prof.profile(), use)()
        for name in ("a/b", "/", "a/"):
            with self.assertRaisesRegex(ValueError, "worker_name"):
                prof.tensorboard_trace_handler("folder", worker_name=name)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_forked_child_is_told_why_there_is_no_trace(self):
        with prof.profile() as p:
            pid = os.fork()
            if not pid:
                try:
                    p.key_averages()
                except RuntimeError as e:
                    os._exit(0 if "this process was forked" in str(e) else 2)
                os._exit(1)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)

    @unittest.skipIf(
        "PROF_TEST_EMULATED" in os.environ,
        "a fork beside threads: the emulator's own locks are in the child",
    )
    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_fork_while_another_thread_loads_the_package(self):
        child = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
import prof
threading.Thread(target=lambda: prof.profile).start()
time.sleep(0.004)
if os.fork() == 0:
    signal.alarm(int(sys.argv[1]))
    prof.profile
    os._exit(0)
assert os.wait()[1] == 0
"""
        for _ in range(3):
            words = [sys.executable, "-c", child, str(HANG_SECONDS)]
            self.assertEqual(subprocess.run(words, timeout=2 * HANG_SECONDS).returncode, 0)


if __name__ == "__main__":
    unittest.main()
