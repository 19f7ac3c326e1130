"""Memory of scopes that overlap others of their thread without nesting, in C's tables: against a
count of each allocation, and events() of the same profile."""

import asyncio
import collections
import random
import unittest

import prof
from prof._totals import ONLY_CHILDREN


class CrossingMemory(unittest.TestCase):
    kind, prefix = "cpu", ""
    usage = "cpu_memory_usage"

    def setUp(self):
        self.pool = prof.memory_profiler.Pool("crossing", self.kind)
        self.addCleanup(self.pool.close)
        self.address = 0x1000

    def allocate(self, size):
        self.address += 0x100000
        self.pool.alloc(self.address, size, size)
        return self.address

    def held(self, row):
        """In total, and by itself."""
        name = f"{self.prefix}memory_bytes"
        return getattr(row, name), getattr(row, f"self_{name}")

    def outside(self, rows):
        return getattr(rows, f"outside_{self.prefix}memory_bytes")

    def recorded(self, work):
        with prof.profile(profile_memory=True) as p:
            work(p)
        return p

    def counted(self, p):
        """By name: in total, and while it was the last one that had begun; None: outside."""
        events = list(p.trace.events())
        scopes = [e for e in events if e.kind == "scope"]
        total, own = collections.Counter(), collections.Counter()
        for charge in (e for e in events if e.kind == "memory" and e.name in ("alloc", "free")):
            at = charge.start_ns
            around = [s for s in scopes if s.start_ns <= at <= s.start_ns + s.duration_ns]
            for scope in around:
                total[scope.name] += charge.bytes
            last = max(around, key=lambda s: s.start_ns, default=None)
            own[last and last.name] += charge.bytes
        return total, own

    def check(self, work):
        p = self.recorded(work)
        total, own = self.counted(p)
        rows = p.trace.aggregate("name")
        total = {name: size for name, size in total.items() if size}
        held = {r.name: self.held(r) for r in rows}
        self.assertEqual({name: both[0] for name, both in held.items() if both[0]}, total)
        self.assertEqual(
            {name: both[1] for name, both in held.items() if both[1]},
            {name: size for name, size in own.items() if name and size},
        )
        self.assertEqual(self.outside(rows), own[None])
        events = collections.Counter()
        for e in p.events():
            events[e.name] += getattr(e, self.usage)
        events.pop("[memory]", None)
        self.assertEqual({name: size for name, size in events.items() if size}, total)
        return rows

    def test_two_scopes(self):
        def work(p):
            a, b = prof.scope("A"), prof.scope("B")
            self.allocate(1)
            a.__enter__()
            self.allocate(2)
            b.__enter__()
            self.allocate(4)
            with prof.scope("inner"):
                self.allocate(8)
            a.__exit__(None, None, None)
            self.allocate(16)
            b.__exit__(None, None, None)
            self.allocate(32)

        rows = self.check(work)
        found = {r.name: self.held(r) for r in rows}
        self.assertEqual(found, {"A": (14, 2), "B": (28, 20), "inner": (8, 8)})
        self.assertEqual((self.outside(rows), rows.outside_memory_count), (33, 2))

    def test_a_scope_that_frees_what_the_other_allocated(self):
        def work(p):
            a, b = prof.scope("A"), prof.scope("B")
            a.__enter__()
            first = self.allocate(8)
            b.__enter__()
            self.pool.free(first, 8)
            a.__exit__(None, None, None)
            self.allocate(2)
            b.__exit__(None, None, None)

        rows = self.check(work)
        self.assertEqual({r.name: self.held(r) for r in rows}, {"A": (0, 8), "B": (-6, -6)})

    def test_a_step_that_ends_in_a_scope(self):
        def work(p):
            with prof.scope("before"):
                self.allocate(1)
            with prof.scope("across"):
                self.allocate(2)
                p.step()
                self.allocate(4)
            self.allocate(8)

        rows = self.check(work)
        self.assertEqual({r.name: self.held(r)[0] for r in rows}["across"], 6)

    def test_a_call_that_is_part_of_its_only_caller(self):
        """The row of the outer call has what the inner one holds, and not what the crossing scopes
        in it hold."""

        def call(depth):
            with prof.scope("call"):
                if depth:
                    return call(depth - 1)
                first, second = prof.scope("first"), prof.scope("second")
                self.allocate(1)
                first.__enter__()
                self.allocate(2)
                second.__enter__()
                self.allocate(4)
                first.__exit__(None, None, None)
                self.allocate(8)
                second.__exit__(None, None, None)
                self.allocate(16)

        p = self.recorded(lambda p: call(1))
        for group in ("name", ("name", "scopes")):
            rows = p.trace.aggregate(group, _rules=ONLY_CHILDREN)
            found = sorted((r.name, r.count, *self.held(r)) for r in rows)
            self.assertEqual(
                found, [("call", 1, 31, 17), ("first", 1, 6, 2), ("second", 1, 12, 12)], group
            )

    def test_tasks(self):
        async def task(number):
            chance = random.Random(number)
            with prof.scope(f"task {number}"):
                for _ in range(chance.randrange(1, 6)):
                    self.allocate(chance.randrange(1, 1000))
                    with prof.scope(f"part {number}"):
                        self.allocate(chance.randrange(1, 1000))
                        await asyncio.sleep(0)
                    await asyncio.sleep(0)

        async def tasks():
            with prof.scope("all"):
                await asyncio.gather(*(task(number) for number in range(20)))

        self.check(lambda p: asyncio.run(tasks()))


class CrossingMemoryOfADevice(CrossingMemory):
    kind, prefix = "cuda", "device_"
    usage = "device_memory_usage"


if __name__ == "__main__":
    unittest.main()
