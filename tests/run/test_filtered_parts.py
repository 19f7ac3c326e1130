"""Arrows, memory events, counters and instants in a filtered export, compared with a filter in
Python over the unfiltered export."""

import csv
import json
import os
import random
import sys

import pytest
from case import PYTHON
from known_capture import Recorded
from nested_capture import nested_events

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from perfetto_file import fields_of, message

MOMENTS_US = 900


def other_events(seed):
    """At odd halves of a us: no scope begins or ends there."""
    chance = random.Random(seed)
    found = []
    moments = [x + 0.5 for x in range(MOMENTS_US)]
    chance.shuffle(moments)

    def put(phase, **words):
        found.append({"ph": phase, "pid": 7, "tid": chance.choice((11, 12)), **words})

    for number in range(80):
        begin, end = sorted((moments.pop(), moments.pop()))
        words = {"cat": "flow", "name": f"arrow {number}", "id": number + 1}
        put("s", ts=begin, **words)
        put("f", ts=end, bp="e", **words)
    used, live = 0, []
    for at in sorted(moments.pop() for _ in range(240)):
        if live and chance.random() < 0.4:
            address, size = live.pop(chance.randrange(len(live)))
            size = -size
        else:
            address, size = chance.randrange(1, 12) * 4096, chance.randrange(1, 2000)
            while any(address == other for other, _ in live):
                address += 1 << 20
            live.append((address, size))
        used += size
        args = {"Addr": address, "Bytes": size, "Total Allocated": used, "Total Reserved": 0}
        args |= {"Device Type": 0, "Device Id": -1}
        put("i", s="t", name="[memory]", cat="cpu_instant_event", ts=at, args=args)
    for number in range(60):
        put("C", name="value", cat="count", ts=moments.pop(), args={"value": number})
        put("i", s="t", name=f"mark {number % 3}", cat="mark", ts=moments.pop())
    return found


def step_events():
    return [
        {"ph": "X", "name": f"ProfilerStep#{number}", "cat": "user_annotation", "pid": 7}
        | {"tid": 11, "ts": number * 200, "dur": 200, "args": {"step mark": number}}
        for number in range(4)
    ]


class Export:
    """The rows of a JSON file by kind. Times are ns after the first event of the whole file."""

    def __init__(self, path, origin=None):
        with open(path, encoding="utf-8") as file:
            self.lines = [json.loads(x.rstrip(",\n")) for x in file if x.startswith('{"ph":')]
        events = [x for x in self.lines if x["ph"] != "M" and "ts" in x]
        self.origin = min(x["ts"] for x in events) if origin is None else origin
        for event in events:
            event["ns"] = round((event["ts"] - self.origin) * 1000)
        self.all_scopes = [x for x in events if x["ph"] == "X"]
        self.scopes = [x for x in self.all_scopes if "step mark" not in x.get("args", {})]
        self.steps = [x for x in self.all_scopes if "step mark" in x.get("args", {})]
        self.memory = [x for x in events if x["ph"] == "i" and x["name"] == "[memory]"]
        self.instants = [x for x in events if x["ph"] == "i" and x.get("cat") == "mark"]
        counters = [x for x in events if x["ph"] == "C"]
        self.graphs = [x for x in counters if "bytes (" in x["name"]]
        self.counters = [x for x in counters if "bytes (" not in x["name"]]
        flows = [x for x in events if x["ph"] in "sf"]
        self.arrows = {}
        for flow in flows:
            self.arrows.setdefault(flow["name"], {})[flow["ph"]] = flow


def place(event):
    return event["tid"], event["ns"]


def arrow_places(export):
    return {
        name: tuple(place(ends[phase]) for phase in "sf") for name, ends in export.arrows.items()
    }


def changes(events):
    return sorted((*place(x), x["args"]["Addr"], x["args"]["Bytes"]) for x in events)


KINDS_OF_ROWS = ("scope", "flow_begin", "flow_end", "memory", "counter", "instant", "step")

# The words of a filter, a function that selects scopes, and one that selects other times. None:
# only times inside of scopes that pass.
FILTERS = (
    (("--name", "^att"), lambda x: x["name"].startswith("att"), None),
    (
        ("--category", "runtime", "--arg", "kind=x"),
        lambda x: x["cat"] == "runtime" and x.get("args", {}).get("kind") == "x",
        None,
    ),
    (
        ("--min", "10us", "--name", "load"),
        lambda x: x["dur"] >= 10 and x["name"] == "load",
        None,
    ),
    (("--arg", "layer=2"), lambda x: x.get("args", {}).get("layer") == 2, None),
    (
        ("--name", "dense", "--thread", "11"),
        lambda x: x["name"] == "dense" and x["tid"] == 11,
        None,
    ),
    (("--thread", "12"), lambda x: x["tid"] == 12, lambda x: x["tid"] == 12),
    (
        ("--step", "1..2"),
        lambda x: 200000 <= x["ns"] < 600000,
        lambda x: 200000 <= x["ns"] < 600000,
    ),
)


class Parts(Recorded):
    def setUp(self):
        super().setUp()
        events = nested_events(3) + other_events(4) + step_events()
        trace = self.write("parts.json", json.dumps({"traceEvents": events}))
        self.capture = os.path.join(self.folder, "parts.prof")
        self.prof("import", trace, "-o", self.capture)
        self.whole = Export(self.dump("whole.json")[0])
        self.assertEqual(len(self.whole.arrows), 80)
        self.assertEqual(len(self.whole.memory), 240)
        self.assertEqual((len(self.whole.counters), len(self.whole.instants)), (60, 60))
        self.assertEqual(len(self.whole.steps), 4)

    def dump(self, name, *words):
        done = self.prof("dump", self.capture, *words, "-o", name, env=PYTHON)
        return os.path.join(self.folder, name), done.stderr

    def moment_test(self, takes, takes_moment):
        """Whether a moment is inside of a scope that passes."""
        if takes_moment:
            return takes_moment
        scopes = [x for x in self.whole.scopes if takes(x)]
        return lambda event: any(
            x["tid"] == event["tid"] and x["ns"] <= event["ns"] <= x["ns"] + x["dur"] * 1000
            for x in scopes
        )

    def expected_memory(self, passes):
        owners, found = {}, []
        for event in sorted(self.whole.memory, key=lambda x: x["ns"]):
            address, size = event["args"]["Addr"], event["args"]["Bytes"]
            if size > 0:
                owners[address] = passes(event)
            if owners[address]:
                found.append(event)
        return found

    def expected_arrows(self, passes):
        return {
            name: places
            for name, places in arrow_places(self.whole).items()
            if all(passes(end) for end in self.whole.arrows[name].values())
        }

    def assert_counted(self, said, what, left_out, count):
        self.assertIn(f"{left_out} of {count} {what}", said)

    def test_json_has_the_events_inside_of_scopes_that_pass(self):
        for words, takes, takes_moment in FILTERS:
            passes = self.moment_test(takes, takes_moment)
            path, said = self.dump("some.json", *words)
            found = Export(path, self.whole.origin)
            arrows, memory = self.expected_arrows(passes), self.expected_memory(passes)
            self.assertTrue(0 < len(arrows) < 80, words)
            self.assertTrue(0 < len(memory) < 240, words)
            self.assertEqual(arrow_places(found), arrows, words)
            self.assertEqual(changes(found.memory), changes(memory), words)
            self.assert_counted(said, "arrows", 80 - len(arrows), 80)
            self.assert_counted(said, "allocations and frees", 240 - len(memory), 240)

    def test_each_end_of_an_arrow_is_inside_of_a_written_scope_or_has_a_mark(self):
        for words, _, _ in FILTERS:
            found = Export(self.dump("some.json", *words)[0], self.whole.origin)
            marks = {place(x) for x in found.lines if "arrow mark" in x.get("args", {})}
            for ends in found.arrows.values():
                for end in ends.values():
                    is_inside = any(
                        x["tid"] == end["tid"] and x["ns"] <= end["ns"] < x["ns"] + x["dur"] * 1000
                        for x in found.all_scopes
                    )
                    self.assertEqual(is_inside, place(end) not in marks, (words, end))

    def test_counters_instants_and_graphs_are_of_the_steps(self):
        for words, _, takes_moment in FILTERS:
            path, said = self.dump("some.json", *words)
            found = Export(path, self.whole.origin)
            for kind in ("counters", "instants", "graphs"):
                expected = getattr(self.whole, kind)
                if "--step" in words or (kind == "instants" and words[0] == "--thread"):
                    expected = [x for x in expected if takes_moment(x)]
                if kind == "instants" and words[2:] == ("--thread", "11"):
                    expected = [x for x in expected if x["tid"] == 11]
                self.assertEqual(
                    sorted((*place(x), *x.get("args", {}).items()) for x in getattr(found, kind)),
                    sorted((*place(x), *x.get("args", {}).items()) for x in expected),
                    (words, kind),
                )
            written = len(found.counters) + len(found.instants)
            self.assert_counted(said, "counters and instants", 120 - written, 120)

    def test_memory_rows_that_pass_are_equal_to_those_of_the_unfiltered_file(self):
        with open(os.path.join(self.folder, "whole.json"), encoding="utf-8") as file:
            whole = set(file)
        with open(self.dump("some.json", "--name", "^att")[0], encoding="utf-8") as file:
            some = {x for x in file if '"[memory]"' in x}
        self.assertLess(some, whole)

    def test_a_perfetto_trace_has_the_same(self):
        for words, takes, takes_moment in FILTERS:
            passes = self.moment_test(takes, takes_moment)
            path, _ = self.dump("some.pftrace", *words)
            ends, changes_found, values = [], [], 0
            for _, packet in fields_of(self.read_bytes(path)):
                event = message(message(packet).get(11, b""))
                name = event.get(23, b"").decode()
                if 47 in event:
                    ends.append((name, int.from_bytes(event[47], "little")))
                if 48 in event:
                    ends.append((name, int.from_bytes(event[48], "little")))
                values += 44 in event
                if name.startswith("[memory]"):
                    notes = [message(x) for f, x in fields_of(message(packet)[11]) if f == 4]
                    changes_found.append((name, *(x.get(3, x.get(4)) for x in notes)))
            arrows = self.expected_arrows(passes)
            self.assertEqual(sorted(x for x, _ in ends), sorted([*arrows, *arrows]), words)
            self.assertEqual(len({number for _, number in ends}), len(arrows))
            expected = [
                (
                    "[memory] free" if x["args"]["Bytes"] < 0 else "[memory] alloc",
                    x["args"]["Addr"],
                    abs(x["args"]["Bytes"]),
                )
                for x in self.expected_memory(passes)
            ]
            self.assertEqual(sorted(changes_found), sorted(expected), words)
            taken = [x for x in self.whole.counters if "--step" not in words or takes_moment(x)]
            self.assertEqual(values, len(taken), words)

    def rows_of_columns(self, path):
        pyarrow = pytest.importorskip("pyarrow")
        if path.endswith(".parquet"):
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path).to_pylist()
        import pyarrow.ipc

        with pyarrow.ipc.open_file(path) as file:
            return file.read_all().to_pylist()

    def test_parquet_and_arrow_files_have_the_same(self):
        for number, (words, takes, takes_moment) in enumerate(FILTERS):
            passes = self.moment_test(takes, takes_moment)
            name = f"some.{('parquet', 'arrow')[number % 2]}"
            path, said = self.dump(name, *words)
            rows = self.rows_of_columns(path)
            found = {kind: [x for x in rows if x["kind"] == kind] for kind in KINDS_OF_ROWS}
            arrows = self.expected_arrows(passes)
            for kind, end in (("flow_begin", 0), ("flow_end", 1)):
                self.assertEqual(
                    sorted((x["name"], x["tid"], x["start_ns"]) for x in found[kind]),
                    sorted((name, *places[end]) for name, places in arrows.items()),
                    (words, kind),
                )
            self.assertEqual(
                sorted(
                    (x["tid"], x["start_ns"], x["name"], x["address"], x["bytes"])
                    for x in found["memory"]
                ),
                sorted(
                    (*place(x), "free" if x["args"]["Bytes"] < 0 else "alloc")
                    + (x["args"]["Addr"], abs(x["args"]["Bytes"]))
                    for x in self.expected_memory(passes)
                ),
                words,
            )
            json_path, said_of_json = self.dump("some.json", *words)
            exported = Export(json_path, self.whole.origin)
            self.assertEqual(
                [len(found[kind]) for kind in ("scope", "counter", "instant", "step")],
                [
                    len(exported.scopes),
                    len(exported.counters),
                    len(exported.instants),
                    len(exported.steps),
                ],
            )
            self.assertEqual(
                said.splitlines()[0].replace(name, "some.json"), said_of_json.splitlines()[0]
            )

    def read_bytes(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_csv_has_the_counters_and_says_nothing_of_arrows(self):
        path, said = self.dump("some.csv", "--step", "1..2")
        with open(path, encoding="utf-8") as file:
            rows = [x for x in csv.DictReader(file) if x["kind"] == "counter"]
        expected = [x for x in self.whole.counters if 200000 <= x["ns"] < 600000]
        self.assertEqual(
            sorted(float(x["value"]) for x in rows),
            sorted(x["args"]["value"] for x in expected),
        )
        self.assertNotIn("arrows", said.partition("\n")[0])
        self.assertNotIn("allocations", said.partition("\n")[0])

    def test_a_filter_that_no_scope_passes_writes_nothing(self):
        self.prof("dump", self.capture, "--name", "none", "-o", "no.json", status=3)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "no.json")))
        found = Export(self.dump("marks.json", "--name", "^mark 1")[0], self.whole.origin)
        self.assertEqual(found.scopes, [])
        self.assertEqual(len(found.instants), 60)


class Launches(Recorded):
    """Arrows from launches to work on a device."""

    def setUp(self):
        super().setUp()
        events = []
        for number in range(12):
            at, thread = number * 100, 11 + number % 2
            events += [
                {"ph": "X", "name": f"outer {number % 3}", "cat": "cpu_op", "pid": 7}
                | {"tid": thread, "ts": at, "dur": 50, "args": {"External id": number + 1}},
                {"ph": "X", "name": "launch", "cat": "cuda_runtime", "pid": 7}
                | {"tid": thread, "ts": at + 10, "dur": 5, "args": {"correlation": number + 1}},
                {"ph": "X", "name": f"kernel {number % 2}", "cat": "kernel", "pid": 0}
                | {"tid": 7, "ts": at + 30, "dur": 20}
                | {"args": {"correlation": number + 1, "device": 0, "stream": 7}},
            ]
        trace = self.write("launches.json", json.dumps({"traceEvents": events}))
        self.capture = os.path.join(self.folder, "launches.prof")
        self.prof("import", trace, "-o", self.capture)

    def arrows(self, name, *words):
        """The names of scopes at both ends, and what was said."""
        said = self.prof("dump", self.capture, *words, "-o", name).stderr
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        begins = [x for x in events if x["ph"] == "s"]
        ends = {x["id"]: x for x in events if x["ph"] == "f"}
        scopes = [x for x in events if x["ph"] == "X"]

        def around(end):
            found = [
                x["name"]
                for x in scopes
                if (x["pid"], x["tid"]) == (end["pid"], end["tid"])
                and x["ts"] <= end["ts"] <= x["ts"] + x["dur"]
            ]
            return tuple(sorted(found))

        return sorted((around(x), around(ends[x["id"]])) for x in begins), said

    def test_an_arrow_is_written_if_both_ends_pass(self):
        whole, _ = self.arrows("whole.json")
        self.assertEqual(len(whole), 12)
        some, said = self.arrows("some.json", "--name", "outer|kernel 0")
        self.assertEqual(len(some), 6)
        self.assertTrue(all(end == ("kernel 0",) for _, end in some))
        self.assertTrue(all(len(begin) == 1 for begin, _ in some))
        self.assertIn("6 of 12 arrows", said)
        some, said = self.arrows("some.json", "--name", "outer 1|kernel")
        self.assertEqual([begin for begin, _ in some], [("outer 1",)] * 4)
        self.assertIn("8 of 12 arrows", said)
        some, said = self.arrows("some.json", "--name", "kernel")
        self.assertEqual(some, [])
        self.assertIn("12 of 12 arrows", said)

    def test_work_without_a_known_launch_passes_by_its_name_and_has_no_arrow(self):
        events = [
            {"ph": "X", "name": "outer", "cat": "cpu_op", "pid": 7, "tid": 11, "ts": 0, "dur": 50},
            {"ph": "X", "name": "stray", "cat": "kernel", "pid": 0, "tid": 7, "ts": 30, "dur": 20}
            | {"args": {"correlation": 99, "device": 0, "stream": 7}},
        ]
        trace = self.write("stray.json", json.dumps({"traceEvents": events}))
        self.prof("import", trace, "-o", self.capture)
        self.assertEqual(self.arrows("some.json", "--name", "stray")[0], [])
        with open(os.path.join(self.folder, "some.json"), encoding="utf-8") as file:
            scopes = [x["name"] for x in json.load(file)["traceEvents"] if x["ph"] == "X"]
        self.assertEqual(scopes, ["stray"])

    def test_perfetto_has_as_many(self):
        for words, count in (
            (("--name", "outer|kernel 0"), 6),
            (("--name", "outer 1|kernel"), 4),
            (("--name", "kernel"), 0),
        ):
            said = self.prof("dump", self.capture, *words, "-o", "some.pftrace").stderr
            with open(os.path.join(self.folder, "some.pftrace"), "rb") as file:
                events = [message(message(x).get(11, b"")) for _, x in fields_of(file.read())]
            self.assertEqual(sum(47 in x for x in events), count)
            self.assertEqual(sum(48 in x for x in events), count)
            self.assertIn(f"{12 - count} of 12 arrows", said)

    def test_parquet_counts_the_same(self):
        pytest.importorskip("pyarrow")
        for words in (("--name", "outer|kernel 0"), ("--name", "outer 1|kernel")):
            _, said_of_json = self.arrows("some.json", *words)
            words = (*words, "-o", "some.parquet")
            said = self.prof("dump", self.capture, *words, env=PYTHON).stderr
            self.assertEqual(
                said.splitlines()[0], said_of_json.splitlines()[0].replace("json", "parquet")
            )
