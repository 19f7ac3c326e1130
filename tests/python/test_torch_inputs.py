"""Inputs of operators beside torch.profiler in one process: operators with more of them than a
record has arguments, and rare element types. make test-torch."""

import json
import os
import tempfile
import unittest
import warnings

from beside_torch import skip_without_torch, torch

import prof
import prof.torch

NAMES = (
    *("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu"),
    *("float4_e2m1fn_x2", "complex32", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"),
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)),
    *("uint16", "uint32", "uint64"),
)
QUANTIZED = ("qint8", "quint8", "qint32", "quint4x2", "quint2x4")


def of_events(p):
    return [
        (
            e.name,
            e.input_shapes,
            e.structured_input_shapes,
            e.structured_input_strides,
            e.concrete_inputs,
            e.input_dtypes,
        )
        for e in p.events()
    ]


def of_file(p):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        p.export_chrome_trace(path)
        with open(path) as f:
            rows = json.load(f)["traceEvents"]
    keys = ("Input Dims", "Input type", "Concrete Inputs", "Input Strides")
    return [
        (row["name"], *(row["args"].get(key) for key in keys))
        for row in sorted((r for r in rows if r.get("cat") == "cpu_op"), key=lambda r: r["ts"])
    ]


@skip_without_torch
class Inputs(unittest.TestCase):
    maxDiff = None

    def profiles(self, work):
        work()
        options = {"activities": [torch.profiler.ProfilerActivity.CPU], "record_shapes": True}
        for make in (torch.profiler.profile, prof.torch.profile):
            with make(**options) as p:
                work()
            yield p

    def same(self, work):
        theirs, ours = self.profiles(work)
        names = {e.name for e in theirs.events()}
        if hasattr(theirs.events()[0], "input_dtypes"):
            for theirs_of, ours_of in zip(of_events(theirs), of_events(ours)):
                self.assertEqual(ours_of, theirs_of)
        self.assertEqual(of_file(ours), of_file(theirs))
        rows = [
            {(r.key, str(r.input_shapes)): r.count for r in p.key_averages(True)}
            for p in (ours, theirs)
        ]
        self.assertEqual(*rows)
        return ours, names

    def test_an_lstm(self):
        lstm, x = torch.nn.LSTM(4, 8, num_layers=2), torch.ones(5, 3, 4)
        ours, names = self.same(lambda: lstm(x))
        longest = max(len(e.input_shapes) for e in ours.events())
        self.assertGreaterEqual(longest, 9)

    def test_an_lstm_without_gradients(self):
        """Its layers have 16 inputs."""
        lstm, x = torch.nn.LSTM(4, 8), torch.ones(5, 3, 4)

        def work():
            with torch.no_grad():
                lstm(x)

        self.same(work)

    def test_an_encoder(self):
        """Its fast path has an operator of 20 inputs."""
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = torch.nn.TransformerEncoder(layer, 1).eval()
        x = torch.ones(2, 3, 8)

        def work():
            with torch.no_grad():
                encoder(x)

        ours, names = self.same(work)
        self.assertIn("aten::_transformer_encoder_layer_fwd", names)
        longest = max(ours.events(), key=lambda e: len(e.input_shapes))
        self.assertEqual(longest.name, "aten::_transformer_encoder_layer_fwd")
        self.assertGreater(len(longest.input_shapes), 16)
        self.assertNotIn("Inputs left out", longest.args)

    def many(self, count, rank=1):
        """An operator of so many inputs, each of another shape."""
        words = ", ".join(f"Tensor a{place}" for place in range(count))
        name = f"many{count}_{rank}"
        library = torch.library.Library("prof_tests", "FRAGMENT")
        library.define(f"{name}({words}, int number) -> Tensor")
        library.impl(name, lambda first, *rest: first + 1, "CompositeExplicitAutograd")
        self.addCleanup(library._destroy)
        inputs = [torch.ones((1,) * (rank - 1) + (1 + place,)) for place in range(count)]
        return lambda: getattr(torch.ops.prof_tests, name)(*inputs, 7)

    def test_64_inputs(self):
        for count in (12, 13, 15, 16, 17, 63):
            with self.subTest(count):
                self.same(self.many(count))
        self.same(self.many(63, 4))

    def test_those_that_have_no_room_are_counted(self):
        """Of 64 inputs with 60 dimensions each."""
        theirs, ours = self.profiles(self.many(63, 60))
        one = next(e for e in ours.events() if e.name == "prof_tests::many63_60")
        self.assertEqual(len(one.input_shapes) + one.args["Inputs left out"], 64)

    def test_rows_apart_by_a_late_input(self):
        def work():
            for last in (1, 2):
                torch.ops.prof_tests.late(*[self.x] * 18, torch.ones(last))

        words = ", ".join(f"Tensor a{place}" for place in range(19))
        library = torch.library.Library("prof_tests", "FRAGMENT")
        library.define(f"late({words}) -> Tensor")
        library.impl("late", lambda first, *rest: first + 1, "CompositeExplicitAutograd")
        self.addCleanup(library._destroy)
        self.x = torch.ones(3)
        ours, _ = self.same(work)
        rows = [r for r in ours.key_averages(True) if r.key == "prof_tests::late"]
        self.assertEqual([r.count for r in rows], [1, 1])

    def test_empty_lists(self):
        """torch writes each of them but those of tensors."""
        library = torch.library.Library("prof_empty", "DEF")
        numbers = ", ".join(f"int? c{number}" for number in range(15))
        lists = "int[] b, float[] c, bool[] d, str[] e, Tensor?[] f, Tensor[] g"
        library.define(f"lists(Tensor a, {lists}) -> Tensor")
        library.define(f"long(Tensor a, Tensor[] b, {numbers}, Tensor[] d) -> Tensor")
        for name in ("lists", "long"):
            library.impl(name, lambda a, *rest, **more: a + 1, "CompositeExplicitAutograd")
        x = torch.ones(2)

        def work():
            torch.ops.prof_empty.lists(x, [], [], [], [], [], [])
            torch.ops.prof_empty.lists(x, [1], [1.5], [True], [], [x], [x])
            torch.ops.prof_empty.long(x, [], *[None] * 15, [])
            torch.ops.prof_empty.long(x, [x], *[None] * 15, [])

        ours, _ = self.same(work)
        words = {e.name: e.input_dtypes for e in ours.events()}
        self.assertEqual(words["prof_empty::long"][17], "TensorList")

    def test_fused_optimizers(self):
        """A list that an optimizer does not need is empty."""
        parameter = torch.ones(3, requires_grad=True)
        parameter.grad = torch.ones(3)
        optimizer = torch.optim.Adam([parameter], fused=True)
        self.same(optimizer.step)

    def test_types(self):
        tensors = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in (n for n in NAMES if hasattr(torch, n)):
                tensors.append(torch.empty(4, dtype=getattr(torch, name)))
            for name in QUANTIZED:
                try:
                    of_type = torch.quantize_per_tensor(torch.ones(4), 1.0, 0, getattr(torch, name))
                except (AttributeError, RuntimeError):  # not of this torch
                    continue
                tensors.append(of_type)

        def work():
            for tensor in tensors:
                tensor.view(2, 2)

        ours, _ = self.same(work)
        words = [e.input_dtypes[0] for e in ours.events() if e.name == "aten::view"]
        self.assertEqual(len(set(words)), len(tensors), words)
        self.assertNotIn("", words)


if __name__ == "__main__":
    unittest.main()
