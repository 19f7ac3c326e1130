"""Which observe() names the calls of modules where several are on, which profile has rows of them,
and how many names there can be. Beside a stand-in for torch; test_observe_stacks.py and
test_observe_run.py have the real one."""

import contextlib
import sys
import threading
import types
import unittest
from unittest import mock


class _Hook:
    def __init__(self, among, call):
        self.among, self.call = among, call
        among.append(self)

    def remove(self):
        if self in self.among:
            self.among.remove(self)


before, after = [], []


class Module:
    """As torch.nn.Module."""

    def _wrapped_call_impl(self, *args):
        for hook in list(before):
            hook.call(self, args)
        try:
            return self.forward(*args)
        finally:
            for hook in list(after):
                hook.call(self, args, None)

    def forward(self, *args):
        return args

    __call__ = _wrapped_call_impl


class Linear(Module):
    pass


class Loss(Module):
    pass


class OwnCall:
    """What a program may put in the place of Module.__call__: it has no code."""

    def __get__(self, module, of):
        return self if module is None else module._wrapped_call_impl


def _make_torch():
    found = {
        name: types.ModuleType(name)
        for name in ("torch", "torch.nn", "torch.nn.modules", "torch.nn.modules.module")
    }
    found["torch"].__version__ = "9.0"
    found["torch.nn"].Module = Module
    hooks = found["torch.nn.modules.module"]
    hooks.register_module_forward_pre_hook = lambda call: _Hook(before, call)
    hooks.register_module_forward_hook = lambda call, always_call: _Hook(after, call)
    return found


sys.modules.update(_make_torch())
import prof  # noqa: E402 (it looks for torch)
import prof._torch_modules  # noqa: E402
import prof.torch  # noqa: E402

is_traced = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


class Base(unittest.TestCase):
    def setUp(self):
        no_operators = mock.patch.object(
            prof.torch.observe, "_choose", lambda self, torch: contextlib.nullcontext()
        )
        no_operators.start()
        self.addCleanup(no_operators.stop)
        self.linear = Linear()

    def tearDown(self):
        self.assertFalse(before or after)
        self.assertFalse(prof.functions._modules)
        self.assertFalse(prof.functions.is_traced())

    def rows(self, work=None, **options):
        with prof.profile(**options) as p:
            (work or self.work)()
        return self.rows_of(p)

    def rows_of(self, p):
        return {
            row.key[len("nn.Module: ") :]: row.count
            for row in p.key_averages()
            if row.key.startswith("nn.Module: ")
        }

    def work(self):
        for _ in range(3):
            self.linear(1)


@unittest.skipUnless(is_traced, "functions are traced in CPython alone")
class Beside(Base):
    """One that has modules for stacks alone, and one that requests rows."""

    LINEAR = {"Linear_0": 3}

    def test_rows_go_on_when_functions_are_traced_no_longer(self):
        with (
            prof.trace_functions() as tracing,
            prof.torch.observe(profile_all_threads=True, with_stack=True),
            prof.torch.observe(with_modules=True),
        ):
            self.assertEqual(self.rows(), self.LINEAR)
            tracing.stop()
            self.assertEqual(self.rows(), self.LINEAR)

    def test_rows_where_the_call_is_the_programs_own(self):
        with (
            mock.patch.object(Module, "__call__", OwnCall()),
            prof.torch.observe(profile_all_threads=True, with_stack=True),
            prof.torch.observe(with_modules=True),
        ):
            self.assertEqual(self.rows(), self.LINEAR)

    def test_rows_by_hooks_before_functions_are_traced(self):
        """Each call once."""
        with (
            prof.torch.observe(with_modules=True),
            prof.torch.observe(profile_all_threads=True, with_stack=True),
        ):
            self.assertEqual(self.rows(), self.LINEAR)
        with (
            prof.torch.observe(with_modules=True, profile_all_threads=True),
            prof.torch.observe(with_stack=True),
        ):
            self.assertEqual(self.rows(), self.LINEAR)

    def test_a_second_one_of_all_threads_gives_back_the_place(self):
        """That of python -m prof run, and the program's."""
        run = prof.torch.ObserveRun(with_modules=True, with_stack=True).start()
        try:
            for options in (
                {"with_stack": True},
                {"with_modules": True},
                {"with_stack": True, "with_modules": True},
            ):
                with self.subTest(**options):
                    self.assertEqual(self.rows(), self.LINEAR)
                    with prof.torch.observe(profile_all_threads=True, **options):
                        self.assertEqual(self.rows(), self.LINEAR)
                    self.assertEqual(self.rows(), self.LINEAR)
        finally:
            run.stop()

    def test_other_threads_have_the_frames_of_who_sees_all(self):
        def on_thread():
            thread = threading.Thread(target=self.linear, args=(1,))
            thread.start()
            thread.join()

        with (
            prof.torch.observe(profile_all_threads=True, with_stack=True),
            prof.torch.observe(with_modules=True),
        ):
            # each observe() counts those that it names
            self.assertEqual(
                self.rows(lambda: (Linear()(1), on_thread(), self.linear(1))),
                {"Linear_0": 2, "Linear_1": 1},
            )

    def test_an_interrupt_behind_the_begin(self):
        follow = prof.functions.follow_modules

        def interrupted(*arguments):
            follow(*arguments)
            raise KeyboardInterrupt

        for options in ({"with_stack": True}, {"with_modules": True}):
            with (
                mock.patch.object(prof._torch_modules, "follow_modules", interrupted),
                self.assertRaises(KeyboardInterrupt),
            ):
                prof.torch.observe(profile_all_threads=True, **options).start()
            self.assertFalse(prof.functions._modules, options)


class Names(Base):
    def test_who_comes_last_counts_anew_and_who_was_there_goes_on(self):
        for options in ({}, {"with_stack": True})[: 1 + is_traced]:
            with self.subTest(**options):
                first, second = Linear(), Linear()
                run = prof.torch.ObserveRun(with_modules=True, **options).start()
                try:
                    self.assertEqual(
                        self.rows(lambda: (first(1), second(1))), {"Linear_0": 1, "Linear_1": 1}
                    )
                    with (
                        prof.torch.observe(profile_all_threads=True, with_modules=True, **options),
                        prof.torch.observe(with_modules=True, **options),
                    ):
                        self.assertEqual(self.rows(lambda: second(1)), {"Linear_0": 1})
                    self.assertEqual(self.rows(lambda: second(1)), {"Linear_1": 1})
                finally:
                    run.stop()


class Shown(Base):
    """Rows of modules are of the profiles beside which somebody asked for them."""

    def observed(self, **options):
        return prof.torch.observe(with_modules=True, **options)

    @unittest.skipUnless(is_traced, "functions are traced in CPython alone")
    def test_a_profile_behind_has_none(self):
        def profiled():
            with prof.torch.observe(with_stack=True):
                return self.rows(with_stack=True)

        self.assertEqual(profiled(), {})
        with self.observed():
            self.assertEqual(self.rows(), {"Linear_0": 3})
        self.assertEqual(profiled(), {})

    def test_one_that_began_before_or_within_has_them(self):
        def work():
            with self.observed():
                self.work()

        self.assertEqual(self.rows(work), {"Linear_0": 3})
        with self.observed():
            p = prof.profile()
            p.start()
            self.work()
            self.assertEqual(self.rows_of(p), {"Linear_0": 3})  # while it records
            p.stop()
        self.assertEqual(self.rows_of(p), {"Linear_0": 3})

    def test_while_one_of_several_is_on(self):
        with self.observed():
            with self.observed(profile_all_threads=True):
                pass
            self.assertEqual(self.rows(), {"Linear_0": 3})

    def test_a_profile_that_is_begun_again_asks_again(self):
        p = prof.profile()
        for _ in range(2):
            with p, self.observed():
                self.work()
            self.assertEqual(self.rows_of(p), {"Linear_0": 3})
        with p, prof.scope("nn.Module: Linear_9", "python_function", 1):
            pass
        self.assertEqual(self.rows_of(p), {})


@unittest.skipUnless(
    sys.implementation.name == "cpython", "what nobody holds is gone at once in CPython alone"
)
class Bounds(Base):
    MAX = prof._torch_modules.GONE_MAX

    def profiled(self, work, **options):
        with prof.torch.observe(with_modules=True, **options):
            return self.rows(work)

    def test_a_class_of_which_each_step_has_one(self):
        """Its later ones have one name, and nobody keeps what is gone."""
        for options in ({}, {"with_stack": True})[: 1 + is_traced]:
            with self.subTest(**options):

                def work():
                    for _ in range(self.MAX + 500):
                        Loss()(1)
                    self.work()

                names = dict(prof.functions._module_places)
                observing = prof.torch.observe(with_modules=True, **options)
                with observing:
                    rows = self.rows(work)
                    self.assertEqual(set(observing._modules._names), {id(self.linear)})
                self.assertEqual(rows.pop("Linear_0"), 3)
                self.assertEqual(rows.pop("Loss"), 500)
                self.assertEqual(rows, {f"Loss_{number}": 1 for number in range(self.MAX)})
                if options:
                    self.assertEqual(
                        len(
                            prof.functions._module_places.keys()
                            - names.keys()
                            - {"nn.Module: Linear_0"}
                        ),
                        self.MAX + 1,
                    )

    def test_those_that_live_have_names_of_their_own(self):
        losses = [Loss() for _ in range(self.MAX + 500)]
        rows = self.profiled(lambda: [loss(1) for loss in losses])
        self.assertEqual(rows, {f"Loss_{number}": 1 for number in range(len(losses))})

    def test_each_has_its_own_number_all_the_same(self):
        with mock.patch.object(prof._torch_modules, "GONE_MAX", 2):
            with prof.profile() as p, prof.torch.observe(with_modules=True):
                for _ in range(4):
                    Loss()(1)
        found = [
            (e.name, e.args["Python module id"])
            for e in sorted(p.trace.events(), key=lambda e: e.start_ns)
            if e.name.startswith("nn.Module: ")
        ]
        self.assertEqual(
            found,
            [
                ("nn.Module: Loss_0", 0),
                ("nn.Module: Loss_1", 1),
                ("nn.Module: Loss", 2),
                ("nn.Module: Loss", 3),
            ],
        )


if __name__ == "__main__":
    unittest.main()
