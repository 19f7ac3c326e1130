"""What runs in a backward call of autograd's has the forward call's stack, as in torch.profiler's
tables. So it is in tables, which C adds up, and in events(), which Python reads one by one. Traces
written by hand: without torch, and of what it does seldom."""

import os
import subprocess
import sys
import unittest
from unittest import mock

from folder import Folder
from slices import RANGE, Trace

from prof import _forward_stacks, _read_arguments, tables

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))
# KiB; beside what this process has itself, when it begins another
PEAK = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
)


class ForwardStacks(Folder):
    def stacks(self, trace, n=9):
        """Of each operator the stacks of its rows with their calls; the table's are those of the
        events."""
        read = trace.read(self.path("trace.json"))
        single = tables.single_events([tables.Window(read, 0, 0, 0, 0)], False, False)
        found = {}
        for functions in (False, True):
            lists = (
                read.key_averages(group_by_stack_n=n, include_python_functions=functions),
                single.key_averages(group_by_stack_n=n, include_python_functions=functions),
            )
            # a list of events has modules' calls where they are seen, a trace's averages where
            # functions are requested
            both = [
                sorted(
                    (
                        row.key,
                        tuple(row.stack),
                        row.count,
                        round(row.cpu_time_total, 3),
                        round(row.self_cpu_time_total, 3),
                    )
                    for row in rows
                    if functions or not row.key.startswith("nn.Module: ")
                )
                for rows in lists
            ]
            self.assertEqual(both[0], both[1])
            found = {}
            for name, stack, count, *_ in both[0]:
                found.setdefault(name, []).append((list(stack), count))
        return found

    def test_a_step(self):
        t = Trace()
        t.function("train.py(9): step", 0, 1000)
        t.function("model.py(3): forward", 10, 100)
        t.op("aten::linear", 20, 90, 5, own_thread=1)
        t.op("aten::addmm", 30, 80, 5, own_thread=1)
        t.function("torch/autograd/__init__.py(200): backward", 200, 900)
        t.function("torch/autograd/__init__.py(40): _make_grads", 210, 240)
        t.op("aten::ones_like", 220, 230)
        t.op(RANGE + "AddmmBackward0", 300, 400)
        t.op("AddmmBackward0", 310, 390, 5, forward_thread=1)
        t.op("aten::mm", 320, 330)
        t.op(RANGE + "torch::autograd::AccumulateGrad", 500, 600)
        t.op("torch::autograd::AccumulateGrad", 510, 590)
        t.op("aten::detach", 520, 530)
        found = self.stacks(t)
        forward = ["model.py(3): forward", "train.py(9): step"]
        for name in ("aten::linear", "aten::addmm", "AddmmBackward0", "aten::mm"):
            self.assertEqual(found[name], [(forward, 1)], name)
        for name in (
            RANGE + "AddmmBackward0",
            "aten::ones_like",
            RANGE + "torch::autograd::AccumulateGrad",
        ):
            self.assertEqual(found[name], [(["train.py(9): step"], 1)], name)
        for name in ("torch::autograd::AccumulateGrad", "aten::detach"):
            self.assertEqual(found[name], [([], 1)], name)
        self.assertEqual(self.stacks(t, 1)["aten::mm"], [(forward[:1], 1)])

    def test_functions_in_a_backward_call(self):
        t = Trace()
        t.function("train.py(9): step", 0, 1000)
        t.op("Twice", 20, 90, 5, own_thread=1)
        t.op("TwiceBackward", 310, 390, 5, forward_thread=1)
        t.function("twice.py(7): backward", 320, 380)
        t.function("twice.py(8): helper", 330, 370)
        t.op("aten::mul", 340, 350)
        found = self.stacks(t)
        self.assertEqual(found["aten::mul"], [(["train.py(9): step"], 1)])
        self.assertEqual(
            found["twice.py(8): helper"], [(["twice.py(7): backward", "train.py(9): step"], 1)]
        )

    def test_threads(self):
        """One number on two of torch's threads; both backward calls run on a third one."""
        t = Trace()
        for thread in (1, 2):
            t.function(f"part.py({thread}): run", 0, 100, thread)
            t.op("aten::sin", 10, 20, 3, own_thread=thread + 10, thread=thread)
            t.op(
                "SinBackward0",
                200 * thread,
                200 * thread + 50,
                3,
                forward_thread=thread + 10,
                thread=9,
            )
            t.op("aten::cos", 200 * thread + 10, 200 * thread + 20, thread=9)
        found = self.stacks(t)
        for name in ("aten::sin", "SinBackward0", "aten::cos"):
            self.assertEqual(
                found[name], [(["part.py(1): run"], 1), (["part.py(2): run"], 1)], name
            )

    def test_of_torchs_own_trace(self):
        """Its forward calls name no thread: the number distinguishes them where one thread alone
        has it."""
        t = Trace()
        for thread in (1, 2):
            t.function(f"part.py({thread}): run", 0, 100, thread)
            t.op("aten::sin", 10, 20, 3, thread=thread)
        t.op("aten::exp", 30, 40, 4, thread=2)
        t.op(RANGE + "ExpBackward0", 190, 260, 4, forward_thread=1, thread=9)
        t.op("ExpBackward0", 200, 250, 4, forward_thread=1, thread=9)
        t.op("SinBackward0", 300, 350, 3, forward_thread=1, thread=9)
        found = self.stacks(t)
        self.assertEqual(found["ExpBackward0"], [(["part.py(2): run"], 1)])
        self.assertEqual(found["SinBackward0"], [([], 1)])

    def test_threads_of_several_processes(self):
        """Each process numbers its own: which of the two it is, nobody can tell."""
        t = Trace()
        for thread in (1, 2):
            t.function(f"part.py({thread}): run", 0, 100, thread)
            t.op("aten::sin", 10, 20, 3, own_thread=1, thread=thread)
            t.op("SinBackward0", 200, 250, 3, forward_thread=1, thread=thread)
        self.assertEqual(self.stacks(t)["SinBackward0"], [([], 2)])

    def test_a_forward_call_inside_of_a_backward_one(self):
        """It has no stack of its own. autograd's range around its backward call replaces it, as in
        torch.profiler's."""
        t = Trace()
        t.function("train.py(9): step", 0, 1000)
        t.op("aten::mul", 10, 20, 1, own_thread=1)
        t.op(RANGE + "MulBackward0", 95, 205)
        t.op("MulBackward0", 100, 200, 1, forward_thread=1)
        t.op("aten::mul", 110, 120, 2)
        t.function("second.py(2): backward", 300, 400)
        t.op(RANGE + "MulBackward0", 305, 355)
        t.op("MulBackward0", 310, 350, 2, forward_thread=1)
        t.op("aten::div", 320, 330)
        found = self.stacks(t)
        self.assertEqual(
            found["MulBackward0"],
            [(["second.py(2): backward", "train.py(9): step"], 1), (["train.py(9): step"], 1)],
        )
        self.assertEqual(found["aten::div"], [(["second.py(2): backward", "train.py(9): step"], 1)])

    def test_behind_a_device(self):
        """A device's row comes first, as the file may have it: what scopes say of themselves is
        read as a host's all the same."""
        t = Trace()
        t.kernel("gemm", 31, 400, 450, 8)
        t.events.insert(1, t.events.pop())
        t.function("model.py(3): forward", 10, 100)
        t.op("aten::mul", 20, 90, 5, own_thread=1)
        t.op("aten::sin", 110, 120, 6, own_thread=1, stack="own.py(1): a")
        t.op(RANGE + "MulBackward0", 200, 300, thread=2)
        t.op("MulBackward0", 210, 290, 5, forward_thread=1, thread=2)
        t.op("aten::mm", 220, 230, thread=2)
        t.op("SinBackward0", 310, 390, 6, forward_thread=1, thread=2)
        found = self.stacks(t)
        for name in ("aten::mul", "MulBackward0", "aten::mm"):
            self.assertEqual(found[name], [(["model.py(3): forward"], 1)], name)
        for name in ("aten::sin", "SinBackward0"):
            self.assertEqual(found[name], [(["own.py(1): a"], 1)], name)

    def test_the_first_of_one_number(self):
        t = Trace()
        for i, name in enumerate(("first", "second")):
            t.function(f"{name}.py(1): run", 100 * i, 100 * i + 90)
            t.op("aten::sin", 100 * i + 10, 100 * i + 20, 3, own_thread=1)
        t.op("SinBackward0", 500, 550, 3, forward_thread=1)
        self.assertEqual(self.stacks(t)["SinBackward0"], [(["first.py(1): run"], 1)])

    def test_calls_inside_of_one_of_their_name(self):
        """As vmap makes them: the inner one of mul has sin's number already."""
        t = Trace()
        t.function("first.py(1): run", 0, 90)
        t.op("aten::mul", 10, 80, 3, own_thread=1)
        t.op("aten::mul", 20, 70, 4, own_thread=1)
        t.function("second.py(1): run", 100, 190)
        t.op("aten::sin", 110, 180, 4, own_thread=1)
        t.op("SinBackward0", 500, 550, 4, forward_thread=1)
        self.assertEqual(self.stacks(t)["SinBackward0"], [(["second.py(1): run"], 1)])

    def test_stacks_of_their_own(self):
        t = Trace()
        t.op(
            "aten::sin",
            10,
            20,
            3,
            own_thread=1,
            stack="own.py(1): a;torch/autograd/__init__.py(2): backward;own.py(3): b",
        )
        t.op("SinBackward0", 500, 550, 3, forward_thread=1, stack="somewhere.py(1): else")
        t.op("aten::cos", 510, 520, stack="somewhere.py(1): else")
        t.op("aten::tan", 610, 620, stack="torch/autograd/__init__.py(2): backward")
        found = self.stacks(t)
        for name in ("aten::sin", "SinBackward0", "aten::cos"):
            self.assertEqual(found[name], [(["own.py(1): a", "own.py(3): b"], 1)], name)
        self.assertEqual(found["aten::tan"], [([], 1)])
        self.assertEqual(self.stacks(t, 2)["SinBackward0"], [(["own.py(1): a", "own.py(3): b"], 1)])

    def test_a_stack_of_its_own_of_which_nothing_stays(self):
        """It is no stack, and the functions around it are not it."""
        t, left_out = Trace(), "torch/autograd/__init__.py(2): backward"
        t.function("train.py(9): step", 0, 1000)
        t.op("aten::sin", 10, 20, 3, own_thread=1, stack=left_out)
        t.op("SinBackward0", 500, 550, 3, forward_thread=1)
        t.op("aten::tan", 610, 620, stack=left_out)
        t.op("aten::cos", 630, 640)
        found = self.stacks(t)
        for name in ("aten::sin", "SinBackward0", "aten::tan"):
            self.assertEqual(found[name], [([], 1)], name)
        self.assertEqual(found["aten::cos"], [(["train.py(9): step"], 1)])

    def test_a_deep_stack_of_its_own(self):
        t, frames = Trace(), [f"own.py({i}): f" for i in range(310)]
        for i in range(50):
            t.op("aten::sin", 20 * i, 20 * i + 10, i, own_thread=1, stack=";".join(frames[i % 2 :]))
            t.op("SinBackward0", 5000 + 20 * i, 5010 + 20 * i, i, forward_thread=1)
        for n in (310, 300):
            self.assertEqual(
                self.stacks(t, n),
                {
                    name: [(frames[0:n], 25), (frames[1 : n + 1], 25)]
                    for name in ("aten::sin", "SinBackward0")
                },
            )

    @unittest.skipIf(
        "libasan" in os.environ.get("LD_PRELOAD", ""), "the sanitizer keeps what is freed"
    )
    @unittest.skipUnless(os.access(COMMAND, os.X_OK), "the prof command is not built")
    def test_stacks_of_their_own_are_kept_once(self):
        """Of 12,000 forward calls with 4 KiB each (48 MB), a table by stack takes little more than
        one by name."""
        t, stack = Trace(), "".join(f"{'own' * 10}.py({i}): f;" for i in range(100))
        for i in range(12000):
            t.op(
                "aten::sin", 20 * i, 20 * i + 10, i, own_thread=1, stack=f"{i % 4}.py(1): g;{stack}"
            )
            t.op("SinBackward0", 500000 + 20 * i, 500010 + 20 * i, i, forward_thread=1)
        tables = self.assert_little_memory(t)
        self.assertEqual([table.count("SinBackward0") for table in tables], [1, 4])

    def assert_little_memory(self, trace):
        """A table by stack takes less than 16 MiB more than one by name; returns the two, by name
        first."""
        trace.read(self.path("trace.json")).close()
        subprocess.run(
            [COMMAND, "import", "trace.json", "-o", "trace.prof"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
        )
        done = [
            subprocess.run(
                [
                    sys.executable,
                    "-c",
                    PEAK,
                    COMMAND,
                    "table",
                    "--by",
                    by,
                    "--rows",
                    "10",
                    "trace.prof",
                ],
                check=True,
                capture_output=True,
                text=True,
                cwd=self.folder,
            )
            for by in ("name", "name,stack")
        ]
        by_name, by_stack = (int(d.stderr) for d in done)
        self.assertLess(by_stack - by_name, 16 << 10, (by_name, by_stack))
        return [d.stdout for d in done]

    @unittest.skipIf(
        "libasan" in os.environ.get("LD_PRELOAD", ""), "the sanitizer keeps what is freed"
    )
    @unittest.skipUnless(os.access(COMMAND, os.X_OK), "the prof command is not built")
    def test_rows_share_the_stacks_of_functions(self):
        """Of 2,000 operators begun by one way of 50 KB (100 MB)."""
        t, depth, count = Trace(), 250, 2000
        for i in range(depth):
            t.function(f"{'folder/' * 28}file.py({i}): f", i, 3 * depth + 10 * count - i)
        for i in range(count):
            t.op(f"aten::op{i}", depth + 10 * i, depth + 10 * i + 5)
        self.assertIn(f"{depth + count} groups", self.assert_little_memory(t)[1])

    def test_a_module_in_a_backward_call(self):
        """As where a checkpoint runs the forward call again: it stands where it was called."""
        t = Trace()
        t.function("train.py(9): step", 0, 1000)
        t.op("CheckpointFunction", 20, 90, 5, own_thread=1)
        t.op("CheckpointFunctionBackward", 310, 390, 5, forward_thread=1)
        t.function("checkpoint.py(7): backward", 320, 380)
        t.function("nn.Module: Linear_0", 330, 370)
        t.op("aten::linear", 340, 350)
        found = self.stacks(t)
        self.assertEqual(
            found["nn.Module: Linear_0"], [(["checkpoint.py(7): backward", "train.py(9): step"], 1)]
        )
        self.assertEqual(found["aten::linear"], [(["train.py(9): step"], 1)])

    def test_a_deep_recursion_is_not_walked_for_each_event(self):
        """Of 500 functions in each other beside a backward call, each one's parent is read a few
        times, whatever the depth."""
        asked = []

        class Call:
            torch_fwd_thread, torch_thread, sequence_nr, thread = 0, None, -1, 1

            def __init__(self, name, parent, category):
                self.name, self.parent, self.category, self.stack = name, parent, category, []
                self.is_python_function = category == "python_function"

            @property
            def cpu_parent(self):
                asked.append(self)
                return self.parent

        events = [Call(RANGE + "SinBackward0", None, "cpu_op")]
        for _ in range(500):
            events.append(
                Call("f.py(1): f", events[-1] if len(events) > 1 else None, "python_function")
            )
        _forward_stacks.give(events)
        self.assertLess(len(asked), 5 * len(events))

    def test_arguments_are_read_when_a_stack_is_asked_for(self):
        t = Trace()
        t.function("train.py(9): step", 0, 1000)
        t.op("aten::sin", 20, 90, 5, own_thread=1)
        t.op(RANGE + "SinBackward0", 300, 400)
        t.op("SinBackward0", 310, 390, 5, forward_thread=1)
        read = t.read(self.path("trace.json"))
        read_one = _read_arguments._read
        with mock.patch.object(_read_arguments, "_read", side_effect=read_one) as asked:
            events = tables.single_events([tables.Window(read, 0, 0, 0, 0)], False, False)
            self.assertEqual([e.name for e in events][1:3], ["aten::sin", RANGE + "SinBackward0"])
            self.assertEqual(asked.call_count, 0)
            self.assertEqual(events[3].stack, ["train.py(9): step"])
            self.assertEqual(events[2].sequence_nr, 5)
            self.assertGreater(asked.call_count, 0)

    def test_no_forward_call(self):
        t = Trace()
        t.function("train.py(9): step", 0, 1000)
        t.op("SinBackward0", 500, 550, 3, forward_thread=1)
        t.op("aten::cos", 510, 520)
        found = self.stacks(t)
        self.assertEqual((found["SinBackward0"], found["aten::cos"]), ([([], 1)], [([], 1)]))

    def test_many(self):
        """As many forward calls as make its table grow, in any order."""
        t = Trace()
        for i in range(3000):
            t.function(f"layer.py({i % 7}): run", 10 * i, 10 * i + 9)
            t.op("aten::sin", 10 * i + 1, 10 * i + 2, i, own_thread=1)
            t.op(
                "SinBackward0",
                100000 + 10 * i,
                100000 + 10 * i + 5,
                (i * 7) % 3000,
                forward_thread=1,
            )
        found = self.stacks(t)
        for name in ("aten::sin", "SinBackward0"):
            self.assertEqual(
                found[name],
                [([f"layer.py({k}): run"], 429 if k < 4 else 428) for k in range(7)],
                name,
            )


if __name__ == "__main__":
    unittest.main()
