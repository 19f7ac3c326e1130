"""prof import of databases that prof wrote and from which rows were deleted. Each lost row is
counted once, by reason. Python's sqlite3 counts what should be said."""

import contextlib
import json
import re
import shutil
import sqlite3
import unittest

import amd_databases
import import_traces
from folder import HAS_COMMAND
from import_databases import Database

OF_THREADS = ("scopes", "kernels", "steps", "instants", "counters", "arrow_ends", "memory")
OF_NAMES = ("scopes", "kernels", "instants", "counters", "arrow_ends")
THREAD = "rows whose thread is not in the database"
NAME = "rows whose name or another text is not in the database"
DEVICE = "rows whose device is not in the database"
POOL = "rows whose pool of memory is not in the database"
DELETED = "rows that prof wrote and that were deleted from the database"
NO_VALUE = "rows that lack a value, or have a text in place of a number"
HOST_NOW = "rows whose device is not in the database: they are the host's now"
LINK = "links to a second call, or between rows that are not in the database"
ARROW_END = "ends of arrows whose other end is not there (ph s, t, f)"


def events():
    """Each kind of event on each of two threads."""
    found = [import_traces.x("step", 0, 500, pid=1, tid=1)]
    for thread in (1, 2):
        for number in range(8 + thread):
            at = 10 + 50 * number
            found.append(import_traces.x(f"scope {number}", at, 30, pid=1, tid=thread))
            words = {"pid": 1, "tid": thread, "ts": at + 3}
            memory = {"Addr": 4096 * (10 * thread + number), "Bytes": 64}
            found += [
                {"ph": "C", "name": "count", "args": {"value": number}, **words},
                {"ph": "i", "s": "t", "name": f"mark {thread}", **words},
                {"ph": "i", "s": "t", "name": "[memory]", **words}
                | {"args": {**memory, "Device Type": 0, "Device Id": -1}},
            ]
    return found + import_traces.arrow("flow", (1, 1, 15), (1, 2, 65))


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class MissingRows(Database):
    def dumped(self, output):
        done = self.command("dump", "in.prof", "-o", output)
        self.skip_without(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def random(self, output="out.db", seed=4):
        """Calls, markers, and work of GPUs."""
        source = f"of {seed} for {output}.rpd"
        amd_databases.random_rpd(self.path(source), seed)
        self.taken(source, "in.prof")
        self.dumped(output)

    def host(self):
        """Threads with all kinds of events."""
        with open(self.path("in.json"), "w", encoding="utf-8") as file:
            json.dump(events(), file)
        self.taken("in.json", "in.prof")
        self.dumped("out.db")

    def execute(self, name, *statements):
        """Returns the rows of the last statement."""
        with contextlib.closing(sqlite3.connect(self.path(name))) as database:
            for statement in statements:
                rows = database.execute(statement).fetchall()
            database.commit()
        return rows

    def count(self, name, tables, condition):
        return sum(
            self.execute(name, f"SELECT count(*) FROM prof_{table} WHERE {condition}")[0][0]
            for table in tables
        )

    def notes(self, name):
        """What the import says, by its words."""
        self.taken(name, "back.prof")
        found = {}
        for line in self.said:
            parts = re.fullmatch(r"(?:not taken|taken): (\d+) (.*)", line)
            if parts:
                found[parts[2]] = int(parts[1])
        return found

    def damaged(self, *statements, of="out.db"):
        """What the import says of a damaged copy, without what it says of the whole database."""
        whole = self.notes(of)
        name = shutil.copy(self.path(of), self.path("damaged" + of[-4:]))
        self.execute(name, *statements)
        return {k: v for k, v in self.notes(name).items() if whole.get(k) != v}

    def test_a_whole_database_misses_nothing(self):
        said = (THREAD, NAME, DEVICE, POOL, DELETED, NO_VALUE, HOST_NOW, LINK)
        for output in ("out.db", "out.rpd"):
            for seed in range(4):
                self.random(output, seed)
                self.assertFalse(set(self.notes(output)) & set(said), (output, seed))
        self.host()
        self.assertFalse(set(self.notes("out.db")) & set(said))

    def test_rows_of_a_deleted_thread(self):
        self.host()
        threads = self.execute("out.db", "SELECT thread_id FROM prof_scopes GROUP BY 1 ORDER BY 1")
        for (thread,) in threads:
            lost = self.count("out.db", OF_THREADS, f"thread_id = {thread}")
            self.assertGreater(lost, 30)
            found = self.damaged(f"DELETE FROM prof_threads WHERE id = {thread}")
            self.assertEqual(found.pop(THREAD), lost)
            self.assertLessEqual(set(found), {ARROW_END})

    def test_rows_of_a_deleted_name(self):
        self.host()
        for (name,) in self.execute("out.db", "SELECT id FROM prof_names"):
            lost = self.count("out.db", OF_NAMES, f"name_id = {name}")
            found = self.damaged(f"DELETE FROM prof_names WHERE id = {name}")
            self.assertEqual(found.pop(NAME, 0), lost)
            self.assertLessEqual(set(found), {ARROW_END})

    def test_no_row_is_counted_twice(self):
        self.host()
        lost = self.count("out.db", OF_THREADS, "1")
        found = self.damaged(*(f"DELETE FROM prof_{t}" for t in ("threads", "names", "pools")))
        self.assertEqual(found, {THREAD: lost})

    def test_memory_of_a_deleted_pool(self):
        self.host()
        found = self.damaged("DELETE FROM prof_pools")
        self.assertEqual(found, {POOL: self.count("out.db", ["memory"], "1")})

    def test_work_and_counters_of_a_deleted_device(self):
        self.random()
        device = self.execute("out.db", "SELECT min(device_id) FROM prof_threads")[0][0]
        of_device = f"thread_id IN (SELECT id FROM prof_threads WHERE device_id = {device})"
        lost = self.count("out.db", ["kernels"], of_device)
        moved = self.count("out.db", ["counters"], f"device_id = {device}")
        self.assertGreater(lost, 0)
        found = self.damaged(f"DELETE FROM prof_devices WHERE id = {device}")
        self.assertEqual(found.get(DEVICE), lost)
        self.assertEqual(found.get(HOST_NOW, 0), moved)

    def test_counters_of_no_device_become_the_hosts(self):
        self.host()
        found = self.damaged("UPDATE prof_counters SET device_id = 99 WHERE id % 2 = 0")
        lost = self.count("out.db", ["counters"], "id % 2 = 0")
        self.assertEqual(found, {HOST_NOW: lost})

    def test_links_of_deleted_calls(self):
        self.random()
        deleted = self.count("out.db", ["scopes"], "id IN (SELECT scope_id FROM prof_launches)")
        links = self.execute(
            "out.db",
            "SELECT count(*) FROM prof_launches l JOIN prof_kernels k ON k.id = l.kernel_id"
            " WHERE k.start_ns >= k.launch_ns",
        )[0][0]
        self.assertGreater(links, 0)
        found = self.damaged(
            "DELETE FROM prof_scopes WHERE id IN (SELECT scope_id FROM prof_launches)"
        )
        self.assertEqual((found[LINK], found[DELETED]), (links, deleted))

    def test_deleted_rows_of_each_kind(self):
        self.host()
        for table in ("scopes", "instants", "counters"):
            lost = self.count("out.db", [table], "id % 3 = 0")
            self.assertGreater(lost, 0)
            found = self.damaged(f"DELETE FROM prof_{table} WHERE id % 3 = 0")
            self.assertEqual(found, {DELETED: lost}, table)
        found = self.damaged("DELETE FROM prof_arrow_ends WHERE is_end")
        self.assertEqual(found, {DELETED: 1, ARROW_END: 1})

    def test_rows_without_a_value_or_with_a_text(self):
        self.host()
        for table, column, value in (
            ("scopes", "start_ns", "NULL"),
            ("scopes", "duration_ns", "'long'"),
            ("counters", "value", "NULL"),
            ("memory", "address", "NULL"),
            ("memory", "at_ns", "'now'"),
            ("memory", "bytes", "NULL"),
        ):
            found = self.damaged(
                "PRAGMA legacy_alter_table = ON",
                f"CREATE TABLE other AS SELECT * FROM prof_{table}",
                f"UPDATE other SET {column} = {value} WHERE id % 4 = 0",
                f"DROP TABLE prof_{table}",
                f"ALTER TABLE other RENAME TO prof_{table}",
            )
            lost = self.count("out.db", [table], "id % 4 = 0")
            self.assertEqual(found, {NO_VALUE: lost}, (table, column))

    def test_rows_of_an_rpd(self):
        self.random("out.rpd")
        text = self.execute("out.rpd", "SELECT max(apiName_id) FROM rocpd_api")[0][0]
        where = f"{text} IN (apiName_id, category_id, domain_id)"
        lost = self.execute("out.rpd", f"SELECT count(*) FROM rocpd_api WHERE {where}")[0][0]
        where = f"{text} IN (description_id, opType_id)"
        lost += self.execute("out.rpd", f"SELECT count(*) FROM rocpd_op WHERE {where}")[0][0]
        found = self.damaged(f"DELETE FROM rocpd_string WHERE id = {text}", of="out.rpd")
        self.assertEqual(found[NAME], lost)
        ops = self.execute("out.rpd", "SELECT count(*) FROM rocpd_op")[0][0]
        found = self.damaged("DELETE FROM rocpd_metadata WHERE tag LIKE 'prof_gpu_%'", of="out.rpd")
        monitors = self.execute(
            "out.rpd", "SELECT count(*) FROM rocpd_monitor WHERE deviceType = 'gpu'"
        )[0][0]
        self.assertEqual(found[DEVICE], ops + monitors)
        lost = self.execute("out.rpd", "SELECT count(*) FROM rocpd_api WHERE id % 5 = 0")[0][0]
        found = self.damaged("DELETE FROM rocpd_api WHERE id % 5 = 0", of="out.rpd")
        self.assertEqual(found[DELETED], lost)


if __name__ == "__main__":
    unittest.main()
