"""How observe() is got when torch was there first, without the callbacks, with a collector named,
or for memory: each in a process of its own. make test-torch."""

import os
import subprocess
import sys
import unittest

from test_observe import torch

import prof
from prof import _torch_found


class Refusals(unittest.TestCase):
    def run_code(self, code, **variables):
        environment = {k: v for k, v in os.environ.items() if k != _torch_found.VARIABLE}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, **variables},
            capture_output=True,
            text=True,
        )
        return done.stdout.strip() + (done.stderr.strip().splitlines() or [""])[-1] * bool(
            done.returncode
        )

    def test_torch_first(self):
        code = (
            "import torch, prof; o = prof.torch.observe(record_shapes=True); o.start(); o.stop(); "
            "print(o.way)"
        )
        self.assertEqual(self.run_code(code), "callbacks")

    def test_the_first_one_disturbs_nothing(self):
        code = """
import prof.torch, torch
from torch._subclasses.fake_tensor import FakeTensorMode
before = torch.autograd._get_sequence_nr(), torch.random.get_rng_state().tolist()
with torch.profiler.profile(record_shapes=True) as theirs, torch.no_grad(), FakeTensorMode():
    with prof.torch.observe(record_shapes=True) as o:
        pass
after = (torch.autograd._get_sequence_nr(), torch.random.get_rng_state().tolist())
print(o.way, o.reason, len(theirs.events()), before == after)
"""
        self.assertEqual(self.run_code(code, KINETO_LOG_LEVEL="99"), "callbacks  0 True")

    def test_torch_first_without_callbacks(self):
        code = (
            "import torch, prof; prof.torch._torch.calls = lambda: (None, 'a test'); "
            "prof.torch.observe().start()"
        )
        self.assertRegex(
            self.run_code(code),
            "^RuntimeError: prof: torch was imported before "
            "prof.torch.*INTEL_LIBITTNOTIFY64=/.*libprof_itt.so",
        )

    def test_torch_first_in_a_program_that_names_the_collector(self):
        code = (
            "import torch, prof\nwith prof.profile() as p, prof.torch.observe(): torch.ones(1)\n"
            "print(len(p.key_averages()))"
        )
        self.assertEqual(self.run_code(code, INTEL_LIBITTNOTIFY64=prof.torch.collector()), "3")

    def test_a_profile_of_torchs_that_was_imported_first(self):
        code = (
            "import torch, prof\nwith prof.profile(torch=True) as p: torch.relu(torch.ones(3))\n"
            "print(len(p.key_averages()))"
        )
        self.assertEqual(self.run_code(code), "5")
        without = code.replace(
            "import torch, prof",
            "import torch, prof; prof.torch._torch.calls = lambda: (None, 'a test')",
        )
        self.assertRegex(
            self.run_code(without), "^RuntimeError: prof: torch was imported before prof.torch"
        )
        self.assertEqual(self.run_code(without, INTEL_LIBITTNOTIFY64=prof.torch.collector()), "5")

    def test_shapes_need_no_itt(self):
        code = (
            "import torch, prof\nwith prof.profile() as p, prof.torch.observe(record_shapes=True): "
            "torch.relu(torch.ones(3))\nprint(p.events()[-2].input_shapes)"
        )
        self.assertEqual(self.run_code(code), "[[3]]")

    def test_memory_needs_no_preload(self):
        code = """
import prof, prof.torch, torch
with prof.profile(profile_memory=True) as p, prof.torch.observe(profile_memory=True):
    kept = torch.empty(1 << 20)
print(next(e for e in p.events() if e.name == 'aten::empty').self_cpu_memory_usage)
"""
        self.assertEqual(self.run_code(code), str(4 << 20))
        without = code.replace(
            "torch\nwith", "torch\nprof.torch._torch.memory = lambda: (None, 'a test')\nwith"
        )
        self.assertRegex(
            self.run_code(without),
            r"^RuntimeError: prof: the memory of PyTorch's operators cannot be recorded by its "
            r"own reports \(a test\).*python -m prof run --profile-memory, or with "
            r"LD_PRELOAD=/.*libprof_memory.so and PROF_MEMORY=1$",
        )
        preload = os.path.join(os.path.dirname(prof.torch.collector()), "libprof_memory.so")
        for one in (code, without):  # then malloc() has each allocation, torch's too: once
            self.assertEqual(int(self.run_code(one, LD_PRELOAD=preload, PROF_MEMORY="1")) >> 20, 4)

    def test_the_environment_is_as_before(self):
        self.assertEqual(
            self.run_code(
                "import os, prof; prof.torch; print(os.environ.get('INTEL_LIBITTNOTIFY64'))"
            ),
            "None",
        )

    def test_no_line_of_python(self):
        code = (
            "import torch\nwith torch.autograd.profiler.emit_itt(): torch.ones(1)\n"
            "import prof; print(prof.profiler.total('aten::ones')[1])"
        )
        self.assertEqual(
            self.run_code(code, INTEL_LIBITTNOTIFY64=prof.torch.collector(), PROF_LEVEL="1"), "1"
        )


if torch is None:
    del Refusals

    class Torch(unittest.TestCase):
        def test_with_torch(self):
            self.skipTest("torch is not installed for this Python")


if __name__ == "__main__":
    unittest.main()
