"""FLOPs, scalar inputs and strides of PyTorch's operators, beside torch.profiler in the same run.
make test-torch."""

import collections
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings

from test_observe import torch, torchvision

import prof

PROGRAMS = []


def program(work):
    PROGRAMS.append(work)
    return work


@program
def convolutions():
    functional, x = torch.nn.functional, torch.ones(2, 4, 9, 7)
    functional.conv2d(
        x, torch.ones(8, 2, 3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2
    )
    functional.conv2d(
        x, torch.ones(8, 4, 3, 3, requires_grad=True), torch.ones(8), padding=1
    ).sum().backward()
    functional.conv2d(x, torch.ones(4, 1, 3, 3), groups=4, stride=3)
    functional.conv2d(x, torch.ones(8, 4, 3, 3), padding="same")  # torch counts none of it
    functional.conv2d(x[0], torch.ones(8, 4, 3, 3))  # nor of it
    functional.conv2d(x[:0], torch.ones(8, 4, 3, 3))
    functional.conv1d(x[0], torch.ones(2, 9, 2)[:, :9])
    functional.conv3d(torch.ones(1, 1, 4, 4, 4), torch.ones(1, 1, 2, 2, 2))
    functional.conv_transpose2d(x, torch.ones(4, 2, 2, 2))


@program
def products():
    x, m = torch.ones(2, 3, 4), torch.ones(3, 4)
    x @ m.t(), m @ m.t(), x @ x.transpose(1, 2), torch.mv(m, m[0]), torch.dot(m[0], m[0])
    torch.nn.functional.linear(x, m), torch.nn.functional.linear(m, m, torch.ones(3))
    (
        torch.baddbmm(torch.ones(2, 3, 3), x, x.transpose(1, 2)),
        torch.addmm(torch.ones(3), m, m.t(), alpha=2, beta=0.5),
    )
    torch.mm(m[:, :0], m[:0]), torch.mm(m[:0], m.t()), torch.bmm(x[:0], x[:0].transpose(1, 2))
    torch.einsum("bij,kj->bik", x, m)


@program
def elementwise():
    x, m, flags = torch.ones(2, 3, 4), torch.ones(3, 4), torch.ones(3, 4, dtype=torch.bool)
    (
        torch.mul(x, m),
        torch.mul(m, x),
        m * 3,
        2.5 * m,
        m * True,
        flags * False,
        torch.mul(torch.tensor(2.0), x),
        m * 2j,
    )
    (
        torch.add(m, x),
        m + 1,
        m + True,
        m - 1,
        torch.add(m, x, alpha=3),
        torch.add(torch.tensor(1), 2),
        m[:0] + 1,
    )
    x += 1
    torch.mul(m, 0.1), m.to_sparse() * 2, torch.nested.nested_tensor([m, m[:1]]) * 2
    m.clone().requires_grad_().mul(2.5).sum().backward()


@program
def attention():
    layer, x = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), torch.ones(2, 5, 16)
    layer(x).sum().backward()
    torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])


@program
def trained():
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 2))
    for optimizer in (
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        torch.optim.Adam(model.parameters()),
    ):
        optimizer.zero_grad()
        model(torch.ones(7, 20)).sum().backward()
        optimizer.step()


@program
def scalars():
    """Inputs of all kinds, but for what differs from call to call."""
    x = torch.linspace(-1, 1, 24).reshape(2, 3, 4)
    for number in (
        0.1,
        1 / 3,
        -0.0,
        1e10,
        12345678901.0,
        1e17,
        1e20,
        1e-300,
        float("inf"),
        float("nan"),
        -7.0,
        2,
    ):
        torch.clamp(x, min=number), torch.full((2, 1), number)
    (
        x.sum((0, -1), keepdim=True),
        x.permute(2, 0, 1).contiguous(),
        x.reshape(-1)[:, None],
        x.expand(5, 2, 3, 4),
    )
    (
        torch.ones([1] * 31),
        torch.zeros(()),
        x.to(torch.float64),
        x.transpose(0, 1) + 1,
        torch.arange(-3, 9, 2),
    )
    (
        torch.nn.functional.interpolate(x[None], scale_factor=2.0),
        torch.nn.functional.gelu(x, approximate="tanh"),
    )
    (
        torch.nn.functional.batch_norm(x, torch.zeros(3), torch.ones(3), eps=1e-3),
        torch.roll(x, (1, 2), (0, 1)),
    )
    (
        x.to_sparse().sum(),
        x[:, :, 0].to_mkldnn().to_dense(),
        torch.quantize_per_tensor(x, 0.5, 3, torch.quint8),
    )
    torch.func.vmap(torch.sin)(x), torch.empty(2, 3, device="meta") + 1


def under_autocast():
    a = torch.ones(2, 3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        torch.nn.functional.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3))
        torch.bmm(a, a), torch.addmm(a[0], a[0], a[0]), torch.baddbmm(a, a, a)


FLOAT = 0x0220  # PROF_F32
SHAPES = [(FLOAT, 2, 3), (FLOAT, 3, 4)]


def seen_by_both(work, **options):
    work()  # torch makes things once
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says of what it counts no FLOPs
        with torch.profiler.profile(
            activities=cpu, record_shapes=True, with_flops=True, **options
        ) as theirs:
            with prof.profile(torch=True, record_shapes=True, with_flops=True, **options) as mine:
                work()
    return mine, theirs


def flops_of(rows):
    return {(row.key, str(row.input_shapes)): row.flops for row in rows if row.flops}


class Flops(unittest.TestCase):
    maxDiff = None

    def test_all_are_torchs(self):
        for work in PROGRAMS:
            with self.subTest(work.__name__):
                mine, theirs = seen_by_both(work)
                for by_shape in (False, True):
                    expected = flops_of(theirs.key_averages(group_by_input_shape=by_shape))
                    self.assertEqual(
                        flops_of(mine.key_averages(group_by_input_shape=by_shape)), expected
                    )
                    self.assertEqual(
                        flops_of(mine.events().key_averages(group_by_input_shapes=by_shape)),
                        expected,
                    )
                each = [
                    sorted((e.name, str(e.input_shapes), e.flops) for e in p.events() if e.flops)
                    for p in (mine, theirs)
                ]
                self.assertEqual(*each)

    def test_calls_inside_of_calls_of_their_name_are_counted(self):
        """Under autocast an operator calls itself, and what converts its inputs."""
        mine, theirs = seen_by_both(under_autocast)
        expected = {row.key: row.flops for row in theirs.key_averages() if row.flops}
        names = ["aten::addmm", "aten::baddbmm", "aten::bmm", "aten::conv2d"]
        self.assertEqual(sorted(expected), names)
        counts = {row.key: row.count for row in mine.key_averages()}
        self.assertEqual({counts[name] for name in names}, {2})
        for rows in (mine.key_averages(), mine.events().key_averages()):
            self.assertEqual({row.key: row.flops for row in rows if row.flops}, expected)

    def test_of_the_programs_own_the_outermost_is_counted(self):
        with (
            prof.profile(with_flops=True) as p,
            prof.scope("matmul", "operator", 1, _shapes=SHAPES),
        ):
            for _ in range(2):
                with prof.scope("matmul", "operator", 1, _shapes=SHAPES):
                    pass
        found = [(row.count, row.flops) for row in p.key_averages()]
        self.assertEqual(found, [(3, 2 * 2 * 3 * 4)])

    def test_a_capture_and_the_json_have_them_too(self):
        for work in (convolutions, elementwise, under_autocast):
            mine, _ = seen_by_both(work)
            expected = flops_of(mine.key_averages(group_by_input_shape=True))
            with tempfile.TemporaryDirectory() as folder:
                path, taken = os.path.join(folder, "t.json"), os.path.join(folder, "t.prof")
                mine.export_chrome_trace(path)
                with prof.import_trace(path, taken) as trace:
                    again = trace.key_averages(group_by_input_shape=True, with_flops=True)
                    self.assertEqual(flops_of(again), expected)

    @unittest.skipIf(torchvision is None, "there is no torchvision")
    def test_resnet18(self):
        model, x = torchvision.models.resnet18().eval(), torch.ones(5, 3, 224, 224)
        with torch.no_grad(), prof.profile(torch=True, with_flops=True) as p:
            model(x)
        lines = p.key_averages().table(sort_by="flops", row_limit=3).splitlines()
        self.assertTrue(lines[1].rstrip().endswith("Total MFLOPs"))
        self.assertEqual(
            [line.split()[0::9][0:1] + line.split()[-1:] for line in lines[3:5]],
            [["aten::conv2d", "18135.613"], ["aten::addmm", "5.120"]],
        )
        self.assertEqual(lines[5].split()[-1], "--")


class Values(unittest.TestCase):
    maxDiff = None

    def test_inputs_and_strides_are_torchs(self):
        def key(e):
            return e.name, repr(e.concrete_inputs), repr(e.structured_input_strides)

        for work in PROGRAMS:
            with self.subTest(work.__name__):
                mine, theirs = seen_by_both(work)
                found = collections.Counter(key(e) for e in mine.events() if e.input_shapes)
                expected = collections.Counter(
                    key(e) for e in theirs.events() if e.structured_input_shapes
                )
                self.assertEqual(found - expected, expected - found)

    def test_types_and_arrows_of_events_are_torchs(self):
        for work in PROGRAMS:
            with self.subTest(work.__name__):
                mine, theirs = seen_by_both(work)
                for key, has in (
                    (
                        lambda e: (
                            e.name,
                            tuple(e.input_dtypes),
                            repr([dims[:16] for dims in e.structured_input_shapes]),
                        ),
                        lambda e: e.structured_input_shapes,
                    ),
                    (lambda e: (e.name, e.flow_id, e.flow_type, e.flow_start), lambda e: True),
                ):
                    found = collections.Counter(key(e) for e in mine.events() if has(e))
                    expected = collections.Counter(key(e) for e in theirs.events() if has(e))
                    self.assertEqual(found - expected, expected - found)

    def test_arrows_inside_of_a_backward_call(self):
        """A backward call that runs others ends behind them, and has the later number."""
        from torch.utils.checkpoint import checkpoint

        def work():
            x = torch.ones(2, 4, requires_grad=True)
            checkpoint(lambda y: y.mul(2).relu(), x, use_reentrant=True).sum().backward()

        def arrows(p):
            of_events = {(e.name, e.flow_id, e.flow_start) for e in p.events() if e.flow_id}
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "trace.json")
                p.export_chrome_trace(path)
                with open(path, encoding="utf-8") as file:
                    rows = json.load(file)["traceEvents"]
            ends = {(r["tid"], r["ts"], r["id"]) for r in rows if r.get("cat") == "fwdbwd"}
            names = {(r["tid"], r["ts"]): r["name"] for r in rows if r.get("cat") == "cpu_op"}
            return of_events, sorted((names[end[:2]], end[2]) for end in ends)

        mine, theirs = map(arrows, seen_by_both(work))
        self.assertEqual(mine, theirs)
        self.assertIn(("CheckpointFunctionBackward", 4, False), mine[0])

    def test_a_range_has_its_calls_number_behind_a_hook(self):
        """torch's range has -1: its first operator is the hook's."""

        def work():
            y = torch.ones(3, requires_grad=True).mul(2).exp()
            y.register_hook(lambda gradient: gradient.neg())
            y.sum().backward()

        def numbers(p):
            calls = [e for e in p.events() if e.name.endswith("ExpBackward0")]
            return [(e.sequence_nr >= 0, e.fwd_thread) for e in calls]

        mine, theirs = map(numbers, seen_by_both(work))
        self.assertEqual(mine, [(True, 1), (True, 1)])
        self.assertEqual(theirs, [(False, 0), (True, 1)])

    def test_inputs_of_a_function_of_autograd_are_its_tensors(self):
        """torch adds the others only while a profiler of its own is on."""

        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(context, x, factor, name):
                return x * factor

            @staticmethod
            def backward(context, gradient):
                return gradient, None, None

        def work():
            Scaled.apply(torch.ones(3, requires_grad=True), 2, "name")

        def inputs(p):
            return [(e.input_shapes, e.concrete_inputs) for e in p.events() if e.name == "Scaled"]

        mine, theirs = map(inputs, seen_by_both(work))
        self.assertEqual(mine, theirs)
        self.assertEqual((theirs[0][0][0], theirs[0][1][1]), ([3], 2))
        with prof.profile(torch=True, record_shapes=True) as alone:
            work()
        self.assertEqual(inputs(alone), [([[3]], [None])])

    def test_each_cycle_has_its_own_arrows(self):
        def step():
            torch.ones(3, requires_grad=True).mul(2).sum().backward()

        step()
        with prof.profile(torch=True, profile_memory=True, acc_events=True) as p:
            step()
        with p:
            step()
            kept = torch.empty(5)
        events = p.events()
        ends = [(e.name, e.flow_id, e.flow_start) for e in events if e.flow_id]
        self.assertEqual(
            ends,
            2
            * [
                ("aten::mul", 2, True),
                ("aten::sum", 1, True),
                ("SumBackward0", 1, False),
                ("MulBackward0", 2, False),
            ],
        )
        self.assertEqual({e.flow_type for e in events if e.flow_id}, {1})
        del kept
        copied = pickle.loads(pickle.dumps([e for e in events if e.flow_id][0]))
        self.assertEqual((copied.flow_id, copied.flow_start, copied.input_dtypes), (2, True, []))

    KEYS = (
        "Concrete Inputs",
        "Input Strides",
        "Input Dims",
        "Input type",
        "Sequence number",
        "Fwd thread id",
    )

    def test_the_json_is_torchs(self):
        """Key by key, of the same calls in the order of their begins."""

        def operators(path):
            with open(path, encoding="utf-8") as file:
                text = file.read().replace('"-0."', '"0."')  # in its JSON torch has no sign there
            rows = [e for e in json.loads(text)["traceEvents"] if e.get("cat") == "cpu_op"]
            rows.sort(key=lambda e: (e["tid"], float(e["ts"]), -float(e["dur"])))
            return [(e["name"], {key: e["args"].get(key) for key in self.KEYS}) for e in rows]

        with tempfile.TemporaryDirectory() as folder:
            ours, torchs = os.path.join(folder, "ours.json"), os.path.join(folder, "torchs.json")
            for work in PROGRAMS:
                with self.subTest(work.__name__):
                    mine, theirs = seen_by_both(work)
                    mine.export_chrome_trace(ours)
                    theirs.export_chrome_trace(torchs)
                    # torch has all dimensions
                    expected = [
                        one
                        for one in operators(torchs)
                        if "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1" not in str(one)
                    ]
                    found = [
                        one
                        for one in operators(ours)
                        if "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1" not in str(one)
                    ]
                    self.assertGreater(len(expected), 20)
                    self.assertEqual(found, expected)

    def test_the_top_of_the_json_is_torchs(self):
        mine, theirs = seen_by_both(products)
        found = []
        with tempfile.TemporaryDirectory() as folder:
            for p in (mine, theirs):
                path = os.path.join(folder, "t.json")
                p.export_chrome_trace(path)
                with open(path, encoding="utf-8") as file:
                    found.append(json.load(file))
        self.assertEqual(set(found[1]) - set(found[0]), set())
        for key in (
            "schemaVersion",
            "deviceProperties",
            "record_shapes",
            "with_flops",
            "host_name",
            "traceName",
        ):
            self.assertEqual(found[0][key], found[1][key], key)
        self.assertEqual(found[0]["trace_id"], mine.get_trace_id())
        self.assertEqual(len(found[0]["trace_id"]), len(found[1]["trace_id"]))

    def test_without_shapes_nothing_is_read(self):
        x = torch.ones(1, 1, 4, 4)
        with prof.profile(torch=True) as p:
            torch.nn.functional.conv2d(x, x)
        self.assertEqual(
            {(e.flops, len(e.concrete_inputs), len(e.args)) for e in p.events()}, {(0, 0, 0)}
        )

    def test_long_texts_are_left_out(self):
        """No more than has room, and nothing else is lost."""
        x = torch.ones([1] * 16)
        with prof.profile(torch=True, record_shapes=True) as p:
            (
                torch.empty([2] * 30),
                torch.empty([2] * 31, device="meta"),
                torch.einsum("...,...->...", x, x),
            )
        found = {
            str(e.concrete_inputs[0])
            for e in p.events()
            if e.name == "aten::empty" and e.concrete_inputs
        }
        self.assertEqual(found, {str([2] * 30), "None"})


class Unproven(unittest.TestCase):
    """A release that differs: no figure, one warning, and all else as before."""

    CODE = """
import sys, unittest.mock, warnings
import torch, prof, prof.torch
from prof import _torch_calls

x = torch.ones(1, 1, 4, 4)
told, meets = _torch_calls._say_kind, _torch_calls.Calls._meets


def saying(change):
    return lambda to, value: told(to, change(value))


def meeting(change):
    def met(self, call, name, inputs, *more, texts=(), **named):
        changed = change(*texts) if texts else ()
        return meets(self, call, name, inputs, *more, texts=changed, **named)

    return met


def look(place, name, fault):
    _torch_calls._opened = None
    patched = unittest.mock.patch.object(place, name, fault)
    with patched, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            with prof.profile(torch=True, with_flops=True) as p:
                torch.nn.functional.conv2d(x, x)
                torch.mm(x[0, 0], x[0, 0])
    said = [" ".join(str(w.message).split()) for w in said if "prof" in str(w.message)]
    found = {a.key: a.flops for a in p.key_averages()}
    values = {len(e.concrete_inputs) for e in p.events()}
    print(len(said), *said, found["aten::conv2d"], found["aten::mm"], values == {0})


look(_torch_calls, "_say_kind", told)
# another payload, another tag, another place of a list's elements
look(_torch_calls, "_say_kind", saying(lambda v: v + 1 if type(v) is int else v))
look(_torch_calls, "_say_kind", saying(lambda v: not v if type(v) is bool else v))
look(_torch_calls, "_say_kind", saying(lambda v: float(v) if type(v) is bool else v))
look(_torch_calls, "_say_kind", saying(lambda v: [n + 1 for n in v] if type(v) is list else v))
look(_torch_calls, "_say_kind", saying(lambda v: v[:-1] if type(v) is list else v))
look(_torch_calls, "_say_kind", saying(lambda v: v[1:] + v[:1] if type(v) is list and v[1:] else v))
look(_torch_calls, "_say_kind", saying(lambda v: None if type(v) is float else v))
look(_torch_calls, "_say_kind", lambda to, value: None)
# all is found, and then another text is made
look(_torch_calls.Calls, "_meets", meeting(lambda concrete, strides: (concrete + " ", strides)))
look(_torch_calls.Calls, "_meets", meeting(lambda concrete, strides: (concrete, strides + " ")))
# what is called is not there, or does not come to the callbacks
look(_torch_calls, "_UNSTRIDED", ("NoSuchKey",))
look(torch, "as_strided", None)
look(torch, "as_strided", lambda *all: x)
look(_torch_calls, "_say_kind", told)
"""
    WHOLE = r"0 32 128 False$"
    REASONS = (
        "a scalar of aten::add is not what it was given",
        "a scalar of aten::sum is not what it was given",
        "a scalar of aten::sum is not what it was given",
        "a list's elements may stand in 0 places",
        "a list's elements may stand in 0 places",
        "a list's elements may stand in 0 places",
        "a scalar of aten::sum is not what it was given",
        "scalars' tag 1 is not apart from others",
        "an input of aten::add is not what it was given",
        "a stride of aten::add is not what it was given",
        "the calls by which it is proven cannot be made: TypeError.*DispatchKey.*",
        "the calls by which it is proven cannot be made: TypeError.*",
        "a known call, aten::as_strided, has not come to the callback",
    )

    def test_faults(self):
        done = subprocess.run([sys.executable, "-c", self.CODE], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        expected = [
            f"1 prof: .*no FLOPs: torch .*\\({reason}\\) 0 128 True$" for reason in self.REASONS
        ]
        self.assertEqual(len(lines), len(expected) + 2, done.stdout)
        for line, pattern in zip(lines, [self.WHOLE, *expected, self.WHOLE]):
            with self.subTest(pattern):
                self.assertRegex(line, f"^{pattern}")


if torch is None:
    del Flops, Values, Unproven

if __name__ == "__main__":
    unittest.main()
