"""Names of torch.profiler's that prof.torch has as well, and what its functions take: beside
the real torch in one process. make test-torch."""

import copy
import functools
import inspect
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

from beside_torch import skip_without_torch, torch

import prof
from prof import _activities

if torch is not None:
    import torch.profiler

    import prof.torch


def theirs_and_ours():
    return torch.profiler, prof.torch


@skip_without_torch
class Methods(unittest.TestCase):
    def test_each_public_name_of_a_profile_is_there(self):
        public = [name for name in dir(torch.profiler.profile) if not name.startswith("_")]
        self.assertGreater(len(public), 10)
        self.assertEqual([n for n in public if not hasattr(prof.torch.profile, n)], [])

    def test_a_trace_without_the_schedule(self):
        found = []
        for module in theirs_and_ours():
            ready = []
            never = module.schedule(wait=9, warmup=0, active=1)
            p = module.profile(schedule=never, on_trace_ready=ready.append)
            for _ in range(2):
                p.prepare_trace()
                p.start_trace()
                torch.ones(2)
                p.stop_trace()
                torch.zeros(2)
            found.append((sorted(e.name for e in p.events()), ready))
            p.wait_for_exports()
            self.assertIsNone(p.take_pending_cuspy_export())
        self.assertIn("aten::ones", found[0][0])
        self.assertEqual(found[1], found[0])

    def test_the_end_without_a_begin(self):
        for module in theirs_and_ours():
            for name in ("stop", "stop_trace"):
                with self.subTest(module=module.__name__, name=name):
                    with self.assertRaisesRegex(AssertionError, "must be initialized before stop"):
                        getattr(module.profile(), name)()
            never = module.schedule(wait=9, warmup=1, active=1)
            module.profile(schedule=never).stop()

    def test_what_was_recorded_before_is_cleared_with_one_warning(self):
        """In a process of its own: torch warns once."""
        script = """if True:
            import sys, warnings
            import prof.torch, torch, torch.profiler
            module = prof.torch if sys.argv[1] == "prof" else torch.profiler
            warnings.simplefilter("always")
            with warnings.catch_warnings(record=True) as seen:
                p = module.profile(activities=[torch.profiler.ProfilerActivity.CPU])
                kept = module.profile(acc_events=True)
                for one in (p, kept, p, p):
                    with one:
                        torch.ones(2)
            print(sum("set acc_events=True" in str(one.message) for one in seen))
            """
        for name in ("prof", "torch"):
            command = [sys.executable, "-c", script, name]
            ran = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(ran.stdout.splitlines()[-1:], ["1"], ran.stderr)

    def test_a_trace_begins_once(self):
        p = prof.torch.profile()
        p.start_trace()
        try:
            with self.assertRaisesRegex(RuntimeError, "started already"):
                p.start_trace()
            with self.assertRaisesRegex(RuntimeError, "started already"):
                p.start()
            with self.assertRaisesRegex(RuntimeError, "of a profile or by itself"):
                prof.torch.profile().start_trace()
            torch.ones(2)
        finally:
            p.stop_trace()
        self.assertEqual([a.count for a in p.key_averages() if a.key == "aten::ones"], [1])
        with p:
            torch.ones(2)
        self.assertEqual([a.count for a in p.key_averages() if a.key == "aten::ones"], [1])

    def test_one_that_was_never_started_is_copied(self):
        """As configurations are (dataclasses.asdict(), Lightning's trainers)."""
        options = {"record_shapes": True, "with_stack": True, "profile_memory": True}
        found = []
        for module in theirs_and_ours():
            cpu = [torch.profiler.ProfilerActivity.CPU]
            plan = module.schedule(wait=0, warmup=1, active=1, repeat=1)
            ready = []
            p = module.profile(
                activities=cpu,
                schedule=plan,
                on_trace_ready=lambda one, ready=ready: ready.append(one),
                experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
                **options,
            )
            copied = copy.deepcopy(p)
            for one in (copied, p):
                with one:
                    for _ in range(2):
                        torch.ones(2)
                        one.step()
            self.assertEqual(ready, [copied, p])
            self.assertIsNot(copied, p)
            found.append([[e.name for e in p.events() if e.name == "aten::ones"] for p in ready])
            with self.assertRaises(TypeError):
                copy.deepcopy(p)
        self.assertEqual(found[1], found[0])
        self.assertTrue(found[1][0])

    def test_one_that_records_is_not_copied(self):
        with prof.torch.profile() as p:
            with self.assertRaisesRegex(TypeError, "copy it before its start"):
                copy.deepcopy(p)
            with self.assertRaisesRegex(TypeError, "stop\\(\\) it first"):
                copy.deepcopy(p._observer)
            torch.ones(2)
        self.assertIn("aten::ones", [e.name for e in p.events()])

    def test_methods_take_torchs_arguments(self):
        theirs, mine = torch.profiler.profile, prof.profile
        for name in sorted(n for n in dir(theirs) if not n.startswith("_")):
            method = getattr(theirs, name)
            if not callable(method) or not hasattr(mine, name):
                continue
            with self.subTest(name):
                expected = list(inspect.signature(method).parameters)
                found = list(inspect.signature(getattr(mine, name)).parameters)
                self.assertEqual(found[: len(expected)], expected)


@skip_without_torch
class Names(unittest.TestCase):
    def test_each_name_is_there_by_any_way_to_import(self):
        for name in torch.profiler.__all__:
            with self.subTest(name):
                self.assertTrue(hasattr(prof.torch, name))
                self.assertIn(name, prof.torch.__all__)
                self.assertIn(name, dir(prof.torch))
        names = {}
        exec("from prof.torch import *", names)
        self.assertLessEqual(set(torch.profiler.__all__), set(names))

    def test_what_a_release_lacks_is_an_attribute_error_that_says_so(self):
        self.assertFalse(hasattr(prof.torch, "no_such_name"))
        with unittest.mock.patch.object(torch.profiler, "ExecutionTraceObserver"):
            del torch.profiler.ExecutionTraceObserver
            with self.assertRaisesRegex(
                AttributeError, "ExecutionTraceObserver is torch's, and the torch"
            ):
                _ = prof.torch.ExecutionTraceObserver
            torch.profiler.ExecutionTraceObserver = None

    def test_activities_that_are_supported_are_torchs(self):
        theirs, ours = (
            torch.profiler.supported_activities(),
            prof.torch.supported_activities(),
        )
        self.assertEqual({a.name for a in ours}, {a.name for a in theirs})
        self.assertEqual(prof.torch.kineto_available(), torch.profiler.kineto_available())
        with prof.torch.profile(activities=torch.profiler.supported_activities()) as p:
            torch.ones(2)
        self.assertTrue(p.events())

    def test_members_are_equal_to_torchs(self):
        for name in ("DeviceType", "ProfilerActivity"):
            theirs, ours = getattr(torch.profiler, name), getattr(prof.torch, name)
            for member in theirs.__members__:
                with self.subTest(f"{name}.{member}"):
                    self.assertTrue(ours[member] == theirs.__members__[member])
                    self.assertFalse(ours[member] != theirs.__members__[member])
            self.assertEqual(set(theirs.__members__), set(ours.__members__))
            self.assertNotEqual(ours.CPU, theirs.CUDA)
        with prof.torch.profile() as p:
            torch.ones(2)
        self.assertTrue(all(e.device_type == torch.profiler.DeviceType.CPU for e in p.events()))

    def traced(self, module, path, **options):
        observer = module.ExecutionTraceObserver().register_callback(path)
        steps = {"schedule": module.schedule(wait=1, warmup=1, active=1, repeat=1)}
        with module.profile(execution_trace_observer=observer, **steps, **options) as p:
            for i in range(4):
                with module.record_function(f"step {i}"):
                    torch.ones(2).add(1)
                p.step()
        self.assertFalse(observer.is_registered)
        with open(path) as file:
            return [
                n["name"]
                for n in json.load(file)["nodes"]
                if n["name"].startswith(("step", "aten::"))
            ]

    def test_an_execution_trace_is_of_the_steps_that_are_recorded(self):
        cpu = {"activities": [torch.profiler.ProfilerActivity.CPU]}
        with tempfile.TemporaryDirectory() as folder:
            theirs, ours = (
                self.traced(m, os.path.join(folder, f"{m.__name__}.json"), **cpu)
                for m in theirs_and_ours()
            )
        self.assertIn("step 2", ours)
        self.assertNotIn("step 1", ours)
        self.assertEqual(ours, theirs)

    def test_torchs_variable_asks_for_one(self):
        script = (
            "import sys, importlib, torch; m = importlib.import_module(sys.argv[1])\n"
            "with m.profile(activities=[m.ProfilerActivity.CPU]) as p: torch.ones(2)\n"
            "print(p.execution_trace_observer.get_output_file_path())"
        )
        variables = {
            **os.environ,
            "ENABLE_PYTORCH_EXECUTION_TRACE": "1",
            "KINETO_LOG_LEVEL": "99",
        }
        with tempfile.TemporaryDirectory() as folder:
            for name in ("torch.profiler", "prof.torch"):
                done = subprocess.run(
                    [sys.executable, "-c", script, name],
                    capture_output=True,
                    text=True,
                    env={**variables, "TMPDIR": folder},
                    check=True,
                )
                with open(done.stdout.split()[-1]) as file:
                    self.assertIn("aten::ones", [n["name"] for n in json.load(file)["nodes"]])


@skip_without_torch
class Arguments(unittest.TestCase):
    def run_one(self, module, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with module.profile(**{"activities": [module.ProfilerActivity.CPU], **options}) as p:
                torch.ones(2, 3).add(1)
        return p

    def both_refuse(self, do, words):
        """words: of prof's message."""
        with self.assertRaises((AttributeError, TypeError, ValueError, RuntimeError)):
            do(torch.profiler)
        with self.assertRaises((TypeError, ValueError)) as raised:
            do(prof.torch)
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_what_is_no_flag_is_refused_by_value_and_type(self):
        for name in (
            "record_shapes",
            "profile_memory",
            "with_stack",
            "with_flops",
            "with_modules",
        ):
            for value in ("no", [], (), b""):
                with self.subTest(name, value=value):
                    words = (name, repr(value), type(value).__name__, "True or False")
                    self.both_refuse(lambda m, n=name, v=value: self.run_one(m, **{n: v}), words)

    def test_what_torch_takes_as_a_flag_is_taken(self):
        for value in (1, 0, True):
            for module in theirs_and_ours():
                with self.subTest(module.__name__, value=value):
                    p = self.run_one(module, record_shapes=value)
                    shapes = [e.input_shapes for e in p.events() if e.name == "aten::add"]
                    self.assertEqual(shapes, [[[2, 3], [], []]] if value else [[]])
        for value in (1, None, 0.5):
            for module in theirs_and_ours():
                with self.subTest(module.__name__, value=value):
                    p = self.run_one(module, profile_memory=value)
                    self.assertEqual(any(e.cpu_memory_usage for e in p.events()), bool(value))

    def test_other_options_are_refused_by_value_and_type(self):
        for name, value, right in (
            ("experimental_config", 5, "_ExperimentalConfig"),
            ("experimental_config", "x", "_ExperimentalConfig"),
            ("activities", "cpu", "[ProfilerActivity.CPU]"),
            ("activities", 5, "[ProfilerActivity.CPU]"),
            ("schedule", 5, "something to call"),
            ("on_trace_ready", "x", "something to call"),
            ("execution_trace_observer", "x", "ExecutionTraceObserver"),
            ("custom_trace_id_callback", 5, "something to call"),
            ("post_processing_timeout_s", "x", "a number of seconds"),
        ):
            with self.subTest(name, value=value):
                words = (name, repr(value), type(value).__name__, right)
                self.both_refuse(lambda m, n=name, v=value: self.run_one(m, **{n: v}), words)

    def test_options_that_say_no_are_taken(self):
        for name in (
            "schedule",
            "on_trace_ready",
            "execution_trace_observer",
            "custom_trace_id_callback",
        ):
            for value in (None, False, 0, ""):
                for module in theirs_and_ours():
                    with self.subTest(name, value=value, module=module.__name__):
                        names = [e.name for e in self.run_one(module, **{name: value}).events()]
                        self.assertIn("aten::add", names)

    def test_groups_are_by_any_truth(self):
        for value in ("x", 1, None, ""):
            rows = []
            for module in theirs_and_ours():
                p = self.run_one(module, record_shapes=True)
                for averages in (p.key_averages(value), p.events().key_averages(value)):
                    rows.append(sorted((e.key, e.count, str(e.input_shapes)) for e in averages))
            self.assertEqual(rows[2:], rows[:2], value)

    def test_frames_below_0_are_no_groups(self):
        for count in (-1, -3, 0, 2, True):
            rows = []
            for module in theirs_and_ours():
                p = self.run_one(module, with_stack=True)
                for averages in (
                    p.key_averages(group_by_stack_n=count),
                    p.events().key_averages(group_by_stack_n=count),
                ):
                    rows.append(sorted((e.key, e.count) for e in averages))
            with self.subTest(count):
                self.assertEqual(rows[2:], rows[:2])
        p = self.run_one(prof.torch)
        for wrong in ("x", 1.5, None):
            with self.assertRaisesRegex(
                TypeError, f"group_by_stack_n must be an int, not {wrong!r}"
            ):
                p.key_averages(group_by_stack_n=wrong)

    def test_a_table_takes_the_limits_that_torch_takes(self):
        tables = []
        for module in theirs_and_ours():
            averages = self.run_one(module).key_averages()
            for limit in (-1, -7, None, 0, 1, True):
                for top in (False, "x", None):
                    table = averages.table(row_limit=limit, top_level_events_only=top)
                    names = [line.split()[0] for line in table.splitlines() if "aten::" in line]
                    tables.append(
                        (
                            limit,
                            top,
                            "top-level" in table,
                            sorted(names) if limit != 1 else len(names),
                        )
                    )
        half = len(tables) // 2
        self.assertEqual(tables[half:], tables[:half])

    def test_schedules_take_numbers(self):
        import numpy

        for one in (1, True, 1.0, numpy.int64(1), numpy.float32(1), torch.tensor(1)):
            with self.subTest(type(one)):
                theirs, ours = (
                    m.schedule(
                        wait=one,
                        warmup=one,
                        active=one,
                        repeat=one,
                        skip_first=one,
                        skip_first_wait=one,
                    )
                    for m in theirs_and_ours()
                )
                self.assertEqual(
                    [theirs(i).name for i in range(6)], [ours(i).name for i in range(6)]
                )
        for name in ("wait", "warmup", "active", "repeat", "skip_first"):
            counts = {"wait": 1, "warmup": 1, "active": 1, name: "x"}
            self.both_refuse(lambda m, c=counts: m.schedule(**c)(0), (name, "'x'", "str", "an int"))

    def test_a_handler_takes_names_that_torch_takes(self):
        for worker in ("w", 5, None, ""):
            for module in theirs_and_ours():
                with (
                    self.subTest(worker, module=module.__name__),
                    tempfile.TemporaryDirectory() as folder,
                ):
                    self.run_one(
                        module,
                        on_trace_ready=module.tensorboard_trace_handler(folder, worker),
                    )
                    (name,) = os.listdir(folder)
                    self.assertTrue(name.endswith(".pt.trace.json"))
                    if worker:
                        self.assertEqual(name.split(".")[0], str(worker))
        for wrong in (None, 5.5):
            with self.assertRaisesRegex(TypeError, f"dir_name must be .*, not {wrong!r} of"):
                prof.torch.tensorboard_trace_handler(wrong)

    def test_what_is_no_text_is_refused_by_value(self):
        p = self.run_one(prof.torch, with_stack=True)
        for do in (
            lambda: p.export_chrome_trace(5),
            lambda: p.export_stacks(5),
            lambda: p.add_metadata(5, "x"),
            lambda: p.add_metadata_json("key", 5),
            lambda: p.key_averages().table(sort_by=5),
            lambda: p.key_averages().table(header=5),
        ):
            with self.assertRaisesRegex(TypeError, "5"):
                do()
        with self.assertRaisesRegex(ValueError, "'x'"):
            p.export_stacks("unused", "x")


@skip_without_torch
class Numbers(unittest.TestCase):
    def of(self, module, **options):
        """Events and the JSON's of a training step."""
        linear, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
        linear(x).sum().backward()
        with module.profile(activities=[module.ProfilerActivity.CPU], **options) as p:
            with module.record_function("outer"):
                y = linear(x).mul(2)
            with module.record_function("after"):
                y.sum().backward()
            torch.ones(2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            p.export_chrome_trace(path)
            with open(path) as file:
                return p.events(), json.load(file)["traceEvents"]

    def operators(self, rows):
        return [r for r in rows if r.get("cat") in ("cpu_op", "user_annotation") and r["ph"] == "X"]

    def test_external_ids_of_events_are_those_of_the_json(self):
        for options in ({}, {"record_shapes": True}, {"with_stack": True}):
            numbers = {}
            for module in theirs_and_ours():
                events, rows = self.of(module, **options)
                rows = {(r["args"]["External id"], r["name"]) for r in self.operators(rows)}
                ids = [(e.external_id, e.name) for e in events if not e.is_python_function]
                self.assertLessEqual(set(ids), rows)
                numbers[module.__name__] = sorted(rows)
                others = [e.external_id for e in events if e.is_python_function]
                self.assertEqual(set(others), {0} if others else set())
            with self.subTest(**options):
                theirs, ours = numbers.values()
                first = theirs[0][0] - 1  # torch's count on from one profile to the next
                theirs = [(number - first, name) for number, name in theirs]
                forward = [i for i, (_, name) in enumerate(theirs) if name == "after"][0]
                self.assertEqual(ours[: forward + 1], theirs[: forward + 1])
                self.assertEqual([i for i, _ in ours], list(range(1, len(ours) + 1)))

    def told_of_devices(self, profile, module, names):
        """The warnings of a profile that names these activities, and where they were given."""
        activities = names and [getattr(module.ProfilerActivity, name) for name in names]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            p = profile(activities=activities)
            made = len(told)
            with p:
                pass
        words = [str(w.message) for w in told if "not available" in str(w.message)]
        return words, {w.filename for w in told}, made

    def test_a_device_that_is_not_there_is_told(self):
        """In torch.profiler's words, when the recording begins. No warning is given unless a device
        was asked for."""
        if torch.cuda.is_available() or prof.ProfilerActivity.CUDA in prof.supported_activities():
            self.skipTest("there is a CUDA device")
        torchs, ours = theirs_and_ours()
        for names in ("CPU", "CUDA"), ("CPU", "XPU"), ("CPU", "HPU"), ("XPU", "CUDA", "CPU"):
            expected, _, made = self.told_of_devices(torchs.profile, torchs, names)
            self.assertEqual((len(expected), made), (1, 0))
            with ours.install():
                installed = torchs.profile
            for profile in ours.profile, functools.partial(prof.profile, torch=True), installed:
                told = self.told_of_devices(profile, ours, names)
                self.assertEqual(told, (expected, {__file__}, 0), names)
        for names in ("CPU",), None:
            self.assertEqual(self.told_of_devices(ours.profile, ours, names)[0], [])
        self.assertEqual(self.told_of_devices(prof.profile, prof, ("CPU", "CUDA"))[0], [])

    def test_a_device_that_torch_does_not_know_is_told(self):
        _, ours = theirs_and_ours()
        supported = {prof.ProfilerActivity.CPU}
        with unittest.mock.patch.object(_activities, "supported_activities", lambda: supported):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                for module in theirs_and_ours():
                    given = [module.ProfilerActivity.CPU, module.ProfilerActivity.PrivateUse1]
                    with module.profile(activities=given):
                        pass
            words = [str(w.message) for w in told if "valid device" in str(w.message)]
            self.assertEqual(words, ["The privateuseone is not a valid device option."] * 2)
            if not torch.mtia.is_available():
                found, _, _ = self.told_of_devices(ours.profile, ours, ("CPU", "MTIA"))
                self.assertEqual(found, ["MTIA is not available, disabling MTIA profiling"])
            supported.add(prof.ProfilerActivity.PrivateUse1)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                with ours.profile(activities=[ours.ProfilerActivity.PrivateUse1]):
                    pass
            self.assertFalse([w for w in told if "valid device" in str(w.message)])

    def test_a_trace_without_operators_has_no_ids(self):
        with prof.profile() as p, prof.record_function("range"):
            pass
        self.assertEqual([e.external_id for e in p.events()], [0])

    def test_moments_of_memory_have_the_keys_that_torchs_have(self):
        keys = []
        for module in theirs_and_ours():
            _, rows = self.of(module, profile_memory=True)
            moments = [r for r in rows if r.get("cat") == "cpu_instant_event"]
            self.assertEqual({r["args"]["finished"] for r in moments}, {False})
            keys.append({key for r in moments for key in r["args"]})
        self.assertEqual(keys[1], keys[0])


if __name__ == "__main__":
    unittest.main()
