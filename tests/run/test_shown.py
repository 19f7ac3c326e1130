"""What ``prof run`` and ``prof table`` show: calls without durations, names of captures and ranks,
repeated runs, processes counted once, and what the end of a path means."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from case import HAS_SANITIZER
from test_processes import BUILD, HANG_SECONDS, LOOKS, PROF, SOURCE, Case

COLLECTIVE = (
    "NCCL INFO Broadcast: opCount 3 sendbuff 0x7f8b recvbuff 0x7f8c count 1000 datatype 7 op 0 "
    "root 0 comm 0xaef8a00 [nranks=8] stream 0xac16b80"
)
# A script that ends when prof has looked at its words.
WORKER = f"""{LOOKS}
import prof
until = 2 * looks() + 20
with prof.scope("w"):
    while looks() < until:
        time.sleep(0.005)
"""
RANKS = "for i in 0 1; do RANK=$i WORLD_SIZE=2 app 0; done"


class Shown(Case):
    def run_well(self, *words, **options):
        done = self.run_prof(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.decode()

    def table(self, *words):
        done = subprocess.run(
            [PROF, "table", *words],
            cwd=self.folder,
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def captures(self, folder="out"):
        return sorted(os.listdir(self.path(folder, "prof_output")))

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def prepare_python(self, script):
        self.write("x.py", script)
        self.env |= {
            "PROF_PYTHON_PROGRAM": sys.executable,
            "PYTHONPATH": os.path.join(SOURCE, "bindings/python"),
            "PROF_LIBRARY": os.path.join(BUILD, "libprof.so"),
        }


class WithoutDurations(Shown):
    def setUp(self):
        super().setUp()
        lines = ["[1,0]<stderr>:./rocblas-bench -f gemm -m 1"] * 2
        lines += [f"[1,1]<stderr>:host:7:9 [0] {COLLECTIVE}"] * 3
        self.write("log", "\n".join(lines) + "\n")
        tools = ("-t", "prof", "-t", "rccl_trace", "-t", "rocblas_trace")
        self.run_well("-q", "-o", "out", *tools, "sh", "-c", "cat log; app 0")

    def test_calls_of_libraries_have_no_columns_of_time(self):
        text = self.table("out/library_trace.prof")
        lines = text.splitlines()
        self.assertEqual(lines[1].split(), ["Name", "Category", "Calls"])
        rows = [line.split() for line in lines[3:5]]  # the most frequent first
        self.assertEqual(rows, [["ncclBroadcast", "rccl", "3"], ["rocblas_gemm", "rocblas", "2"]])
        self.assertIn("No durations are known: 5 calls, 2 groups\n", text)

    def test_in_a_trace_they_take_no_time(self):
        path = self.path("calls.json")
        words = [PROF, "dump", self.path("out/library_trace.prof"), "-o", path]
        subprocess.run(words, timeout=HANG_SECONDS, check=True)
        with open(path, encoding="utf-8") as file:
            calls = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual([call["dur"] for call in calls], [0] * 5)

    def test_a_row_is_the_rank(self):
        text = self.table("--by", "thread,name", "out/library_trace.prof")
        self.assertNotIn("fiber", text)
        self.assertRegex(text, r"(?m)^rocblas_gemm +rank 0 +2$")
        self.assertRegex(text, r"(?m)^ncclBroadcast +rank 1, process 7 +3$")

    def test_beside_others_they_have_dashes(self):
        (own,) = self.captures()
        text = self.table("out/library_trace.prof", f"out/prof_output/{own}")
        row = next(line for line in text.splitlines() if line.startswith("rocblas_gemm"))
        self.assertEqual(row.split(), ["rocblas_gemm", "rocblas", *["--"] * 8, "2"])
        self.assertRegex(text, r"(?m)^work +scope +[\d.]+%")
        self.assertIn("\n--: the durations of these calls are not known\n", text)


class Ranks(Shown):
    def test_the_name_of_a_capture_has_the_rank(self):
        self.run_well("-q", "-o", "out", "--", "sh", "-c", RANKS)
        names = self.captures()
        self.assertEqual(
            [re.sub(r"\d+\.prof", "PID.prof", name) for name in names],
            [
                "app.rank-0.PID.prof",
                "app.rank-1.PID.prof",
            ],
        )
        text = self.table("--by", "process,name", *(f"out/prof_output/{n}" for n in names))
        for rank in "01":
            self.assertRegex(text, rf"(?m)^work +rank {rank}, app \(\d+\) ")
        self.assertIn("\n2 processes, ranks 0 to 1: 2 recorded; no loss\n", text)

    def test_ranks_of_an_unknown_number(self):
        """RANK without WORLD_SIZE: rank 0 is one of several, too."""
        self.run_well("-q", "-o", "out", "--", "sh", "-c", RANKS.replace(" WORLD_SIZE=2", ""))
        names = self.captures()
        self.assertEqual([name.split(".")[1] for name in names], ["rank-0", "rank-1"])
        paths = [f"out/prof_output/{name}" for name in names]
        text = self.table("--by", "process,name", *paths)
        for rank in "01":
            self.assertRegex(text, rf"(?m)^work +rank {rank}, app \(\d+\) ")
            done = subprocess.run(
                [PROF, "info", paths[int(rank)]], cwd=self.folder, capture_output=True, check=True
            )
            self.assertIn(f" {rank} of an unknown number\n", done.stdout.decode())
            out = f"{rank}.json"
            words = [PROF, "dump", paths[int(rank)], "-o", out]
            subprocess.run(words, cwd=self.folder, capture_output=True, check=True)
            with open(self.path(out), encoding="utf-8") as file:
                about = json.load(file)["distributedInfo"]
            self.assertEqual((about["rank"], about["world_size"]), (int(rank), int(rank) + 1))

    def test_under_a_launcher_each_run_names_its_own(self):
        self.run_well(
            "-q", "-o", "out", "app", "0", env={**self.env, "RANK": "1", "WORLD_SIZE": "2"}
        )
        (name,) = self.captures("out/rank-1")
        self.assertRegex(name, r"^app\.rank-1\.\d+\.prof$")

    def test_a_file_of_each_rank(self):
        for pattern, names in (
            ("t.json", ["t-0.json", "t-1.json"]),
            ("%r.x.prof", ["0.x.prof", "1.x.prof"]),
        ):
            self.run_well("-q", "-o", pattern, "--", "sh", "-c", RANKS)
            found = [name for name in os.listdir(self.folder) if name.endswith(pattern[-5:])]
            self.assertEqual(sorted(found), names)

    def test_one_rank_alone_is_not_shown(self):
        self.run_well(
            "-q", "-o", "out", "app", "0", env={**self.env, "RANK": "0", "WORLD_SIZE": "1"}
        )
        (name,) = self.captures("out/rank-0")
        text = self.table("--by", "process", f"out/rank-0/prof_output/{name}")
        self.assertRegex(text, r"(?m)^app \(\d+\) ")


class Names(Shown):
    def have_valgrind(self):
        if HAS_SANITIZER or not shutil.which("valgrind"):
            self.skipTest("no valgrind, or a sanitizer")

    def test_under_valgrind_the_program_names_its_capture(self):
        self.have_valgrind()
        text = self.run_well("-o", "out", "-t", "prof", "-t", "valgrind", "--", "app", "0")
        (name,) = self.captures()
        self.assertRegex(name, r"^app\.\d+\.prof$")
        self.assertEqual(self.groups(), {"app": (1, True, None)})
        self.assertNotIn("memcheck", text)

    def test_under_valgrind_a_program_without_prof_has_its_own_name(self):
        self.have_valgrind()
        words = ("-o", "out", "-t", "prof", "-t", "valgrind", "--", "reader")
        done = self.run_prof(*words, stdin=subprocess.DEVNULL)
        self.assertNotIn(b"memcheck", done.stderr)
        self.assertNotIn("memcheck", "".join(self.groups()))

    def test_each_run_of_a_script_in_python_has_its_pid(self):
        """A folder may have marks of a pattern in its name."""
        self.prepare_python("print(1)\n")
        for folder, told in (("out", "out"), ("a%p", "a%%p")):
            text = self.run_well("-o", told, "x.py")
            (name,) = self.captures(folder)
            self.assertRegex(name, r"^x\.py\.\d+\.prof$")
            self.assertIn(f"{folder}/prof_output/{name}", text)

    def test_a_name_of_255_bytes_is_recorded(self):
        self.prepare_python("print(1)\n")
        app, script = "a" * 255, "\u20ac" * 84 + ".py"
        shutil.copy(os.path.join(self.programs, "app"), self.path(app))
        os.rename(self.path("x.py"), self.path(script))
        for folder, words in (
            ("app", (f"./{app}", "0")),
            ("script", (script,)),
            ("functions", ("--python", script)),
        ):
            text = self.run_well("-o", folder, *words)
            self.assertNotIn("File name too long", text)
            (name,) = self.captures(folder)
            self.assertRegex(name, r"^(a{63}|\u20ac{42})\.\d+\.prof$")
        text = self.run_well(script)  # without -o
        self.assertNotIn("File name too long", text)

    def test_a_rank_in_python_too(self):
        self.prepare_python("print(1)\n")
        rank = {"RANK": "1", "WORLD_SIZE": "2"}
        self.run_well("-q", "-o", "out", "x.py", env={**self.env, **rank})
        (name,) = self.captures("out/rank-1")
        self.assertRegex(name, r"^x\.py\.rank-1\.\d+\.prof$")

    def names_without_pids(self):
        return [re.sub(r"\d+\.prof$", "PID.prof", name) for name in self.captures()]

    def test_scripts_in_python_name_their_captures(self):
        """Below a shell or a launcher, as torchrun: not the interpreter, and not the launcher."""
        self.prepare_python(
            "import os, subprocess, sys\n"
            "def start(rank):\n"
            "    env = {**os.environ, 'RANK': rank, 'WORLD_SIZE': '2'}\n"
            "    return subprocess.Popen([sys.executable, '-u', './w.py', 'word'], env=env)\n"
            "sys.exit(any([p.wait() for p in [start(rank) for rank in '01']]))\n"
        )
        self.write("w.py", WORKER)
        self.write("named.py", WORKER + "prof.set_process_name('mine')\n")
        text = self.run_well("-o", "out", "x.py")
        ranks = ["w.py.rank-0.PID.prof", "w.py.rank-1.PID.prof"]
        self.assertEqual(self.names_without_pids(), [*ranks, "x.py.PID.prof"])
        (folder,) = re.findall(r"; (?:python -m )?prof table (\S+)/\*\.prof shows all\n", text)
        self.assertTrue(os.path.samefile(folder, self.path("out/prof_output")))
        shutil.rmtree(self.path("out"))
        program = '"$0" x.py; "$0" -m w a; "$0" named.py; "$0" -c "$1"'
        words = ("sh", "-c", program, sys.executable, WORKER)
        self.run_well("-q", "-o", "out", "--", *words)
        (by_text,) = (name for name in self.names_without_pids() if name.startswith("python"))
        self.assertEqual(
            self.names_without_pids(),
            sorted([*ranks, "w.PID.prof", "mine.PID.prof", by_text]),
        )

    def test_what_a_script_in_python_starts_has_its_own_name(self):
        """Programs, texts and modules; workers of multiprocessing have that of the script."""
        self.write("w.py", WORKER)
        self.write("text", WORKER)
        self.prepare_python(
            "import multiprocessing, subprocess, sys\n"
            "def work():\n"
            "    import w\n"
            "if __name__ == '__main__':\n"
            "    subprocess.run(['app', '0'], check=True)\n"
            "    words = ['-c', open('text').read()], ['-m', 'w']\n"
            "    for more in words:\n"
            "        subprocess.run([sys.executable, *more], check=True)\n"
            "    for way in 'spawn', 'fork', 'forkserver':\n"
            "        worker = multiprocessing.get_context(way).Process(target=work)\n"
            "        worker.start()\n"
            "        worker.join()\n"
        )
        self.run_well("-q", "-o", "out", "x.py")
        names = ["app.PID.prof", "python-c.PID.prof", "w.PID.prof", *["x.py.PID.prof"] * 4]
        self.assertEqual(self.names_without_pids(), names)
        with open(self.path("out", "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        processes = {c["process"] for c in summary["captures"]}
        self.assertEqual(
            {p["name"] for p in summary["processes"] if p["is_recorded"]},
            {"app", "python-c", "w", "x.py"},
        )
        self.assertLessEqual({"app", "python-c", "w"}, processes)

    def test_ranks_that_a_script_in_python_starts(self):
        self.prepare_python(
            "import os, subprocess\n"
            "for rank in '01':\n"
            "    env = {**os.environ, 'RANK': rank, 'WORLD_SIZE': '2'}\n"
            "    subprocess.run(['app', '0'], env=env, check=True)\n"
        )
        self.run_well("-q", "-o", "out", "x.py")
        names = [re.sub(r"\d+\.prof$", "PID.prof", name) for name in self.captures()]
        self.assertEqual(names, ["app.rank-0.PID.prof", "app.rank-1.PID.prof", "x.py.PID.prof"])
        self.run_well("-q", "-o", "t.prof", "x.py")
        found = sorted(name for name in os.listdir(self.folder) if name.endswith(".prof"))
        self.assertEqual(found, ["t-0.prof", "t-1.prof", "t.prof"])


class Stopped(Shown):
    def test_a_scope_that_is_open_when_the_program_stops_is_recorded_by_its_end(self):
        text = self.run_well("-o", "out", "--", "app", "stop")
        self.assertIn("no loss", text)
        self.assertNotIn("late", text)
        (name,) = self.captures()
        table = self.table(self.path("out", "prof_output", name))
        names = [line.split("  ")[0] for line in table.splitlines()]
        for scope in ("across", "second"):
            self.assertIn(scope, names)
        self.assertNotIn("while stopped", names)
        with open(self.path("own.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual([e.get("name") for e in events].count("across"), 1)


class Repeated(Shown):
    def test_one_table_of_the_captures_of_all_runs(self):
        temporary = self.path("tmp")
        os.mkdir(temporary)
        self.env["TMPDIR"] = temporary
        for words in ((), ("-o", "out")):
            text = self.run_well("-n", "3", *words, "app", "0")
            self.assertIn("prof run: 3 runs together:\n", text)
            row = next(line for line in text.splitlines() if line.startswith("work "))
            self.assertIn(" 3 ", row)
            self.assertEqual(text.count("\nwork "), 1)
            self.assertRegex(text, r"\d s in the median, .* at most, spread [\d.]+ %\n")
            self.assertEqual(os.listdir(temporary), [])

    def test_the_table_has_captures_that_the_folder_did_not_take(self):
        small, other = self.path("small"), self.path("other")
        script = 'mount -t tmpfs -o size=64k none small || exit 77; "$@"'
        mounted = ("unshare", "-rm", "sh", "-c", script, "sh", PROF, "run")
        os.mkdir(small)
        os.mkdir(other)
        for words, kept_count in ((("-n", "3"), 0), (("-n", "3", "-o", "small/out"), 3)):
            done = subprocess.run(
                [*mounted, *words, "app", "0"],
                cwd=self.folder,
                env={**self.env, "PROF_CAPTURE_DIR": other, "TMPDIR": small},
                capture_output=True,
                timeout=HANG_SECONDS,
                check=False,
            )
            text = done.stderr.decode()
            if done.returncode in (1, 77):
                self.skipTest(f"no mount in a namespace: {text.strip()}")
            self.assertEqual(done.returncode, 0, text)
            self.assertIn("prof run: 3 runs together:\n", text)
            row = next(line for line in text.splitlines() if line.startswith("work "))
            self.assertIn(" 3 ", row)
            self.assertNotIn("not in the table", text)
            self.assertEqual(len(os.listdir(other)), kept_count)

    def test_captures_that_are_not_in_the_table_are_told(self):
        script = 'app 0; echo junk > "$(dirname "$PROF_OUTPUT")/junk.prof"'
        for words in ((), ("-o", "out")):
            text = self.run_well("-n", "2", *words, "sh", "-c", script)
            self.assertRegex(
                text,
                r"prof run: 2 captures are not in the table, "
                r"the first of them .*junk\.prof",
            )
            self.assertIn("prof run: 2 runs together:\n", text)

    def test_a_later_run_that_cannot_start_leaves_no_folder(self):
        temporary = self.path("tmp")
        os.mkdir(temporary)
        self.env["TMPDIR"] = temporary
        shutil.copy(os.path.join(self.programs, "app"), self.path("own"))
        script = "./own 0; rm sh"
        os.symlink(shutil.which("sh"), self.path("sh"))
        done = self.run_prof("-n", "2", "./sh", "-c", script)
        self.assertEqual(done.returncode, 127, done.stderr)
        self.assertEqual(os.listdir(temporary), [])

    def test_without_captures_the_end_says_why(self):
        text = self.run_well("-n", "2", "true")
        self.assertEqual(text.count("nothing was recorded"), 1)

    def test_a_path_is_quoted_where_a_shell_needs_it(self):
        for folder, shown in (
            ("out", "out/run-1 out/run-2"),
            ("a b", "'a b/run-1' 'a b/run-2'"),
        ):
            text = self.run_well("-n", "2", "-o", folder, "app", "0")
            self.assertIn(f"prof diff {shown}\n", text)


class Processes(Shown):
    def test_a_program_that_executes_another_is_one_process(self):
        text = self.run_well("sh", "-c", "app again")
        self.assertRegex(text, r"(?m)^1 process: 2 recorded; no loss$")
        self.run_well("-q", "--memory", "-o", "out", "sh", "-c", "exec app 0")
        self.assertEqual(self.groups(), {"app": (1, True, None)})
        text = self.run_well("sh", "-c", "app 0; app 0")
        self.assertRegex(text, r"(?m)^2 processes: 2 recorded; no loss$")


class Paths(Shown):
    def test_a_file_of_another_kind_is_an_error(self):
        for name in ("t.txt", "%p.tsv", "out/t.log", "t.JSON", "t.json.zip", "t.parquet"):
            done = self.run_prof("-o", name, "app", "0")
            error = done.stderr.decode()
            self.assertEqual(done.returncode, 125, name)
            said = f"-o {name}: prof run writes no format with this ending. The endings are .json,"
            self.assertIn(said, error)
            self.assertIn(f"a folder of that name is '{name}/'", error)
            self.assertEqual(len(error.splitlines()), 1, error)
            self.assertEqual(os.listdir(self.folder), [])

    def test_the_ending_selects_the_format(self):
        os.mkdir(self.path("all"))
        for ending, begin in (
            (".prof", b"prof"),
            (".json", b'{\n"schemaVersion"'),
            (".pftrace", b"\x0a"),
            (".csv", b"kind,"),
            (".folded", b"app "),
            (".speedscope.json", b'{"$schema"'),
            (".pb", b"\x0a"),
        ):
            for name, read in ((ending, bytes), (f"{ending}.gz", gzip.decompress)):
                if name == ".prof.gz":
                    continue
                self.run_well("-q", "-o", f"all/t{name}", "app", "0")
                with open(self.path(f"all/t{name}"), "rb") as file:
                    self.assertEqual(read(file.read())[: len(begin)], begin, name)
        self.assertEqual(len(os.listdir(self.path("all"))), 13)

    def test_a_folder_may_have_a_dot_or_a_percent_sign(self):
        os.mkdir(self.path("is.txt"))
        for told, name in (
            ("a.b", "a.b"),
            ("t.txt/", "t.txt"),
            ("t.json//", "t.json"),
            ("is.txt", "is.txt"),
            (".log", ".log"),
            ("a%%p", "a%p"),
        ):
            text = self.run_well("-o", told, "app", "0")
            self.assertIn(f"\n  {name}/prof_output/\n", text)
            self.assertEqual(len(self.captures(name)), 1)

    def test_no_path_begins_with_the_present_folder(self):
        self.write("uftrace", '#!/bin/sh\nmkdir -p "$4"; touch "$4/x"; shift 4; "$@"\n', 0o755)
        env = {**self.env, "PATH": f"{self.folder}:{self.env['PATH']}"}
        text = self.run_well("-t", "uftrace", "-t", "rccl_trace", "true", env=env)
        self.assertIn("\n  library_trace.csv\n", text)
        self.assertIn("\n  uftrace_output/\n", text)
        self.assertNotIn("./", text)


class DryRun(Shown):
    def files(self):
        return sorted(
            (folder, name, os.stat(os.path.join(folder, name)).st_mtime_ns)
            for folder, folders, names in os.walk(self.folder)
            for name in folders + names
        )

    def test_it_writes_nothing(self):
        """Folders of another run are there already."""
        self.write("rocprofv3", "#!/bin/sh\n", 0o755)
        os.mkdir(self.path("rocprof_output"))
        env = {**self.env, "PATH": f"{self.folder}:{self.env['PATH']}"}
        before = self.files()
        for tool in ("rocprofv3_compute", "rocprofv3_full", "rccl_trace", "prof", "strace"):
            for words in ((), ("-o", "new"), ("-o", "."), ("-n", "3")):
                done = self.run_prof("--dry-run", *words, "-t", tool, "--", "true", env=env)
                self.assertIn(b"true\n", done.stdout, (tool, done.stderr))
                self.assertEqual(self.files(), before, tool)

    def planned(self, *words):
        done = self.run_prof("--dry-run", *words, "--", "env", env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def folder_of_captures(self, *words):
        """In the dry run, and in the run that follows it."""
        planned = re.search(r"PROF_OUTPUT=(\S+)/env", self.planned(*words))[1]
        done = self.run_prof("-q", *words, "--", "env", env=self.env)
        return planned, re.findall(r"(?m)^PROF_OUTPUT=(.+)/env", done.stdout.decode())[0]

    def test_it_has_the_names_of_the_run_that_follows(self):
        os.makedirs(self.path("new", "prof_output"))
        for words, name in (((), "prof_output.2"), (("-n", "2"), "run-1/prof_output")):
            planned, ran = self.folder_of_captures("-o", "new", *words)
            self.assertEqual(planned, ran)
            self.assertTrue(ran.endswith(f"/new/{name}"), ran)
        planned, ran = self.folder_of_captures("-o", "x.json")
        self.assertEqual(planned[:-6], ran[:-6])
        self.assertTrue(planned.endswith("/.prof-run-XXXXXX"), planned)
        self.write("perf", "#!/bin/sh\n", 0o755)
        self.env = {**self.env, "PATH": f"{self.folder}:{self.env['PATH']}"}
        os.makedirs(self.path("perf_output"))
        os.makedirs(self.path("other", "run-1"))
        self.assertIn(" perf_output.2/perf.data ", self.planned("-t", "perf"))
        words = ("-t", "perf", "-o", "other", "-n", "3")
        self.assertIn(" other/run-1.2/perf_output/perf.data ", self.planned(*words))


class List(Shown):
    def test_a_tool_is_one_row_of_80_columns(self):
        self.env["COLUMNS"] = "80"
        done = self.run_prof("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.decode().splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        rows = lines[1 : lines.index("") if "" in lines else None]
        for row in rows:
            self.assertRegex(row, r"^\w+ +(yes|no) +\S")

    def test_no_reason_is_there_twice(self):
        self.env["PROF_SYSFS_ROOT"] = self.folder
        done = self.run_prof("--list")
        lines = done.stdout.decode().splitlines()
        reasons = [line for line in lines[lines.index("") :] if line.startswith("      ")]
        self.assertEqual(len(reasons), len(set(reasons)), reasons)


class Uftrace(Shown):
    def run_stand_in(self, *programs):
        lines = "".join(
            f'SESS timestamp=1.2 pid=3 sid=4 exename="{program}"\\n' for program in programs
        )
        text = f'mkdir -p "$4"; printf \'{lines}\' > "$4/task.txt"; shift 4; exec "$@"'
        self.write("uftrace", f"#!/bin/sh\n{text}\n", 0o755)
        env = {**self.env, "PATH": f"{self.folder}:{self.env['PATH']}"}
        return self.run_well("-t", "uftrace", "true", env=env)

    def test_programs_that_are_not_built_for_it_are_named_in_one_line(self):
        source = "int main(void) { return 0; }"
        self.compile("plain", source)
        self.compile("built", source, "-pg")
        self.compile("other", source, "-finstrument-functions")
        plain, built, other = (os.path.join(self.programs, n) for n in ("plain", "built", "other"))
        hint = "was not built with -pg or -finstrument-functions"
        text = self.run_stand_in(PROF, plain)
        self.assertEqual(text.count(f"uftrace has few calls or none: plain {hint}"), 1, text)
        for programs in ((PROF, built), (PROF, plain, built), (PROF, other), (PROF,), ()):
            self.assertNotIn("not built with", self.run_stand_in(*programs))


if __name__ == "__main__":
    unittest.main(verbosity=2)
