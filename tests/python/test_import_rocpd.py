"""prof import of rocprofv3's results.db, whose tables have the run's UUID behind their names,
against what sqlite3 alone finds in it."""

import collections
import unittest

import amd_databases
from amd_databases import Rocpd
from folder import HAS_COMMAND
from import_databases import ROCM, Database, launch_of, of_kind, row, scopes

SEEDS = 16
SUFFIX = "_0198a0b1_c2d3"
OTHER = "_0198a0b1_ffff"


def of(query, suffix=SUFFIX):
    return query.replace("$", suffix)


def told(trace):
    """All but the names of devices."""
    return [e for e in trace.events() if e.category != "metadata"]


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Random(Database):
    """Every other database has the times and places of its rows in other tables."""

    ROWS = {
        "region": ("N.string", "rocpd_string$ N ON N.id = R.name_id"),
        "kernel_dispatch": ("N.display_name", "rocpd_info_kernel_symbol$ N ON N.id = R.kernel_id"),
        "memory_copy": ("N.string", "rocpd_string$ N ON N.id = R.name_id"),
    }

    def rows(self, path, table, is_tracked):
        """Name, start, duration, thread, the start of the call with the same number."""
        name, join = self.ROWS[table]
        calls = "SELECT R.start, E.stack_id FROM rocpd_region$ R"
        if is_tracked:
            calls = """SELECT B.value AS start, E.stack_id FROM rocpd_region$ R
                JOIN rocpd_timestamp$ B ON B.id = R.start_id"""
            columns = "B.value, F.value - B.value, T.tid"
            join += """ JOIN rocpd_track$ T ON T.id = R.track_id
                JOIN rocpd_timestamp$ B ON B.id = R.start_id
                JOIN rocpd_timestamp$ F ON F.id = R.end_id"""
        else:
            columns = "R.start, R.end - R.start, R.tid"
        query = f"""SELECT {name}, {columns}, (SELECT C.start FROM ({calls}
            JOIN rocpd_event$ E ON E.id = R.event_id) C WHERE C.stack_id = V.stack_id)
            FROM rocpd_{table}$ R JOIN {join} JOIN rocpd_event$ V ON V.id = R.event_id"""
        return self.ask(of(query), path)

    def each(self):
        for seed in range(SEEDS):
            path, is_tracked = f"{seed}_results.db", seed % 2 == 1
            amd_databases.random_rocpd(self.path(path), seed, is_tracked)
            calls = self.rows(path, "region", is_tracked)
            work = [
                r
                for table in ("kernel_dispatch", "memory_copy")
                for r in self.rows(path, table, is_tracked)
            ]
            yield path, calls, work, self.taken(path, f"{seed}.prof")

    def test_calls_and_work_are_those_of_the_database_to_the_nanosecond(self):
        for path, calls, work, trace in self.each():
            begin = min((r[1] for r in calls), default=0)
            wanted = [(n, s - begin, ns) for n, s, ns, _, _ in calls]
            self.assertEqual(sorted(map(row, scopes(trace, False))), sorted(wanted), path)
            wanted = [
                (n, s - begin, ns, -1 if launch is None else launch - begin)
                for n, s, ns, _, launch in work
            ]
            found = [(*row(e), launch_of(e)) for e in scopes(trace, True)]
            self.assertEqual(sorted(found), sorted(wanted), path)
            threads = collections.defaultdict(list)
            for e in scopes(trace, False):
                threads[e.thread].append(row(e))
            wanted = collections.defaultdict(list)
            for name, start, ns, tid, _ in calls:
                wanted[tid].append((name, start - begin, ns))
            self.assertEqual(
                sorted(map(sorted, threads.values())), sorted(map(sorted, wanted.values())), path
            )

    def test_tables_have_the_totals_of_the_database(self):
        for path, calls, work, trace in self.each():
            pairs = [[(r[0], r[2]) for r in rows] for rows in (calls, work)]
            self.same_totals(trace, *pairs, path)

    def test_a_way_through_json_changes_no_table(self):
        for path, _, _, trace in self.each():
            again = self.again(trace)
            self.assertEqual(again.table(), trace.table(), path)
            again.close()


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Rules(Database):
    def both(self, content):
        """The import of each version of the tables."""
        for is_tracked in (False, True):
            path = f"{is_tracked}.db"
            made = Rocpd(self.path(path), is_tracked=is_tracked)
            content(made)
            made.close()
            yield self.taken(path, f"{is_tracked}.prof")

    def test_calls_work_and_arguments(self):
        def content(made):
            event = made.region("hipLaunchKernel", 1000, 1100, 5)
            made.add("arg", event_id=event, position=1, type="int", name="b", value="2")
            made.add("arg", event_id=event, position=0, type="int", name="a", value="1")
            made.region("hsa_wait", 1010, 1020, 6, "HSA_CORE_API")
            kernel = made.kernel("gemm", 2000, 2100, 5, gpu=1, queue=3)
            made.counter(kernel, "waves", 2)
            made.counter(kernel, "waves", 3)
            made.counter(kernel, "busy", 0.5)
            made.copy("MEMORY_COPY_HOST_TO_DEVICE", 3000, 3100, 5, 4096, to=2)
            made.copy("MEMORY_COPY_DEVICE_TO_HOST", 3200, 3300, 5, 4096, to=0, source=1)

        for trace in self.both(content):
            found = {e.name: e for e in of_kind(trace, "scope")}
            call, kernel = found["hipLaunchKernel"], found["gemm"]
            self.assertEqual((call.category, call.args), ("hip_runtime", {"a": "1", "b": "2"}))
            self.assertEqual(
                (found["hsa_wait"].category, found["hsa_wait"].depth), ("hsa_core_runtime", 1)
            )
            self.assertEqual(
                (kernel.category, kernel.device, kernel.device_index, kernel.launch),
                ("kernel", ROCM, 1, (call.thread, 0)),
            )
            keys = ("grid", "block", "shared memory", "waves", "busy", "hip stream")
            self.assertEqual(
                [kernel.args[key] for key in keys],
                [(256, 256, 256), (64, 64, 64), 512, 5.0, 0.5, 2],
            )
            to, back = (found[f"MEMORY_COPY_{way}"] for way in ("HOST_TO_DEVICE", "DEVICE_TO_HOST"))
            self.assertEqual((to.device_index, to.args["bytes"], to.args["to gpu"]), (1, 4096, 1))
            self.assertEqual((back.device_index, back.args["from gpu"]), (0, 0))
            self.assertEqual(
                [device.name for device in trace.devices()], [b"Instinct 1", b"Instinct 2"]
            )
            self.assertEqual(self.said, [])

    def test_ranges_are_scopes_and_marks_are_instants_with_their_texts(self):
        def content(made):
            made.region(
                "roctxThreadRangeA", 1000, 2000, 1, "MARKER_CORE_RANGE_API", message='step "1"\n'
            )
            made.region("roctxThreadRangeA", 2000, 2100, 2, "MARKER_CORE_RANGE_API")
            made.mark("here", 1500, 3)

        for trace in self.both(content):
            found = [(e.kind, *row(e), e.category) for e in told(trace)]
            self.assertEqual(
                found,
                [
                    ("scope", 'step "1"\n', 0, 1000, "user_annotation"),
                    ("instant", "here", 500, 0, "user_annotation"),
                    ("scope", "roctxThreadRangeA", 1000, 100, "user_annotation"),
                ],
            )

    def test_samples_with_counters_are_counters(self):
        def content(made):
            made.region("hipFree", 1000, 1100, 1)
            made.counter(made.mark(None, 1050, 0, category="CPU Load"), "load", 0.5)

        for trace in self.both(content):
            found = [(e.name, e.start_ns, e.value) for e in of_kind(trace, "counter")]
            self.assertEqual(found, [("CPU Load load", 50, 0.5)])

    def test_allocations_are_scopes_of_their_threads(self):
        made = Rocpd(self.path("t.db"))
        event = made.event("MEMORY_ALLOCATION", 4)
        place = made.when_and_where(1000, 1100, 300, agent_id=2, queue_id=0, stream_id=0)
        made.add(
            "memory_allocate",
            type="ALLOC",
            level="REAL",
            address=4096,
            size=64,
            event_id=event,
            **place,
        )
        made.close()
        found = [(e.name, e.category, e.args) for e in told(self.taken("t.db"))]
        args = {"level": "REAL", "gpu": 1, "bytes": 64, "address": 4096}
        self.assertEqual(found, [("memory ALLOC", "rocm_memory", args)])

    def test_merged_databases_keep_processes_and_numbers_apart(self):
        """Both have a call of the number 5."""
        for suffix, pid in ((SUFFIX, 300), (OTHER, 400)):
            made = Rocpd(self.path("t.db"), suffix, pid=pid)
            made.region(f"hip{pid}", pid * 10, pid * 10 + 5, 5, tid=pid)
            made.kernel(f"k{pid}", 10000 + pid, 10010 + pid, 5, tid=pid)
            made.close()
        trace = self.taken("t.db")
        calls = {e.name: e for e in scopes(trace, False)}
        launches = {e.name: e.launch for e in scopes(trace, True)}
        self.assertEqual(launches["k300"], (calls["hip300"].thread, 0))
        self.assertEqual(launches["k400"], (calls["hip400"].thread, 1000))
        self.assertNotEqual(calls["hip300"].thread, calls["hip400"].thread)
        self.assertEqual(self.said, [])

    def test_two_machines_may_have_processes_of_one_number(self):
        """As in containers, where each program has pid 1. Their GPUs are not the same."""
        for suffix, node, name in ((SUFFIX, 7, "a"), (OTHER, 8, "b")):
            made = Rocpd(self.path("t.db"), suffix, pid=1, node=node)
            made.region(f"hip_{name}", 1000, 2000, 5, tid=1)
            made.kernel(f"k_{name}", 1500, 2500, 5, gpu=1, tid=1)
            made.close()
        trace = self.taken("t.db")
        calls = {e.name: e.thread for e in scopes(trace, False)}
        self.assertNotEqual(calls["hip_a"], calls["hip_b"])
        self.assertEqual(
            {e.name: (e.device_index, *e.launch) for e in scopes(trace, True)},
            {"k_a": (1, calls["hip_a"], 0), "k_b": (101, calls["hip_b"], 0)},
        )
        again = self.again(trace)
        self.assertEqual(again.table(), trace.table())

    def test_what_is_left_out_is_counted(self):
        made = Rocpd(self.path("t.db"))
        made.region("hipFree", 1000, 1100, 5)
        made.region("late", 1000, "soon", 6)
        made.kernel("alone", 2000, 2100, 99)
        made.copy("between hosts", 3000, 3100, 5, 64, to=0)
        made.add("arg", event_id=999, position=0, type="int", name="a", value="1")
        made.counter(999, "waves", 1)
        made.file.execute(f"CREATE TABLE rocpd_hip_event{SUFFIX} (id INTEGER PRIMARY KEY)")
        made.file.execute(f"INSERT INTO rocpd_hip_event{SUFFIX} VALUES (1)")
        made.close()
        self.taken("t.db")
        self.assertEqual(
            self.said,
            [
                "not taken: 1 with a duration that is no number, or longer than a year",
                "not taken: 2 arguments, counters and stack frames of rows that are not taken",
                "not taken: 1 rows of tables that are not known"
                f" (the first: rocpd_hip_event{SUFFIX})",
                "taken: 1 of devices, whose launch is not in the trace",
                "taken: 1 copies between agents that are no GPU: they stand at GPU 0",
            ],
        )


if __name__ == "__main__":
    unittest.main()
