"""Tracing functions beside others that look at the same program: what they had asked not to be told
of, and what is lost to them."""

import os
import subprocess
import sys
import unittest

from hang_guard import HANG_SECONDS

monitoring = getattr(sys, "monitoring", None)

BESIDE = """
import sys, prof
monitoring, told = sys.monitoring, []

def asked(n): pass
def code_of(code, offset):
    told.append(code.co_name)
    return monitoring.DISABLE

monitoring.use_tool_id(1, "other")
monitoring.register_callback(1, monitoring.events.PY_START, code_of)
monitoring.set_local_events(1, asked.__code__, monitoring.events.PY_START)
asked(0)
asked(1)
assert told == ["asked"], told

def traced(**options):
    prof.profiler.clear()
    with prof.profile() as p, prof.trace_functions(**options):
        asked(2)
    return sum(row.count for row in p.key_averages() if row.key == "asked")

"""


def run(text):
    return subprocess.run(
        [sys.executable, "-c", BESIDE + text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=HANG_SECONDS,
        env=dict(os.environ),
    )


@unittest.skipUnless(monitoring, "sys.monitoring is there from 3.12 on")
class OtherTools(unittest.TestCase):
    def assert_prints(self, text, expected):
        done = run(text)
        self.assertEqual((done.stderr, done.stdout.split()), ("", expected))

    def test_they_are_asked_again_of_what_they_have_disabled(self):
        """Once, when the tracing begins."""
        self.assert_prints(
            "print(traced(), len(told)); asked(3); print(len(told))", ["1", "2", "2"]
        )

    def test_what_one_filter_left_out_another_sees(self):
        self.assert_prints(
            "print(traced(exclude='__main__'), traced(), traced(exclude='__main__'), traced())",
            ["0", "1", "0", "1"],
        )

    def test_what_a_tool_before_has_disabled_is_seen(self):
        """It had prof's number, and is gone; beside the other one, which stays, and alone."""
        gone = """
monitoring.set_events(1, 0)
monitoring.set_local_events(1, asked.__code__, 0)
monitoring.free_tool_id(1)
"""
        text = """
monitoring.use_tool_id(3, "before")
monitoring.register_callback(3, monitoring.events.PY_START, lambda *_: monitoring.DISABLE)
monitoring.set_events(3, monitoring.events.PY_START)
asked(0)
monitoring.set_events(3, 0)
monitoring.register_callback(3, monitoring.events.PY_START, None)
monitoring.free_tool_id(3)
print(traced())
"""
        self.assert_prints(text, ["1"])
        self.assert_prints(gone + text, ["1"])

    def test_a_tool_that_an_interrupt_left_is_taken_again(self):
        """It came before anybody held it."""
        text = """
monitoring.use_tool_id(4, "prof")  # of another copy of prof, say
for _ in range(7):
    real = monitoring.use_tool_id
    def interrupted(tool, name):
        real(tool, name)
        raise KeyboardInterrupt
    monitoring.use_tool_id = interrupted
    try:
        prof.trace_functions().start()
    except KeyboardInterrupt:
        pass
    monitoring.use_tool_id = real
print(traced(), monitoring.get_tool(3), monitoring.get_tool(4))
"""
        self.assert_prints(text, ["1", "None", "prof"])

    def test_a_module_that_is_followed_asks_again_only_where_it_was_left_out(self):
        text = """
import threading
class Named:
    thread, is_for_stacks = threading.get_ident(), False
    def call(self, module): return "nn.Module: M_0", 1, 0
    def lose_functions(self): pass
def call(self): pass
def follow(**options):
    with prof.profile() as p, prof.trace_functions(**options):
        call(0)
        asked(1)
        prof.functions.follow_modules(call.__code__, Named())
        call(0)
        asked(2)
        prof.functions.leave_modules(prof.functions._modules[Named.thread][0])
        call(0)
    return {row.key: row.count for row in p.key_averages()}
first = follow()
print(first["nn.Module: M_0"], first["call"], len(told))
second = follow(exclude="__main__")
print(second["nn.Module: M_0"], "call" in second)
"""
        self.assert_prints(text, ["1", "2", "2", "1", "False"])
