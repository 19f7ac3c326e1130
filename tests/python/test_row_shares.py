"""Rows of scopes that overlap on their thread: no share is above 100 %. Rows of scopes that a jump
left: they are counted, and no time has them."""

import asyncio
import json
import os
import re
import subprocess
import unittest

from folder import Folder
from hang_guard import HANG_SECONDS
from import_traces import x

import prof
from prof._averages import FunctionEventAvg
from prof.tables import EventList, Window, averages, single_events

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))
NO_SHARE = "Total % is empty where calls overlap on their thread"


def shares(text):
    return [float(found) for found in re.findall(r"(\d+\.\d+)%", text)]


class Imported(Folder):
    def imported(self, events):
        with open(self.path("t.json"), "w", encoding="utf-8") as file:
            json.dump(events, file)
        try:
            trace = prof.import_trace(self.path("t.json"), self.path("t.prof"))
        except (ValueError, OSError) as e:
            if "yajl" not in str(e) and not isinstance(e, FileNotFoundError):
                raise
            self.skipTest(f"the command was built without yajl, or it is not here: {e}")
        self.addCleanup(trace.close)
        self.windows = [Window(trace, 0, 0, 0, 0)]
        return trace

    def command(self, word):
        done = subprocess.run(
            [COMMAND, word, self.path("t.prof")],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Shares(Imported):
    def setUp(self):
        super().setUp()
        tasks = [x("task", i, 1000) for i in range(100)]
        self.trace = self.imported([*tasks, x("after", 2000, 100)])

    def test_rows_of_tasks_that_overlap_have_none(self):
        for group in (("name",), ("name", "thread"), ("name", "stack"), ("name", "scopes")):
            rows = {row.name: row for row in self.trace.aggregate(group)}
            self.assertEqual(rows["task"].total_ns, 100 * 1000 * 1000)
            self.assertEqual((rows["task"].is_crosswise, rows["task"].total_share), (True, None))
            self.assertEqual(rows["after"].total_share, 100 / (1099 + 100))
            self.assertFalse(rows["after"].is_crosswise)

    def test_tables(self):
        for text in (self.trace.table(), self.command("table")):
            self.assertLessEqual(max(shares(text)), 100)
            self.assertIn(NO_SHARE, text)

    def test_averages_made_in_c_and_in_python(self):
        events = single_events(self.windows, False, False)
        for rows in (averages(self.windows, False, 0, False, False), events.key_averages()):
            text = rows.table()
            self.assertLessEqual(max(shares(text)), 100)
            self.assertIn("CPU " + NO_SHARE[0].lower() + NO_SHARE[1:], text)
            self.assertEqual({r.key: r.is_crosswise for r in rows}, {"task": True, "after": False})

    def test_what_torch_itself_shows_above_all_stays(self):
        """Without the functions that it holds, a row may have more than all."""
        row = FunctionEventAvg("outer")
        row.count, row.cpu_time_total, row.self_cpu_time_total = 1, 100.0, 50.0
        text = EventList([row]).table()
        self.assertIn("200.00%", text)
        self.assertNotIn(NO_SHARE, text)

    def test_recorded_tasks(self):
        async def task():
            with prof.scope("task"):
                await asyncio.sleep(0)

        async def tasks():
            await asyncio.gather(*(task() for _ in range(50)))

        with prof.profile() as p:
            asyncio.run(tasks())
        rows = p.trace.aggregate()
        for row in rows:
            self.assertTrue(row.is_crosswise)
            self.assertEqual(row.total_share is None, row.total_ns > rows.all_self_ns)
        for text in (p.trace.table(), p.key_averages().table()):
            self.assertLessEqual(max(shares(text)), 100)


class Skipped(Imported):
    def setUp(self):
        super().setUp()
        left = {"skipped": True}
        self.trace = self.imported(
            [
                x("outer", 0, 1000),
                x("left", 100, 900, args=left),
                x("left", 200, 800, args=left),
                x("after", 600, 50),
            ]
        )

    def test_rows(self):
        rows = self.trace.aggregate(("name",))
        found = {r.name: (r.count, r.total_ns, r.self_ns, r.skipped_count) for r in rows}
        outer, after = (1, 1000000, 950000, 0), (1, 50000, 50000, 0)
        self.assertEqual(found, {"outer": outer, "after": after, "left": (0, 0, 0, 2)})
        self.assertEqual((rows.skipped_count, self.trace.info().skipped_count), (2, 2))

    def test_averages_made_in_c_and_in_python(self):
        events = single_events(self.windows, False, False)
        for rows in (averages(self.windows, False, 0, False, False), events.key_averages()):
            found = {
                r.key: (r.count, r.cpu_time_total, r.self_cpu_time_total, r.skipped_count)
                for r in rows
            }
            outer, after = (1, 1000.0, 950.0, 0), (1, 50.0, 50.0, 0)
            self.assertEqual(found, {"outer": outer, "after": after, "left": (0, 0, 0, 2)})

    def test_events(self):
        marks = sorted((e.name, e.is_skipped, e.self_ns) for e in self.trace.events())
        self.assertEqual(
            marks,
            [
                ("after", False, 50000),
                ("left", True, 0),
                ("left", True, 0),
                ("outer", False, 950000),
            ],
        )
        events = single_events(self.windows, False, False)
        self.assertEqual(
            [(e.name, e.is_skipped, e.cpu_parent and e.cpu_parent.name) for e in events],
            [
                ("outer", False, None),
                ("left", True, "outer"),
                ("left", True, "outer"),
                ("after", False, "outer"),
            ],
        )
        self.assertEqual(events.to_dict()["is_skipped"], [False, True, True, False])

    def test_tables_and_infos_say_how_many(self):
        for text in (self.trace.table(), self.command("table")):
            self.assertRegex(text, r"Calls +Skipped")
            self.assertIn("Skipped: a jump left 2 scopes.", text)
        self.assertRegex(self.command("info"), r"(?m)^skipped +2 of the scopes")


if __name__ == "__main__":
    unittest.main()
