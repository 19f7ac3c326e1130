"""prof import: events of all kinds become scopes, lanes, asynchronous rows, arrows, counters and
memory."""

import json
import os
import unittest

from import_events import COMMAND, EventFolder, x


@unittest.skipUnless(os.access(COMMAND, os.X_OK), "the prof command is not built")
class Events(EventFolder):
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


if __name__ == "__main__":
    unittest.main()
