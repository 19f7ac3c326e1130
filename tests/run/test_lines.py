"""Lines that libraries print for a call, in every form that public logs show: what becomes a row of
library_trace.csv, and what does not."""

import csv
import io
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get("PROF_TEST_BUILD_DIR", "build/dev")
PROF = os.path.join(os.path.abspath(BUILD), "prof")
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))

GEMM = "-f gemm_ex --transposeA N --transposeB N -m 8192 -n 1 -k 7392 --alpha 1 --a_type bf16_r"
PROFILE = (
    '- { rocblas_function: "rocblas_gemm_ex", atomics_mode: atomics_allowed, a_type: "bf16_r", '
    "transA: 'T', transB: 'N', M: 12288, alpha: 1.0, flags: none, call_count: 136 }"
)
PROFILE_ROW = PROFILE.replace(", call_count: 136", "")
LT = (
    "hipblaslt-bench --api_method c -m 1024 -n 512  --stride_a 0   --compute_type f32_r "
    "--algo_method index --solution_index 56073"
)
CONV = "conv -n 128 -c 3 -H 32 -W 32 -k 64 -y 3 -x 3 -p 1 -q 1 -m conv -g 1 -F 1 -t 1"
COLLECTIVE = (
    "opCount {op} sendbuff 0x7f8b recvbuff 0x7f8c {more}count {count} datatype {type} op 0 root 0 "
    "comm 0xaef8a00 [nranks=8] stream {stream}"
)


def collective(op="3", more="", count=1000, type=7, stream="0xac16b80"):
    return COLLECTIVE.format(op=op, more=more, count=count, type=type, stream=stream)


def row(name, count=1000, type="float32", size=4):
    return f"{name} count {count} datatype {type} op 0 root 0 nranks 8 bytes {count * size}"


CUBLAS = [
    "I! cuBLAS (v13.4.1) function cublasStatus_t cublasSgemm_v2(cublasHandle_t, int) called:",
    "i!  handle: type=cublasHandle_t; val=POINTER (IN HEX:0x0x2d3c1100)",
    "i!  transa: type=cublasOperation_t; val=CUBLAS_OP_T(1)",
    "i!  m: type=int; val=2",
    "i! Time: 2026-09-11T18:38:49 elapsed from start 0.016667 minutes or 1.000000 seconds",
    "i!Process=14102; Thread=129943171284992; GPU=0; Handle=POINTER (IN HEX:0x(nil))",
]
CUDNN = [
    "2220 I! CuDNN (v91002 17) function cudnnConvolutionForward() called:",
    "i!     handle: type=cudnnHandle_t; streamId=0x0;",
    "i!     algo: type=cudnnConvolutionFwdAlgo_t; val=CUDNN_CONVOLUTION_FWD_ALGO_GEMM (1);",
    "i!     workSpaceSizeInBytes: type=size_t; val=1048576;",
]
MATMUL = (
    "[{}Trace][cublasLtSSSMatmul] A=0X400380DD0A00 Adesc=[type=R_32F rows=1000 cols=1000 ld=1000] "
    "algo=[algoId=21 tile=MATMUL_TILE_128x128] workSpace=0X0"
)
MATMUL_ROW = (
    "cublasLtSSSMatmul Adesc=[type=R_32F rows=1000 cols=1000 ld=1000] "
    "algo=[algoId=21 tile=MATMUL_TILE_128x128]"
)


class Lines(unittest.TestCase):
    def rows(self, tool, lines):
        """[(library, config, calls)] of a program that prints the lines."""
        with tempfile.TemporaryDirectory() as folder:
            program = "import sys; sys.stdout.write(sys.argv[1])"
            text = "".join(f"{line}\n" for line in lines)
            done = subprocess.run(
                [
                    PROF,
                    "run",
                    "-q",
                    "-t",
                    tool,
                    "--",
                    sys.executable,
                    "-c",
                    program,
                    text,
                ],
                cwd=folder,
                capture_output=True,
                timeout=HANG_SECONDS,
                check=True,
            )
            self.assertEqual(done.stdout.decode(), text)
            with open(os.path.join(folder, "library_trace.csv"), encoding="utf-8") as file:
                table = list(csv.reader(io.StringIO(file.read(), newline="")))
        return [tuple(cells[3:]) for cells in table[1:]]

    def check(self, tool, lines, *rows):
        self.assertEqual(self.rows(tool, lines), list(rows))

    def test_many_distinct_lines(self):
        """In the order in which each came first."""
        configs = [f"./rocblas-bench -f gemm -m {i * 7919 % 2000}" for i in range(2000)]
        lines = [*configs, *reversed(configs), configs[7]]
        rows = self.rows("rocblas_trace", lines)
        calls = ["3" if i == 7 else "2" for i in range(2000)]
        self.assertEqual(rows, [("rocblas", *row) for row in zip(configs, calls)])

    def test_rocblas(self):
        config = f"./rocblas-bench {GEMM}"
        self.check(
            "rocblas_trace",
            [
                config,
                f"0: {config}",
                f"[rank0]: {config}",
                "rocblas_gemm_ex,N,N,8192",
                PROFILE,
            ],
            ("rocblas", config, "3"),
            ("rocblas_function", PROFILE_ROW, "136"),
        )

    def test_a_call_of_rocblas_s_profile_is_one_row_whatever_its_count(self):
        name = 'rocblas_function: "rocblas_gemm"'
        long = f"- {{ {name}, M: {'1' * 9000} }}"
        self.check(
            "rocblas_trace",
            [
                *(PROFILE.replace("136", count) for count in ("136", "64", "136", "64")),
                f"- {{ {name}, call_count: 3, M: 2 }}",
                f"call_count: 7 - {{ {name}, M: 2, call_count: 4 }}",
                f"- {{ call_count: 8, {name}, M: 2 }}",
                f"- {{ {name}, M: 2, call_count: 5, }}",
                f"- {{ {name}, M: 2 }}",
                f"- {{ {name}, M: 2, call_count: many }}",
                *(long.replace(" }", f", call_count: {count} }}") for count in (1, 1000000)),
            ],
            ("rocblas_function", PROFILE_ROW, "400"),
            ("rocblas_function", f"- {{ {name}, M: 2 }}", "16"),
            ("rocblas_function", f"- {{ {name}, M: 2, }}", "5"),
            ("rocblas_function", f"- {{ {name}, M: 2, call_count: many }}", "1"),
            ("rocblas_function", long, "1000001"),
        )

    def test_a_sum_of_huge_counts_is_the_largest_number(self):
        largest = str(2**64 - 1)
        self.check(
            "rocblas_trace",
            [PROFILE.replace("136", count) for count in (largest, largest, "9" * 30)],
            ("rocblas_function", PROFILE_ROW, largest),
        )

    def test_hipblaslt(self):
        self.check("hipblaslt_trace", [LT, f"/opt/rocm/bin/{LT}"], ("hipblaslt", LT, "2"))

    def test_tensile(self):
        name = "Cijk_Ailk_Bljk_HHS_BH_Bias_HA_S_SAV_UserArgs_MT128x96x64_MI16x16x1"
        lines = [
            f"Running kernel: {name}",
            "Running kernel: Custom_x",
            "Running kernel: mine",
            "Running kernel: mine Cijk_x",
            f"loss 0.5Running kernel: {name}: loss 0.4",
        ]
        self.check("tensile_trace", lines, ("tensile", name, "2"), ("tensile", "Custom_x", "1"))

    def test_miopen(self):
        lines = [
            f"MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver {CONV}",
            f"MIOpen(OpenCL): Command [LogCmdConvolution] ./bin/MIOpenDriver {CONV}",
            f"[1,0]<stderr>:MIOpen: Command [LogCmdConvolution] ./bin/MIOpenDriver {CONV}",
            f"MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {CONV}",
            "MIOpen(HIP): Command [LogCmdRNN] MIOpenDriver.exe rnn -n 256",
            "MIOpen(HIP): Info [Find] Starting find",
        ]
        self.check(
            "miopen_trace",
            lines,
            ("miopen", f"./bin/MIOpenDriver {CONV}", "3"),
            ("miopen", "MIOpenDriver.exe rnn -n 256", "1"),
            ("miopen_find", f"./bin/MIOpenDriver {CONV}", "1"),
        )

    def test_rccl_and_nccl(self):
        lines = [
            f"h:1:1 [0] NCCL INFO AllReduce: {collective()} task 0 globalrank 0",
            f"3: h:278:278 [0] NCCL INFO AllReduce: {collective(op='1e7')}",
            f"[2026-03-12 13:57:49] h:1:2 [3] NCCL INFO ReduceScatter: {collective(type=9)}",
            f"h:1:2 [1] 1558545003174220 NCCL INFO AllReduce: {collective(stream='(nil)')}",
            f"NCCL INFO Send: {collective(more='acc (nil) ', type=6)}",
            "h:1:2 [0] NCCL INFO ## [170260.347287] [07:00] 000001 KL HWID 42300700 nw 4 nRanks 8",
            "h:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
        ]
        rows = [
            (row("AllReduce"), "3"),
            (row("ReduceScatter", type="bfloat16", size=2), "1"),
            (row("Send", type="float16", size=2), "1"),
        ]
        for tool, library in (("rccl_trace", "rccl"), ("nccl_trace", "nccl")):
            self.check(tool, lines, *((library, *each) for each in rows))

    def test_cublas(self):
        other = ["I! cuBLAS (v11.0) function cublasStatus_t cublasGemmEx(...) called:"]
        lines = [
            *CUBLAS,
            *other,
            "i!  Atype: type=cudaDataType_t; val=CUDA_R_16F(2)",
            *CUBLAS,
        ]
        self.check(
            "cublas_trace",
            lines,
            ("cublas", "cublasSgemm_v2 transa=CUBLAS_OP_T(1) m=2", "2"),
            ("cublas", "cublasGemmEx Atype=CUDA_R_16F(2)", "1"),
        )

    def test_cublaslt(self):
        lines = [
            MATMUL.format("cublasLt][3794797]["),
            "[2025-09-10 17:32:51]" + MATMUL.format("cublasLt][133267]["),
            "[cublasLt][1][Api][cublasLtMatmulAlgoGetHeuristic] Adesc=[type=R_8F_E4M3 rows=128]",
            "[cublasLt][1][Error][cublasLtMatmulAlgoGetHeuristic] Failed to query heuristics.",
        ]
        self.check("cublaslt_trace", lines, ("cublaslt", MATMUL_ROW, "2"))

    def test_cudnn(self):
        setter = [
            "I! CuDNN (v7300) function cudnnSetRNNDataDescriptor() called:",
            "i!  x: val=1;",
        ]
        config = (
            "cudnnConvolutionForward algo=CUDNN_CONVOLUTION_FWD_ALGO_GEMM (1) "
            "workSpaceSizeInBytes=1048576"
        )
        self.check("cudnn_trace", [*CUDNN, *setter, *CUDNN], ("cudnn", config, "2"))

    def test_a_library_s_own_log_files_are_read_one_a_process(self):
        """As RCCL does: %h and %p of NCCL_DEBUG_FILE are the library's to fill in."""
        program = (
            "import os, sys\n"
            "for _ in range(2):\n"
            "    if os.fork() == 0:\n"
            "        path = os.environ['NCCL_DEBUG_FILE'].replace('%h', 'host')\n"
            "        os.chdir('/')\n"
            "        with open(path.replace('%p', str(os.getpid())), 'w') as file:\n"
            "            file.write(sys.argv[1] + '\\n' + sys.argv[1])\n"
            "        os._exit(0)\n"
            "    os.wait()\n"
            "print('out')\n"
        )
        line = f"h:1:1 [0] NCCL INFO AllReduce: {collective()}"
        with tempfile.TemporaryDirectory() as folder:
            words = [
                "-q",
                "-o",
                "out",
                "-t",
                "rccl_trace",
                "--",
                sys.executable,
                "-c",
                program,
            ]
            done = subprocess.run(
                [PROF, "run", *words, line],
                cwd=folder,
                capture_output=True,
                timeout=HANG_SECONDS,
                check=True,
            )
            self.assertEqual(done.stdout, b"out\n")
            with open(os.path.join(folder, "out", "library_trace.csv"), encoding="utf-8") as file:
                self.assertIn(f"rccl,{row('AllReduce')},4", file.read())
            with open(os.path.join(folder, "out", "run.live.log"), encoding="utf-8") as file:
                self.assertEqual(file.read().count(line), 4)
            logs = os.listdir(os.path.join(folder, "out", "rccl_trace_output"))
            self.assertEqual(len(logs), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
