"""What must not go wrong whatever a program does meanwhile: threads that close what others read, forks, signals, handlers that fail, values that no C integer has."""

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

import prof
from prof import memory_profiler, op_profiler, profiler
from prof._library import C


def work(n=2):
    with prof.record_function("outer"):
        for _ in range(n):
            with prof.record_function("inner"):
                pass


def counts(averages):
    return {a.key: a.count for a in averages}


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
        for use in (trace.events, trace.json, trace.info, trace.loss_text, trace.table, trace.aggregate, trace.memory_text, lambda: trace.pointer, lambda: next(not_begun), prof.Traces([trace]).aggregate):
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

            uses = (trace.json, trace.aggregate, trace.loss_text, lambda trace=trace: list(trace.events()))
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
        with self.trace() as trace, memory_profiler.Pool() as pool:
            for owner in (trace, prof.Traces([trace]), result, pool):
                for way in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, "cannot be copied"):
                        way(owner)

    def test_values_that_no_integer_of_c_has(self):
        with self.trace() as trace:
            for name, values in (("from_ns", (-1, 1 << 64, 1 << 70)), ("to_ns", (-1, 1 << 70)), ("level", (-1, 3, 1 << 32)), ("stack_frames", (-1, 1 << 33)), ("rows", (-2, 1 << 70))):
                for value in values:
                    with self.assertRaisesRegex(ValueError, f"{name} must be .*, not {value}"):
                        trace.aggregate(**{name: value})
                with self.assertRaisesRegex(TypeError, name):
                    trace.aggregate(**{name: "1"})
            for use in (trace.json, lambda **times: trace.dump(os.devnull, **times)):
                for times in ({"from_ns": -1}, {"to_ns": 1 << 64}):
                    with self.assertRaisesRegex(ValueError, next(iter(times))):
                        use(**times)
            for bad in ({"rows": -2}, {"pool": 1 << 32}, {"pool": -1}, {"width": -80}, {"width": 1 << 40}):
                with self.assertRaisesRegex(ValueError, next(iter(bad))):
                    trace.memory_text(**bad)
            self.assertEqual(len(trace.aggregate(rows=sys.maxsize)), 2)


if __name__ == "__main__":
    unittest.main()
