"""Operators of torch are observed: the same results, ITT where there are no callbacks, starts,
stops, threads, forks, and releases of torch whose calls are not known."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

from hang_guard import HANG_SECONDS
from test_observe import calls, small_input, small_model, torch

import prof


def without_callbacks():
    """As where the dispatcher's callbacks cannot be proven."""
    return unittest.mock.patch.object(prof.torch._torch, "calls", lambda: (None, "a test"))


class SameResults(unittest.TestCase):
    def train(self):
        model, x = small_model(), small_input()
        step = torch.optim.Adam(model.parameters())
        for _ in range(3):
            step.zero_grad()
            torch.nn.functional.dropout(model(x)).square().mean().backward()
            step.step()
        return [
            *model.state_dict().values(),
            *(p.grad for p in model.parameters()),
            torch.random.get_rng_state(),
        ]

    def test_bit_for_bit(self):
        plain = self.train()
        with prof.profile(), prof.torch.observe():
            observed = self.train()
        with prof.torch.observe():
            nobody_records = self.train()
        with prof.profile(with_stack=True), prof.torch.observe(record_shapes=True, with_stack=True):
            with_stacks = self.train()
        with prof.profile(), prof.torch.observe(record_shapes=True):
            with_shapes = self.train()
        with without_callbacks(), prof.profile(), prof.torch.observe():
            by_itt = self.train()
        for others in (observed, nobody_records, with_stacks, with_shapes, by_itt):
            for a, b in zip(plain, others):
                self.assertEqual(a.numpy().tobytes(), b.numpy().tobytes())

    def test_a_data_loader_with_workers(self):
        data = torch.utils.data.TensorDataset(torch.arange(64.0).reshape(16, 4))

        def rows():
            return torch.cat(
                [
                    batch.mul(batch)
                    for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
                ]
            )

        plain = rows()
        with prof.profile() as p, prof.torch.observe():
            observed = rows()
        self.assertTrue(torch.equal(plain, observed))
        self.assertEqual(calls(p)["aten::mul"], 4)


class ByItt(unittest.TestCase):
    def setUp(self):
        instead = without_callbacks()
        instead.start()
        self.addCleanup(instead.stop)

    def test_a_warning_says_that_shapes_are_missing(self):
        o = prof.torch.observe(record_shapes=True)
        with self.assertWarnsRegex(
            RuntimeWarning, "shapes of PyTorch's operators are missing.*a test"
        ) as warned:
            o.start()
        o.stop()
        self.assertEqual((o.way, warned.filename), ("ITT", __file__))

    def test_a_profile_warns_at_its_callers_line(self):
        with self.assertWarnsRegex(RuntimeWarning, "operators are missing") as warned:
            with prof.profile(torch=True, record_shapes=True):
                torch.ones(1)
        self.assertEqual(warned.filename, __file__)

    def test_without_shapes_operators_are_the_same(self):
        model, x = small_model(), small_input()
        with prof.profile(with_stack=True) as p, self.assertWarns(RuntimeWarning):
            with prof.torch.observe(record_shapes=True, with_stack=True):
                model(x).sum().backward()
        rows = [a for a in p.key_averages(group_by_input_shape=True) if a.key == "aten::mm"]
        self.assertEqual([(a.count, str(a.input_shapes)) for a in rows], [(2, "[]")])
        first = next(e for e in p.events() if e.name == "aten::convolution")
        self.assertTrue(any("test_observe_life.py" in frame for frame in first.stack), first.stack)

    def test_a_warning_that_is_an_error_leaves_nothing_on(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(RuntimeWarning, "operators are missing"):
                prof.torch.observe(record_shapes=True).start()
        with prof.torch.observe():
            pass


class Life(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(4)

    def tearDown(self):
        self.assertFalse(torch.autograd._profiler_enabled())
        self.assertFalse(torch.autograd.profiler._is_profiler_enabled)

    def test_again_and_again(self):
        o = prof.torch.observe()
        o.stop()
        with prof.profile() as p:
            self.x.add(self.x)
            for _ in range(2):
                o.start()
                self.x.mul(self.x)
                o.stop()
            self.x.add(self.x)
            with o:
                self.x.mul(self.x)
        self.assertEqual(calls(p), {"aten::mul": 3})

    def test_twice(self):
        o = prof.torch.observe()
        with prof.profile() as p, o:
            with self.assertRaisesRegex(RuntimeError, "started already"):
                o.start()
            with self.assertRaisesRegex(RuntimeError, "another observe"):
                prof.torch.observe().start()
            self.x.add(self.x)
        self.assertEqual(calls(p), {"aten::add": 1})

    def test_inside_of_emit_itt(self):
        with torch.autograd.profiler.emit_itt():
            with self.assertRaisesRegex(RuntimeError, "emit_itt"):
                prof.torch.observe().start()
            self.x.add(self.x)

    def test_by_itt_inside_of_a_profiler_of_torch(self):
        with without_callbacks(), torch.profiler.profile():
            with self.assertRaisesRegex(RuntimeError, "torch.profiler"):
                prof.torch.observe().start()

    def test_a_profiler_of_torch_inside(self):
        with prof.profile() as p, prof.torch.observe():
            with torch.profiler.profile() as theirs:
                self.x.add(self.x)
            self.x.mul(self.x)
        self.assertEqual(calls(p), {"aten::add": 1, "aten::mul": 1})
        self.assertEqual([e.key for e in theirs.key_averages()], ["aten::add"])

    def test_each_thread_for_itself(self):
        o, errors, ready, seen = prof.torch.observe(), [], threading.Event(), threading.Event()

        def other():
            self.x.mul(self.x)
            try:
                o.stop()
            except RuntimeError as e:
                errors.append(str(e))
            with prof.torch.observe():
                self.x.div(self.x)
                ready.set()
                seen.wait(HANG_SECONDS)

        with prof.profile() as p, o:
            t = threading.Thread(target=other)
            t.start()
            ready.wait(HANG_SECONDS)
            self.x.add(self.x)
            seen.set()
            t.join()
            self.x.add(self.x)
        self.assertEqual(calls(p), {"aten::add": 2, "aten::div": 1})
        self.assertIn("by the thread that has started it", errors[0])

    def test_a_range_that_another_thread_ends(self):
        enter, leave = (
            torch.ops.profiler._record_function_enter_new,
            torch.ops.profiler._record_function_exit._RecordFunction,
        )

        def ends(ranges):
            for one in ranges:
                leave(one)

        with prof.profile() as p, prof.torch.observe():
            ranges = [enter(f"range {i}") for i in range(3)]
            t = threading.Thread(target=ends, args=(ranges,))
            t.start()
            t.join()
        self.assertEqual(calls(p), {"range 0": 1, "range 1": 1, "range 2": 1})

    def test_threads_that_come_and_go(self):
        def other():
            with prof.torch.observe(record_shapes=True):
                for _ in range(20):
                    self.x.mul(self.x)

        with prof.profile() as p:
            threads = [threading.Thread(target=other) for _ in range(20)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(calls(p), {"aten::mul": 400})

    def test_nobody_records(self):
        with prof.torch.observe(record_shapes=True):
            self.x.add(self.x)
            with prof.profile() as p:
                self.x.mul(self.x)
            self.x.add(self.x)
        self.assertEqual(calls(p), {"aten::mul": 1})

    def test_more_names_than_are_kept(self):
        with prof.profile() as p, prof.torch.observe():
            for i in range(5000):
                with torch.profiler.record_function(f"range {i}"):
                    pass
        found = calls(p)
        self.assertEqual((len(found), set(found.values())), (5000, {1}))

    def test_what_raises_inside(self):
        with prof.profile() as p:
            with self.assertRaises(ZeroDivisionError), prof.torch.observe():
                self.x.add(self.x)
                1 / 0
            self.x.add(self.x)
        self.assertEqual(calls(p), {"aten::add": 1})

    def test_a_fork(self):
        with prof.profile() as p, prof.torch.observe() as o:
            self.x.add(self.x)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    self.x.mul(self.x)  # observed, and nobody records
                    o.stop()
                    prof.profiler.start()
                    self.x.div(self.x)
                    with prof.torch.observe():
                        self.x.sub(self.x)
                    found = {
                        name: prof.profiler.total(name)[1]
                        for name in ("aten::add", "aten::mul", "aten::div", "aten::sub")
                    }
                    status = (
                        0
                        if found == {"aten::add": 0, "aten::mul": 0, "aten::div": 0, "aten::sub": 1}
                        else 2
                    )
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.x.add(self.x)
        self.assertEqual(calls(p), {"aten::add": 2})


class Document(unittest.TestCase):
    def test_the_example_of_the_document(self):
        source = os.environ.get("PROF_TEST_SOURCE_DIR", ".")
        page = os.path.join(source, "docs", "how-to", "profile-pytorch.md")
        with open(page, encoding="utf-8") as f:
            code = re.search(
                r"<!-- snippet: none: torch.*?-->\n```python\n(.*?)```", f.read(), re.DOTALL
            ).group(1)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("aten::convolution_backward", done.stdout)
            self.assertTrue(os.path.exists(os.path.join(folder, "model.json")))


class Unproven(unittest.TestCase):
    def test_why_the_callbacks_are_not_taken(self):
        o = prof.torch.observe()
        with o:
            self.assertEqual((o.way, o.reason), ("callbacks", ""))
        with without_callbacks(), o:
            self.assertEqual((o.way, o.reason), ("ITT", "a test"))

    def test_the_places_are_those_of_the_headers(self):
        compiler = shutil.which(os.environ.get("CXX", "g++"))
        if not compiler:
            self.skipTest("there is no C++ compiler")
        calls, _ = prof.torch._torch.calls()
        source = os.path.join(
            os.environ.get("PROF_TEST_SOURCE_DIR", "."), "tests", "python", "torch_layout.cpp"
        )
        found = {**calls.layout(), **calls.values_layout()}
        places = [f"-D{name.upper()}={value}" for name, value in found.items() if name != "avoided"]
        include = os.path.join(os.path.dirname(torch.__file__), "include")
        abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
        done = subprocess.run(
            [compiler, "-std=c++20", "-w", "-fsyntax-only", abi, "-I", include, *places, source],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, f"{places}\n{done.stderr}")

    def test_a_known_call_that_is_not_as_told(self):
        calls, _ = prof.torch._torch.calls()
        x = torch.ones(2, 3)
        told = {"inputs": [x, torch.ones(1)]}, {"sequence": 7}, {"forward": 3}, {"scope": 2}
        for wrong in told:
            calls._ask(calls.library.prof_i_torch_open_1())
            with torch.no_grad():
                calls._meets(lambda: torch.mul(x, x), "aten::mul", **{"inputs": [x, x], **wrong})
            with self.assertRaisesRegex(
                prof.torch._torch_calls.Unproven, "may stand in [0-9]+ places"
            ):
                calls._ask(calls.library.prof_i_torch_prove_1(0))
        calls._ask(calls.library.prof_i_torch_open_1())
        # nothing told
        with self.assertRaisesRegex(
            prof.torch._torch_calls.Unproven,
            "a call.s forward thread may stand in ([2-9]|[1-9][0-9]+) places",
        ):
            calls._ask(calls.library.prof_i_torch_prove_1(0))
        prof.torch._torch_calls.apart(lambda: calls._prove(torch))


if torch is None:
    del SameResults, ByItt, Life, Document, Unproven

    class Torch(unittest.TestCase):
        def test_with_torch(self):
            self.skipTest("torch is not installed for this Python")


if __name__ == "__main__":
    unittest.main()
