"""What ``prof run`` leaves: files, folders and summaries, also of runs at once and on a full disk.

Run by CTest: PROF_TEST_BUILD_DIR has the command. Every wait has the hang guard alone as its bound.
"""

import csv
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

from case import HANG_SECONDS, PROF, Folder


class Case(Folder):
    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()

    def summary(self, name="out/summary.json"):
        return json.loads(self.read(name))

    def wait_until(self, is_so):
        end = time.monotonic() + HANG_SECONDS
        while not is_so():
            self.assertLess(time.monotonic(), end, "it hangs")
            time.sleep(0.01)


class AtOnce(Case):
    """Runs that begin at once in one folder share no file and no folder."""

    COUNT = 20
    PROGRAM = 'echo "word $0" > "${NCCL_DEBUG_FILE%/*}/own.txt"; echo "./rocblas-bench -m $0"'

    def run_at_once(self, *words):
        runs = []
        for i in range(self.COUNT):
            workload = ["sh", "-c", self.PROGRAM, str(i)]
            runs.append(
                subprocess.Popen(
                    [PROF, "run", *words, "--", *workload],
                    cwd=self.folder,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
            )
        for run in runs:
            errors = run.communicate(timeout=HANG_SECONDS)[1]
            self.assertEqual((run.returncode, errors), (0, b""))

    def check_folders(self, pattern):
        folders = glob.glob(self.path(pattern))
        words = sorted(self.read(os.path.join(folder, "own.txt")) for folder in folders)
        self.assertEqual(words, sorted(f"word {i}\n" for i in range(self.COUNT)))

    def check_traces(self, pattern):
        configs = []
        for path in glob.glob(self.path(pattern)):
            rows = list(csv.reader(self.read(path).splitlines()))
            configs += [row[4] for row in rows[1:]]
        self.assertEqual(
            sorted(configs),
            sorted(f"./rocblas-bench -m {i}" for i in range(self.COUNT)),
        )

    def test_without_a_folder(self):
        self.run_at_once("-q", "-t", "rccl_trace", "-t", "rocblas_trace")
        self.check_folders("rccl_trace_output*")
        self.check_traces("library_trace*.csv")

    def test_with_one_folder(self):
        self.run_at_once("-q", "-t", "rccl_trace", "-t", "rocblas_trace", "-o", "out")
        self.check_folders("out/rccl_trace_output*")
        self.check_traces("out/library_trace*.csv")
        words = {self.summary(x)["words"][3] for x in glob.glob(self.path("out/summary*"))}
        self.assertEqual(words, {str(i) for i in range(self.COUNT)})
        logs = sorted(self.read(x) for x in glob.glob(self.path("out/run*.live.log")))
        lines = sorted(f"./rocblas-bench -m {i}\n" for i in range(self.COUNT))
        self.assertEqual(logs, lines)

    def test_repeated_runs(self):
        self.run_at_once("-q", "-t", "rccl_trace", "-o", "out", "-n", "2")
        folders = glob.glob(self.path("out/run-*"))
        self.assertEqual(len(folders), 2 * self.COUNT)
        found = []
        for path in glob.glob(self.path("out/summary*.json")):
            for run in self.summary(path)["runs"]:
                one = self.summary(os.path.join(run["folder"], "summary.json"))
                found.append(one["words"][3])
                own = os.path.join(run["folder"], "rccl_trace_output", "own.txt")
                self.assertEqual(self.read(own), f"word {found[-1]}\n")
        self.assertEqual(sorted(found), sorted(2 * [str(i) for i in range(self.COUNT)]))

    def test_an_empty_folder_of_another_run_is_not_taken(self):
        os.mkdir(self.path("rccl_trace_output"))
        done = self.run_prof(*("-q", "-t", "rccl_trace", "--", "sh", "-c", self.PROGRAM, "1"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.path("rccl_trace_output")), [])
        self.assertEqual(self.read("rccl_trace_output.2/own.txt"), "word 1\n")


def limit_files(size):
    """Files cannot grow beyond this many bytes: as on a full disk, write() fails."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class NoRoom(Case):
    MANY_CALLS = "for i in range(3000): print(f'./rocblas-bench -f gemm -m {i}')"

    def test_what_cannot_be_written_is_an_error_before_the_program_runs(self):
        self.write("file", "")
        for words, options in (
            (["-o", "file/out"], {}),
            (["-o", "out"], {"preexec_fn": limit_files(0)}),
            (["-t", "rocblas_trace"], {"preexec_fn": limit_files(0)}),
            (
                ["-t", "prof", "-t", "rocblas_trace"],
                {"preexec_fn": limit_files(0), "env": {**os.environ, "TMPDIR": self.folder}},
            ),
            ([], {"env": {**os.environ, "TMPDIR": self.path("file")}}),
        ):
            done = self.run_prof(*words, "--", "echo", "ran", **options)
            self.assertEqual((done.returncode, done.stdout), (125, b""), words)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertEqual(os.listdir(self.folder), ["file"], words)

    def test_a_log_that_fills_the_disk_is_reported_and_the_program_goes_on(self):
        program = "import sys; sys.stdout.write('x' * 99999 + '\\n'); sys.exit(3)"
        done = self.run_prof(
            *("-t", "prof", "-o", "out", "--", sys.executable, "-c", program),
            preexec_fn=limit_files(20000),
        )
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(done.stdout), 100000)
        self.assertIn(b"'out/run.live.log' is not complete: ", done.stderr)
        summary = self.summary()
        self.assertNotIn("out/run.live.log", summary["files"])
        self.assertIn("File too large", summary["problems"][0])

    def test_a_table_that_fills_the_disk_leaves_no_part_of_it(self):
        done = self.run_prof(
            *("-q", "-t", "rocblas_trace", "--", sys.executable, "-c", self.MANY_CALLS),
            preexec_fn=limit_files(20000),
        )
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"'library_trace.csv' could not be written: File too large", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_the_program_has_the_default_action_of_sigxfsz(self):
        done = self.run_prof(
            *("-q", "--", "sh", "-c", "head -c 9999 /dev/zero > big"),
            preexec_fn=limit_files(5000),
        )
        self.assertEqual(done.returncode, 128 + signal.SIGXFSZ)


class Summary(Case):
    def test_any_bytes_are_valid_json(self):
        word = b'\xff"\\\n\x01\x7f\xc3\xa9\xed\xa0\x80\xf0\x9f\x99\x82\xc3'
        done = self.run_prof("-q", "-o", "out", "--", "true", word)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("out/summary.json"), "rb") as file:
            text = file.read().decode("utf-8", "strict")
        expected = '\ufffd"\\\n\x01\x7fé\ufffd\ufffd\ufffd🙂\ufffd'
        self.assertEqual(json.loads(text)["words"], ["true", expected])

    def test_it_has_what_ran_where_and_when(self):
        begun = time.time()
        self.run_prof(
            *("-q", "-o", "out", "-t", "rccl_trace", "--", "env", "A=1", "sh", "-c"),
            'echo x > "${NCCL_DEBUG_FILE%/*}/own.txt"; exec true',
            env={**os.environ, "RANK": "007"},
        )
        summary = self.summary("out/rank-007/summary.json")
        self.assertEqual(summary["host"], os.uname().nodename)
        self.assertEqual(summary["rank"], 7)
        self.assertEqual(summary["name"], "echo")
        self.assertEqual(summary["working_directory"], os.path.realpath(self.folder))
        self.assertEqual((summary["state"], summary["status"]), ("ended", 0))
        self.assertGreater(summary["pid"], 1)
        self.assertGreaterEqual(summary["seconds"], 0)
        stamp = time.strptime(summary["begun"], "%Y-%m-%dT%H:%M:%S.%fZ")
        self.assertGreaterEqual(time.mktime(stamp) - time.timezone, int(begun))
        self.assertEqual(
            summary["tools"],
            [
                {
                    "name": "rccl_trace",
                    "folder": "out/rank-007/rccl_trace_output",
                    "file_count": 1,
                    "files": ["own.txt"],
                }
            ],
        )

    def test_a_run_that_has_not_ended_says_so(self):
        self.run_prof("-q", "-o", "out", "--", "cp", "out/summary.json", "seen.json")
        self.assertEqual(self.summary("seen.json")["state"], "running")
        self.assertIsNone(self.summary("seen.json")["status"])
        self.assertEqual(self.summary()["state"], "ended")

    def test_a_run_that_is_killed_leaves_a_whole_summary(self):
        program = "echo ready; read x"
        with subprocess.Popen(
            [PROF, "run", "-q", "-o", "out", "--", "sh", "-c", program],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.kill()
            process.wait(HANG_SECONDS)
        self.assertEqual(self.summary()["state"], "running")
        self.assertEqual(glob.glob(self.path("out/*.part")), [])

    def test_a_program_that_was_not_run_is_not_status_0(self):
        self.write("bad.sh", "exit 4\n")
        context = json.dumps({"pre_scripts": [{"path": "bad.sh"}]})
        done = self.run_prof("-o", "out", "--additional-context", context, "--", "echo", "ran")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"echo ran: it was not run: the pre-script of the context", done.stderr)
        self.assertNotIn(b"status 0", done.stderr)
        summary = self.summary()
        self.assertEqual((summary["state"], summary["status"]), ("not run", 125))
        self.assertIn("status 4", summary["why_not_run"])

    def test_only_files_that_exist_are_listed(self):
        done = self.run_prof(*("-o", "out", "-t", "prof", "--", "sh", "-c", "rm out/run.live.log"))
        self.assertNotIn("prof_output", " ".join(os.listdir(self.path("out"))))
        self.assertEqual(self.summary()["files"], [])
        self.assertIn(b"'out/run.live.log' is not there any more", done.stderr)

    def test_a_table_without_calls_says_why(self):
        done = self.run_prof("-t", "rocblas_trace", "--", "true")
        self.assertIn(
            b"'library_trace.csv': no calls were seen, because no process that was seen has "
            b"loaded the library (rocblas)",
            done.stderr,
        )
        done = self.run_prof("-t", "rocblas_trace", "--", "echo", "./rocblas-bench -m 1")
        self.assertNotIn(b"no calls", done.stderr)


class Names(Case):
    def test_the_output_is_named_for_the_workload(self):
        for words, name in (
            (["./app"], "app"),
            (["timeout", "-s", "KILL", "10", "./app", "x"], "app"),
            (["env", "-i", "A=B", "nice", "-n", "5", "./app"], "app"),
            (["taskset", "-c", "0", "./app"], "app"),
            (["numactl", "--cpunodebind=0", "-m", "0", "./app"], "app"),
            (["mpirun", "-n", "4", "--bind-to", "none", "./app"], "app"),
            (["mpiexec.hydra", "-n", "4", "./app"], "app"),
            (["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "./app", "x"], "app"),
            (["unshare", "-pf", "--mount-proc", "chroot", "/srv", "./app"], "app"),
            (["torchrun", "--nproc-per-node", "2", "dir/train.py"], "train.py"),
            (["sh", "-c", "A=1 exec ./app | cat"], "app"),
            (["bash", "-ec", "(./app; true)"], "app"),
            (["sh", "script.sh", "-c"], "script.sh"),
            (["sh"], "sh"),
            (["timeout", "10"], "timeout"),
            (["./50%"], "50_"),
        ):
            done = self.run_prof("--dry-run", "--", *words)
            line = done.stdout.decode().splitlines()[0]
            self.assertIn(f"/{name}.%p.prof ", line[line.index("PROF_OUTPUT=") :])

    def test_a_long_name_is_cut_at_a_character(self):
        for name, cut in (
            ("n" * 128, "n" * 128),
            ("n" * 255, "n" * 128),
            ("n" + "\u00e9" * 127, "n" + "\u00e9" * 63),
        ):
            done = self.run_prof("--dry-run", "--", f"./{name}")
            self.assertIn(f"/{cut}.%p.prof", done.stdout.decode())


class Log(Case):
    def test_it_has_each_line_while_the_program_runs(self):
        program = "echo one; read x; printf part; echo two >&2; read x; echo three"
        with subprocess.Popen(
            [PROF, "run", "-q", "-o", "out", "--", "sh", "-c", program],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            self.addCleanup(process.kill)
            log = self.path("out/run.live.log")
            self.wait_until(lambda: os.path.exists(log))
            seen = ""
            for wanted in (["one"], ["one", "part", "two"]):
                self.wait_until(lambda w=wanted: all(x in self.read(log) for x in w))
                self.assertTrue(self.read(log).startswith(seen))
                seen = self.read(log)
                process.stdin.write(b"go\n")
                process.stdin.flush()
            self.assertEqual(process.wait(HANG_SECONDS), 0)
        self.assertEqual(sorted(self.read(log).replace("part", "")), sorted("one\ntwo\nthree\n"))


class Repeat(Case):
    def test_no_line_of_the_table_ends_in_blanks(self):
        for words in ((), ("-o", "out")):
            done = self.run_prof("-n", "2", *words, "true")
            self.assertNotRegex(done.stderr.decode(), r"(?m) $")

    def test_one_run_is_no_plural(self):
        program = "test -e x && kill -INT $$; touch x"
        for count in ("2", "1"):
            done = self.run_prof("-n", "3", "--", "sh", "-c", program)
            (line,) = re.findall(r"(?m): (\d+ runs?)$", done.stderr.decode())
            self.assertEqual(line, f"{count} run" + "s" * (count != "1"), done.stderr)

    def test_one_table_of_all_runs(self):
        program = 'echo x >> count; test "$(wc -l < count)" != 2'
        done = self.run_prof("-n", "3", "-o", "out", "--", "sh", "-c", program)
        self.assertEqual(done.returncode, 1)
        text = done.stderr.decode()
        rows = [line.split() for line in text.splitlines() if "out/run-" in line]
        self.assertEqual(
            [(r[0], r[2], r[3]) for r in rows[:3]],
            [
                ("1", "0", "out/run-1"),
                ("2", "1", "out/run-2"),
                ("3", "0", "out/run-3"),
            ],
        )
        self.assertEqual(text.count("in the median"), 1)
        self.assertNotIn("status 0,", text)
        summary = self.summary()
        self.assertEqual([run["status"] for run in summary["runs"]], [0, 1, 0])
        seconds = sorted(run["seconds"] for run in summary["runs"])
        self.assertEqual(
            summary["seconds"],
            {"median": seconds[1], "least": seconds[0], "most": seconds[2]},
        )
        for run in summary["runs"]:
            one = self.summary(os.path.join(run["folder"], "summary.json"))
            self.assertEqual(one["status"], run["status"])

    def test_each_run_closes_its_temporary_folder(self):
        done = self.run_prof("-n", "4", "-q", "--", "sh", "-c", "ls -l /proc/$PPID/fd")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count(b"/prof-run-"), 4, done.stdout)

    def test_it_ends_where_a_run_cannot_start_or_is_interrupted(self):
        self.write("bad.sh", "exit 4\n")
        context = json.dumps({"pre_scripts": [{"path": "bad.sh"}]})
        self.run_prof("-n", "3", "-o", "out", "--additional-context", context, "--", "true")
        summary = self.summary()
        self.assertEqual((summary["state"], summary["repeat"]), ("stopped", 3))
        self.assertEqual([run["status"] for run in summary["runs"]], [125])
        done = self.run_prof("-n", "3", "-o", "two", "--", "sh", "-c", "kill -INT $$")
        self.assertEqual(done.returncode, 128 + signal.SIGINT)
        self.assertEqual(len(self.summary("two/summary.json")["runs"]), 1)


class Stale(Case):
    """What a killed run leaves in TMPDIR goes with the next run, when it is used no more."""

    def start(self, program):
        temporary = self.path("tmp")
        os.makedirs(temporary, exist_ok=True)
        self.env = {**os.environ, "TMPDIR": temporary}
        return subprocess.Popen(
            [PROF, "run", "--", "sh", "-c", program],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def test_folders_of_killed_runs_are_removed_and_those_in_use_stay(self):
        with self.start("echo $$; read x; exec sleep 1000") as process:
            pid = int(process.stdout.readline())
            self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, 9))
            used = os.listdir(self.path("tmp"))
            self.assertEqual(len(used), 1)
            self.run_prof("--", "true", env=self.env)
            self.assertEqual(os.listdir(self.path("tmp")), used)  # prof run has it
            process.kill()
            process.wait(HANG_SECONDS)
            self.run_prof("--", "true", env=self.env)
            self.assertEqual(os.listdir(self.path("tmp")), used)  # the program has it
            os.kill(pid, signal.SIGKILL)
            self.wait_until(lambda: not self.is_running(pid))
        for name in ("prof-run-other1x", "mine"):
            os.mkdir(self.path(f"tmp/{name}"), 0o700)
        os.mkdir(self.path("tmp/prof-run-abcdef"))
        os.chmod(self.path("tmp/prof-run-abcdef"), 0o755)
        self.run_prof("--", "true", env=self.env)
        self.assertEqual(
            sorted(os.listdir(self.path("tmp"))),
            ["mine", "prof-run-abcdef", "prof-run-other1x"],
        )

    def test_captures_elsewhere_of_a_killed_run_go_with_its_folder(self):
        """prof puts captures there if the folder has no room, and --repeat keeps them there."""
        elsewhere = self.path("elsewhere")
        os.mkdir(elsewhere)
        with self.start("echo $$; read x; exec sleep 1000") as process:
            pid = int(process.stdout.readline())
            (name,) = os.listdir(self.path("tmp"))
            is_of = os.stat(self.path(f"tmp/{name}"))
            number = ((is_of.st_ino ^ is_of.st_dev << 32) * 0x9E3779B97F4A7C15 >> 32) % (1 << 32)
            others = ["prof-run-zzzzzz.1.prof", f"x.prof~{number ^ 1:08x}.host-1.prof", f"{name}"]
            own = [f"{name}.1.prof", f"x.prof~{number:08x}.host-1.prof"]
            for each in (*own, *others):
                with open(os.path.join(elsewhere, each), "wb") as file:
                    file.write(b"no capture")
            process.kill()
            process.wait(HANG_SECONDS)
            env = self.env | {"PROF_CAPTURE_DIR": elsewhere}
            self.run_prof("--", "true", env=env)
            self.assertEqual(sorted(os.listdir(elsewhere)), sorted([*own, *others]))
            os.kill(pid, signal.SIGKILL)
            self.wait_until(lambda: not self.is_running(pid))
        self.run_prof("--", "true", env=env)
        self.assertEqual(sorted(os.listdir(elsewhere)), sorted(others))
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_a_folder_of_the_program_in_it_stays_if_it_is_not_empty(self):
        os.mkdir(self.path("tmp"))
        env = {**os.environ, "TMPDIR": self.path("tmp")}
        program = 'd="$(dirname "$PROF_OUTPUT")/d"; mkdir "$d"; "$@"'
        done = self.run_prof("--", "sh", "-c", program, "sh", "true", env=env)
        self.assertEqual(os.listdir(self.path("tmp")), [])
        self.assertNotIn(b"cannot remove", done.stderr)
        program += ' && touch "$d/mine"'
        done = self.run_prof("--", "sh", "-c", program, "sh", "true", env=env)
        (folder,) = os.listdir(self.path("tmp"))
        self.assertTrue(os.path.exists(self.path(f"tmp/{folder}/d/mine")))
        (line,) = [x for x in done.stderr.decode().splitlines() if "cannot remove" in x]
        self.assertIn(f"'{self.path('tmp')}/{folder}': the program has made a folder", line)

    def test_what_a_process_leaves_late_beside_an_output_file_is_not_silent(self):
        program = 'touch "$(dirname "$PROF_OUTPUT")/late"'
        for words in ((), ("--quiet",)):
            done = self.run_prof(*words, "-o", "t.json", "--", "sh", "-c", program)
            (folder,) = [x for x in os.listdir(self.folder) if x.startswith(".prof-run-")]
            self.assertIn(f"{folder}' is not empty: processes that outlived", done.stderr.decode())
            os.unlink(self.path(f"{folder}/late"))
            os.rmdir(self.path(folder))

    @staticmethod
    def is_running(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main(verbosity=2)
