"""prof import: a trace of torch.profiler's kind, made here by hand, as a capture: its tables, times
to the nanosecond, devices, memory, and the way back into JSON."""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

from folder import Folder
from hang_guard import HANG_SECONDS

import prof

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))
BASE_NS = 1735689600 * 10**9 + 7


def x(category, name, tid, ts, dur, pid=100, **args):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def trace(events, **members):
    head = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    return {**head, **members, "traceEvents": events, "traceName": "t.json"}


def training_step():
    """As Kineto writes one: in the order of begins, outer scopes first."""
    shapes = {
        "Input Dims": [[5, 3, 224, 224], [64, 3, 7, 7], [], []],
        "Input type": ["float", "float", "", "ScalarList"],
    }
    kernel = {
        "device": 1,
        "stream": 7,
        "context": 1,
        "queued": 0,
        "grid": [4, 1, 1],
        "block": [128, 1, 1],
        "registers per thread": 32,
        "est. achieved occupancy %": 25,
    }
    return [
        {
            "ph": "M",
            "name": "process_name",
            "pid": 100,
            "tid": 0,
            "ts": 0,
            "args": {"name": "python"},
        },
        {
            "ph": "M",
            "name": "thread_name",
            "pid": 100,
            "tid": 100,
            "ts": 0,
            "args": {"name": "thread 100 (python)"},
        },
        {
            "ph": "M",
            "name": "thread_name",
            "pid": 1,
            "tid": 7,
            "ts": 0,
            "args": {"name": "stream 7 "},
        },
        x("user_annotation", "ProfilerStep#3", 100, 1000.001, 900.5),
        x(
            "cpu_op",
            "aten::conv2d",
            100,
            1010.125,
            500.25,
            **{
                "External id": 1,
                "Record function id": 0,
                "Sequence number": 7,
                "Fwd thread id": 0,
                "Ev Idx": 1,
                "Call stack": "a.py(1): f;b.py(2): g",
                **shapes,
            },
        ),
        x("cpu_op", "aten::convolution", 100, 1010.125, 500.25, **{"External id": 2}),
        x(
            "cuda_runtime",
            "cudaLaunchKernel",
            100,
            1030,
            10.5,
            cbid=211,
            correlation=55,
            **{"External id": 2},
        ),
        x("cuda_runtime", "cudaMemcpyAsync", 100, 1050.25, 1.002, correlation=56),
        x(
            "cpu_op",
            "ConvolutionBackward0",
            101,
            1600,
            10,
            **{"Sequence number": 7, "Fwd thread id": 1},
        ),
        x("kernel", "void sgemm<float>(int)", 7, 1060.25, 33.333, pid=1, correlation=55, **kernel),
        x(
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            7,
            1100,
            5,
            pid=1,
            device=1,
            stream=7,
            correlation=56,
            bytes=1024,
        ),
        x("kernel", "nobody's", 7, 1110, 2, pid=1, device=1, stream=7, correlation=99),
        {"ph": "s", "id": 55, "pid": 100, "tid": 100, "ts": 1030, "cat": "ac2g", "name": "ac2g"},
        {
            "ph": "f",
            "id": 55,
            "pid": 1,
            "tid": 7,
            "ts": 1060.25,
            "cat": "ac2g",
            "name": "ac2g",
            "bp": "e",
        },
        {
            "ph": "s",
            "id": 7,
            "pid": 100,
            "tid": 100,
            "ts": 1010.125,
            "cat": "fwdbwd",
            "name": "fwdbwd",
        },
        {
            "ph": "f",
            "id": 7,
            "pid": 100,
            "tid": 101,
            "ts": 1600,
            "cat": "fwdbwd",
            "name": "fwdbwd",
            "bp": "e",
        },
        {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": 1021,
            "args": {
                "Total Allocated": 4096,
                "Bytes": 1024,
                "Addr": 5000,
                "Device Id": -1,
                "Device Type": 0,
            },
        },
        {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": 1022,
            "args": {
                "Total Allocated": 512,
                "Bytes": 512,
                "Addr": 6000,
                "Device Id": 1,
                "Device Type": 1,
            },
        },
        {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": 1700,
            "args": {
                "Total Allocated": 3072,
                "Bytes": -1024,
                "Addr": 5000,
                "Device Id": -1,
                "Device Type": 0,
            },
        },
        {
            "ph": "C",
            "cat": "x",
            "name": "queue",
            "pid": 100,
            "tid": 100,
            "ts": 1100,
            "args": {"value": 3.5},
        },
        {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Spans",
            "tid": "PyTorch Profiler",
            "ts": 1000,
            "dur": 1000,
            "args": {"Op count": 0},
        },
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 2000, "s": "g"},
    ]


@unittest.skipUnless(os.access(COMMAND, os.X_OK), "the prof command is not built")
class Import(Folder):
    def command(self, *words):
        return subprocess.run(
            [COMMAND, *words], capture_output=True, text=True, timeout=HANG_SECONDS, cwd=self.folder
        )

    def run_import(self, path, output="t.prof"):
        done = self.command("import", path, "-o", output)
        if "yajl" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stdout + done.stderr
        opened = prof.Trace.open(self.path(output))
        self.addCleanup(opened.close)
        return opened

    def imported(self, events, output="t.prof", **members):
        with open(self.path("t.json"), "w") as f:
            json.dump(trace(events, **members), f)
        return self.run_import("t.json", output)

    def test_an_event_larger_than_any_is_an_error_with_its_place(self):
        """Its texts are in memory at once, so they have a limit: 256 MiB. Packed, so that the file
        itself takes no such room."""
        with gzip.open(self.path("t.json.gz"), "wb", compresslevel=1) as f:
            f.write(
                b'{"traceEvents": ['
                + json.dumps(x("cpu_op", "before", 100, 1, 2)).encode()
                + b", {"
            )
            for _ in range(258):
                f.write(b'"name": "' + b"x" * ((1 << 20) - 1) + b'", ')
            f.write(b'"ph": "X"}, ' + json.dumps(x("cpu_op", "behind", 100, 5, 2)).encode() + b"]}")
        done = self.command("import", "t.json.gz", "-o", "t.prof")
        if "yajl" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("one event has more than 256 MiB of texts", done.stderr)
        place = re.search(r"byte (\d+)", done.stderr)
        self.assertTrue(place and int(place.group(1)) > 256 << 20, done.stderr)
        with prof.Trace.open(self.path("t.prof")) as opened:  # what stands whole before is taken
            self.assertEqual([row.name for row in opened.aggregate()], ["before"])

    def test_what_nobody_reads_of_an_event_takes_no_memory(self):
        with gzip.open(self.path("t.json.gz"), "wb", compresslevel=1) as f:
            f.write(
                b'{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "name": '
                b'"large", '
            )
            for _ in range(258):
                f.write(b'"nobody knows this": "' + b"x" * ((1 << 20) - 1) + b'", ')
            f.write(b'"cat": "cpu_op"}]}')
        self.assertEqual([row.name for row in self.run_import("t.json.gz").aggregate()], ["large"])

    def test_the_table_of_a_training_step(self):
        opened = self.imported(training_step())
        rows = {row.name: row for row in opened.aggregate()}
        times = {
            name: (row.count, row.total_ns, row.self_ns) for name, row in rows.items() if row.count
        }
        self.assertEqual(
            times,
            {
                "ProfilerStep#3": (1, 900500, 400250),
                "aten::conv2d": (1, 500250, 0),
                "aten::convolution": (1, 500250, 488748),
                "cudaLaunchKernel": (1, 10500, 10500),
                "cudaMemcpyAsync": (1, 1002, 1002),
                "ConvolutionBackward0": (1, 10000, 10000),
            },
        )
        device = {
            name: (row.self_device_ns, row.device_total_ns)
            for name, row in rows.items()
            if row.device_total_ns
        }
        self.assertEqual(device["aten::convolution"], (38333, 38333))
        self.assertEqual(device["aten::conv2d"], (0, 38333))
        self.assertNotIn("cudaLaunchKernel", device)
        self.assertEqual(rows["aten::convolution"].self_memory_bytes, 1024)
        self.assertEqual(rows["ProfilerStep#3"].self_memory_bytes, -1024)
        self.assertEqual(rows["aten::convolution"].self_device_memory_bytes, 512)
        self.assertIn("1 of devices, whose launch is not in the trace", self.said)
        self.assertIn("2 arrows and graphs that exports draw anew", self.said)

    def test_shapes_stacks_and_arguments(self):
        opened = self.imported(training_step())
        event = next(e for e in opened.events() if e.name == "aten::conv2d")
        self.assertEqual(
            [a for a in event.args if isinstance(a, tuple)],
            [(5, 3, 224, 224), (64, 3, 7, 7), (), ()],
        )
        self.assertEqual(event.more["Sequence number"], 7)
        self.assertEqual(event.more["Call stack"], "a.py(1): f;b.py(2): g")
        self.assertEqual(event.category, "cpu_op")

    def test_averages_as_torch_has_them(self):
        opened = self.imported(
            training_step() + [x("python_function", "a.py(1): f", 100, 1005, 600)]
        )
        averages = {a.key: a for a in opened.key_averages(group_by_input_shape=True)}
        self.assertEqual(
            averages["aten::conv2d"].input_shapes, [[5, 3, 224, 224], [64, 3, 7, 7], [], []]
        )
        self.assertEqual(
            (averages["ProfilerStep*"].count, averages["ProfilerStep*"].is_user_annotation),
            (1, True),
        )
        self.assertEqual(averages["aten::convolution"].self_device_time_total, 38.333)
        self.assertNotIn("a.py(1): f", averages)
        self.assertIn(
            "a.py(1): f", [a.key for a in opened.key_averages(include_python_functions=True)]
        )
        self.assertIn(
            "Self CPU time total: ", opened.key_averages().table(sort_by="self_cpu_time_total")
        )

    def test_functions_of_python_that_overlap_with_a_scope(self):
        """record_function() begins inside of __enter__() and ends inside of __exit__(): its scope
        stays around what it holds."""
        functions = [
            ("f", 0, 100),
            ("__enter__", 5, 10),
            ("<built-in enter>", 8, 5),
            ("model", 30, 20),
            ("__exit__", 70, 20),
            ("<built-in exit>", 75, 10),
        ]
        events = [
            x("python_function", name, 100, ts, dur, **{"Python id": i})
            for i, (name, ts, dur) in enumerate(functions)
        ]
        events += [x("user_annotation", "scope", 100, 10, 70), x("cpu_op", "aten::mm", 100, 35, 10)]
        rows = {r.name: (r.count, r.total_ns, r.self_ns) for r in self.imported(events).aggregate()}
        self.assertEqual(rows["scope"], (1, 70000, 50000))
        self.assertEqual(rows["model"], (1, 20000, 10000))
        self.assertEqual(rows["f"], (1, 100000, 30000))
        self.assertEqual(rows["__exit__"], (1, 20000, 10000))

    def test_functions_that_an_asynchronous_range_crosses_stay(self):
        """It holds nothing, so that nothing overlaps with it: begun and ended, too, and what ended
        on another thread."""
        functions = [x("python_function", "main", 1, 0, 1000), x("python_function", "f", 1, 10, 90)]
        held = [x("cpu_op", "aten::sin", 1, 20, 10), x("cpu_op", "aten::mul", 1, 60, 10)]
        begun = [
            {
                "ph": "B",
                "cat": "user_annotation",
                "name": "range",
                "pid": 100,
                "tid": 1,
                "ts": 50,
                "args": {"asynchronous": True},
            },
            {"ph": "E", "pid": 100, "tid": 1, "ts": 150},
        ]
        for place, ranges in enumerate(
            (
                [],
                [x("user_annotation", "range", 1, 50, 100, asynchronous=True)],
                [x("user_annotation", "range", 1, 50, 100, **{"ended on another thread": True})],
                begun,
            )
        ):
            with self.subTest(ranges):
                opened = self.imported(functions + held + ranges, output=f"{place}.prof")
                rows = {
                    r.name: (r.stack, r.total_ns, r.self_ns)
                    for r in opened.aggregate(group=("name", "stack"))
                }
                self.assertEqual(
                    rows.pop("range", None),
                    (None, ("main", 100000, 0), ("", 100000, 0), ("main", 100000, 0))[place],
                )
                self.assertEqual(
                    rows,
                    {
                        "main": ("", 1000000, 910000),
                        "f": ("main", 90000, 70000),
                        "aten::sin": ("f;main", 10000, 10000),
                        "aten::mul": ("f;main", 10000, 10000),
                    },
                )

    def test_what_says_nothing_to_prof_is_an_argument(self):
        """A program's own "asynchronous" of what is on no thread's row, or is no scope, and a
        "function" that is no function."""
        own = {"asynchronous": True, "q": 1}
        events = [
            x("cuda_runtime", "cudaMalloc", 1, 10, 5, **own),
            {
                "ph": "i",
                "s": "t",
                "cat": "z",
                "name": "mark",
                "pid": 100,
                "tid": 1,
                "ts": 40,
                "args": own,
            },
        ]
        events += [
            {
                "ph": ph,
                "cat": "z",
                "name": name,
                "id": "1",
                "pid": 100,
                "tid": 1,
                "ts": ts,
                "args": own,
            }
            for ph, name, ts in (("b", "outer", 42), ("b", "inner", 43), ("n", "step", 45))
        ]
        events += [
            {"ph": "e", "cat": "z", "name": name, "id": "1", "pid": 100, "tid": 1, "ts": ts}
            for name, ts in (("inner", 46), ("outer", 52))
        ]
        opened = self.imported(
            [*events, x("python_function", "h", 1, 60, 5, file="z.py", line=12, function=5)]
        )
        self.assertEqual(
            {e.name: e.args for e in opened.events()},
            {
                **dict.fromkeys(("cudaMalloc", "mark", "outer", "inner", "step"), own),
                "h": {"function": 5},
            },
        )
        self.assertEqual(
            next(row for row in opened.aggregate() if row.name == "outer").self_ns, 7000
        )
        written = {
            e["name"]: e["args"]
            for e in json.loads(opened.json())["traceEvents"]
            if e["ph"] in "Xin"
        }
        # marked, because prof's own could have the place
        for name in ("cudaMalloc", "mark", "outer", "step"):
            self.assertEqual(
                {key: value for key, value in written[name].items() if key != "External id"},
                {"asynchronous#": True, "q": 1},
                name,
            )
        self.assertEqual((written["h"]["file"], written["h"]["function#"]), ("z.py", 5))

    def test_what_info_says(self):
        members = {
            "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
            "host_name": "box",
            "deviceProperties": [{"id": 1, "name": "NVIDIA H100"}],
        }
        self.imported(training_step(), **members)
        said = self.command("info", "t.prof").stdout
        for text in (
            "python (pid 100) on box",
            "3 of 8",
            "2025-01-01 00:00:00 UTC",
            "NVIDIA H100",
            "thread 100 (python)",
            "stopped",
        ):
            self.assertIn(text, said)

    def test_times_stay_exact(self):
        """Far from the base, with fractions of any length, as integers and as texts, and since 1970
        with no base."""
        for first in (0, 123456789012, 1735689600123456):
            events = [x("cpu_op", f"op{i}", 100, None, None) for i in range(1000)]
            body = json.dumps(trace(events, baseTimeNanoseconds=0))
            for i in range(1000):
                fraction = ["", ".1", ".12", f".{i:03d}"][i % 4]
                body = body.replace(
                    '"ts": null, "dur": null',
                    f'"ts": {first + 10 * i}{fraction}, "dur": {i % 9}.{i:03d}',
                    1,
                )
            with open(self.path("t.json"), "w") as f:
                f.write(body)
            opened = self.run_import("t.json")
            found = {
                e.name: (e.start_ns, e.duration_ns) for e in opened.events() if e.kind == "scope"
            }
            for i in range(1000):
                ns = int(["", "1", "12", f"{i:03d}"][i % 4].ljust(3, "0"))
                self.assertEqual(found[f"op{i}"], (10000 * i + ns, i % 9 * 1000 + i), i)

    def test_begins_and_ends_of_another_tool(self):
        """An array of B and E events, nested, of two threads, as texts and numbers."""
        events = [
            {"ph": "B", "name": "outer", "pid": 1, "tid": "a", "ts": 10},
            {"ph": "B", "name": "other", "pid": 1, "tid": "b", "ts": 11},
            {"ph": "B", "name": "inner", "pid": 1, "tid": "a", "ts": 12},
        ]
        events += [
            {"ph": "E", "pid": 1, "tid": "a", "ts": 15},
            {"ph": "E", "pid": 1, "tid": "b", "ts": 16.5},
            {"ph": "E", "pid": 1, "tid": "a", "ts": 20},
        ]
        with open(self.path("t.json"), "w") as f:
            f.write(json.dumps(events)[:-1] + ",\n")
        opened = self.run_import("t.json")
        self.assertEqual(
            {r.name: (r.count, r.total_ns, r.self_ns) for r in opened.aggregate()},
            {"outer": (1, 10000, 7000), "inner": (1, 3000, 3000), "other": (1, 5500, 5500)},
        )

    def test_scopes_that_overlap_stand_on_lanes(self):
        opened = self.imported(
            [x("cpu_op", "a", 1, 10, 10), x("cpu_op", "b", 1, 15, 10), x("cpu_op", "b", 1, 12, 1)]
        )
        self.assertEqual(
            {r.name: (r.count, r.total_ns) for r in opened.aggregate()},
            {"a": (1, 10000), "b": (2, 11000)},
        )

    def test_compressed(self):
        whole = json.dumps(trace(training_step())).encode()
        # two members, as some writers append them
        with open(self.path("t.pt.trace.json.gz"), "wb") as f:
            f.write(gzip.compress(whole[:1000]) + gzip.compress(whole[1000:]))
        self.assertEqual(len(self.run_import("t.pt.trace.json.gz").aggregate()), 7)
        done = self.command("import", "t.pt.trace.json.gz")
        # not over what exists
        self.assertEqual((done.returncode, os.path.exists(self.path("t.prof"))), (1, True))
        os.unlink(self.path("t.prof"))
        self.assertEqual(self.command("import", "t.pt.trace.json.gz").returncode, 0)
        self.assertTrue(os.path.exists(self.path("t.prof")))
        with open(self.path("cut.json.gz"), "wb") as f:
            f.write(gzip.compress(whole)[:-200])
        done = self.command("import", "cut.json.gz")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unpacked", done.stderr)

    def test_asynchronous_events_stand_on_rows_of_their_own(self):
        """b, n, e and S, F: what one id has begun nests; ids that run at once stand on rows beside
        each other, those that do not on one."""

        def event(ph, ident, name, ts, cat="request", **more):
            return {
                "ph": ph,
                "cat": cat,
                "name": name,
                "pid": 100,
                "tid": 100,
                "ts": ts,
                **({"id": ident} if isinstance(ident, str) else {"id2": ident}),
                **more,
            }

        events = [
            event("b", "0x1", "outer", 10, args={"url": "/a"}),
            event("b", "0x1", "inner", 12),
            event("b", {"local": "0x2"}, "beside", 13),
            event("n", "0x1", "mark", 14),
        ]
        events += [
            event("e", "0x1", "inner", 15),
            event("e", "0x1", "outer", 20),
            event("e", {"local": "0x2"}, "beside", 30),
            event("b", "0x3", "later", 40),
            event("e", "0x3", "later", 41),
        ]
        events += [
            event("S", "7", "old", 31, "io"),
            event("T", "7", "step", 32, "io"),
            event("F", "7", "old", 33, "io"),
            event("b", "0x9", "open", 50, "io"),
            event("e", "0x8", "alone", 51, "io"),
        ]
        opened = self.imported(events)
        rows = {
            r.name: (r.count, r.total_ns, r.self_ns, r.thread)
            for r in opened.aggregate(group=("name", "thread"))
        }
        by_row = {}
        for name, (_, _, _, thread) in rows.items():
            by_row.setdefault(thread, set()).add(name)
        self.assertEqual(
            sorted(map(sorted, by_row.values())),
            [["beside"], ["inner", "later", "outer"], ["old", "open"]],
        )
        self.assertEqual(
            {name: row[:3] for name, row in rows.items()},
            {
                "outer": (1, 10000, 7000),
                "inner": (1, 3000, 3000),
                "beside": (1, 17000, 17000),
                "later": (1, 1000, 1000),
                "old": (1, 2000, 2000),
                "open": (1, 0, 0),
            },
        )
        told = {e.name: e for e in opened.events()}
        self.assertEqual(
            (told["outer"].args, told["mark"].kind, told["mark"].start_ns, told["step"].kind),
            ({"url": "/a"}, "instant", 4000, "instant"),
        )
        self.assertIn("1 ends without a begin", self.said)
        self.assertIn("1 begun and never ended", self.said)

    def test_more_than_1024_asynchronous_at_once_are_counted(self):
        events = [
            {"ph": "b", "cat": "r", "name": "x", "id": i, "pid": 1, "tid": 1, "ts": 10 + i / 1000}
            for i in range(1030)
        ]
        events += [{**event, "ph": "e", "ts": 100} for event in events]
        self.assertEqual(sum(r.count for r in self.imported(events).aggregate()), 1024)
        self.assertIn(
            "not taken: 6 asynchronous, with 1024 of their category beside them", self.said
        )

    def test_arrows_to_backward_keep_their_category(self):
        events = [
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 100}
        ]
        for number, name in enumerate(("fwdbwd", "fwdbwd2", "mine"), 1):
            events += [
                {"ph": ph, "cat": name, "name": name, "id": number, "pid": 1, "tid": 1, "ts": ts}
                for ph, ts in (("s", 10 * number), ("f", 10 * number + 5))
            ]
        arrows = [
            (e["name"], e["cat"])
            for e in json.loads(self.imported(events).json())["traceEvents"]
            if e["ph"] in "sf"
        ]
        self.assertEqual(
            sorted(arrows),
            [("fwdbwd", "fwdbwd")] * 2 + [("fwdbwd2", "flow")] * 2 + [("mine", "flow")] * 2,
        )

    def test_steps_of_flows_are_arrows(self):
        """Each t ends an arrow and begins the next, and a chain that begins anew has its first id
        again."""
        events = [
            x("op", name, 100, ts, 5)
            for name, ts in (("a", 10), ("b", 20), ("c", 30), ("d", 40), ("e", 50))
        ]
        events += [
            {
                "ph": ph,
                "cat": "fwdbwd",
                "name": "chain",
                "id": 9,
                "pid": 100,
                "tid": 100,
                "ts": ts,
                "bp": "e",
            }
            for ph, ts in (("s", 11), ("t", 21), ("t", 31), ("f", 41), ("s", 42), ("f", 51))
        ]
        flows = [
            (e.kind, e.start_ns - 1000, e.id)
            for e in self.imported(events).events()
            if e.kind.startswith("flow")
        ]
        ids = [flow[2] for flow in flows]
        self.assertEqual(
            [flow[:2] for flow in flows],
            [
                ("flow_begin", 0),
                ("flow_end", 10000),
                ("flow_begin", 10000),
                ("flow_end", 20000),
                ("flow_begin", 20000),
                ("flow_end", 30000),
                ("flow_begin", 31000),
                ("flow_end", 40000),
            ],
        )
        self.assertEqual((ids[0], ids[2], ids[4], ids[6]), (ids[1], ids[3], ids[5], ids[7]))
        self.assertEqual((len(set(ids)), ids[0], ids[6]), (3, 9, 9))
        self.assertEqual(self.command("dump", "t.prof", "-o", "back.json").returncode, 0)
        with open(self.path("back.json")) as f:
            arrows = sorted(
                (e["ts"], e["ph"]) for e in json.load(f)["traceEvents"] if e["ph"] in "sf"
            )
        self.assertEqual(
            [(round(ts - arrows[0][0]), ph) for ts, ph in arrows],
            [(0, "s"), (10, "f"), (10, "s"), (20, "f"), (20, "s"), (30, "f"), (31, "s"), (40, "f")],
        )

    def test_lists_of_tensors(self):
        """As in torch's own tables they have no dimensions; what they were is kept."""
        cat = x(
            "cpu_op",
            "aten::cat",
            100,
            10,
            5,
            **{
                "Input Dims": [[[2, 10], [3, 10]], [], [4]],
                "Input type": ["TensorList", "Scalar", "float"],
            },
        )
        opened = self.imported(
            [cat, x("cpu_op", "odd", 100, 20, 5, **{"Input Dims": [[[2], "x"]]})]
        )
        events = {e.name: e for e in opened.events()}
        self.assertEqual(events["aten::cat"].args, [(), (), (4,)])
        self.assertEqual(
            json.loads(events["aten::cat"].more["Tensor lists"]), [[[2, 10], [3, 10]], [], [4]]
        )
        back = {
            e["name"]: e["args"] for e in json.loads(opened.json())["traceEvents"] if e["ph"] == "X"
        }
        self.assertEqual(
            (
                back["aten::cat"]["Input Dims"],
                back["aten::cat"]["Input type"],
                "Tensor lists" in back["aten::cat"],
            ),
            ([[[2, 10], [3, 10]], [], [4]], ["TensorList", "", "float"], False),
        )
        self.assertEqual(events["odd"].args, {"Input Dims": '[[[2],"x"]]'})
        self.assertEqual(
            [a.input_shapes for a in opened.key_averages(group_by_input_shape=True)],
            [[[], [], [4]], []],
        )

    def test_a_table_has_columns_of_memory_where_a_row_has_some(self):
        operator = x("cpu_op", "a", 100, 10, 5)
        without = self.imported([operator]).key_averages()
        self.assertNotIn("CPU Mem", without.table())
        self.assertIn(
            "CPU Mem", self.imported([operator]).key_averages(profile_memory=True).table()
        )
        piece = {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": 12,
            "args": {
                "Total Allocated": 64,
                "Bytes": 64,
                "Addr": 4096,
                "Device Id": -1,
                "Device Type": 0,
            },
        }
        having = self.imported([operator, piece])
        self.assertIn("CPU Mem", having.key_averages().table())
        self.assertNotIn("CPU Mem", having.key_averages(profile_memory=False).table())

    def test_frames_of_a_stack_stand_below_each_other(self):
        """In prof's own table as in torch's: a line a frame, of a long one the end, the other
        columns empty, and an empty line behind each row."""
        long = "/a" * 200 + "/layers.py(12): forward"
        stacks = {
            "two": f"{long};b.py(2): g;",
            "none": "",
            "odd": "\u6f22" * 60 + ".py(1): h;;\x1b[2J(3): i",
            "short": "c.py(1): f",
        }
        opened = self.imported(
            [
                x("cpu_op", name, 100, 10 * i, 5, **{"Call stack": stack})
                for i, (name, stack) in enumerate(stacks.items(), 1)
            ]
        )

        def sources(text):
            lines = text.splitlines()
            at = lines[1].index("Source Location")
            rows = lines[3 : lines.index(lines[2], 3)]
            return (
                lines[1][:at],
                [(bool(line[:at].strip()), line[at:].rstrip()) for line in rows],
                [line[:at].split()[:1] for line in rows],
            )

        head, found, names = sources(opened.table(("name", "stack"), sort="first"))
        self.assertEqual(
            found[:6],
            [
                (True, f"...{long[-72:]}"),
                (False, "b.py(2): g"),
                (False, ""),
                (True, ""),
                (False, ""),
                (True, "..." + "\u6f22" * 31 + ".py(1): h"),
            ],
        )
        self.assertEqual(
            found[6:],
            [
                (False, ""),
                (False, "\\x1b[2J(3): i"),
                (False, ""),
                (True, "c.py(1): f"),
                (False, ""),
            ],
        )
        self.assertEqual([name for (name,) in filter(None, names)], list(stacks))
        self.assertNotIn("Source Location", opened.table(("name",)))
        self.assertNotIn("\n\n", opened.table(("name",)))
        _, of_torchs_kind, _ = sources(opened.key_averages(group_by_stack_n=9).table())
        self.assertEqual(of_torchs_kind[:3] + of_torchs_kind[-2:], found[:3] + found[-2:])

    def test_a_capture_needs_no_import(self):
        self.imported([x("cpu_op", "a", 100, 10, 5)])
        done = self.command("import", "t.prof", "-o", "again.prof")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(
            "'t.prof' is a capture of prof's already, and needs no import; prof table and prof "
            "dump read it as it is, in Python prof.Trace.open()",
            done.stderr,
        )
        with self.assertRaisesRegex(ValueError, "t.prof' is a capture of prof's already"):
            prof.import_trace(self.path("t.prof"))
        self.assertFalse(os.path.exists(self.path("again.prof")))
        for text in ("", "{", "[]", "{}     "):  # less than a capture begins with is read
            with open(self.path("short.json"), "w") as f:
                f.write(text)
            self.assertNotIn(
                "capture of prof's already",
                self.command("import", "short.json", "-o", "short.prof").stderr,
            )

    def test_more_inputs_than_a_record_has_arguments(self):
        kinds = [([2, 3], "float", ""), ([[1], [4]], "TensorList", ""), ([], "Scalar", "7")]
        for count in (14, 15, 17, 40, 64):
            with self.subTest(count):
                dims, types, concrete = map(list, zip(*(kinds[i % 3] for i in range(count))))
                args = {
                    "Input Dims": dims,
                    "Input type": types,
                    "Concrete Inputs": concrete,
                    "Input Strides": [[1] * len(dim) for dim in dims],
                    "Sequence number": 5,
                }
                back = self.arguments_again(args)
                self.assertEqual({key: back.get(key) for key in args}, args)
                self.assertNotIn("cut", back)
        dims = [[1]] * 65  # more than torch has
        back = self.arguments_again({"Input Dims": dims})
        self.assertEqual(back["Input Dims"], str(dims).replace(" ", ""))

    def arguments_again(self, args):
        opened = self.imported([x("cpu_op", "many", 100, 10, 5, **args)])
        if len(args["Input Dims"]) <= 64:
            (row,) = opened.key_averages(group_by_input_shape=True)
            self.assertEqual(len(row.input_shapes), len(args["Input Dims"]))
        (back,) = [e["args"] for e in json.loads(opened.json())["traceEvents"] if e["ph"] == "X"]
        return back

    def test_arrays_of_torch_are_arrays_again(self):
        """Those of inputs beside their shapes. A malformed one stays a text under such a key. A
        string's last backslash is written as Perfetto reads it."""
        both = {
            "Input Dims": [[2, 3], []],
            "Input type": ["float", "Scalar"],
            "Input Strides": [[3, 1], [], [[1, 2], [3]]],
            "Concrete Inputs": ["", "1", '[2, "a\\"]', "</script>", "\u00e4\u2028", "\\"],
        }
        none = {
            "Concrete Inputs": "[1, 2",
            "Input Strides": [],
            "other": [1, {"a": None}],
            "text": "[1]",
        }
        long = {"Concrete Inputs": ["x" * 9000, "y" * 9000]}
        opened = self.imported(
            [
                x("cpu_op", name, 100, ts, 5, **args)
                for name, ts, args in (("both", 10, both), ("none", 20, none), ("long", 30, long))
            ]
        )
        self.assertEqual(
            json.loads({e.name: e for e in opened.events()}["both"].more["Concrete Inputs"]),
            both["Concrete Inputs"],
        )
        text = opened.json()
        back = {
            e["name"]: {
                key: value
                for key, value in e["args"].items()
                if key in ("Input Strides", "Concrete Inputs", "other", "text")
            }
            for e in json.loads(text)["traceEvents"]
            if e["ph"] == "X"
        }
        self.assertEqual(
            back["both"], {key: both[key] for key in ("Input Strides", "Concrete Inputs")}
        )
        self.assertEqual(
            back["none"],
            {
                "Concrete Inputs": "[1, 2",
                "Input Strides": [],
                "other": '[1,{"a":null}]',
                "text": "[1]",
            },
        )
        self.assertIsInstance(back["long"]["Concrete Inputs"], str)  # cut
        self.assertNotIn("</script", text)
        self.assertIn('"\\u005c"]', text)

    def test_stacks_end_with_their_last_frame(self):
        opened = self.imported(
            [
                x("cpu_op", "a", 100, 10, 5, **{"Call stack": "in.py(1): f;out.py(2): g;"}),
                x("cpu_op", "a", 100, 20, 5, **{"Call stack": "in.py(1): f;out.py(2): g"}),
            ]
        )
        self.assertEqual(
            [(a.count, a.stack) for a in opened.key_averages(group_by_stack_n=5)],
            [(2, ["in.py(1): f", "out.py(2): g"])],
        )

    def memory(self, name, ts, **args):
        return {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": name,
            "pid": 100,
            "tid": 100,
            "ts": ts,
            "args": {"Device Id": 0, "Device Type": 1, **args},
        }

    def test_reserved_memory_and_what_could_not_be_had(self):
        """Total Reserved is what the device's allocator holds: blocks come and go by it;
        [OutOfMemory] is a failed allocation."""
        mib = 1 << 20
        events = [
            x("cpu_op", "op", 100, 10, 100),
            self.memory(
                "[memory]",
                11,
                **{"Total Reserved": 2 * mib, "Total Allocated": 512, "Bytes": 512, "Addr": 6000},
            ),
            self.memory(
                "[memory]",
                12,
                **{"Total Reserved": 22 * mib, "Total Allocated": 1024, "Bytes": 512, "Addr": 8000},
            ),
            self.memory(
                "[OutOfMemory]",
                13,
                **{"Total Reserved": 22 * mib, "Total Allocated": 1024, "Bytes": 90 * mib},
            ),
            self.memory(
                "[memory]",
                14,
                **{"Total Reserved": 2 * mib, "Total Allocated": 512, "Bytes": -512, "Addr": 8000},
            ),
            self.memory("[OutOfMemory]", 15, Bytes="many"),
        ]
        self.imported(events)
        self.assertIn("1 of memory, without address or bytes that can be", self.said)
        report = self.command("memory", "t.prof").stdout
        for text in (
            "2 allocs, 1 free, 2 reserves, 1 release, 1 allocation that failed",
            "90.00 MiB (94371840 bytes) could not be had at 3.000us in op: 1.00 KiB were\n"
            "  used then, 22.00 MiB allocated",
            "allocated       22.00 MiB          22.00 MiB   2.00 MiB",
        ):
            self.assertIn(text, report)
        self.assertEqual(self.command("dump", "t.prof", "-o", "back.json").returncode, 0)
        self.run_import("back.json", "back.prof")
        # the first line has the process's name
        self.assertEqual(
            self.command("memory", "back.prof").stdout.partition("\n")[2], report.partition("\n")[2]
        )

    def test_reserved_before_the_trace_began(self):
        events = [
            x("cpu_op", "op", 100, 10, 100),
            self.memory(
                "[memory]",
                11,
                **{"Total Reserved": 4096, "Total Allocated": 2048, "Bytes": 512, "Addr": 6000},
            ),
        ]
        self.imported(events)
        self.assertIn("1 alloc, 0 frees", self.command("memory", "t.prof").stdout)
        self.assertIn(
            "before the start 1.50 KiB were used and 4.00 KiB allocated",
            self.command("memory", "t.prof").stdout.replace("\n  ", " "),
        )

    def test_counters_of_a_device(self):
        """Those of a process that has kernels, or is called GPU N."""
        events = [
            x("kernel", "k", 7, 12, 3, pid=1, device=1, stream=7),
            {"ph": "M", "name": "process_labels", "pid": 2, "tid": 0, "args": {"labels": "GPU 2"}},
            *(
                {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": 14, "args": {"value": 3}}
                for name, pid in (("clock", 1), ("power", 2), ("queue", 100))
            ),
        ]
        found = {
            e.name: (e.device, e.device_index, e.value)
            for e in self.imported(events).events()
            if e.kind == "counter"
        }
        self.assertEqual(found, {"clock": (2, 1, 3.0), "power": (2, 2, 3.0), "queue": (1, 0, 3.0)})

    def written(self, name, content):
        with open(self.path(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def refused(self, content, says, name="other.json"):
        """By the command and by the package, with the same words; nothing stands under the
        capture's name."""
        path = self.written(name, content)
        done = self.command("import", path, "-o", "none.prof")
        if "yajl" in done.stderr and "built" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(
            (done.returncode, sorted(os.listdir(self.folder))), (1, [name]), done.stderr
        )
        with self.assertRaises(ValueError) as raised:
            prof.import_trace(path, self.path("none.prof"))
        self.assertEqual(sorted(os.listdir(self.folder)), [name])
        for text in (done.stderr, str(raised.exception)):
            self.assertIn(says, text)
            self.assertIn(path, text)
        os.unlink(path)

    def test_what_other_tools_write_and_is_no_trace_of_events(self):
        text = json.dumps(trace(training_step()))
        self.refused("", "is empty")
        self.refused(b"\n\xd9\x03\x0a\x04\x08\x01\x12\x00", "is no JSON")  # Perfetto's protobuf
        self.refused(b"SQLite format 3\0" + bytes(100), "damaged SQLite database")
        self.refused(b"SQLite format 3\0" + bytes(10), "cut off")
        self.refused("<!DOCTYPE html><html><body>", "is no JSON")
        self.refused(text.encode("utf-16"), "UTF-16")
        self.refused(text.encode("utf-16-be"), "UTF-16")
        self.refused(text.encode("utf-16-le"), "UTF-16")
        self.refused(text.encode("utf-32"), "UTF-32")
        # a .cpuprofile
        self.refused('{"nodes": [], "samples": [1, 2], "timeDeltas": [3]}', "has no traceEvents")
        self.refused(
            '{"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}',
            "has no traceEvents",
        )
        self.refused('"text"', "has no traceEvents")
        self.refused("null", "has no traceEvents")
        self.refused("{", "ends before the first event")
        self.refused(gzip.compress(text.encode())[:40], "ends", "cut.json.gz")
        self.refused(b"\x1f\x8b", "before anything could be unpacked", "cut.json.gz")
        self.refused(gzip.compress(b""), "is empty", "nothing.json.gz")
        self.refused(b"PK\x03\x04" + bytes(30), "is no JSON")  # a zip

    def test_what_a_file_is_that_is_no_trace(self):
        for content, what in (
            (b"\n\xd9\x03\x0a\x04\x08\x01\x12\x00", "a trace of Perfetto's own format"),
            ("<!DOCTYPE html>", "XML or HTML"),
            (b"PK\x03\x04" + bytes(30), "a zip archive; unpack it first"),
            (b"\x7fELF" + bytes(30), "a program or a library"),
            (b"PERFILE2" + bytes(30), "data of perf"),
            (b"\x28\xb5\x2f\xfd" + bytes(30), "compressed by zstd"),
            ("Kind,Name,Start\n1,2,3\n", "a table (CSV)"),
            ('/* a, b */ {"traceEvents": []}', "text that begins with a comment"),
            ('// a, b\n{"traceEvents": []}', "text that begins with a comment"),
            ("\ufeff \n hello", "plain text"),
            (b"\x80\x01\x02\x03\x80\x05", "binary data"),
            (gzip.compress(b"PK\x03\x04" + bytes(30)), "a zip archive"),
        ):
            with self.subTest(what):
                self.refused(content, f"is no JSON and no database, but {what}", "trace.rpd")
                self.refused(content, "trace.rpd of rocmProfileData", "trace.rpd")

    def test_traces_of_other_tools(self):
        """As they write them: viztracer, Chrome, Perfetto's own JSON, rocprof and Nsight Systems'
        converter."""
        viz = {
            "traceEvents": [
                {
                    "ph": "M",
                    "pid": 7,
                    "tid": 7,
                    "name": "process_name",
                    "args": {"name": "MainProcess"},
                },
                {
                    "ph": "M",
                    "pid": 7,
                    "tid": 7,
                    "name": "thread_name",
                    "args": {"name": "MainThread"},
                },
            ]
        }
        viz["traceEvents"] += [
            {
                "pid": 7,
                "tid": 7,
                "ts": 1.5,
                "ph": "X",
                "dur": 10.25,
                "name": "main (/a.py:1)",
                "cat": "FEE",
            },
            {
                "pid": 7,
                "tid": 7,
                "ts": 2.5,
                "ph": "X",
                "dur": 3,
                "name": "f (/a.py:3)",
                "cat": "FEE",
                "caller_lineno": 9,
            },
        ]
        viz.update(
            {
                "viztracer_metadata": {"version": "1.1.1", "overflow": False},
                "file_info": {"files": {"/a.py": ["text", 3]}, "functions": {}},
            }
        )
        chrome = {
            "traceEvents": [
                {
                    "args": {"number": 8},
                    "cat": "__metadata",
                    "name": "num_cpus",
                    "ph": "M",
                    "pid": 7,
                    "tid": 0,
                    "ts": 0,
                }
            ]
        }
        chrome["traceEvents"] += [
            {
                "args": {},
                "cat": "toplevel",
                "dur": 5,
                "name": "RunTask",
                "ph": "X",
                "pid": 7,
                "tdur": 4,
                "tid": 8,
                "ts": 100,
                "tts": 9,
            },
            {"cat": "blink", "id": "0xa", "name": "load", "ph": "b", "pid": 7, "tid": 8, "ts": 101},
        ]
        chrome["traceEvents"] += [
            {"cat": "blink", "id": "0xa", "name": "load", "ph": "e", "pid": 7, "tid": 8, "ts": 110},
            {
                "cat": "v8",
                "id": "0x1",
                "name": "heap",
                "ph": "O",
                "pid": 7,
                "tid": 8,
                "ts": 111,
                "args": {"snapshot": {}},
            },
        ]
        chrome.update({"metadata": {"os-name": "Linux"}, "stackFrames": {}, "samples": []})
        perfetto = {
            "traceEvents": [
                {"ph": "B", "name": "outer", "pid": 7, "tid": 8, "ts": 1},
                {"ph": "B", "name": "inner", "pid": 7, "tid": 8, "ts": 2},
                {"ph": "E", "pid": 7, "tid": 8, "ts": 3},
                {"ph": "E", "pid": 7, "tid": 8, "ts": 5},
            ],
            "systemTraceEvents": "# tracer: nop\n",
            "displayTimeUnit": "ns",
        }
        rocprof = {
            "traceEvents": [
                {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "CPU HIP API"}},
                {
                    "ph": "X",
                    "name": "hipLaunchKernel",
                    "pid": 2,
                    "tid": 9,
                    "ts": "100",
                    "dur": "5",
                    "args": {"BeginNs": "100000", "EndNs": "105000"},
                },
                {},
            ]
        }
        nsight = [
            {
                "name": "kernel_a",
                "ph": "X",
                "cat": "cuda",
                "ts": 1.0,
                "dur": 2.0,
                "tid": "Stream 7",
                "pid": "CUDA HW 0 (0000:01:00.0)",
                "args": {},
            },
            {
                "name": "range",
                "ph": "X",
                "cat": "nvtx",
                "ts": 0.5,
                "dur": 9.0,
                "tid": "NVTX 1",
                "pid": "Host",
                "args": {},
            },
        ]
        expected = {
            "viz": {"main (/a.py:1)": (10250, 7250), "f (/a.py:3)": (3000, 3000)},
            "chrome": {"RunTask": (5000, 5000), "load": (9000, 9000)},
            "perfetto": {"outer": (4000, 3000), "inner": (1000, 1000)},
        }
        expected.update(
            {
                "rocprof": {"hipLaunchKernel": (5000, 5000)},
                "nsight": {"kernel_a": (2000, 2000), "range": (9000, 9000)},
            }
        )
        for name, content in (
            ("viz", viz),
            ("chrome", chrome),
            ("perfetto", perfetto),
            ("rocprof", rocprof),
            ("nsight", nsight),
        ):
            opened = self.run_import(self.written("t.json", json.dumps(content)), f"{name}.prof")
            self.assertEqual(
                {r.name: (r.total_ns, r.self_ns) for r in opened.aggregate()}, expected[name], name
            )

    def test_odd_values(self):
        """A byte order mark, duplicate keys (the last one counts, as Python's json has it), huge
        and negative numbers, deep nesting, hostile names."""
        one = '{"ph": "X", "name": "%s", "pid": 1, "tid": 1, "ts": %s, "dur": %s, "args": %s}'

        def names(content):
            return sorted(
                r.name for r in self.run_import(self.written("t.json", content)).aggregate()
            )

        self.assertEqual(names(b"\xef\xbb\xbf[" + (one % ("a", 1, 1, "{}")).encode() + b"]"), ["a"])
        self.assertEqual(
            names("[" + (one % ("a", 1, 1, "{}"))[:-1] + ', "name": "b", "dur": 7}]'), ["b"]
        )
        self.assertEqual(
            names(
                "[%s, %s, %s]"
                % (
                    one % ("a", 1, 1, "{}"),
                    one % ("b", "1e400", 1, "{}"),
                    one % ("c", 2, "-3", "{}"),
                )
            ),
            ["a"],
        )
        self.assertIn("1 with a time that is no number", self.said)
        self.assertIn("1 with a negative duration", self.said)
        self.assertEqual(
            names("[" + one % ("a", 1, 1, '{"x": ' + "[" * 20000 + "]" * 20000 + "}") + "]"), ["a"]
        )
        self.assertEqual(names("[" + one % ("a", 1, 1, '{"n": 1' + "0" * 400 + "}") + "]"), ["a"])
        hostile = [
            "../../etc/passwd",
            "\u202egnp.exe",
            "%s%n%99999d",
            "<script>alert(1)</script>",
            "a" * 100000,
            "\0b",
            "\ud800",
            "'; DROP TABLE",
            "\x1b[31m",
        ]
        opened = self.run_import(
            self.written(
                "t.json", json.dumps([x("c", name, 1, 10 * i, 5) for i, name in enumerate(hostile)])
            )
        )
        self.assertEqual(len(opened.aggregate()), len(hostile))
        opened.dump(self.path("back.json"))
        with open(self.path("back.json"), encoding="utf-8") as f:
            self.assertEqual(sum(e["ph"] == "X" for e in json.load(f)["traceEvents"]), len(hostile))

    def test_cut_at_every_place(self):
        """Whatever stands whole is taken, the place is said, and the package raises with it."""
        whole = json.dumps(trace(training_step()[:8])).encode()
        packed = gzip.compress(whole[:700]) + gzip.compress(whole[700:])
        for content, name, step in ((whole, "cut.json", 97), (packed, "cut.json.gz", 41)):
            # of gzip's end eight bytes are a check, behind which nothing stands
            for count in range(3, len(content) - 9, step):
                path = self.written(name, content[:count])
                with self.assertRaisesRegex(
                    ValueError, f"{name}' (ends|is empty|is damaged|is no JSON)"
                ):
                    prof.import_trace(path)
        self.assertEqual(sorted(os.listdir(self.folder)), ["cut.json", "cut.json.gz"])

    def test_progress_on_a_terminal_beyond_two_seconds(self):
        """A trace that comes slowly, through a pipe with a name: a line on the terminal, which goes
        in the end; elsewhere none."""
        import pty

        os.mkfifo(self.path("slow.json"))
        seen = bytearray()
        for is_terminal in (True, False):
            done_writing = threading.Event()

            def feed(enough=done_writing, is_terminal=is_terminal):
                begun, i = time.monotonic(), 0
                with open(self.path("slow.json"), "w") as f:
                    f.write("[")
                    limit = HANG_SECONDS if is_terminal else 3.5
                    while time.monotonic() - begun < limit:
                        if is_terminal and b"prof import: " in seen:
                            break
                        f.write(("," if i else "") + json.dumps(x("cpu_op", "a", 1, 10 * i, 5)))
                        f.flush()
                        i += 1
                        enough.wait(0.05)
                    f.write("]")

            ours, theirs = pty.openpty()
            writer = threading.Thread(target=feed)
            writer.start()
            run = subprocess.Popen(
                [COMMAND, "import", "slow.json", "-o", "t.prof"],
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=theirs if is_terminal else subprocess.PIPE,
            )
            os.close(theirs)
            try:
                while is_terminal:
                    got = os.read(ours, 4096)
                    seen += got
            except OSError:  # nobody has the other end any more
                pass
            said = seen if is_terminal else run.stderr.read()
            self.assertEqual(run.wait(HANG_SECONDS), 0, said)
            writer.join()
            os.close(ours)
            if run.stderr:
                run.stderr.close()
            if is_terminal and b"yajl" not in said:
                self.assertRegex(bytes(said), rb"^\rprof import: \d+ %.*\r\x1b\[K$")
            else:
                self.assertEqual(said, b"")

    def by_both(self, *words):
        """What the command says and gives, and ``python -m prof import``, each in a folder of its
        own that begins like the others."""
        with tempfile.TemporaryDirectory() as other:
            for name in os.listdir(self.folder):
                with (
                    open(self.path(name), "rb") as f,
                    open(os.path.join(other, name), "wb") as copy,
                ):
                    copy.write(f.read())
            found = self.command("import", *words)
            module = subprocess.run(
                [sys.executable, "-m", "prof", "import", *words],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                cwd=other,
            )
            self.assertEqual(
                (module.stdout, module.stderr, module.returncode),
                (found.stdout, found.stderr, found.returncode),
                words,
            )
            for name in os.listdir(self.folder):
                with (
                    open(self.path(name), "rb") as f,
                    open(os.path.join(other, name), "rb") as copy,
                ):
                    self.assertEqual(f.read(), copy.read(), name)
            self.assertEqual(sorted(os.listdir(other)), sorted(os.listdir(self.folder)))
        return found

    def test_python_m_prof_import_is_the_command(self):
        whole = json.dumps(trace(training_step()))
        for name, text in (
            ("t.json", whole),
            ("cut.json", whole[:-300]),
            ("none.json", '{"a": 1}'),
            ("empty.json", ""),
            ("bad.json", whole.replace('"ph"', "ph", 1)),
            ("-o.json", whole),
        ):
            with open(self.path(name), "w") as f:
                f.write(text)
        if "yajl" in self.command("import", "t.json", "-o", "probe.prof").stderr:
            self.skipTest("the command was built without yajl, or it is not here")
        self.assertEqual(self.by_both("t.json").returncode, 0)
        self.assertEqual(self.by_both("t.json").returncode, 1)  # there is one now
        self.assertEqual(self.by_both("t.json", "-o", "t.prof").returncode, 0)
        self.assertEqual(self.by_both("cut.json", "-o", "cut.prof").returncode, 1)
        self.assertTrue(os.path.exists(self.path("cut.prof")))
        for name in ("none.json", "empty.json", "bad.json", "missing.json", "."):
            self.assertEqual(self.by_both(name, "-o", "x.prof").returncode, 1, name)
        self.assertFalse(os.path.exists(self.path("x.prof")))
        self.assertEqual(self.by_both("--", "-o.json").returncode, 0)
        self.assertEqual(self.by_both("t.json", "-o", "t.json").returncode, 2)

    def test_import_trace(self):
        """The package's own: a Trace, a file on request only, an exception with the place where the
        command reports it."""
        whole = json.dumps(trace(training_step()))
        with open(self.path("t.json"), "w") as f:
            f.write(whole)
        if "yajl" in self.command("import", "t.json", "-o", "t.prof").stderr:
            self.skipTest("the command was built without yajl, or it is not here")
        with prof.Trace.open(self.path("t.prof")) as there:
            expected = [tuple(row) for row in there.aggregate()]
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            before, tempfile.tempdir = tempfile.tempdir, temporary
            try:
                with prof.import_trace(self.path("t.json")) as taken:
                    self.assertEqual(os.listdir(temporary), [])
                    self.assertEqual([tuple(row) for row in taken.aggregate()], expected)
                    self.assertIn(
                        "taken: 1 of devices, whose launch is not in the trace", taken.notes
                    )
            finally:
                tempfile.tempdir = before
        prof.import_trace(self.path("t.json"), self.path("out.prof")).close()
        with prof.Trace.open(self.path("out.prof")) as taken:
            for name in ("again.json", "again.json.gz", "again.of a name that says nothing"):
                taken.export_chrome_trace(self.path(name))
                with (gzip.open if name.endswith(".gz") else open)(
                    self.path(name), "rt", encoding="utf-8"
                ) as f:
                    self.assertEqual(json.load(f), json.loads(taken.json()))
            with self.assertRaises(FileNotFoundError):
                taken.export_chrome_trace(self.path("no folder/t.json"))
        with open(self.path("out.prof"), "rb") as a, open(self.path("t.prof"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        cut = whole[: whole.index("Record Window End")]
        with open(self.path("cut.json"), "w") as f:
            f.write(cut)
        with self.assertRaisesRegex(
            ValueError, f"cut.json' ends in the middle, behind {len(cut)} bytes"
        ) as raised:
            prof.import_trace(self.path("cut.json"), self.path("out.prof"))
        self.assertIsInstance(raised.exception, prof.ProfError)
        self.assertRegex(str(raised.exception), "partial=True takes what stands whole before$")
        with open(self.path("out.prof"), "rb") as a, open(self.path("t.prof"), "rb") as b:
            self.assertEqual(a.read(), b.read())  # the old content stays
        self.assertEqual(
            [name for name in os.listdir(self.folder) if name.startswith("out.prof.")], []
        )
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with prof.import_trace(self.path("cut.json"), partial=True) as taken:
                self.assertEqual([tuple(row) for row in taken.aggregate()], expected)
        self.assertEqual([w.category for w in warned], [RuntimeWarning])
        with self.assertRaises(FileNotFoundError):
            prof.import_trace(self.path("missing.json"))
        with self.assertRaises(IsADirectoryError):
            prof.import_trace(self.folder)
        with self.assertRaisesRegex(OSError, "cannot write"):
            prof.import_trace(self.path("t.json"), self.path("none/t.prof"))
        with self.assertRaisesRegex(ValueError, "the trace itself"):
            prof.import_trace(self.path("t.json"), self.path("t.json"))
        with open(self.path("other.json"), "w") as f:
            f.write('{"a": 1}')
        with self.assertRaisesRegex(ValueError, "no traceEvents"):
            prof.import_trace(self.path("other.json"), partial=True)
        for wrong in (None, 3):
            with self.assertRaises(TypeError):
                prof.import_trace(wrong)

    def test_there_and_back(self):
        """prof's own JSON, imported: the same counts and times, launches and memory."""
        before = self.imported(training_step())
        self.assertEqual(self.command("dump", "t.prof", "-o", "back.json").returncode, 0)
        after = self.run_import("back.json", "back.prof")

        def told(opened):
            return sorted(
                (
                    r.name,
                    r.count,
                    r.total_ns,
                    r.self_ns,
                    r.device_total_ns,
                    r.self_device_ns,
                    r.device_count,
                    r.memory_bytes,
                    r.shape,
                )
                for r in opened.aggregate(group=("name", "shape"))
            )

        self.assertEqual(told(after), told(before))

    def test_many(self):
        """Threads of many chunks, events in no order, and scopes in each other: what comes out is
        what stands in the file."""
        events, count = [], 40000
        for i in range(count):
            events.append(x("cpu_op", f"aten::op{i % 7}", i % 3, 1000 * i, 900, i=i))
            events.append(x("cpu_op", "inner", i % 3, 1000 * i + 100, 300 + i % 2 / 1000))
        events = events[1::2] + events[0::2]
        opened = self.imported(events)
        rows = {r.name: r for r in opened.aggregate()}
        self.assertEqual(rows["inner"].count, count)
        self.assertEqual(rows["inner"].total_ns, 300000 * count + count // 2)
        self.assertEqual(sum(rows[f"aten::op{i}"].count for i in range(7)), count)
        self.assertEqual(
            sum(rows[f"aten::op{i}"].self_ns for i in range(7)), 600000 * count - count // 2
        )


if __name__ == "__main__":
    unittest.main()
