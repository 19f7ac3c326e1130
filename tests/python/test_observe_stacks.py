"""observe(with_stack=True) with the real torch where modules are seen, too: frame by frame
torch.profiler's stacks. make test-torch."""

import collections
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import threading
import unittest
import unittest.mock

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
import prof

prof.torch  # before torch
try:
    import torch
    import torch.profiler
except ImportError:
    torch = None


def frames(stack):
    """Up to the function that was profiled; without objects' addresses, and a generator's line,
    which is where it went on."""
    found = []
    for frame in stack:
        frame = re.sub(r" object at 0x[0-9a-f]+>$", " object>", frame)
        found.append(frame)
        if frame.endswith(": work"):
            return found
    return None


def by_torch(work):
    """(name, stack) of its operators. events() have a forward's stack for what is of its backward,
    and leave out two frames of autograd's: this is of its JSON."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        with_stack=True,
        with_modules=True,
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
    ) as theirs:
        work()
    with tempfile.TemporaryDirectory() as folder:
        theirs.export_chrome_trace(os.path.join(folder, "trace.json"))
        with open(os.path.join(folder, "trace.json")) as f:
            return [
                (e["name"], e["args"].get("Call stack", "").rstrip(";").split(";"))
                for e in json.load(f)["traceEvents"]
                if e.get("cat") == "cpu_op"
            ]


def by_prof(p):
    """The same of prof's."""
    rows = json.loads(p.trace.json("chrome", stacks=True))["traceEvents"]
    shorter = prof._stacks.Frames().of
    return [
        (e["name"], shorter(e["args"].get("Call stack", "")))
        for e in rows
        if e.get("cat") == "cpu_op"
    ]


class Backward(unittest.TestCase):
    """Of tables and events(): what is of a backward has its forward's stack, row for row as
    torch.profiler has it."""

    maxDiff = None

    def setUp(self):
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
        )
        self.x = torch.ones(3, 4)

    def both(self, work):
        """Modules are frames with stacks alone, and no rows."""
        work()
        with prof.profile(with_stack=True, torch=True) as mine:
            work()
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            with_stack=True,
            experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
        ) as theirs:
            work()
        return mine, theirs

    def plain(self, stack):
        """Up to the function that was profiled, whole stacks that stand in none."""
        return tuple(frames(stack) or stack)

    def row(self, e, n):
        stack = [
            re.sub(r" of \S+ object( at 0x[0-9a-f]+)?>$", " of an object>", frame)
            for frame in e.stack[:n]
        ]
        return e.key, self.plain(stack)

    def compare(self, work):
        mine, theirs = self.both(work)
        operators = [e for e in mine.events() if e.category == "cpu_op"]
        their_operators = [e for e in theirs.events() if not e.is_python_function]
        self.assertTrue(any(e.fwd_thread for e in operators))
        sides = [
            collections.Counter((e.name, self.plain(e.stack)) for e in events)
            for events in (operators, their_operators)
        ]
        self.assertEqual(
            (sides[0] - sides[1], sides[1] - sides[0]),
            (collections.Counter(), collections.Counter()),
        )
        for n in (1, 5):
            rows = [collections.Counter(), collections.Counter()]
            for counts, p in zip(rows, (mine, theirs)):
                for a in p.key_averages(group_by_stack_n=n):
                    counts[self.row(a, n)] += a.count
            self.assertEqual(
                (rows[0] - rows[1], rows[1] - rows[0]),
                (collections.Counter(), collections.Counter()),
            )
        return mine

    def test_the_json_writes_them_as_torch_does(self):
        """Files without the folders that Python imports from, and a mark behind each frame."""

        def written(p):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "trace.json")
                p.export_chrome_trace(path)
                with open(path, encoding="utf-8") as file:
                    rows = json.load(file)["traceEvents"]
            stacks = [e["args"]["Call stack"] for e in rows if e["name"] == "aten::linear"]
            found = []
            for stack in stacks:
                inner = stack[: stack.index(": work;") + len(": work;")]
                found.append(re.sub(r"\w+_\d+;|\(\d+\): work;", "", inner))
                self.assertTrue(stack.endswith(";"), stack)
            return sorted(found)

        def work():
            self.model(self.x)

        mine, theirs = map(written, self.both(work))
        self.assertEqual(len(mine), 2)
        self.assertEqual(mine, theirs)

    def test_a_training_step(self):
        def work():
            self.model(self.x).square().mean().backward()

        p = self.compare(work)
        mm = [a for a in p.key_averages(group_by_stack_n=4) if a.key == "aten::mm"]
        self.assertEqual(
            sorted((a.stack[-1], a.count) for a in mm),
            [("nn.Module: Linear_0", 1), ("nn.Module: Linear_1", 2)],
        )
        self.assertEqual(
            [
                a.stack
                for a in p.key_averages(group_by_stack_n=4)
                if a.key == "torch::autograd::AccumulateGrad"
            ],
            [[]],
        )

    def test_twice_and_through_the_gradient(self):
        def work():
            x = self.x.clone().requires_grad_()
            y = (x * x).sum()
            (gradient,) = torch.autograd.grad(y, x, create_graph=True)
            gradient.sin().sum().backward()

        self.compare(work)

    def test_functions_that_stand_open_are_no_loss(self):
        """Those around the profile's begin, which end with it."""

        def work():
            with prof.profile(with_stack=True, torch=True):
                self.model(self.x)

        prof.profiler.clear()
        work()
        with prof.profile(with_stack=True, torch=True) as p:
            self.model(self.x)
        for trace in (p.trace, prof.Trace.now()):
            self.assertRegex(trace.loss_text(), r"recorded; no loss")

    def test_vmap(self):
        """Its operators stand inside of others of their name, the inner ones with the next one's
        number."""
        gradient = torch.func.vmap(torch.func.grad(lambda v: (v * v).sin().sum()))
        gradient(self.x)
        with prof.profile(with_stack=True, torch=True) as p:
            gradient(self.x)
        for read in (p.key_averages(group_by_stack_n=1), p.events()):
            backward = {
                e.key: e.stack[0] for e in read if e.key in ("SumBackward0", "SinBackward0")
            }
            self.assertEqual(
                backward,
                {
                    "SumBackward0": "<built-in method sum of Tensor object>",
                    "SinBackward0": "<built-in method sin of Tensor object>",
                },
            )

    def test_functions_of_pybind11(self):
        """One function of C calls all of them."""
        names = (
            "_jit_get_num_profiled_runs",
            "_get_tracing_state",
            "_jit_get_inline_everything_mode",
        )

        def work():
            for name in names * 3:
                getattr(torch._C, name)()

        with prof.profile() as p, prof.trace_functions(c_functions=True):
            work()
        counts = {a.key: a.count for a in p.key_averages()}
        self.assertEqual(
            {name: counts.get(f"torch._C.{name}") for name in names}, dict.fromkeys(names, 3)
        )

    def test_a_function_of_the_programs(self):
        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * 2

        def work():
            Doubled.apply(self.model(self.x)).sum().backward()

        self.compare(work)

    def test_sums_are_those_of_c(self):
        """The same rows as C adds up, but for their stacks."""
        p, _ = self.both(lambda: self.model(self.x).sum().backward())

        def sums(rows):
            found = collections.defaultdict(lambda: [0, 0.0, 0.0])
            for a in rows:
                for i, value in enumerate((a.count, a.cpu_time_total, a.self_cpu_time_total)):
                    found[a.key][i] += value
            return found

        by_stack, by_name = sums(p.key_averages(group_by_stack_n=5)), sums(p.key_averages())
        self.assertEqual(set(by_stack), set(by_name))
        for key, values in by_name.items():
            for i, value in enumerate(values):
                self.assertAlmostEqual(by_stack[key][i], value, 3, key)


class Modules(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 4),
            torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 4)),
            torch.nn.ReLU(),
        )
        self.x = torch.ones(2, 4)

    def tearDown(self):
        hooks = sys.modules["torch.nn.modules.module"]
        self.assertFalse(hooks._global_forward_hooks or hooks._global_forward_pre_hooks)
        self.assertFalse(prof.functions._modules)
        self.assertFalse(prof.functions.is_traced())

    def compare(self, work):
        work()
        with prof.profile(with_stack=True, with_modules=True, torch=True) as mine:
            work()
        sides = []
        for side in (by_prof(mine), by_torch(work)):
            found = [(name, frames(stack)) for name, stack in side]
            self.assertNotIn(None, [one for _, one in found])
            sides.append(collections.Counter((name, *one) for name, one in found))
        self.assertEqual(*sides)
        return mine

    def modules_of(self, p, operator):
        return [
            [frame for frame in e.stack if frame.startswith("nn.Module: ")]
            for e in p.events()
            if e.name == operator
        ]

    def test_the_frames_are_torch_profilers(self):
        def work():
            self.model(self.x).square().mean().backward()
            self.model[1](self.x)

        p = self.compare(work)
        self.assertEqual(
            self.modules_of(p, "aten::linear"),
            [
                ["nn.Module: Linear_0", "nn.Module: Sequential_0"],
                ["nn.Module: Linear_1", "nn.Module: Sequential_1", "nn.Module: Sequential_0"],
                ["nn.Module: Linear_1", "nn.Module: Sequential_1"],
            ],
        )

    def test_a_profile_begun_inside_of_a_module(self):
        class Outer(torch.nn.Module):
            def forward(self, profiler, inner, x):
                with profiler as p:
                    inner(x)
                return p

        outer = Outer()

        def work(profiler):
            return outer(profiler, self.model, self.x)

        work(contextlib.nullcontext())

        p = work(prof.profile(with_stack=True, with_modules=True, torch=True))
        work(
            theirs := torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU],
                with_stack=True,
                experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
            )
        )
        # torch has another line of what ran already: where it stood
        sides = [
            [(e.name, re.sub(r"\(\d+\)", "", ";".join(frames(e.stack)))) for e in events]
            for events in (
                [e for e in p.events() if e.category == "cpu_op"],
                [e for e in theirs.events() if e.name.startswith("aten::")],
            )
        ]
        self.assertEqual(*sides)
        self.assertEqual(self.modules_of(p, "aten::linear")[0][-1], "nn.Module: Outer_0")

    def test_nothing_of_profs_own(self):
        for work in (lambda: self.model(self.x), lambda: self.model(self.x).sum().backward()):
            with prof.profile(with_stack=True, with_modules=True, torch=True) as p:
                work()
            ours = os.path.dirname(os.path.abspath(prof.__file__))
            for e in p.events():
                if e.category == "cpu_op":
                    self.assertEqual(
                        [frame for frame in e.stack if ours in frame and "profile" not in frame], []
                    )
            names = {row.key for row in p.key_averages(include_python_functions=True)}
            self.assertEqual(
                [
                    name
                    for name in names
                    if "_call_impl.<locals>.inner" in name
                    or "is_compiling" in name
                    or name.startswith("prof.")
                ],
                [],
            )

    def test_a_loss_of_each_step_takes_so_many_names_and_no_more(self):
        def work():
            for _ in range(5):
                torch.nn.MSELoss()(self.model[0](self.x), self.x).backward()

        with unittest.mock.patch.object(prof._torch_modules, "GONE_MAX", 2):
            with prof.profile(with_stack=True, torch=True) as p:
                work()
        self.assertEqual(
            self.modules_of(p, "aten::mse_loss"),
            [["nn.Module: MSELoss_0"], ["nn.Module: MSELoss_1"], *[["nn.Module: MSELoss"]] * 3],
        )
        self.assertEqual(self.modules_of(p, "aten::linear"), [["nn.Module: Linear_0"]] * 5)

    def test_rows_and_numbers_are_the_hooks(self):
        def seen(**options):
            with prof.profile() as p, prof.torch.observe(with_modules=True, **options):
                for _ in range(2):
                    self.model(self.x)
            return [
                (
                    e.name,
                    e.args["Python id"],
                    e.args["Python parent id"],
                    e.args["Python module id"],
                )
                for e in sorted(p.trace.events(), key=lambda e: e.start_ns)
                if e.name.startswith("nn.Module: ")
            ]

        by_hooks = seen()
        self.assertEqual(len(by_hooks), 12)
        self.assertEqual(seen(with_stack=True), by_hooks)
        self.assertEqual(
            [numbers[1:3] for numbers in by_hooks[:5]], [(1, 0), (2, 1), (3, 1), (4, 3), (5, 3)]
        )

    def test_behind_an_exception_and_an_interrupt(self):
        class Fails(torch.nn.Module):
            def forward(self, x):
                raise x

        fails = torch.nn.Sequential(Fails())
        with prof.profile(with_stack=True, with_modules=True, torch=True) as p:
            for error in (ValueError, KeyboardInterrupt):
                with self.assertRaises(error):
                    fails(error())
                self.model[0](self.x)
        self.assertEqual(self.modules_of(p, "aten::linear"), [["nn.Module: Linear_0"]] * 2)
        self.assertFalse(
            [e.name for e in p.events() if e.is_open and e.name.startswith("nn.Module: ")]
        )

    def test_a_program_that_traces_functions_itself(self):
        with prof.trace_functions(include="nothing_here"):
            self.model(self.x)  # judged while nobody observes modules
            with prof.profile(with_stack=True, with_modules=True, torch=True) as p:
                self.model(self.x)
        self.assertEqual(
            [e.stack for e in p.events() if e.name == "aten::linear"],
            [
                ["nn.Module: Linear_0", "nn.Module: Sequential_0"],
                ["nn.Module: Linear_1", "nn.Module: Sequential_1", "nn.Module: Sequential_0"],
            ],
        )

    def test_tracing_that_ends_first_leaves_modules_to_hooks(self):
        with prof.profile() as p:
            tracing = prof.trace_functions()
            tracing.start()
            with prof.torch.observe(with_modules=True):
                self.model[0](self.x)
                tracing.stop()
                self.model[0](self.x)
        self.assertEqual(
            [e.name for e in p.events() if e.name.startswith("nn.Module: ")],
            ["nn.Module: Linear_0"] * 2,
        )

    def test_another_thread_has_functions(self):
        with prof.profile(with_stack=True, with_modules=True, torch=True) as p:
            thread = threading.Thread(target=self.model, args=(self.x,))
            thread.start()
            thread.join()
        names = {row.key: row.count for row in p.key_averages(include_python_functions=True)}
        self.assertEqual([name for name in names if name.startswith("nn.Module: ")], [])
        self.assertEqual(
            sum(count for name, count in names.items() if name.endswith("._wrapped_call_impl")), 6
        )

    def test_an_interrupt_while_a_module_is_named(self):
        """A signal's handler that raises inside of prof's own question is the program's error, and
        the next call is seen."""
        original, raised = prof.functions._modules, []

        class Interrupts(dict):
            def get(self, *key):
                if not raised:
                    raised.append(1)
                    signal.raise_signal(signal.SIGUSR1)
                return super().get(*key)

        def handler(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR1, handler)
        try:
            with prof.profile(with_stack=True, with_modules=True, torch=True) as p:
                prof.functions._modules = Interrupts(original)
                try:
                    with self.assertRaises(KeyboardInterrupt):
                        self.model[0](self.x)
                    self.model[0](self.x)
                finally:
                    prof.functions._modules = original
        finally:
            signal.signal(signal.SIGUSR1, before)
        self.assertEqual(self.modules_of(p, "aten::linear"), [["nn.Module: Linear_0"]])


if torch is None:
    del Backward, Modules

    class WithoutTorch(unittest.TestCase):
        @unittest.skip("no torch here: make test-torch brings it")
        def test_with_torch(self):
            pass


if __name__ == "__main__":
    unittest.main()
