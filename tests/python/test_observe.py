"""prof.torch.observe() with the real torch: the same calls as torch.profiler's in the same process,
nested the same, and the program computes the same bits. make test-torch."""

import collections
import json
import os
import re
import sys
import tempfile
import threading
import unittest
import unittest.mock

from hang_guard import HANG_SECONDS

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
import prof

prof.torch  # before torch


try:
    import torch
    import torch.profiler
except ImportError:
    torch = None


try:
    import torchvision
except ImportError:
    torchvision = None


def small_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 14 * 14, 10),
    )


def small_input():
    torch.manual_seed(2)
    return torch.randn(2, 3, 16, 16)


def nested(events):
    """(name, depth) in the order of begins, of (name, thread, start, end)."""
    found, open_by_thread = [], collections.defaultdict(list)
    for name, thread, _, end in sorted(events, key=lambda e: (e[2], -e[3])):
        around = open_by_thread[thread]
        while around and around[-1] < end:
            around.pop()
        found.append((name, len(around)))
        around.append(end)
    return found


def seen_by_prof(work):
    with prof.profile() as p, prof.torch.observe():
        work()
    return p


def seen_by_torch(work):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        work()
    return events_of(p)


def events_of(p):
    """(name, thread, start, end) of torch's."""
    return [(e.name, e.thread, e.time_range.start, e.time_range.end) for e in p.events()]


def seen_by_both(work, path=None):
    """The same calls, recorded by either at once: what each has of them, in the order of begins:
    name, depth, shapes, sequence number, forward thread."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as theirs:
        with prof.profile() as p, prof.torch.observe(record_shapes=True):
            work()
    if path:
        theirs.export_chrome_trace(path)
    mine = [
        (e.thread, e.time_range.start, e.time_range.end)
        + (e.name, e.input_shapes, e.sequence_nr, e.torch_fwd_thread or 0)
        for e in p.events()
    ]
    kineto = [
        (e.thread, e.time_range.start, e.time_range.end)
        + (e.name, e.input_shapes, e.sequence_nr, e.fwd_thread)
        for e in theirs.events()
    ]
    found = []
    for rows in (mine, kineto):
        rows.sort(key=lambda r: (r[1], -r[2]))
        found.append([(*one, *r[4:]) for one, r in zip(nested((r[3], *r[:3]) for r in rows), rows)])
    return found[0], found[1], p


def calls(p):
    return {a.key: a.count for a in p.key_averages()}


def arrows(trace):
    """(from, to) of each, by the slice that begins at its ends; ids come in pairs."""
    slices = {
        (e["tid"], e["ts"]): e["name"]
        for e in trace["traceEvents"]
        if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "user_annotation")
    }
    ends = {
        (e["ph"], e["id"]): slices[e["tid"], e["ts"]]
        for e in trace["traceEvents"]
        if e.get("cat") == "fwdbwd" and e["name"] == "fwdbwd"
    }
    return sorted((name, ends["f", number]) for (ph, number), name in ends.items() if ph == "s")


class SameCalls(unittest.TestCase):
    maxDiff = None

    def compare(self, work):
        work()
        mine, theirs = seen_by_prof(work), seen_by_torch(work)
        self.assertEqual(calls(mine), dict(collections.Counter(name for name, *_ in theirs)))
        self.assertEqual(
            nested((e.name, e.thread, e.time_range.start, e.time_range.end) for e in mine.events()),
            nested(theirs),
        )
        self.assertEqual(
            {e.category for e in mine.trace.events()} - {"user_annotation"}, {"cpu_op"}
        )
        rows, kineto, _ = seen_by_both(work)
        self.assertEqual(rows, kineto)
        return calls(mine)

    def test_a_small_model(self):
        model, x = small_model(), small_input()
        found = self.compare(lambda: model(x))
        for name in ("conv2d", "batch_norm", "relu", "linear"):
            self.assertEqual(found[f"aten::{name}"], 1)

    def test_a_training_step(self):
        model, x = small_model(), small_input()
        step = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def work():
            step.zero_grad()
            model(x).square().mean().backward()
            step.step()

        found = self.compare(work)
        self.assertEqual(found["ConvolutionBackward0"], 1)
        self.assertEqual(found["Optimizer.step#SGD.step"], 1)

    def test_ranges_of_the_program(self):
        x = small_input()

        def work():
            for i in range(3):
                with torch.profiler.record_function(f"step {i}"):
                    x.add(x)

        self.assertEqual(
            self.compare(work), {"aten::add": 3, "step 0": 1, "step 1": 1, "step 2": 1}
        )
        categories = {e.name: e.category for e in seen_by_prof(work).trace.events()}
        ranges = dict.fromkeys(("step 0", "step 1", "step 2"), "user_annotation")
        self.assertEqual(categories, {"aten::add": "cpu_op", **ranges})

    def test_after_torch_has_started_threads(self):
        torch.set_num_threads(2)
        large = torch.randn(512, 512)
        work = lambda: large @ large + large  # noqa: E731
        work()
        self.compare(work)

    def test_what_torch_compile_has_made(self):
        # inductor takes a minute and a compiler
        compiled = torch.compile(lambda x: torch.relu(x @ x + x), backend="eager")
        x = torch.randn(8, 8)
        work = lambda: compiled(x)  # noqa: E731
        work()
        rows, kineto, both = seen_by_both(work)
        self.assertEqual(rows, kineto)
        self.assertEqual(
            [1],
            [
                count
                for name, count in calls(both).items()
                if name.startswith("Torch-Compiled Region")
            ],
        )
        gone = set(calls(both)) - set(calls(seen_by_prof(work)))
        # ranges that torch makes only for profilers of its own
        self.assertLessEqual(gone, {"Pregraph bytecode"})

    def test_inputs_of_all_kinds(self):
        x, y = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)

        def work():
            torch.cat([x, y]).add(1.5).add(2).sum(1, keepdim=True)
            torch.cat([y, torch.ones(0)])
            torch.nn.functional.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 2))
            torch.ones(2, 2).to_sparse().coalesce().to_dense()
            nested_tensor = torch.nested.as_nested_tensor([torch.ones(2), torch.ones(3)])
            torch.zeros_like(nested_tensor)
            (torch.ones(2, dtype=torch.complex64) + 1j).conj() * 2
            torch.ones(3, device="meta") + 1
            torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8).dequantize()
            y[torch.tensor([0, 1])]
            y[:, None].expand(2, 4, 3).to(torch.bfloat16)
            torch.func.vmap(torch.sin)(y)
            torch.func.grad(lambda v: v.sin().sum())(y)
            torch.lstm_cell(y, (y, y), torch.ones(12, 3), torch.ones(12, 3))
            with torch.inference_mode():
                y * y
            (x * y).sum().backward()
            x.grad = None

        self.compare(work)

    def test_a_tensor_whose_sizes_python_says_is_not_asked(self):
        asked = []

        class Made(torch.Tensor):
            @staticmethod
            def __new__(cls):
                return torch.Tensor._make_wrapper_subclass(
                    cls, (2, 3), dispatch_sizes_strides_policy="sizes"
                )

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                asked.append(func._schema.name)
                return [2, 3] if "size" in func._schema.name else torch.ones(2, 3)

        made = Made()
        torch.neg(made)
        plain, asked[:] = list(asked), []
        with prof.profile() as p, prof.torch.observe(record_shapes=True):
            torch.neg(made)
        self.assertEqual(asked, plain)
        self.assertEqual(next(e.input_shapes for e in p.events() if e.name == "aten::neg"), [[]])

    def test_numbers_of_another_thread_and_of_a_second_backward(self):
        x, made = torch.ones(3, requires_grad=True), []

        def work():
            def forward():
                with prof.torch.observe():
                    made.append((x * x).exp().sum())

            t = threading.Thread(target=forward)
            t.start()
            t.join()
            (first,) = torch.autograd.grad(made[-1], x, create_graph=True)
            first.sum().backward()

        work()
        with prof.profile() as p, prof.torch.observe():
            work()
        backward = {
            e.name: (e.sequence_nr, e.fwd_thread)
            for e in p.events()
            if e.name in ("ExpBackward0", "MulBackward0")
        }
        forward = {e.name: e.sequence_nr for e in p.events() if e.name == "aten::exp"}
        self.assertEqual(backward["ExpBackward0"][0], forward["aten::exp"])
        self.assertGreater(backward["ExpBackward0"][1], 1)

    def test_arrows_from_forward_to_backward(self):
        model, x = small_model(), small_input()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "torch.json")
            _, _, p = seen_by_both(lambda: model(x).sum().backward(), path)
            with open(path, encoding="utf-8") as f:
                kineto = arrows(json.load(f))
        mine = arrows(json.loads(p.trace.json("chrome")))
        self.assertEqual(mine, kineto)
        self.assertIn(("aten::convolution", "ConvolutionBackward0"), mine)

    def test_what_raises(self):
        def work():
            with self.assertRaises(RuntimeError):
                torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5))
            torch.ones(2)

        self.compare(work)

    @unittest.skipIf(torchvision is None, "torchvision is not installed")
    def test_resnet18(self):
        torch.manual_seed(3)
        model, x = torchvision.models.resnet18().eval(), torch.randn(5, 3, 224, 224)

        def work():
            with torch.no_grad():
                model(x)

        found = self.compare(work)
        self.assertEqual(
            [found[f"aten::{name}"] for name in ("conv2d", "batch_norm", "max_pool2d")], [20, 20, 1]
        )


class Stacks(unittest.TestCase):
    """Of each operator the same frames as torch.profiler's, from the function that was profiled
    on."""

    maxDiff = None

    def frames(self, stack):
        """Without objects and their addresses; without what has no frame here (a module's is that
        of its call), or another line there (a generator's is where it went on)."""
        found = []
        for frame in stack:
            frame = re.sub(r" of \S+ object( at 0x[0-9a-f]+)?>$", " of an object>", frame)
            if frame.startswith("nn.Module: ") or frame.endswith(": _wrapped_call_impl"):
                frame = "nn.Module"
            found.append(re.sub(r"\(\d+\): (steps)$", r": \1", frame))
            if frame.endswith(": work"):
                return found
        return None

    def compare(self, work):
        work()
        with prof.profile(with_stack=True, torch=True) as mine:
            work()
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            with_stack=True,
            experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
        ) as theirs:
            work()
        # its events() have a forward's stack for what is of its backward, and leave out two frames
        # of autograd's
        with tempfile.TemporaryDirectory() as folder:
            theirs.export_chrome_trace(os.path.join(folder, "trace.json"))
            with open(os.path.join(folder, "trace.json")) as f:
                rows = [
                    (e["name"], e["args"].get("Call stack", "").rstrip(";").split(";"))
                    for e in json.load(f)["traceEvents"]
                    if e.get("cat") == "cpu_op"
                ]
        sides = []
        own_rows = [
            (e["name"], prof._stacks.Frames().of(e["args"].get("Call stack", "")))
            for e in json.loads(mine.trace.json("chrome", stacks=True))["traceEvents"]
            if e.get("cat") == "cpu_op"
        ]
        for side in (own_rows, rows):
            found = [(name, self.frames(stack)) for name, stack in side]
            self.assertNotIn(None, [frames for _, frames in found])
            sides.append(collections.Counter((name, *frames) for name, frames in found))
        self.assertEqual(*sides)
        self.assertEqual(
            calls(mine), dict(collections.Counter(name for name, *_ in seen_by_torch(work)))
        )

    def test_forward_and_backward(self):
        model, x = small_model(), small_input()

        def steps():
            for _ in range(2):
                yield x * x

        def work():
            model(x).square().mean().backward()
            list(steps())
            torch.relu(x + x)
            with torch.no_grad():
                x.sum()

        self.compare(work)

    def test_an_optimizer(self):
        model, x = small_model(), small_input()
        step = torch.optim.SGD(model.parameters(), lr=0.1)
        model(x).square().mean().backward()
        step.step()
        with prof.profile(with_stack=True, torch=True) as p:
            step.step()
        rows = {a.key: a for a in p.key_averages(group_by_stack_n=1)}
        self.assertEqual(rows["Optimizer.step#SGD.step"].stack[0].partition(": ")[2], "wrapper")
        self.assertLess(
            rows["Optimizer.step#SGD.step"].self_cpu_time_total,
            rows["Optimizer.step#SGD.step"].cpu_time_total,
        )

    def test_the_table_and_export_stacks(self):
        x = small_input()

        def inner():
            return torch.relu(x)

        def work():
            return inner()

        work()
        with prof.profile(with_stack=True, torch=True) as p:
            work()
        table = p.key_averages(group_by_stack_n=5).table()
        for line in (
            "<built-in method relu of type object>",
            f"test_observe.py({inner.__code__.co_firstlineno}): inner",
            f"test_observe.py({work.__code__.co_firstlineno}): work",
        ):
            self.assertRegex(table, rf"{re.escape(line)} *\n")
        self.assertNotIn("inner  ", table.partition("Source Location")[0])
        self.assertEqual(set(calls(p)), {"aten::relu", "aten::clamp_min"})
        self.assertIn(
            "inner", " ".join(a.key for a in p.key_averages(include_python_functions=True))
        )
        with tempfile.TemporaryDirectory() as folder:
            p.export_stacks(os.path.join(folder, "stacks"))
            with open(os.path.join(folder, "stacks")) as f:
                self.assertRegex(
                    f.read(),
                    r"work;\S*inner;<built-in_method_relu_of_type_object>;aten::relu \d+\n",
                )
            p.export_chrome_trace(os.path.join(folder, "trace.json"))
            with open(os.path.join(folder, "trace.json")) as f:
                rows = [e for e in json.load(f)["traceEvents"] if e.get("cat") == "cpu_op"]
        self.assertEqual(
            [
                r["args"]["Call stack"].startswith("<built-in method relu of type object>;")
                for r in rows
            ],
            [True, True],
        )

    def test_a_range_of_the_program(self):
        """It begins in a function of torch's own and ends in another: its times are as without
        stacks."""
        x = small_input()

        def work():
            with torch.profiler.record_function("range"):
                x.add(x)

        work()
        with prof.profile(with_stack=True, torch=True) as p:
            work()
        rows = {a.key: a for a in p.key_averages(group_by_stack_n=1)}
        self.assertTrue(rows["range"].stack[0].endswith(": work"), rows["range"].stack)
        self.assertEqual(
            {e.name: e.cpu_parent and e.cpu_parent.name for e in p.events() if e.name == "range"},
            {"range": next(e.name for e in p.events() if e.name.endswith("work"))},
        )
        self.assertLess(rows["range"].self_cpu_time_total, rows["range"].cpu_time_total)

    def test_a_program_that_traces_functions_itself(self):
        x = small_input()

        def work():
            return x.add(x)

        def others():
            return work()

        with (
            prof.trace_functions(include="nothing_here", c_functions=True),
            prof.profile(with_stack=True, torch=True) as p,
        ):
            others()
            with self.assertRaisesRegex(RuntimeError, "functions are traced already"):
                prof.trace_functions().start()
        self.assertEqual([e.stack for e in p.events() if e.name == "aten::add"], [[]])
        with prof.trace_functions(), prof.profile(with_stack=True, torch=True) as p:
            others()
        self.assertRegex(
            ";".join(next(e.stack for e in p.events() if e.name == "aten::add")),
            ": work;.*: others;",
        )
        # they are rows where somebody has asked to see them
        self.assertIn("others", " ".join(calls(p)))

    def test_tracing_while_stacks_are_taken(self):
        with prof.torch.observe(with_stack=True):
            with self.assertRaisesRegex(RuntimeError, "for the stacks of prof.torch.observe"):
                prof.trace_functions().start()
        with prof.trace_functions():
            pass

    def test_several_threads_share_it(self):
        x, ready, done = small_input(), threading.Event(), threading.Event()

        def work():
            return x.add(x)

        def other():
            with prof.torch.observe(with_stack=True):
                ready.set()
                done.wait(HANG_SECONDS)
                work()

        with prof.profile(with_stack=True) as p:
            thread = threading.Thread(target=other)
            thread.start()
            ready.wait(HANG_SECONDS)
            with prof.torch.observe(with_stack=True):
                work()
            done.set()
            thread.join()
        self.assertEqual(
            [e.stack[1].partition(": ")[2] for e in p.events() if e.name == "aten::add"],
            ["work", "work"],
        )
        self.assertFalse(prof.functions.is_traced())

    def test_another_tool_in_the_place_of_profilers(self):
        o = prof.torch.observe(with_stack=True)
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            sys.setprofile(lambda *_: None)
        else:
            for tool in (2, 3, 4):
                monitoring.use_tool_id(tool, f"tool {tool}")
        try:
            with self.assertRaisesRegex(RuntimeError, "functions cannot be traced"):
                o.start()
        finally:
            if monitoring is None:
                sys.setprofile(None)
            else:
                for tool in (2, 3, 4):
                    monitoring.free_tool_id(tool)
        self.assertFalse(torch.autograd._profiler_enabled())
        with o:
            pass


def is_observed():
    """Is an observe() on in this thread?"""
    return getattr(prof.torch._observed, "one", None) is not None


if torch is None:
    del SameCalls, Stacks

    class Torch(unittest.TestCase):
        def test_with_torch(self):
            self.skipTest("torch is not installed for this Python")


if __name__ == "__main__":
    unittest.main()
