"""Traces as columns: pyarrow, pandas, polars and DuckDB read the files of `prof dump` and of
Trace.dump(). The rows are compared with the CSV of the capture."""

import contextlib
import csv
import glob
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

from hang_guard import HANG_SECONDS

import prof
from prof import _arrow, _import, _whole_file

HOSTILE = ('"; DROP TABLE x; --', "a\nb\r\n,\t", "\0nul", "\u2028</script>", "é" * 300, "\ud800")
MISSING = []
for _name in ("pandas", "duckdb", "polars", "pyarrow"):
    try:
        __import__(_name)
    except ImportError:
        MISSING.append(_name)
IS_VENV = os.path.realpath(sys.prefix) == os.path.realpath(
    os.path.join(os.environ.get("PROF_TEST_SOURCE_DIR", "."), ".venv")
)


def needs(*names):
    """tools/setup.sh puts them all into .venv: there a test without them fails."""
    return unittest.skipIf(
        not IS_VENV and set(names) & set(MISSING), f"this Python has not all of {', '.join(names)}"
    )


PROGRAM = """
import sys
import prof

prof.memory_profiler.start()
with prof.record_function("outer"):
    for i in range(300):
        with prof.scope("inner", i=i, text='a "b"'):
            pass
        prof.counter("queue", i / 4)
    prof.instant("moment", reason="none")
    for name in eval(sys.argv[1]):
        with prof.record_function(name):
            pass
with prof.memory_profiler.Pool("pool") as pool:
    pool.alloc(0x1000, 4096, tag="weights")
    pool.free(0x1000, 4096)
"""


def record(path):
    """A capture with the kinds of events that Python records."""
    subprocess.run(
        [sys.executable, "-c", PROGRAM, ascii(HOSTILE)],
        env={**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": path},
        timeout=HANG_SECONDS,
        check=True,
    )


def rows_of_csv(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.capture = cls.path("capture.prof")
        record(cls.capture)
        cls.trace = prof.Trace.open(cls.capture)
        cls.addClassCleanup(cls.trace.close)
        cls.trace.dump(cls.path("rows.csv"))
        cls.csv = rows_of_csv(cls.path("rows.csv"))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def dump(self, *words, **environment):
        """Returns the exit status and the messages of the command."""
        done = subprocess.run(
            [_import.command(), "dump", *words],
            env={**os.environ, "PROF_PYTHON_PROGRAM": sys.executable, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout


@needs("pyarrow", "pandas")
class Columns(Folder):
    """What Trace.arrow() gives."""

    def compare_with_csv(self, table):
        """Flows and memory have no lines in CSV."""
        rows = [row for row in table.to_pylist() if row["kind"] not in ("memory", "flow")]
        self.assertEqual(len(rows), len(self.csv))
        order = sorted(rows, key=lambda r: (r["start_ns"], r["depth"], r["kind"]))
        lines = sorted(self.csv, key=lambda r: (int(r["start_ns"]), int(r["depth"]), r["kind"]))
        for row, line in zip(order, lines):
            for name in ("kind", "thread", "category"):
                self.assertEqual(row[name], line[name])
            for name in ("pid", "tid", "start_ns", "duration_ns", "self_ns", "depth"):
                self.assertEqual(row[name], int(line[name]))
            if row["kind"] == "counter":
                self.assertEqual(row["value"], float(line["value"]))
            # CSV has another character for NUL
            self.assertEqual(row["name"].replace("\u2400", "\ufffd"), line["name"])

    def test_every_row_is_a_line_of_the_csv(self):
        self.compare_with_csv(self.trace.to_arrow())

    def test_every_event_of_the_cursor_has_a_row(self):
        events, rows = list(self.trace.events()), self.trace.to_arrow().to_pylist()
        self.assertEqual(len(events), len(rows))
        kinds = {"open": "unfinished"}
        for event, row in zip(events, rows):
            self.assertEqual(row["kind"], kinds.get(event.kind, event.kind))
            self.assertEqual(row["start_ns"], event.start_ns)
            self.assertEqual(row["thread_index"], event.thread)
        self.assertEqual({row["kind"] for row in rows} >= {"memory", "counter", "instant"}, True)

    def test_arguments_are_json(self):
        found = [
            json.loads(row["args"])
            for row in self.trace.to_arrow().to_pylist()
            if row["name"] == "inner"
        ]
        self.assertEqual(found, [{"i": i, "text": 'a "b"'} for i in range(300)])

    def test_memory_has_its_bytes_and_other_events_none(self):
        rows = self.trace.to_arrow().to_pylist()
        memory = [row for row in rows if row["kind"] == "memory"]
        self.assertEqual([row["name"] for row in memory], ["alloc", "free"])
        self.assertEqual([row["address"] for row in memory], [0x1000, 0x1000])
        self.assertEqual([row["used_bytes"] for row in memory], [4096, 0])
        self.assertEqual(memory[0]["tag"], "weights")
        self.assertTrue(all(row["bytes"] is None for row in rows if row["kind"] != "memory"))

    def test_batches_of_any_size_have_the_same_rows(self):
        whole = self.trace.to_arrow()
        for rows in (1, 7, 100):
            with self.subTest(rows=rows):
                batches = list(self.trace.arrow(batch_rows=rows))
                self.assertTrue(all(batch.num_rows <= rows for batch in batches))
                parts = [row for batch in batches for row in batch.to_pylist()]
                self.assertEqual(parts, whole.to_pylist())

    def test_the_metadata_says_whether_the_trace_is_whole(self):
        info, said = self.trace.info(), self.trace.arrow().schema.metadata
        self.assertEqual(int(said[b"prof.event_count"]), info.event_count)
        self.assertEqual(int(said[b"prof.start_unix_ns"]), info.start_unix_ns)
        self.assertEqual(said[b"prof.loss"].decode(), self.trace.loss_text())

    def test_pandas_has_categories_and_whole_numbers(self):
        frame = self.trace.to_pandas()
        self.assertEqual(frame["name"].dtype.name, "category")
        self.assertEqual(frame["start_ns"].dtype.name, "int64")
        self.assertEqual(frame["address"].dtype.name, "UInt64")
        self.assertEqual((frame["name"] == "inner").sum(), 300)

    def test_a_time_selects_what_overlaps_it(self):
        inner = [row for row in self.trace.to_arrow().to_pylist() if row["name"] == "inner"]
        begin, end = inner[10]["start_ns"], inner[20]["start_ns"] + 1
        names = self.trace.to_arrow(begin, end).column("name").to_pylist()
        self.assertEqual(names.count("inner"), 11)
        self.assertEqual(names.count("outer"), 1)

    def test_the_reader_outlives_the_trace(self):
        with prof.Trace.open(self.capture) as trace:
            batches = trace.arrow(batch_rows=50)
        self.assertEqual(batches.read_all().num_rows, self.trace.to_arrow().num_rows)

    def test_the_trace_itself_is_a_stream(self):
        import pyarrow

        self.assertEqual(pyarrow.table(self.trace).num_rows, self.trace.to_arrow().num_rows)
        unused = self.trace.__arrow_c_stream__()
        del unused  # frees its stream

    def test_a_closed_trace_and_wrong_values_are_refused(self):
        trace = prof.Trace.open(self.capture)
        trace.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            trace.arrow()
        with self.assertRaisesRegex(ValueError, "batch_rows is 2000000"):
            self.trace.arrow(batch_rows=2000000)
        with self.assertRaisesRegex(ValueError, "to_ns is 5, not after from_ns, which is 9"):
            self.trace.arrow(9, 5)

    def test_a_capture_cut_anywhere_gives_what_the_cursor_gives(self):
        with open(self.capture, "rb") as f:
            whole = f.read()
        seen = 0
        for part in range(1, 40):
            path = self.path("cut.prof")
            with open(path, "wb") as f:
                f.write(whole[: len(whole) * part // 40])
            try:
                trace = prof.Trace.open(path)
            except ValueError:
                continue
            with trace:
                seen += 1
                self.assertEqual(trace.to_arrow().num_rows, sum(1 for _ in trace.events()))
        self.assertGreater(seen, 10)

    def test_without_events_there_are_columns(self):
        empty = self.trace.to_arrow(10**15, 10**15 + 1)
        self.assertEqual((empty.num_rows, "name" in empty.column_names), (0, True))


VIEWS = os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", ""), "tests", "device", "views")


@needs("pyarrow", "duckdb")
class Launches(unittest.TestCase):
    """Work of devices, and the scopes that launched it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def command(self, *words):
        subprocess.run(
            [_import.command(), *words],
            env={**os.environ, "PROF_PYTHON_PROGRAM": sys.executable},
            cwd=self.folder,
            stderr=subprocess.DEVNULL,
            timeout=HANG_SECONDS,
            check=True,
        )

    def joined_by_number(self):
        """Pairs of work and its launch, as a reader of the Parquet file joins them."""
        import duckdb

        self.command("dump", "t.prof", "-o", "t.parquet")
        path = os.path.join(self.folder, "t.parquet")
        return duckdb.sql(
            "SELECT d.name, d.start_ns, d.duration_ns, d.stream, s.name, s.tid, s.start_ns"
            f" FROM '{path}' d JOIN '{path}' s ON s.correlation = d.correlation"
            " WHERE d.kind = 'device' AND s.kind = 'scope' ORDER BY ALL"
        ).fetchall()

    def joined_in_sqlite(self):
        self.command("dump", "t.prof", "-o", "t.db")
        with contextlib.closing(sqlite3.connect(os.path.join(self.folder, "t.db"))) as database:
            return database.execute(
                "SELECT k.name, k.start_ns, k.duration_ns, k.stream, s.name, s.tid, s.start_ns"
                " FROM kernels k JOIN scopes s ON s.id = k.launch_id ORDER BY 1, 2, 3, 4, 5, 6, 7"
            ).fetchall()

    def table(self, name="t.prof"):
        with prof.Trace.open(os.path.join(self.folder, name)) as trace:
            return trace.to_arrow()

    @unittest.skipUnless(os.path.exists(VIEWS), "tests/device/views is not here")
    def test_scopes_on_streams_of_an_emulated_device(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PROF_")}
        path = os.path.join(self.folder, "t.prof")
        subprocess.run([VIEWS, path], env=environment, timeout=HANG_SECONDS, check=True)
        found = self.joined_by_number()
        self.assertEqual(len(found), 14)
        self.assertTrue(all(row[0] == row[4] for row in found), found)
        self.assertEqual(found, self.joined_in_sqlite())

    def trace_of_calls(self):
        """Calls launch up to three kernels each, on two streams. Some launch none."""
        events, expected = [], []
        for number in range(60):
            thread, at = 11 + number % 2, number * 100
            words = {"ph": "X", "pid": 7, "tid": thread}
            events.append({**words, "name": f"outer {number}", "cat": "op", "ts": at, "dur": 90})
            events.append(
                {**words, "name": "launch", "cat": "cuda_runtime", "ts": at + 5, "dur": 20}
                | {"args": {"correlation": number + 1}}
            )
            for kernel in range(number % 4):
                start = at + 30 + kernel * 7
                stream = 3 + (number + kernel) % 2
                events.append(
                    {"ph": "X", "name": f"kernel {kernel}", "cat": "kernel", "pid": 0}
                    | {"tid": stream, "ts": start, "dur": 6}
                    | {"args": {"correlation": number + 1, "device": 0, "stream": stream}}
                )
                expected.append((start * 1000, thread, (at + 5) * 1000))
        with open(os.path.join(self.folder, "t.json"), "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)
        self.command("import", "t.json", "-o", "t.prof")
        return sorted(expected)

    def test_kernels_have_the_number_of_the_call_that_launched_them(self):
        expected = self.trace_of_calls()
        found = self.joined_by_number()
        self.assertEqual(sorted((row[1], row[5], row[6]) for row in found), expected)
        self.assertEqual({row[4] for row in found}, {"launch"})
        self.assertEqual(found, self.joined_in_sqlite())

    def test_scopes_that_launched_nothing_have_no_number(self):
        self.trace_of_calls()
        rows = self.table().to_pylist()
        numbers = [r["correlation"] for r in rows if r["name"] == "launch" and r["correlation"]]
        self.assertEqual(sorted(numbers), list(range(1, 46)))
        self.assertTrue(all(r["correlation"] is None for r in rows if r["name"][:5] == "outer"))

    def test_a_part_of_a_trace_has_the_numbers_of_the_whole(self):
        self.trace_of_calls()
        whole = self.table().to_pylist()
        with prof.Trace.open(os.path.join(self.folder, "t.prof")) as trace:
            part = trace.to_arrow(1_000_000, 2_000_000).to_pylist()
        self.assertTrue(0 < len(part) < len(whole) // 2)
        self.assertTrue(all(row in whole for row in part))


@needs("pyarrow", "pandas", "duckdb", "polars")
class Files(Folder):
    """What Trace.dump() and the command write."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = cls.trace.to_arrow()
        cls.trace.dump(cls.path("t.parquet"))
        cls.trace.dump(cls.path("t.arrow"))
        scopes = [row for row in cls.csv if row["kind"] == "scope"]
        cls.sum_ns = sum(int(row["duration_ns"]) for row in scopes)
        cls.scopes = len(scopes)

    def test_pyarrow_reads_both_back(self):
        import pyarrow.ipc
        import pyarrow.parquet

        rows = self.table.to_pylist()
        self.assertEqual(pyarrow.parquet.read_table(self.path("t.parquet")).to_pylist(), rows)
        with pyarrow.ipc.open_file(self.path("t.arrow")) as file:
            self.assertEqual(file.read_all().to_pylist(), rows)

    def test_pandas_reads_both(self):
        import pandas

        for frame in (
            pandas.read_parquet(self.path("t.parquet")),
            pandas.read_feather(self.path("t.arrow")),
        ):
            scopes = frame[frame["kind"] == "scope"]
            self.assertEqual(len(scopes), self.scopes)
            self.assertEqual(scopes["duration_ns"].sum(), self.sum_ns)

    def test_duckdb_reads_parquet_and_the_reader(self):
        import duckdb

        reader = self.trace.arrow()
        for source in (f"'{self.path('t.parquet')}'", "reader"):
            found = duckdb.sql(
                f"SELECT count(*), sum(duration_ns)::BIGINT FROM {source} WHERE kind = 'scope'"
            ).fetchall()
            self.assertEqual(found, [(self.scopes, self.sum_ns)])
        self.assertIsNotNone(reader)

    def test_polars_reads_both_and_the_trace(self):
        import polars

        for frame in (
            polars.read_parquet(self.path("t.parquet")),
            polars.read_ipc(self.path("t.arrow")),
            polars.DataFrame(self.trace),
        ):
            scopes = frame.filter(polars.col("kind").cast(polars.String) == "scope")
            self.assertEqual(scopes.height, self.scopes)
            self.assertEqual(scopes["duration_ns"].sum(), self.sum_ns)

    def test_files_of_many_batches_have_all_rows_and_texts(self):
        """The dictionaries grow from batch to batch."""
        import pyarrow.ipc
        import pyarrow.parquet

        rows, size = self.table.to_pylist(), _arrow._GROUP_ROWS
        _arrow._GROUP_ROWS = 50
        try:
            self.trace.dump(self.path("many.parquet"))
            self.trace.dump(self.path("many.arrow"))
        finally:
            _arrow._GROUP_ROWS = size
        file = pyarrow.parquet.ParquetFile(self.path("many.parquet"))
        self.assertGreater(file.metadata.num_row_groups, 10)
        self.assertEqual(file.read().to_pylist(), rows)
        with pyarrow.ipc.open_file(self.path("many.arrow")) as file:
            self.assertGreater(file.num_record_batches, 10)
            self.assertEqual(file.read_all().to_pylist(), rows)

    def test_the_command_writes_the_same(self):
        import pyarrow.parquet

        status, said = self.dump(self.capture, "-o", self.path("c.parquet"))
        self.assertEqual((status, said), (0, ""))
        found = pyarrow.parquet.read_table(self.path("c.parquet"))
        self.assertEqual(found.to_pylist(), self.table.to_pylist())

    def test_the_command_says_what_the_file_lacks(self):
        program = (
            "import os, subprocess, sys, prof\n"
            "with prof.scope('one'): pass\n"
            "words = [sys.argv[1], 'level', str(os.getpid()), '2']\n"
            "sys.exit(subprocess.run(words, stdout=subprocess.DEVNULL).returncode)\n"
        )
        subprocess.run(
            [sys.executable, "-c", program, _import.command()],
            env={**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": self.path("level.prof")},
            timeout=HANG_SECONDS,
            check=True,
        )
        file = self.path("level.parquet")
        status, said = self.dump(self.path("level.prof"), "-o", file)
        self.assertEqual((status, said), (0, f"prof dump: {file} lacks 1 change of the level\n"))

    def test_the_command_filters_as_for_csv(self):
        import pyarrow.parquet

        filters = ("--name", "^inner$", "--arg", "i=7")
        status, said = self.dump(self.capture, "-o", self.path("f.parquet"), *filters)
        self.assertEqual(status, 0, said)
        self.dump(self.capture, "-o", self.path("f.csv"), *filters)
        found = pyarrow.parquet.read_table(self.path("f.parquet")).to_pylist()
        written = rows_of_csv(self.path("f.csv"))
        for key in ("kind", "name", "start_ns"):
            self.assertEqual([str(row[key]) for row in found], [row[key] for row in written], key)
        scopes = [row["args"] for row in found if row["kind"] == "scope"]
        self.assertEqual(scopes, ['{"i":7,"text":"a \\"b\\""}'])
        self.assertEqual(sum(row["kind"] == "counter" for row in found), 300)
        self.assertRegex(said, r"is filtered. Left out: \d+ of \d+ scopes, ")

    def test_if_no_event_passes_the_status_is_3_and_there_is_no_file(self):
        for words in (("--name", "no such"), ("--from", "1000s")):
            with self.subTest(words=words):
                status, said = self.dump(self.capture, "-o", self.path("none.parquet"), *words)
                self.assertEqual(status, 3, said)
                self.assertEqual(glob.glob(self.path("none*")), [])

    def test_a_trace_is_imported_on_the_fly(self):
        import pyarrow.parquet

        with open(self.path("in.json"), "w", encoding="utf-8") as f:
            json.dump([{"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 10, "dur": 5}], f)
        os.mkdir(self.path("tmp"))
        status, said = self.dump(
            self.path("in.json"), "-o", self.path("in.parquet"), TMPDIR=self.path("tmp")
        )
        self.assertEqual(status, 0, said)
        found = pyarrow.parquet.read_table(self.path("in.parquet")).to_pylist()
        self.assertEqual([(r["name"], r["duration_ns"]) for r in found], [("a", 5000)])
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_the_pattern_of_a_path_is_expanded(self):
        status, said = self.dump(self.capture, "-o", self.path("p-%p.parquet"))
        self.assertEqual(status, 0, said)
        self.assertTrue(os.path.exists(self.path(f"p-{self.trace.info().pid}.parquet")))

    def test_a_failed_write_leaves_no_file(self):
        status, said = self.dump(self.capture, "-o", self.path("no/such.parquet"))
        self.assertEqual(status, 1)
        self.assertIn("such.parquet", said)
        os.mkfifo(self.path("fifo.parquet"))
        status, said = self.dump(self.capture, "-o", self.path("fifo.parquet"))
        self.assertEqual((status, "to regular files only" in said), (2, True), said)
        with self.assertRaisesRegex(ValueError, "stacks"):
            self.trace.dump(self.path("s.parquet"), stacks=True)
        self.assertEqual(glob.glob(self.path("s.parquet*")), [])

    def test_a_signal_leaves_no_file(self):
        """It comes while the file is being written."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number):
                self.end_by(number)

    def end_by(self, number):
        target = self.path("ended.parquet")
        program = (
            "import sys, time\n"
            "from prof import _arrow\n"
            "def wait(pyarrow, path, read):\n"
            "    print('writing', flush=True)\n"
            "    time.sleep(1000)\n"
            "_arrow._write_parquet = wait\n"
            "_arrow.main(sys.argv[1:])\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, self.capture, target, target, "parquet", "0", "0"],
            stdout=subprocess.PIPE,
        ) as child:
            self.assertEqual(child.stdout.readline(), b"writing\n")
            self.assertEqual(len(glob.glob(target + "*.tmp")), 1)
            child.send_signal(number)
            self.assertEqual(child.wait(HANG_SECONDS), -number)
        self.assertEqual(glob.glob(target + "*"), [])

    def test_the_command_takes_python_with_it(self):
        """A signal to the command only also ends the Python process that it waits for."""
        python = self.path("python")
        with open(python, "w", encoding="utf-8") as f:
            f.write(
                "#!/bin/sh\necho $$ > $PROF_TEST_PID.new; mv $PROF_TEST_PID.new $PROF_TEST_PID\n"
            )
            f.write("exec sleep 1000\n")
        os.chmod(python, 0o755)
        told = self.path("pid")
        with subprocess.Popen(
            [_import.command(), "dump", self.capture, "-o", self.path("taken.parquet")],
            env={**os.environ, "PROF_PYTHON_PROGRAM": python, "PROF_TEST_PID": told},
        ) as child:
            pid = self.wait_for_pid(told)
            child.send_signal(signal.SIGTERM)
            self.assertEqual(child.wait(HANG_SECONDS), -signal.SIGTERM)
        self.wait_for_end(pid)

    def wait_for_pid(self, path):
        end = time.monotonic() + HANG_SECONDS
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        with open(path, encoding="utf-8") as f:
            return int(f.read())

    def wait_for_end(self, pid):
        end = time.monotonic() + HANG_SECONDS
        while True:
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                    if f.read().rpartition(")")[2].split()[0] == "Z":
                        return
            except FileNotFoundError:
                return
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


class Modes(Folder):
    """These need no pyarrow."""

    def test_a_file_that_is_replaced_keeps_its_mode(self):
        path = self.path("mode.parquet")
        for mode in (0o600, 0o640, 0o604):
            with open(path, "w", encoding="utf-8") as f:
                f.write("old")
            os.chmod(path, mode)
            with _whole_file.replaced(path) as name:
                self.assertEqual(os.stat(name).st_mode & 0o777, 0o600, "private until whole")
            self.assertEqual(os.stat(path).st_mode & 0o777, mode)
        os.unlink(path)
        os.close(os.open(self.path("plain"), os.O_CREAT | os.O_WRONLY, 0o666))
        with _whole_file.replaced(path):
            pass
        self.assertEqual(os.stat(path).st_mode, os.stat(self.path("plain")).st_mode)


class Refusals(Folder):
    """These need no pyarrow."""

    def test_a_missing_pyarrow_is_named_with_what_to_type(self):
        with open(self.path("pyarrow.py"), "w", encoding="utf-8") as f:
            f.write("raise ImportError('none here')\n")
        folders = os.pathsep.join((self.folder, os.environ.get("PYTHONPATH", "")))
        status, said = self.dump(
            self.capture, "-o", self.path("without.parquet"), PYTHONPATH=folders
        )
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"without\.parquet: .*pyarrow.*pip install 'libprof\[arrow\]'")
        self.assertEqual(glob.glob(self.path("without*")), [])

    @staticmethod
    def is_installed(package):
        """Whether this Python has it without PYTHONPATH."""
        environment = {**os.environ, "PYTHONPATH": "", "PYTHONNOUSERSITE": "1"}
        words = [sys.executable, "-c", f"import {package}"]
        return (
            subprocess.run(words, env=environment, cwd="/", stderr=subprocess.DEVNULL).returncode
            == 0
        )

    def test_a_missing_package_and_a_missing_python_are_named(self):
        status, said = self.dump(
            self.capture, "-o", self.path("n.parquet"), PYTHONPATH="", PYTHONNOUSERSITE="1"
        )
        self.assertEqual(os.path.exists(self.path("n.parquet")), status == 0)
        if not self.is_installed("prof"):
            self.assertEqual((status, "has no package libprof" in said), (1, True), said)
        elif not self.is_installed("pyarrow"):
            self.assertEqual((status, "pip install 'libprof[arrow]'" in said), (1, True), said)
        else:
            self.assertEqual(status, 0, said)
        status, said = self.dump(
            self.capture, "-o", self.path("n.arrow"), PROF_PYTHON_PROGRAM="/no/python"
        )
        self.assertEqual((status, "cannot execute '/no/python'" in said), (1, True), said)

    def test_links_of_the_system_are_never_replaced(self):
        for path in ("/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1"):
            with self.subTest(path=path), self.assertRaisesRegex(OSError, "no file is put into"):
                _whole_file.refuse_system_folder(path)
        _whole_file.refuse_system_folder("/dev/shm/file")
        _whole_file.refuse_system_folder("file")


if __name__ == "__main__":
    unittest.main()
