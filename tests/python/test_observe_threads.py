"""Operators of all threads: those that are there, those that come, and those of a forked child."""

import collections
import subprocess
import sys
import threading
import unittest
import unittest.mock

from beside_torch import (
    bits,
    calls,
    calls_of,
    events_of,
    nested,
    nested_in,
    skip_without_torch,
    torch,
)
from hang_guard import HANG_SECONDS

import prof

ADDS = 5


def adds(x, count=ADDS):
    for _ in range(count):
        x = x.add(x)
    return x


def on_thread(work):
    """What it gave, or raised."""
    found = []

    def call():
        try:
            found.append((work(), None))
        except BaseException as e:
            found.append((None, e))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(HANG_SECONDS)
    value, error = found[0]
    if error is not None:
        raise error
    return value


def deep(x, depth):
    """Reentrant: the inner backward passes run inside of the outer ones, beyond a depth on threads
    of autograd's pool."""
    from torch.utils.checkpoint import checkpoint

    return (
        x.mul(2)
        if depth == 0
        else checkpoint(lambda y: deep(y, depth - 1).mul(3), x, use_reentrant=True)
    )


@skip_without_torch
class AllThreads(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.x = torch.ones(3)

    def test_threads_that_were_there_and_that_come(self):
        begun, may_go, ended = threading.Event(), threading.Event(), threading.Event()

        def early():
            begun.set()
            may_go.wait(HANG_SECONDS)
            self.x.mul(self.x)
            ended.set()

        thread = threading.Thread(target=early)
        thread.start()
        begun.wait(HANG_SECONDS)
        with prof.profile() as p, prof.torch.observe(profile_all_threads=True):
            may_go.set()
            ended.wait(HANG_SECONDS)
            on_thread(lambda: adds(self.x))
            self.x.sub(self.x)
        thread.join(HANG_SECONDS)
        self.x.mul(self.x)
        self.assertEqual(calls(p), {"aten::mul": 1, "aten::add": ADDS, "aten::sub": 1})
        self.assertEqual(len({e.thread for e in p.events()}), 3)

    def test_as_torch_profiler_has_them(self):
        """Its own option of that name; threads of Python, of autograd's pool, and of
        torch.jit.fork()."""
        from torch._C._profiler import _ExperimentalConfig

        def backward():
            z = torch.ones(4, requires_grad=True)
            deep(z, 70).sum().backward()
            return z.grad

        def work():
            found = [on_thread(backward), backward()]
            found.append(torch.jit.wait(torch.jit.fork(adds, self.x)))
            return [bits(value) for value in found]

        plain = work()
        with prof.profile() as p, prof.torch.observe(profile_all_threads=True):
            self.assertEqual(work(), plain)
        config = _ExperimentalConfig(profile_all_threads=True)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], experimental_config=config
        ) as theirs:
            self.assertEqual(work(), plain)
        theirs = events_of(theirs)
        self.assertEqual(calls(p), calls_of(theirs))
        self.assertEqual(collections.Counter(nested_in(p)), collections.Counter(nested(theirs)))

    def test_beside_those_of_a_thread_each_call_is_seen_once(self):
        """In either order of begins and of ends; autograd's threads, to which torch hands on the
        callbacks of a thread, too."""

        def work():
            z = torch.ones(4, requires_grad=True)
            deep(z, 3).sum().backward()
            on_thread(lambda: adds(self.x))

        with prof.profile() as p, prof.torch.observe(profile_all_threads=True):
            work()
        alone = calls(p)
        for first, second in ((True, False), (False, True)):
            for is_last_first in (True, False):
                with prof.profile() as p:
                    begun = [
                        prof.torch.observe(profile_all_threads=first),
                        prof.torch.observe(profile_all_threads=second),
                    ]
                    for o in begun:
                        o.start()
                    work()
                    of_all, of_thread = begun if first else begun[::-1]
                    left = begun[1 - is_last_first]
                    begun[is_last_first].stop()
                    work()
                    left.stop()
                    self.x.neg()
                expected = collections.Counter(alone)
                expected.update(alone if left is of_all else {**alone, "aten::add": 0})
                self.assertEqual(calls(p), {k: v for k, v in expected.items() if v})
                self.assertEqual((of_all.way, of_thread.way), ("callbacks", "callbacks"))

    def test_shapes_where_either_asks_for_them(self):
        for of_all, of_thread in ((True, False), (False, True), (False, False)):
            with (
                prof.profile(record_shapes=True) as p,
                prof.torch.observe(record_shapes=of_all, profile_all_threads=True),
                prof.torch.observe(record_shapes=of_thread),
            ):
                self.x.add(self.x)
                on_thread(lambda: self.x.mul(self.x))
            found = {e.name: e.input_shapes for e in p.events()}
            self.assertEqual(
                (bool(found["aten::add"]), bool(found["aten::mul"])), (of_all or of_thread, of_all)
            )
            self.assertEqual(len(p.events()), 2)

    def test_any_thread_stops_it_and_there_is_one(self):
        o = prof.torch.observe(profile_all_threads=True)
        o.start()
        self.addCleanup(o.stop)
        for another in (
            lambda: prof.torch.observe(profile_all_threads=True).start(),
            lambda: on_thread(prof.torch.observe(profile_all_threads=True).start),
        ):
            self.assertRaisesRegex(
                RuntimeError,
                "another observe.profile_all_threads=True. is on in this process",
                another,
            )
        self.assertRaisesRegex(RuntimeError, "has been started already", o.start)
        on_thread(o.stop)
        with prof.profile() as p:
            self.x.add(self.x)
            with prof.torch.observe(profile_all_threads=True):
                on_thread(lambda: self.x.mul(self.x))
        self.assertEqual(calls(p), {"aten::mul": 1})

    def test_threads_that_call_while_it_begins_and_ends(self):
        is_over, errors = threading.Event(), []

        def call():
            z = torch.ones(4, requires_grad=True)
            while not is_over.is_set():
                z.grad = None
                z.mul(3).sum().backward()
                if bits(z.grad) != bits(torch.full((4,), 3.0)):
                    errors.append(z.grad)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        with prof.profile() as p:
            for n in range(200):
                with prof.torch.observe(record_shapes=n % 2 == 0, profile_all_threads=True):
                    self.x.add(self.x)
            is_over.set()  # before the profile ends, so that no call is cut off by that
            for thread in threads:
                thread.join(HANG_SECONDS)
        self.assertEqual(errors, [])
        self.assertEqual(calls(p)["aten::add"], 200)
        self.assertEqual([e for e in p.events() if e.is_open], [])

    def test_a_child_begins_its_own(self):
        code = (
            "import os, prof.torch, torch\nx = torch.ones(3)\n"
            "o = prof.torch.observe(profile_all_threads=True); o.start()\nchild = os.fork()\n"
            "if child == 0:\n    with prof.profile() as p, "
            "prof.torch.observe(profile_all_threads=True): x.mul(x)\n"
            "    print([(a.key, a.count) for a in p.key_averages()], flush=True); os._exit(0)\n"
            "os.waitpid(child, 0)\nwith prof.profile() as p: x.add(x)\n"
            "print([(a.key, a.count) for a in p.key_averages()])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS
        )
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (0, "[('aten::mul', 1)]\n[('aten::add', 1)]\n", ""),
        )

    def test_modules_of_all_threads_once(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        with (
            prof.profile() as p,
            prof.torch.observe(with_modules=True, profile_all_threads=True),
            prof.torch.observe(with_modules=True),
        ):
            model(self.x)
            on_thread(lambda: model(self.x))
        found = [e.name for e in p.events() if e.name.startswith("nn.Module")]
        self.assertEqual(
            sorted(found),
            sorted(2 * ["nn.Module: Sequential_0", "nn.Module: Linear_0", "nn.Module: ReLU_0"]),
        )
        around = {e.name: e.cpu_parent.name for e in p.events() if e.cpu_parent is not None}
        self.assertEqual(
            (around["aten::linear"], around["nn.Module: ReLU_0"]),
            ("nn.Module: Linear_0", "nn.Module: Sequential_0"),
        )

    def test_where_the_callbacks_are_not_to_be_had(self):
        with unittest.mock.patch.object(prof.torch._torch, "calls", lambda: (None, "a test")):
            self.assertRaisesRegex(
                RuntimeError,
                "operators of all threads are seen by the dispatcher's callbacks alone, which are "
                "not to be had: a test",
                prof.torch.observe(profile_all_threads=True).start,
            )


if __name__ == "__main__":
    unittest.main()
