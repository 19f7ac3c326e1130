"""Training under prof.torch.observe(): forward, loss, backward and optimizer, in one thread and
several, with a schedule; beside torch.profiler. make test-torch."""

import collections
import contextlib
import json
import os
import tempfile
import threading
import unittest

from beside_torch import Beside, calls, nested, skip_without_torch, torch
from hang_guard import HANG_SECONDS

import prof


def model_of(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 6 * 6, 5),
    )


class Trainer:
    """A model, its optimizer, and a batch."""

    def __init__(self, seed=1, optimizer="SGD"):
        self.model = model_of(seed)
        self.x, self.y = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
        self.optimizer = (
            torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
            if optimizer == "SGD"
            else torch.optim.Adam(self.model.parameters())
        )

    def step(self):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self):
        return [
            self.x,
            *self.model.state_dict().values(),
            *(p.grad for p in self.model.parameters()),
        ]


def kineto(**options):
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)


@skip_without_torch
class Training(Beside, unittest.TestCase):
    def test_a_step_of_each_optimizer(self):
        for optimizer in ("SGD", "Adam"):
            with self.subTest(optimizer):

                def work():
                    trainer = Trainer(optimizer=optimizer)
                    return [trainer.step(), *trainer.state()]

                found = self.compare_results(work)
                self.assertEqual(
                    [
                        found[name]
                        for name in (
                            f"Optimizer.step#{optimizer}.step",
                            "ConvolutionBackward0",
                            "NllLossBackward0",
                            "aten::cross_entropy_loss",
                        )
                    ],
                    [1, 1, 1, 1],
                )

    def test_forward_again_in_threads_of_autograd(self):
        """A backward pass inside of a backward pass, deeper than autograd's own limit of 60: below
        that its own threads run it, which are observed for the thread that began."""

        class Inside(torch.autograd.Function):
            @staticmethod
            def forward(context, x, depth):
                context.depth = depth
                return x.clone()

            @staticmethod
            def backward(context, gradient):
                if context.depth:
                    with torch.enable_grad():
                        x = torch.ones(2, requires_grad=True)
                        Inside.apply(x, context.depth - 1).sum().backward()
                return gradient, None

        def work():
            Inside.apply(torch.ones(2, requires_grad=True), 70).sum().backward()

        found = self.compare(work)
        self.assertEqual(found["InsideBackward"], 71)
        with prof.profile() as p, prof.torch.observe():
            work()
        self.assertEqual(len({e.thread for e in p.events()}), 2)

    def test_threads_that_train_at_once(self):
        """Each thread observes itself, and its rows are those of a model that is trained alone."""
        alone = Trainer()
        alone.step()
        with kineto() as theirs:
            alone.step()
        expected = collections.Counter(e.name for e in theirs.events())
        trainers, together = [Trainer(seed) for seed in (1, 2, 3)], threading.Barrier(3)
        plain = [Trainer(seed) for seed in (1, 2, 3)]
        for trainer in (*trainers, *plain):
            trainer.step()

        def train(trainer):
            together.wait(HANG_SECONDS)
            with prof.torch.observe():
                trainer.step()

        with prof.profile() as p:
            threads = [threading.Thread(target=train, args=(trainer,)) for trainer in trainers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        by_thread = collections.defaultdict(collections.Counter)
        for e in p.events():
            by_thread[e.thread][e.name] += 1
        self.assertEqual(list(by_thread.values()), [expected] * 3)
        for trainer, other in zip(trainers, plain):
            other.step()
            for a, b in zip(trainer.state(), other.state()):
                self.assertTrue(torch.equal(a, b))


@skip_without_torch
class Steps(unittest.TestCase):
    maxDiff = None
    SCHEDULE = {"wait": 1, "warmup": 1, "active": 2, "repeat": 2}

    def seen(self, profile, around):
        """Of each cycle: the calls, and what stands inside of which step; the parameters at the
        end."""
        cycles, trainer = [], Trainer()

        def ready(p):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "trace.json")
                p.export_chrome_trace(path)
                with open(path) as f:
                    slices = [
                        e
                        for e in json.load(f)["traceEvents"]
                        if e["ph"] == "X" and e.get("cat") in ("cpu_op", "user_annotation")
                    ]
            cycles.append(
                (
                    calls(p),
                    nested(
                        (e["name"], e["tid"], float(e["ts"]), float(e["ts"]) + float(e["dur"]))
                        for e in slices
                    ),
                )
            )

        with around, profile(on_trace_ready=ready) as p:
            for _ in range(10):
                trainer.step()
                p.step()
        return cycles, trainer.state()

    def test_the_cycles_of_a_schedule(self):
        mine, state = self.seen(
            lambda **o: prof.profile(schedule=prof.schedule(**self.SCHEDULE), **o),
            prof.torch.observe(),
        )
        theirs, other = self.seen(
            lambda **o: kineto(schedule=torch.profiler.schedule(**self.SCHEDULE), **o),
            contextlib.nullcontext(),
        )
        self.assertEqual([found["ProfilerStep*"] for found, _ in mine], [2, 2])
        for (my_calls, my_order), (their_calls, their_order) in zip(mine, theirs):
            self.assertEqual(my_calls, their_calls)
            self.assertEqual(my_order, their_order)
        self.assertEqual(
            [name for name, depth in mine[0][1] if depth == 0], ["ProfilerStep#2", "ProfilerStep#3"]
        )
        for a, b in zip(state, other):
            self.assertTrue(torch.equal(a, b))


if __name__ == "__main__":
    unittest.main()
