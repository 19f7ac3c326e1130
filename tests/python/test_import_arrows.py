"""prof import, rule by rule: arrows between events, and launches of a device's work."""

import json
import unittest

from folder import HAS_COMMAND
from import_traces import arrow, call, event, kernel, x
from test_import_rules import RuleFolder

DRAWN = "arrows and graphs that exports draw anew from what is taken"


BOUND = "not taken: {} arrows at ends and instants, or at events that are not taken (bind_id)"


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Arrows(RuleFolder):
    def test_every_arrow_is_kept(self):
        self.totals("arrows at kernels")
        self.assertEqual(self.arrows(), [("k", "k2"), ("op", "k")])
        self.totals("arrow to the next")
        self.assertEqual(self.arrows(), [("send", "get")])
        self.totals("arrows of one number")
        self.assertEqual(self.arrows(), [("a", "a")] * 2)
        ends = sorted((e["name"], e["ts"]) for e in self.exported() if e["ph"] in "sf")
        self.assertEqual(ends, [("one", 10), ("one", 30), ("two", 20), ("two", 40)])
        self.assertIn(
            "not taken: 1 ends of arrows whose other end is not there (ph s, t, f)", self.said
        )

    def test_processes_that_use_one_number_have_arrows_of_their_own(self):
        self.totals("arrows of one number in two processes")
        self.assertEqual(self.arrows(), [("a1", "b1"), ("a1", "b2"), ("a2", "b2")])
        self.assertEqual(self.said, ["taken: 6 ends of arrows, without their category"])

    def test_arrows_that_scopes_name_are_kept(self):
        self.totals("arrows that scopes name")
        both = [("through", "in"), ("through", "in too")]
        self.assertEqual(self.arrows(), [("begun", "ends it"), ("out", "through"), *both])
        alone = "not taken: 1 ends of arrows whose other end is not there (ph s, t, f)"
        self.assertEqual(self.said, [alone])

    def test_arrows_that_asynchronous_events_name_are_kept(self):
        """As Perfetto's trace processor has them: tests/viewers/test_imports.py asks it."""
        said = BOUND
        self.totals("arrows at asynchronous events")
        through = [("crosses", "-"), ("crosses", "in"), ("out", "crosses"), ("out", "request")]
        self.assertEqual(self.arrows(), sorted([*through, ("request", "beside")]))
        self.assertIn(said.format(1), self.said)
        self.totals("arrows at asynchronous events, older")
        self.assertEqual(self.arrows(), [("draw", f"in {i}") for i in (1, 2, 3)])
        self.assertIn(said.format(2), self.said)

    def test_an_arrow_at_an_asynchronous_event_that_has_no_row_is_counted(self):
        events = [x("out", 0, 10, bind_id=7, flow_out=True)]
        for i in range(1030):
            events.append(event("b", "a", 20, cat="a", id=i, bind_id=7, flow_in=True))
            events.append(event("e", "a", 30, cat="a", id=i))
        opened = self.imported(json.dumps(events))
        self.assertEqual(sum(e.kind == "flow_end" for e in opened.events()), 1024)
        self.assertIn(BOUND.format(6), self.said)

    def test_arrows_outside_of_scopes_have_marks(self):
        self.totals("arrows that no scope holds")
        found = [("-", "-")] * 3 + [("-", "b"), ("a", "-"), ("a", "-"), ("a", "-")]
        self.assertEqual(self.arrows(), found)
        account = json.loads(self.opened.json())["prof"]
        written, checked = account["written"], account["self_check"]
        self.assertEqual(written["flow_ends"], 2 * len(found))
        self.assertEqual(written["flow_marks"], checked["flows_outside_scopes"])
        self.totals("arrows of launches that end on no work")
        self.assertEqual(self.arrows(), [("launch", "-"), ("launch", "k"), ("op", "-")])

    def test_work_has_one_launch_and_every_arrow(self):
        self.totals("arrows of two launches to one work")
        self.assertEqual(self.arrows(), [("launch", "k"), ("op", "k"), ("other", "k")])

    def test_works_that_begin_together_have_an_arrow_each(self):
        launches = [call("A", 0, 10, 1), call("B", 20, 10, 2)]
        works = [("k1", 1), ("k2", 2), ("k3", 1)]
        kernels = [kernel(name, 50, 10, correlation=number) for name, number in works]
        self.opened = self.imported(json.dumps(launches + kernels))
        numbers = {e["name"]: e["args"]["correlation"] for e in self.exported() if e["ph"] == "X"}
        again = self.imported(self.opened.json(), "second.prof")
        self.assertIn("not taken: 6 arrows and graphs", "".join(self.said))
        self.assertNotIn("ends of arrows", "".join(self.said))
        self.assertEqual(sum(e.kind == "flow_end" for e in again.events()), 0)
        self.opened = again
        tied = {e["name"]: e["args"]["correlation"] for e in self.exported() if e["ph"] == "X"}
        self.assertEqual(tied, numbers)

    def test_launches_of_one_number_at_one_time_have_arrows_of_their_own(self):
        events = []
        for pid in (10, 20):
            events += [x("launch", 0, 50, pid, pid, cat="cuda_runtime", args={"correlation": 1})]
            events += [kernel("k", 60, 9, pid=pid // 10, correlation=1)] * 2
            for number in (1, 2):
                events += arrow("ac2g", (pid, pid, 0), (pid // 10, 7, 60), number, bp="e")
        self.opened = self.imported(json.dumps(events))
        self.assertEqual(self.said, [f"not taken: 8 {DRAWN}"])
        ends = {}
        for end in self.exported():
            if end["ph"] in "sf":
                ends.setdefault(end["id"], []).append((end["pid"], end["cat"]))
        devices = sorted(e["pid"] for e in self.exported() if e["name"] == "k")
        self.assertEqual(
            sorted(ends.values()),
            [[(pid, "ac2g"), (to, "ac2g")] for pid, to in zip((10, 10, 20, 20), devices)],
        )

    def test_arrows_end_where_those_of_their_process_ended_before(self):
        events = []
        for start, numbers in ((0, (1, 2)), (100, (3, 3))):
            for rank, number in zip((1, 2), numbers):
                ends = (rank, rank, start + rank), (rank * 10, 1, start + 10 + rank)
                events += arrow("sent", *ends, number, bp="e")
        for rank in (1, 2):
            events += [x("a", 0, 200, pid, tid) for pid, tid in ((rank, rank), (rank * 10, 1))]
        self.opened = self.imported(json.dumps(events))
        ends = {}
        for end in self.exported():
            if end["ph"] in "sf":
                ends.setdefault(end["id"], []).append((end["pid"], end["ts"]))
        wanted = [
            [(rank, start + rank), (rank * 10, start + 10 + rank)]
            for rank in (1, 2)
            for start in (0, 100)
        ]
        self.assertEqual(sorted(ends.values()), wanted)

    def test_equal_works_that_overlap_another_are_on_one_stream(self):
        works = [kernel("k", 100, 60), kernel("k", 100, 60), kernel("long", 103, 900)]
        first = self.imported(json.dumps([x("op", 0, 200), *works]))
        again = self.imported(first.json(), "second.prof")
        rows = [
            sorted(str(trace.table(group=("name", "thread", "kernel"))).splitlines())
            for trace in (first, again)
        ]
        self.assertEqual(sum(row.startswith("k ") for row in rows[0]), 1)
        self.assertEqual(rows[0], rows[1])

    def test_an_arrow_does_not_end_before_it_begins(self):
        self.totals("before its launch")
        self.assertEqual(self.arrows(), [])  # viewers refuse it; the number that ties both is there
        tied = {e["name"]: e["args"].get("correlation") for e in self.exported()}
        self.assertEqual(tied["k"], tied["launch"])


if __name__ == "__main__":
    unittest.main()
