"""Profiles of PyTorch's operators with all that they can record, where they should not begin or
end. Two at once, ended on another thread, in a forked child, in a backward call, around what
torch.compile has made, in inference mode. Torch computes the same bits. What cannot be done is an
error or one warning, and the next profile is complete. make test-torch."""

import contextlib
import os
import subprocess
import sys
import threading
import unittest
import warnings

from beside_torch import bits, skip_without_torch, torch
from hang_guard import HANG_SECONDS

import prof

ALL = {
    "record_shapes": True,
    "profile_memory": True,
    "with_stack": True,
    "with_modules": True,
    "with_flops": True,
}
KIB = 1 << 10


def everything(**options):
    return prof.profile(**{"torch": True, **ALL, **options})


def counts(p):
    return {row.key: row.count for row in p.key_averages()}


def memory(p):
    found = {row.key: row.self_cpu_memory_usage for row in p.key_averages()}
    return {key: bytes for key, bytes in found.items() if bytes}


def model_of(torch):
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 6 * 6, 5),
    )


def train(model, hook=None):
    """Bits of the output and of the gradients. hook: called in the backward call."""
    model.zero_grad()
    y = model(torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8))
    if hook is not None:
        y.register_hook(lambda gradient: hook())
    y.square().sum().backward()
    return bits([y, *(p.grad for p in model.parameters())])


def in_thread(work):
    """What it gives there, or the error that it raises."""
    found = []

    def run():
        try:
            found.append(work())
        except Exception as e:
            found.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@skip_without_torch
class BadInput(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.model = model_of(torch)
        self.plain = train(self.model)
        quiet = contextlib.ExitStack()
        self.addCleanup(quiet.close)
        quiet.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        self.addCleanup(self.check_next)

    def check_next(self):
        """The next profile, prof's and torch's, sees what it should, and nothing is left on."""
        cpu = [torch.profiler.ProfilerActivity.CPU]
        for profile in (
            everything(),
            torch.profiler.profile(activities=cpu, profile_memory=True),
        ):
            with profile:
                kept = torch.empty(KIB, dtype=torch.uint8)
            del kept
            self.assertEqual(counts(profile), {"aten::empty": 1})
            self.assertEqual(memory(profile), {"aten::empty": KIB})
        self.assertEqual(prof._torch_memory._opened._users, set())
        self.assertFalse(prof.functions.is_traced())
        self.assertEqual(train(self.model), self.plain)

    def check_whole(self, p):
        """It has the whole of one train()."""
        found = counts(p)
        one = {name: found.get(name, 0) for name in ("aten::conv2d", "ConvolutionBackward0")}
        self.assertEqual(one, {"aten::conv2d": 1, "ConvolutionBackward0": 1})
        stacks = {e.name: e.stack for e in p.events() if e.name == "aten::conv2d"}
        self.assertIn("nn.Module: Conv2d_0", stacks["aten::conv2d"])
        self.assertGreater(memory(p)["aten::empty"], 0)

    # ---- two at once ----

    def test_a_second_one_in_the_thread(self):
        """It is refused, and the first one goes on."""
        with everything() as p:
            with self.assertRaisesRegex(RuntimeError, "another observe.. is on in this thread"):
                everything().start()
            self.assertEqual(train(self.model), self.plain)
        self.check_whole(p)

    def test_one_that_does_not_observe_ends_later(self):
        """It sees the operators of the other one as long as that is on."""
        p, q = everything(), everything(torch=False)
        p.start()
        q.start()
        self.assertEqual(train(self.model), self.plain)
        p.stop()
        self.assertEqual(train(self.model), self.plain)
        q.stop()
        self.check_whole(p)
        self.assertEqual(counts(q)["aten::conv2d"], 1)

    def test_two_threads(self):
        """Each sees its own."""
        barrier, models = threading.Barrier(2), [model_of(torch) for _ in range(2)]

        def work(model):
            with everything() as p:
                barrier.wait(HANG_SECONDS)
                found = train(model)
                barrier.wait(HANG_SECONDS)
            return found, counts(p)["aten::conv2d"]

        found = []
        threads = [
            threading.Thread(target=lambda m: found.append(work(m)), args=(model,))
            for model in models
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [(self.plain, 1)] * 2)

    def test_in_torchs_own_with_stacks(self):
        """Before Python 3.12 there is one profile function a thread, and torch has it."""
        with torch.profiler.profile(with_stack=True, profile_memory=True) as theirs:
            p = everything()
            if sys.version_info < (3, 12):
                with self.assertRaisesRegex(RuntimeError, "sys.setprofile.. has been called with"):
                    p.start()
                self.assertEqual(train(self.model), self.plain)
            else:
                with p:
                    self.assertEqual(train(self.model), self.plain)
                self.check_whole(p)
        self.assertEqual(counts(theirs)["aten::conv2d"], 1)

    def test_around_torchs_own_with_stacks(self):
        with everything() as p:
            with torch.profiler.profile(with_stack=True, profile_memory=True) as theirs:
                self.assertEqual(train(self.model), self.plain)
        self.assertEqual(counts(theirs)["aten::conv2d"], 1)
        self.assertEqual(counts(p)["aten::conv2d"], 1)

    # ---- another thread, another process ----

    def test_ended_on_another_thread(self):
        """The error says who may. What was recorded by then is there."""
        p = everything()
        p.start()
        self.assertEqual(train(self.model), self.plain)
        error = in_thread(p.stop)
        self.assertIsInstance(error, RuntimeError)
        self.assertIn("stopped by the thread that has started it", str(error))
        self.assertEqual(train(self.model), self.plain)
        self.check_whole(p)

    def test_stepped_on_another_thread(self):
        """The step that records begins there, so that thread is observed, and not this one. It is
        gone when the profile ends."""
        p = everything(schedule=prof.schedule(wait=1, warmup=1, active=1, repeat=1))
        p.start()
        p.step()
        self.assertIsNone(in_thread(lambda: (p.step(), torch.ones(3))[0]))
        self.assertEqual(train(self.model), self.plain)
        p.stop()
        found = counts(p)
        self.assertEqual((found["aten::ones"], found.get("aten::conv2d")), (1, None))

    def test_a_forked_child(self):
        """Child and parent compute the same; the child's own profile begins anew."""
        code = """
import os, sys
sys.path.insert(0, sys.argv[1])
from test_observe_bad_input import *
torch.set_num_threads(1)  # OpenMP's own threads are not in a child
model = model_of(torch)
plain = train(model)
p = everything()
p.start()
same = [train(model) == plain]
child = os.fork()
same.append(train(model) == plain)
if child == 0:
    p.stop()
    try:
        p.key_averages()
    except AssertionError as e:
        same.append(str(e)[:21])
    with everything() as q:
        same.append(train(model) == plain)
    same.append(counts(q)["aten::conv2d"])
    print(same, flush=True)
    sys.exit(0)
same.append(os.waitpid(child, 0)[1])
p.stop()
print(same, counts(p)["aten::conv2d"])
"""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code, os.path.dirname(os.path.abspath(__file__))],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        said = [line for line in done.stderr.splitlines() if "Memory block of unknown" not in line]
        self.assertEqual((done.returncode, said), (0, []))
        lines = ["[True, True, 'the profile has ended', True, 1]", "[True, True, 0] 2"]
        self.assertEqual(done.stdout.splitlines(), lines)

    # ---- in a backward call ----

    def test_ended_in_a_backward_call(self):
        p = everything()
        p.start()
        self.assertEqual(train(self.model, p.stop), self.plain)
        found = counts(p)
        self.assertEqual((found["aten::conv2d"], found.get("ConvolutionBackward0")), (1, None))

    def test_begun_in_a_backward_call(self):
        """One warning says how long it lasts: autograd gives each node what the thread had."""
        p = everything()
        with self.assertWarnsRegex(RuntimeWarning, "observed from inside of a backward call") as w:
            self.assertEqual(train(self.model, lambda: p.start() and None), self.plain)
        p.stop()
        self.assertEqual(len(w.warnings), 1)
        found = counts(p)
        self.assertEqual((found.get("aten::conv2d"), found["AddmmBackward0"]), (None, 1))

    def test_begun_and_ended_in_a_backward_call(self):
        p, done = everything(), []

        def hook():
            with p:
                done.append(torch.ones(3))

        with self.assertWarnsRegex(RuntimeWarning, "observed from inside of a backward call"):
            self.assertEqual(train(self.model, hook), self.plain)
        self.assertEqual((counts(p)["aten::ones"], len(done)), (1, 1))

    # ---- torch.compile, inference mode ----

    def compare_compiled(self, backend):
        torch._dynamo.reset()
        self.addCleanup(torch._dynamo.reset)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own
            compiled = torch.compile(self.model, backend=backend)
            with everything() as first:  # it is compiled in it
                found = [train(compiled)]
            with everything() as second:
                found.append(train(compiled))
            found.append(train(compiled))
            torch._dynamo.reset()
            alone = train(torch.compile(self.model, backend=backend))
        self.assertEqual(found, [alone] * 3)
        for p in (first, second):
            self.assertEqual(counts(p)["Torch-Compiled Region: 0/0"], 1)
        return alone

    def test_compiled(self):
        self.assertEqual(self.compare_compiled("eager"), self.plain)

    @unittest.skipUnless(os.environ.get("PROF_LONG") == "1", "make test-torch: 40 s")
    def test_compiled_with_its_backward_call(self):
        self.assertEqual(self.compare_compiled("aot_eager"), self.plain)

    @unittest.skipUnless(os.environ.get("PROF_LONG") == "1", "make test-torch: C++ is built, 40 s")
    def test_compiled_by_inductor(self):
        """Its kernels compute other last bits than the operators; observed they are the same."""
        self.compare_compiled("inductor")

    def test_what_torch_compiles(self):
        """The program's own functions: prof's, which run while functions are traced, are no error
        where a graph must be whole, and are not compiled."""
        from torch._dynamo.utils import counters

        def frames(**options):
            counters.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for is_whole in (True, False):
                    torch._dynamo.reset()
                    compiled = torch.compile(self.model, backend="eager", fullgraph=is_whole)
                    with prof.profile(**options) as p:
                        self.assertEqual(train(compiled), self.plain)
            if "torch" in options:
                self.assertEqual(counts(p)["Torch-Compiled Region: 0/0"], 1)
            return counters["frames"]["total"], counters["graph_break"]

        self.addCleanup(torch._dynamo.reset)
        alone = frames()
        for options in (ALL, {"with_stack": True}, {"with_modules": True}, {}):
            with self.subTest(**options):
                self.assertEqual(frames(torch=True, **options), alone)

    @unittest.skipUnless(os.environ.get("PROF_LONG") == "1", "make test-torch: 17 s")
    def test_functions_that_were_traced_before_torch(self):
        """Torch compiles whole graphs there, too."""
        code = """
import prof
prof.profiler.start()
tracing = prof.trace_functions(standard_library=True, c_functions=True)
tracing.start()
import torch
compiled = torch.compile(lambda x: (x * 2).relu(), backend="eager", fullgraph=True)
print(compiled(torch.ones(2)).tolist())
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS
        )
        self.assertEqual((done.returncode, done.stdout), (0, "[2.0, 2.0]\n"), done.stderr)

    def test_a_range_in_compiled_code(self):
        """record_function of prof.torch is torch's, which torch.compile leaves out."""
        from prof.torch import record_function

        def work(x):
            with record_function("inner"):
                return (x * 2).relu()

        torch._dynamo.reset()
        self.addCleanup(torch._dynamo.reset)
        compiled = torch.compile(work, backend="eager", fullgraph=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with everything() as p:
                found = compiled(torch.ones(3)), work(torch.ones(3))
        self.assertEqual(*map(bits, found))
        self.assertEqual(counts(p)["inner"], 1)

    def test_inference_mode(self):
        """Begun inside of it, and ended inside of it."""
        x = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
        with torch.inference_mode():
            plain = bits(self.model(x))
            with everything() as inside:
                found = [self.model(x)]
        ended_inside = everything()
        ended_inside.start()
        with torch.inference_mode():
            found.append(self.model(x))
            ended_inside.stop()
        self.assertEqual([bits(y) for y in found], [plain] * 2)
        self.assertEqual([y.is_inference() for y in found], [True] * 2)
        for p in (inside, ended_inside):
            self.assertEqual(counts(p)["aten::conv2d"], 1)
            self.assertGreater(memory(p)["aten::empty"], 0)


if __name__ == "__main__":
    unittest.main()
