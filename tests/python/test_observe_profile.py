"""prof.profile(torch=True) with the real torch: schedules, shapes, FLOPs, errors, other threads,
forks. make test-torch."""

import os
import subprocess
import sys
import threading
import unittest

from hang_guard import HANG_SECONDS
from test_observe import calls, is_observed, small_input, torch

import prof


class Profile(unittest.TestCase):
    """prof.profile(torch=True)."""

    def test_with_a_schedule_only_while_it_is_active(self):
        x, seen, on = small_input(), [], []
        with prof.profile(
            torch=True,
            schedule=prof.schedule(wait=1, warmup=1, active=2, repeat=2),
            on_trace_ready=lambda p: seen.append(calls(p)),
        ) as p:
            for _ in range(8):
                on.append(is_observed())
                x.add(x)
                p.step()
            on.append(is_observed())
        self.assertEqual(on, [False, False, True, True, False, False, True, True, False])
        self.assertEqual(
            [{k: v for k, v in rows.items() if not k.startswith("Profiler")} for rows in seen],
            [{"aten::add": 2}, {"aten::add": 2}],
        )

    def test_shapes_and_the_operators_bits(self):
        x = small_input()
        with prof.profile(torch=True, record_shapes=True) as p:
            y = torch.relu(x)
        self.assertTrue(torch.equal(y, torch.relu(x)))
        self.assertIn(
            "[[2, 3, 16, 16]]",
            {str(a.input_shapes) for a in p.key_averages(group_by_input_shape=True)},
        )

    def test_flops_are_counted_once(self):
        model, x = (
            torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)),
            torch.randn(2, 8),
        )
        with prof.profile(torch=True, record_shapes=True, with_flops=True) as mine:
            model(x) @ torch.ones(4, 4)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_flops=True
        ) as theirs:
            model(x) @ torch.ones(4, 4)
        self.assertEqual(
            {a.key: a.flops for a in mine.key_averages() if a.flops},
            {a.key: a.flops for a in theirs.key_averages() if a.flops},
        )

    def test_with_torchs_own_enumerations(self):
        x, seen = small_input(), []
        with prof.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            torch=True,
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=1),
            on_trace_ready=lambda p: seen.append(calls(p).get("aten::add")),
        ) as p:
            for _ in range(6):
                x.add(x)
                p.step()
        self.assertEqual(seen, [1, 1])
        with self.assertRaisesRegex(TypeError, "not 'CPU': prof.ProfilerActivity has CPU, CUDA"):
            prof.profile(activities=["CPU"])

    def test_dropped_without_a_stop(self):
        """Also the one that has torch looked for, and finds no ITT: what is kept of that holds
        nothing of the profile."""
        code = (
            "import torch, prof\ndef f():\n    p = prof.profile(torch=True)\n    p.start()\nf()\n"
            "with prof.profile(torch=True) as p: torch.relu(torch.ones(3))\n"
            "print(len(p.key_averages()))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS
        )
        self.assertEqual(done.stdout, "5\n", done.stderr)

    def test_again_after_an_error(self):
        x = small_input()
        with torch.autograd.profiler.emit_itt():
            p = prof.profile(torch=True)
            with self.assertRaisesRegex(RuntimeError, "emit_itt"):
                p.start()
        with p:
            x.add(x)
        self.assertEqual(calls(p), {"aten::add": 1})
        self.assertFalse(is_observed())

    def test_what_raises_inside(self):
        x = small_input()
        with self.assertRaises(ZeroDivisionError), prof.profile(torch=True) as p:
            x.add(x)
            1 / 0
        self.assertEqual(calls(p), {"aten::add": 1})
        self.assertFalse(is_observed())

    def test_stopped_by_another_thread(self):
        """That thread gets an error. The one that has started it can stop what the other could not,
        and begin anew."""
        p, errors = prof.profile(torch=True), []

        def other():
            try:
                p.stop()
            except RuntimeError as e:
                errors.append(str(e))

        p.start()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        self.assertRegex(errors[0], "by the thread that has started it")
        p.stop()
        self.assertFalse(is_observed())

    def test_a_fork(self):
        with prof.profile(torch=True) as p:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    p.stop()
                    with prof.profile(torch=True) as own:
                        torch.ones(2).mul(2)
                    status = 0 if calls(own).get("aten::mul") == 1 else 2
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            torch.ones(2).add(1)
        self.assertEqual(calls(p)["aten::add"], 1)


if torch is None:
    del Profile

    class Torch(unittest.TestCase):
        def test_with_torch(self):
            self.skipTest("torch is not installed for this Python")


if __name__ == "__main__":
    unittest.main()
