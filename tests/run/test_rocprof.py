"""rocprof, rocprofv3 and madengine's configuration under ``prof run``. No AMD device is here: the
programs are stand-ins that take the words and leave the files that the real ones document."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from test_processes import DRIVER

BUILD = os.environ.get("PROF_TEST_BUILD_DIR", "build/dev")
PROF = os.path.join(os.path.abspath(BUILD), "prof")
HANG_SECONDS = float(os.environ.get("PROF_TEST_HANG_SECONDS", "300"))

# Writes its words, a database in a folder, tables, and a line of noise; then runs the program.
ROCPROFV3 = r"""#!/bin/bash
echo "rocprofv3 $*"
echo "sql text value for value is empty. Using NULL instead" >&2
echo "a warning" >&2
folder=.
while [ "$1" != -- ]; do
  if [ "$1" = -d ]; then folder=$2; shift; fi
  shift
done
shift
mkdir -p "$folder/1e4d92661463"
echo db > "$folder/1e4d92661463/77_results.db"
printf '"Kind","Counter_Name","Counter_Value"\n"K","SQ_INSTS_VALU",100\n"K","SQ_INSTS_SALU",7\n' \
  > "$folder/1e4d92661463/77_counter_collection.csv"
printf '"Name","SQ_INSTS_VALU"\n"a, b",9007199254740993\n' > "$folder/77_domain_stats.csv"
"$@"
"""
ROCPROF = r"""#!/bin/bash
echo "rocprof $*"
echo "WARNING: We are phasing out development" >&2
echo Index > results.csv
while [ "$1" != -- ]; do shift; done
shift
"$@"
"""


# Writes a database into a folder that all share, before the program runs.
SHARED = r"""#!/bin/bash
while [ "$1" != -- ]; do shift; done
shift
mkdir -p host
echo "${@: -1}" > host/$$_results.db
"$@"
"""

# Leaves tables in a folder that all share, when the program has run. The program b has one more.
TABLES = r"""#!/bin/bash
while [ "$1" != -- ]; do shift; done
shift
name=${@: -1}
"$@"
mkdir -p host
echo "$name" > host/$$_kernel_stats.csv
if [ "$name" = b ]; then echo "$name" > host/$$_kernel_trace.csv; fi
"""


class Rocprof(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def read(self, *names):
        with open(os.path.join(self.folder, *names), encoding="utf-8") as file:
            return file.read()

    def start(self, *words):
        process = subprocess.Popen(
            [PROF, "run", "-q", *words],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_prof(self, *words):
        return subprocess.run(
            [PROF, "run", "-q", *words],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"},
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )

    def test_rocprofv3_goes_first_and_the_program_keeps_its_words(self):
        self.write("bin/rocprof", ROCPROF)
        self.write("bin/rocprofv3", ROCPROFV3)
        done = self.run_prof("-t", "rocprof", "--", "sh", "-c", 'echo "$#"; exit 3', "x", "--", "")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(
            done.stdout.decode().splitlines(),
            ['rocprofv3 --runtime-trace -- sh -c echo "$#"; exit 3 x -- ', "2"],
        )
        self.assertEqual(done.stderr.decode(), "a warning\n")
        self.assertEqual(self.read("rocprof_output/1e4d92661463/77_results.db"), "db\n")

    def start_two(self, tool, program):
        """Runs that are there at once. Each ends when go-NAME is there, or the folder is not."""
        program += "; touch seen-$0; while [ -e seen-$0 ] && ! [ -e go-$0 ]; do sleep 0.01; done"
        runs = []
        for name in "ab":
            runs.append(self.start("-t", tool, "--", "sh", "-c", program, name))
            while not os.path.exists(os.path.join(self.folder, f"seen-{name}")):
                self.assertIsNone(runs[-1].poll())
                time.sleep(0.01)
        return runs

    def end(self, run, name):
        self.write(f"go-{name}", "")
        _, errors = run.communicate(timeout=HANG_SECONDS)
        self.assertEqual(run.returncode, 0, errors)
        return errors.decode()

    def test_two_runs_in_one_directory_have_their_own_files(self):
        self.write("bin/rocprofv3", SHARED)
        self.write("driver.py", DRIVER)
        runs = self.start_two("rocprof", f"{sys.executable} driver.py '[]'")
        for run, name, folder in zip(runs, "ab", ("rocprof_output", "rocprof_output.2")):
            self.end(run, name)
            files = os.listdir(os.path.join(self.folder, folder, "host"))
            self.assertEqual(len(files), 1, (name, files))
            self.assertEqual(self.read(folder, "host", files[0]), f"{name}\n")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "host")))

    def test_a_run_does_not_take_the_folder_of_one_that_ends_before_it(self):
        self.write("bin/rocprofv3", TABLES)
        self.write("driver.py", DRIVER)
        first, second = self.start_two("rocprof", f"{sys.executable} driver.py '[]'")
        self.end(second, "b")
        self.end(first, "a")
        for folder, wanted in (("rocprof_output", "a"), ("rocprof_output.2", "b")):
            found = list(os.walk(os.path.join(self.folder, folder)))
            self.assertEqual([names for _, names, _ in found], [["host"], []])
            for place, _, files in found:
                self.assertGreater(len(files), 0)
                for name in files:
                    self.assertEqual(self.read(place, name), f"{wanted}\n", name)

    def test_folders_of_other_runs_are_not_looked_at(self):
        program = (
            "for d in other perf_output perf_output.3; do mkdir $d; touch $d/library_trace.csv; "
            "done; touch other/run.live.log"
        )
        self.write("bin/rocprofv3", '#!/bin/sh\nshift 2\n"$@"\n')
        done = self.run_prof("-t", "rocprof", "-o", "out", "--", "sh", "-c", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out/rocprof_output")))

    def test_a_database_of_two_runs_is_not_taken_from_the_one_that_runs(self):
        self.write("bin/runTracer.sh", '#!/bin/bash\nshift 2; echo x >> trace.rpd; "$@"\n')
        first, second = self.start_two("rpd", ":")
        self.assertIn("'./trace.rpd' stays, since another prof run", self.end(first, "a"))
        self.assertEqual(self.read("trace.rpd"), "x\nx\n")
        self.assertNotIn("stays, since another", self.end(second, "b"))

    def test_rocprof_where_there_is_no_rocprofv3(self):
        self.write("bin/rocprof", ROCPROF)
        done = self.run_prof("-t", "rocprof_hip_only", "--", "echo", "ran")
        self.assertEqual(done.stdout, b"rocprof --hip-trace -- echo ran\nran\n")
        self.assertEqual(done.stderr, b"")
        self.assertEqual(self.read("rocprof_output/results.csv"), "Index\n")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "results.csv")))

    def test_files_of_each_format_are_collected(self):
        for names in (
            ["77_results.json"],
            ["77_results.pftrace", "77_agent_info.csv"],
            ["77_counter_collection.csv"],
            ["77_kernel_stats.csv", "77_results.db"],
        ):
            with self.subTest(names):
                files = " ".join(f"host/{name}" for name in names)
                self.write("bin/rocprofv3", f"#!/bin/sh\nmkdir host; touch {files}\n")
                done = self.run_prof("-t", "rocprof", "-o", "out", "--", "true")
                self.assertEqual(done.returncode, 0, done.stderr)
                found = os.listdir(os.path.join(self.folder, "out/rocprof_output/host"))
                self.assertEqual(sorted(found), sorted(names))
                self.assertFalse(os.path.exists(os.path.join(self.folder, "host")))
                shutil.rmtree(os.path.join(self.folder, "out"))

    def test_tables_in_a_folder_of_the_program_are_copied(self):
        program = "mkdir mine; cd mine; touch 7_kernel_stats.csv model.bin 5_results.json"
        self.write("bin/rocprofv3", '#!/bin/sh\nshift 2\n"$@"\n')
        done = self.run_prof("-t", "rocprof", "-o", "out", "--", "sh", "-c", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "mine"))), 3)
        found = os.listdir(os.path.join(self.folder, "out/rocprof_output/mine"))
        self.assertEqual(found, ["7_kernel_stats.csv"])

    def test_a_tool_that_leaves_no_file_is_told(self):
        self.write("bin/rocprofv3", '#!/bin/sh\nshift 2\n"$@"\n')
        done = self.run_prof("-t", "rocprof", "-o", "out", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        hints = json.loads(self.read("out/summary.json"))["hints"]
        self.assertEqual(len(hints), 1, hints)
        self.assertIn("rocprof left no file", hints[0])
        self.write("bin/nsys", '#!/bin/sh\nshift 5\n"$@"\n')
        done = self.run_prof("-t", "nsys", "-o", "out", "--", "true")
        hints = json.loads(self.read("out/summary.2.json"))["hints"]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nsys left no file", hints[0])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out/rocprof_output")))

    def test_what_was_there_before_stays(self):
        self.write("bin/rocprof", ROCPROF)
        self.write("results.txt", "mine\n")
        self.run_prof("-t", "rocprof", "--", "true")
        self.assertEqual(self.read("results.txt"), "mine\n")

    def test_neither_is_there(self):
        done = self.run_prof("-t", "rocprof", "--", "echo", "ran")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(done.stdout, b"")
        self.assertIn("neither rocprofv3 nor rocprof", done.stderr.decode())

    def test_tables_have_the_names_that_others_look_for(self):
        self.write("bin/rocprofv3", ROCPROFV3)
        done = self.run_prof("-t", "rocprofv3_compute", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("-i rocprof_output/compute.txt", done.stdout.decode())
        self.assertIn("pmc: SQ_INSTS_VALU\n", self.read("rocprof_output/compute.txt"))
        self.assertIn("VALU", self.read("rocprof_output/rocprofv3_output_counter_collection.csv"))
        histogram = json.loads(self.read("rocprof_output/instruction_histogram.json"))
        self.assertEqual(histogram, {"VALU": 9007199254740993 + 100, "SALU": 7})

    def test_sums_of_counters_do_not_wrap(self):
        for counters in (("9223372036854775800", "9007199254740993"), ("7", "9e30")):
            text = ROCPROFV3.replace('VALU",100', f'VALU",{counters[0]}')
            self.write("bin/rocprofv3", text.replace("9007199254740993", counters[1]))
            self.run_prof("-o", counters[0], "-t", "rocprofv3_compute", "--", "true")
            histogram = self.read(counters[0], "rocprof_output", "instruction_histogram.json")
            self.assertEqual(json.loads(histogram), {"VALU": 2**63 - 1, "SALU": 7})

    def test_a_cmd_of_the_guide_replaces_the_default(self):
        self.write(
            "bin/rocprof",
            ROCPROF.replace('while [ "$1" != -- ]; do shift; done\nshift\n', "shift 2\n"),
        )
        context = '{"tools": [{"name": "rocprof", "cmd": "rocprof --timestamp on "}]}'
        done = self.run_prof("--additional-context", context, "--", "echo", "ran")
        self.assertEqual(done.stdout, b"rocprof --timestamp on echo ran\nran\n")
        self.assertEqual(self.read("rocprof_output/results.csv"), "Index\n")

    def test_two_that_trace_amd_s_devices_are_an_error(self):
        for name in ("rocprofv3", "rtl"):
            self.write(f"bin/{name}", ROCPROFV3)
        for pair in (
            ("rocprof", "rocprofv3"),
            ("rocprofv3_full", "rocprof_sys"),
            ("rocm_trace_lite", "rocprof"),
        ):
            done = self.run_prof("-t", pair[0], "-t", pair[1], "--", "echo", "ran")
            self.assertEqual((done.returncode, done.stdout), (125, b""), pair)
            self.assertIn("both need AMD's tracing", done.stderr.decode())


class Madengine(Rocprof):
    """A tools.json as madengine's, whose scripts are not there."""

    TOOLS = {
        "tools": {
            "rocprof": {
                "pre_scripts": [],
                "cmd": "bash ../scripts/common/tools/rocprof_wrapper.sh --runtime-trace --",
                "env_vars": {},
                "post_scripts": [
                    {"path": "scripts/common/post_scripts/trace.sh", "args": "rocprof"}
                ],
            },
            "rocprofv3_compute": {
                "cmd": "bash ../scripts/common/tools/rocprof_wrapper.sh -i "
                "../scripts/common/tools/counters/compute_bound.txt -d ./rocprof_output --"
            },
            "miopen_trace": {
                "cmd": "python3 ../scripts/common/tools/get_library_trace.py",
                "env_vars": {"MIOPEN_TRACE": "1"},
            },
            "mine": {
                "cmd": "env TAG=1 python3 ./get_library_trace.py",
                "env_vars": {"TRACE_MODE": "rocblas_trace, tensile_trace"},
            },
        }
    }

    def setUp(self):
        super().setUp()
        self.write("tools.json", json.dumps(self.TOOLS))

    def run_prof(self, *words):
        return super().run_prof("--tools-config", "tools.json", *words)

    def test_library_traces_are_read_by_prof(self):
        line = "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 5"
        done = self.run_prof(
            *("-t", "miopen_trace", "--", "sh", "-c"),
            f'echo "$MIOPEN_ENABLE_LOGGING_CMD"; echo "{line}"',
        )
        self.assertEqual(done.stdout.decode().splitlines(), ["1", line])
        self.assertIn("miopen,./bin/MIOpenDriver conv -n 5,1", self.read("library_trace.csv"))

    def test_log_files_of_libraries_are_in_the_tool_s_folder(self):
        """RCCL's and hipBLASLt's, which print to files of their own under prof."""
        self.TOOLS["tools"]["rccl_trace"] = {
            "cmd": "python3 ../scripts/common/tools/get_library_trace.py",
            "env_vars": {"RCCL_TRACE": "1", "HIPBLASLT_TRACE": "1"},
        }
        self.write("tools.json", json.dumps(self.TOOLS))
        script = 'echo "hipblaslt-bench -m 3" > "${HIPBLASLT_LOG_FILE%.%i.log}.77.log"; env'
        done = self.run_prof("-t", "rccl_trace", "--", "sh", "-c", script)
        self.assertEqual(done.stderr, b"")
        folder = os.path.join(os.path.realpath(self.folder), "rccl_trace_output")
        for variable, name in (
            ("NCCL_DEBUG_FILE", "rccl.%h.%p.log"),
            ("HIPBLASLT_LOG_FILE", "hipblaslt.%i.log"),
        ):
            self.assertIn(f"{variable}={folder}/{name}\n", done.stdout.decode())
        self.assertIn("hipblaslt,hipblaslt-bench -m 3,1", self.read("library_trace.csv"))

    def test_a_variable_that_sends_lines_elsewhere_is_told(self):
        context = {"tools": [{"name": "rocblas_trace"}]}
        context["tools"][0]["env_vars"] = {"ROCBLAS_LOG_BENCH_PATH": "/tmp/x"}
        done = self.run_prof("--additional-context", json.dumps(context), "--", "echo", "ran")
        self.assertEqual(done.stdout, b"ran\n")
        self.assertIn("ROCBLAS_LOG_BENCH_PATH is '/tmp/x'", done.stderr.decode())

    def test_trace_mode_lists_traces_and_the_rest_of_cmd_stays(self):
        done = self.run_prof(
            "-t", "mine", "--", "sh", "-c", 'echo "$TAG $ROCBLAS_LAYER $TENSILE_DB"'
        )
        self.assertEqual(done.stdout, b"1 6 0x8000\n")

    def test_a_file_that_is_there_is_used(self):
        self.write("get_library_trace.py", "import os, sys; print('theirs', flush=True)\n")
        done = self.run_prof("-t", "mine", "--", "echo", "ran")
        self.assertEqual(done.stdout, b"theirs\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
