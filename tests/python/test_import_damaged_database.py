"""prof import of databases that are cut off, changed, locked, half written, or another program's. A
clear error, never a crash, nothing under the capture's name, and nothing written beside them."""

import gzip
import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import unittest

import amd_databases
from folder import HAS_COMMAND
from import_databases import Database, scopes

import prof

HOLD = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""
FLIPS = 160
CUTS = 30


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Damaged(Database):
    def setUp(self):
        super().setUp()
        self.inside = self.path("inside")
        os.mkdir(self.inside)

    def content(self, seed=3, rocpd=False):
        path = os.path.join(self.folder, "whole")
        if os.path.exists(path):
            os.unlink(path)
        if rocpd:
            amd_databases.random_rocpd(path, seed, False, rows=8)
        else:
            amd_databases.random_rpd(path, seed, rows=8)
        with open(path, "rb") as f:
            return f.read()

    def beside(self):
        """The names in the database's folder."""
        found = {}
        for name in os.listdir(self.inside):
            with open(os.path.join(self.inside, name), "rb") as f:
                found[name] = hashlib.sha256(f.read()).hexdigest()
        return found

    def write(self, content, name="t.rpd"):
        path = os.path.join(self.inside, name)
        with open(path, "wb") as f:
            f.write(content)
        return path

    def tried(self, path):
        """The command's end: 0 with a capture, or 1 with words about the file and none."""
        before = self.beside()
        done = self.command("import", path, "-o", "t.prof")
        self.skip_without(done.stderr)
        self.assertEqual(self.beside(), before)
        left = [name for name in os.listdir(self.folder) if "prof" in name]
        if done.returncode == 0:
            self.assertEqual(left, ["t.prof"])
            with prof.Trace.open(self.path("t.prof")) as trace:
                self.assertEqual(trace.info().bad_count, 0)
                list(trace.events())
            os.unlink(self.path("t.prof"))
        else:
            self.assertEqual((done.returncode, left, done.stdout), (1, [], ""), done.stderr)
            self.assertIn(f"prof import: '{path}' ", done.stderr)
        return done

    def refused(self, path, says):
        done = self.tried(path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(says, done.stderr)
        with self.assertRaises(ValueError) as raised:
            prof.import_trace(path, self.path("none.prof"))
        self.assertIn(says, str(raised.exception))

    def test_changed_bytes(self):
        for rocpd in (False, True):
            whole, chance = self.content(rocpd=rocpd), random.Random(5)
            refused = 0
            for _ in range(FLIPS // 2):
                changed = bytearray(whole)
                for _ in range(chance.choice((1, 1, 4, 64))):
                    changed[chance.randrange(16, len(changed))] = chance.randrange(256)
                refused += self.tried(self.write(changed)).returncode
            self.assertGreater(refused, 0)

    def test_changed_pages(self):
        whole, chance = self.content(), random.Random(6)
        for _ in range(CUTS):
            changed = bytearray(whole)
            page = chance.randrange(len(whole) // 4096)
            other = chance.randrange(len(whole) // 4096)
            changed[page * 4096 + 100 : page * 4096 + 4096] = chance.choice(
                (bytes(3996), chance.randbytes(3996), whole[other * 4096 + 100 :][:3996])
            )
            self.tried(self.write(changed))

    def test_cut_off_anywhere(self):
        whole, chance = self.content(), random.Random(7)
        for _ in range(CUTS):
            self.refused(self.write(whole[: chance.randrange(16, len(whole))]), "is cut off")

    def test_locked_by_another_program(self):
        """Not by this one: it drops the lock when it reads the file in another way."""
        path = self.write(self.content())
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(holder.wait)
        self.addCleanup(holder.stdin.close)
        self.addCleanup(holder.stdout.close)
        self.assertEqual(holder.stdout.readline(), b"held\n")
        self.refused(path, "is locked by another program")
        holder.stdin.close()
        holder.wait()
        self.assertEqual(self.tried(path).returncode, 0)

    def test_a_writer_that_was_stopped_in_the_middle(self):
        """The content of its journal has to go back first, which is a change of the file."""
        path = self.write(self.content())
        file = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(file.close)
        file.execute("PRAGMA cache_size = 1")
        file.execute("BEGIN")
        for i in range(2000):
            file.execute("INSERT INTO rocpd_string (string) VALUES (?)", (f"text {i}" * 20,))
        for name in ("t.rpd", "t.rpd-journal"):
            shutil.copy(os.path.join(self.inside, name), os.path.join(self.inside, "c" + name))
        file.execute("ROLLBACK")
        self.refused(os.path.join(self.inside, "ct.rpd"), "has a journal beside it")

    def test_changes_that_stand_in_a_second_file_are_read(self):
        path = self.write(self.content())
        file = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(file.close)
        file.execute("PRAGMA journal_mode = WAL")
        count = len(scopes(self.taken(path), False))
        os.unlink(self.path("t.prof"))
        string = file.execute("SELECT min(id) FROM rocpd_string WHERE string <> ''").fetchone()[0]
        file.execute(
            "INSERT INTO rocpd_api SELECT max(id) + 1, 1, 1, max(start), max(end), ?, 1, 1, 1"
            " FROM rocpd_api",
            (string,),
        )
        self.assertGreater(os.path.getsize(path + "-wal"), 0)
        for name in ("", "-wal"):
            shutil.copy(path + name, os.path.join(self.inside, "copy.rpd" + name))
        for name in (path, os.path.join(self.inside, "copy.rpd")):
            before = self.beside()
            self.assertEqual(len(scopes(self.taken(name), False)), count + 1)
            os.unlink(self.path("t.prof"))
            self.assertEqual(self.beside(), before)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith(".prof")], [])

    def test_other_schemas_name_what_is_there(self):
        path = self.write(b"")
        file = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(file.close)
        file.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
        file.execute("CREATE TABLE StringIds (id INTEGER)")
        self.refused(path, "its tables are: CUPTI_ACTIVITY_KIND_KERNEL, StringIds")
        file.execute("CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT)")
        file.execute("CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY)")
        self.refused(path, "no such column: A.pid")

    def test_without_tables(self):
        path = self.write(b"")
        file = sqlite3.connect(path, isolation_level=None)
        file.execute("CREATE TABLE t (x)")
        file.execute("DROP TABLE t")
        file.close()
        self.refused(path, "without any table")

    def test_no_code_of_the_schema_runs(self):
        path = self.write(self.content())
        file = sqlite3.connect(path, isolation_level=None)
        file.execute("ALTER TABLE rocpd_api RENAME TO hidden")
        file.execute("CREATE VIEW rocpd_api AS SELECT * FROM hidden")
        file.close()
        self.refused(path, "it has no table prof_metadata (prof), rocpd_api (rpd)")

    def test_virtual_tables_are_refused(self):
        path = self.write(self.content())
        file = sqlite3.connect(path, isolation_level=None)
        try:
            file.execute("CREATE VIRTUAL TABLE words USING fts3 (x)")
        except sqlite3.OperationalError as error:
            self.skipTest(str(error))
        finally:
            file.close()
        self.refused(path, "virtual tables")

    def test_names_of_files_that_a_uri_would_read_otherwise(self):
        for name in ("a?mode=memory.rpd", "b%41#c.rpd", "d e\xe9.rpd"):
            self.assertEqual(self.tried(self.write(self.content(), name)).returncode, 0)

    def test_packed_it_has_to_be_unpacked_first(self):
        self.refused(self.write(gzip.compress(self.content())), "gunzip it first")

    def test_through_a_pipe(self):
        path = os.path.join(self.inside, "pipe")
        os.mkfifo(path)
        content = self.content()

        def feed():
            try:
                with open(path, "wb") as f:
                    f.write(content)
            except BrokenPipeError:
                pass  # the command has seen what it is

        feeder = threading.Thread(target=feed)
        feeder.start()
        done = self.command("import", path, "-o", "t.prof")
        feeder.join()
        self.skip_without(done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has to be a file", done.stderr)


if __name__ == "__main__":
    unittest.main()
