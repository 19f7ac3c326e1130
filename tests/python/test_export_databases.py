"""prof dump to x.db and x.rpd. sqlite3 reads the files, the rows are compared with the CSV of the
same capture, and prof import reads them back."""

import collections
import contextlib
import csv
import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import unittest

import amd_databases
import import_traces
from folder import COMMAND, HAS_COMMAND
from hang_guard import HANG_SECONDS
from import_databases import Database

import prof

SEEDS = 6
HOSTILE = ["", "'; DROP TABLE prof_scopes; --", 'a"b\\c', "\u2028 </script>", "\n\r\t", "é" * 2000]
RPD_TABLES = {
    "rocpd_metadata": "id tag value",
    "rocpd_string": "id string",
    "rocpd_ustring": "id string",
    "rocpd_api": "id pid tid start end apiName_id category_id domain_id args_id",
    "rocpd_copyapi": "api_ptr_id stream size width height kind dst src dstDevice srcDevice sync"
    " pinned",
    "rocpd_kernelapi": "api_ptr_id stream gridX gridY gridZ workgroupX workgroupY workgroupZ"
    " groupSegmentSize privateSegmentSize kernelName_id",
    "rocpd_op": "id gpuId queueId sequenceId start end description_id opType_id",
    "rocpd_api_ops": "id api_id op_id",
    "rocpd_monitor": "id deviceType deviceId monitorType start end value",
    "rocpd_counter": "id value op_id name_id",
    "rocpd_stackframe": "id api_ptr_id depth name_id",
    "api": "id pid tid start end domain category apiName args",
    "op": "id gpuId queueId sequenceId start end description opType",
    "busy": "gpuId GpuTime WallTime Busy",
    "top": "Name TotalCalls TotalDuration_us Ave_us Percentage",
    "kernel": "id gpuId queueId sequenceId start end duration stream gridX gridY gridZ workgroupX"
    " workgroupY workgroupZ groupSegmentSize privateSegmentSize kernelName",
    "copy": "id pid tid start end apiName stream size width height kind dst src dstDevice"
    " srcDevice sync pinned",
    "copyop": "id gpuId queueId sequenceId start end duration stream size width height kind dst"
    " src dstDevice srcDevice sync pinned apiName",
    "stackframe": "id string depth string:1",
    "napi": "id node pid tid start end domain category apiName args",
    "nop": "id node gpuId queueId sequenceId start end description opType",
}


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Written(Database):
    def dumped(self, capture, output, *words):
        done = self.command("dump", capture, "-o", output, *words)
        self.skip_without(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def random(self, seed=1):
        """A capture with calls, markers, and work of some GPUs."""
        source, capture = f"in{seed}.rpd", f"in{seed}.prof"
        amd_databases.random_rpd(self.path(source), seed, overlap=seed % 2 == 1)
        self.taken(source, capture)
        return capture

    def imported_trace(self, content, output="in.prof"):
        with open(self.path("in.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)
        return self.taken("in.json", output)

    def rows(self, capture):
        """The lines of the CSV, by kind."""
        self.dumped(capture, "out.csv")
        found = collections.defaultdict(list)
        with open(self.path("out.csv"), encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                found[line["kind"]].append(line)
        return found

    def table(self, capture, *words):
        """The rows, without the cost of scopes and their places, which exports do not hold."""
        done = self.command("table", capture, "--csv", "--rows", "all", *words)
        rows = [
            {k: v for k, v in line.items() if "net" not in k and k != "location"}
            for line in csv.DictReader(done.stdout.splitlines())
        ]
        return done.returncode, rows

    def test_every_row_of_the_csv_is_in_the_database(self):
        for seed in range(SEEDS):
            capture = self.random(seed)
            self.dumped(capture, "out.db")
            self.same_rows(self.rows(capture), seed)

    def same_rows(self, lines, where):
        columns = ("name", "category", "start_ns", "duration_ns", "self_ns", "depth")
        wanted = [
            tuple(line[c] if c in ("name", "category") else int(line[c]) for c in columns)
            for line in lines["scope"] + lines["unfinished"]
        ]
        select = f"SELECT {', '.join(columns)} FROM scopes"
        self.assertEqual(sorted(self.ask(select, "out.db")), sorted(wanted), where)
        wanted = [(x["name"], int(x["start_ns"]), int(x["duration_ns"])) for x in lines["device"]]
        found = self.ask("SELECT name, start_ns, duration_ns FROM kernels", "out.db")
        self.assertEqual(sorted(found), sorted(wanted), where)
        for table, kind in (("instants", "instant"), ("counters", "counter"), ("steps", "step")):
            found = self.ask(f"SELECT count(*) FROM {table}", "out.db")
            self.assertEqual(found, [(len(lines[kind]),)], (where, table))

    def test_the_view_of_totals_is_the_table(self):
        capture = self.random(2)
        self.dumped(capture, "out.db")
        scopes = {name for (name,) in self.ask("SELECT DISTINCT name FROM scopes", "out.db")}
        lines = self.table(capture)[1]
        wanted = {(x["name"], int(x["calls"])) for x in lines if x["name"] in scopes}
        self.assertEqual(set(self.ask("SELECT name, calls FROM totals", "out.db")), wanted)

    def test_kernels_have_the_calls_that_launched_them(self):
        capture = self.random(4)
        self.dumped(capture, "out.db")
        wanted = self.ask(
            "SELECT count(*) FROM rocpd_api_ops L JOIN rocpd_op O ON O.id = L.op_id", "in4.rpd"
        )
        found = self.ask("SELECT count(launch_id) FROM kernels", "out.db")
        self.assertEqual(found, wanted)
        inside = "SELECT count(*) FROM kernels k JOIN scopes s ON s.id = k.launch_id"
        bounds = " WHERE k.launch_ns BETWEEN s.start_ns AND s.end_ns"
        self.assertEqual(self.ask(inside + bounds, "out.db"), wanted)

    def test_a_database_is_sound_and_its_references_hold(self):
        capture = self.random(3)
        for output in ("out.db", "out.rpd"):
            self.dumped(capture, output)
            self.assertEqual(self.ask("PRAGMA integrity_check", output), [("ok",)])
            self.assertEqual(self.ask("PRAGMA foreign_key_check", output), [])
            self.assertEqual(self.ask("PRAGMA journal_mode", output), [("delete",)])

    def test_dump_to_a_database_and_import_change_no_table(self):
        for seed in range(SEEDS):
            self.same_after(self.random(seed), ("",))

    def test_dump_to_a_database_and_import_change_no_table_of_other_tools_traces(self):
        for name, content in import_traces.TRACES.items():
            with self.subTest(name):
                self.imported_trace(content)
                self.same_after("in.prof", ("", "thread", "device", "process"))

    def same_after(self, capture, groups):
        for output in ("way.db", "way.rpd"):
            self.dumped(capture, output)
            self.taken(output, "back.prof")
            for group in groups:
                words = ("--by", group) if group else ()
                wanted = self.table(capture, *words)
                self.assertEqual(self.table("back.prof", *words), wanted, (output, group))
                self.assertEqual(self.table(output, *words), wanted, (output, group))

    def recorded(self):
        with prof.profile(level=2) as profile:
            for name in HOSTILE:
                with prof.record_function(name or " "):
                    pass
            for step in range(3):
                with prof.scope("outer", n=step, text="x"), prof.record_function("inner"):
                    prof.counter("count", step)
                prof.instant("mark", n=step)
                profile.step()
        profile.trace.dump(self.path("in.prof"))
        return "in.prof"

    def test_an_unfinished_scope_comes_back_as_through_json(self):
        with prof.profile() as profile, prof.scope("open"):
            with prof.scope("ended"):
                pass
            profile.trace.dump(self.path("in.prof"))
        self.dumped("in.prof", "way.json")
        self.taken("way.json", "json.prof")
        for output, query in (
            ("way.db", "SELECT name FROM scopes WHERE is_unfinished"),
            ("way.rpd", "SELECT args FROM api WHERE domain = 'prof unfinished'"),
        ):
            self.dumped("in.prof", output)
            self.assertEqual(self.ask(query, output), [("open",)])
            back = self.taken(output, "back.prof")
            found = [e.name for e in back.events() if e.kind == "open"]
            self.assertEqual(found, ["open"], output)
            self.assertEqual(self.table("back.prof"), self.table("json.prof"), output)

    def test_hostile_names_are_unchanged(self):
        capture = self.recorded()
        for output, query in (
            ("out.db", "SELECT name FROM scopes"),
            ("out.rpd", "SELECT args FROM api WHERE apiName = 'UserMarker'"),
        ):
            self.dumped(capture, output)
            found = [name for (name,) in self.ask(query, output)]
            for name in HOSTILE:
                self.assertEqual(found.count(name or " "), 1, (output, name))

    def test_the_library_writes_what_the_command_writes(self):
        capture = self.recorded()
        self.dumped(capture, "out.db")
        with prof.Trace.open(self.path(capture)) as trace:
            trace.dump(self.path("own.db"))
            trace.dump(self.path("own.rpd"))
        query = "SELECT * FROM scopes"
        self.assertEqual(self.ask(query, "own.db"), self.ask(query, "out.db"))
        scopes = self.ask("SELECT count(*) + (SELECT count(*) FROM steps) FROM scopes", "own.db")
        self.assertEqual(
            self.ask("SELECT count(*) FROM api WHERE domain <> 'prof instant'", "own.rpd"), scopes
        )

    def test_arguments_are_json(self):
        self.dumped(self.recorded(), "out.db")
        query = (
            "SELECT json_extract(args, '$.n') FROM scopes WHERE name = 'outer' ORDER BY start_ns"
        )
        self.assertEqual(self.ask(query, "out.db"), [(0,), (1,), (2,)])
        self.assertEqual(
            self.table("out.db", "--by", "arg:n"), self.table("in.prof", "--by", "arg:n")
        )

    def test_pools_of_one_name_are_told_apart(self):
        script = (
            "from prof import memory_profiler as m\n"
            "m.start()\n"
            "first, second = m.Pool('same'), m.Pool('same')\n"
            "first.alloc(16, 100)\n"
            "second.alloc(32, 7)\n"
        )
        env = {**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": self.path("pools.prof")}
        subprocess.run([sys.executable, "-c", script], env=env, check=True, timeout=HANG_SECONDS)
        self.dumped("pools.prof", "out.db")
        sums = "SELECT pool, sum(bytes) FROM memory GROUP BY pool_id ORDER BY 2"
        self.assertEqual(self.ask(sums, "out.db"), [("same", 7), ("same", 100)])

    def test_arrows_and_memory_come_back(self):
        memory = [
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "args": args}
            for ts, args in (
                (1, {"Addr": 2**63 + 16, "Bytes": 64, "Device Type": 0, "Device Id": -1}),
                (2, {"Addr": 2**63 + 16, "Bytes": -64, "Device Type": 0, "Device Id": -1}),
            )
        ]
        scopes = [import_traces.x(n, ts, 10, pid=1, tid=1) for n, ts in (("a", 0), ("b", 20))]
        arrow = import_traces.arrow("flow", (1, 1, 5), (1, 1, 25))
        arrow[0]["args"] = {"flow id": "0x8000000000000007"}
        self.imported_trace([*scopes, *arrow, *memory])
        self.dumped("in.prof", "out.db")
        self.assertEqual(
            self.ask("SELECT verb, bytes FROM memory ORDER BY at_ns", "out.db"),
            [("alloc", 64), ("free", 64)],
        )
        self.assertEqual(
            self.ask("SELECT is_end, at_ns FROM arrow_ends ORDER BY at_ns", "out.db"),
            [(0, 5000), (1, 25000)],
        )
        back = self.taken("out.db", "back.prof")
        kinds = collections.Counter(e.kind for e in back.events())
        self.assertEqual(kinds["flow_begin"], 1)
        self.assertEqual(kinds["flow_end"], 1)
        self.assertEqual(kinds["memory"], 2)
        self.dumped("back.prof", "again.db")
        for numbers in ("SELECT address FROM memory", "SELECT arrow FROM arrow_ends"):
            self.assertEqual(self.ask(numbers, "again.db"), self.ask(numbers, "out.db"), numbers)
            self.assertTrue(all(number < 0 for (number,) in self.ask(numbers, "out.db")), numbers)

    def test_rpd_has_the_tables_and_views_of_its_schema(self):
        self.dumped(self.random(), "out.rpd")
        for table, columns in RPD_TABLES.items():
            found = [row[1] for row in self.ask(f"PRAGMA table_info({table})", "out.rpd")]
            self.assertEqual(found, columns.split(), table)
            self.ask(f"SELECT * FROM {table}", "out.rpd")
        self.assertEqual(
            self.ask("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'", "out.rpd"),
            [("3",)],
        )

    def change_rpd(self, change):
        with contextlib.closing(sqlite3.connect(self.path("out.rpd"))) as file, file:
            file.execute(change)

    def test_views_of_an_rpd_hold_what_its_tables_do(self):
        self.dumped(self.random(), "out.rpd")
        ops = self.ask('SELECT gpuId, start, "end" FROM rocpd_op', "out.rpd")
        wall_ns = max(end for _, _, end in ops) - min(start for _, start, _ in ops)
        busy_ns = collections.Counter()
        for gpu, start, end in ops:
            busy_ns[gpu] += end - start
        wanted = [(gpu, ns, wall_ns, ns / wall_ns) for gpu, ns in sorted(busy_ns.items())]
        self.assertEqual(self.ask("SELECT * FROM busy ORDER BY gpuId", "out.rpd"), wanted)
        self.change_rpd("UPDATE rocpd_api SET pid = pid + 20000000, tid = tid + 20000000")
        self.change_rpd("UPDATE rocpd_op SET gpuId = gpuId + 3000, queueId = queueId + 3000")
        for view, table, ids, stride in (
            ("napi", "rocpd_api", ("pid", "tid"), 10**7),
            ("nop", "rocpd_op", ("gpuId", "queueId"), 1000),
        ):
            ids = ", ".join(ids)
            rows = self.ask(f"SELECT {ids} FROM {table} ORDER BY id", "out.rpd")
            wanted = [(a // stride, a % stride, b % stride) for a, b in rows]
            found = self.ask(f"SELECT node, {ids} FROM {view} ORDER BY id", "out.rpd")
            self.assertEqual(found, wanted)
            self.assertGreater(min(node for node, _, _ in found), 0)

    def test_views_of_an_rpd_are_sql_of_other_engines_too(self):
        """DuckDB parses them itself, and END is a keyword there."""
        self.dumped(self.random(), "out.rpd")
        views = self.ask("SELECT name, sql FROM sqlite_master WHERE type = 'view'", "out.rpd")
        self.assertEqual(len(views), 10)
        for name, sql in views:
            words = re.findall(r"\w+", re.sub(r'"[^"]*"|\'[^\']*\'', "", sql.lower()))
            self.assertEqual(words.count("end"), words.count("case"), (name, sql))

    def test_each_column_of_a_database_has_a_type(self):
        self.dumped(self.random(), "out.db")
        tables = self.ask("SELECT name FROM sqlite_master WHERE type = 'table'", "out.db")
        for (table,) in tables:
            for _, column, declared, *_ in self.ask(f"PRAGMA table_info({table})", "out.db"):
                self.assertIn(declared, ("INTEGER", "REAL", "TEXT"), (table, column))
                kinds = self.ask(f"SELECT DISTINCT typeof({column}) FROM {table}", "out.db")
                self.assertLessEqual({kind for (kind,) in kinds}, {declared.lower(), "null"})
        number = "SELECT CAST(value AS INTEGER) = value + 0 FROM metadata WHERE key = 'event_count'"
        self.assertEqual(self.ask(number, "out.db"), [(1,)])

    def test_a_trace_without_events_makes_a_database_without_rows(self):
        self.imported_trace({"traceEvents": []})
        for output, table in (("out.db", "prof_scopes"), ("out.rpd", "rocpd_api")):
            self.dumped("in.prof", output)
            self.assertEqual(self.ask(f"SELECT count(*) FROM {table}", output), [(0,)])
            self.taken(output, "back.prof")

    def test_a_cut_capture_is_written_as_far_as_it_goes(self):
        capture = self.random(5)
        size = os.path.getsize(self.path(capture))
        os.truncate(self.path(capture), size * 3 // 4)
        lines = self.rows(capture)
        self.dumped(capture, "out.db")
        self.same_rows(lines, "cut")

    def test_the_time_since_1970_comes_back(self):
        def first_ns(trace):
            return trace.info().start_unix_ns + min(event.start_ns for event in trace.events())

        first = first_ns(prof.Trace.open(self.path(self.recorded())))
        for output in ("out.db", "out.rpd"):
            self.dumped("in.prof", output)
            self.assertEqual(first_ns(self.taken(output, "back.prof")), first, output)

    def test_each_kind_of_event_has_its_rows(self):
        capture = self.recorded()
        self.dumped(capture, "out.db")
        self.same_rows(self.rows(capture), "recorded")

    def test_a_filter_selects_rows(self):
        capture = self.random(6)
        self.dumped(capture, "out.db", "--name", "hipCall[12]")
        found = {name for (name,) in self.ask("SELECT DISTINCT name FROM scopes", "out.db")}
        self.assertEqual(found, {"hipCall1", "hipCall2"})
        done = self.command("dump", capture, "-o", "none.db", "--name", "nobody")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertFalse(os.path.exists(self.path("none.db")))

    def files(self):
        return sorted(os.listdir(self.folder))

    def test_a_full_disk_leaves_no_file(self):
        capture = self.random(7)
        before = self.files()

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))

        for output in ("out.db", "out.rpd"):
            done = subprocess.run(
                [COMMAND, "dump", capture, "-o", output],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                cwd=self.folder,
                preexec_fn=limit,
            )
            self.skip_without(done.stderr)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("RLIMIT_FSIZE", done.stderr)
            self.assertIn("40000", done.stderr)
            self.assertEqual(self.files(), before)

    def on_a_disk(self, kib, script):
        """Executes the script in a new file system of that size. The result, or None: this system
        mounts none."""
        os.makedirs(self.path("disk"), exist_ok=True)
        mount = f"mount -t tmpfs -o size={kib}k none disk || exit 99\n{script}"
        for options in (["--mount"], ["--mount", "--user", "--map-root-user"]):
            with contextlib.suppress(FileNotFoundError):
                done = subprocess.run(
                    ["unshare", *options, "sh", "-c", mount],
                    capture_output=True,
                    text=True,
                    timeout=HANG_SECONDS,
                    cwd=self.folder,
                )
                if not done.stderr.startswith("unshare: ") and done.returncode != 99:
                    return done
        return None

    def test_a_file_system_without_room_is_left_as_it_was(self):
        if self.on_a_disk(64, "true") is None:
            self.skipTest("this user may not mount a tmpfs, neither here nor in a user namespace")
        capture = self.random(7)
        for output in ("out.db", "out.rpd"):
            self.dumped(capture, output)
            whole = os.path.getsize(self.path(output)) // 1024
            script = (
                f"echo old > disk/other; {COMMAND} dump {capture} -o disk/{output}; status=$?\n"
                f"ls -A disk; cp disk/{output} kept-{output} 2>/dev/null; exit $status"
            )
            self.assertGreater(whole, 80)
            for kib in (8, 12, 40, whole // 2, whole - 8, whole - 4, whole):
                done = self.on_a_disk(kib, script)
                self.assertEqual(done.returncode, 1, (kib, whole, done.stdout, done.stderr))
                self.assertIn("No space left on device", done.stderr, kib)
                self.assertIn(f"disk/{output}", done.stderr)
                self.assertEqual(done.stdout, "other\n", kib)
                self.assertFalse(os.path.exists(self.path(f"kept-{output}")), kib)
            done = self.on_a_disk(2 * whole + 64, script)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.ask("PRAGMA integrity_check", f"kept-{output}"), [("ok",)])
            self.assertEqual(
                self.table(f"kept-{output}"), self.table(capture), "the room is enough"
            )

    def test_an_output_that_is_not_a_regular_file_is_refused(self):
        capture = self.random()
        for output, words in (
            ("/dev/stdout", ("--format", "sqlite")),
            ("/dev/null", ("--format", "rpd")),
        ):
            done = self.command("dump", capture, "-o", output, *words)
            self.skip_without(done.stderr)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("regular file", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_without_sqlite_the_error_names_the_library_and_the_package(self):
        capture = self.random()
        with open(self.path("libsqlite3.so.0"), "w", encoding="utf-8") as file:
            file.write("no library")
        before = self.files()
        done = subprocess.run(
            [COMMAND, "dump", capture, "-o", "out.db"],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder,
            env={**os.environ, "LD_LIBRARY_PATH": self.folder},
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("libsqlite3.so.0", done.stderr)
        self.assertIn("apt-get install libsqlite3-0", done.stderr)
        self.assertEqual(self.files(), before)

    def refused(self, output, sql, reason):
        copy = shutil.copy(self.path(output), self.path("changed" + output))
        database = sqlite3.connect(copy)
        database.execute(sql)
        database.commit()
        database.close()
        done = self.command("import", copy, "-o", "refused.prof")
        self.assertNotEqual(done.returncode, 0, (sql, done.stderr))
        self.assertIn(reason, done.stderr)
        self.assertNotIn("refused.prof", self.files())

    def test_a_changed_database_is_refused_with_the_reason(self):
        self.dumped(self.random(), "out.db")
        self.dumped("in1.prof", "out.rpd")
        newer = "UPDATE prof_metadata SET value = 7 WHERE key = 'format_version'"
        self.refused("out.db", newer, "its version is 7; this prof reads up to 1")
        self.refused("out.db", "UPDATE prof_scopes SET args = '{\"a\":[}'", "damaged")
        self.refused("out.db", "UPDATE prof_names SET name = x'00ff'", "BLOB")
        self.refused("out.db", "DROP TABLE prof_kernels", "no such table")
        head = "UPDATE rocpd_metadata SET value = '[]' WHERE tag = 'prof_head'"
        self.refused("out.rpd", head, "damaged")


if __name__ == "__main__":
    unittest.main()
