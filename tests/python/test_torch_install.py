"""prof.torch.install(): code that uses torch.profiler gets prof's, whichever way it has imported
it. make test-torch."""

import inspect
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from pathlib import Path
from unittest import mock

from beside_torch import skip_without_torch, torch
from hang_guard import HANG_SECONDS

import prof

WARNS = """
import warnings
from prof.torch import profile, record_function, schedule

with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=2)) as p:
        for _ in range(3):
            with record_function("work"):
                pass
            p.step()
print([(w.filename == __file__, w.lineno) for w in found if "clears events" in str(w.message)])
"""

LIBRARY = """
import torch
from torch.profiler import profile, schedule as make_schedule, tensorboard_trace_handler
import torch.profiler as profiler_module

class Hook:
    '''As mmengine's ProfilerHook and Lightning's PyTorchProfiler are made.'''

    def __init__(self, folder, by):
        of_torch = torch.profiler.profile
        make = {"name": profile, "module": profiler_module.profile, "torch": of_torch}[by]
        self.profiler = make(
            activities=[torch.profiler.ProfilerActivity.CPU],
            schedule=make_schedule(wait=0, warmup=1, active=2, repeat=1),
            on_trace_ready=tensorboard_trace_handler(folder),
            record_shapes=True,
            profile_memory=True,
        )

    def run(self, steps):
        self.profiler.start()
        for _ in range(steps):
            with torch.profiler.record_function("forward"):
                torch.mm(torch.ones(3, 4), torch.ones(4, 5))
            self.profiler.step()
        self.profiler.stop()
        return self.profiler
"""


@skip_without_torch
class Install(unittest.TestCase):
    def setUp(self):
        self.library = types.ModuleType("a_library")
        sys.modules["a_library"] = self.library
        self.addCleanup(sys.modules.pop, "a_library")
        exec(LIBRARY, vars(self.library))
        self.before = self.names()

    def names(self):
        homes = (
            torch.profiler,
            torch.profiler.profiler,
            self.library,
            torch.autograd.profiler,
        )
        return [
            {name: value for name, value in vars(home).items() if name != "Hook"} for home in homes
        ]

    def test_a_warning_names_the_users_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(WARNS)
            script.flush()
            done = subprocess.run(
                [sys.executable, script.name],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                check=False,
            )
        self.assertEqual((done.stdout, done.returncode), ("[(True, 11)]\n", 0), done.stderr)

    def test_a_library_that_was_imported_before(self):
        for by in ("name", "module", "torch"):
            with self.subTest(by), tempfile.TemporaryDirectory() as folder, prof.torch.install():
                profile = self.library.Hook(folder, by).run(3)
                self.assertIsInstance(profile, prof.profile)
                self.assertIsInstance(profile, torch.profiler.profile)
                counts = {
                    row.key: row.count for row in profile.key_averages(group_by_input_shape=True)
                }
                self.assertEqual((counts["aten::mm"], counts["forward"]), (2, 2))
                self.assertEqual(
                    {
                        row.cpu_memory_usage
                        for row in profile.key_averages()
                        if row.key == "aten::mm"
                    },
                    {2 * 3 * 5 * 4},
                )
                self.assertEqual(len(list(Path(folder).glob("*.pt.trace.json"))), 1)
        self.assertEqual(self.names(), self.before)

    def test_options_have_torchs_names_order_and_defaults(self):
        """As code that looks for them finds them. Lightning's PyTorchProfiler passes those alone
        that inspect.signature() names."""

        def options(made):
            words = inspect.signature(made).parameters.values()
            return [(word.name, word.kind, word.default) for word in words]

        def all_of_them():
            made = torch.profiler, torch.autograd.profiler
            names = "profile", "schedule", "tensorboard_trace_handler"
            found = {name: options(getattr(made[0], name)) for name in names}
            found["__init__"] = options(made[0].profile.__init__)
            found["before"] = options(made[1].profile.__init__)
            return found

        theirs = all_of_them()
        with prof.torch.install():
            ours = all_of_them()
        ours["prof.torch"] = options(prof.torch.profile.__init__)
        theirs["prof.torch"] = theirs["__init__"]
        for made, words in theirs.items():
            # The first one's default is the release's. Torch has dropped the second one.
            known = {name for name, _, _ in words} - {"use_cuda", "use_mtia"}
            with self.subTest(made):
                self.assertEqual(
                    [word for word in ours[made] if word[0] in known],
                    [word for word in words if word[0] in known],
                )

    def test_options_that_are_chosen_by_the_signature(self):
        wanted = {"record_shapes": True, "profile_memory": True, "no_such": 1}
        with prof.torch.install():
            make = torch.profiler.profile
            known = inspect.signature(make.__init__).parameters
            with make(**{k: v for k, v in wanted.items() if k in known}) as p:
                torch.mm(torch.ones(3, 4), torch.ones(4, 5))
        self.assertTrue(p.record_shapes and p.profile_memory)
        shapes = [e.input_shapes for e in p.events() if e.name == "aten::mm"]
        self.assertEqual(shapes, [[[3, 4], [4, 5]]])

    def test_it_is_taken_back_once(self):
        prof.torch.install()
        prof.torch.install()
        self.assertIsNot(self.library.profile, self.before[2]["profile"])
        self.library.make_schedule = mine = object()
        prof.torch.uninstall()
        prof.torch.uninstall()
        self.assertIs(self.library.make_schedule, mine)  # somebody else's stays
        self.library.make_schedule = self.before[2]["make_schedule"]
        self.assertEqual(self.names(), self.before)

    def test_what_is_imported_meanwhile(self):
        with prof.torch.install():
            exec(LIBRARY, vars(self.library))
            with tempfile.TemporaryDirectory() as folder:
                self.assertIsInstance(self.library.Hook(folder, "name").profiler, prof.profile)
            self.assertIs(torch.profiler.ProfilerAction.RECORD, prof.ProfilerAction.RECORD)
        self.assertEqual(self.names(), self.before)

    def test_a_thread_knows_of_its_profile(self):
        """By torch.autograd._profiler_enabled(), as torch's own profile reports it."""
        import threading

        def enabled():
            return torch.autograd._profiler_enabled()

        def of_another_thread():
            found = []
            thread = threading.Thread(target=lambda: found.append(enabled()))
            thread.start()
            thread.join()
            return found[0]

        def seen():
            found = [enabled()]
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
                found += [enabled(), of_another_thread()]
            return [*found, enabled()]

        theirs, before = seen(), torch.autograd._profiler_enabled
        own = torch.profiler.profile
        with prof.torch.install():
            self.assertEqual(seen(), theirs)
            with own():
                self.assertTrue(enabled())
        self.assertEqual(theirs, [False, True, False, False])
        self.assertIs(torch.autograd._profiler_enabled, before)

    def test_the_last_rows_are_torchs(self):
        """A profile's span, its row's place, and the marks of its begin and end."""

        def last_rows(folder):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
                torch.ones(3)
            path = os.path.join(folder, "trace.json")
            p.export_chrome_trace(path)
            with open(path, encoding="utf-8") as f:
                rows = json.load(f)["traceEvents"][-4:]
            return [{k: v for k, v in row.items() if k not in ("ts", "dur")} for row in rows]

        with tempfile.TemporaryDirectory() as folder:
            theirs = last_rows(folder)
            with prof.torch.install():
                self.assertEqual(last_rows(folder), theirs)
        self.assertEqual(theirs[0]["name"], "PyTorch Profiler (0)")

    def test_of_a_script(self):
        """Whatever imports it, and when."""
        script = """if True:
            import torch
            from torch.profiler import profile
            with profile() as p:
                torch.ones(3)
            print(type(p).__module__, sorted(row.key for row in p.key_averages()))
        """
        words = [sys.executable, "-m", "prof", "run", "-q", "--replace-torch-profiler", "-"]
        done = subprocess.run(
            words, input=script, capture_output=True, text=True, timeout=HANG_SECONDS
        )
        self.assertEqual(
            (done.returncode, done.stdout),
            (0, "prof._torch_install ['aten::empty', 'aten::fill_', 'aten::ones']\n"),
            done.stderr,
        )

    def test_the_profiler_of_before(self):
        """torch.autograd.profiler.profile, whose words are other ones."""
        from torch.autograd.profiler import profile as before

        with prof.torch.install():
            make = torch.autograd.profiler.profile
            with make(record_shapes=True, use_kineto=True) as p:
                torch.mm(torch.ones(3, 4), torch.ones(4, 5))
            with make(enabled=False) as nothing:
                torch.ones(3)
            idle = make()
            with self.assertRaises(AssertionError):
                make(use_cpu=False)
            with self.assertWarnsRegex(UserWarning, "not a valid device option"):
                self.assertIsNone(make(use_device="toaster").use_device)
        self.assertIs(torch.autograd.profiler.profile, before)
        self.assertIsInstance(p, prof.profile)
        self.assertIsNone(nothing)
        self.assertEqual(str(idle), "<unfinished torch.autograd.profile>")
        calls = p.function_events
        self.assertIs(calls, p.function_events)
        self.assertEqual(
            [e.input_shapes for e in calls if e.name == "aten::mm"], [[[3, 4], [4, 5]]]
        )
        self.assertIn("aten::mm", str(p))
        self.assertIn("aten::mm", p.table(sort_by="cpu_time_total", row_limit=5))
        total = p.total_average()
        self.assertEqual((total.key, total.count), ("Total", len(calls)))
        self.assertAlmostEqual(p.self_cpu_time_total, total.self_cpu_time_total)

    def test_the_profiler_of_before_is_entered_once(self):
        def second(make):
            p, idle = make(), make(enabled=False)
            with p:
                torch.ones(3)
            for _ in range(2):
                with idle:
                    torch.ones(3)
            with self.assertRaises(RuntimeError) as raised, p:
                torch.zeros(3)
            names = {e.name for e in p.function_events}
            return str(raised.exception), "aten::ones" in names, "aten::zeros" in names

        theirs = second(torch.autograd.profiler.profile)
        with prof.torch.install():
            self.assertEqual(second(torch.autograd.profiler.profile), theirs)
        self.assertEqual(theirs[1:], (True, False))

    def test_classes_are_of_torchs_kind(self):
        """As torch's: profile is derived from _KinetoProfile, which records without a schedule."""
        with prof.torch.install():
            base, derived = torch.profiler._KinetoProfile, torch.profiler.profile
            self.assertTrue(issubclass(derived, base))
            self.assertIsInstance(derived(), base)
            self.assertNotIn("schedule", inspect.signature(base.__init__).parameters)
            with self.assertRaises(TypeError):
                base(schedule=None)
            p = base(record_shapes=True)
            p.start()
            torch.mm(torch.ones(3, 4), torch.ones(4, 5))
            p.stop()
        self.assertIsInstance(p, prof.profile)
        shapes = [e.input_shapes for e in p.events() if e.name == "aten::mm"]
        self.assertEqual(shapes, [[[3, 4], [4, 5]]])
        self.assertIs(torch.profiler.profile.__mro__[1], torch.profiler._KinetoProfile)

    def test_what_others_of_torch_are_told(self):
        """Kineto's count of steps, where its daemon is on; torch's log of what is left out; and
        the rows in which Kineto's traces end."""
        tracker = torch.autograd.profiler.KinetoStepTracker
        with prof.torch.install():
            for daemon, steps in (("1", 3), ("", 0)):
                with mock.patch.dict(os.environ, KINETO_USE_DAEMON=daemon):
                    before = tracker.current_step()
                    with torch.profiler.profile(post_processing_timeout_s=0) as p:
                        for _ in range(3):
                            p.step()
                    self.assertEqual(tracker.current_step() - before, steps)
            with self.assertLogs("torch.autograd.profiler") as said, self.assertWarns(Warning):
                p.events()
        self.assertIn("timed out after 0.000 seconds, returning partial results", said.output[0])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trace.json")
            p.export_chrome_trace(str(path))
            last = [e["name"] for e in json.loads(path.read_text("utf-8"))["traceEvents"][-2:]]
        self.assertEqual(last, ["Iteration Start: PyTorch Profiler", "Record Window End"])

    def test_what_torch_makes_of_it_itself(self):
        """A class that was derived before is made of torch's own, and goes on with that."""

        class Derived(torch.profiler.profile):
            pass

        with prof.torch.install():
            plan = torch.profiler.schedule(wait=1, warmup=1, active=1)
            cpu = [torch.profiler.ProfilerActivity.CPU]
            with Derived(activities=cpu, schedule=plan) as p:
                for _ in range(3):
                    torch.ones(3)
                    p.step()
            self.assertNotIsInstance(p.profiler, prof.profile)
            self.assertIn("aten::ones", [e.name for e in p.events()])
        self.assertIs(torch.profiler.profiler.prof, torch.autograd.profiler)

    def test_warnings_show_the_programs_line(self):
        def warned_at():
            torch.autograd.profiler.profile(use_device="toaster")
            return sys._getframe().f_lineno - 1

        with warnings.catch_warnings(record=True) as told, prof.torch.install():
            warnings.simplefilter("always")
            torch.profiler.schedule(wait=0, warmup=0, active=1)
            prof.torch.schedule(wait=0, warmup=0, active=1)
            prof.torch.profile(use_cuda=False)
            in_function = warned_at()
        self.assertEqual([w.filename for w in told], [__file__] * 4)
        self.assertEqual(told[-1].lineno, in_function)

    def test_torch_works_as_before(self):
        with prof.torch.install():
            pass
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            torch.ones(3)
        self.assertNotIsInstance(profile, prof.profile)
        self.assertIn("aten::ones", [e.name for e in profile.events()])


if __name__ == "__main__":
    unittest.main()
