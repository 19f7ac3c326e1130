"""prof merge -o all.prof: every command prints the same for a merged capture as for its captures
together, and each part is equal to the original capture."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings

from folder import HAS_COMMAND, CommandFolder
from hang_guard import HANG_SECONDS
from perfetto_file import decode
from test_merge import SECOND, change_header, move_wall_clock

import prof

RANKS = 5
RECORD = """
import prof, sys, threading
rank = int(sys.argv[1])
def work():
    for i in range(20 + rank):
        with prof.scope("outer", step=i):
            with prof.scope(f"inner {rank % 2}"):
                pass
thread = threading.Thread(target=work)
thread.start()
work()
thread.join()
"""
# Prints a line inside of a scope, and is then killed.
KILLED = """
import prof, sys
with prof.scope("done"):
    pass
with prof.scope("open for ever"):
    print("inside", flush=True)
    sys.stdin.read()
"""
EMPTY = "import prof; prof.Trace.now().close()"
PAGE = 4096


def environment(path, **more):
    return {**os.environ, "PROF_LEVEL": "2", "PROF_OUTPUT": path, **more}


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Merged(CommandFolder):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.base = folder.name
        for rank in range(RANKS):
            cls.record(RECORD, f"{rank}.prof", str(rank), RANK=str(rank), WORLD_SIZE=str(RANKS))
        cls.record(EMPTY, "empty.prof")
        path = os.path.join(cls.base, "killed.prof")
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(path),
        )
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        left = [name for name in os.listdir(cls.base) if name.startswith("killed.prof")]
        os.rename(os.path.join(cls.base, left[0]), path)

    @classmethod
    def record(cls, script, name, *words, **more):
        subprocess.run(
            [sys.executable, "-c", script, *words],
            check=True,
            timeout=HANG_SECONDS,
            env=environment(os.path.join(cls.base, name), **more),
        )

    def setUp(self):
        super().setUp()
        for name in os.listdir(self.base):
            shutil.copy(os.path.join(self.base, name), self.path(name))

    def bytes_of(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def merge(self, *words, output="all.prof"):
        return self.run_prof("merge", "-o", output, *words)[1]

    def check_commands(self, names, merged="all.prof"):
        """Each command gives the same of the merged capture as of the captures together."""
        for words in (
            ("table", "--rows", "all"),
            ("table", "--csv", "--rows", "all"),
            ("table", "--json", "--by", "name,process", "--rows", "all"),
            ("table", "--by", "rank,name", "--csv"),
            ("table", "--by", "thread"),
            ("tree",),
            ("tree", "--json"),
        ):
            together, _ = self.run_prof(*words, *names)
            self.assertEqual(self.run_prof(*words, merged)[0], together, words)
            self.assertGreater(len(together), 100, words)
        together, _ = self.run_prof("diff", "--csv", "--base", names[0], "--new", *names)
        found, _ = self.run_prof("diff", "--csv", "--base", names[0], "--new", merged)
        self.assertEqual(found, together)
        title = ("--title", "same")
        self.run_prof("flame", *title, "-o", "together.svg", *names)
        self.run_prof("flame", *title, "-o", "merged.svg", merged)
        self.assertEqual(self.bytes_of("merged.svg"), self.bytes_of("together.svg"))
        self.run_prof("report", *title, "-o", "together.html", *names)
        self.run_prof("report", *title, "-o", "merged.html", merged)
        self.assertEqual(self.bytes_of("merged.html"), self.bytes_of("together.html"))
        self.run_prof("merge", "-o", "together.pftrace", *names)
        self.run_prof("dump", "-o", "merged.pftrace", merged)
        self.assertEqual(self.bytes_of("merged.pftrace"), self.bytes_of("together.pftrace"))
        self.assertGreater(len(decode(self.path("merged.pftrace")).slices), 100)

    def check_parts(self, names, merged="all.prof"):
        """Each part is the capture, by what it dumps and by prof events."""
        for number, name in enumerate(names, 1):
            part = f"{merged}#{number}"
            self.run_prof("dump", part, "-o", "part.csv")
            self.run_prof("dump", name, "-o", "whole.csv")
            self.assertEqual(self.bytes_of("part.csv"), self.bytes_of("whole.csv"))
            one, _ = self.run_prof("events", "--csv", name)
            self.assertEqual(self.run_prof("events", "--csv", part)[0], one)

    def test_two_processes_are_read_as_together(self):
        names = ["0.prof", "1.prof"]
        self.assertIn("2 captures of 1 host", self.merge(*names))
        self.check_commands(names)
        self.check_parts(names)

    def test_five_ranks_are_read_as_together(self):
        names = [f"{rank}.prof" for rank in range(RANKS)]
        self.merge(*names)
        self.check_commands(names)
        self.check_parts(names)

    def test_ranks_are_rows_and_filters(self):
        names = [f"{rank}.prof" for rank in range(RANKS)]
        self.merge(*names)
        for given in (["all.prof"], names):
            text, _ = self.run_prof("table", "--by", "rank", "--csv", "--sort", "name", *given)
            rows = list(csv.DictReader(io.StringIO(text)))
            found = [(row["rank"], int(row["calls"])) for row in rows]
            self.assertEqual(found, [(str(r), 4 * (20 + r)) for r in range(RANKS)])
            text, _ = self.run_prof("table", "--by", "rank", "--json", *given)
            ranks = {row["rank"] for row in json.loads(text)["rows"]}
            self.assertEqual(ranks, set(range(RANKS)))
            text, _ = self.run_prof("table", "--rank", "3", "--csv", *given)
            calls = {row["name"]: row["calls"] for row in csv.DictReader(io.StringIO(text))}
            self.assertEqual(calls, {"outer": "46", "inner 1": "46"})
            text, _ = self.run_prof("tree", "--rank", "3", *given)
            self.assertNotIn("inner 0", text)
            _, said = self.run_prof("table", "--rank", "5", *given, status=3)
            self.assertIn("no scope passed the filter", said)
        for wrong in ("x", "-1", "", "1x", "4294967296"):
            _, said = self.run_prof("table", f"--rank={wrong}", "all.prof", status=2)
            self.assertIn("is not a rank", said)

    def test_a_process_is_a_filter(self):
        self.merge("0.prof", "1.prof")
        text, _ = self.run_prof("table", "--by", "process", "--json", "all.prof")
        names = [row["process"] for row in json.loads(text)["rows"]]
        pid = re.search(r"rank 1, .*\((\d+)\)", " ".join(sorted(names)))[1]
        one, _ = self.run_prof("table", "--process", pid, "--csv", "all.prof")
        self.assertEqual(one, self.run_prof("table", "--csv", "1.prof")[0])

    def test_the_lines_below_a_table_are_of_the_processes_that_pass(self):
        """As if the other captures were not there."""
        names = ["0.prof", "killed.prof", "2.prof"]
        self.merge(*names)
        for name in names:
            text, _ = self.run_prof("info", "--json", name)
            pid = str(json.loads(text)["pid"])
            for by in ("name", "process"):
                one, _ = self.run_prof("table", "--by", by, "--process", pid, "all.prof")
                self.assertEqual(one, self.run_prof("table", "--by", by, name)[0])
            self.assertEqual(one.count("not ended"), int(name == "killed.prof"))
        ranks, _ = self.run_prof("table", "--rank", "2", "all.prof")
        self.assertEqual(ranks, self.run_prof("table", "2.prof")[0])

    def test_processes_without_a_rank_have_a_row_together(self):
        text, _ = self.run_prof("table", "--by", "rank", "--csv", "0.prof", "killed.prof")
        ranks = sorted(row["rank"] for row in csv.DictReader(io.StringIO(text)))
        self.assertEqual(ranks, ["", "0"])

    def test_empty_killed_and_packed_captures_are_unchanged_by_a_merge(self):
        self.run_prof("dump", "--pack", "1.prof", "-o", "packed.prof")
        names = ["empty.prof", "0.prof", "killed.prof", "packed.prof", "2.prof"]
        self.merge(*names)
        self.check_commands(names)
        self.check_parts(names)
        data = self.bytes_of("all.prof")
        for name in names:
            self.assertIn(self.bytes_of(name), data)
        text, _ = self.run_prof("info", "all.prof#3")
        self.assertIn("ended without a stop", text)
        self.assertIn("open for ever", text)

    def test_info_has_a_line_for_each_capture(self):
        self.merge("0.prof", "killed.prof", "2.prof")
        text, _ = self.run_prof("info", "all.prof")
        lines = text.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("3 captures", lines[0])
        self.assertRegex(lines[1], r"^  #1 +rank 0: .*\(pid \d+\) on .*, 80 events, 0 lost, ")
        self.assertRegex(lines[2], r"^  #2 .*, 2 events, 0 lost, ")
        self.assertRegex(lines[3], r"^  #3 +rank 2: .*, 88 events, ")

    def test_merging_a_merged_capture_flattens_it(self):
        names = ["0.prof", "1.prof", "2.prof"]
        self.merge(*names)
        self.merge("0.prof", "1.prof", output="two.prof")
        self.merge("two.prof", "2.prof", output="again.prof")
        self.assertEqual(self.bytes_of("again.prof"), self.bytes_of("all.prof"))
        self.merge("all.prof#2", output="second.prof")
        self.check_parts(["1.prof"], "second.prof")
        self.run_prof("dump", "second.prof", "-o", "second.csv")  # one capture needs no number
        self.run_prof("dump", "1.prof", "-o", "one.csv")
        self.assertEqual(self.bytes_of("second.csv"), self.bytes_of("one.csv"))

    def test_a_file_named_twice_counts_once(self):
        self.merge("0.prof", "1.prof")
        once, _ = self.run_prof("table", "all.prof")
        twice, said = self.run_prof("table", "all.prof", "./all.prof", "all.prof#2")
        self.assertEqual(twice, once)
        self.assertIn("'all.prof#2' and './all.prof#2' are one file", said)
        for words in (["all.prof", "all.prof"], ["all.prof", "all.prof#1"]):
            _, said = self.run_prof("merge", "-o", "x.prof", *words, status=1)
            self.assertIn("are one file", said)
        self.assertFalse(os.path.exists(self.path("x.prof")))

    def test_the_file_is_not_written_over_itself(self):
        self.merge("0.prof", "1.prof")
        before = self.bytes_of("all.prof")
        for words in (
            ("merge", "-o", "all.prof", "all.prof", "2.prof"),
            ("merge", "-o", "all.prof", "all.prof#1"),
            ("dump", "all.prof#1", "-o", "all.prof"),
            ("dump", "all.prof#1", "-o", "all.prof", "--pack"),
        ):
            _, said = self.run_prof(*words, status=2)
            self.assertIn("would write over", said)
        self.assertEqual(self.bytes_of("all.prof"), before)

    def test_a_cut_file_loses_only_its_last_captures(self):
        names = ["0.prof", "1.prof", "2.prof"]
        self.merge(*names)
        data = self.bytes_of("all.prof")
        sizes = [os.path.getsize(self.path(name)) for name in names]
        ends, at = [], PAGE
        for size in sizes:
            ends.append(at + PAGE + size)
            at = (ends[-1] + PAGE - 1) // PAGE * PAGE
        for cut in range(ends[0], len(data), 50001):
            with open(self.path("cut.prof"), "wb") as f:
                f.write(data[:cut])
            whole = sum(end <= cut for end in ends)
            text, said = self.run_prof(
                "table", "--by", "rank", "--csv", "--sort", "name", "cut.prof"
            )
            rows = [(r["rank"], int(r["calls"])) for r in csv.DictReader(io.StringIO(text))]
            self.assertEqual(rows[:whole], [(str(r), 4 * (20 + r)) for r in range(whole)], cut)
            self.assertIn("damaged or cut off", said)
            self.run_prof("table", "--strict", "cut.prof", status=1)

    def test_hosts_that_did_not_record_together_need_unaligned(self):
        change_header(self.path("1.prof"), host="other", boot_id="b" * 36)
        move_wall_clock(self.path("1.prof"), 3600 * SECOND)
        _, said = self.run_prof("merge", "-o", "all.prof", "0.prof", "1.prof", status=1)
        self.assertRegex(said, r"host 'other' begin 36\d\d\.\d{6} s after those of host")
        self.assertIn("--unaligned", said)
        self.assertFalse(os.path.exists(self.path("all.prof")))
        said = self.merge("--unaligned", "0.prof", "1.prof")
        self.assertIn("host 'other' is not aligned", said)
        self.run_prof("merge", "--unaligned", "-o", "together.pftrace", "0.prof", "1.prof")
        self.merge("all.prof", output="again.prof")  # remembers it
        for merged in ("all.prof", "again.prof"):
            self.run_prof("dump", merged, "-o", "merged.pftrace")
            self.assertEqual(self.bytes_of("merged.pftrace"), self.bytes_of("together.pftrace"))

    def test_commands_that_need_one_capture_say_how_to_name_it(self):
        self.merge("0.prof", "1.prof")
        for words in (("--format", "raf"), ("-o", "y.prof", "--pack")):
            _, said = self.run_prof("dump", "all.prof", "-o", "x.json", *words, status=2)
            self.assertIn("all.prof#1", said)
        _, said = self.run_prof("table", "all.prof#3", status=1)
        self.assertIn("cannot open all.prof#3: 2 captures of all.prof can be read", said)
        _, said = self.run_prof("table", "0.prof#1", status=1)
        self.assertIn("0.prof is one capture, without parts", said)
        _, said = self.run_prof("level", "all.prof", "1", status=1)
        self.assertIn("all.prof", said)

    def test_a_file_with_a_number_sign_is_itself(self):
        self.merge("0.prof", "1.prof")
        shutil.copy(self.path("2.prof"), self.path("all.prof#1"))
        text, _ = self.run_prof("table", "--csv", "all.prof#1")
        self.assertEqual(text, self.run_prof("table", "--csv", "2.prof")[0])

    def test_a_file_of_a_parts_name_is_not_read_instead_of_the_part(self):
        self.merge("0.prof", "1.prof")
        shutil.copy(self.path("2.prof"), self.path("all.prof#1"))
        for words in (
            ("table",),
            ("info",),
            ("merge", "-o", "x.prof"),
            ("dump", "-o", "x.pftrace"),
        ):
            _, said = self.run_prof(*words, "all.prof", status=1)
            self.assertIn("'all.prof#1' is a file, and also names a capture in 'all.prof'", said)
        with self.assertRaisesRegex(ValueError, "#1 is a file, and also names a capture"):
            prof.Traces.open([self.path("all.prof")])

    def test_what_is_still_recorded_is_merged_as_a_snapshot(self):
        path = self.path("live.prof")
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(path),
        )
        try:
            process.stdout.readline()
            live = [name for name in os.listdir(self.folder) if name.startswith("live.prof")]
            self.merge("0.prof", live[0])
        finally:
            process.communicate(timeout=HANG_SECONDS)
        text, _ = self.run_prof("info", "all.prof#2")
        self.assertIn("a copy, made while it was being recorded", text)
        self.assertIn("open for ever", text)

    def test_python_opens_one_or_all(self):
        self.merge("0.prof", "1.prof")
        path = self.path("all.prof")
        with self.assertRaisesRegex(ValueError, "all.prof#1"):
            prof.Trace.open(path)
        with prof.Trace.open(path + "#2") as one:
            self.assertEqual(one.info().rank, 1)
        with (
            prof.Traces.open([path]) as traces,
            prof.Traces.open([self.path("0.prof"), self.path("1.prof")]) as both,
        ):
            self.assertEqual(len(traces.traces), 2)
            self.assertEqual(traces.table(), both.table())
        with open(path, "r+b") as f:
            f.truncate(2 * PAGE + os.path.getsize(self.path("0.prof")))
        with self.assertWarnsRegex(RuntimeWarning, "1 of its 2 captures"):
            with prof.Traces.open([path]) as rest:
                self.assertEqual(len(rest.traces), 1)
        with self.assertRaises(FileNotFoundError):
            prof.Traces.open([self.path("none.prof")])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            prof.Traces.open([self.path("0.prof")]).close()

    def test_recover_leaves_merged_captures_alone(self):
        folder = self.path("found")
        os.mkdir(folder)
        self.merge("0.prof", "killed.prof", output=os.path.join(folder, "all.prof"))
        text, said = self.run_prof("recover", folder)
        self.assertNotIn("all.prof", text + said)

    def test_a_failed_merge_leaves_the_old_file(self):
        with open(self.path("all.prof"), "w") as f:
            f.write("old")
        with open(self.path("short.prof"), "wb") as f:
            f.write(b"prof\r\n\x1a\n" + bytes(100))
        for name in ("short.prof", "none.prof"):
            _, said = self.run_prof("merge", "-o", "all.prof", "0.prof", name, status=1)
            self.assertIn(name, said)
        self.assertEqual(self.bytes_of("all.prof"), b"old")

    def test_memory_does_not_grow_with_the_captures(self):
        few, many = self.peaks_of_merges("0.prof", "all.prof")
        self.assertLess(many, few + 2048)


if __name__ == "__main__":
    unittest.main()
