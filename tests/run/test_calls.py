"""Calls of libraries as events of a capture: names, arguments, ranks, and what launchers put in
front of the lines."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get("PROF_TEST_BUILD_DIR", "build/dev")
PROF = os.path.join(os.path.abspath(BUILD), "prof")
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))

GEMM = "./rocblas-bench -f gemm_ex --transposeA N -m 8192 -n 1 -k 7392 --alpha 1.5"
PROFILE = '- { rocblas_function: "rocblas_gemm_ex", M: 3, call_count: 136 }'
LT = "hipblaslt-bench --api_method c -m 1024  --bias_vector --bias_source d"
CONV = "./bin/MIOpenDriver conv -n 128 -c 3 -H 32 -W 32 -k 64 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1"
CONV += " -l 1 -j 1"
COLLECTIVE = (
    "NCCL INFO AllReduce: opCount 3 sendbuff 0x7f8b recvbuff 0x7f8c count 1000 datatype 7 op 0 "
    "root 0 comm 0xaef8a00 [nranks=8] stream 0xac16b80"
)
PREFIXES = {
    "": None,
    "[1,3]<stderr>:": 3,
    "[prterun-node-77@1,4]<stdout>:": 4,
    "5: ": 5,
    " 6: ": 6,
    "[7] ": 7,
    "[rank8]:": 8,
    "[default9]:": 9,
    "[trainer10]:[rank11]: ": 11,
    "\x1b[32m12: ": 12,
    "2026-03-12T13:57:49.123456789Z 13: ": 13,
    "[2026-03-12 13:57:49] ": None,
    "2026-03-12T13:57:49.1Z stdout F ": None,
    "worker-1  | ": None,
    "step 4 of 9: ": None,
}


class Calls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def prof(self, *words, **options):
        return subprocess.run(
            [PROF, *words],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
            **options,
        )

    def run_lines(self, lines, *tools, end="\n", out="out", program=None):
        text = "".join(line + end for line in lines)
        program = program or "import sys; sys.stdout.write(sys.argv[1])"
        named = [word for tool in ("prof", *tools) for word in ("-t", tool)]
        words = ["run", "-q", "-o", out, *named, "--", sys.executable, "-c", program]
        done = self.prof(*words, text)
        self.assertEqual(done.stdout.decode(), text)
        return done

    def rows(self, out="out"):
        with open(self.path(out, "library_trace.csv"), encoding="utf-8", newline="") as file:
            return [tuple(row[3:]) for row in csv.reader(io.StringIO(file.read()))][1:]

    def events(self, out="out"):
        """[(row, category, name, arguments)] in the order of time."""
        self.prof("dump", self.path(out, "library_trace.prof"), "-o", self.path("t.json"))
        with open(self.path("t.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        calls = sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"])
        for call in calls:
            call.setdefault("args", {}).pop("External id", None)
        return [(names[e["tid"]], e["cat"], e["name"], e["args"]) for e in calls]

    def test_a_script_in_python_has_them_beside_its_trace(self):
        source = os.environ.get("PROF_TEST_SOURCE_DIR", os.getcwd())
        env = {
            **os.environ,
            "PYTHONPATH": os.path.join(os.path.abspath(source), "bindings", "python"),
            "PROF_LIBRARY": os.path.join(os.path.dirname(PROF), "libprof.so"),
        }
        with open(self.path("k.py"), "w", encoding="utf-8") as file:
            file.write("import sys\nprint(*sys.argv[1:])\n")
        words = ["-q", "-t", "prof", "-t", "tensile_trace", "-o"]
        for ending in (".json", ".json.gz", ".prof"):
            program = ["--", sys.executable, "k.py", "Running kernel: Cijk_A"]
            self.prof("run", *words, f"k{ending}", *program, env=env)
            done = self.prof("run", *words, f"n{ending}", *program[:-1], env=env)
            self.assertEqual(done.stderr, b"")
        names = {name for name in os.listdir(self.folder) if name[0] in "kn."}
        traces = {f"{stem}{e}" for stem in "kn" for e in (".json", ".json.gz", ".prof")}
        calls = {f"k.library_trace{e}" for e in (".json", ".json.gz", ".prof")}
        self.assertEqual(names, {"k.py"} | traces | calls)
        text = self.prof("table", "k.library_trace.prof").stdout.decode()
        self.assertRegex(text, r"(?m)^Cijk_A +tensile +1$")

    def test_each_call_is_an_event_with_its_config(self):
        self.run_lines(
            [GEMM, "other", PROFILE, LT, f"MIOpen: Command [LogCmdConv] {CONV}"],
            *("rocblas_trace", "hipblaslt_trace", "miopen_trace"),
        )
        gemm = {"transposeA": "N", "m": 8192, "n": 1, "k": 7392, "alpha": 1.5}
        lt = {"api_method": "c", "m": 1024, "bias_vector": 1, "bias_source": "d"}
        conv = {"n": 128, "c": 3, "H": 32, "W": 32, "k": 64, "y": 3, "x": 3, "p": 1}
        conv = {**conv, "q": 1, "u": 1, "v": 1, "l": 1, "j": 1}
        self.assertEqual(
            self.events(),
            [
                ("stdout", "rocblas", "rocblas_gemm_ex", gemm),
                ("stdout", "hipblaslt", "hipblasLtMatmul", lt),
                ("stdout", "miopen", "MIOpenDriver conv", conv),
            ],
        )

    def test_what_has_no_room_is_one_argument(self):
        self.run_lines([f"MIOpen: Command [LogCmdConv] {CONV} -m conv -g 1"], "miopen_trace")
        ((_, _, _, arguments),) = self.events()
        self.assertEqual(arguments["j"], 1)
        self.assertEqual(arguments["more"], "-m conv -g 1")

    def test_a_collective_has_rank_and_process(self):
        self.run_lines(
            [f"h:77:78 [0] {COLLECTIVE} task 0 globalrank 5", f"3: h:9:9 [1] {COLLECTIVE}"],
            "rccl_trace",
        )
        sizes = {"count": 1000, "datatype": "float32", "op": 0, "root": 0, "nranks": 8}
        sizes["bytes"] = 4000
        self.assertEqual(
            self.events(),
            [
                ("rank 5, process 77", "rccl", "ncclAllReduce", {**sizes, "rank": 5, "pid": 77}),
                ("rank 3, process 9", "rccl", "ncclAllReduce", {**sizes, "rank": 3, "pid": 9}),
            ],
        )

    def test_a_collective_without_a_type_has_no_bytes(self):
        self.run_lines([COLLECTIVE.replace("datatype 7 ", "")], "nccl_trace")
        ((_, library, _, arguments),) = self.events()
        self.assertEqual(library, "nccl")
        self.assertNotIn("bytes", arguments)
        self.assertNotIn("datatype", arguments)

    def test_blocks_and_products_of_nvidia(self):
        block = [
            "I! cuBLAS (v13.4.1) function cublasStatus_t cublasSgemm_v2(int) called:",
            "i!  transa: type=cublasOperation_t; val=CUBLAS_OP_T(1)",
            "i!  m: type=int; val=2",
            "i!Process=14102; Thread=1; GPU=0; Handle=POINTER (IN HEX:0x(nil))",
        ]
        product = (
            "[cublasLt][52][Trace][cublasLtSSSMatmul] A=0X4 Adesc=[type=R_32F rows=9 cols=9]"
            " beta=0 stream=0X0"
        )
        self.run_lines([*block, product], "cublas_trace", "cublaslt_trace")
        blas = {"transa": "CUBLAS_OP_T(1)", "m": 2, "pid": 14102}
        lt = {"Adesc": "[type=R_32F rows=9 cols=9]", "beta": 0, "pid": 52}
        self.assertCountEqual(
            self.events(),
            [
                ("process 14102", "cublas", "cublasSgemm_v2", blas),
                ("process 52", "cublaslt", "cublasLtSSSMatmul", lt),
            ],
        )

    def test_a_launcher_s_prefix_gives_the_rank(self):
        for call, tool in (
            (GEMM, "rocblas_trace"),
            (LT, "hipblaslt_trace"),
            (f"MIOpen(HIP): Command [LogCmdConv] {CONV}", "miopen_trace"),
            ("Running kernel: Cijk_Ailk_Bljk_SB", "tensile_trace"),
            (f"h:9:9 [1] {COLLECTIVE}", "rccl_trace"),
            (f"[0] {COLLECTIVE}", "nccl_trace"),
        ):
            with self.subTest(tool):
                self.run_lines([prefix + call for prefix in PREFIXES], tool, out=tool)
                self.assertEqual([calls for *_, calls in self.rows(tool)], [str(len(PREFIXES))])
                ranks = [arguments.get("rank") for *_, arguments in self.events(tool)]
                self.assertCountEqual(map(str, ranks), map(str, PREFIXES.values()))

    def test_prefixes_of_the_profile_and_of_blocks(self):
        def block(rank, rows):
            head = f"[1,{rank}]<stderr>:"
            return [
                f"{head}I! cuBLAS (v11.0) function cublasStatus_t cublasGemmEx(...) called:",
                *(f"{head}i!  m: type=int; val={row}" for row in rows),
            ]

        # two ranks at once, line by line
        mixed = [line for pair in zip(block(0, [7]), block(1, [8]), strict=True) for line in pair]
        self.run_lines(
            [f"[1,2]<stderr>:{PROFILE}", f"5: {PROFILE}", *mixed],
            *("rocblas_trace", "cublas_trace"),
        )
        self.assertCountEqual(
            self.rows(),
            [
                ("rocblas_function", PROFILE.replace(", call_count: 136", ""), "272"),
                ("cublas", "cublasGemmEx m=7", "1"),
                ("cublas", "cublasGemmEx m=8", "1"),
            ],
        )
        self.assertEqual({row for row, *_ in self.events()}, {"rank 0", "rank 1"})

    def test_blocks_that_threads_mix_have_no_wrong_arguments(self):
        head = "I! cuBLAS (v11.0) function cublasStatus_t cublasGemmEx(...) called:"
        process = "i!Process=1; Thread={}; GPU=0"
        lines = [head, head, "i!  m: type=int; val=1", "i!  m: type=int; val=2"]
        lines += [process.format(1), process.format(2)]
        lines += [head, "i!  m: type=int; val=3", process.format(1)]
        self.run_lines(lines, "cublas_trace")
        self.assertEqual(
            self.rows(),
            [("cublas", "cublasGemmEx", "2"), ("cublas", "cublasGemmEx m=3", "1")],
        )

    def test_carriage_returns_and_colours_at_the_end(self):
        lines = [GEMM, GEMM + "\x1b[0m", GEMM + "\x1b[0m\x1b[K", "\x1b[31m" + GEMM]
        program = "import sys; sys.stdout.buffer.write(sys.argv[1].encode())"
        self.run_lines(lines, "rocblas_trace", end="\r\n", program=program)
        self.assertEqual(self.rows(), [("rocblas", GEMM, "4")])

    def test_a_comma_for_the_point_is_text(self):
        self.run_lines([GEMM.replace("1.5", "1,5")], "rocblas_trace")
        self.assertEqual(self.rows(), [("rocblas", GEMM.replace("1.5", "1,5"), "1")])
        self.assertEqual(self.events()[0][3]["alpha"], "1,5")

    def test_bytes_that_are_no_text_do_not_end_it(self):
        with open(self.path("lines"), "wb") as file:
            file.write(b"\xff\xfe\x00" + GEMM.encode() + b"\n" + b"i!\x00\n[rank\n" * 9)
        done = self.prof(
            *("run", "-q", "-o", "out", "-t", "prof", "-t", "rocblas_trace"),
            *("-t", "cublas_trace", "--", "cat", "lines"),
        )
        self.assertEqual(len(done.stdout), os.path.getsize(self.path("lines")))
        self.assertEqual(self.rows(), [("rocblas", GEMM, "1")])

    def test_without_a_call_there_is_no_capture(self):
        self.run_lines(["nothing"], "rocblas_trace")
        self.assertFalse(os.path.exists(self.path("out", "library_trace.prof")))
        with open(self.path("out", "summary.json"), encoding="utf-8") as file:
            self.assertNotIn("library_trace.prof", file.read())

    def test_the_table_has_the_calls_and_each_repeat_its_own(self):
        words = ("run", "-q", "-o", "out", "--repeat", "2", "-t", "prof", "-t", "rocblas_trace")
        self.prof(*words, "--", "printf", f"{GEMM}\\n{GEMM}\\n")
        for run in ("run-1", "run-2"):
            path = self.path("out", run, "library_trace.prof")
            table = self.prof("table", path).stdout.decode()
            (line,) = [each for each in table.splitlines() if "rocblas_gemm_ex" in each]
            self.assertEqual(line.split()[-1], "2")
            about = self.prof("info", path).stdout.decode()
            self.assertIn("library calls, at the time of reading", about)
            self.assertIn("no loss", about)

    def test_many_processes_are_all_counted(self):
        """Rows are limited; calls are not."""
        lines = [f"h:{pid}:{pid} [0] {COLLECTIVE}" for pid in range(1, 1101)]
        with open(self.path("lines"), "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        self.prof(
            *("run", "-q", "-o", "out", "-t", "prof", "-t", "rccl_trace"),
            *("--", "cat", "lines"),
        )
        events = self.events()
        self.assertEqual(len(events), 1100)
        self.assertEqual([a["pid"] for *_, a in events], list(range(1, 1101)))
        self.assertEqual(len({row for row, *_ in events}), 1025)

    def test_past_a_file_size_limit_calls_are_counted_as_lost(self):
        count = 20000
        with open(self.path("lines"), "w", encoding="utf-8") as file:
            file.write(f"{GEMM}\n" * count)
        limit = ["sh", "-c", 'ulimit -f 1024; exec "$@"', "sh"]
        words = [PROF, "run", "-q", "-o", "out", "-t", "prof", "-t", "rocblas_trace", "--"]
        done = subprocess.run(
            [*limit, *words, "cat", "lines"],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=True,
        )
        self.assertEqual(done.stdout.count(b"\n"), count)
        self.assertEqual(self.rows(), [("rocblas", GEMM, str(count))])
        (told,) = [each for each in done.stderr.decode().splitlines() if "lacks" in each]
        about = self.prof("info", self.path("out", "library_trace.prof")).stdout.decode()
        recorded, lost = map(int, re.search(r"(\d+) recorded; lost (\d+)", about).groups())
        self.assertEqual(recorded + lost, count)
        self.assertGreater(recorded, 0)
        self.assertIn(f"lacks {lost} calls: the disk was full, or a file size limit", told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
