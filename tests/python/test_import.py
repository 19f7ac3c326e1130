"""prof import: a trace of torch.profiler's kind, made here by hand, as a capture: its tables, times
to the nanosecond, devices, memory, and the way back into JSON."""

import json
import os
import unittest

from import_events import COMMAND, EventFolder, trace, training_step, x


@unittest.skipUnless(os.access(COMMAND, os.X_OK), "the prof command is not built")
class Import(EventFolder):
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


if __name__ == "__main__":
    unittest.main()
