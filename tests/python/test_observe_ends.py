"""How prof.torch.observe() ends where nobody stops it, or not where it began, and torch.profiler beside it on other threads: torch's state is right afterwards, and nothing is said on stderr. make test-torch."""

import subprocess
import sys
import threading
import unittest

from beside_torch import calls, calls_of, seen_by_prof, seen_by_torch, skip_without_torch, torch

import prof


@skip_without_torch
class NeverStopped(unittest.TestCase):
    def run_code(self, code):
        done = subprocess.run([sys.executable, "-c", "import os, prof, prof.torch, threading, torch\nx, o = torch.ones(3), prof.torch.observe()\n" + code], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def test_at_the_end_of_the_program(self):
        self.assertEqual(self.run_code("o.start(); prof.profiler.start(); x.add(x); print(prof.profiler.total('aten::add')[1])"), "1")

    def test_at_the_end_of_a_child(self):
        """It leaves as a program does, by its handlers; then its parent."""
        code = "import sys; o.start()\nchild = os.fork()\nif child == 0: x.mul(x); sys.exit(0)\nprint(os.waitpid(child, 0)[1], torch.equal(x.add(x), x * 2))"
        self.assertEqual(self.run_code(code), "0 True")

    def test_of_many_only_the_running_one_is_kept(self):
        self.assertEqual(self.run_code("import gc, weakref\no.start(); o.stop(); gone = weakref.ref(o); del o; gc.collect(); print(gone())"), "None")


@skip_without_torch
class OtherThreads(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(3)

    def in_thread(self, work):
        found = []
        thread = threading.Thread(target=lambda: found.append(work()))
        thread.start()
        thread.join(60)
        return found[0]

    def test_torch_profiler_on_another_thread(self):
        def work():
            self.x.add(self.x)
            work.theirs = self.in_thread(lambda: calls_of(seen_by_torch(lambda: self.x.mul(self.x))))
            self.x.add(self.x)

        self.assertEqual(calls(seen_by_prof(work)), {"aten::add": 2})
        self.assertEqual(work.theirs, {"aten::mul": 1})

    def test_observed_while_another_thread_is_in_torch_profiler(self):
        def work():
            work.mine = self.in_thread(lambda: calls(seen_by_prof(lambda: self.x.mul(self.x))))
            self.x.add(self.x)

        self.assertEqual(calls_of(seen_by_torch(work)), {"aten::add": 1})
        self.assertEqual(work.mine, {"aten::mul": 1})

    def test_stopped_on_another_thread(self):
        o = prof.torch.observe()
        o.start()

        def stop():
            with self.assertRaisesRegex(RuntimeError, "by the thread that has started it"):
                o.stop()

        self.in_thread(stop)
        with prof.profile() as p:
            self.x.add(self.x)
        o.stop()
        with prof.profile() as q:
            self.x.add(self.x)
        self.assertEqual([calls(p), calls(q)], [{"aten::add": 1}, {}])


if __name__ == "__main__":
    unittest.main()
