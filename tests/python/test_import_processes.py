"""prof import of a trace of several processes: each keeps its own in exports and on the way
back."""

import json
import unittest

from folder import HAS_COMMAND
from import_folder import ImportFolder
from import_traces import arrow, call, kernel, named, x

LONG = "rank 2, which has a very long name"
EVENTS = [
    named(1, "rank1"),
    {**named(1, "main", "thread_name"), "tid": 1},
    named(2, LONG),
    {**named(2, "main", "thread_name"), "tid": 1},
    x("a", 0, 10, 1, 1),
    x("b", 0, 10, 1, 2),
    x("inside b", 2, 3, 1, 2),
    x("c", 5, 10, 7, 2),
    x("d", 0, 10, 1, 3),
    x("of a text", 0, 10, 1, "Foo"),
    x("of a device's number", 0, 10, 1, 5002000),
    x("of no number", 0, 10, 1, 0),
]


@unittest.skipUnless(HAS_COMMAND, "the command is not built")
class Processes(ImportFolder):
    def rows(self, trace):
        groups = ("name", "process", "thread")
        return sorted(str(row) for row in trace.table(group=groups).splitlines())

    def test_events_have_their_own_process_in_the_export(self):
        self.opened = self.imported(json.dumps(EVENTS))
        written = {e["name"]: (e["pid"], e["tid"]) for e in self.exported() if e["ph"] == "X"}
        wanted = {e["name"]: (e["pid"], e["tid"]) for e in EVENTS if e["ph"] == "X"}
        made = ("of a text", "of a device's number", "of no number")
        pids = {written.pop(name)[0] for name in made}
        for name in made:
            del wanted[name]
        self.assertEqual(written, wanted)
        self.assertEqual(len(pids), len(made))
        self.assertFalse(pids & {1, 2, 3, 0, 5002000})

    def test_processes_and_threads_have_their_names_in_the_export(self):
        self.opened = self.imported(json.dumps(EVENTS))
        rows = json.loads(self.opened.json())["traceEvents"]
        names = {e["pid"]: e["args"]["name"] for e in rows if e["name"] == "process_name"}
        self.assertEqual({pid: names.get(pid) for pid in (1, 2, 3)}, {1: "rank1", 2: LONG, 3: None})
        self.assertIn("Foo", names.values())
        threads = {
            (e["pid"], e["tid"]): e["args"]["name"] for e in rows if e["name"] == "thread_name"
        }
        self.assertEqual((threads[1, 1], threads[2, 1]), ("main", "main"))
        self.assertNotIn((2, 7), threads)

    def test_an_export_taken_back_has_the_same_processes(self):
        first = self.imported(json.dumps(EVENTS))
        second = self.imported(first.json(), "second.prof")
        third = self.imported(second.json(), "third.prof")
        self.assertEqual(self.rows(second), self.rows(first))
        self.assertEqual(self.rows(third), self.rows(first))
        self.assertIn("Foo", "".join(self.rows(first)))

    def test_a_log_of_raf_has_them_too(self):
        self.imported(json.dumps(EVENTS))
        done = self.command("dump", "t.prof", "--format", "raf", "-o", "log.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("log.json")) as f:
            events = json.load(f)["traceEvents"]
        pids = {e["name"]: e["pid"] for e in events if e["ph"] == "B"}
        self.assertEqual([pids[name] for name in "abcd"], [1, 2, 2, 3])

    def taken_back(self, events):
        """The trace as it was taken, and as its export is taken."""
        first = self.imported(json.dumps(events))
        return first, self.imported(first.json(), "second.prof")

    def test_work_without_a_launch_has_the_same_process(self):
        for name, events in {
            "a process alone": [x("a", 0, 10, 1, 1), kernel("k", 0, 5, pid=1)],
            "the device's row": [x("a", 0, 10, 1, 1), kernel("k", 0, 5, pid=0)],
            "a process with a name": [
                x("a", 0, 10, 1, 1),
                named(2, "worker"),
                kernel("k", 0, 5, pid=2),
            ],
            "a process without a number": [
                x("a", 0, 10, 1, 1),
                kernel("k", 0, 5, pid="gpu1"),
            ],
            "a process beside one with launches": [
                x("a", 0, 10, 1, 1),
                call("launch", 1, 1, 7, 2),
                kernel("k", 3, 1, pid=0, correlation=7),
                kernel("k2", 5, 2, pid=3),
            ],
            "an Ascend": [
                x("a", 0, 10, 1, 1, cat="cpu_op"),
                named(911, "Ascend Hardware"),
                x("k", 100, 300, 3, 911),
            ],
        }.items():
            with self.subTest(name):
                rows = [
                    sorted(str(trace.table(group=("name", "process", "kernel"))).splitlines())
                    for trace in self.taken_back(events)
                ]
                self.assertTrue(any(row.startswith("k ") for row in rows[0]), rows[0])
                self.assertEqual(rows[0], rows[1])

    def test_arrows_of_many_processes_stay_their_own(self):
        events = []
        for pid in (1, 2, 3, 4, 5):
            events.append(x("a", 0, 100, pid, pid))
            events += arrow("sent", (pid, pid, 10 + pid), (pid, pid, 30 + pid), bp="e")
        for trace in self.taken_back(events):
            ends = {}
            for event in json.loads(trace.json())["traceEvents"]:
                if event["ph"] in "sf":
                    ends.setdefault(event["id"], []).append((event["pid"], event["ts"]))
            self.assertEqual(
                sorted(ends.values()), [[(pid, 10 + pid), (pid, 30 + pid)] for pid in range(1, 6)]
            )

    def test_functions_beside_a_thread_have_its_process(self):
        events = []
        for pid in (1, 2):
            events.append(x("a", 0, 10, pid, pid))
            events.append(x("f", 5, 10, pid, pid, cat="python_function"))
        rows = [str(trace.table(group=("name", "thread"))) for trace in self.taken_back(events)]
        self.assertEqual(sorted(rows[0].splitlines()), sorted(rows[1].splitlines()))
        self.assertRegex(rows[0], r"process \d, Python")


if __name__ == "__main__":
    unittest.main()
