"""Scopes that had not ended: an import of prof's own export has them open, as the capture has. They
are no calls, and in no mean, self or total. Marks of other tools stay arguments."""

import json
import subprocess
import sys
import unittest

from folder import HAS_COMMAND
from hang_guard import HANG_SECONDS
from import_folder import ImportFolder
from import_traces import event, kernel, x

import prof

OPEN = "taken: {} that had not ended, and count as calls here"
UNENDED = "taken: {} begun and never ended (ph B, b, S): they end with the trace"
NO_LAUNCH = "taken: 1 of devices, whose launch is not in the trace"
NULL = "taken: 1 with arguments that are null: these are left out"
MARK = {"unfinished": True}
OF_USERS = {"unfinished": "unfinished#", "Device": "Device#"}
# Four threads: of the third all are open, and the last has more than a slot shows.
PROGRAM = """
import os, sys, threading
import prof
entered = threading.Semaphore(0)
def leave_open(*scopes):
    for scope in scopes:
        scope.__enter__()
def call(name):
    with prof.scope(name): pass
def first():
    call("ended")
    leave_open(prof.scope("outer", n=7, text="x" * 300, share=0.5, is_last=True))
    call("inner")
    leave_open(prof.scope("outer", n=8), prof.scope("clFinish", "opencl_runtime", queue=3))
    call("inner")
    entered.release()
    threading.Event().wait()
def second():
    shapes = [(0x0220, 2, 3), (0x0220, 3, 4)]
    leave_open(prof.scope("operators.mm", "operator", 1, _shapes=shapes),
               prof.scope("unfinished", unfinished=True, Device=1))
    entered.release()
    threading.Event().wait()
def third():
    for depth in range(70):
        leave_open(prof.scope("deep", depth=depth))
        call("between")
    entered.release()
    threading.Event().wait()
prof.profiler.start(1)
for function in (first, second, third):
    threading.Thread(target=function, daemon=True).start()
    entered.acquire()
call("of the main thread")
prof.Trace.now().dump(sys.argv[1], "capture")
sys.stdout.flush()
os._exit(0)
"""


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Own(ImportFolder):
    """What prof exported comes back."""

    def record(self):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, self.path("in.prof")],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def taken(self, way, *words):
        """Dumps in this way and imports it, and does both again with the import."""
        for start, name, end in (("in", "way", "one"), ("one", "again", "two")):
            self.run_prof("dump", f"{start}.prof", "-o", f"{name}.{way}", *words)
            self.run_prof("import", f"{name}.{way}", "-o", f"{end}.prof")

    def table(self, path, *words):
        return json.loads(self.run_prof("table", "--json", *words, path)[0])

    def open_events(self, path):
        keys = ("duration_ns", "self_ns", "depth", "name", "category", "thread", "tid", "args")
        lines = self.run_prof("events", "--json", path)[0].splitlines()
        found = [row for row in map(json.loads, lines) if row["state"] == "open"]
        return [{key: row[key] for key in keys} for row in found]

    def counts(self, path):
        with prof.Trace.open(self.path(path)) as opened:
            info = opened.info()
            self.assertEqual(info.bad_count, 0)
            return info.event_count, info.open_count, info.open_below_count

    def test_tables_of_an_import_are_those_of_the_capture(self):
        self.record()
        rows = {row["name"]: row for row in self.table("in.prof")["rows"]}
        found = {name: (row["open"], row["calls"], row["self_ns"]) for name, row in rows.items()}
        for name, count in (("deep", 64), ("outer", 2), ("clFinish", 1), ("operators.mm", 1)):
            self.assertEqual(found[name], (count, 0, 0))
        for way in ("json", "json.gz", "db", "rpd"):
            self.taken(way)
            for words in ((), ("--by", "name,thread"), ("--by", "category", "--sort", "first")):
                wanted = self.table("in.prof", *words)
                for path in (f"way.{way}", "one.prof", f"again.{way}", "two.prof"):
                    with self.subTest(path=path, words=words):
                        self.assertEqual(self.table(path, *words), wanted)

    def test_open_scopes_keep_their_arguments_and_depths(self):
        self.record()
        wanted = self.open_events("in.prof")
        self.assertEqual(len(wanted), 64 + 3 + 2)
        self.assertIn({"unfinished": True, "Device": 1}, [row["args"] for row in wanted])
        for row in wanted:  # what prof's own keys are for
            row["args"] = {OF_USERS.get(key, key): value for key, value in row["args"].items()}
        for way in ("json", "db"):
            self.taken(way)
            for path in ("one.prof", "two.prof"):
                with self.subTest(path=path, way=way):
                    self.assertEqual(self.open_events(path), wanted)

    def test_those_below_64_others_are_counted(self):
        self.record()
        self.assertEqual(self.counts("in.prof"), (143, 69, 6))
        for way in ("json", "json.gz", "db", "rpd"):
            self.taken(way)
            self.assertEqual(self.counts("one.prof"), (143, 69, 6), way)
            self.assertEqual(self.counts("two.prof"), (143, 69, 6), way)
        self.taken("json", "--name", "ended")  # no thread has open scopes
        self.assertEqual(self.counts("two.prof"), (1, 0, 6))


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Marks(ImportFolder):
    """Traces made by hand."""

    def states(self, events, *said, is_of_prof=False):
        """By name: whether it is open, its duration in us, and its arguments."""
        trace = {"traceEvents": events}
        if is_of_prof:
            trace["prof"] = {"version": "0.1.0"}
        opened = self.imported(json.dumps(trace))
        self.assertEqual(self.said, list(said))
        self.assertEqual(opened.info().bad_count, 0)
        found = [e for e in opened.events() if e.kind in ("scope", "open")]
        return {e.name: (e.kind == "open", e.duration_ns / 1000, e.args or {}) for e in found}

    def test_the_mark_of_another_tool_is_an_argument_unless_it_lasts_up_to_the_end(self):
        events = [x("a", 0, 10, args=MARK), x("b", 20, 10, args=MARK), x("c", 25, 5)]
        found = self.states(events)
        self.assertEqual(found["a"], (False, 10, {"unfinished": True}))
        self.assertEqual((found["b"][0], found["c"][0]), (True, False))
        for value in (1, "true", False, None):
            events = [x("a", 0, 10, args={"unfinished": value})]
            self.assertFalse(self.states(events, *([NULL] if value is None else []))["a"][0])

    def test_in_an_export_of_several_captures_they_last_up_to_the_end_of_all(self):
        events = [x("a", 0, 10, args=MARK), x("b", 20, 10, pid=5, tid=6)]
        self.assertEqual(self.states(events, is_of_prof=True)["a"], (True, 30, {}))

    def test_begun_and_never_ended(self):
        events = [event("B", "a", 0), x("b", 1, 9)]
        self.assertEqual(self.states(events, UNENDED.format(1))["a"], (False, 10, {}))
        events = [event("B", "a", 0, args=MARK), x("b", 1, 9)]
        self.assertEqual(self.states(events)["a"][0], True)

    def test_an_asynchronous_one(self):
        args = {"asynchronous": True, **MARK, "k": 1}
        opened = self.states([x("a", 0, 10, args=args), x("b", 2, 3)], is_of_prof=True)
        self.assertEqual(opened["a"], (True, 10, {"k": 1}))
        self.run_prof("dump", "t.prof", "-o", "again.json")
        with open(self.path("again.json")) as f:
            (a,) = [e for e in json.load(f)["traceEvents"] if e["name"] == "a"]
        self.assertEqual(a["args"], args)

    def test_a_skipped_one_ends(self):
        events = [x("a", 0, 10, args={**MARK, "skipped": True}), x("b", 2, 3, args=MARK)]
        found = self.states(events, OPEN.format(1), is_of_prof=True)
        self.assertEqual((found["a"], found["b"][0]), ((False, 10, {}), True))

    def test_on_a_device_they_end(self):
        events = [x("op", 0, 5, cat="cpu_op"), kernel("k", 1, 9, **MARK)]
        self.assertFalse(self.states(events, OPEN.format(1), NO_LAUNCH)["k"][0])

    def test_more_than_a_thread_has_room_for(self):
        events = [x(f"n{i}", i, 100 - i, args={**MARK, "i": i}) for i in range(70)]
        found = self.states([*events, x("last", 90, 1)], OPEN.format(6), is_of_prof=True)
        is_open = [found[f"n{i}"][0] for i in range(70)]
        self.assertEqual(is_open, [True] * 64 + [False] * 6)
        self.assertEqual(found["n69"], (False, 31, {"i": 69}))
        texts = [x(f"n{i}", i, 100 - i, args={**MARK, "t": "x" * 6000}) for i in range(9)]
        found = self.states(texts, OPEN.format(2), is_of_prof=True)
        self.assertEqual([found[f"n{i}"][0] for i in range(9)], [True] * 7 + [False] * 2)

    def test_an_ended_one_of_the_same_begin_and_name(self):
        """A reader takes it for the end of the open one. So neither is open."""
        events = [x("a", 0, 10, args=MARK), x("a", 0, 5), x("b", 1, 1)]
        opened = self.imported(json.dumps({"prof": {"version": "0.1.0"}, "traceEvents": events}))
        self.assertEqual(self.said, [OPEN.format(1)])
        info = opened.info()
        self.assertEqual((info.event_count, info.open_count, info.bad_count), (3, 0, 0))

    def test_longer_than_18_minutes(self):
        hours = 4 * 3600 * 1000000
        events = [x("a", 0, hours, args=MARK), x("b", 1, 1)]
        self.assertEqual(self.states(events, is_of_prof=True)["a"], (True, hours, {}))
        events = [x(f"n{i}", i, hours - i, args=MARK) for i in range(65)]
        found = self.states(events, OPEN.format(1), is_of_prof=True)
        self.assertEqual(found["n64"], (False, hours - 64, {}))


if __name__ == "__main__":
    unittest.main()
