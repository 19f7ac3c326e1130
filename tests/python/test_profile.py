"""torch.profiler's face: schedules, windows, averages, the table, exports, metadata."""

import contextlib
import csv
import enum
import errno
import gzip
import io
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from unittest import mock

from hang_guard import HANG_SECONDS
from recorded import counts, work

import prof
from prof import profiler, tables
from prof.session import ProfilerAction


def nothing():
    pass


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


class Tables(Base):
    def profile(self, **options):
        with prof.profile(**options) as p:
            work(3)
        return p

    def test_columns_widths_and_footer(self):
        text = self.profile().key_averages().table(sort_by="self_cpu_time_total")
        lines = text.splitlines()
        self.assertEqual(lines[0], lines[2])
        self.assertEqual(lines[0], "-" * 9 + ("  " + "-" * 12) * 6 + "  ")
        self.assertEqual(lines[1].split("  ")[0].strip(), "")
        self.assertEqual(
            re.split(r"\s{2,}", lines[1].strip()),
            [
                "Name",
                "Self CPU %",
                "Self CPU",
                "CPU total %",
                "CPU total",
                "CPU time avg",
                "# of Calls",
            ],
        )
        self.assertEqual(len(set(map(len, lines[:5]))), 1)
        self.assertTrue(lines[-1].startswith("Self CPU time total: "))
        self.assertTrue(text.endswith("\n"))

    def test_memory_columns(self):
        with prof.profile(profile_memory=True) as p:
            pool = prof.memory_profiler.Pool("host")
            with prof.record_function("takes"):
                pool.alloc(0x1000, 3 << 20)
            pool.close()
        text = p.key_averages().table()
        self.assertIn("CPU Mem  Self CPU Mem", text)
        self.assertIn("3.00 MB", text)

    def test_long_names_and_limits(self):
        with prof.profile() as p:
            for i in range(5):
                with prof.record_function(str(i) * 100):
                    pass
        averages = p.key_averages()
        text = averages.table(row_limit=2)
        self.assertEqual(text.count("..."), 2)
        self.assertIn("0" * 10, averages.table(row_limit=-1, max_name_column_width=None))
        self.assertEqual(len(averages.table(row_limit=0).splitlines()), 5)
        self.assertTrue(averages.table(header="My header").splitlines()[1] == "My header")
        self.assertIn("ms", averages.table(time_unit="ms"))
        with self.assertRaises(ValueError):
            averages.table(time_unit="ns")
        with self.assertRaises(AttributeError) as raised:
            averages.table(sort_by="nothing")
        self.assertIsInstance(raised.exception, ValueError)
        for key in (
            "cpu_time",
            "cpu_time_total",
            "cuda_time_total",
            "self_cuda_time_total",
            "cpu_memory_usage",
            "self_cuda_memory_usage",
            "count",
        ):
            averages.table(sort_by=key)

    def test_arguments_that_are_wrong(self):
        p = self.profile()
        for averages in (p.key_averages(), tables.EventList()):
            for name, bad in (
                ("sort_by", 3),
                ("row_limit", "x"),
                ("header", 3),
                ("max_src_column_width", "x"),
                ("max_name_column_width", 1.5),
                ("max_shapes_column_width", "x"),
            ):
                with self.assertRaisesRegex(TypeError, f"^{name} must be "):
                    averages.table(**{name: bad})
            with self.assertRaisesRegex(ValueError, "^max_name_column_width must be "):
                averages.table(max_name_column_width=-2)
            whole = averages.table(row_limit=-1)
            for limit in (None, -2):  # as torch.profiler, also where one of these is said
                self.assertEqual(averages.table(row_limit=limit, top_level_events_only=0), whole)
        for use in (p.key_averages, p.events().key_averages):
            for bad, error in ((1 << 32, ValueError), (-(1 << 32), ValueError), ("x", TypeError)):
                with self.assertRaisesRegex(error, "^group_by_stack_n must be "):
                    use(group_by_stack_n=bad)

    def test_names_come_back_from_csv(self):
        names = ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", " a ", "\r", "\u2028"]
        with prof.profile() as p:
            for name in names:
                with prof.record_function(name):
                    pass
        for events in (p.events(), p.key_averages()):
            text = events.to_csv()
            found = list(csv.DictReader(io.StringIO(text, newline="")))
            self.assertEqual([row["name"] for row in found], names)
        self.assertEqual(self.profile().key_averages().to_csv().count("\r"), 0)

    def test_intervals_are_shown(self):
        self.assertEqual(repr(tables.Interval(0.5, 2.0)), "Interval(start=0.5, end=2.0)")

    def test_stacks(self):
        def here():
            with prof.record_function("placed"):
                pass

        with prof.profile(with_stack=True) as p:
            here()
        row = next(a for a in p.key_averages(group_by_stack_n=2) if a.key == "placed")
        self.assertEqual(len(row.stack), 2)
        self.assertRegex(row.stack[0], r"test_profile\.py\(\d+\): here$")
        text = p.key_averages(group_by_stack_n=2).table()
        self.assertIn("Source Location", text)
        p.export_stacks(self.path("stacks.txt"), "self_cpu_time_total")
        with self.assertRaises(ValueError):
            p.export_stacks(self.path("x"), "nothing")
        with self.assertRaises(RuntimeError):
            self.profile().export_stacks(self.path("x"))
        with prof.record_function("after"):
            pass
        with prof.profile() as p:
            here()
        self.assertEqual(p.events()[0].stack, [])

    def test_flops_and_shapes(self):
        with prof.profile(with_flops=True) as p:
            for _ in range(2):
                with prof.scope(
                    "matmul", "operator", 1, _shapes=[(0x220, 10, 20), (0x220, 20, 30)]
                ):
                    pass
        row = p.key_averages(group_by_input_shape=True)[0]
        self.assertEqual(
            (row.flops, row.input_shapes), (2 * 2 * 10 * 20 * 30, [[10, 20], [20, 30]])
        )
        self.assertIn("KFLOPs", p.key_averages().table())
        self.assertEqual(p.key_averages()[0].input_shapes, "")

    def test_shapes_stacks_and_arguments_of_one_scope(self):
        def here():
            with prof.scope(
                "dense",
                "operator",
                1,
                _shapes=[(0x220, 4, 8), (0x220, 8, 2)],
                step=7,
                **{"Input Dims": "mine"},
            ):
                pass

        with prof.profile(with_stack=True) as p:
            here()
        event = p.events()[0]
        self.assertEqual((event.input_shapes, event.args["step"]), ([[4, 8], [8, 2]], 7))
        self.assertRegex(event.stack[0], r"^test_profile\.py\(\d+\): here$")
        # nobody gave its stack
        self.assertEqual(
            (event.args, event.kwinputs), ({"step": 7, "Input Dims": "mine"}, event.args)
        )
        self.assertEqual(p.events().to_dict()["args"], [event.args])
        row = p.key_averages(group_by_input_shape=True, group_by_stack_n=1)[0]
        self.assertEqual((row.input_shapes, row.stack), ([[4, 8], [8, 2]], event.stack[:1]))
        p.export_chrome_trace(self.path("t.json"))
        with open(self.path("t.json")) as f:
            args = next(e for e in json.load(f)["traceEvents"] if e["name"] == "dense")["args"]
        self.assertEqual(
            (args["Input Dims"], args["Input Dims#"], args["step"]), ([[4, 8], [8, 2]], "mine", 7)
        )
        # as torch's
        self.assertEqual(args["Call stack"], "".join(f"{frame};" for frame in event.stack))
        whole = json.loads(p.trace.json("chrome"))["traceEvents"]
        frame = next(e for e in whole if e["name"] == "dense")["args"]["Call stack"].split(";")[0]
        self.assertEqual(
            frame, os.path.join(os.path.dirname(os.path.abspath(__file__)), event.stack[0])
        )
        p.trace.dump(self.path("raf.json"), "raf")
        with open(self.path("raf.json")) as f:
            self.assertIn("step", json.dumps(json.load(f)["traceEvents"]))

    def test_a_decorator_does_not_stand_in_the_stack(self):
        @prof.record_function("decorated")
        def f():
            pass

        with prof.profile(with_stack=True) as p:
            f()
        stack = p.events()[0].stack
        self.assertRegex(stack[0], r"test_a_decorator_does_not_stand_in_the_stack$")
        self.assertFalse([frame for frame in stack if os.sep + "prof" + os.sep in frame])

    def test_events_have_their_memory(self):
        with prof.profile(profile_memory=True) as p:
            with (
                prof.memory_profiler.Pool("host") as pool,
                prof.memory_profiler.Pool("device", "cuda:0") as far,
            ):
                with prof.record_function("outer"):
                    with prof.record_function("inner"):
                        pool.alloc(0x1000, 1 << 20)
                        far.alloc(0x9000, 512)
                    pool.alloc(0x900000, 1 << 10)
                    pool.free(0x1000, 1 << 20)
                pool.free(0x900000, 1 << 10)
        found = {
            e.name: (
                e.cpu_memory_usage,
                e.self_cpu_memory_usage,
                e.device_memory_usage,
                e.self_device_memory_usage,
            )
            for e in p.events()
        }
        self.assertEqual(
            found,
            {
                "outer": (1024, 1024 - (1 << 20), 512, 0),
                "inner": (1 << 20, 1 << 20, 512, 512),
                "[memory]": (-1024, -1024, 0, 0),
            },
        )
        self.assertEqual(
            {
                a.key: (
                    a.cpu_memory_usage,
                    a.self_cpu_memory_usage,
                    a.device_memory_usage,
                    a.self_device_memory_usage,
                )
                for a in p.key_averages()
            },
            found,
        )
        self.assertIn("CUDA Mem", p.key_averages().table())

    def test_a_users_name_that_is_an_operators(self):
        with prof.profile() as p:
            with prof.record_function("conv"):
                with prof.scope("conv", "operator"):
                    pass
            with prof.scope("conv", "another"):
                pass
        self.assertEqual(
            [(a.key, a.count, a.is_user_annotation) for a in p.key_averages()],
            [("conv", 1, True), ("conv", 2, False)],
        )

    def test_rows_come_by_their_first_calls(self):
        with prof.profile() as p:
            for name in ("z", "a", "m", "a"):
                with prof.record_function(name):
                    time.sleep(0.0002 * ord(name[0]) / 100)
        self.assertEqual([a.key for a in p.key_averages()], ["z", "a", "m"])
        self.assertEqual([e.name for e in p.events()], ["z", "a", "m", "a"])

    def test_averages_of_events_are_the_profiles(self):
        with prof.profile() as p:
            work(3)
            work(1)
        mine, theirs = p.events().key_averages(), p.key_averages()
        self.assertEqual([(a.key, a.count) for a in mine], [(a.key, a.count) for a in theirs])
        for a, b in zip(mine, theirs):
            self.assertAlmostEqual(a.cpu_time_total, b.cpu_time_total, places=2)
            self.assertAlmostEqual(a.self_cpu_time_total, b.self_cpu_time_total, places=2)
            self.assertAlmostEqual(a.max_us, b.max_us, places=2)
        with self.assertRaises(AssertionError):
            tables.FunctionEventAvg("x").add(mine[0])

    def test_events(self):
        events = self.profile().events()
        outer = next(e for e in events if e.name == "outer")
        self.assertEqual([c.name for c in outer.cpu_children], ["inner"] * 3)
        self.assertIs(outer.cpu_children[0].cpu_parent, outer)
        self.assertAlmostEqual(
            outer.self_cpu_time_total,
            outer.cpu_time_total - sum(c.cpu_time_total for c in outer.cpu_children),
            places=2,
        )
        self.assertIn("outer", events.table(top_level_events_only=True))
        self.assertNotIn("inner", events.table(top_level_events_only=True))
        total = events.total_average()
        self.assertEqual((total.key, total.count), ("Total", 4))

    def test_other_forms(self):
        averages = self.profile().key_averages()
        self.assertEqual(averages.to_dict()["count"], [a.count for a in averages])
        self.assertTrue(averages.to_csv().startswith("name,count,"))
        self.assertIn("<table>", averages._repr_html_())
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                averages.to_pandas()
        else:
            self.assertEqual(list(averages.to_pandas()["count"]), [a.count for a in averages])
            self.assertEqual(len(tables.EventList().to_pandas()), 0)
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                averages.to_arrow()
        else:
            self.assertEqual(
                averages.to_arrow().column("count").to_pylist(), [a.count for a in averages]
            )
            self.assertEqual(tables.EventList().to_arrow().num_rows, 0)

    def test_top_level_averages(self):
        with prof.profile() as p:
            with prof.record_function("outer"):
                with prof.record_function("inner"), prof.record_function("leaf"):
                    pass
            with prof.record_function("inner"):  # the first of them counts
                pass
            with prof.record_function("alone"), prof.record_function("outer"):
                pass
        for averages in (
            p.key_averages(),
            p.events().key_averages(),
            p.key_averages(group_by_input_shape=True),
        ):
            lines = averages.table(top_level_events_only=True).splitlines()
            self.assertEqual([line.split()[0] for line in lines[5:-2]], ["outer", "alone"])
            self.assertIn("leaf", averages.table())
        import pickle

        self.assertEqual(
            counts(pickle.loads(pickle.dumps(p.key_averages()))), counts(p.key_averages())
        )

    def test_an_export_has_memory_where_it_was_asked_for(self):
        def seen(p):
            path = self.path("memory.json")
            p.export_chrome_trace(path)
            with open(path) as f:
                names = [event["name"] for event in json.load(f)["traceEvents"]]
            return {name for name in names if "[memory]" in name or "bytes" in name}

        with prof.profile(profile_memory=True) as p, prof.profile() as without:
            with prof.memory_profiler.Pool("tensors") as pool, prof.scope("inside"):
                pool.alloc(4096, 64)
                pool.free(4096)
        self.assertEqual(seen(without), set())
        self.assertEqual(seen(p), {"[memory]", "used bytes (tensors)"})
        self.assertNotIn("[memory]", without.trace.json(memory=False))
        self.assertIn("[memory]", without.trace.json())
        self.assertEqual([e for e in without.events() if e.name == "[memory]"], [])
        self.assertNotIn("Mem", without.key_averages().table())
        with self.assertRaisesRegex(ValueError, "no_memory is 1"):
            without.trace.dump(self.path("all.prof"), memory=False)

    def test_events_read_no_more_than_their_window(self):
        from prof._read_events import Briefs

        count = 200_000
        prof.profiler.start()  # else the next profile begins anew
        self.addCleanup(prof.profiler.stop)
        for _ in range(count):
            with prof.scope("old"):
                pass
        with prof.profile() as p, prof.scope("around"):
            for _ in range(10):
                with prof.scope("new"):
                    pass
        window = p._windows()[0]
        everything = sum(1 for _ in Briefs(window.trace._shared))
        read = sum(1 for _ in Briefs(window.trace._shared, window.from_ns))
        self.assertGreaterEqual(everything, count)
        self.assertLess(read, count / 100)
        self.assertEqual([e.name for e in p.events()], ["around", *10 * ["new"]])
        self.assertEqual({row.key: row.count for row in p.key_averages()}, {"around": 1, "new": 10})

    def test_rows_of_a_profiles_begin_and_end(self):
        """Kineto's, which stand last."""
        with prof.profile() as p, prof.scope("inside"):
            pass
        found = {}
        for marks in (False, True):
            path = self.path(f"{marks}.json")
            p.trace.dump(path, "chrome", window_marks=marks)
            with open(path) as f:
                found[marks] = json.load(f)["traceEvents"]
        plain, marked = found[False], found[True]
        self.assertEqual(marked[:-4], plain)
        span, sort, begin, end = marked[-4:]
        self.assertEqual((span["name"], span["cat"]), ("PyTorch Profiler (0)", "Trace"))
        self.assertEqual((sort["name"], sort["pid"]), ("process_sort_index", "Spans"))
        self.assertEqual(begin["name"], "Iteration Start: PyTorch Profiler")
        self.assertEqual((end["name"], end["ph"]), ("Record Window End", "i"))
        self.assertEqual(begin["ts"], span["ts"])
        self.assertAlmostEqual(span["ts"] + span["dur"], end["ts"], delta=0.001)
        for event in plain:
            self.assertGreaterEqual(event.get("ts", span["ts"]), span["ts"])
            if "dur" in event:
                self.assertLessEqual(event["ts"] + event["dur"], end["ts"] + 0.001)

    def test_equal_stacks_are_one_line(self):
        def event(key, stack, us):
            average = tables.FunctionEventAvg(key)
            average.stack, average.self_cpu_time_total = stack, us
            return average

        frames = ["f.py(1): inner", "f.py(9): outer"]
        events = tables.EventList(
            [
                event("a", frames, 0.6),
                event("a", frames, 1.6),
                event("b", frames, 0.6),
                event("c d", frames[1:], 2.5),
                event("e", [], 9.0),
                event("f", ["x"], 0.5),
            ]
        )
        events.export_stacks(self.path("stacks.txt"), "self_cpu_time_total")
        inner = "f.py(9):_outer;f.py(1):_inner"
        with open(self.path("stacks.txt")) as f:
            expected = f"{inner};a 2\n{inner};b 1\nf.py(9):_outer;c_d 2\nx;f 1\n"
            self.assertEqual(f.read(), expected)

    def test_events_have_columns_of_their_own(self):
        with (
            prof.profile(profile_memory=True) as p,
            prof.scope("outer", "operator", 1, step=7),
            prof.record_function("inner"),
        ):
            pass
        found = p.events().to_dict()
        self.assertEqual(
            (found["id"], found["name"], found["category"], found["depth"]),
            ([0, 1], ["outer", "inner"], ["operator", "user_annotation"], [0, 1]),
        )
        self.assertEqual(
            (found["parent_id"], found["is_open"], found["args"], found["cpu_memory_usage"]),
            ([None, 0], [False, False], [{"step": 7}, {}], [0, 0]),
        )
        for start, end, total in zip(found["start_us"], found["end_us"], found["cpu_time_total"]):
            self.assertAlmostEqual(end - start, total, places=2)
        self.assertTrue(
            p.events()
            .to_csv()
            .startswith(
                "id,name,category,thread,depth,start_us,end_us,cpu_time_total,self_cpu_time_total,"
                "parent_id,is_open,is_skipped,cpu_memory_usage,self_cpu_memory_usage,args\n"
            )
        )
        self.assertEqual(list(p.key_averages().to_dict())[:2], ["name", "count"])
        self.assertRegex(p.events()._repr_html_(), r"<td>\d+\.\d{3}us</td>.*<td>0 B</td>")
        self.assertRegex(p.key_averages()._repr_html_(), r"<td>1</td><td>\d+\.\d{3}us</td>")
        with self.subTest("pandas"), contextlib.suppress(ImportError):
            frame = p.events().to_pandas()
            self.assertEqual(list(frame["name"]), ["outer", "inner"])
            self.assertEqual(
                (
                    str(frame["parent_id"].dtype),
                    frame["parent_id"].isna()[0],
                    frame["parent_id"][1],
                ),
                ("Int64", True, 0),
            )
        with self.subTest("pyarrow"), contextlib.suppress(ImportError):
            self.assertEqual(p.events().to_arrow().column("parent_id").to_pylist(), [None, 0])

    def test_open_scopes_are_events(self):
        p = prof.profile()
        p.start()
        with prof.record_function("open"):
            with prof.record_function("ended"):
                time.sleep(0.001)
            p.stop()
        self.assertEqual(
            [(e.name, e.is_open) for e in p.events()], [("open", True), ("ended", False)]
        )
        outer, inner = p.events()
        self.assertIsNone(inner.cpu_parent)  # as in torch.profiler: it may end on any thread
        self.assertTrue(outer.is_async)
        self.assertGreaterEqual(outer.time_range.end, inner.time_range.end)
        self.assertEqual(counts(p.key_averages()), counts(p.events().key_averages()))
        for a, b in zip(p.key_averages(), p.events().key_averages()):
            self.assertAlmostEqual(a.cpu_time_total, b.cpu_time_total, places=2)

    def test_no_flops_of_dimensions_that_are_not_known(self):
        from prof import flops

        self.assertEqual(
            [
                flops.of("matmul", [[-1, 2], [2, 3]]),
                flops.of("matmul", [[-4, 2], [2, -3]]),
                flops.of("add", [[-2, 2]]),
            ],
            [0, 0, 0],
        )

    def test_formats(self):
        self.assertEqual(
            [tables.format_time(t) for t in (0.5, 999.9994, 1000, 2.5e6)],
            ["0.500us", "999.999us", "1.000ms", "2.500s"],
        )
        self.assertEqual(
            [tables.format_memory(b) for b in (0, -5, 1023, 1024, -3 << 20, 5 << 30)],
            ["0 B", "-5 B", "1023 B", "1.00 KB", "-3.00 MB", "5.00 GB"],
        )

    # bench/python/table.py has how long that takes
    def test_two_hundred_thousand_events_are_counted_each_time(self):
        f = prof.record_function("many")(nothing)
        with prof.profile() as p:
            for _ in range(200000):
                f()
        for _ in range(2):
            self.assertEqual(counts(p.key_averages()), {"many": 200000})


class Exports(Base):
    def test_an_open_scope_is_no_loss(self):
        with prof.profile() as p:
            prof.record_function("done")("x".upper)()
            left = prof.record_function("left")
            left.__enter__()
        p.export_chrome_trace(self.path("t.json"))
        left.__exit__(None, None, None)
        with open(self.path("t.json")) as f:
            said = [e for e in json.load(f)["traceEvents"] if e.get("cat") == "prof"]
        self.assertEqual(
            [("prof: no loss, some unfinished", 1)],
            [(e["name"], e["args"]["unfinished"]) for e in said],
        )

    def test_chrome_trace(self):
        with prof.profile() as p:
            work()
        p.export_chrome_trace(self.path("t.json"))
        p.export_chrome_trace(self.path("t.json.gz"))
        with open(self.path("t.json")) as plain, gzip.open(self.path("t.json.gz"), "rt") as packed:
            found = json.load(plain)
            self.assertEqual(found["traceEvents"], json.load(packed)["traceEvents"])
        self.assertEqual(
            sorted(e["name"] for e in found["traceEvents"] if e["ph"] == "X"),
            ["inner", "inner", "outer"],
        )

    def test_metadata(self):
        with prof.profile() as p:
            work()
        p.add_metadata("text", 'with "quotes"')
        p.add_metadata_json("list", "[1, 2]")
        with self.assertRaises(ValueError):
            p.add_metadata_json("bad", "{")
        with self.assertRaises(TypeError):
            p.add_metadata_json("bad", 3)
        p.export_chrome_trace(self.path("t.json.gz"))
        with gzip.open(self.path("t.json.gz"), "rt") as f:
            found = json.load(f)
        self.assertEqual((found["text"], found["list"]), ('with "quotes"', [1, 2]))

    def test_flags_and_a_key_that_the_trace_has_already(self):
        with prof.profile(
            record_shapes=True,
            with_stack=True,
            profile_memory=True,
            with_flops=True,
            custom_trace_id_callback=lambda: "mine",
        ) as p:
            work()
        p.add_metadata_json("distributedInfo", '{"backend": "gloo", "rank": 3, "world_size": 8}')
        for name in ("t.json", "t.json.gz"):
            p.export_chrome_trace(self.path(name))
            with (gzip.open if name.endswith("gz") else open)(self.path(name), "rb") as f:
                pairs = json.load(f, object_pairs_hook=lambda pairs: pairs)
            self.assertEqual(len(dict(pairs)), len(pairs), "a key stands twice")
            found = dict(pairs)
            self.assertEqual(
                [
                    found[k]
                    for k in (
                        "record_shapes",
                        "with_stack",
                        "profile_memory",
                        "with_flops",
                        "trace_id",
                    )
                ],
                [1, 1, 1, 1, "mine"],
            )
            self.assertEqual(dict(found["distributedInfo"])["rank"], 3)
            self.assertNotIn("with_modules", found)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["t.json", "t.json.gz"])

    def test_events_as_a_list(self):
        with prof.profile() as p:
            work()
        p.events().export_chrome_trace(self.path("e.json"))
        with open(self.path("e.json")) as f:
            self.assertEqual([e["name"] for e in json.load(f)], ["outer", "inner", "inner"])

    def test_paths(self):
        with prof.profile() as p:
            work()
        for path, error in (
            (self.path("no/such/t.json"), FileNotFoundError),
            (self.folder.name, OSError),
        ):
            with self.assertRaises(error):
                p.export_chrome_trace(path)
        p.add_metadata("a", "b")
        with self.assertRaises(FileNotFoundError):
            p.export_chrome_trace(self.path("no/such/t.json"))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_what_is_no_file_stays_what_it_is(self):
        text = "a\n" * 100
        fifo, link, file, dangling = (
            self.path(name) for name in ("fifo", "link", "file", "dangling")
        )
        os.mkfifo(fifo)
        with self.assertRaisesRegex(OSError, "nobody reads from it"):
            tables.write_whole(fifo, text)
        got = []

        def read():
            with open(fifo) as f:
                got.append(f.read())

        reader = threading.Thread(target=read)
        reader.start()
        end = time.monotonic() + HANG_SECONDS
        while reader.is_alive() and time.monotonic() < end:
            with contextlib.suppress(OSError):
                tables.write_whole(fifo, text)
                break
        reader.join()
        self.assertEqual(got, [text])
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))
        os.symlink("/dev/null", self.path("null"))
        tables.write_whole(self.path("null"), text)
        self.assertEqual(os.readlink(self.path("null")), "/dev/null")
        with open(file, "w") as f:
            f.write("kept")
        for name, to in ((link, file), (dangling, self.path("no/such"))):
            os.symlink(to, name)
            tables.write_whole(name, text)
            self.assertFalse(os.path.islink(name))
        with open(file) as f:
            self.assertEqual(f.read(), "kept")
        before = sorted(os.listdir(self.folder.name))
        os.symlink("/dev/zero", self.path("zero"))
        for path, error in (
            (self.folder.name, IsADirectoryError),
            (self.path("zero"), OSError),
            ("", OSError),
        ):
            with self.assertRaises(error):
                tables.write_whole(path, text)
        self.assertTrue(os.path.islink(self.path("zero")))
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted([*before, "zero"]))

    def test_standard_output_goes_on_where_it_stands(self):
        code = (
            "import os\nfrom prof import tables\nos.write(1, b'before\\n')\n"
            "tables.write_whole('/dev/stdout', 'stacks\\n')\nos.write(1, b'behind\\n')"
        )
        with open(self.path("out"), "w+") as f:
            subprocess.run([sys.executable, "-c", code], stdout=f, timeout=HANG_SECONDS, check=True)
            f.seek(0)
            self.assertEqual(f.read(), "before\nstacks\nbehind\n")

    def test_tensorboard(self):
        with prof.profile(
            on_trace_ready=prof.tensorboard_trace_handler(self.path("log"), "worker", use_gzip=True)
        ):
            work()
        (name,) = os.listdir(self.path("log"))
        self.assertRegex(name, r"^worker\.\d+\.pt\.trace\.json\.gz$")
        open(self.path("file"), "w").close()
        with self.assertRaises(RuntimeError):
            prof.tensorboard_trace_handler(self.path("file"))(None)


class Modules(Base):
    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed for this Python")
        originals = numpy.matmul, numpy.zeros, numpy.add
        a, b = numpy.ones((4, 3), numpy.float32), numpy.ones((3, 5), numpy.float32)
        plain = numpy.matmul(a, b), numpy.add.reduce([1, 2, 3])
        try:
            self.assertGreater(prof.trace_module(numpy), 300)
            with prof.profile(record_shapes=True, with_flops=True) as p:
                traced = numpy.matmul(a, b), numpy.add.reduce([1, 2, 3])
                numpy.linalg.norm(numpy.einsum("ij,jk", a, b))
                with self.assertRaises(ValueError):
                    numpy.matmul(a, a)
        finally:
            prof.untrace_module(numpy)
        self.assertEqual((numpy.matmul, numpy.zeros, numpy.add), originals)
        self.assertTrue((traced[0] == plain[0]).all() and traced[1] == plain[1])
        rows = {(e.key, str(e.input_shapes)): e for e in p.key_averages(group_by_input_shape=True)}
        self.assertEqual(rows["numpy.matmul", "[[4, 3], [3, 5]]"].flops, 2 * 4 * 3 * 5)
        self.assertIn(("numpy.matmul", "[[4, 3], [4, 3]]"), rows)
        self.assertIn(("numpy.einsum", "[[4, 3], [3, 5]]"), rows)

    def test_a_module_is_seen(self):
        import math

        self.addCleanup(prof.untrace_module, math)
        original = math.sqrt
        self.assertGreater(prof.trace_module(math), 10)
        self.assertEqual(prof.trace_module(math), 0)
        with prof.profile() as p:
            self.assertEqual(math.sqrt(4), 2)
            with self.assertRaises(ValueError):
                math.sqrt(-1)
        self.assertEqual(counts(p.key_averages()), {"math.sqrt": 2})
        prof.untrace_module(math)
        self.assertIs(math.sqrt, original)
        with self.assertRaises(TypeError):
            prof.trace_module("math")
        with self.assertRaises(AttributeError):
            prof.trace_module(math, ["nothing"])


if __name__ == "__main__":
    unittest.main()
