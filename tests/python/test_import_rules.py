"""prof import, rule by rule: the right values of the traces of import_traces.py, and that an export
taken back has the same tables."""

import json
import os
import stat
import subprocess
import sys
import unittest

from folder import HAS_COMMAND
from hang_guard import HANG_SECONDS
from import_folder import ImportFolder
from import_traces import TRACES, event, named, text_of, x

import prof


class RuleFolder(ImportFolder):
    def totals(self, name):
        """By name: total, self and device time in us, of rows that are calls or device time."""
        self.opened = self.imported(text_of(name))
        return {
            r.name: (r.total_ns / 1000, r.self_ns / 1000, r.self_device_ns / 1000)
            for r in self.opened.aggregate()
        }

    def arrows(self):
        """(from, to) by the scopes' names that are innermost there; "-": a mark of its own."""
        events = self.exported()
        scopes = [e for e in events if e["ph"] == "X"]

        def around(end):
            held = [
                e
                for e in scopes
                if (e["pid"], e["tid"]) == (end["pid"], end["tid"])
                and e["ts"] <= end["ts"] < e["ts"] + e["dur"]
            ]
            if not held:
                self.assertIn((end["name"], end["pid"], end["tid"], end["ts"]), marks)
            return max(held, key=lambda e: e["ts"])["name"] if held else "-"

        marked = [e for e in events if e.get("args") == {"arrow mark": True}]
        marks = [(e["name"], e["pid"], e["tid"], e["ts"]) for e in marked]
        begins, ends = ({e["id"]: e for e in events if e["ph"] == ph} for ph in "sf")
        self.assertEqual(set(begins), set(ends))
        return sorted((around(begins[i]), around(ends[i])) for i in begins)

    def counted(self):
        """Counters of devices in the export: graph, value, and its process's name."""
        events = json.loads(self.opened.json())["traceEvents"]
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        graphs = [e for e in events if e["ph"] == "C"]
        return [(e["name"], e["args"]["value"], names[e["pid"]]) for e in graphs]

    def names_of(self, *names):
        """Names as JSON spells them; what the capture has, and how many were said to be halves."""
        parts = [f'{{"ph":"X","name":"{name}","pid":1,"tid":1,"ts":1,"dur":1}}' for name in names]
        opened = self.imported("[" + ",".join(parts) + "]")
        found = [line for line in self.said if "surrogate" in line]
        count = int(found[0].split()[1]) if found else 0
        return sorted(e.name for e in opened.events()), count

    def whose(self, path):
        """What prof info says of the process, its rank and its threads, but for a device's rows."""
        said = self.command("info", path).stdout.splitlines()
        rows = [line.split(None, 1)[1] for line in said if " recording " in line]
        rows = [row for row in rows if "stream" not in row and "(GPU" not in row]
        return [line for line in said if line.startswith(("process", "rank"))], rows

    def named_rows(self):
        rows = [row.split(" %  ")[1] for row in self.whose("t.prof")[1]]
        return sorted(row for row in rows if row.startswith("process"))


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Rules(RuleFolder):
    def test_losses_of_a_capture_that_was_exported(self):
        code = """if True:
            import sys
            import prof
            prof.profiler.start(2)
            for _ in range(3):
                with prof.scope("forgotten"): pass
            prof.profiler.clear()
            with prof.scope("kept"): pass
            prof.profiler.start(1)
            left = prof.scope("left open")
            left.__enter__()
            prof.profiler.stop()
            prof.Trace.now().dump(sys.argv[1], "capture")
        """
        done = subprocess.run(
            [sys.executable, "-c", code, self.path("o.prof")],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(self.command("info", "o.prof").stdout, r"(?m)^level +1, ")
        self.assertEqual(self.command("dump", "o.prof", "-o", "o.json").returncode, 0)
        with open(self.path("o.json")) as f:
            trace = f.read()
        with prof.Trace.open(self.path("o.prof")) as original:
            host = original.info().host
        self.assertEqual(self.imported(trace).info().host, host)
        self.assertEqual(
            self.said,
            [
                "not taken: 1 changes of levels, mutes and budgets, which an export of prof tells",
                "the capture from which prof exported this: 3 lost (cleared)",
            ],
        )
        for note in self.said:  # they stay in the capture
            self.assertIn("  " + note + "\n", self.command("info", "t.prof").stdout)

    def test_categories_of_every_torch(self):
        device = {name: row[2] for name, row in self.totals("categories of torch 1.8").items()}
        self.assertEqual(device, {"mm": 4000, "launch": 0, "copy": 500, "fill": 300})

    def test_annotations_of_a_device_are_no_work(self):
        self.assertEqual(
            {name: row[2] for name, row in self.totals("annotations are no work").items()},
            {"mm": 60, "launch": 0},
        )
        self.assertIn("Self device time total: 60.000us", self.command("table", "t.prof").stdout)
        self.assertEqual(self.spans()["step"], (100, 940))  # the row is in the export

    def test_launches_are_looked_up_within_their_process(self):
        for name in ("ranks", "ranks, devices first"):
            with self.subTest(name):
                rows = self.totals(name)
                self.assertEqual((rows["op 0"][2], rows["op 1"][2]), (60, 500))
                rows = {
                    e["name"]: (e["pid"], e["tid"])
                    for e in self.exported()
                    if e.get("cat") == "kernel"
                }
                self.assertEqual(len(set(rows.values())), 2)

    def test_calls_stay_where_they_are(self):
        self.totals("calls that overlap")
        self.assertEqual(self.spans(), {"A": (0, 8000), "B": (2000, 9000)})
        self.totals("a call that crosses")
        self.assertEqual(self.spans(), {"op": (0, 1000), "sync": (400, 9600)})
        self.totals("calls with children")
        self.assertEqual(self.spans(), {"A": (0, 5000), "B": (1000, 9000), "op": (6000, 10000)})

    def test_an_end_closes_the_begin_of_its_name_and_id(self):
        self.totals("one id")
        self.assertEqual(
            self.spans(), {"parent": (0, 9000), "read": (1000, 2000), "write": (2000, 5000)}
        )
        self.totals("one id, older")
        self.assertEqual(self.spans(), {"up": (0, 2000), "draw": (1000, 8000)})
        self.totals("ids and scopes")
        spans = self.spans()
        self.assertEqual(
            (spans["A"][1], spans["B"][1], spans["local"][1], spans["global"][1]),
            (2000, 8000, 500, 700),
        )
        # begun in one process, ended in another
        self.assertEqual((spans["other"][1], spans["older"][1]), (800, 300))
        self.assertEqual(
            sorted(e["dur"] for e in self.exported() if e["name"] == "two"), [400, 590]
        )
        self.assertIn("not taken: 1 ends without a begin (ph E, e, F)", self.said)

    def test_memory_is_played_in_the_order_of_time(self):
        self.totals("memory in no order")
        blocks = [
            (e.name, e.start_ns) for e in self.opened.events() if e.kind == "memory" and not e.bytes
        ]
        self.assertEqual(blocks, [("reserve", 100000), ("reserve", 200000)])
        self.assertIn(
            "before the start 128 B were used and 500 B allocated", self.opened.memory_text()
        )

    def test_an_end_closes_down_to_the_begin_of_its_name(self):
        rows = self.totals("ends by name")
        self.assertEqual(
            {name: row[:2] for name, row in rows.items()},
            {"main": (1000, 800), "step": (200, 110), "op": (90, 90)},
        )
        self.assertIn(
            "taken: 1 begun and without an end (ph B): they end with the scope around them",
            self.said,
        )
        self.assertIn("not taken: 1 ends without a begin (ph E, e, F)", self.said)

    def test_time_order_counts_and_not_file_order(self):
        self.assertEqual(
            {name: row[:2] for name, row in self.totals("no order").items()},
            {"outer": (1000, 800), "inner": (200, 200)},
        )
        self.totals("no order of ids")
        self.assertEqual(self.spans(), {"a": (0, 3000), "b": (1000, 3000)})

    def test_counters_by_process_and_id(self):
        self.totals("counters")
        values = {}
        for e in self.exported():
            if e["ph"] == "C":
                values.setdefault(e["name"], []).append(e["args"]["value"])
        self.assertEqual(
            values,
            {
                "queue": [10, 20],
                "queue (process 12)": [9000, 8000],
                "heap[0] bytes": [0, 2],
                "heap[1] bytes": [1, 3],
            },
        )

    def test_counters_whose_names_meet_stay_apart(self):
        self.totals("counters whose names meet")
        values = {}
        for e in self.exported():
            if e["ph"] == "C":
                values.setdefault(e["name"], []).append(e["args"]["value"])
        wanted = [[1], [1], [2], [2], [5, 6], [7], [900, 901]]
        self.assertEqual(sorted(values.values()), wanted)

    def test_a_counters_value_may_be_a_text_and_each_that_is_no_number_is_counted(self):
        values = {"a": "5", "b": 6, "c": "x", "d": "", "e": None, "f": " 7", "g": "-1.5e1"}
        self.opened = self.imported(json.dumps([x("op", 0, 1), event("C", "m", 1, args=values)]))
        found = {e["name"]: e["args"]["value"] for e in self.exported() if e["ph"] == "C"}
        self.assertEqual(found, {"m a": 5, "m b": 6, "m g": -15})
        self.assertIn("not taken: 4 values of counters that are no numbers", self.said)

    def test_arguments_that_are_null_are_counted(self):
        events = [x("op", 0, 1, args={"a": None, "b": 1}), x("op", 2, 1)]
        self.opened = self.imported(json.dumps(events))
        self.assertEqual([e.args for e in self.opened.events()], [{"b": 1}, None])
        said = "taken: 1 with arguments that are null: these are left out"
        self.assertEqual(self.said, [said])

    def test_members_beside_the_events_have_a_bound(self):
        members = {f"member {i}": i for i in range(4100)}
        opened = self.imported(json.dumps({"traceEvents": [x("op", 0, 1)], **members}))
        self.assertEqual(sum(e.kind == "instant" for e in opened.events()), 4096)
        self.assertIn("not taken: 4 members beside the events, past 4096 of them", self.said)

    def test_counters_alone_are_known_by_their_process_too(self):
        self.totals("counters alone")
        names = sorted({e["name"] for e in self.exported() if e["ph"] == "C"})
        self.assertEqual(names, ["queue", "queue (process 12)"])

    def test_what_never_ends_lasts_as_long_as_the_trace(self):
        rows = self.totals("an end that is not there")
        times = {name: row[:2] for name, row in rows.items()}
        self.assertEqual(times, {"main": (110, 10), "op": (100, 100)})
        stacks = {r.name: r.stack for r in self.opened.aggregate(group=("name", "scopes"))}
        self.assertEqual(stacks, {"main": "", "op": "main"})

    def test_scopes_end_with_the_last_time_that_a_trace_can_have(self):
        begin = 9223372036854770  # and the last is 9223372036854775.807
        for category in ({}, {"cat": "cpu_op"}):
            long = x("long", begin + 2, 31 * 10**12, tid=3, **category)
            asynchronous = [event("b", "req", begin, cat="a", id=1, tid=4)]
            events = [event("B", "open", begin), long, *asynchronous]
            self.opened = self.imported(json.dumps(events))
            found = {e.name: e.duration_ns for e in self.opened.events()}
            self.assertEqual(found, {"long": 3807, "open": 5807, "req": 5807})
            said = "taken: 1 that would end after the last time there is: they end then"
            self.assertIn(said, self.said)

    def test_a_begin_before_the_clocks_0_is_told(self):
        said = "taken: {} ns by which all is later: the trace begins before its clock's 0"
        self.opened = self.imported(json.dumps([x("a", -5.25, 1), x("b", 3, 1)]))
        self.assertEqual(self.spans(), {"a": (0, 1), "b": (8.25, 1)})
        self.assertEqual(self.said, [said.format(5250)])
        members = {"baseTimeNanoseconds": 6000, "traceEvents": [x("a", -5.25, 1)]}
        self.imported(json.dumps(members))
        self.assertEqual(self.said, [])
        self.imported("[]")
        self.assertEqual(self.said, [])

    def test_work_before_its_launch_stays_its_launchs(self):
        rows = self.totals("before its launch")
        self.assertEqual({name: row[2] for name, row in rows.items()}, {"mm": 60, "launch": 0})
        said = "taken: 1 of devices, begun before their launch: the trace's clocks disagree"
        self.assertIn(said, self.said)
        self.assertEqual(self.spans()["k"], (15, 60))  # the export is no fault of its own

    def test_what_a_jump_left_is_marked_again(self):
        scopes = [x("left", 0, 5, args={"skipped": True}), x("user's", 9, 5, args={"skipped": 7})]
        self.opened = self.imported(json.dumps(scopes))
        self.assertEqual({e.name: e.args for e in self.opened.events()}["left"], None)
        args = {e["name"]: e["args"] for e in self.exported()}
        self.assertIs(args["left"]["skipped"], True)
        self.assertEqual(args["user's"]["skipped#"], 7)

    def test_arguments_of_stretches_of_a_device_are_kept(self):
        for value in (1, False, "x"):
            args = {"device": 0, "stream": 7, "annotation": value}
            stretch = x("step", 1, 5, cat="gpu_user_annotation", args=args)
            self.opened = self.imported(json.dumps([stretch]))
            found = [e["args"] for e in self.exported()]
            said = {"device": 0, "stream": 1, "annotation": True, "annotation#": value}
            self.assertEqual(found, [said])

    def test_arguments_of_ends_are_kept(self):
        self.totals("arguments of ends")
        args = {e.name: e.args for e in self.opened.events()}
        self.assertEqual(
            args,
            {"open": {"path": "/x", "mode": "rw", "retval": 7}, "req": {"url": "a", "status": 200}},
        )

    def test_what_stands_on_a_streams_row_stays_there(self):
        rows = self.totals("on a stream's row")
        self.assertEqual((rows["k"][2], rows["k2"][2]), (100, 60))
        self.assertEqual(
            len({(e["pid"], e["tid"]) for e in self.exported() if e["name"] != "op"}), 1
        )

    def test_the_first_event_does_not_decide_which_times_are_possible(self):
        self.assertEqual(
            {name: row[0] for name, row in self.totals("the first time is 0").items()},
            {"a": 100, "b": 100},
        )
        self.assertEqual(
            self.said,
            [
                "not taken: 1 with a time that is no number, or years away from the others (the "
                "first: bad)"
            ],
        )

    def test_rows_of_a_device_are_known_by_its_name_or_by_what_was_launched(self):
        for name in ("a device by name", "a device by launch"):
            with self.subTest(name):
                self.assertEqual(self.totals(name), {"hipLaunchKernel": (20, 20, 500)})
                self.assertEqual(self.arrows(), [("hipLaunchKernel", "gemm")])
        self.assertEqual(self.totals("Ascend"), {"aten::mm": (50, 50, 300)})
        self.assertIn("ext_dev:0", self.opened.table())  # it is no GPU
        self.totals("a device by name")
        self.assertEqual([e.device for e in self.opened.events() if e.kind == "counter"], [10])

    def test_a_counter_may_be_all_that_is_known_of_a_device(self):
        value = event("C", "used", 1, pid=0, args={"used": 5})
        for what, key in (("process_labels", "labels"), ("process_name", "name")):
            with self.subTest(what):
                self.opened = self.imported(json.dumps([named(0, "GPU 3", what, key), value]))
                self.assertEqual(self.counted(), [("used used", 5.0, "GPU 3")])

    def test_counters_alone_make_any_number_of_devices(self):
        events = []
        for i in range(40):  # the table of devices grows while counters are given theirs
            events.append(named(i, f"GPU {i}"))
            events.append(event("C", f"used {i}", 1, pid=i, args={"value": i}))
            if i % 3 == 0:
                work = {"device": i, "stream": 7}
                events.append(x("k", 1, 1, 7, i, cat="kernel", args=work))
        self.opened = self.imported(json.dumps(events))
        wanted = sorted((f"used {i}", float(i), f"GPU {i}") for i in range(40))
        self.assertEqual(sorted(self.counted()), wanted)

    def test_devices_past_the_bound_are_told(self):
        events = []
        for i in range(1027):
            work = {"device": i, "stream": 7}
            events.append(x("k", 2 * i, 1, 7, i, cat="kernel", args=work))
        for i in (0, 1023, 1025):
            events.append(event("C", "used", 1, pid=i, args={"value": i}))
        self.opened = self.imported(json.dumps(events))
        self.assertIn("devices      1024\n", self.command("info", "t.prof").stdout)
        self.assertIn("taken: 4 of devices past 1024: they stand at the last of these", self.said)
        written = self.exported()
        pids = {e["pid"] for e in written if e.get("args", {}).get("device") == 1023}
        self.assertEqual(len(pids), 1)
        last = [e["name"] for e in written if e["pid"] in pids]
        self.assertEqual(sorted(last), ["k"] * 4 + ["used"] * 2)

    def test_halves_of_surrogate_pairs_are_replaced_and_counted(self):
        a, high, low = r"\u0041", r"\uD83d", r"\ude00"
        for spelled, name, count in (
            (high + low, "\U0001f600", 0),
            (high + low + high + low, "\U0001f600\U0001f600", 0),
            (high + a + "b", "\ufffdAb", 1),
            (high, "\ufffd", 1),
            (low, "\ufffd", 1),
            (low + high, "\ufffd\ufffd", 2),
            (high + high + low, "\ufffd\U0001f600", 1),
            (high + low + low, "\U0001f600\ufffd", 1),
            (high + "u" + low, "\ufffdu\ufffd", 2),
            (high + r"\n" + low, "\ufffd\n\ufffd", 2),
            (high + r"\\" + "ude00", "\ufffd\\ude00", 1),
            (r"\\" + "ud83d" + low, "\\ud83d\ufffd", 1),
            (r"\\" + high + low, "\\\U0001f600", 0),
            (r"\ud7ff\ue000" + a, "\ud7ff\ue000A", 0),
        ):
            with self.subTest(spelled):
                self.assertEqual(self.names_of(spelled), ([name], count))
        self.assertEqual(self.names_of(r"\ud800", r"\ud801", "?"), (["?", "\ufffd", "\ufffd"], 2))

    def test_pairs_may_be_cut_by_the_end_of_what_is_read_at_once(self):
        read_bytes = 256 << 10
        begin = '[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"'
        for before in range(26):
            pad = " " * (read_bytes - len(begin) - before)
            opened = self.imported(pad + begin + r'\ud83d\ude00\ud83d\u0041"}]')
            self.assertEqual([e.name for e in opened.events()], ["\U0001f600\ufffdA"])
            said = "taken: 1 halves of surrogate pairs in strings: they are U+FFFD now"
            self.assertEqual(self.said, [said])

    def test_one_object_a_line(self):
        lines = [
            json.dumps({"traceEvents": [x(name, ts, 10, cat="kernel", args={"device": 0})]})
            for name, ts in (("k0", 0), ("k1", 5))
        ]
        self.opened = self.imported("\n".join(lines) + "\n")
        self.assertEqual(
            {r.name: r.self_device_ns for r in self.opened.aggregate()}, {"k0": 10000, "k1": 10000}
        )
        for content in (lines[0] + "\n" + lines[1][:-5], lines[0] + "\n[1]", lines[0] + "\n7"):
            with open(self.path("t.json"), "w") as f:
                f.write(content)
            self.assertEqual(
                self.command("import", "t.json", "-o", "half.prof").returncode, 1, content
            )
            with self.assertRaises(ValueError):
                prof.import_trace(self.path("t.json"))
        with open(self.path("t.json"), "w") as f:
            f.write("\n".join(json.dumps(x("a", i, 1)) for i in range(3)))  # events, and no traces
        self.assertIn(
            "it has no traceEvents", self.command("import", "t.json", "-o", "none.prof").stderr
        )

    def test_stacks_by_number_are_call_stacks(self):
        self.totals("stacks by number")
        stacks = {r.name: r.stack for r in self.opened.aggregate(group=("name", "stack"))}
        circle = stacks.pop("b")
        self.assertEqual(
            stacks,
            {"a": "leaf;lib.so: f,g;main", "op": "lib.so: f,g;main", "call": "main", "plain": ""},
        )
        self.assertEqual(set(circle.split(";")), {"in a circle"})
        args = {e.name: e.args for e in self.opened.events()}
        self.assertEqual(args["a"], {"n": 1, "Call stack": "leaf;lib.so: f,g;main"})
        self.assertEqual(args["b"]["m"], 2)
        self.assertEqual(self.said, ["taken: 1 with a text cut or arguments left out"])

    def test_frames_may_stand_before_the_events(self):
        frames = {"7": {"name": "f", "parent": 6}, "9": {"parent": "7"}}
        events = [x("a", 1, 2, sf=7), x("b", 3, 1, sf=8), x("c", 5, 1, sf=9)]
        opened = self.imported(json.dumps({"stackFrames": frames, "traceEvents": events}))
        stacks = [e.args and e.args["Call stack"] for e in opened.events()]
        self.assertEqual(stacks, ["f", None, "(unnamed);f"])
        self.assertEqual(
            self.said,
            [
                "not taken: 1 call stacks by number or address (sf, stack)",
                "taken: 2 with a text cut or arguments left out",
            ],
        )

    def test_what_is_left_out_is_counted_by_reason(self):
        self.totals("stack frames")
        self.assertEqual(self.said, ["not taken: 3 call stacks by number or address (sf, stack)"])
        self.assertEqual(
            sorted(self.totals("names of any type")), ["(unnamed)", "123", "list", "ok", "true"]
        )
        self.assertEqual(
            self.said,
            [
                "not taken: 3 elements that are no objects",
                "taken: 1 with members that are not known (the first: unknown)",
                "taken: 3 with a name, a category, arguments or another member of a wrong type",
                "taken: 2 without a name",
            ],
        )

    def test_each_line_has_frames_of_its_own(self):
        def line(number, **members):
            event = x(f"a{number}", number * 100, 10, sf="1")
            return json.dumps({"traceEvents": [event], **members})

        def frames(name):
            return {"1": {"name": name, "parent": "2"}, "2": {"name": f"around {name}"}}

        lines = [line(0, stackFrames=frames("f")), line(1, stackFrames=frames("g")), line(2)]
        opened = self.imported("\n".join(lines))
        stacks = [(e.args or {}).get("Call stack") for e in opened.events()]
        self.assertEqual(stacks, ["f;around f", *2 * ["g;around g"]])
        self.assertEqual(self.said, [])
        opened = self.imported(line(0) + line(1, stackFrames=frames("h")))
        stacks = [(e.args or {}).get("Call stack") for e in opened.events()]
        self.assertEqual(stacks, 2 * ["h;around h"])

    def test_the_capture_says_again_what_was_left_out(self):
        self.totals("names of any type")
        said = self.command("info", "t.prof").stdout
        self.assertIn("notes        4\n", said)
        for line in self.said:
            self.assertIn(f"  {line}\n", said)
        self.assertEqual(json.loads(self.opened.json())["prof"]["notes"], self.said)
        with open(self.path("t.json"), "w") as f:
            f.write(json.dumps([x("a", 1, 1), x("b", 2, 1)])[:-20])
        self.assertEqual(self.command("import", "t.json", "-o", "cut.prof").returncode, 1)
        self.assertIn(
            "not taken: what follows, for the trace ends in the middle, behind byte ",
            self.command("info", "cut.prof").stdout,
        )

    def test_profs_own_trace_is_known_by_what_it_says_however_long_that_is(self):
        rows = [
            {**named(1, name, "thread_name"), "tid": tid}
            for tid, name in ((2, "m"), (10000002, "m (overlapping 1)"))
        ]
        events = [*rows, x("a", 0, 10), x("b", 5, 10, 10000002)]
        account = {"version": "1", "threads": ["x" * 100] * 200}
        opened = self.imported(json.dumps({"traceEvents": events, "prof": account}))
        self.assertEqual(len({e.thread for e in opened.events()}), 1)
        self.assertEqual(self.said, [])

    def test_captures_are_their_owners_alone(self):
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.imported(text_of("no order"))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("t.prof")).st_mode), 0o600)

    def test_names_that_are_not_there_are_not_made_up(self):
        called = {"one of two processes has a name": {9: "server"}}
        for name in ("no names", "no names of two processes", *called):
            with self.subTest(name):
                self.totals(name)
                self.assertIn("process       (pid 1)\n", self.command("info", "t.prof").stdout)
                events = json.loads(self.opened.json())["traceEvents"]
                names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
                self.assertEqual(names, called.get(name, {}))
        self.totals("a process called prof")
        self.assertIn("process      prof (pid 1)\n", self.command("info", "t.prof").stdout)

    def test_what_a_trace_does_not_say_is_not_known(self):
        for base, rank, started in ((0, -1, "not known"), (1794801645 * 10**9, 2, "2026-")):
            members = {"baseTimeNanoseconds": base}
            if rank >= 0:
                members["distributedInfo"] = {"rank": rank, "world_size": 8}
            self.imported(json.dumps({**members, "traceEvents": [x("a", 7, 1)]}))
            said = self.command("info", "t.prof").stdout
            self.assertIn(f"\nstarted      {started}", said)
            self.assertIn("\nrank         " + ("2 of 8" if rank >= 0 else "not known") + "\n", said)

    def test_a_process_may_have_a_text_for_its_number(self):
        wanted = ["process Bar (bar's name)", "process Foo", "process Foo, async q"]
        self.totals("processes without numbers")
        self.assertEqual(self.named_rows(), wanted)
        graphs = {e["name"] for e in self.exported() if e["ph"] == "C"}
        self.assertEqual(graphs, {"c (process Foo)"})
        events = TRACES["processes without numbers"][1:]
        self.opened = self.imported(json.dumps(events))  # and no process has a number
        self.assertEqual(self.named_rows(), wanted)

    def test_no_device_names_the_capture(self):
        counter = event("C", "used", 1, pid=0, args={"used": 5})
        self.imported(json.dumps([named(0, "GPU 3"), counter]))
        self.assertIn("process       (pid 0)\n", self.command("info", "t.prof").stdout)

    def test_an_export_taken_back_has_the_same_tables(self):
        for name in TRACES:
            with self.subTest(name):
                self.opened = self.imported(text_of(name))
                first = self.opened.table()
                with open(self.path("back.json"), "w") as f:
                    f.write(self.opened.json())
                with open(self.path("back.json")) as f:
                    again = self.imported(f.read(), "again.prof")
                self.assertEqual(again.table(), first)
                for group in ("thread", "stack", "scopes", "device", "category"):
                    tables = [trace.table(group=(group,)) for trace in (self.opened, again)]
                    self.assertEqual(*tables, group)
                self.assertEqual(*(self.whose(path) for path in ("again.prof", "t.prof")))
                counts, numbers = [], []
                for trace in (self.opened, again):
                    self.opened = trace
                    written = self.exported()
                    counts.append(
                        sorted((e["ph"], e["name"], e["ts"], e.get("dur")) for e in written)
                    )
                    ends = [e for e in self.opened.events() if e.kind.startswith("flow")]
                    numbers.append(sorted((e.kind, e.id, e.name) for e in ends))
                self.assertEqual(*counts)
                self.assertEqual(*numbers)


if __name__ == "__main__":
    unittest.main()
