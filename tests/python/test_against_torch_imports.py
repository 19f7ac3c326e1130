"""Traces that torch.profiler wrote, imported: the same operators, stacks, arrows and lists as its
own events have."""

import collections
import gzip
import json
import os
import re
import subprocess
import tempfile
import unittest

from hang_guard import HANG_SECONDS
from test_against_torch import torch

import prof
from prof import tables


class Imported(unittest.TestCase):
    """A trace that torch.profiler exported, by ``prof import``: torch's own averages of the same
    run."""

    COMMAND = os.path.join(os.path.dirname(os.environ.get("PROF_LIBRARY", "")), "prof")
    SAME = (
        "count",
        "cpu_time_total",
        "self_cpu_time_total",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
    )

    def recorded(self, **options):
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 14 * 14, 10),
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            profile_memory=True,
            record_shapes=True,
            **options,
        ) as profile:
            for _ in range(3):
                with torch.profiler.record_function("model_inference"):
                    optimizer.zero_grad()
                    model(torch.randn(2, 3, 16, 16)).sum().backward()
                    optimizer.step()
                profile.step()
        return profile

    def imported(self, profile):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        paths = [os.path.join(folder.name, name) for name in ("t.json.gz", "t.prof")]
        profile.export_chrome_trace(paths[0])  # once: torch does it no second time
        with gzip.open(paths[0]) as f:
            self.exported = json.load(f)["traceEvents"]
        done = subprocess.run(
            [self.COMMAND, "import", paths[0], "-o", paths[1]],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = prof.Trace.open(paths[1])
        self.addCleanup(trace.close)
        return trace

    def compare(self, **options):
        """Where an operator calls itself and nothing else (aten::sum does), torch's tables leave
        the inner call out, and the trace does not. Of those names the counts are the recorder's
        own. A total of torch's has the inner calls of a recursion again, prof's has the outermost
        ones: the difference is what torch's own events say."""
        profile = self.recorded(**options)
        trace = self.imported(profile)
        calls = collections.Counter(
            re.sub("#.*", "*", e.name()) if e.name().startswith("ProfilerStep#") else e.name()
            for e in profile.profiler.kineto_results.events()
        )
        theirs = {a.key: a for a in profile.key_averages()}
        mine = {a.key: a for a in trace.key_averages()}
        self.assertEqual(set(mine), set(theirs))
        again = collections.Counter()
        for e in profile.events():
            around = e.cpu_parent
            while around is not None and around.name != e.name:
                around = around.cpu_parent
            for field in ("cpu_time_total", "cpu_memory_usage") if around is not None else ():
                again[e.name, field] += getattr(e, field)
        for key, average in theirs.items():
            self.assertEqual(mine[key].count, calls[key], key)
            if average.count != calls[key]:
                continue
            for field in self.SAME:
                self.assertAlmostEqual(
                    getattr(mine[key], field),
                    getattr(average, field) - again[key, field],
                    delta=0.0011,
                    msg=f"{key}: {field}",
                )
        shapes = {
            (a.key, str(a.input_shapes)) for a in profile.key_averages(group_by_input_shape=True)
        }
        self.assertEqual(
            {(a.key, str(a.input_shapes)) for a in trace.key_averages(group_by_input_shape=True)},
            shapes,
        )

    def test_operators(self):
        self.compare()

    def test_with_every_function_of_python(self):
        self.compare(with_stack=True)

    def test_stacks_of_a_forward_pass(self):
        """group_by_stack_n: torch's rows, with their stacks. (Behind a backward pass torch's own
        table puts the forward's stack, the trace the backward's.)"""
        from torch._C._profiler import _ExperimentalConfig

        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 14 * 14, 10),
        )
        with (
            torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU],
                with_stack=True,
                record_shapes=True,
                experimental_config=_ExperimentalConfig(verbose=True),
            ) as profile,
            torch.no_grad(),
        ):
            for _ in range(2):
                y = model(torch.randn(2, 3, 16, 16))
                torch.cat([y, y], 1)
        trace = self.imported(profile)
        for n in (1, 5):
            theirs = {
                (a.key, str(a.stack)): a.count for a in profile.key_averages(group_by_stack_n=n)
            }
            mine = {(a.key, str(a.stack)): a.count for a in trace.key_averages(group_by_stack_n=n)}
            self.assertGreater(len(theirs), 8)
            self.assertEqual(mine, theirs)

    def test_sequence_numbers_arrows_and_lists_of_tensors(self):
        """Which backward belongs to which forward: the events' numbers and the arrows are torch's;
        so are the shapes where an input is a list of tensors."""
        linear = torch.nn.Linear(4, 4)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
        ) as profile:
            for _ in range(2):
                y = linear(torch.randn(3, 4))
                torch.cat([y, y * 2], 1).backward(torch.ones(3, 8))
        trace = self.imported(profile)
        theirs = collections.Counter(
            (e.name(), e.sequence_nr(), e.fwd_thread_id())
            for e in profile.profiler.kineto_results.events()
            if e.sequence_nr() >= 0
        )
        events = tables.single_events([tables.Window(trace, 0, 0, 0, 0)], False, False, False)
        mine = collections.Counter(
            (e.name, e.sequence_nr, e.fwd_thread) for e in events if e.sequence_nr >= 0
        )
        self.assertGreater(len(theirs), 8)
        self.assertEqual(mine, theirs)
        flows = collections.Counter(
            (e["cat"], e["name"], e["ph"]) for e in self.exported if e.get("cat") == "fwdbwd"
        )
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            trace.dump(path)
            with open(path) as f:
                again = json.load(f)["traceEvents"]
        arrows = collections.Counter(
            (e["cat"], e["name"], e["ph"]) for e in again if e["ph"] in "sf"
        )
        self.assertGreater(flows["fwdbwd", "fwdbwd", "s"], 3)
        self.assertEqual(arrows, flows)
        for key in ("Concrete Inputs", "Input Strides"):
            with self.subTest(key):
                theirs = [
                    (e["name"], e["args"][key]) for e in self.exported if key in e.get("args", {})
                ]
                self.assertGreater(len(theirs), 8)
                self.assertIsInstance(theirs[0][1], list)
                self.assertEqual(
                    sorted((e["name"], e["args"][key]) for e in again if key in e.get("args", {})),
                    sorted(theirs),
                )
        shapes = {
            (a.key, str(a.input_shapes)) for a in profile.key_averages(group_by_input_shape=True)
        }
        self.assertIn("aten::cat", dict(shapes))
        self.assertEqual(
            {(a.key, str(a.input_shapes)) for a in trace.key_averages(group_by_input_shape=True)},
            shapes,
        )


if torch is None:
    del Imported

    class Torch(unittest.TestCase):
        def test_beside_torch(self):
            self.skipTest("torch is not installed for this Python")


if __name__ == "__main__":
    unittest.main()
