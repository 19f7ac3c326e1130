"""usage: python3 bench/python/events.py

With PYTHONPATH=bindings/python and PROF_LIBRARY, as bench/run.sh sets them; BENCH_QUICK=1: fewer
rounds.

What one event takes of Trace.events() and of profile.events(), by the thread's processor time, in
turns with a floor: C's cursor called by ctypes, and nothing made of what it gives. With the stacks
that scopes have recorded themselves, 14 frames deep, and with those of the traced functions around
them. Prints a line a promise, as cost.py."""

import contextlib
import ctypes
import gc
import platform
import time

from cost import IS_QUICK, row

import prof
from prof import _structs as s
from prof._library import C

DEPTH, TURNS = 10, 2000


def leaf(count):
    for _ in range(count):
        with prof.record_function("op"):
            pass


def nest(depth, turns):
    if depth:
        return nest(depth - 1, turns)
    for _ in range(turns):
        leaf(5)


def walked(trace):
    cursor, event = ctypes.c_void_p(), s.Event()
    count, place = 0, ctypes.byref(event)
    with trace._shared as pointer:
        C.check(C.prof_cursor_create(pointer, ctypes.byref(cursor)))
        while C.prof_cursor_next(cursor, place) > 0:
            count += 1
        C.prof_cursor_destroy(cursor)
    return count


def measure(what, p, rounds):
    trace = p.trace
    ways = {
        "  floor: C's cursor by ctypes": lambda: walked(trace),
        "  Trace.events()": lambda: sum(1 for _ in trace.events()),
        "  profile.events()": lambda: len(p.events()),
        "  key_averages(group_by_stack_n=5) of those": lambda: len(
            events.key_averages(group_by_stack_n=5, include_python_functions=True)
        ),
    }
    events = p.events()
    count = len(events)
    print(f"{what}: {count} events, {len(events[-1].stack)} frames around the last")
    found = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            gc.collect()
            begun = time.thread_time()
            way()
            found[name].append((time.thread_time() - begun) / count)
    floor, *others = ways
    row(floor, found[floor], "us", 1e6)
    for name in others:
        row(name, found[name], "us", 1e6)
        print(
            f"    {sorted(a / b for a, b in zip(found[name], found[floor]))[rounds // 2]:.1f}x of "
            f"the floor"
        )


def main():
    rounds = 5 if IS_QUICK else 15
    print(f"python events: Python {platform.python_version()}, {rounds} rounds, an event")
    with prof.profile(with_stack=True) as p:
        nest(DEPTH, TURNS)
    measure("stacks of their own", p, rounds)
    if platform.python_implementation() != "CPython":
        print("skip: functions are traced in CPython alone")
        return
    with prof.profile(with_stack=True) as p, prof.trace_functions():
        nest(DEPTH, TURNS)
    measure("stacks of traced functions", p, rounds)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
