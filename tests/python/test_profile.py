"""torch.profiler's face: schedules, windows, averages, the table, exports, metadata."""

import enum
import errno
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from unittest import mock

from hang_guard import HANG_SECONDS
from recorded import counts, work

import prof
from prof import profiler
from prof.session import ProfilerAction


class Base(unittest.TestCase):
    def setUp(self):
        profiler.stop()
        profiler.clear()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)


class Schedules(Base):
    def test_actions(self):
        action = prof.schedule(skip_first=2, wait=1, warmup=1, active=2, repeat=2)
        words = [action(i).name for i in range(12)]
        cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
        self.assertEqual(words, ["NONE"] * 2 + cycle * 2 + ["NONE"] * 2)
        self.assertIs(prof.schedule(wait=0, warmup=1, active=1)(1), ProfilerAction.RECORD_AND_SAVE)
        self.assertIs(
            prof.schedule(wait=3, warmup=1, active=1, skip_first_wait=1)(0), ProfilerAction.WARMUP
        )

    def test_bad_ones(self):
        for bad in (
            dict(wait=-1, warmup=1, active=1),
            dict(wait=0, warmup=1, active=0),
            dict(wait=0, warmup=1, active=1, repeat=-2),
        ):
            with self.assertRaises(AssertionError) as raised:
                prof.schedule(**bad)
            self.assertIsInstance(raised.exception, ValueError)
        with self.assertRaises(TypeError):
            prof.schedule(wait="1", warmup=1, active=1)
        with self.assertWarnsRegex(UserWarning, "warmup"):
            prof.schedule(wait=0, warmup=0, active=1)
        with self.assertRaises(TypeError):
            prof.profile(schedule=lambda step: "RECORD")

    def test_each_cycle_has_its_own_trace(self):
        ready = []
        with prof.profile(
            schedule=prof.schedule(wait=1, warmup=1, active=2, repeat=2),
            on_trace_ready=lambda p: ready.append((p.step_num, counts(p.key_averages()))),
        ) as p:
            for _ in range(10):
                work()
                p.step()
        self.assertEqual([r[0] for r in ready], [4, 8])
        for _, found in ready:
            self.assertEqual(found, {"outer": 2, "inner": 4, "ProfilerStep*": 2})

    def test_cycles_that_are_kept(self):
        cycle = prof.schedule(wait=1, warmup=1, active=2, repeat=2)
        with prof.profile(schedule=cycle, acc_events=True) as p:
            for _ in range(10):
                work()
                p.step()
        self.assertEqual(counts(p.key_averages()), {"outer": 4, "inner": 8, "ProfilerStep*": 4})
        self.assertEqual(
            [e.trace_name for e in p.events() if e.name == "ProfilerStep*"],
            ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#6", "ProfilerStep#7"],
        )

    def test_a_second_start_goes_on_with_the_steps(self):
        ready = []
        p = prof.profile(
            schedule=prof.schedule(wait=0, warmup=1, active=1),
            on_trace_ready=lambda p: ready.append(p.step_num),
        )
        for _ in range(2):
            with p:
                for _ in range(2):
                    work()
                    p.step()
            p.step()
        self.assertEqual((ready, p.step_num), ([2, 4, 5], 6))

    def test_a_profile_that_ends_while_it_warms_up(self):
        with prof.profile(schedule=prof.schedule(wait=0, warmup=2, active=1)) as p:
            work()
        self.assertEqual(len(p.key_averages()), 0)

    def test_its_words_are_those_of_another_profiler(self):
        theirs = enum.Enum("ProfilerAction", {"NONE": 0, "RECORD": 2, "MORE": 4})
        other = enum.Enum("Action", {"NONE": 0})
        self.assertEqual(ProfilerAction.RECORD, theirs.RECORD)
        self.assertIn((theirs.RECORD, theirs.NONE), {(ProfilerAction.RECORD, ProfilerAction.NONE)})
        for different in (theirs.NONE, theirs.MORE, other.NONE, "RECORD", 2, None):
            self.assertNotEqual(ProfilerAction.RECORD, different)
        self.assertNotEqual(ProfilerAction.NONE, other.NONE)

    def test_a_schedule_must_not_say_that_a_device_has_stopped(self):
        """That is torch.profiler's own word. A step that is refused leaves the profile as it
        was."""
        stopped = ProfilerAction.DEVICE_STOPPED
        with self.assertRaisesRegex(ValueError, "DEVICE_STOPPED is set internally"):
            prof.profile(schedule=lambda step: stopped)
        p = prof.profile(schedule=lambda step: stopped if step else ProfilerAction.WARMUP)
        p.start()
        with self.assertRaisesRegex(ValueError, "for step 1"):
            p.step()
        self.assertEqual((p.step_num, p.current_action), (0, ProfilerAction.WARMUP))
        p.stop()

    def test_a_schedule_that_ends_while_it_records(self):
        ready = []
        with prof.profile(
            schedule=prof.schedule(wait=0, warmup=1, active=5),
            on_trace_ready=lambda p: ready.append(p.step_num),
        ) as p:
            for _ in range(3):
                work()
                p.step()
        self.assertEqual(ready, [3])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with prof.profile(schedule=lambda step: ProfilerAction.NONE) as p:
                p.step()
        with self.assertRaises(AssertionError):
            p.key_averages()

    def test_illegal_transitions_warn(self):
        actions = [
            ProfilerAction.RECORD,
            ProfilerAction.NONE,
            ProfilerAction.WARMUP,
            ProfilerAction.NONE,
        ]
        with self.assertWarnsRegex(UserWarning, "Incorrect schedule"):
            with prof.profile(schedule=lambda step: actions[step]) as p:
                for _ in range(3):
                    p.step()


class Warned(unittest.TestCase):
    """What is silently absent elsewhere is said once."""

    def said(self, use):
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            use()
        return [str(x.message) for x in w]

    def test_memory_that_nothing_tells_of(self):
        code = (
            f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_profile "
            f"as t; case = t.Warned(); print(case.said(case.of_memory))"
        )
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS
        )
        (text,) = eval(found.stdout)
        self.assertIn("python3 -m prof run --profile-memory", text)

    @staticmethod
    def of_memory():
        with prof.profile(profile_memory=True):
            pass

    def test_memory_that_something_tells_of(self):
        def use():
            with prof.profile(profile_memory=True), prof.memory_profiler.Pool("tensors") as pool:
                pool.alloc(1, 10)
                pool.free(1, 10)

        self.assertEqual(self.said(use), [])

    def test_workers_that_do_not_come_by_fork(self):
        """By a script of its own: each of them runs the program's main module."""
        script = """if True:
            import multiprocessing, warnings, prof
            if __name__ == "__main__":
                for kind in ("spawn", "forkserver"):
                    with warnings.catch_warnings(record=True) as said:
                        warnings.simplefilter("always")
                        with prof.profile() as p:
                            with multiprocessing.get_context(kind).Pool(2) as pool:
                                pool.map(abs, range(3))
                    print([str(w.message).split(":")[0] for w in said])
        """
        environ = {name: value for name, value in os.environ.items() if name != "PROF_OUTPUT"}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pools.py")
            with open(path, "w") as f:
                f.write(script)
            done = subprocess.run(
                [sys.executable, path],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                env=environ,
            )
        said = "['2 processes were begun while this profile recorded']\n"
        self.assertEqual((done.returncode, done.stdout), (0, 2 * said), done.stderr)

    @unittest.skipUnless(hasattr(os, "fork"), "nothing is forked here")
    def test_workers_of_a_pool(self):
        import multiprocessing

        def use(count):
            with prof.profile() as p:
                if count:
                    with multiprocessing.get_context("fork").Pool(count) as pool:
                        pool.map(abs, range(3))
            return p

        with mock.patch.dict(os.environ):
            os.environ.pop("PROF_OUTPUT", None)
            for count, who in ((2, "2 processes were"), (1, "1 process was")):
                (text,) = self.said(lambda count=count: use(count))
                self.assertTrue(text.startswith(f"{who} begun while this profile recorded: "))
            self.assertEqual(self.said(lambda: use(0)), [])
            os.environ["PROF_OUTPUT"] = "elsewhere"
            self.assertEqual(self.said(lambda: use(1)), [])


class Life(Base):
    def test_wrong_order(self):
        p = prof.profile()
        with self.assertRaisesRegex(AssertionError, "must be initialized before stop"):
            p.stop()
        p.step()
        self.assertEqual(p.step_num, 1)
        p.start()
        with self.assertRaises(RuntimeError):
            p.start()
        p.stop()
        p.stop()
        self.assertEqual(len(p.key_averages()), 0)
        self.assertEqual(p.key_averages().table(), "")

    def test_exceptions_pass(self):
        with self.assertRaises(ZeroDivisionError):
            with prof.profile() as p:
                work()
                1 / 0
        self.assertEqual(counts(p.key_averages()), {"outer": 1, "inner": 2})

    def test_an_on_trace_ready_that_fails(self):
        def fail(p):
            raise KeyError("handler")

        with self.assertRaises(KeyError):
            with prof.profile(on_trace_ready=fail) as p:
                work()
        self.assertEqual(counts(p.key_averages())["inner"], 2)
        from prof._library import C

        self.assertEqual(C.prof_level(), 0)

    def test_a_callback_for_ids_that_fails(self):
        from prof._library import C

        with self.assertRaises(ZeroDivisionError):
            with prof.profile(custom_trace_id_callback=lambda: 1 / 0):
                pass
        self.assertEqual(C.prof_level(), 0)

    def test_levels(self):
        def work(name):
            with prof.scope(name + " operator", "o", 1), prof.scope(name + " runtime", "vm", 2):
                pass

        with prof.profile() as outer:
            work("before")
            with prof.profile(level=2) as inner:
                work("inside")
            work("behind")
        self.assertEqual(
            [e.key for e in outer.key_averages()],
            ["before operator", "inside operator", "inside runtime", "behind operator"],
        )
        self.assertEqual(
            [e.key for e in inner.key_averages()], ["inside operator", "inside runtime"]
        )
        profiler.start(2)
        with prof.profile():
            work("of another level")
        with prof.Trace.now() as trace:
            self.assertIn("of another level runtime", [e.name for e in trace.events()])
        profiler.stop()
        with self.assertRaises(TypeError):
            prof.profile(level="2")
        with self.assertRaises(ValueError):
            prof.profile(level=3)

    def test_names_and_ranks(self):
        def work():
            prof.set_thread_name()
            with prof.record_function("x"):
                pass

        prof.set_process_name("a process of its own")
        prof.set_rank(2, 8)
        self.addCleanup(prof.set_rank, 0, 1)
        with prof.profile() as p:
            thread = threading.Thread(target=work, name="a thread of its own")
            thread.start()
            thread.join()
        text = p.trace.json()
        for part in ("a process of its own", "a thread of its own", '"rank": 2, "world_size": 8'):
            self.assertIn(part, text)
        for bad, error in (((3, 3), ValueError), ((-1, 2), ValueError), (("0", 2), TypeError)):
            with self.assertRaises(error):
                prof.set_rank(*bad)
        with self.assertRaisesRegex(
            ValueError, "rank must be less than world_size, which is 2, not 5"
        ):
            prof.set_rank(5, 2)
        with self.assertRaises(TypeError):
            prof.set_process_name(3)

    def test_errors_have_their_number(self):
        with self.assertRaises(FileNotFoundError) as raised:
            prof.Trace.open("/no/such/file.prof")
        self.assertEqual(raised.exception.errno, errno.ENOENT)
        self.assertIn("/no/such/file.prof", str(raised.exception))

    def test_names_of_torch_stand_in_profiler(self):
        from prof.profiler import (
            ProfilerActivity,
            profile,
            record_function,
            schedule,
            tensorboard_trace_handler,
        )

        with (
            profile(
                activities=[ProfilerActivity.CPU],
                schedule=schedule(wait=0, warmup=0, active=1),
                on_trace_ready=lambda p: None,
            ) as p,
            record_function("x"),
        ):
            pass
        self.assertIs(profile, prof.profile)
        self.assertIs(tensorboard_trace_handler, prof.tensorboard_trace_handler)
        self.assertIn("x", [e.key for e in p.key_averages()])
        with self.assertRaises(AttributeError):
            profiler.nothing

    def test_two_at_once(self):
        with prof.profile() as first:
            work(1)
            with prof.profile() as second:
                work(2)
            work(3)
        self.assertEqual(counts(first.key_averages())["inner"], 6)
        self.assertEqual(counts(second.key_averages())["inner"], 2)

    def test_a_capture_that_was_on_stays_on(self):
        profiler.start()
        work()
        with prof.profile() as p:
            work(3)
        work()
        from prof._library import C

        self.assertEqual(C.prof_level(), 1)
        profiler.stop()
        self.assertEqual(counts(p.key_averages())["inner"], 3)
        self.assertEqual(profiler.total("inner")[1], 7)

    def test_threads_are_seen(self):
        with prof.profile() as p:
            threads = [threading.Thread(target=work) for _ in range(3)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(counts(p.key_averages())["outer"], 3)
        self.assertTrue(p.loss_text().startswith("9 recorded; "), p.loss_text())

    def test_arguments(self):
        with self.assertRaises(TypeError):
            prof.profile(activities=["cpu"])
        self.assertEqual(
            prof.profile(activities=[{prof.ProfilerActivity.CPU: []}]).activities,
            {prof.ProfilerActivity.CPU},
        )
        with self.assertRaises(TypeError):
            prof.profile(nothing=1)
        with self.assertRaises(AssertionError):
            prof.profile(activities=[])
        with self.assertRaises(TypeError):
            prof.profile(on_trace_ready=3)
        with self.assertWarns(FutureWarning):
            prof.profile(use_cuda=False)
        prof.profile(
            activities=[prof.ProfilerActivity.CPU, prof.ProfilerActivity.CUDA],
            with_modules=True,
            experimental_config=object(),
        )


if __name__ == "__main__":
    unittest.main()
