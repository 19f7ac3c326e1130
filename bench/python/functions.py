"""usage: python3 bench/python/functions.py

With PYTHONPATH=bindings/python and PROF_LIBRARY, as bench/run.sh sets them; BENCH_QUICK=1: fewer
rounds; CC: a C compiler, for callbacks that do nothing.

What it costs to see every Python function: beyond the same program unseen, against callbacks of C
that do nothing, and viztracer (PyPI) where it is installed. In turns, of each turn the best of
fifty, of those the medians; a line a promise, as cost.py."""

import contextlib
import ctypes
import gc
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import threading

from cost import IS_QUICK, row, timed

import prof
from prof import _structs as s
from prof._library import C, sized

EMPTY = """
#include <stddef.h>
extern char _Py_NoneStruct[] __attribute__((weak));
void *do_nothing(void *self, void *const *arguments, ptrdiff_t count) {
  return (void)self, (void)arguments, (void)count, (void *)_Py_NoneStruct;
}
int profile_nothing(void *object, void *frame, int what, void *argument) {
  return (void)object, (void)frame, (void)what, (void)argument, 0;
}
"""


class Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


has_monitoring = hasattr(sys, "monitoring")


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Shape:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def area(self):
        return self.a * self.b

    def scaled(self, by):
        return Shape(self.a * by, self.b * by)


def numbers(n):
    for i in range(n):
        yield i


def objects(n):
    total = 0
    for i in numbers(n):
        total += Shape(i, 2).scaled(3).area()
    return total


def work():
    """Some 2 300 calls and steps, short functions, methods, a generator: less than a busy machine
    gives at once."""
    fib(13)
    objects(300)


@contextlib.contextmanager
def nothing():
    yield


class Empty:
    """Callbacks for the same events as prof's."""

    def __init__(self, folder):
        path = os.path.join(folder, "empty.c")
        with open(path, "w") as f:
            f.write(EMPTY)
        subprocess.run(
            [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", path, "-o", path[:-1] + "so"],
            check=True,
        )
        self.library = ctypes.CDLL(path[:-1] + "so")
        self.method = Method(
            b"nothing", ctypes.cast(self.library.do_nothing, ctypes.c_void_p), 0x80, None
        )
        ctypes.pythonapi.PyCFunction_NewEx.restype = ctypes.py_object
        self.function = ctypes.pythonapi.PyCFunction_NewEx(ctypes.byref(self.method), None, None)
        self.set_profile = ctypes.pythonapi.PyEval_SetProfile
        self.set_profile.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    @contextlib.contextmanager
    def on(self):
        if not has_monitoring:
            self.set_profile(ctypes.cast(self.library.profile_nothing, ctypes.c_void_p), None)
            yield
            self.set_profile(None, None)
            return
        monitoring = sys.monitoring
        e = monitoring.events
        all_events = [e.PY_START, e.PY_RESUME, e.PY_THROW, e.PY_RETURN, e.PY_YIELD, e.PY_UNWIND]
        monitoring.use_tool_id(2, "empty")
        for event in all_events:
            monitoring.register_callback(2, event, self.function)
        monitoring.set_events(2, sum(all_events))
        yield
        monitoring.set_events(2, 0)
        for event in all_events:
            monitoring.register_callback(2, event, None)
        monitoring.free_tool_id(2)


RING = 2  # PROF_POLICY_RING


def record_into_a_ring():
    """Of 16 MiB: as viztracer's buffer it is memory that was used before. What fresh memory costs
    is the machine's, and shown by cost.py."""
    C.check(C.prof_start_with(sized(s.Options, level=1, policy=RING, cap_bytes=16 << 20)))


@contextlib.contextmanager
def by_rival(tracer):
    tracer.start()
    yield
    tracer.stop()
    threading.setprofile(None)  # it stays there otherwise, and prof refuses to take its place


def rival_of(viztracer):
    tracer = viztracer.VizTracer(
        tracer_entries=1000000, verbose=0, ignore_c_function=True, log_gc=False
    )
    threading.setprofile(None)
    return tracer


NAMES = ("fib", "__init__", "area", "scaled", "numbers", "objects", "work")


def count(names):
    """By the last part; of others nothing."""
    last = [name.partition(" ")[0].rpartition(".")[2] for name in names]
    return {name: last.count(name) for name in NAMES}


def count_of_rival(viztracer):
    tracer = rival_of(viztracer)
    with by_rival(tracer):
        work()
    tracer.parse()
    return count([e["name"] for e in tracer.data["traceEvents"] if e["ph"] == "X"])


def count_of_prof():
    with prof.profile(), prof.trace_functions():
        work()
    return count([e.name for e in prof.Trace.now().events() if e.category == "python_function"])


def main():
    viztracer = (
        importlib.import_module("viztracer") if importlib.util.find_spec("viztracer") else None
    )
    rounds = 7 if IS_QUICK else 31
    print(f"python functions: Python {platform.python_version()}, {rounds} rounds, in turns")
    counts = count_of_prof()
    calls = sum(counts.values())
    gc.disable()
    record_into_a_ring()
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "off": nothing,
            "empty": Empty(folder).on,
            "prof": prof.trace_functions,
            "left out": lambda: prof.trace_functions(exclude="__main__"),
            "after": nothing,
        }
        if viztracer:
            tracer = rival_of(viztracer)
            ways["rival"] = lambda: by_rival(tracer)
        found = {name: [] for name in ways}
        for turn in range(-10, rounds):
            for name, way in ways.items():
                with way():
                    work()  # what is done once for each code object
                    took = min(timed(work) for _ in range(50))
                if viztracer:
                    tracer.clear()
                if turn >= 0:
                    found[name].append(took)

        def beyond(name):
            return [max(a - b, 1e-9) / calls for a, b in zip(found[name], found["off"])]

        empty = beyond("empty")
        row(f"{calls} calls unseen, each", [t / calls for t in found["off"]], "ns", 1e9)
        row("callbacks that do nothing, beyond it", empty, "ns", 1e9)
        row(
            "functions traced, beyond it, against those",
            beyond("prof"),
            "ns",
            1e9,
            1.80 if has_monitoring else None,
            empty,
        )
        row("the whole run traced, against it unseen", found["prof"], "us", 1e6, None, found["off"])
        row(
            "all left out by a filter, against unseen",
            found["left out"],
            "us",
            1e6,
            1.10 if has_monitoring else None,
            found["off"],
        )
        row("tracing over, against never begun", found["after"], "us", 1e6, 1.03, found["off"])
        if viztracer:
            row("rival viztracer, beyond unseen", beyond("rival"), "ns", 1e9)
            row(
                "functions traced, against viztracer, whole run",
                found["prof"],
                "us",
                1e6,
                1.00,
                found["rival"],
            )
            theirs = count_of_rival(viztracer)
            row(
                "functions of which viztracer counts other calls",
                [sum(theirs[name] != counts[name] for name in NAMES)],
                "of 7",
                1,
                0,
            )
        else:
            print("skip: this Python has no viztracer to compare with")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
