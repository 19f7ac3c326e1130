"""What reading commands take: captures, traces, databases, folders, and processes."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from case import HANG_SECONDS, PROF
from known_capture import Recorded, events

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
import amd_databases

LIBRARY = os.path.join(os.path.dirname(PROF), "libprof.so")


class Inputs(Recorded):
    def calls(self, *words, **options):
        """The calls of all rows."""
        done = self.prof("table", "--json", *words, **options)
        return json.loads(done.stdout)["calls"]

    def of_all_commands(self, path):
        """Each reading command reads it, and what it prints."""
        return {
            "table": self.prof("table", path).stdout,
            "info": self.prof("info", path).stdout,
            "flame": self.prof("flame", "--folded", path).stdout,
            "dump": self.prof("dump", path, "-o", "/dev/stdout", "-f", "csv").stdout,
            "diff": self.prof("diff", path, path).stdout,
        }


class Traces(Inputs):
    def test_each_command_reads_a_trace_as_its_capture(self):
        """All but the times of the recording's own."""
        capture = self.record()
        trace = self.write_trace()
        packed = os.path.join(self.folder, "packed.json.gz")
        with gzip.open(packed, "wt") as file:
            json.dump({"traceEvents": events()}, file)
        of_capture = self.of_all_commands(capture)
        for path in (trace, packed):
            for name, text in self.of_all_commands(path).items():
                whole = of_capture[name].replace(capture, path)
                self.assertEqual(text.replace(path, "FILE"), whole.replace(path, "FILE"), name)

    def test_a_database_is_read_as_its_import(self):
        makers = {"a.rpd": amd_databases.random_rpd, "b.db": None}
        for name, make in makers.items():
            path = os.path.join(self.folder, name)
            if make:
                make(path, 7)
            else:
                amd_databases.random_rocpd(path, 7, False)
            self.prof("import", path, "-o", "imported.prof")
            self.assertEqual(
                self.prof("table", "--csv", path).stdout,
                self.prof("table", "--csv", "imported.prof").stdout,
            )
            self.assertGreater(self.calls(path), 0)

    def test_the_capture_of_a_trace_is_not_left(self):
        folder = os.path.join(self.folder, "temporary")
        os.mkdir(folder)
        trace = self.write_trace()
        self.assertEqual(self.calls(trace, env={"TMPDIR": folder}), 100)
        self.assertEqual(os.listdir(folder), [])
        self.assertEqual(sorted(os.listdir(self.folder)), ["temporary", "trace.json"])

    def test_a_capture_of_a_trace_has_a_name_that_nobody_can_guess(self):
        folder = os.path.join(self.folder, "temporary")
        os.mkdir(folder)
        trace = self.write_trace()
        words = ["strace", "-qq", "-e", "trace=linkat,openat,unlink", PROF, "table", trace]
        if not shutil.which("strace"):
            self.skipTest("no strace")
        found = set()
        for _ in range(2):
            done = subprocess.run(
                words,
                env={**os.environ, "TMPDIR": folder},
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                check=True,
            )
            names = re.findall(rf"{folder}/(prof-[^\"]*)", done.stderr)
            self.assertTrue(names)
            self.assertEqual(len(set(names)), 1)
            self.assertRegex(names[0], r"^prof-[0-9a-f]{32}\.prof$")
            found.add(names[0])
        self.assertEqual(len(found), 2)

    def test_what_was_left_out_is_said(self):
        found = [*events(), {"ph": "?", "name": "unknown", "ts": 1, "pid": 1, "tid": 1}]
        path = self.write("odd.json", json.dumps({"traceEvents": found}))
        done = self.prof("table", path)
        self.assertIn("'odd.json'".replace("odd.json", path), done.stderr)
        self.assertIn("of a kind that is not known", done.stderr)

    def test_what_is_no_trace_is_refused(self):
        for text, said in (("{}", "no trace"), ("words", "not a prof capture"), ("", "")):
            path = self.write("file", text)
            done = self.prof("table", path, status=1)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")


class Several(Inputs):
    def test_files_and_traces_are_added_up(self):
        self.record("a.prof")
        self.assertEqual(self.calls("a.prof", self.write_trace(), self.record("b.prof")), 300)

    def test_a_file_that_is_named_twice_is_counted_once_and_said(self):
        self.record("one/a.prof")
        self.record("one/b.prof")
        os.symlink("one/a.prof", os.path.join(self.folder, "link"))
        for words, both in (
            (("one/a.prof", "one/a.prof"), "'one/a.prof' and 'one/a.prof'"),
            (("link", "one/a.prof"), "'link' and 'one/a.prof'"),
            (("one/*.prof", "one"), "'one/b.prof' and 'one/b.prof'"),
        ):
            for command in ("table", "tree", "flame"):
                done = self.prof(command, *words)
                self.assertIn(
                    f"prof {command}: {both} are one file, which is counted once", done.stderr
                )
            once = dict.fromkeys(os.path.realpath(os.path.join(self.folder, x)) for x in words)
            self.assertEqual(self.calls(*words), self.calls(*once))
        self.assertEqual(self.prof("diff", "one/a.prof", "one/a.prof").stderr, "")

    def test_a_link_of_a_folder_that_is_dead_is_said_and_the_rest_is_read(self):
        self.record("one/a.prof")
        dead = os.path.join(self.folder, "one", "0.prof")
        os.symlink("nowhere", dead)
        for words in (("table", "one"), ("table", "one/*.prof"), ("info", "one")):
            done = self.prof(*words)
            self.assertIn("'one/0.prof' is left out: it is a link", done.stderr)
            self.assertIn("100 ", done.stdout)
        done = self.prof("merge", "one", "-o", "all.pftrace")
        self.assertIn("'one/0.prof' is left out: it is a link", done.stderr)
        os.remove(os.path.join(self.folder, "one", "a.prof"))
        done = self.prof("table", "one", status=1)
        self.assertIn("no capture (*.prof) in the folder 'one'", done.stderr)

    def test_a_folder_is_its_captures_or_those_of_its_runs(self):
        for name in ("one/a.prof", "one/b.prof", "runs/run-0/a.prof", "runs/run-1/a.prof"):
            self.record(name)
        self.assertEqual(self.calls("one"), 200)
        self.assertEqual(self.calls("runs"), 200)
        self.assertEqual(self.calls("one", "runs"), 400)
        self.assertEqual(self.calls("one/[ab].prof"), 200)
        os.mkdir(os.path.join(self.folder, "traces"))
        shutil.copy(self.write_trace(), os.path.join(self.folder, "traces", "t.json"))
        self.assertEqual(self.calls("traces"), 100)

    def test_a_command_for_one_capture_refuses_a_folder_of_two(self):
        self.record("two/a.prof")
        about = self.prof("info", "two").stdout
        self.assertIn("100 scopes", about)
        self.assertRegex(about, r"^process .*\(pid 7\)\n")  # an import has no host
        self.record("two/b.prof")
        self.assertIn("has 2 captures", self.prof("info", "two", status=1).stderr)

    def test_a_command_for_one_capture_takes_a_glob_of_one(self):
        self.record("two/a.prof")
        for words in (("info",), ("events",), ("memory",), ("dump", "-f", "csv", "-o", "x.csv")):
            done = self.prof(*words, "two/*.prof")
            self.assertNotIn("two/*.prof", done.stderr)
        self.record("two/b.prof")
        for words in (("info",), ("events",), ("memory",), ("dump", "-o", "y.csv")):
            error = self.prof(*words, "two/*.prof", status=1).stderr
            self.assertIn("2 files are named like 'two/*.prof', such as 'two/a.prof'", error)
            error = self.prof(*words, "two/*.none", status=1).stderr
            self.assertIn("no file is named like 'two/*.none'", error)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "y.csv")))

    def test_an_empty_folder_is_refused(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        for command in ("table", "info", "memory"):
            done = self.prof(command, "empty", status=1)
            self.assertIn("no capture (*.prof) in the folder 'empty'", done.stderr)


class Ranks(Inputs):
    def test_a_folder_of_ranks_is_read_whole(self):
        capture = self.record()
        for rank in range(2):
            folder = os.path.join(self.folder, "out", f"rank-{rank}", "prof_output")
            os.makedirs(folder)
            shutil.copy(capture, folder)
        self.assertEqual(self.calls("out"), 2 * self.calls(capture))

    def test_an_empty_folder_is_said_by_the_command(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        done = self.prof("dump", "empty", "-o", "a.json", status=1)
        self.assertNotIn("prof info", done.stderr)
        self.assertIn("no capture (*.prof) in the folder 'empty'", done.stderr)

    def test_traces_are_not_merged(self):
        """Nothing is left of the try."""
        done = self.prof("merge", self.write_trace(), "-o", "all.pftrace", status=1)
        self.assertIn("not a prof capture", done.stderr)
        self.assertNotIn("imported", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "all.pftrace")))


class Arguments(Inputs):
    def test_nan_equals_no_number(self):
        program = """if True:
            import prof
            for loss in (3.0, float("nan"), 4.0):
                with prof.scope("loss", loss=loss):
                    pass
        """
        package = os.path.join(os.path.dirname(__file__), "..", "..", "bindings", "python")
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.path.abspath(package),
                "PROF_LIBRARY": LIBRARY,
                "PROF_LEVEL": "1",
                "PROF_OUTPUT": "nan.prof",
            },
            check=True,
            timeout=HANG_SECONDS,
        )
        capture = os.path.join(self.folder, "nan.prof")
        self.assertEqual(self.calls("--arg", "loss=3", capture), 1)
        self.assertEqual(self.calls("--arg", "loss=nan", capture), 1)


class Processes(Inputs):
    def test_a_process_that_records_is_read_by_its_number(self):
        process = subprocess.Popen(
            ["sleep", str(HANG_SECONDS)],
            cwd=self.folder,
            env={
                **os.environ,
                "LD_PRELOAD": LIBRARY,
                "PROF_LEVEL": "1",
                "PROF_OUTPUT": "live.prof",
            },
        )
        try:
            words = [PROF, "info", str(process.pid)]
            end = time.monotonic() + HANG_SECONDS
            while True:
                done = subprocess.run(
                    words, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
                )
                if done.returncode == 0 or time.monotonic() > end:
                    break
            self.assertIn("its process runs", done.stdout, done.stderr)
            self.assertIn(f"pid {process.pid}", done.stdout)
            self.assertIn("0 groups", self.prof("table", str(process.pid)).stdout)
            (name,) = [x for x in os.listdir(self.folder) if x.endswith(".prof")]
            path = os.path.join(self.folder, name)
            number = os.stat(path).st_ino
            for word in (str(process.pid), self.folder):
                done = self.prof("dump", word, "-o", path, status=1)
                self.assertIn(f"'{path}' is the capture itself", done.stderr)
            self.assertEqual(os.stat(path).st_ino, number)
        finally:
            process.kill()
            process.wait()

    def test_a_process_that_records_nothing_is_said(self):
        done = self.prof("info", str(os.getpid()), status=1)
        self.assertIn(f"process {os.getpid()} has no capture", done.stderr)

    def test_a_process_that_does_not_exist_is_said(self):
        done = self.prof("table", "4194305", status=1)  # Linux has 2^22 at most
        self.assertIn("there is no process 4194305, and no file of this name", done.stderr)

    def test_a_file_of_that_name_is_the_file(self):
        os.rename(self.record(), os.path.join(self.folder, str(os.getpid())))
        self.assertEqual(self.calls(str(os.getpid())), 100)


class Strict(Inputs):
    def cut(self, name, share):
        path = os.path.join(self.folder, name)
        os.truncate(path, int(os.path.getsize(path) * share))
        return path

    def test_a_capture_that_is_cut_off_warns_and_is_an_error_only_if_strict(self):
        self.record("cut.prof")
        path = self.cut("cut.prof", 0.7)
        self.assertRegex(
            self.prof("info", path).stderr, r"is damaged or cut off: \d+ places? could not be read"
        )
        for command in ("info", "table"):
            whole = self.prof(command, path)
            strict = self.prof(command, "--strict", path, status=1)
            self.assertEqual((strict.stdout, strict.stderr), (whole.stdout, whole.stderr))
            self.assertTrue(whole.stdout)

    def test_a_trace_that_is_cut_off_does_so_too(self):
        path = self.write_trace()
        self.cut(path, 0.5)
        self.assertIn("ends in the middle", self.prof("table", path).stderr)
        self.prof("table", path, "--strict", status=1)

    def test_a_whole_capture_is_no_error(self):
        path = self.record()
        for command in ("info", "table", "memory", "flame"):
            words = ["--folded"] if command == "flame" else []
            done = self.prof(command, "--strict", path, *words, status=0)
            self.assertEqual(done.stderr, "")


class Outputs(Recorded):
    def test_a_reader_that_went_away_ends_each_command_alike(self):
        """dump writes by the library, which takes no SIGPIPE."""
        self.record()
        for words in (
            ("events", "trace.prof"),
            ("dump", "trace.prof", "-o", "/dev/stdout"),
            ("dump", "trace.prof", "-o", "/dev/stdout", "--format", "csv"),
        ):
            read, write = os.pipe()
            os.close(read)
            done = subprocess.run(
                [PROF, *words],
                cwd=self.folder,
                stdout=write,
                stderr=subprocess.PIPE,
                timeout=HANG_SECONDS,
                check=False,
            )
            os.close(write)
            self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""), words)

    def test_diff_is_one_of_json_and_csv(self):
        self.record()
        for words in (("--json", "--csv"), ("--csv", "--json")):
            done = self.prof("diff", *words, "trace.prof", "trace.prof", status=2)
            self.assertIn("takes --json or --csv, not both", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_what_a_killed_process_left_is_named_as_a_file_is(self):
        self.record("sub/x.prof.7.prof")
        done = self.prof("info", "sub/x.prof", status=1)
        self.assertIn("has recorded into 'sub/x.prof.7.prof'", done.stderr)

    COMMANDS = (
        ("dump", "trace.prof", "-o", "l.json"),
        ("dump", "trace.prof", "-o", "l.csv.gz"),
        ("import", "trace.json", "-o", "l.prof"),
        ("merge", "trace.prof", "-o", "l.pftrace"),
        ("report", "trace.prof", "-o", "l.html"),
        ("flame", "trace.prof", "-o", "l.svg"),
        ("memory", "memory.prof", "--svg", "l.svg"),
    )

    def inputs(self):
        self.record()
        self.write_trace()
        memory = [
            {"ph": "i", "s": "t", "name": "[memory]", "cat": "memory", "pid": 7, "tid": 7, "ts": at}
            | {"args": {"Total Allocated": total, "Bytes": 64, "Addr": 99, "Device Id": 0}}
            | {"args": {"Total Allocated": total, "Bytes": 64, "Addr": 99, "Device Type": 0}}
            for at, total in ((1, 64), (5, 128))
        ]
        trace = self.write("memory.json", json.dumps({"traceEvents": events() + memory}))
        self.prof("import", trace, "-o", "memory.prof")

    def test_a_link_is_written_through(self):
        self.inputs()
        os.mkdir(os.path.join(self.folder, "else 100%p"))
        for words in self.COMMANDS:
            link = os.path.join(self.folder, words[-1])
            target = self.write("else 100%p/target", "before")
            os.symlink("else 100%p/target", link)
            self.prof(*words)
            self.assertTrue(os.path.islink(link), words)
            with open(target, "rb") as file:
                through = file.read()
            os.remove(link)
            self.prof(*words)
            with open(link, "rb") as file:
                straight = file.read()
            os.remove(link)
            self.assertEqual(through[:16], straight[:16], words)
            self.assertGreater(len(through), 100)
            self.assertEqual(os.listdir(os.path.dirname(target)), ["target"])

    def test_a_link_to_nothing_is_refused(self):
        self.inputs()
        for words in self.COMMANDS:
            link = os.path.join(self.folder, words[-1])
            os.symlink("nowhere", link)
            done = self.prof(*words, status=1)
            self.assertIn(f"cannot write through the link '{words[-1]}': No such file", done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "nowhere")))
            os.remove(link)

    def test_a_link_to_a_file_without_a_name_is_refused(self):
        """The kernel spells its path as "gone (deleted)", which is another file here."""
        self.inputs()
        gone = self.write("gone", "")
        other = self.write("gone (deleted)", "other")
        with open(gone, "r+b") as file:
            os.remove(gone)
            for words in self.COMMANDS:
                link = os.path.join(self.folder, words[-1])
                os.symlink(f"/proc/{os.getpid()}/fd/{file.fileno()}", link)
                done = self.prof(*words, status=1)
                self.assertIn(
                    f"cannot write through the link '{words[-1]}': its file has no name; name "
                    "another file",
                    done.stderr,
                )
                self.assertTrue(os.path.islink(link))
                self.assertEqual(os.fstat(file.fileno()).st_size, 0)
                os.remove(link)
        self.assertEqual(self.read(os.path.basename(other)), "other")

    def test_an_output_that_is_the_input_is_refused(self):
        self.inputs()
        for words in self.COMMANDS:
            link = os.path.join(self.folder, words[-1])
            os.symlink(words[1], link)
            self.assertIn("would write over ", self.prof(*words, status=2).stderr)
            os.remove(link)

    def test_an_ending_of_another_command_names_it(self):
        self.record()
        for ending, command in ((".svg", "prof flame"), (".html", "prof report")):
            done = self.prof("dump", "trace.prof", "-o", "x" + ending, status=2)
            self.assertIn(f"{command} writes such a file", done.stderr)
        done = self.prof("dump", "trace.prof", "x.json", status=2)
        self.assertIn("-o OUT for the file to write", done.stderr)
