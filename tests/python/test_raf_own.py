"""RAF's own tests of its profilers, as equivalent assertions: tests/python/tools of awslabs/raf has
test_profiler.py and test_op_profiler.py. RAF's expressions are callables here. And what RAF's
sources say beyond its tests: texts, types, an unseen device, names."""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

from hang_guard import HANG_SECONDS

import prof
from prof.op_profiler import GetCacheSize, Op, Profile, ProfileGroup, ResetCache
from prof.utils import memory_profiler, profiler

MIB = 1 << 20
DEVICES = ("cpu", "cuda")


def matmul(a, b):
    with prof.scope("raf.op.matmul", "Default Stream"):
        return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def transpose(a):
    with prof.scope("raf.op.transpose", "Default Stream"):
        return [list(column) for column in zip(*a)]


def softmax(count):
    return sum(range(count))


def closure():
    return [max(0, x) for x in range(-10, 10)]


def run_python(code, **more):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS, **more
    )


class RafsProfiler(unittest.TestCase):
    """test_profiler.py: a model runs some steps, and stop() comes behind each of them."""

    def a_model_is_profiled(self, model, operator):
        profiler.clear()
        profiler.start()
        for _ in range(5):
            model()
            profiler.stop()
        data, again = profiler.get(), profiler.get()
        self.assertEqual(data, again)
        found = [e["ph"] for e in data["traceEvents"] if e["name"] == operator]
        self.assertGreater(len(found), 0)
        self.assertEqual(found.count("B"), found.count("E"))
        profiler.clear()
        self.assertEqual(profiler.get()["traceEvents"], [])

    def test_profiler_with_cuda(self):
        self.a_model_is_profiled(
            lambda: matmul([[1, 2], [3, 4]], [[5, 6], [7, 8]]), "raf.op.matmul"
        )

    def test_profiler_without_cuda(self):
        self.a_model_is_profiled(lambda: transpose(transpose([[1, 2], [3, 4]])), "raf.op.transpose")


class RafsOperatorProfiler(unittest.TestCase):
    """test_op_profiler.py."""

    def setUp(self):
        ResetCache()

    def check(self, result, count):
        latency, workspace = result["latency"], result["workspace_size"]
        self.assertEqual(len(latency), count)
        for one in latency:
            self.assertGreater(one.value, 0)
        self.assertEqual(workspace.value, 0)

    def test_single_op(self):
        for name in DEVICES:
            device, expr = prof.Device(name), Op(softmax, 100)
            ResetCache(device)
            self.assertEqual(GetCacheSize(device), 0)
            self.check(Profile(expr, device), 1)
            self.assertEqual(GetCacheSize(device), 1)
            Profile(expr, device)
            self.assertEqual(GetCacheSize(device), 1)
            self.check(Profile(expr, device, 1, 1, 2), 2)
            self.assertEqual(GetCacheSize(device), 2)

    def test_no_compute_op(self):
        result = Profile(None, prof.Device("cpu"))
        self.assertEqual([one.value for one in result["latency"]], [0.0])
        self.assertEqual(result["workspace_size"].value, 0)

    def test_closure(self):
        for name in DEVICES:
            device = prof.Device(name)
            ResetCache(device)
            self.assertEqual(GetCacheSize(device), 0)
            self.check(Profile(closure, device, 2, 1, 2), 2)
            self.assertEqual(GetCacheSize(device), 1)
            Profile(closure, device, 2, 1, 2)
            self.assertEqual(GetCacheSize(device), 1)

    def test_workspace(self):
        result = Profile(Op(closure, workspace=lambda: 40566096), prof.Device("cuda"))
        self.assertEqual(len(result["latency"]), 1)
        self.assertGreater(result["latency"][0].value, 0)
        self.assertGreaterEqual(result["workspace_size"].value, 0)

    def test_multi_stream(self):
        device, pair = prof.Device("cpu"), [Op(softmax, 100), Op(softmax, 100)]
        ResetCache(device)
        self.assertEqual(GetCacheSize(device), 0)
        self.check(ProfileGroup(pair, device, [1, 2], 2, 1, 5), 5)
        self.assertEqual(GetCacheSize(device), 1)
        ProfileGroup(pair, device, [1, 2], 2, 1, 5)
        self.assertEqual(GetCacheSize(device), 1)
        self.check(ProfileGroup(pair, device, [1, 2], 2, 1, 1), 1)
        self.assertEqual(GetCacheSize(device), 2)
        ProfileGroup(pair, device, [3, 4])
        self.assertEqual(GetCacheSize(device), 3)

    def test_default_stream(self):
        for name in DEVICES:
            device, pair = prof.Device(name), [Op(softmax, 100), Op(softmax, 100)]
            ResetCache(device)
            self.assertEqual(GetCacheSize(device), 0)
            ProfileGroup(pair, device, [], 2, 1, 5)
            self.assertEqual(GetCacheSize(device), 1)
            ProfileGroup(pair, device, [-1, -1], 2, 1, 5)
            self.assertEqual(GetCacheSize(device), 1)


class Log(unittest.TestCase):
    def setUp(self):
        profiler.stop()
        profiler.clear()

    def test_args_string_is_one_text_at_either_end(self):
        profiler.start()
        with prof.scope("two", "x", count=3, text='a"b;\n'):
            with prof.scope("none", "x"):
                pass
        profiler.stop()
        events = [(e["name"], e["ph"], e["args"]) for e in profiler.get()["traceEvents"]]
        two, none = (
            {"args_string": 'count: 3;text: a"b;\n'},
            {"args_string": ""},
        )  # RAF writes invalid JSON of a quote
        self.assertEqual(
            events, [("two", "B", two), ("none", "B", none), ("none", "E", none), ("two", "E", two)]
        )

    def test_level_0_records_nothing(self):
        profiler.start()
        profiler.start(0)
        with prof.scope("off", "x"):
            pass
        profiler.start(prof_level=0)
        self.assertEqual(profiler.get()["traceEvents"], [])
        profiler.start()
        with prof.scope("on", "x"):
            pass
        profiler.stop()
        self.assertEqual([e["name"] for e in profiler.get()["traceEvents"]], ["on", "on"])

    def test_level_0_before_anything_was_started(self):
        done = run_python(
            "import prof\nprof.profiler.start(0)\nassert prof.profiler.get()['traceEvents'] == []\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_dump_before_a_start_is_an_empty_log(self):
        code = """
import json, os, prof
prof.profiler.dump()
prof.profiler.dump("%p-100%%.json")
first, second = (json.load(open(name)) for name in ("profile.json", f"{os.getpid()}-100%.json"))
assert first == second == prof.profiler.get()
"""
        with tempfile.TemporaryDirectory() as folder:
            done = run_python(code, cwd=folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            files = " ".join(sorted(os.listdir(folder)))
            self.assertRegex(files, r"^\d+-100%\.json profile\.json$")
            with open(os.path.join(folder, "profile.json")) as f:
                self.assertEqual(json.load(f)["traceEvents"], [])
        done = run_python(
            "import prof\n"
            "try:\n  prof.profiler.dump('/no/such/directory/x.json')\n"
            "except FileNotFoundError:\n  pass\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Operators(unittest.TestCase):
    def setUp(self):
        ResetCache()

    def test_nothing_takes_no_time_and_is_not_kept(self):
        for nothing in (None, (1, 2), 3.0):
            result = Profile(nothing, "cpu", 1, 1, 3)
            self.assertEqual([one.value for one in result["latency"]], [0.0, 0.0, 0.0])
            self.assertEqual(result["workspace_size"].value, 0.0)
        self.assertEqual(ProfileGroup([None, None], "cpu", [], 1, 1, 2)["latency"], [0.0, 0.0])
        self.assertEqual(GetCacheSize(), 0)
        with self.assertRaises(ValueError):
            Profile(None, "toaster")
        with self.assertRaises(ValueError):
            Profile(None, "cpu", 1, 1, 0)

    def test_a_group_leaves_out_what_is_nothing(self):
        runs = []
        result = ProfileGroup([Op(runs.append, 1), None], "cpu", [1, 2], 1, 1, 2)
        self.assertEqual(len(result["latency"]), 2)
        self.assertGreater(len(runs), 0)

    def test_the_workspace_is_a_float(self):
        result = Profile(Op(closure, workspace=lambda: 40566096), "cpu", 1, 1, 1)
        self.assertEqual(str(result["workspace_size"].value), "40566096.0")
        self.assertEqual(
            str(
                ProfileGroup([Op(closure, workspace=lambda: 3)] * 2, "cpu", [], 1, 1, 1)[
                    "workspace_size"
                ].value
            ),
            "6.0",
        )

    def test_a_group_is_kept(self):
        runs = []
        pair = [Op(runs.append, 1), Op(softmax, 10)]
        first = ProfileGroup(pair, "cpu", [1, 2], 1, 1, 3)
        count = len(runs)
        again = ProfileGroup([*pair], "cpu", (1, 2), 1, 1, 3)
        self.assertEqual((again, len(runs)), (first, count))
        again["latency"].clear()  # the caller's own
        self.assertEqual(ProfileGroup(pair, "cpu", [1, 2], 1, 1, 3), first)
        self.assertEqual((GetCacheSize("cpu"), GetCacheSize("cuda"), GetCacheSize()), (1, 0, 1))
        Profile(pair[0], "cuda", 1, 1, 1)
        self.assertEqual((GetCacheSize("cpu"), GetCacheSize("cuda"), GetCacheSize()), (1, 1, 2))
        ResetCache("cuda")
        self.assertEqual((GetCacheSize("cpu"), GetCacheSize("cuda"), GetCacheSize()), (1, 0, 1))
        ProfileGroup(pair[::-1], "cpu", [1, 2], 1, 1, 3)
        ProfileGroup(pair, "cpu:1", [1, 2], 1, 1, 3)
        self.assertEqual((GetCacheSize("cpu"), GetCacheSize("cpu:1")), (2, 1))
        ResetCache("cpu")
        self.assertEqual((GetCacheSize("cpu"), GetCacheSize("cpu:1")), (0, 1))
        count = len(runs)
        ProfileGroup(pair, "cpu", [1, 2], 1, 1, 3)
        self.assertGreater(len(runs), count)

    def test_a_group_that_failed_is_not_kept(self):
        for _ in range(2):
            with self.assertRaises(ZeroDivisionError):
                ProfileGroup([lambda: 1 // 0, closure], "cpu", [], 1, 1, 1)
        self.assertEqual(GetCacheSize(), 0)

    def test_the_latest_groups_are_kept(self):
        for i in range(1030):
            ProfileGroup([None, Op(softmax, 1, key=f"number {i}")], "cpu", [], 0, 1, 1)
        self.assertEqual(GetCacheSize(), 1024)

    def test_streams_are_checked(self):
        with self.assertRaisesRegex(ValueError, "a group of 2 has a stream for each, not 1"):
            ProfileGroup([closure, closure], "cpu", [1])
        with self.assertRaises(TypeError):
            ProfileGroup([closure, closure], "cpu", ["1", "2"])


class Memory(unittest.TestCase):
    device = prof.Device("cuda", 5)

    def setUp(self):
        profiler.stop()
        memory_profiler.stop()
        self.state = [0, 0]
        memory_profiler.set_query(self.device, lambda: tuple(self.state))
        self.addCleanup(memory_profiler.set_query, self.device, None)
        self.addCleanup(memory_profiler.reset)
        self.addCleanup(memory_profiler.stop)

    def sample(self, tag, used, allocated):
        self.state[:] = [used * MIB, allocated * MIB]
        memory_profiler.sample(tag, self.device)

    def most(self):
        found = memory_profiler.get_max_memory_info(self.device)
        return tuple(
            found[name].value for name in ("max_used", "max_allocated", "max_trace_idx", "num_gc")
        )

    def rows(self):
        return [
            line.split("\t")
            for line in memory_profiler.get_memory_trace(self.device).splitlines()[2:]
        ]

    def test_headings(self):
        memory_profiler.start()
        self.sample("after the first layer", 20, 32)
        memory_profiler.stop()
        text = memory_profiler.get_memory_trace(self.device)
        first, second, row = text.splitlines()
        self.assertEqual(first, "Numbers are the in MBs.")
        self.assertEqual(second.split(), ["#Trace", "#Tag", "used", "alloc"])
        cells = [cell.strip() for cell in row.split("\t")]
        self.assertEqual(cells[:2], ["0", "after the first layer"])
        self.assertEqual([float(cell) for cell in cells[2:]], [20.0, 32.0])
        self.assertEqual(
            [cell.strip() for cell in second.split("\t")], ["#Trace", "#Tag", "used", "alloc"]
        )

    def test_an_empty_trace_is_an_empty_text(self):
        memory_profiler.start()
        self.assertEqual(memory_profiler.get_memory_trace(self.device), "")
        self.assertEqual(memory_profiler.get_memory_trace("cuda:77"), "")
        memory_profiler.stop()
        done = run_python(
            "import prof\nassert prof.memory_profiler.get_memory_trace('cpu') == ''\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_an_unseen_device_has_zeros_and_no_line(self):
        memory_profiler.start()
        memory_profiler.stop()
        found = memory_profiler.get_max_memory_info("cuda:77")
        self.assertEqual(
            {name: value.value for name, value in found.items()},
            {**dict.fromkeys(found, 0), "max_trace_idx": -1},
        )
        self.assertEqual(set(found), set(memory_profiler.get_max_memory_info(self.device)))
        done = run_python(
            "import prof\nfound = prof.memory_profiler.get_max_memory_info('cpu')\n"
            "assert (found['max_used'].value, found['max_trace_idx'].value) == (0.0, -1), found\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_reset_behind_a_stop_forgets_peaks_and_trace(self):
        memory_profiler.start()
        self.sample("old", 20, 64)
        self.sample("older", 10, 32)
        memory_profiler.stop()
        self.assertEqual(self.most(), (20.0, 64.0, 0, 1))
        memory_profiler.reset()
        self.assertEqual(self.most(), (0.0, 0.0, -1, 0))
        self.assertEqual(memory_profiler.get_memory_trace(self.device), "")
        memory_profiler.start()
        self.sample("new", 5, 8)
        self.sample("newer", 7, 8)
        memory_profiler.stop()
        self.assertEqual(self.most(), (7.0, 8.0, 1, 0))
        self.assertEqual([row[1].strip() for row in self.rows()], ["new", "newer"])

    def test_a_reset_while_it_records_forgets_as_well(self):
        memory_profiler.start()
        self.sample("old", 20, 64)
        memory_profiler.reset()
        self.assertEqual(self.most(), (0.0, 0.0, -1, 0))
        self.assertEqual(memory_profiler.get_memory_trace(self.device), "")
        self.sample("new", 5, 64)
        self.assertEqual(self.most(), (5.0, 64.0, 0, 0))
        memory_profiler.stop()
        self.assertEqual([row[1].strip() for row in self.rows()], ["new"])

    def test_a_reset_forgets_pools_too(self):
        with memory_profiler.Pool("pool", "cuda:6") as pool:
            memory_profiler.start()
            pool.alloc(0x1000, 1 * MIB)
            memory_profiler.stop()
            self.assertEqual(memory_profiler.get_max_memory_info("cuda:6")["max_used"].value, 1.0)
            memory_profiler.reset()
            self.assertEqual(memory_profiler.get_max_memory_info("cuda:6")["max_used"].value, 0.0)
        self.assertEqual(memory_profiler.get_max_memory_info("cuda:6")["max_used"].value, 0.0)

    def test_a_stop_without_a_reset_keeps_all(self):
        memory_profiler.start()
        self.sample("first", 1, 1)
        memory_profiler.stop()
        memory_profiler.start()
        self.sample("second", 2, 2)
        memory_profiler.stop()
        self.assertEqual([row[1].strip() for row in self.rows()], ["first", "second"])


class Names(unittest.TestCase):
    def test_utils_has_both_by_every_import(self):
        self.assertIs(prof.utils.profiler, prof.profiler)
        self.assertIs(prof.utils.memory_profiler, prof.memory_profiler)
        self.assertIs(importlib.import_module("prof.utils.profiler"), prof.profiler)
        self.assertIs(importlib.import_module("prof.utils.memory_profiler"), prof.memory_profiler)
        self.assertEqual(dir(prof.utils), ["memory_profiler", "profiler"])

    def test_a_script_changes_one_word(self):
        for code in (
            "import prof\nprof.utils.profiler.start()\nprof.utils.memory_profiler.reset()\n",
            "import prof.utils.profiler\nprof.utils.profiler.clear()\n",
            "import prof.utils.memory_profiler as m\nm.reset()\n",
            "from prof.utils import profiler\nprofiler.clear()\n",
            "from prof.utils.profiler import start, stop, get_duration\nstart()\nstop()\n",
            "from prof.utils.memory_profiler import get_memory_trace\nget_memory_trace('cpu')\n",
            "import prof as raf\nraf.utils.profiler.clear()\nraf.Device('cuda')\n",
        ):
            done = run_python(code)
            self.assertEqual((done.returncode, done.stderr), (0, ""), code)


if __name__ == "__main__":
    unittest.main()
