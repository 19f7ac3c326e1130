"""Profiles of several threads at once, beside torch.profiler's: each has the operators of its own
thread, and of the threads that work for it. make test-torch."""

import collections
import json
import os
import tempfile
import threading
import unittest

from beside_torch import OneLinear, skip_with_old_torch, skip_without_torch, torch

import prof

COUNTS = (1, 2, 3)


def counted(events):
    return dict(collections.Counter(e.name for e in events))


def named_only(counts, *names):
    return {name: count for name, count in counts.items() if name in names}


@skip_without_torch
class Threads(OneLinear):
    def at_once(self, make, work, counts=COUNTS):
        """By count: the profile of the thread that did work(count). All record while each works."""
        found, errors, meet = {}, [], threading.Barrier(len(counts))

        def run(count):
            try:
                p = make(count)
                meet.wait()
                p.start()
                meet.wait()
                work(count, p)
                meet.wait()
                p.stop()
                found[count] = p
                meet.wait()
            except BaseException as e:
                errors.append(e)
                meet.abort()

        threads = [threading.Thread(target=run, args=(count,)) for count in counts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return found

    def ours(self, work, counts=COUNTS, **options):
        return self.at_once(lambda _: prof.profile(torch=True, **options), work, counts)

    def theirs(self, work, counts=COUNTS, **options):
        """One thread after the other. If torch's own profiles end on two threads at the same time,
        torch may fail an internal assertion of kineto's activities, or end the process."""
        options["activities"] = self.cpu
        found = {}
        for count in counts:
            found.update(self.at_once(lambda _: torch.profiler.profile(**options), work, (count,)))
        return found

    def linears(self, count, p=None):
        with torch.no_grad():
            for _ in range(10 * count):
                self.linear(self.x)

    @skip_with_old_torch
    def test_each_has_its_own_operators(self):
        ours, theirs = self.ours(self.linears), self.theirs(self.linears)
        for count in COUNTS:
            with self.subTest(count):
                rows = {r.key: r.count for r in ours[count].key_averages()}
                self.assertEqual(rows, {r.key: r.count for r in theirs[count].key_averages()})
                self.assertEqual(counted(ours[count].events()), counted(theirs[count].events()))
                self.assertEqual(rows["aten::linear"], 10 * count)
                self.assertEqual(len({e.thread for e in ours[count].events()}), 1)
                table = ours[count].key_averages().table()
                self.assertEqual(table.count("aten::linear"), 1)

    def test_so_has_the_json(self):
        ours = self.ours(self.linears)
        for count in COUNTS:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "trace.json")
                ours[count].export_chrome_trace(path)
                with open(path) as f:
                    rows = json.load(f)["traceEvents"]
            names = [row["name"] for row in rows if row.get("cat") == "cpu_op"]
            self.assertEqual(names.count("aten::linear"), 10 * count)

    def test_the_trace_is_the_captures(self):
        """As of every profile: it has all threads."""
        ours = self.ours(self.linears)
        for p in ours.values():
            names = [e.name for e in p.trace.events()]
            self.assertGreaterEqual(names.count("aten::linear"), 10 * sum(COUNTS))

    def test_more_threads_than_there_are_numbers(self):
        counts = tuple(range(1, 21))

        def work(count, p):
            for _ in range(count):
                self.x.add(1)

        for _ in range(2):  # numbers come back
            ours = self.ours(work, counts)
            found = {c: counted(p.events())["aten::add"] for c, p in ours.items()}
            self.assertEqual(found, {count: count for count in counts})

    @skip_with_old_torch
    def test_backward(self):
        def work(count, p):
            linear = torch.nn.Linear(4, 4)
            for _ in range(count):
                linear(self.x).mul(2).mean().backward()

        names = ("aten::linear", "AddmmBackward0", "MulBackward0", "MeanBackward0")
        ours, theirs = self.ours(work), self.theirs(work)
        for count in COUNTS:
            rows = named_only(counted(ours[count].events()), *names)
            self.assertEqual(rows, named_only(counted(theirs[count].events()), *names))
            self.assertEqual(rows["MulBackward0"], count)

    def test_threads_that_work_for_it(self):
        """torch.jit's forks, which run on a pool of torch's."""
        script = torch.jit.script

        @script
        def sixfold(a: torch.Tensor):
            return a.mul(6).abs()

        @script
        def forks(a: torch.Tensor):
            one = torch.jit._fork(sixfold, a)
            other = torch.jit._fork(sixfold, a)
            return torch.jit._wait(one) + torch.jit._wait(other)

        def work(count, p):
            for _ in range(count):
                forks(self.x)

        for _ in range(3):
            forks(self.x)
        with torch.profiler.profile(activities=self.cpu) as p:
            forks(self.x)
        for count, mine in self.ours(work).items():
            for name in ("aten::abs", "<forked function>", "aten::add"):
                once = counted(p.events())[name]
                self.assertEqual((name, counted(mine.events())[name]), (name, once * count))

    @skip_with_old_torch
    def test_one_inside_of_anothers_time(self):
        def both(make):
            inner = make()

            def run():
                with inner:
                    self.linears(2)
                    with torch.profiler.record_function("theirs"):
                        self.x.mul(2)

            with make() as outer:
                self.linears(1)
                thread = threading.Thread(target=run)
                thread.start()
                thread.join()
                self.x.exp()
            return counted(outer.events()), counted(inner.events())

        ours = both(lambda: prof.profile(torch=True))
        self.assertEqual(ours, both(lambda: torch.profiler.profile(activities=self.cpu)))
        self.assertEqual(ours[0]["aten::linear"], 10)

    def test_a_thread_without_a_profile(self):
        def both(make):
            with make() as p:
                thread = threading.Thread(target=self.linears, args=(1,))
                thread.start()
                thread.join()
                self.x.exp()
            return counted(p.events())

        ours = both(lambda: prof.profile(torch=True))
        self.assertEqual(ours, both(lambda: torch.profiler.profile(activities=self.cpu)))
        self.assertEqual(ours, {"aten::exp": 1})

    @skip_with_old_torch
    def test_all_threads(self):
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        seen = []

        def work(count, p):
            self.linears(count)

        with prof.profile(torch=True, experimental_config=config) as p:
            seen.append(self.ours(work))
        self.assertEqual(counted(p.events())["aten::linear"], 10 * sum(COUNTS))
        for count, mine in seen[0].items():
            self.assertEqual(counted(mine.events())["aten::linear"], 10 * count)

    @skip_with_old_torch
    def test_steps(self):
        def work(count, p):
            for _ in range(2 * count):
                self.x.exp()
                p.step()

        def options(module):
            return {"schedule": module.schedule(wait=0, warmup=0, active=2), "acc_events": True}

        ours = self.ours(work, **options(prof))
        theirs = self.theirs(work, **options(torch.profiler))
        for count in COUNTS:
            names = ("ProfilerStep*", "aten::exp")
            rows = named_only({r.key: r.count for r in ours[count].key_averages()}, *names)
            expected = {r.key: r.count for r in theirs[count].key_averages()}
            self.assertEqual(rows, named_only(expected, *names))

    def test_memory(self):
        def work(count, p):
            for _ in range(count):
                made = torch.empty(1000 * count, dtype=torch.uint8)
                del made
            self.kept.append(torch.empty(64, dtype=torch.uint8))

        def rows(p):
            return {r.key: (r.count, r.cpu_memory_usage) for r in p.key_averages()}

        self.kept = []
        ours = self.ours(work, profile_memory=True)
        for count in COUNTS:
            freed = 1000 * count**2
            expected = {"aten::empty": (count + 1, freed + 64), "[memory]": (count, -freed)}
            self.assertEqual(rows(ours[count]), expected)

    def test_stacks_of_another_ones(self):
        """Functions are traced on all threads as soon as one asks for stacks."""

        def work(count, p):
            self.linears(count)

        def make(count):
            return prof.profile(torch=True, with_stack=count == 2)

        ours = self.at_once(make, work)
        for count, p in ours.items():
            functions = [e.name for e in p.events() if e.category == "python_function"]
            self.assertEqual((count, bool(functions)), (count, count == 2))
            self.assertEqual(counted(p.events())["aten::linear"], 10 * count)

    def test_profs_own_scopes_are_of_all_threads(self):
        def work(count, p):
            with prof.scope(f"scope {count}"), prof.record_function(f"range {count}"):
                self.x.exp()

        for count, p in self.ours(work).items():
            names = counted(p.events())
            self.assertEqual(names.pop("aten::exp"), 1)
            kinds = ("scope", "range")
            self.assertEqual(names, {f"{kind} {c}": 1 for kind in kinds for c in COUNTS})
            (own,) = (e for e in p.events() if e.name == "aten::exp")
            self.assertEqual(own.cpu_parent.name, f"range {count}")

    def test_modules(self):
        def work(count, p):
            self.linears(count)

        for count, p in self.ours(work, with_modules=True).items():
            found = [e for e in p.events() if e.name.startswith("nn.Module: ")]
            self.assertEqual(len(found), 10 * count)

    def test_while_it_records(self):
        def work(count, p):
            self.linears(count)
            seen[count] = counted(p.events())["aten::linear"]

        seen = {}
        self.ours(work)
        self.assertEqual(seen, {count: 10 * count for count in COUNTS})

    def test_a_capture_that_is_closed(self):
        ours = self.ours(self.linears)
        for count, p in ours.items():
            p.trace.close()
            self.assertEqual(counted(p.events())["aten::linear"], 10 * count)


if __name__ == "__main__":
    unittest.main()
