"""prof dump: which format an ending selects, what the file lacks, and what is refused."""

import csv
import gzip
import io
import json
import os
import subprocess

from case import HANG_SECONDS, PROF
from known_capture import Recorded, device_events

CAPTURE = b"prof\r\n\x1a\n"
HEAD = b"kind,pid,tid,thread,start_ns,duration_ns,self_ns,depth,value,category,name\r\n"


class Dump(Recorded):
    def dump(self, output, *words):
        """The file's bytes, without compression, and what the command says."""
        said = self.prof("dump", "trace.prof", "-o", output, *words).stderr
        with open(os.path.join(self.folder, output), "rb") as file:
            data = file.read()
        is_packed = data.startswith(b"\x1f\x8b")
        self.assertEqual(is_packed, output.endswith(".gz"), output)
        return (gzip.decompress(data) if is_packed else data), said

    def test_an_ending_selects_the_format_and_the_file_says_what_it_lacks(self):
        self.record()
        paths = "has only the self times of call paths"
        for ending, is_it, lacks in (
            (".json", lambda data: "traceEvents" in json.loads(data), ""),
            (".speedscope.json", lambda data: "speedscope" in json.loads(data)["$schema"], paths),
            (".folded", lambda data: b"step;convolution;inner 800000\n" in data, paths),
            (".csv", lambda data: data.startswith(HEAD), "lacks arguments of 20 scopes"),
            (".pftrace", lambda data: data[:1] == b"\x0a", ""),
        ):
            for name in ("out" + ending, "out" + ending + ".gz"):
                data, said = self.dump(name)
                self.assertTrue(is_it(data), name)
                self.assertEqual(said.count("\n"), 1 if lacks else 0, said)
                self.assertIn(f"prof dump: {name} {lacks}" if lacks else "", said)
        data, said = self.dump("out.prof")
        self.assertTrue(data.startswith(CAPTURE))
        self.assertEqual(said, "")
        for name in ("out.pb", "out.pb.gz"):
            data, said = self.dump(name)
            self.assertIn(b"convolution", data)
            self.assertIn("has only the calls and self times of call paths", said)

    def test_the_file_lacks_only_what_the_capture_has(self):
        call = {"pid": 7, "tid": 7}
        scope = [{**call, "ph": "X", "name": "one", "cat": "c", "ts": 0, "dur": 900}]
        function = {**call, "ph": "X", "name": "f.py(1): f", "cat": "python_function"}
        values = [
            {**call, "ph": "C", "name": "load", "ts": 40, "args": {"value": 1.5}},
            {**call, "ph": "i", "s": "t", "name": "mark", "ts": 50},
        ]
        arrow = [
            {**call, "ph": "s", "cat": "flow", "name": "to", "id": 5, "ts": 20},
            {**call, "ph": "f", "bp": "e", "cat": "flow", "name": "to", "id": 5, "ts": 300},
        ]
        device = device_events() + arrow + values
        us, three = "has only whole microseconds", ("--to", "150us")
        paths = "has only the self times of call paths"
        for found, ending, words, said in (
            (scope, ".csv", (), []),
            (scope, ".pftrace", (), []),
            (scope, ".db", (), []),
            (scope, ".rpd", (), []),
            (scope, ".raf", (), [us]),
            (values, ".csv", (), []),
            (values, ".raf", (), ["lacks 2 values of counters and instants"]),
            (scope, ".folded", (), [paths]),
            (values, ".folded", (), [paths + ", and the capture has no scopes"]),
            (device, ".json", (), []),
            (device, ".csv", (), ["lacks arguments of 3 scopes, 4 arrows, 5 memory events"]),
            (device, ".csv", three, ["lacks arguments of 2 scopes, 3 arrows, 3 memory events"]),
            (device, ".rpd", (), ["lacks arguments of 3 scopes, 1 arrow, 5 memory events"]),
            (device, ".pftrace", (), []),
            (
                device,
                ".raf",
                (),
                [us, "lacks 4 arrows, 5 memory events, 2 values of counters and instants"],
            ),
            (device, ".csv", ("--name", "conv"), ["lacks arrows, memory events"]),
            (
                [{**function, "ts": 0, "dur": 10}],
                ".pftrace",
                (),
                ["lacks stacks of 1 Python function"],
            ),
        ):
            with self.subTest(ending=ending, words=words):
                trace = self.write("in.json", json.dumps({"traceEvents": found}))
                self.prof("import", trace, "-o", "trace.prof")
                form = ("--format", "raf") if ending == ".raf" else ()
                lines = self.dump("out" + ending, *form, *words)[1].splitlines()
                lines = [line for line in lines if "is filtered" not in line]
                self.assertEqual(lines, [f"prof dump: out{ending} {text}" for text in said])
                os.remove(os.path.join(self.folder, "trace.prof"))

    def test_a_merged_file_lacks_what_its_captures_lack(self):
        for part in range(2):
            trace = self.write("in.json", json.dumps({"traceEvents": device_events()}))
            self.prof("import", trace, "-o", f"{part}.prof")
        self.prof("merge", "-o", "trace.prof", "0.prof", "1.prof")
        said = self.dump("out.csv")[1]
        lacks = "out.csv lacks arguments of 6 scopes, 6 arrows, 10 memory events\n"
        self.assertIn(f"prof dump: {lacks}", said)

    def test_a_format_holds_whatever_the_ending_is(self):
        self.record()
        self.assertTrue(self.dump("out.json", "--format", "csv")[0].startswith(HEAD))
        events = json.loads(self.dump("out.txt", "--format", "chrome")[0])["traceEvents"]
        self.assertEqual(sum(event["ph"] == "X" for event in events), 100)
        self.dump("out.raf", "-f", "raf")

    def test_csv_has_each_scope_and_kernel_with_its_numbers(self):
        trace = self.write("device.json", json.dumps({"traceEvents": device_events()}))
        self.prof("import", trace, "-o", "trace.prof")
        text = self.dump("out.csv")[0].decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        keys = ("kind", "tid", "start_ns", "duration_ns", "self_ns", "depth", "category", "name")
        found = [tuple(row[key] for key in keys) for row in rows]
        own = {"step": 840000, "conv": 18000, "norm": 18000, "launch": 2000, "kernel": None}
        depths = {"step": 0, "conv": 1, "norm": 1, "launch": 2, "kernel": 0}
        wanted = []
        for event in device_events():
            if event["ph"] != "X":
                continue
            name, duration = event["name"], round(event["dur"] * 1000)
            kind, self_ns = ("scope", own[name]) if own[name] else ("device", duration)
            numbers = (round(event["ts"] * 1000), duration, self_ns, depths[name])
            wanted.append(
                (kind, str(event["tid"]), *map(str, numbers), event["cat"], name),
            )
        self.assertEqual(sorted(found), sorted(wanted))

    def test_a_file_that_is_replaced_keeps_its_mode(self):
        """A capture gets mode 0600, whatever file it replaces."""
        self.record()
        os.symlink("out.csv", os.path.join(self.folder, "link.csv"))
        for mode in (0o600, 0o640, 0o604):
            for output in ("out.csv", "link.csv"):
                path = self.write("out.csv", "old", mode)
                self.dump(output)
                self.assertTrue(self.read("out.csv").startswith(HEAD.decode().rstrip()))
                self.assertEqual(os.stat(path).st_mode & 0o777, mode, output)
        path = self.write("copy.prof", "old", 0o644)
        self.dump("copy.prof")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_a_pattern_that_names_the_capture_is_refused(self):
        capture = self.record()
        pid = json.loads(self.prof("info", capture, "--json").stdout)["pid"]
        named = f"{pid}.prof"
        os.rename(capture, os.path.join(self.folder, named))
        with open(os.path.join(self.folder, named), "rb") as file:
            whole = file.read()
        for more in (["--format", "chrome"], ["--pack"], []):
            done = self.prof("dump", named, "-o", "%p.prof", *more, status=2)
            self.assertIn(f"would write over the capture itself: {named}", done.stderr)
        self.prof("dump", named, "-o", "copy-%p.prof")
        self.assertEqual(sorted(os.listdir(self.folder)), [named, f"copy-{named}"])
        with open(os.path.join(self.folder, named), "rb") as file:
            self.assertEqual(file.read(), whole)

    def dump_beside(self, output, **streams):
        """Appends the command's streams to the file log, in which a line stands. The status."""
        log = self.write("log", "old\n")
        with open(log, "a", encoding="utf-8") as file:
            streams = {name: file for name in streams}
            words = [PROF, "dump", "trace.prof", "-o", output, "-f", "csv"]
            done = subprocess.run(
                words, cwd=self.folder, timeout=HANG_SECONDS, check=False, **streams
            )
        return done.returncode

    def test_an_open_file_is_not_replaced(self):
        """What it holds, and what others write to it, stays."""
        self.record()
        alone = self.prof("dump", "trace.prof", "-o", "/dev/stdout", "-f", "csv").stdout
        os.symlink("/proc/self/fd/1", os.path.join(self.folder, "link"))
        os.symlink("link", os.path.join(self.folder, "second"))
        for output in ("/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "link", "second"):
            with self.subTest(output):
                self.assertEqual(self.dump_beside(output, stdout=True), 0)
                self.assertEqual(self.read("log"), "old\n" + alone)
        for output in ("/dev/stderr", "/dev/fd/2"):
            with self.subTest(output):
                self.assertEqual(self.dump_beside(output, stderr=True), 1)
                self.assertRegex(self.read("log"), "^old\nprof dump: .* descriptor 2, an open file")

    def test_what_cannot_be_written_leaves_the_old_file(self):
        capture = self.record()
        with open(capture, "rb") as file:
            whole = file.read()
        os.link(capture, os.path.join(self.folder, "same.prof"))
        for output in ("same.prof", capture):
            done = self.prof("dump", "trace.prof", "-o", output, status=2)
            self.assertIn(f"would write over the capture itself: {output}", done.stderr)
        with open(capture, "rb") as file:
            self.assertEqual(file.read(), whole)
        done = self.prof("dump", "trace.prof", "-o", "none/out.json", status=1)
        self.assertIn("none", done.stderr)
        done = self.prof("dump", "trace.prof", "-o", "out.txt", status=2)
        self.assertIn("no format has the ending of 'out.txt'", done.stderr)
        self.assertIn(
            ".speedscope.json.gz, .pb.gz, .pb, .db, .rpd, .parquet, .arrow; or give --format",
            done.stderr,
        )
        done = self.prof("dump", "trace.prof", "-o", "-", "-f", "csv", status=2)
        self.assertIn("/dev/stdout", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["same.prof", "trace.prof"])
