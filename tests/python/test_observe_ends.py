"""How prof.torch.observe() ends without a stop, or away from where it began, with torch.profiler
beside it on other threads. Torch's state is right afterwards, and nothing is said on stderr. make
test-torch."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import unittest
import unittest.mock
import warnings

from beside_torch import calls, calls_of, seen_by_prof, seen_by_torch, skip_without_torch, torch
from hang_guard import HANG_SECONDS
from test_observe import is_observed

import prof
from prof import functions


@skip_without_torch
class NeverStopped(unittest.TestCase):
    def run_code(self, code):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import os, prof, prof.torch, threading, torch\n"
                "x, o = torch.ones(3), prof.torch.observe()\n" + code,
            ],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def test_at_the_end_of_the_program(self):
        self.assertEqual(
            self.run_code(
                "o.start(); prof.profiler.start(); x.add(x); "
                "print(prof.profiler.total('aten::add')[1])"
            ),
            "1",
        )

    def test_at_the_end_of_a_child(self):
        """It leaves as a program does, by its handlers; then its parent."""
        code = (
            "import sys; o.start()\nchild = os.fork()\nif child == 0: x.mul(x); sys.exit(0)\n"
            "print(os.waitpid(child, 0)[1], torch.equal(x.add(x), x * 2))"
        )
        self.assertEqual(self.run_code(code), "0 True")

    def test_a_child_begins_its_own(self):
        """The one that was on when it was forked is its parent's."""
        code = (
            "p = prof.profile(torch=True); p.start(); child = os.fork()\nif child == 0:\n"
            "    with prof.profile(torch=True) as q: x.mul(x)\n"
            "    print([(a.key, a.count) for a in q.key_averages()], flush=True); os._exit(0)\n"
            "os.waitpid(child, 0); x.add(x); p.stop(); print([(a.key, a.count) for a in "
            "p.key_averages()])"
        )
        self.assertEqual(self.run_code(code), "[('aten::mul', 1)]\n[('aten::add', 1)]")

    def test_of_many_only_the_running_one_is_kept(self):
        self.assertEqual(
            self.run_code(
                "import gc, weakref\no.start(); o.stop(); gone = weakref.ref(o); del o; "
                "gc.collect(); print(gone())"
            ),
            "None",
        )


@skip_without_torch
class NobodyHolds(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(3)

    def counted(self):
        with prof.profile() as p:
            self.x.add(self.x)
        return {a.key: a.count for a in p.key_averages()}

    def test_one_of_the_thread_and_one_of_all(self):
        for options in (
            {},
            {"record_shapes": True, "with_modules": True},
            {"profile_all_threads": True},
        ):
            with self.subTest(**options):
                prof.torch.observe(**options).start()
                self.assertEqual(self.counted(), {"aten::add": 1})
                prof.torch.stop()
                self.assertEqual(self.counted(), {})
        prof.torch.observe().start()
        prof.torch.observe(profile_all_threads=True).start()
        prof.torch.stop()
        self.assertEqual(self.counted(), {})
        with prof.torch.observe():  # there is room for another
            self.assertEqual(self.counted(), {"aten::add": 1})
        prof.torch.stop()  # none

    def test_of_a_thread_that_has_ended(self):
        """Whoever holds it can end it, and its tracing of functions."""
        for options in ({}, {"record_shapes": True, "with_modules": True}, {"with_stack": True}):
            with self.subTest(**options):
                held = prof.torch.observe(**options)
                thread = threading.Thread(target=held.start)
                thread.start()
                thread.join()
                self.assertEqual(prof.functions.is_traced(), "with_stack" in options)
                held.stop()
                self.assertFalse(prof.functions.is_traced())
                with held:
                    self.assertEqual(self.counted()["aten::add"], 1)
                self.assertNotIn("aten::add", self.counted())
        begun = []
        thread = threading.Thread(
            target=lambda: begun.append(prof.profile(torch=True, with_stack=True).__enter__())
        )
        thread.start()
        thread.join()
        begun[0].stop()
        self.assertFalse(prof.functions.is_traced())

    def test_inside_of_a_backward_call(self):
        """autograd brings back what the thread had, behind it."""
        x = torch.ones(3, requires_grad=True)

        def ended_in(hook, **options):
            p = prof.profile(torch=True, **options)
            y = x * x
            y.register_hook(lambda gradient: (hook(p), gradient)[1])
            p.start()
            y.sum().backward()
            return p

        for hook in (lambda p: p.stop(), lambda p: p.step()):
            for _ in range(3):
                p = ended_in(hook, schedule=prof.schedule(wait=0, warmup=0, active=1, repeat=1))
                self.assertEqual(self.counted(), {})
                p.stop()
                self.assertEqual(self.counted(), {})
            with prof.profile(torch=True) as p:
                (x * x).sum().backward()
            self.assertEqual(
                {
                    a.key: a.count
                    for a in p.key_averages()
                    if a.key in ("aten::mul", "MulBackward0")
                },
                {"aten::mul": 3, "MulBackward0": 1},
            )
        with self.assertWarnsRegex(RuntimeWarning, "Begin outside of it"):
            y = x * x
            y.register_hook(lambda gradient: (prof.torch.observe().start().stop(), gradient)[1])
            y.sum().backward()

    def test_what_somebody_holds_is_ended_once(self):
        with prof.torch.observe() as held:
            prof.torch.stop()
            self.assertEqual(self.counted(), {})
            with prof.torch.observe():
                held.stop()
                self.assertEqual(self.counted(), {"aten::add": 1})

    def test_other_threads_keep_theirs(self):
        done, found = threading.Event(), []

        def work():
            with prof.torch.observe():
                begun.set()
                done.wait(HANG_SECONDS)
                found.append(self.counted())

        begun = threading.Event()
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait(HANG_SECONDS)
        prof.torch.stop()
        done.set()
        thread.join(HANG_SECONDS)
        self.assertEqual(found, [{"aten::add": 1}])


def in_a_hook(hook, following=lambda: None):
    """Calls them inside of a backward call, each in a node of its own, and gives what the first one
    gave."""
    x, given = torch.ones(3, requires_grad=True), []
    y = x * x
    y.register_hook(lambda gradient: given.append(hook()))
    x.register_hook(lambda gradient: following())
    y.sum().backward()
    return given[0]


def count_of(work):
    with prof.profile() as p:
        work()
    return {row.key: row.count for row in p.key_averages()}.get("aten::add", 0)


@skip_without_torch
@unittest.skipIf(
    torch is None or not hasattr(torch._C, "_current_graph_task_id"),
    "this torch does not say whether it is in a backward call",
)
class InABackwardCall(unittest.TestCase):
    """There autograd gives this thread the callbacks that it had when the call began, for each node
    anew, and puts back what it had behind it."""

    def setUp(self):
        self.x = torch.ones(3)
        left = contextlib.ExitStack()
        self.addCleanup(left.close)
        left.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        self.addCleanup(prof.torch.stop)

    def counted(self):
        return count_of(lambda: self.x.add(self.x))

    def test_stopped_while_another_thread_is_observed(self):
        """The callback that autograd has put back is this thread's: it is silent, whoever else is
        observed."""
        begun, done = threading.Event(), threading.Event()

        def work():
            with prof.torch.observe():
                begun.set()
                done.wait(HANG_SECONDS)

        thread = threading.Thread(target=work)
        thread.start()
        begun.wait(HANG_SECONDS)
        for options in ({}, {"record_shapes": True}):
            with self.subTest(**options):
                held = prof.torch.observe(**options).start()
                self.assertEqual(in_a_hook(lambda: (held.stop(), self.counted())[1]), 0)
                self.assertEqual(self.counted(), 0)
                with prof.torch.observe():
                    self.assertEqual(self.counted(), 1)
        done.set()
        thread.join(HANG_SECONDS)

    def test_stopped_and_begun(self):
        """It goes on behind the backward call, each operator once, and nobody is warned: there it
        was before."""
        for options in ({}, {"record_shapes": True}):
            with self.subTest(**options):
                held = prof.torch.observe(**options).start()
                following = []
                self.assertEqual(
                    in_a_hook(
                        lambda: (held.stop(), held.start(), self.counted())[2],
                        lambda: following.append(self.counted()),
                    ),
                    1,
                )
                self.assertEqual((following, self.counted()), ([1], 1))
                held.stop()
                self.assertEqual(self.counted(), 0)

    def test_a_step_of_a_schedule(self):
        warnings.filterwarnings("ignore", "Profiler clears events")  # it comes once a process
        with prof.profile(
            torch=True, schedule=lambda step: prof.ProfilerAction.RECORD_AND_SAVE
        ) as p:
            in_a_hook(lambda: (self.x.add(self.x), p.step(), self.x.add(self.x)))
            self.x.add(self.x)
        self.assertEqual(calls(p)["aten::add"], 2)

    def test_stopped_and_another_begun_with_shapes(self):
        warnings.simplefilter("ignore")
        held, other = prof.torch.observe(), prof.torch.observe(record_shapes=True)
        held.start()
        self.assertEqual(in_a_hook(lambda: (held.stop(), other.start(), self.counted())[2]), 1)
        other.stop()
        self.assertEqual(self.counted(), 0)

    def test_all_threads_stopped_on_a_thread_that_ends(self):
        """Autograd does not put back the state of all threads. It goes at once, because no other
        thread could remove it later."""
        held = prof.torch.observe(profile_all_threads=True).start()
        thread = threading.Thread(target=lambda: in_a_hook(held.stop))
        thread.start()
        thread.join(HANG_SECONDS)
        with held:
            self.assertEqual(self.counted(), 1)
        self.assertEqual(self.counted(), 0)

    def test_a_thread_of_autograds_own_that_observes_itself(self):
        """Deeper than autograd's own limit of 60 its threads run a hook, with the callbacks of the
        thread that they work for."""
        warnings.simplefilter("ignore")
        found = []

        def deepest():
            with prof.torch.observe():
                found.append(
                    (self.counted(), threading.current_thread() is threading.main_thread())
                )

        def nest(depth):
            with torch.enable_grad():
                in_a_hook(deepest if depth == 0 else lambda: nest(depth - 1))

        with prof.torch.observe():
            nest(70)
        self.assertEqual(found, [(1, False)])

    def test_what_is_gone_is_not_asked_for(self):
        """Torch would write to stderr that it does not find it."""
        code = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from test_observe_ends import count_of, in_a_hook
warnings.simplefilter("ignore")
add, o = lambda: x.add(x), prof.torch.observe()
def in_an_inner_call():
    o.start()
    with torch.enable_grad():
        in_a_hook(o.stop)
    found = [count_of(add)]
    o.start(); found.append(count_of(add)); o.stop()
    return found
def twice():
    return (o.start().stop(), o.start(), count_of(add), o.stop())[2]
cases = (twice, None), (o.start, None), (o.start, o.stop), (in_an_inner_call, None)
for hook, following in cases:
    found = in_a_hook(hook, following or (lambda: None))
    print(found if found is not o else "begun", count_of(add))
    o.stop()
    with o: print(count_of(add))
o.start(); in_a_hook(o.stop)
"""
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import prof, prof.torch, torch\nx = torch.ones(3)" + code,
                os.path.dirname(__file__),
            ],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual(
            (done.stderr, done.stdout.splitlines()),
            ("", ["1 0", "1", "begun 0", "1", "begun 0", "1", "[0, 1] 0", "1"]),
        )


@skip_without_torch
class OtherThreads(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(3)

    def in_thread(self, work):
        found = []
        thread = threading.Thread(target=lambda: found.append(work()))
        thread.start()
        thread.join(HANG_SECONDS)
        return found[0]

    def test_torch_profiler_on_another_thread(self):
        def work():
            self.x.add(self.x)
            work.theirs = self.in_thread(
                lambda: calls_of(seen_by_torch(lambda: self.x.mul(self.x)))
            )
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

    def test_a_profile_that_another_thread_collects(self):
        """It cannot be stopped there; the next one of its own thread ends it."""
        held = [prof.profile(torch=True, with_stack=True)]
        held.append(held)
        held[0].start()
        del held
        self.in_thread(gc.collect)
        self.assertEqual(calls(seen_by_prof(lambda: self.x.add(self.x))), {"aten::add": 1})
        self.assertFalse(functions.is_traced())

    def test_begun_again_behind_a_stop_on_another_thread(self):
        p = prof.profile(torch=True)
        p.start()
        self.x.add(self.x)

        def stop():
            with self.assertRaisesRegex(RuntimeError, "by the thread that has started it"):
                p.stop()

        self.in_thread(stop)
        self.assertEqual(calls(p), {"aten::add": 1})
        with p:
            self.x.mul(self.x)
        self.assertEqual(calls(p), {"aten::mul": 1})

    def test_a_start_that_fails_keeps_what_was_recorded(self):
        with prof.profile(torch=True) as p:
            self.x.add(self.x)
        with prof.torch.observe(), self.assertRaisesRegex(RuntimeError, "another observe"):
            p.start()
        self.assertEqual(calls(p), {"aten::add": 1})


@skip_without_torch
class Interrupted(unittest.TestCase):
    """stop() has begun, and a handler of signals raises somewhere inside: the next stop() does what
    is left."""

    def test_each_step_of_the_end(self):
        model, x = torch.nn.Linear(3, 3), torch.ones(1, 3)
        hooks = sys.modules["torch.nn.modules.module"]
        for where in (
            "prof._torch_modules.Modules.remove",
            "prof.torch.ByCalls.__exit__",
            "prof.torch.end_stacks",
            "prof.functions.gc",
            "prof.torch.atexit",
            "prof._recording._set_stacks",
        ):
            p = prof.profile(torch=True, with_stack=True, with_modules=True)
            p.start()
            model(x)
            with unittest.mock.patch(
                where,
                side_effect=KeyboardInterrupt,
                **({"callbacks": Interrupting()} if where.endswith(".gc") else {}),
            ) as raising:
                raising.unregister.side_effect = KeyboardInterrupt
                with self.subTest(where), self.assertRaises(KeyboardInterrupt):
                    p.stop()
            p.stop()
            self.assertEqual(
                (
                    is_observed(),
                    functions.is_traced(),
                    dict(hooks._global_forward_hooks),
                    dict(hooks._global_forward_pre_hooks),
                ),
                (False, False, {}, {}),
                where,
            )
            self.assertEqual(calls(seen_by_prof(lambda: x.add(x))), {"aten::add": 1}, where)

    def test_behind_what_c_does_in_a_start(self):
        """The callbacks are there when the handler raises, and nobody has been told of them."""
        x, library = torch.ones(3), prof.torch._torch.calls()[0].library
        add = library.prof_i_torch_add_1

        def interrupted(*arguments):
            add(*arguments)
            raise KeyboardInterrupt

        for options in ({}, {"profile_all_threads": True}, {"record_shapes": True}):
            prof.torch.observe(**options).start().stop()  # it gives what is to be stopped
            observe = prof.torch.observe(**options)
            with (
                unittest.mock.patch.object(library, "prof_i_torch_add_1", interrupted),
                self.assertRaises(KeyboardInterrupt),
            ):
                observe.start()
            with prof.profile() as p:
                x.add(x)
            self.assertEqual({row.key: row.count for row in p.key_averages()}, {}, options)
            with prof.profile() as p, observe:
                x.add(x)
            self.assertEqual(
                {row.key: row.count for row in p.key_averages()}, {"aten::add": 1}, options
            )


class Interrupting:
    def __contains__(self, _):
        raise KeyboardInterrupt


if __name__ == "__main__":
    unittest.main()
