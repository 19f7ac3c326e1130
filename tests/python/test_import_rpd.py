"""prof import of rocmProfileData's trace.rpd, against what sqlite3 alone finds in it."""

import collections
import unittest

import amd_databases
from folder import HAS_COMMAND
from import_databases import ROCM, Database, launch_of, of_kind, row, scopes

SEEDS = 24
CUDA = 2


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Random(Database):
    CALLS = """SELECT CASE WHEN N.string = 'UserMarker' THEN U.string ELSE N.string END,
        A.start, A.end - A.start, A.pid, A.tid FROM rocpd_api A
        JOIN rocpd_string N ON N.id = A.apiName_id JOIN rocpd_ustring U ON U.id = A.args_id
        WHERE NOT (N.string = 'UserMarker' AND A.start = A.end)"""
    OPS = """SELECT CASE WHEN D.string = '' THEN T.string ELSE D.string END, O.start,
        O.end - O.start, O.gpuId, O.queueId, (SELECT A.start FROM rocpd_api_ops L
        JOIN rocpd_api A ON A.id = L.api_id WHERE L.op_id = O.id) FROM rocpd_op O
        JOIN rocpd_string D ON D.id = O.description_id JOIN rocpd_string T ON T.id = O.opType_id"""

    def each(self, overlap=False):
        for seed in range(SEEDS):
            path = f"{seed}.rpd"
            amd_databases.random_rpd(self.path(path), seed, overlap=overlap and seed % 2)
            begins = self.ask(
                "SELECT min(start) FROM (SELECT start FROM rocpd_api"
                " UNION ALL SELECT start FROM rocpd_op)",
                path,
            )
            yield path, begins[0][0], self.taken(path, f"{seed}.prof")

    def test_calls_and_work_are_those_of_the_database_to_the_nanosecond(self):
        for path, begin, trace in self.each(overlap=True):
            calls = [(n, s - begin, d) for n, s, d, _, _ in self.ask(self.CALLS, path)]
            self.assertEqual(sorted(map(row, scopes(trace, False))), sorted(calls), path)
            work = [
                (n, s - begin, d, gpu, -1 if launch is None else launch - begin)
                for n, s, d, gpu, _, launch in self.ask(self.OPS, path)
            ]
            found = [(*row(e), e.device_index, launch_of(e)) for e in scopes(trace, True)]
            self.assertEqual(sorted(found), sorted(work), path)

    def rows_of(self, trace, on_device):
        found = collections.defaultdict(list)
        for e in scopes(trace, on_device):
            found[e.thread].append(row(e))
        return sorted(map(sorted, found.values()))

    def test_threads_and_queues_are_those_of_the_database(self):
        for path, begin, trace in self.each(overlap=True):
            for query, on_device in ((self.CALLS, False), (self.OPS, True)):
                wanted = collections.defaultdict(list)
                for name, start, ns, first, second, *_ in self.ask(query, path):
                    wanted[first, second].append((name, start - begin, ns))
                self.assertEqual(
                    self.rows_of(trace, on_device), sorted(map(sorted, wanted.values())), path
                )

    def test_tables_have_the_totals_of_the_database(self):
        for path, _, trace in self.each():
            calls, work = self.ask(self.CALLS, path), self.ask(self.OPS, path)
            self.same_totals(
                trace, [(r[0], r[2]) for r in calls], [(r[0], r[2]) for r in work], path
            )

    def test_a_way_through_json_changes_no_table(self):
        for path, _, trace in self.each():
            again = self.again(trace)
            self.assertEqual(again.table(), trace.table(), path)
            again.close()


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Rules(Database):
    def test_arguments_of_calls_and_of_their_work(self):
        def content(made):
            call = made.call("hipLaunchKernel", 2001, 3003, args='{"x": "1"}')
            made.kernel(call, "gemm", (4, 2, 1), (128, 1, 1), 64)
            op = made.op("gemm", 4000, 5005, call=call, sequenceId=9)
            made.add("counter", op_id=op, name_id=made.string("waves"), value=3)
            call = made.call("hipMemcpyWithStream", 5000, 6000)
            made.copy(call, 4096)
            made.op("", 5500, 5900, kind="CopyHostToDevice", call=call)
            for depth, name in enumerate(("inner", "outer;")):
                made.add("stackframe", api_ptr_id=call, depth=depth, name_id=made.string(name))

        found = {e.name: e.args for e in of_kind(self.made(content), "scope")}
        launch, kernel = found["hipLaunchKernel"], found["gemm"]
        copy, work = found["hipMemcpyWithStream"], found["CopyHostToDevice"]
        self.assertEqual(
            [launch[key] for key in ("args", "kernel", "grid", "block", "shared memory")],
            ['{"x": "1"}', "gemm", "[4,2,1]", "[128,1,1]", 64],
        )
        self.assertEqual(
            [kernel[key] for key in ("grid", "block", "shared memory", "waves", "sequence")],
            [(4, 2, 1), (128, 1, 1), 64, 3.0, 9],
        )
        self.assertEqual(
            [copy[key] for key in ("kind", "bytes", "dst", "src", "src device", "Call stack")],
            ["HostToDevice", 4096, "0x1000", "0x2000", -1, "inner;outer,"],
        )
        self.assertEqual((work["bytes"], work["kind"]), (4096, "HostToDevice"))
        self.assertEqual(self.said, [])

    def test_kinds_of_work_and_categories_of_calls(self):
        calls = (
            ("hipFree", "hip"),
            ("hipFree", ""),
            ("hsa_init", ""),
            ("f", "mine"),
            ("k", "kernel"),
        )

        def content(made):
            for i, kind in enumerate((*amd_databases.KINDS, "Unheard")):
                made.op("k" if i == 0 else "", 10 * i, 10 * i + 5, kind=kind)
            made.op("named", 90, 95, kind="Unheard")
            for i, (name, domain) in enumerate(calls):
                made.call(name, 100 + 10 * i, 105 + 10 * i, domain=domain)

        trace = self.made(content)
        self.assertEqual(
            [e.category for e in sorted(scopes(trace, True), key=lambda e: e.start_ns)],
            ["kernel", "gpu_memcpy", "gpu_memset", "gpu_sync", "gpu_other", "kernel"],
        )
        self.assertEqual(
            [e.category for e in scopes(trace, False)],
            ["hip_runtime", "hip_runtime", "hsa_runtime", "mine", "user_annotation"],
        )
        self.assertEqual(self.said, ["taken: 6 of devices, whose launch is not in the trace"])

    def test_of_cuda_devices_are_cuda_s(self):
        """rpd records by CUPTI, too."""

        def content(made):
            call = made.call("cudaLaunchKernel", 1000, 1100, domain="cuda")
            made.op("k", 1200, 1300, call=call)

        found = [(e.name, e.category, e.device) for e in self.made(content).events()]
        self.assertEqual(found, [("cudaLaunchKernel", "cuda_runtime", 1), ("k", "kernel", CUDA)])

    def test_ranges_are_scopes_and_marks_are_instants(self):
        def content(made):
            made.marker("step", 1000, 2000)
            made.marker("mark", 1500, 1500)
            made.call("hipFree", 1600, 1600)

        found = [(e.kind, *row(e)) for e in self.made(content).events()]
        wanted = [("scope", "step", 0, 1000), ("instant", "mark", 500, 0)]
        self.assertEqual(found, [*wanted, ("scope", "hipFree", 600, 0)])

    def test_monitors_are_counters_of_their_device(self):
        def content(made):
            made.call("hipFree", 1000, 1100)
            made.monitor("power", 1000, 2000, "55.5", device=1)
            made.monitor("power", 2000, 9000, "60", device=1)
            made.monitor("sclk", 1000, 1000, "1300", device=0)
            made.monitor("load", 1500, 1600, "0.25", device=3, kind="cpu")
            made.monitor("temp", 1000, 1000, "hot")

        found = sorted(
            (e.name, e.device, e.device_index, e.start_ns, e.value)
            for e in of_kind(self.made(content), "counter")
        )
        self.assertEqual(
            found,
            [
                ("cpu 3 load", 1, 0, 500, 0.25),
                ("cpu 3 load", 1, 0, 600, 0.25),
                ("power", ROCM, 1, 0, 55.5),
                ("power", ROCM, 1, 1000, 60.0),
                ("power", ROCM, 1, 8000, 60.0),
                ("sclk", ROCM, 0, 0, 1300.0),
            ],
        )
        self.assertEqual(self.said, ["not taken: 1 values of counters that are no numbers"])

    def test_processes_share_gpus_and_keep_their_launches(self):
        def content(made):
            for pid in (100, 200):
                call = made.call("hipLaunchKernel", pid * 10, pid * 10 + 5, pid, pid)
                made.op(f"k{pid}", 5000 + pid, 5050 + pid, gpu=1, queue=4, call=call)

        trace = self.made(content)
        calls = {e.start_ns: e.thread for e in scopes(trace, False)}
        work = scopes(trace, True)
        self.assertEqual([(e.device_index, e.name) for e in work], [(1, "k100"), (1, "k200")])
        self.assertEqual([e.launch for e in work], [(calls[0], 0), (calls[1000], 1000)])
        self.assertEqual(len({e.thread for e in work}), 1)

    def test_a_process_without_a_name_has_its_number(self):
        def content(made):
            made.call("hipMalloc", 100, 200, 10, 11)
            made.call("hipFree", 100, 300, 20, 21)

        self.made(content)
        table = self.command("table", "t.prof", "--by", "process").stdout
        for words in ("process 10", "process 20"):
            self.assertIn(words, table)

    def test_nothing_is_said_of_clocks_that_the_database_does_not_tell(self):
        def content(made):
            made.op("k", 100, 200)

        self.made(content)
        table = self.command("table", "t.prof").stdout
        self.assertIn("hip:0: 0 scopes, 1 kernel or copy\n", table)
        self.assertNotIn("times within", table)

    def test_what_is_wrong_is_counted_with_a_line_for_each_reason(self):
        def content(made):
            call = made.call("hipLaunchKernel", 1000, 1100)
            made.call("no begin", "soon", 1200)
            made.call("no end", 1000, "late")
            made.call("turned", 1200, 1100)
            made.call("nowhere", 1300, 1310, pid="here")
            made.call("no name", 1400, 1410, apiName_id=999)
            made.call("null", None, 1410)
            op = made.op("k", 1500, 1600, call=call)
            made.add("api_ops", api_id=call + 1, op_id=op)
            made.add("api_ops", api_id=999, op_id=op)
            made.op("alone", 1700, 1800, call=998)
            made.op("somewhere", 1900, 1950, gpu="first", call=call)
            made.add("counter", op_id=999, name_id=made.string("waves"), value=1)
            made.add("stackframe", api_ptr_id=999, depth=0, name_id=made.string("f"))
            made.file.execute("CREATE TABLE rocpd_graph (id INTEGER PRIMARY KEY)")
            made.file.execute("INSERT INTO rocpd_graph VALUES (1), (2)")

        self.made(content)
        self.assertEqual(
            self.said,
            [
                "not taken: 1 without a time (ts)",
                "not taken: 1 with a time that is no number, or years away from the others",
                "not taken: 1 with a negative duration",
                "not taken: 1 with a duration that is no number, or longer than a year",
                "not taken: 3 links to a second call, or between rows that are not in the database",
                "not taken: 2 arguments, counters and stack frames of rows that are not taken",
                "not taken: 2 rows of tables that are not known (the first: rocpd_graph)",
                "taken: 2 with a name, a category, arguments or another member of a wrong type",
                "taken: 1 without a name",
                "taken: 1 of devices, whose launch is not in the trace",
            ],
        )

    def test_version_2_of_the_schema(self):
        """Names and arguments share a table, calls have no domain, and HSA has its own table."""
        made = amd_databases.Rpd(self.path("t.rpd"))
        columns = "id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER"
        for table in ("api", "hsaApi"):
            made.file.execute(f"DROP TABLE IF EXISTS rocpd_{table}")
            made.file.execute(
                f"CREATE TABLE rocpd_{table} ({columns}, apiName_id INTEGER, args_id INTEGER)"
            )
        made.file.execute("DROP TABLE rocpd_ustring")
        common = {"pid": 1, "tid": 2, "args_id": made.string("size(4)")}
        made.add("api", start=100, end=200, apiName_id=made.string("hipMalloc"), **common)
        made.add("hsaApi", start=110, end=190, apiName_id=made.string("hsa_pool"), **common)
        made.close()
        found = [(e.name, e.category, e.args, e.depth) for e in self.taken("t.rpd").events()]
        args = {"args": "size(4)"}
        self.assertEqual(
            found, [("hipMalloc", "hip_runtime", args, 0), ("hsa_pool", "hsa_runtime", args, 1)]
        )

    def test_without_any_row_it_is_an_empty_capture(self):
        self.assertEqual(list(self.made(lambda made: None).events()), [])


if __name__ == "__main__":
    unittest.main()
