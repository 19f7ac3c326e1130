"""Ranges that overlap without nesting, beside torch.profiler in one process: who holds which event,
whose memory it is, and self times. make test-torch."""

import asyncio
import collections
import unittest

from beside_torch import skip_with_old_torch, skip_without_torch, torch

import prof
import prof.torch


def range_of(name):
    return torch.profiler.record_function(name)


def begin(name):
    found = range_of(name)
    found.__enter__()
    return found


def end(begun):
    begun.__exit__(None, None, None)


def of_events(p):
    """What does not differ from run to run: times do."""
    return [
        (
            e.name,
            e.cpu_parent and e.cpu_parent.name,
            [child.name for child in e.cpu_children],
            e.cpu_memory_usage,
            e.self_cpu_memory_usage,
        )
        for e in p.events()
    ]


def of_averages(averages):
    return {
        (r.key, str(r.input_shapes)): (r.count, r.cpu_memory_usage, r.self_cpu_memory_usage)
        for r in averages
    }


@skip_without_torch
class Overlaps(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.x = torch.ones(8, 8)
        self.kept = []

    def profiles(self, work, **options):
        options["activities"] = [torch.profiler.ProfilerActivity.CPU]
        options.setdefault("profile_memory", True)
        work(None)
        for make in (torch.profiler.profile, prof.torch.profile):
            self.kept.clear()
            with make(**options) as p:
                work(p)
            yield p

    def same(self, work, **options):
        theirs, ours = self.profiles(work, **options)
        self.assertEqual(of_events(ours), of_events(theirs))
        shapes = bool(options.get("record_shapes"))
        self.assertEqual(
            of_averages(ours.key_averages(shapes)), of_averages(theirs.key_averages(shapes))
        )
        for p in (theirs, ours):
            self.has_self_times(p)
        for r in ours.key_averages():
            of_row = [e for e in ours.events() if e.key == r.key]
            self.assertEqual(len(of_row), r.count)
            total = sum(e.self_cpu_time_total for e in of_row)
            self.assertAlmostEqual(total, r.self_cpu_time_total, places=3)
        return ours

    def has_self_times(self, p):
        for e in p.events():
            own = e.cpu_time_total - sum(child.cpu_time_total for child in e.cpu_children)
            if isinstance(p, prof.profile):
                own = max(own, 0)  # torch has times below 0 where children overlap
            self.assertAlmostEqual(e.self_cpu_time_total, own, 3, e.name)

    def crossing(self, p=None):
        self.x.add(1)
        a = begin("A")
        self.x.mul(2)
        b = begin("B")
        self.kept.append(self.x.sub(1))
        end(a)
        self.x.div(3)
        end(b)
        self.x.neg()

    def test_two_ranges(self):
        self.same(self.crossing)

    def test_what_holds_which(self):
        _, ours = self.profiles(self.crossing)
        rows = {e.name: e for e in ours.events()}
        self.assertEqual(rows["aten::mul"].cpu_parent.name, "A")
        self.assertEqual(rows["aten::sub"].cpu_parent.name, "B")
        self.assertTrue(rows["A"].is_crosswise and rows["B"].is_crosswise)
        self.assertFalse(rows["aten::neg"].is_crosswise)

    def test_with_shapes(self):
        self.same(self.crossing, record_shapes=True)

    def test_inside_another_one(self):
        def work(p):
            with range_of("outer"):
                self.crossing()
                self.x.neg()

        self.same(work)

    def test_without_memory(self):
        self.same(self.crossing, profile_memory=False)

    def test_tasks(self):
        def work(p):
            begun, ended = [], []

            async def task(number):
                with range_of(f"task {number}"):
                    self.x.mul(number)
                    begun.append(number)
                    while len(begun) < 5 or len(ended) < number:
                        await asyncio.sleep(0)
                    ended.append(number)
                    self.kept.append(self.x.add(number))

            async def tasks():
                await asyncio.gather(*(task(number) for number in range(5)))

            asyncio.run(tasks())

        self.same(work)

    def test_recursion_under_one_decorator(self):
        def work(p):
            @range_of("decorated")
            def once_more(left):
                self.x.add(1)
                if left:
                    once_more(left - 1)
                self.kept.append(self.x.mul(1))

            once_more(3)

        self.same(work)

    def steps(self, p):
        with range_of("first"):
            self.x.mul(2)
            if p:
                p.step()
            self.x.add(1)
        self.x.neg()
        if p:
            p.step()
        last = begin("last")
        self.kept.append(self.x.sub(1))
        if p:
            p.step()
        self.x.div(3)
        end(last)
        self.x.neg()
        if p:
            p.step()

    def test_steps_of_no_schedule(self):
        self.same(self.steps)

    def test_steps_of_a_schedule(self):
        schedule = torch.profiler.schedule(wait=0, warmup=0, active=5)
        self.same(self.steps, schedule=schedule)

    def test_a_call_that_is_the_only_one_in_a_call_of_its_name(self):
        def work(p):
            outer = begin("A")
            with range_of("A"):
                self.x.mul(2)
            crossing = begin("B")
            end(outer)
            with range_of("B"):
                self.x.div(2)
            end(crossing)

        self.same(work)

    def test_two_threads(self):
        """The other one has nothing that crosses, and has its own memory."""
        import threading

        def work(p):
            self.crossing()
            thread = threading.Thread(target=lambda: self.x.exp())
            thread.start()
            thread.join()

        theirs, ours = self.profiles(work)
        self.assertEqual(of_events(ours), of_events(theirs))

    def test_the_table_has_the_sums_of_torch(self):
        theirs, ours = self.profiles(self.crossing)
        for p in (theirs, ours):
            events, rows = p.events(), p.key_averages()
            total = sum(e.self_cpu_time_total for e in events)
            self.assertAlmostEqual(sum(r.self_cpu_time_total for r in rows), total, places=3)
            self.assertIn("Self CPU time total", rows.table())


@skip_without_torch
class Itt(unittest.TestCase):
    def test_operators_under_emit_itt_are_recorded_once(self):
        x = torch.ones(8, 8)
        for with_shapes in (False, True):
            emit_itt = torch.autograd.profiler.emit_itt(record_shapes=with_shapes)
            with self.subTest(with_shapes), prof.torch.profile() as p, emit_itt:
                for _ in range(3):
                    with range_of("range"):
                        x.add(1)
                torch.profiler.itt.range_push("of ITT alone")
                torch.profiler.itt.range_pop()
            found = collections.Counter(e.name for e in p.events())
            self.assertEqual(found["aten::add"], 3, found)
            self.assertEqual(found["range"], 3, found)
            self.assertEqual(found["of ITT alone"], 1, found)


@skip_without_torch
class Functions(Overlaps):
    """Traced functions beside the ranges hold events, too."""

    def same(self, work, **options):
        theirs, ours = self.profiles(work, with_stack=True, **options)
        shapes = bool(options.get("record_shapes"))
        self.assertEqual(
            of_averages(ours.key_averages(shapes)), of_averages(theirs.key_averages(shapes))
        )
        ranges = [e for e in ours.events() if not e.is_python_function]
        names = collections.Counter(e.name for e in ranges)
        self.assertEqual(
            names, collections.Counter(e.name for e in theirs.events() if not e.is_python_function)
        )
        self.has_self_times(ours)
        return ours


for case in (Overlaps, Functions):
    if torch is not None:
        skip_with_old_torch(case)

if __name__ == "__main__":
    unittest.main()
