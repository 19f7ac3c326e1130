"""Ev Idx and Record function id of the JSON, and python_id of events(): the same work in
torch.profiler and in prof, in the same process. make test-torch."""

import collections
import json
import os
import re
import tempfile
import threading
import unittest

from beside_torch import skip_without_torch, torch

import prof

OPERATORS = ("cpu_op", "user_annotation")
FUNCTIONS = ("python_function", "c_function")


def work():
    x = torch.randn(10, 10, requires_grad=True)
    with torch.profiler.record_function("range"):
        y = (x @ x).relu().sum()
    y.backward()


if torch is not None:

    class Inner(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)


def called(n):
    return called(n - 1) if n else 0


@skip_without_torch
class Numbers(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        work()

    def written(self, profile, work=work):
        with profile:
            work()
        path = os.path.join(self.folder.name, "trace.json")
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8") as f:
            return json.load(f)["traceEvents"]

    def theirs(self, work=work, **options):
        cpu = [torch.profiler.ProfilerActivity.CPU]
        return self.written(torch.profiler.profile(activities=cpu, **options), work)

    def numbered(self, rows):
        """Names by their Ev Idx, which is the place of the row among all that have one."""
        found = {e["args"]["Ev Idx"]: e for e in rows if "Ev Idx" in e.get("args", {})}
        self.assertEqual(sorted(found), list(range(len(found))))
        return [found[number] for number in range(len(found))]

    def test_operators_are_numbered_as_torchs(self):
        for options in ({}, {"record_shapes": True}, {"profile_memory": True}):
            with self.subTest(options):
                mine = self.numbered(self.written(prof.profile(torch=True, **options)))
                theirs = self.numbered(self.theirs(**options))
                keys = [(e["cat"], e["name"]) for e in theirs]
                self.assertEqual([(e["cat"], e["name"]) for e in mine], keys)
                self.assertGreater(len(keys), 30)

    def test_every_row_of_these_kinds_has_a_number_as_torchs(self):
        """Operators, ranges and functions; the id of a record function is the first two's alone."""

        def kinds(rows):
            found = collections.defaultdict(set)
            for e in rows:
                args, kind = e.get("args", {}), e.get("cat")
                if kind in (*OPERATORS, *FUNCTIONS) and e["ph"] == "X":
                    kind = "function" if kind in FUNCTIONS else kind
                    found[kind].add(("Ev Idx" in args, args.get("Record function id")))
            return dict(found)

        mine = self.written(prof.profile(torch=True, with_stack=True))
        self.assertEqual(kinds(mine), kinds(self.theirs(with_stack=True)))
        order = [e["cat"] in FUNCTIONS for e in self.numbered(mine)]
        self.assertEqual(order, sorted(order))

    def test_of_each_thread_the_numbers_go_on_by_begin(self):
        def of_two():
            other = threading.Thread(target=work)
            other.start()
            work()
            other.join()

        try:
            config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        except TypeError:
            self.skipTest(f"torch {torch.__version__} has no profile_all_threads")
        options = {"experimental_config": config, "with_stack": True}
        for rows in (
            self.theirs(of_two, **options),
            self.written(prof.profile(torch=True, **options), of_two),
        ):
            by_thread = collections.defaultdict(list)
            for number, e in enumerate(self.numbered(rows)):
                if e["cat"] in OPERATORS:
                    by_thread[e["tid"]].append((number, e["ts"]))
            self.assertEqual(len(by_thread), 2)
            for found in by_thread.values():
                numbers, begins = zip(*found)
                first = numbers[0]
                self.assertEqual(list(numbers), list(range(first, first + len(numbers))))
                self.assertEqual(list(begins), sorted(begins))

    def test_a_cycle_begins_with_0(self):
        steps = prof.schedule(wait=1, warmup=0, active=2, repeat=2)
        counts = []

        def ready(p):
            path = os.path.join(self.folder.name, "cycle.json")
            p.export_chrome_trace(path)
            with open(path, encoding="utf-8") as f:
                rows = self.numbered(json.load(f)["traceEvents"])
            counts.append(collections.Counter(e["name"] for e in rows)["aten::mm"])

        with prof.profile(torch=True, schedule=steps, on_trace_ready=ready) as p:
            for _ in range(6):
                work()
                p.step()
        self.assertEqual(counts, [6, 6])

    def test_a_key_of_the_users_is_another(self):
        with prof.profile(torch=True) as p:
            with prof.scope("mine", **{"Ev Idx": 7, "Record function id": 8}):
                work()
        path = os.path.join(self.folder.name, "user.json")
        p.export_chrome_trace(path)
        with open(path, encoding="utf-8") as f:
            rows = json.load(f)["traceEvents"]
        (mine,) = [e for e in rows if e["name"] == "mine"]
        self.assertEqual((mine["args"]["Ev Idx#"], mine["args"]["Record function id#"]), (7, 8))
        self.numbered(rows)

    def test_an_imported_trace(self):
        path = os.path.join(self.folder.name, "trace.json")
        before = [e["name"] for e in self.numbered(self.theirs())]
        again = path + ".again.json"
        with prof.import_trace(path, path + ".prof") as trace:
            trace.dump(again)
        with open(again, encoding="utf-8") as f:
            after = [e["name"] for e in self.numbered(json.load(f)["traceEvents"])]
        self.assertEqual(after, before)


@skip_without_torch
class PythonIds(unittest.TestCase):
    """Of the JSON and of events(): one count."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def of_json(self, profile):
        """Rows of functions by their numbers."""
        path = os.path.join(self.folder.name, "ids.json")
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8") as f:
            rows = json.load(f)["traceEvents"]
        found = [e for e in rows if "Python id" in e.get("args", {})]
        by_id = {e["args"]["Python id"]: e for e in found}
        self.assertEqual(sorted(by_id), list(range(1, len(found) + 1)))
        return by_id

    def compare(self, profile):
        """Each call has one number and one parent in both."""
        written = self.of_json(profile)
        events = [e for e in profile.events() if e.python_id != -1]
        self.assertGreater(len(events), 4)
        mine = {e.python_id: e for e in events}
        self.assertEqual(len(mine), len(events))
        for number, e in mine.items():
            row = written[number]
            self.assertEqual(e.name, row["name"])
            parent = row["args"].get("Python parent id", -1)
            self.assertEqual(e.python_parent_id, parent if parent in mine else -1)
        return written, mine

    def merged(self, written, mine):
        """Rows that are part of the call around them, of the same name, in events()."""
        left_out = [written[number] for number in written.keys() - mine.keys()]
        for e in left_out:
            self.assertEqual(e["name"], written[e["args"]["Python parent id"]]["name"])
        return len(left_out)

    def of_two(self):
        other = threading.Thread(target=called, args=(9,))
        with prof.trace_functions():
            other.start()
            called(9)
            other.join()

    def test_the_json_counts_by_begin_as_torch(self):
        """On all threads together."""
        try:
            config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        except TypeError:
            config = None
        cpu = [torch.profiler.ProfilerActivity.CPU]
        for profile in (
            torch.profiler.profile(activities=cpu, with_stack=True, experimental_config=config),
            prof.profile(torch=True, with_stack=True, experimental_config=config),
        ):
            with profile:
                other = threading.Thread(target=called, args=(9,))
                other.start()
                called(9)
                other.join()
            found = self.of_json(profile)
            begins = [found[number]["ts"] for number in sorted(found)]
            self.assertEqual(begins, sorted(begins))
            for e in found.values():
                parent = found.get(e["args"].get("Python parent id"))
                if parent:
                    self.assertLessEqual(parent["ts"], e["ts"])
                    self.assertEqual(parent["tid"], e["tid"])

    def test_the_json_and_events_count_alike(self):
        with prof.profile(torch=True, with_stack=True, with_modules=True) as p:
            Outer()(torch.ones(3))
            called(3)
        self.assertEqual(self.merged(*self.compare(p)), 3)  # called() calls itself alone

    def test_calls_of_two_threads(self):
        with prof.profile() as p:
            self.of_two()
        written, mine = self.compare(p)
        self.assertEqual(len(written), len(mine))
        self.assertEqual(len({e.thread for e in mine.values()}), 2)

    def test_what_stands_open_before_is_counted(self):
        """Where the program traces functions itself, such calls are no events."""

        def inside():
            with prof.profile() as p:
                called(9)
            return p

        with prof.profile(), prof.trace_functions():  # what keeps the capture
            p = inside()
        written, mine = self.compare(p)
        self.assertEqual(len(written), len(mine) + 1)

    def test_each_cycle_has_its_own(self):
        """The JSON is of the last one."""
        found = []

        def ready(p):
            written, mine = self.compare(p)
            self.assertEqual(self.merged(written, mine), 9)
            found.append(min(mine))

        steps = prof.schedule(wait=1, warmup=0, active=1, repeat=2)
        with prof.profile(torch=True, with_stack=True, schedule=steps, on_trace_ready=ready) as p:
            for _ in range(4):
                called(9)
                p.step()
        self.assertEqual(found, [1, 1])


@skip_without_torch
class PythonIdsOfEvents(unittest.TestCase):
    maxDiff = None

    def chains(self, profile):
        """Of each call of functions, the modules and this file's functions around it."""
        model = Outer()
        with profile:
            model(torch.ones(3))
            called(3)
        rows = [e for e in profile.events() if e.python_id != -1]
        by_id = {e.python_id: e for e in rows}
        self.assertEqual((len(by_id), min(by_id)), (len(rows), 1))
        begins = [by_id[n].time_range.start for n in sorted(by_id)]
        self.assertEqual(begins, sorted(begins))

        def frame(e):
            name = getattr(e, "frame", "") or e.name
            here = r"test_observe_numbers\.py\(\d+\): (?!chains|test_)\w+"
            found = re.search(rf"nn\.Module: \w+|{here}", name)
            return found and found.group()

        def chain(e):
            above = chain(by_id[e.python_parent_id]) if e.python_parent_id != -1 else ()
            return (*above, frame(e)) if frame(e) else above

        modules = {e.name: e.python_module_id for e in rows if e.name.startswith("nn.Module")}
        return collections.Counter(chain(e) for e in rows if frame(e)), modules

    def test_they_are_torchs(self):
        if not hasattr(torch.autograd.profiler_util.FunctionEvent(1, "", 0, 0, 0), "python_id"):
            self.skipTest(f"torch {torch.__version__} has no python_id")
        cpu = [torch.profiler.ProfilerActivity.CPU]
        theirs = self.chains(torch.profiler.profile(activities=cpu, with_stack=True))
        mine = self.chains(prof.profile(torch=True, with_stack=True, with_modules=True))
        self.assertEqual(len(theirs[1]), 2)
        self.assertEqual(mine, theirs)

    def test_what_is_no_function_has_none(self):
        with prof.profile(torch=True, with_stack=True) as p:
            work()
        for e in p.events():
            if e.category not in FUNCTIONS:
                found = (e.python_id, e.python_parent_id, e.python_module_id)
                self.assertEqual(found, (-1, -1, -1))


if __name__ == "__main__":
    unittest.main()
