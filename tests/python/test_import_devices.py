"""prof import knows the rows of devices of other tools: which hold a device's work, which are named
stretches beside it, and which are the host's. And numbers of rows, however they are written."""

import json
import re
import unittest

from folder import HAS_COMMAND
from import_folder import ImportFolder
from import_traces import TRACES, call, event, kernel, named, row_named, text_of, x

from prof import tables

AS_HOST = "taken: {} taken as the host's: a device's name of their process is unknown or came late"
DRAWN = "not taken: {} arrows and graphs that exports draw anew from what is taken"
NO_LAUNCH = "taken: {} of devices, whose launch is not in the trace"


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Devices(ImportFolder):
    def take(self, events):
        self.opened = self.imported(events if isinstance(events, str) else json.dumps(events))

    def times(self):
        """By name: self time on the host and on devices in us, of rows that have any."""
        rows = self.opened.aggregate()
        return {r.name: (r.self_ns / 1000, r.self_device_ns / 1000) for r in rows}

    def kinds(self):
        """By name: is it an annotation of a device in the export? None: it is on no device."""
        kinds = {}
        for e in self.exported():
            if e["ph"] != "X":
                continue
            args = e.get("args", {})
            kinds[e["name"]] = args.get("annotation", False) if "device" in args else None
        return kinds

    def rows(self):
        """The names of the rows on which something is."""
        events = json.loads(self.opened.json())["traceEvents"]
        used = {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"}
        names = {}
        for e in events:
            if e["ph"] == "M" and e["name"] == "thread_name" and (e["pid"], e["tid"]) in used:
                names[e["pid"], e["tid"]] = e["args"]["name"]
        return sorted(names.values())

    def streams(self):
        """(number, name) of streams, as prof info has them."""
        said = self.command("info", "t.prof").stdout
        rows = re.findall(r"(?m)^ +(\d+) .* %(.*)\(a device's\)", said)
        return sorted(((number, name.strip()) for number, name in rows), key=lambda row: row[1])

    def test_streams_of_jax_are_work_and_the_rows_beside_them_are_not(self):
        self.take(text_of("JAX on a GPU"))
        self.assertEqual(self.times(), {"PjitFunction(f)": (90, 0), "cuLaunchKernel": (10, 200)})
        host = {"PjitFunction(f)": None, "cuLaunchKernel": None}
        device = {"fusion": False, "fusion.1": True, "jit_f(1)": True, "0": True}
        self.assertEqual(self.kinds(), {**host, **device})
        self.assertEqual(self.said, [])

    def test_a_tpu_has_its_work_on_the_row_of_its_ops(self):
        self.take(text_of("JAX on a TPU"))
        self.assertEqual(self.times(), {"fusion.1": (0, 5)})
        self.assertEqual(self.kinds(), {"fusion.1": False, "jit_f": True, "1": True})
        self.assertEqual(self.said, [NO_LAUNCH.format(1)])

    def test_time_of_ops_inside_of_others_counts_once(self):
        rows = [named(3, "/device:TPU:0"), row_named(3, 2, "XLA Ops")]
        times = {"while": (0, 100), "body": (10, 40), "inner": (10, 30), "b": (60, 30)}
        times["c"] = (100, 9)
        self.take([*rows, *(x(name, *at, 2, 3) for name, at in times.items())])
        wanted = {"while": 30, "body": 10, "inner": 30, "b": 30, "c": 9}
        self.assertEqual({name: row[1] for name, row in self.times().items()}, wanted)

    def test_numbers_of_jax_are_no_others(self):
        """An export has its own numbers beside JAX's, which calls keep that launched nothing."""
        calls = [
            x("lost", 0, 5, 5, 701, args={"correlation_id": "1"}),
            x("launch", 20, 10, 5, 701, args={"correlation_id": "3"}),
        ]
        rows = [named(1, "/device:GPU:0"), row_named(1, 14, "Stream #14(Compute)")]
        work = x("fusion", 50, 200, 14, 1, args={"correlation_id": "3"})
        self.take([*rows, *calls, work])
        self.assertEqual(self.times(), {"lost": (5, 0), "launch": (10, 200)})
        self.take(self.opened.json())
        self.assertEqual(self.times(), {"lost": (5, 0), "launch": (10, 200)})

    def test_devices_of_nsys2json_stand_beside_ranges_of_the_host(self):
        self.take(text_of("nsys2json"))
        times = {"sgemm": (0, 125), "fwd": (100, 0), "launch": (5, 0)}
        self.assertEqual(self.times(), times)
        kinds = {"sgemm": False, "fwd": None, "fwd on the device": True, "launch": None}
        self.assertEqual(self.kinds(), kinds)
        numbers = self.streams()
        self.assertEqual([name for _, name in numbers], ["NVTX Kernel Thread 5", *2 * ["stream 7"]])
        self.assertEqual([number for number, _ in numbers[1:]], ["7", "7"])

    def test_a_devices_name_that_comes_late_or_is_unknown_is_counted(self):
        early = x("early", 0, 5, 14, 1, cat="Foo")
        self.take([early, named(1, "/device:GPU:0"), x("k", 10, 5, 14, 1, cat="Foo")])
        self.assertEqual(self.times(), {"early": (5, 0), "k": (0, 5)})
        self.assertEqual(self.said, [NO_LAUNCH.format(1), AS_HOST.format(1)])
        self.take([named(1, "/device:GPU:0/stream:all Compute"), x("a", 0, 5, 1), x("b", 6, 5, 1)])
        self.assertEqual(self.said, [AS_HOST.format(2)])
        self.take([named(1, "/job:localhost/device:CPU:0 Compute"), x("a", 0, 5, 1)])
        self.assertEqual(self.said, [])

    def test_rows_of_ascend_that_sum_up_others_are_no_work(self):
        self.take(text_of("summaries of Ascend"))
        self.assertEqual(self.times(), {"aten::mm": (100, 0), "Node@launch": (20, 300)})
        host = {"aten::mm": None, "Node@launch": None}
        sums = {"Computing": True, "Free": True, "hcom_allReduce_": True}
        self.assertEqual(self.kinds(), {**host, "MatMul": False, **sums})
        devices = {(e.get("args") or {}).get("device") for e in self.exported()}
        self.assertEqual(devices - {None}, {0})
        for name in ("Computing", "Free", "Group 0 Communication"):
            self.assertTrue([row for row in self.rows() if row.endswith(": " + name)], name)
        without = [e for e in TRACES["summaries of Ascend"] if e.get("pid") != 30]
        self.take(without)  # it is no trace of Ascend's
        self.assertEqual(self.times()["Free"], (50, 0))

    def test_devices_of_high_numbers_stay_what_they_are(self):
        """Of works that say no device the process is it."""
        works = [x("k", 1, 5, 7, pid, cat="kernel") for pid in (2000, 2100, 31999, 170000)]
        first = self.imported(json.dumps([x("op", 0, 9), *works]))
        again = self.imported(first.json(), "second.prof")
        devices = [
            sorted(word for word in str(trace.table()).split() if ":" in word and word[-1] == ":")
            for trace in (first, again)
        ]
        self.assertEqual(len([d for d in devices[0] if d.startswith("cuda:")]), len(works))
        self.assertEqual(devices[0], devices[1])

    def test_a_launch_in_another_call_of_the_vendor_is_of_the_operator_around_both(self):
        """The scope before the launch is in the outer call, which holds no work itself."""
        self.take(
            [
                x("outer", 0, 500, cat="cpu_op"),
                call("cudaGraphLaunch", 50, 100, 1),
                x("inner", 60, 10, cat="cpu_op"),
                call("cudaLaunchKernel", 90, 10, 5),
                kernel("sgemm", 110, 30, correlation=5),
            ]
        )
        window = tables.Window(self.opened, 0, 0, 0, 0)
        events = tables.single_events([window], False, False)
        times = {e.name: e.self_device_time_total for e in events if e.self_device_time_total}
        self.assertEqual(times, {"outer": 30})

    def test_arrows_of_rocprof_are_launches(self):
        self.take(text_of("rocprof"))
        self.assertEqual(self.times(), {"hipLaunchKernel": (20, 500)})
        self.assertEqual(self.said, [DRAWN.format(2)])

    def test_a_number_may_be_written_as_a_float_or_a_text(self):
        writings = [int, float, str, lambda n: str(float(n))]
        events = [x("op", 10 * i, 5, f(100), f(100)) for i, f in enumerate(writings)]
        self.take([*events, x("other", 100, 5, 100.5, 100)])
        self.assertEqual(len({e.thread for e in self.opened.events() if e.name == "op"}), 1)
        self.assertEqual(len({e.thread for e in self.opened.events()}), 2)
        self.assertIn("(pid 100)", self.command("info", "t.prof").stdout)

    def test_memory_may_have_floats_or_texts_for_its_numbers(self):
        kept = {"Device Type": 0, "Device Id": -1, "Addr": 4096, "Bytes": 512}
        for writing in (int, float, str):
            with self.subTest(writing):
                args = {key: writing(value) for key, value in kept.items()}
                self.take([x("op", 0, 10), event("i", "[memory]", 5, s="t", args=args)])
                blocks = [e for e in self.opened.events() if e.kind == "memory"]
                self.assertEqual([e.bytes for e in blocks], [512])
                self.assertEqual(self.said, [])

    def test_a_text_for_a_threads_number_is_its_name(self):
        self.take(text_of("threads without numbers"))
        self.assertEqual(self.rows(), ["called so", "io", "process Host, worker"])

    def test_a_text_for_a_streams_number_is_its_name(self):
        self.take(text_of("streams without numbers"))
        events = [e for e in self.exported() if e["ph"] == "X"]
        devices = {e["name"]: e["args"]["device"] for e in events}
        self.assertEqual(devices, {"a": 0, "b": 1, "c": 1, "d": 1})
        self.assertEqual(len({(e["pid"], e["tid"]) for e in events}), 4)
        numbers = self.streams()
        self.assertEqual([name for _, name in numbers], ["s1", "s1", "s2", "s3"])
        self.assertIn(("9", "s2"), numbers)
        self.take(self.opened.json())
        self.assertEqual(self.streams(), numbers)


if __name__ == "__main__":
    unittest.main()
