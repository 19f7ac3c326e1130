"""Which of two scopes is the outer one if both begin and end together, in prof import and in an
export: the first in the file, as viewers have it. And what else ties events to each other."""

import gzip
import json
import random
import unittest

from folder import HAS_COMMAND
from import_folder import ImportFolder
from import_traces import call, event, kernel, x

ALONE = "not taken: {} ends without a begin (ph E, e, F)"
UNENDED = "taken: {} begun and never ended (ph B, b, S): they end with the trace"


def pair(**members):
    return [x("outer", 0, 10, **members), x("inner", 0, 10, **members)]


# What shares its begin and its end on one thread. The first is the outer one.
EQUAL = {
    "alone": pair(),
    "before another": [*pair(), x("later", 20, 5)],
    "behind another": [x("later", 20, 5), *pair()],
    "of one category": [*pair(cat="cpu_op"), x("later", 20, 5)],
    "category, then none": [x("outer", 0, 10, cat="cpu_op"), x("inner", 0, 10)],
    "none, then category": [x("outer", 0, 10), x("inner", 0, 10, cat="cpu_op")],
    "a call, then an operator": [
        x("outer", 0, 10, cat="cuda_runtime"),
        x("inner", 0, 10, cat="cpu_op"),
    ],
    "an operator, then a call": [
        x("outer", 0, 10, cat="cpu_op"),
        x("inner", 0, 10, cat="cuda_runtime"),
    ],
    "a function": [x("outer", 0, 10), x("inner", 0, 10, cat="python_function")],
    "B and E": [
        event("B", "outer", 0),
        event("B", "inner", 0),
        event("E", "inner", 10),
        event("E", "outer", 10),
    ],
    "B, then X": [event("B", "outer", 0), x("inner", 0, 10, cat="cpu_op"), event("E", "outer", 10)],
    "X, then B": [x("outer", 0, 10), event("B", "inner", 0), event("E", "inner", 10)],
    "a text for a thread": pair(tid="T", pid="P"),
    "no time": [x("outer", 5, 0), x("inner", 5, 0)],
}


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Order(ImportFolder):
    def stacks(self, trace):
        return {r.name: r.stack for r in trace.aggregate(group=("name", "scopes"), rows=-1)}

    def check_pair(self, content):
        """The export has the outer one first, and the way back changes nothing."""
        self.opened = self.imported(content)
        found = self.stacks(self.opened)
        self.assertEqual((found["outer"], found["inner"]), ("", "outer"))
        names = [e["name"] for e in self.exported() if e["name"] in ("outer", "inner")]
        self.assertEqual(names, ["outer", "inner"])
        first = self.opened
        again = self.imported(first.json(), "again.prof")
        for group in ("name", "scopes", "thread"):
            self.assertEqual(again.table(group=(group,)), first.table(group=(group,)))

    def test_the_first_of_two_equal_scopes_is_the_outer_one(self):
        for name, events in EQUAL.items():
            with self.subTest(name):
                self.check_pair(json.dumps(events))

    def test_two_arrays_of_events_are_one_trace(self):
        outer, inner = map(json.dumps, pair())
        self.check_pair(f'{{"traceEvents":[{outer}],"traceEvents":[{inner}]}}')
        self.check_pair(f'{{"traceEvents":[{outer}]}}\n{{"traceEvents":[{inner}]}}')

    def test_an_export_has_the_outer_one_first_however_many_begin_together(self):
        """So many that they do not fit into what is written at once, and some with arguments."""
        count = 6000
        scopes = []
        for i in range(count):
            more = {"args": {"text": "x" * 3000}} if i % 10 == 0 else {}
            scopes.append(x(f"s{i}", 50, 10, **more))
        events = [x("before", 0, 10), *scopes, x("behind", 70, 10), x("around", 0, 100, tid=3)]
        self.opened = self.imported(json.dumps(events))
        wanted = ["behind", *(f"s{i}" for i in range(count)), "before", "around"]
        self.assertEqual([e["name"] for e in self.exported()], wanted)
        text = self.opened.json()
        for name in ("t2.json", "t2.json.gz"):
            self.opened.dump(self.path(name))
            read = gzip.open if name.endswith("gz") else open
            with read(self.path(name), "rt") as f:
                self.assertEqual(f.read(), text)

    def test_scopes_that_nest_come_back_as_they_were(self):
        for seed in range(12):
            source = random.Random(seed)
            events = []

            def nest(begin, end, depth):
                while begin < end and source.random() < 0.8:
                    start = begin if source.random() < 0.5 else source.randint(begin, end)
                    stop = end if source.random() < 0.5 else source.randint(start, end)
                    category = source.choice(({}, {"cat": "cpu_op"}, {"cat": "cuda_runtime"}))
                    events.append(x(f"s{len(events)}", start, stop - start, **category))
                    if depth < 6:
                        nest(start, stop, depth + 1)
                    begin = stop + (stop == start)

            nest(0, 20, 0)
            with self.subTest(seed):
                first = self.imported(json.dumps(events))
                again = self.imported(first.json(), "again.prof")
                self.assertEqual(self.stacks(again), self.stacks(first))
                self.assertEqual(again.table(), first.table())

    def test_an_e_needs_its_begins_category(self):
        """As both viewers have it, but that Perfetto alone takes a b and an e without one."""
        for begin, end, is_ended in (
            ({"cat": "a"}, {"cat": "a"}, True),
            ({}, {}, True),
            ({"cat": "a"}, {}, False),
            ({}, {"cat": "a"}, False),
            ({"cat": "a"}, {"cat": "b"}, False),
        ):
            with self.subTest(f"{begin}, {end}"):
                ends = [event("b", "r", 1, id=1, **begin), event("e", "r", 5, id=1, **end)]
                self.opened = self.imported(json.dumps([x("all", 0, 100), *ends]))
                self.assertEqual(self.spans()["r"], (1, 4 if is_ended else 99))
                said = [] if is_ended else [ALONE.format(1), UNENDED.format(1)]
                self.assertEqual(self.said, said)

    def test_the_category_of_an_f_counts_only_if_several_may_end(self):
        """As chrome://tracing has it. Perfetto reads neither S nor F."""
        for begin, end in (({"cat": "a"}, {}), ({}, {"cat": "a"}), ({"cat": "a"}, {"cat": "b"})):
            ends = [event("S", "r", 1, id=1, **begin), event("F", "r", 5, id=1, **end)]
            self.opened = self.imported(json.dumps([x("all", 0, 100), *ends]))
            self.assertEqual((self.spans()["r"], self.said), ((1, 4), []))
        begun = [event("S", cat, ts, id=1, cat=cat) for ts, cat in ((1, "a"), (2, "b"))]
        ended = [{**event("F", "", ts, id=1, cat=cat)} for ts, cat in ((5, "a"), (9, "b"))]
        for one in ended:
            del one["name"]
        self.opened = self.imported(json.dumps([x("all", 0, 100), *begun, *ended]))
        self.assertEqual((self.spans()["a"], self.spans()["b"]), ((1, 4), (2, 7)))

    def test_a_launchs_number_may_be_a_text(self):
        for number, text in (("7", "7"), (7, "7"), ("7", 7), ("-7", -7)):
            with self.subTest(f"{number!r}, {text!r}"):
                operator = x("op", 0, 100, cat="cpu_op")
                launched = [call("launch", 10, 10, number), kernel("k", 50, 30, correlation=text)]
                opened = self.imported(json.dumps([operator, *launched]))
                device = {r.name: r.self_device_ns for r in opened.aggregate(rows=-1)}
                self.assertEqual((device["op"], self.said), (30000, []))
        launched = [call("launch", 10, 10, "x"), kernel("k", 50, 30, correlation="x")]
        self.imported(json.dumps([operator, *launched]))
        self.assertEqual(self.said, ["taken: 1 of devices, whose launch is not in the trace"])


if __name__ == "__main__":
    unittest.main()
