"""Ways that a program has torch run its operators: modes, transforms, compilers, operators of its
own, backward passes of all kinds. Under prof.torch.observe() the calls are torch.profiler's, nested
the same, and the results have the same bits. make test-torch."""

import os
import subprocess
import sys
import threading
import unittest
import warnings

from beside_torch import (
    Beside,
    bits,
    calls,
    calls_of,
    nested_in,
    seen_by_prof,
    seen_by_torch,
    skip_without_torch,
    torch,
)

import prof

if torch is not None:
    import torch.utils.checkpoint

    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x * 3

        @staticmethod
        def backward(context, gradient):
            return gradient * 3

    class Broken(Triple):
        @staticmethod
        def backward(context, gradient):
            raise ValueError("no gradient")

    @torch.library.custom_op("prof_test::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    double.register_autograd(lambda context, gradient: gradient * 2)

    @torch.library.custom_op("prof_test::broken", mutates_args=())
    def broken(x: torch.Tensor) -> torch.Tensor:
        torch.neg(x)
        raise KeyError("no result")


def shapes_of(p):
    """Of each call."""
    return [(e.name, e.input_shapes) for e in p.events()]


@skip_without_torch
class Ways(Beside, unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.x, self.linear = torch.randn(4, 4), torch.nn.Linear(4, 4)
        self.leaf = torch.randn(4, 4, requires_grad=True)
        caught = warnings.catch_warnings()  # what torch says of its own parts
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore")

    def backward_of(self, loss):
        self.leaf.grad = None
        self.linear.zero_grad()
        loss.sum().backward()
        return [p.grad for p in (self.leaf, *self.linear.parameters()) if p.grad is not None]

    # ---- modes ----

    def test_inference_mode_and_no_grad(self):
        for mode in (torch.inference_mode, torch.no_grad):
            with self.subTest(mode.__name__):

                def work():
                    with mode():
                        return self.linear(self.x).relu()

                self.assertEqual(self.compare_results(work)["aten::linear"], 1)

    def test_autocast(self):
        def work():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.backward_of(self.linear(self.leaf))

        found = self.compare_results(work)
        self.assertGreater(found["aten::_to_copy"], 1)

    def test_more_and_fewer_threads(self):
        before, large = torch.get_num_threads(), torch.randn(400, 400)
        self.addCleanup(torch.set_num_threads, before)
        for count in (1, 3, 2):
            torch.set_num_threads(count)
            self.assertEqual(
                self.compare_results(lambda: torch.mm(large, large).exp().sum())["aten::mm"], 1
            )

    def test_threads_set_while_observed(self):
        large = torch.randn(400, 400)
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())

        def work():
            for count in (1, 2):
                torch.set_num_threads(count)
                torch.add(large, large)

        self.assertEqual(self.compare(work)["aten::add"], 2)

    # ---- transforms and compilers ----

    def test_vmap(self):
        # functorch hands it on to itself alone
        self.assertEqual(
            self.compare_results(lambda: torch.vmap(lambda row: torch.dot(row, row))(self.x))[
                "aten::dot"
            ],
            1,
        )

    def test_functional_derivatives(self):
        self.compare_results(lambda: torch.func.grad(lambda x: (x * x).sum())(self.x))
        self.compare_results(lambda: torch.func.jacrev(lambda x: x.sin())(self.x[0]))
        self.compare_results(lambda: torch.func.jvp(lambda x: x.sin(), (self.x,), (self.x,)))

    def test_torchscript(self):
        def f(x):
            return torch.relu(x @ x) + 1

        for made in (torch.jit.script(f), torch.jit.trace(f, self.x)):
            made(self.x)  # its first calls are of another executor
            made(self.x)
            self.assertEqual(self.compare_results(lambda: made(self.x))["aten::relu"], 1)

    def test_torch_compile(self):
        for backend in ("eager", "aot_eager"):
            with self.subTest(backend):
                torch._dynamo.reset()
                compiled = torch.compile(self.linear, backend=backend)
                found = self.compare_results(
                    lambda: self.backward_of(compiled(self.leaf)),
                    for_torch_alone=("Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue"),
                )
                self.assertEqual(
                    sum(
                        count
                        for name, count in found.items()
                        if name.startswith("Torch-Compiled Region")
                    ),
                    1,
                )

    # ---- the program's own ----

    def test_sizes_that_are_symbols_stay_symbols(self):
        """A query of such a tensor's sizes fixes them: torch compiles again for each size that
        comes."""
        from torch._dynamo.testing import CompileCounterWithBackend

        counted = []
        for with_shapes in (False, True):
            torch._dynamo.reset()
            counter = CompileCounterWithBackend("aot_eager")
            compiled = torch.compile(
                lambda x, y: torch.nn.functional.gelu(x.view(-1, 4) @ y).sum(),
                backend=counter,
                dynamic=True,
            )
            with (
                prof.profile(record_shapes=with_shapes) as p,
                prof.torch.observe(record_shapes=with_shapes) as observed,
            ):
                for n in (2, 3, 5):
                    compiled(torch.ones(n, 8, requires_grad=True), torch.ones(4, 4)).backward()
            self.assertEqual("callbacks", observed.way)
            # compiled, traced
            counted.append(
                (
                    counter.frame_count,
                    {row.key: row.count for row in p.key_averages()}["GeluBackward0"],
                )
            )
        self.assertEqual([(1, 1), (1, 1)], counted)

    def test_tensors_of_pythons_own_classes_have_their_shapes(self):
        """As torch.profiler has them; and their class is called as often as without."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.masked import masked_tensor
        from torch.testing._internal.two_tensor import TwoTensor

        class Counted(TwoTensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                asked.append(str(func))
                return TwoTensor.__torch_dispatch__(func, types, args, kwargs)

        asked = []
        with FakeTensorMode():
            fake = torch.empty(4, 4)
        masked, two = masked_tensor(self.x, self.x > 0), Counted(self.x.clone(), self.x.clone())
        # its sizes are symbols
        jagged = torch.nested.nested_tensor(
            [torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged
        )
        for name, work in {
            "fake": lambda: fake + fake,
            "masked": lambda: masked * masked,
            "two": lambda: two @ two,
            "jagged": lambda: jagged * 2,
        }.items():
            with self.subTest(name):
                work()
                asked.clear()
                plain = bits(work().a) if name == "two" else None
                called, asked[:] = list(asked), []
                with prof.profile(record_shapes=True) as p, prof.torch.observe(record_shapes=True):
                    result = work()
                self.assertEqual(called, asked)
                self.assertEqual(plain, bits(result.a) if name == "two" else None)
                with torch.profiler.profile(
                    activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
                ) as q:
                    work()
                mine, theirs = shapes_of(p), shapes_of(q)
                self.assertEqual(mine, theirs)
                self.assertEqual(mine[0][1][:1], [[]] if name == "jagged" else [[4, 4]])

    def test_shapes_of_a_distributed_tensor(self):
        code = """
import prof.torch, torch, torch.distributed as dist
from test_observe_ways import shapes_of
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
x = distribute_tensor(torch.ones(4, 3), init_device_mesh("cpu", (1,)), [Shard(0)])
x * x
with prof.profile(record_shapes=True) as p, prof.torch.observe(record_shapes=True): x * x
cpu = [torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=cpu, record_shapes=True) as q: x * x
mine, theirs = shapes_of(p), shapes_of(q)
print(mine == theirs, [shapes for name, shapes in mine if name == "aten::mul"][:1])
dist.destroy_process_group()
"""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=os.path.dirname(os.path.abspath(__file__)),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        self.assertEqual(done.stdout, "True [[[4, 3], [4, 3]]]\n")

    def test_a_tensor_that_stands_for_another_is_not_asked(self):
        wrapper = torch._to_functional_tensor(torch.ones(2, 3))
        with prof.profile(record_shapes=True) as p, prof.torch.observe(record_shapes=True):
            wrapper + 1
            torch.ones(2, 3, device="meta") + 1
        # the wrapper, in which is what it stands for alone; the other
        self.assertEqual(
            [[], [2, 3]], [e.input_shapes[0] for e in p.events() if e.name == "aten::add"]
        )
        self.assertEqual(
            [row.count for row in p.trace.aggregate(["name"]) if row.name == "aten::add"], [3]
        )

    def test_a_custom_operator(self):
        found = self.compare_results(
            lambda: self.backward_of(torch.ops.prof_test.double(self.leaf))
        )
        self.assertEqual(found["prof_test::double"], 1)

    def test_a_function_of_autograd(self):
        found = self.compare_results(lambda: self.backward_of(Triple.apply(self.leaf)))
        self.assertEqual([found["Triple"], found["TripleBackward"]], [1, 1])

    def test_hooks(self):
        self.linear.register_forward_hook(lambda module, x, y: y * 1)
        self.linear.register_full_backward_hook(lambda module, before, after: None)

        def work():
            x = self.leaf * 1
            x.register_hook(lambda gradient: gradient.neg())
            return self.backward_of(self.linear(x))

        self.assertEqual(self.compare_results(work)["aten::neg"], 1)

    def test_a_range_that_another_thread_ends(self):
        """As of what torch waits for elsewhere: its own end, not that of the range around it. prof
        has such a range on a row of its own."""
        observe = prof.torch.observe()
        with observe:
            pass
        if getattr(observe, "way", "ITT") != "callbacks":
            self.skipTest("ITT does not tell which range has ended: docs/reference/pytorch.md")

        def work():
            with torch.profiler.record_function("around"):
                later = torch.futures.Future()
                with torch.profiler.record_function("later") as range_of:
                    range_of._call_end_callbacks_on_future(later)
                    self.x.add(self.x)
                other = threading.Thread(target=later.set_result, args=(1,))
                other.start()
                other.join()
                self.x.div(self.x)
            self.x.sub(self.x)

        mine = seen_by_prof(work)
        self.assertEqual(calls(mine), calls_of(seen_by_torch(work)))
        depths = dict(nested_in(mine))
        self.assertEqual([depths[name] for name in ("around", "aten::div", "aten::sub")], [0, 1, 0])
        self.assertFalse(any(e.is_open for e in mine.events()))

    # ---- what raises: the depth of what comes behind it is as before ----

    def test_an_operator_of_the_program_that_raises(self):
        def work():
            with self.assertRaises(KeyError):
                torch.ops.prof_test.broken(self.x)
            return self.x + 1

        self.assertEqual(self.compare_results(work)["prof_test::broken"], 1)

    def test_a_backward_pass_that_raises(self):
        def work():
            with self.assertRaisesRegex(ValueError, "no gradient"):
                Broken.apply(self.leaf).sum().backward()
            return self.x + 1

        self.assertEqual(self.compare_results(work)["BrokenBackward"], 1)

    # ---- backward passes ----

    def test_a_backward_pass_that_runs_forward_again(self):
        for use_reentrant in (False, True):
            with self.subTest(use_reentrant=use_reentrant):

                def again(x):
                    return self.linear(x).relu()

                found = self.compare_results(
                    lambda: self.backward_of(
                        torch.utils.checkpoint.checkpoint(
                            again, self.leaf, use_reentrant=use_reentrant
                        )
                    )
                )
                self.assertEqual(found["aten::linear"], 2)

    def test_a_derivative_of_a_derivative(self):
        def work():
            (first,) = torch.autograd.grad((self.leaf**3).sum(), self.leaf, create_graph=True)
            return self.backward_of(first)

        self.assertEqual(self.compare_results(work)["PowBackward0"], 2)


if __name__ == "__main__":
    unittest.main()
