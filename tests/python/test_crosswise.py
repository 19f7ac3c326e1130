"""Self times of scopes that overlap crosswise on one thread: a `with` across an `await`.
All outputs have the same ones, and they are those that a count of each moment gives."""

import asyncio
import collections
import json
import os
import random
import tempfile
import unittest

import prof


async def task(number):
    chance = random.Random(number)
    with prof.scope(f"task {number % 5}"):
        for _ in range(chance.randrange(6)):
            with prof.scope("part"):
                sum(range(chance.randrange(2000)))
                if chance.randrange(2):
                    await asyncio.sleep(0)
            await asyncio.sleep(0)


async def tasks():
    with prof.scope("all"):
        await asyncio.gather(*(task(number) for number in range(40)))


def by_moments(events):
    """Self ns by name: each moment belongs to the scope that began last of those that run."""
    scopes = [(e.start_ns, e.start_ns + e.duration_ns, e.name) for e in events]
    moments = sorted({at for start, end, _ in scopes for at in (start, end)})
    self_ns = collections.Counter()
    for begin, end in zip(moments, moments[1:]):
        running = [s for s in scopes if s[0] <= begin and s[1] >= end]
        if running:
            last = max(running, key=lambda s: (s[0], -s[1]))
            self_ns[last[2]] += end - begin
    return +self_ns


class Crosswise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with prof.profile(with_stack=True) as cls.profile:
            asyncio.run(tasks())
        cls.events = [e for e in cls.profile.trace.events() if e.kind == "scope"]
        cls.self_ns = by_moments(cls.events)

    def same(self, found):
        """To a ns: times in us have no more digits than that."""
        self.assertEqual({n: round(ns) for n, ns in found.items() if round(ns)}, self.self_ns)

    def summed(self, pairs):
        found = collections.Counter()
        for name, ns in pairs:
            found[name] += ns
        self.same(found)

    def test_scopes_do_overlap(self):
        crossed = sum(
            a.start_ns < b.start_ns < a.start_ns + a.duration_ns < b.start_ns + b.duration_ns
            for a in self.events
            for b in self.events
        )
        self.assertGreater(crossed, 40)

    def test_self_times_come_to_the_outermost_scope(self):
        whole = next(e for e in self.events if e.name == "all")
        self.assertEqual(sum(self.self_ns.values()), whole.duration_ns)

    def test_single_events(self):
        self.summed((e.name, e.self_ns) for e in self.events)
        own = self.profile.events()
        self.summed((e.name, e.self_cpu_time_total * 1e3) for e in own)
        self.assertEqual(round(own.self_cpu_time_total * 1e3), sum(self.self_ns.values()))

    def test_each_event_is_in_one_that_holds_all_of_it(self):
        for e in self.profile.events():
            if e.name == "all":
                continue
            self.assertIsNotNone(e.cpu_parent, e)
            outer, inner = e.cpu_parent.time_range, e.time_range
            self.assertTrue(outer.start <= inner.start and inner.end <= outer.end, e)
            self.assertIn(e, e.cpu_parent.cpu_children)

    def test_rows(self):
        for group in (("name",), ("name", "stack"), ("name", "scopes")):
            rows = self.profile.trace.aggregate(group)
            self.summed((row.name, row.self_ns) for row in rows)
            self.assertEqual(rows.total_self_ns, sum(self.self_ns.values()))

    def test_averages(self):
        for stack_frames in (0, 5):
            rows = self.profile.key_averages(group_by_stack_n=stack_frames)
            self.summed((row.key, row.self_cpu_time_total * 1e3) for row in rows)

    def test_folded_stacks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stacks")
            self.profile.export_stacks(path)
            with open(path, encoding="utf-8") as file:
                lines = [int(line.rpartition(" ")[2]) for line in file]
        rows = self.profile.key_averages(group_by_stack_n=5)
        wanted = sum(row.self_cpu_time_total for row in rows if row.stack)
        self.assertAlmostEqual(sum(lines), wanted, delta=len(lines))  # whole us

    def imported(self, path):
        try:
            trace = prof.import_trace(path)
        except (ValueError, OSError) as e:
            if "yajl" not in str(e) and not isinstance(e, FileNotFoundError):
                raise
            self.skipTest(f"the command was built without yajl, or it is not here: {e}")
        with trace:
            self.summed((row.name, row.self_ns) for row in trace.aggregate())

    def test_a_trace_that_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            self.profile.export_chrome_trace(path)
            self.imported(path)

    def test_another_tools_trace(self):
        """All scopes stand on one row there."""
        events = [
            {
                "ph": "X",
                "name": e.name,
                "cat": "a",
                "pid": 1,
                "tid": 1,
                "ts": e.start_ns / 1e3,
                "dur": e.duration_ns / 1e3,
            }
            for e in self.events
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"traceEvents": events}, file)
            self.imported(path)


if __name__ == "__main__":
    unittest.main()
