"""Exports of a merged capture have what the exports of its parts have together, each process apart
from the others."""

import collections
import csv
import importlib.util
import itertools
import json
import os
import re
import sqlite3

from case import PYTHON
from known_capture import Recorded, device_events, events
from test_sums import pprof_sums, speedscope_sums

PARTS = 3
SHIFT_US = 1000  # how much later each part begins than the previous one
HOST_AT = 296  # src/format/header.h: 64 bytes
HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
VIEWS = {
    "scopes": "name, category, start_ns, duration_ns, self_ns, depth, args",
    "kernels": "name, category, start_ns, duration_ns, stream, launch, launch_ns, args",
    "instants": "name, category, at_ns, args",
    "counters": "name, at_ns, value",
    "arrow_ends": "name, at_ns, is_end",
    "memory": "verb, at_ns, address, bytes, used_bytes, pool",
}
TIMES = {"start_ns", "at_ns", "launch_ns"}


def more_events():
    """A counter, an instant, and an arrow, which all have the same numbers in each part."""
    call = {"pid": 7, "tid": 7}
    return [
        {**call, "ph": "C", "name": "load", "ts": 40, "args": {"value": 1.5}},
        {**call, "ph": "i", "s": "t", "name": "mark", "ts": 50},
        {**call, "ph": "s", "cat": "flow", "name": "to", "id": 5, "ts": 20},
        {**call, "ph": "f", "bp": "e", "cat": "flow", "name": "to", "id": 5, "ts": 300},
    ]


class Merged(Recorded):
    """Three captures with equal numbers of processes, threads, devices and arrows."""

    def setUp(self):
        super().setUp()
        self.names = [f"{part}.prof" for part in range(PARTS)]
        for part, name in enumerate(self.names):
            found = events(slower=1 + part) + device_events() + more_events()
            for event in found:
                event["ts"] += part * SHIFT_US
            self.prof("import", self.write("in.json", json.dumps(found)), "-o", name)
        self.prof("merge", "-o", "all.prof", *self.names)
        self.offsets = [part * SHIFT_US * 1000 for part in range(PARTS)]

    def path(self, name):
        return os.path.join(self.folder, name)

    def both(self, ending, read, *words):
        """What `read` returns of the merged file, and of the file of each part."""
        self.prof("dump", "all.prof", "-o", "all" + ending, *words, env=PYTHON)
        parts = []
        for part in range(PARTS):
            output = f"part{part}{ending}"
            self.prof("dump", f"all.prof#{part + 1}", "-o", output, *words, env=PYTHON)
            parts.append(read(self.path(output)))
        return read(self.path("all" + ending)), parts

    def same_rows(self, merged, parts):
        """Counts rows of the parts, whose times are moved to the common time line."""
        expected = collections.Counter()
        for rows, offset in zip(parts, self.offsets):
            for row in rows:
                moved = {
                    k: v + offset if k in TIMES and v is not None else v for k, v in row.items()
                }
                expected[tuple(sorted(moved.items(), key=str))] += 1
        found = collections.Counter(tuple(sorted(row.items(), key=str)) for row in merged)
        self.assertEqual(found, expected)
        self.assertGreaterEqual(len(found), PARTS)

    # ---- one line, one event ----

    @staticmethod
    def csv_rows(path):
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return [{**row, "start_ns": int(row["start_ns"])} for row in rows]

    def test_csv_has_the_rows_of_all_parts_and_their_process(self):
        merged, parts = self.both(".csv", self.csv_rows)
        pids = collections.defaultdict(set)
        for row in merged:
            pids[row.pop("process")].add(row.pop("pid"))
        for row in sum(parts, []):
            del row["pid"]
        self.same_rows(merged, parts)
        self.assertEqual(len(pids), PARTS)
        self.assertEqual(len(set.union(*pids.values())), sum(map(len, pids.values())))

    def test_a_time_is_of_the_common_time_line(self):
        every, _ = self.both(".csv", self.csv_rows)
        for start, end in ((1500, 1700), (0, 900), (2950, 100000)):
            words = ("--from", f"{start}us", "--to", f"{end}us") if start else ("--to", f"{end}us")
            self.prof("dump", "all.prof", "-o", "some.csv", *words)
            expected = [
                row
                for row in every
                if row["start_ns"] < end * 1000
                and row["start_ns"] + int(row["duration_ns"]) > start * 1000
            ]
            self.assertEqual(self.csv_rows(self.path("some.csv")), expected)
            self.assertTrue(expected)
        done = self.prof("dump", "all.prof", "-o", "none.csv", "--from", "9s", status=3)
        self.assertIn("nothing in that time", done.stderr)
        self.assertFalse(os.path.exists(self.path("none.csv")))

    def test_a_filter_takes_what_it_takes_of_each_part(self):
        for words in (("--name", "^conv"), ("--min", "120us"), ("--process", "7")):
            merged, parts = self.both(".csv", self.csv_rows, *words)
            self.assertEqual(len(merged), sum(map(len, parts)))
            self.assertTrue(all(parts))
        said = self.prof("dump", "all.prof", "-o", "x.csv", "--name", "none", status=3).stderr
        self.assertIn("no scope passed", said)
        self.assertFalse(os.path.exists(self.path("x.csv")))

    # ---- Chrome JSON ----

    @staticmethod
    def read_json(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def test_chrome_json_has_the_events_of_all_parts(self):
        merged, parts = self.both(".json", self.read_json)

        def key(event):
            args = {k: v for k, v in event.get("args", {}).items() if "id" not in k.lower()}
            args.pop("correlation", None)
            return (
                event["ph"],
                event.get("cat"),
                event["name"],
                event["ts"],
                event.get("dur"),
                str(args),
            )

        def of(trace):
            return [e for e in trace["traceEvents"] if e["ph"] != "M" and e.get("cat") != "prof"]

        expected = collections.Counter(key(e) for part in parts for e in of(part))
        self.assertEqual(collections.Counter(map(key, of(merged))), expected)
        self.assertEqual(len(merged["prof"]["captures"]), PARTS)
        self.assertEqual(
            [x["written"] for x in merged["prof"]["captures"]],
            [x["prof"]["written"] for x in parts],
        )

        def pids(trace):
            return {e["pid"] for e in trace["traceEvents"] if e["name"] == "process_labels"}

        self.assertEqual(len(pids(merged)), sum(len(pids(part)) for part in parts))

        def numbers(trace, name):
            return {e["args"][name] for e in of(trace) if name in e.get("args", {})}

        self.assertEqual(
            len(numbers(merged, "correlation")), sum(len(numbers(x, "correlation")) for x in parts)
        )
        arrows = collections.Counter((e["ph"], e["id"]) for e in of(merged) if e["ph"] in "sf")
        self.assertEqual(set(arrows.values()), {1})
        self.assertEqual({i for ph, i in arrows if ph == "s"}, {i for ph, i in arrows if ph == "f"})

    def test_a_part_after_the_time_has_no_event(self):
        self.prof("dump", "all.prof", "-o", "some.json", "--to", "900us")
        found = self.read_json(self.path("some.json"))["traceEvents"]
        late = [event for event in found if event["ph"] != "M" and event["ts"] > 900]
        starts = [str(offset // 1000) for offset in self.offsets[1:]]
        self.assertEqual([event["cat"] for event in late], ["prof"] * (PARTS - 1))
        self.assertEqual([f"{event['ts']:.0f}" for event in late], starts)

    def test_arrows_stay_inside_of_a_part(self):
        merged, _ = self.both(".json", self.read_json)
        ends = collections.defaultdict(dict)
        for event in merged["traceEvents"]:
            if event.get("cat") == "flow" and event["ph"] in "sf":
                ends[event["id"]][event["ph"]] = event["pid"]
        self.assertEqual(len(ends), PARTS)
        for pair in ends.values():
            self.assertEqual(pair["s"], pair["f"])
        self.assertEqual(len({pair["s"] for pair in ends.values()}), PARTS)

    def test_a_part_that_begins_after_the_end_has_no_rows(self):
        every, _ = self.both(".json", self.read_json)
        begins = [e["ts"] for e in every["traceEvents"] if e["ph"] != "M"]
        self.prof("dump", "all.prof", "-o", "some.json", "--to", "900us")
        rows = [e for e in self.read_json(self.path("some.json"))["traceEvents"] if e["ph"] != "M"]
        own = [e["ts"] - min(begins) for e in rows if e.get("cat") == "prof"]
        times = [e["ts"] - min(begins) for e in rows if e.get("cat") != "prof"]
        self.assertTrue(times and all(0 <= ts < 900 for ts in times), max(times))
        self.assertEqual(own, [part * SHIFT_US for part in range(PARTS)])

    # ---- databases ----

    def test_a_database_has_the_rows_of_all_parts(self):
        def read(path):
            with sqlite3.connect(path) as database:
                database.row_factory = sqlite3.Row
                self.assertEqual(database.execute("PRAGMA foreign_key_check").fetchall(), [])
                return {
                    view: [dict(row) for row in database.execute(f"SELECT {columns} FROM {view}")]
                    for view, columns in VIEWS.items()
                }

        merged, parts = self.both(".db", read)
        for view in VIEWS:
            with self.subTest(view=view):
                self.same_rows(merged[view], [part[view] for part in parts])
        with sqlite3.connect(self.path("all.db")) as database:
            for view in ("scopes", "kernels", "memory"):
                table = "SELECT DISTINCT {} FROM " + view
                column = "device" if view == "kernels" else "pid"
                found = database.execute(table.format(column)).fetchall()
                self.assertGreaterEqual(len(found), PARTS)
            rows = database.execute(
                "SELECT process, start_ns, event_count FROM captures"
            ).fetchall()
        self.assertEqual([start for _, start, _ in rows], self.offsets)
        self.assertEqual(len({process for process, _, _ in rows}), PARTS)

    def test_rpd_has_the_rows_of_all_parts(self):
        def read(path):
            with sqlite3.connect(path) as database:
                database.row_factory = sqlite3.Row
                self.assertEqual(database.execute("PRAGMA foreign_key_check").fetchall(), [])
                start = "(SELECT value FROM rocpd_metadata WHERE tag = 'prof_start_ns')"
                queries = (
                    f"SELECT start - {start} AS start_ns, end - start AS duration, domain,"
                    " category, apiName, args FROM api",
                    f"SELECT O.start - {start} AS start_ns, O.end - O.start AS duration, O.queueId,"
                    " O.description, O.opType, A.args FROM op O JOIN rocpd_api_ops L ON"
                    " L.op_id = O.id JOIN api A ON A.id = L.api_id",
                    f"SELECT start - {start} AS start_ns, monitorType, value FROM rocpd_monitor",
                )
                found = [[dict(row) for row in database.execute(query)] for query in queries]
                gpus = database.execute("SELECT DISTINCT gpuId FROM op").fetchall()
                return found, len(gpus)

        merged, parts = self.both(".rpd", read)
        for number in range(3):
            self.same_rows(merged[0][number], [part[0][number] for part in parts])
        self.assertEqual(merged[1], sum(part[1] for part in parts))

    def test_an_import_of_a_merged_export_has_all_calls(self):
        def calls(name):
            text = self.prof("table", "--csv", "--rows", "all", name).stdout
            return {row["name"]: row["calls"] for row in csv.DictReader(text.splitlines())}

        expected = calls("all.prof")
        self.assertIn("convolution", expected)
        for ending in (".json", ".db", ".rpd"):
            self.prof("dump", "all.prof", "-o", "again" + ending)
            self.prof("import", "again" + ending, "-o", "again.prof")
            self.assertEqual(calls("again.prof"), expected, ending)
            rows = self.prof("table", "--by", "process", "--csv", "again.prof").stdout
            self.assertGreaterEqual(len(rows.splitlines()), 1 + PARTS, ending)

    def test_an_import_counts_rows_that_were_deleted_of_any_part(self):
        for ending, tables in (
            (".db", ("prof_scopes", "prof_kernels", "prof_counters", "prof_instants")),
            (".rpd", ("rocpd_api", "rocpd_op", "rocpd_monitor")),
        ):
            self.prof("dump", "all.prof", "-o", "all" + ending)
            whole = self.prof("import", "all" + ending, "-o", "again.prof").stderr
            self.assertNotIn("were deleted", whole)
            with sqlite3.connect(self.path("all" + ending)) as database:
                for table in tables:
                    database.execute(
                        f"DELETE FROM {table} WHERE id = (SELECT max(id) FROM {table})"
                    )
            said = self.prof("import", "all" + ending, "-o", "again.prof").stderr
            self.assertIn(f"{len(tables)} rows that prof wrote and that were deleted", said)

    def test_imports_of_merged_exports_keep_their_processes_apart_when_merged_again(self):
        def pids(name):
            self.prof("dump", name, "-o", "pids.csv")
            return {row["pid"] for row in self.csv_rows(self.path("pids.csv"))}

        self.prof("dump", "all.prof", "-o", "all.json")
        for name in ("x.prof", "y.prof"):
            self.prof("import", "all.json", "-o", name)
        made = {"ph": "X", "name": "a", "pid": 2**30, "tid": 1, "ts": 1, "dur": 5}
        for number, pid in enumerate((5, 5, 2**30)):
            source = self.write("in.json", json.dumps([{**made, "pid": pid}]))
            self.prof("import", source, "-o", f"single{number}.prof")
        names = ["x.prof", "y.prof", "single0.prof", "single1.prof", "single2.prof"]
        self.prof("merge", "-o", "again.prof", *names)
        self.assertEqual(len(pids("again.prof")), sum(len(pids(name)) for name in names))
        self.prof("merge", "-o", "again.prof", *names[2:])
        self.assertEqual(len(pids("again.prof")), 3)

    # ---- call paths ----

    @staticmethod
    def folded(path):
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()

    @staticmethod
    def without_processes(lines):
        return collections.Counter(re.sub(r"^process \d+;", "", line) for line in lines)

    def test_folded_stacks_begin_with_the_process(self):
        merged, parts = self.both(".folded", self.folded)
        found = self.without_processes(line.split(";", 1)[1] for line in merged)
        self.assertEqual(found, self.without_processes(itertools.chain(*parts)))
        self.assertEqual(len({line.split(";", 1)[0] for line in merged}), PARTS)

    def same_paths(self, merged, parts):
        found = collections.defaultdict(list)
        for (thread, *path), value in merged.items():
            process, own = thread.split(", ", 1)
            found[(re.sub(r"process \d+, ", "", own), *path)].append((process, value))
        self.assertEqual(len({p for values in found.values() for p, _ in values}), PARTS)
        expected = collections.defaultdict(list)
        for part in parts:
            for (thread, *path), value in part.items():
                expected[(re.sub(r"process \d+, ", "", thread), *path)].append(value)
        self.assertEqual(
            {k: sorted(v for _, v in values) for k, values in found.items()},
            {k: sorted(values) for k, values in expected.items()},
        )

    def test_pprof_has_the_paths_of_all_parts(self):
        self.same_paths(*self.both(".pb.gz", pprof_sums))

    def test_speedscope_has_the_paths_of_all_parts(self):
        self.same_paths(*self.both(".speedscope.json", speedscope_sums))

    # ---- columns ----

    def test_parquet_and_arrow_have_the_rows_of_all_parts(self):
        if not HAS_PYARROW:
            self.skipTest("the package pyarrow is missing")
        import pyarrow
        import pyarrow.parquet

        def read(path):
            if path.endswith(".parquet"):
                table = pyarrow.parquet.read_table(path)
            else:
                table = pyarrow.ipc.open_file(path).read_all()
            return table

        apart = (
            "pid",
            "thread",
            "thread_index",
            "launch_thread_index",
            "launch_start_ns",
            "device",
            "correlation",
        )

        def launches(table):
            calls, work = collections.Counter(), collections.Counter()
            for row in table.to_pylist():
                if row["correlation"] is not None:
                    key = (row["correlation"], row.get("process"))
                    (work if row["kind"] == "device" else calls)[key] += 1
            return calls, work

        for ending in (".parquet", ".arrow"):
            merged, parts = self.both(ending, read)
            processes = merged.group_by(["process", "pid"]).aggregate([("start_ns", "count")])
            self.assertEqual(
                len(set(processes["process"].to_pylist())), PARTS, "each part is a process"
            )
            self.assertEqual(
                processes.num_rows, len(set(processes["pid"].to_pylist())), "and has own numbers"
            )
            calls, work = launches(merged)
            self.assertEqual((len(calls), set(calls.values())), (len({n for n, _ in calls}), {1}))
            self.assertEqual(set(work), set(calls), "a call and its work are of one process")
            self.assertEqual(len(calls), sum(len(launches(part)[0]) for part in parts))
            self.assertGreaterEqual(len(calls), PARTS)
            threads = [part["thread_index"].unique() for part in parts]
            self.assertGreaterEqual(len(merged["thread_index"].unique()), sum(map(len, threads)))
            self.same_rows(
                merged.drop_columns([*apart, "process"]).to_pylist(),
                [part.drop_columns(list(apart)).to_pylist() for part in parts],
            )

    def test_columns_take_equal_processes_with_numbers_above_2_30(self):
        if not HAS_PYARROW:
            self.skipTest("the package pyarrow is missing")
        import pyarrow.parquet

        event = {"ph": "X", "name": "a", "pid": 4000000000, "tid": 1, "ts": 1, "dur": 5}
        for name in ("x.prof", "y.prof"):
            self.prof("import", self.write("in.json", json.dumps([event])), "-o", name)
        self.prof("merge", "-o", "both.prof", "x.prof", "y.prof")
        self.prof("dump", "both.prof", "-o", "both.parquet", env=PYTHON)
        pids = pyarrow.parquet.read_table(self.path("both.parquet"))["pid"].to_pylist()
        self.assertEqual(pids, [4000000000, 2**30])

    def test_columns_take_the_name_of_a_host_that_is_no_utf_8(self):
        if not HAS_PYARROW:
            self.skipTest("the package pyarrow is missing")
        import pyarrow.parquet

        with open(self.path("0.prof"), "r+b") as file:
            file.seek(HOST_AT)
            self.assertEqual(file.read(64), bytes(64), "an import knows no host")
            file.seek(HOST_AT)
            file.write(b"n\xff:1")
        self.prof("merge", "-o", "both.prof", "0.prof", "1.prof")
        for ending in (".parquet", ".csv"):
            self.prof("dump", "both.prof", "-o", "both" + ending, env=PYTHON)
        table = pyarrow.parquet.read_table(self.path("both.parquet"))
        labels = {row["process"].replace(":", " ") for row in self.csv_rows(self.path("both.csv"))}
        self.assertEqual(set(table["process"].to_pylist()), labels)

    # ---- what cannot be ----

    def test_a_format_of_one_capture_names_the_part(self):
        done = self.prof("dump", "all.prof", "-o", "x.json", "--format", "raf", status=2)
        self.assertIn("'all.prof' has 3 captures, and this format holds one", done.stderr)
        self.assertIn("all.prof#1", done.stderr)
        done = self.prof("dump", "all.prof", "-o", "x.prof", "--pack", status=2)
        self.assertIn("all.prof#1", done.stderr)

    def test_a_path_with_a_mark_of_one_process_is_refused(self):
        for mark, what in (("%p", "process"), ("%h", "host"), ("%r", "rank")):
            for ending in (".json", ".pftrace", ".parquet"):
                done = self.prof("dump", "all.prof", "-o", f"x-{mark}{ending}", status=2)
                self.assertIn(f"has no single {what} for {mark}", done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name[0] == "x"], [])
        self.prof("dump", "all.prof", "-o", "x-%%p.json")
        self.assertTrue(os.path.exists(self.path("x-%p.json")))
        self.prof("dump", "all.prof#1", "-o", "x-%p.csv")
        self.assertTrue(os.path.exists(self.path("x-7.csv")))

    # ---- other commands ----

    def test_events_are_listed_on_one_time_line(self):
        def rows(name, *words):
            text = self.prof("events", "--csv", *words, name).stdout
            found = list(csv.DictReader(text.splitlines()))
            return [{**row, "start_ns": int(row["start_ns"])} for row in found]

        merged = rows("all.prof")
        parts = [rows(f"all.prof#{part + 1}") for part in range(PARTS)]
        self.assertEqual([x["start_ns"] for x in merged], sorted(x["start_ns"] for x in merged))
        longest = sorted(merged, key=lambda x: (-int(x["duration_ns"]), x["start_ns"]))
        top = rows("all.prof", "--sort", "duration", "--top", "7")
        self.assertEqual([x["duration_ns"] for x in top], [x["duration_ns"] for x in longest[:7]])
        some = rows("all.prof", "--from", "1500us", "--to", "1700us")
        self.assertEqual(some, [x for x in merged if 1500000 <= x["start_ns"] < 1700000])
        self.assertTrue(some)
        self.assertEqual(len({x["process"] for x in merged}), PARTS)
        for row in merged:
            del row["process"], row["pid"]
        for row in sum(parts, []):
            del row["pid"]
        self.same_rows(merged, parts)
        text = self.prof("events", "all.prof").stdout
        self.assertIn(f"{len(merged)} scopes", text)

    def test_memory_shows_each_part(self):
        text = self.prof("memory", "all.prof").stdout
        for part in range(PARTS):
            self.assertIn(self.prof("memory", f"all.prof#{part + 1}").stdout, text)
            self.assertRegex(text, rf"(?m)^Capture {part + 1}, .*process ")
        for words in (("--pool", "1"), ("--raf",), ("--svg", "x.svg")):
            done = self.prof("memory", *words, "all.prof", status=2)
            self.assertIn(words[0] + " takes one capture", done.stderr)
            self.assertIn("all.prof#1", done.stderr)
        done = self.prof("memory", "--name", "none", "all.prof", status=3)
        self.assertEqual(done.stderr.count("no allocation passed"), 1)

    def test_a_strict_merge_fails_on_a_damaged_capture(self):
        with open(self.path("1.prof"), "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.truncate(size - 65536)
        for output in ("x.prof", "x.pftrace"):
            self.prof("merge", "-o", output, *self.names)
            done = self.prof("merge", "--strict", "-o", output, *self.names, status=1)
            self.assertIn("'1.prof' is damaged or cut off", done.stderr)
            self.prof("merge", "--strict", "-o", output, "0.prof", "2.prof")
