"""prof merge: where it puts the captures of several processes, and what it refuses. The file is
decoded here, and compared with each capture's own CSV."""

import csv
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from folder import COMMAND, HAS_COMMAND, CommandFolder
from hang_guard import HANG_SECONDS
from perfetto_file import Slice, decode

RECORD = """
import prof, threading
def work():
    for _ in range(50):
        with prof.scope("outer"):
            with prof.scope("inner"):
                pass
thread = threading.Thread(target=work)
thread.start()
work()
thread.join()
"""
SECOND = 10**9


# ---- the header of a capture: docs/reference/file-format.md ----

U64 = {"start_monotonic_ns": 120, "start_realtime_ns": 128}
U32 = {"pid": 56, "rank": 136, "world_size": 140}
TEXT = {"host": (296, 64), "boot_id": (424, 40)}


def header_of(path):
    with open(path, "rb") as f:
        data = f.read(4096)
    found = {name: struct.unpack_from("<Q", data, at)[0] for name, at in U64.items()}
    found.update({name: struct.unpack_from("<i", data, at)[0] for name, at in U32.items()})
    return found


def change_header(path, **values):
    with open(path, "r+b") as f:
        for name, value in values.items():
            if name in TEXT:
                at, size = TEXT[name]
                data = value.encode().ljust(size, b"\0")
            else:
                at, data = U32[name], struct.pack("<i", value)
            f.seek(at)
            f.write(data)


def clock_records(data):
    """Where they begin."""
    unit = 16384
    while unit + 128 <= len(data):
        cursor, _, _, magic, kind, _, size = struct.unpack_from("<QQQIHHQ", data, unit)
        if magic != 0x70726F66:
            unit += 16384
            continue
        at = unit + 128
        while kind == 3 and at < unit + cursor:
            slots, record = struct.unpack_from("<HB", data, at + 16)
            if record == 35:
                yield at
            at += 16 * slots
        unit += size


def move_wall_clock(path, by_ns):
    """As if the machine's wall clock had been another one all along."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    for at in (U64["start_realtime_ns"], *(record + 40 for record in clock_records(data))):
        struct.pack_into("<Q", data, at, struct.unpack_from("<Q", data, at)[0] + by_ns)
    with open(path, "wb") as f:
        f.write(data)


def wall_width_ns(path):
    """How long the last reading of the wall clock took."""
    with open(path, "rb") as f:
        data = f.read()
    return [struct.unpack_from("<Q", data, at + 64)[0] for at in clock_records(data)][-1]


@unittest.skipUnless(HAS_COMMAND, "the prof command is not built")
class Merge(CommandFolder):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.base = folder.name
        for rank in range(3):
            subprocess.run(
                [sys.executable, "-c", RECORD],
                check=True,
                timeout=HANG_SECONDS,
                env={
                    **os.environ,
                    "PROF_LEVEL": "2",
                    "PROF_OUTPUT": os.path.join(cls.base, f"{rank}.prof"),
                    "RANK": str(rank),
                    "WORLD_SIZE": "3",
                },
            )

    def setUp(self):
        super().setUp()
        for rank in range(3):
            with open(os.path.join(self.base, f"{rank}.prof"), "rb") as f:
                data = f.read()
            with open(self.path(f"{rank}.prof"), "wb") as f:
                f.write(data)

    def merge(self, *words, output="all.pftrace"):
        _, said = self.run_prof("merge", "-o", output, *words)
        return decode(self.path(output)), said

    def slices_of(self, name, process, start_unix_ns, pid=None):
        """Those of a capture, by its CSV."""
        self.run_prof("dump", name, "-o", "one.csv")
        with open(self.path("one.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        pid = header_of(self.path(name))["pid"] if pid is None else pid
        return [
            Slice(
                process,
                pid,
                row["name"],
                start_unix_ns + int(row["start_ns"]),
                int(row["duration_ns"]),
            )
            for row in rows
            if row["kind"] == "scope"
        ]

    def place_of(self, name, first="0.prof"):
        """Where it starts, if it is of the same boot as the first capture."""
        own, of_first = header_of(self.path(name)), header_of(self.path(first))
        return (
            of_first["start_realtime_ns"]
            + own["start_monotonic_ns"]
            - of_first["start_monotonic_ns"]
        )

    def check(self, merged, wanted):
        self.assertEqual(len(wanted), len(merged.slices))
        self.assertEqual(sorted(merged.slices), sorted(wanted))

    def test_ranks_of_a_host_stand_on_its_monotonic_clock(self):
        merged, said = self.merge("0.prof", "1.prof", "2.prof")
        wanted = []
        for rank in range(3):
            name = f"{rank}.prof"
            called = f"rank {rank}: " + self.process_name(name)
            wanted += self.slices_of(name, called, self.place_of(name))
        self.check(merged, wanted)
        self.assertEqual(len(wanted), 600)
        self.assertIn("prof merge: 3 captures of 1 host\n", said)

    def process_name(self, name):
        with open(self.path(name), "rb") as f:
            f.seek(360)
            return f.read(64).split(b"\0")[0].decode()

    def test_a_wall_clock_that_was_set_moves_nothing_on_its_host(self):
        wanted = self.merge("0.prof", "1.prof")[0].slices
        move_wall_clock(self.path("1.prof"), 3600 * SECOND)
        merged, said = self.merge("0.prof", "1.prof")
        self.check(merged, wanted)
        self.assertIn("was set by 3600.0", said)

    def test_hosts_stand_on_their_wall_clocks(self):
        change_header(self.path("1.prof"), host="other", boot_id="b" * 36)
        begin = header_of(self.path("0.prof"))["start_realtime_ns"]
        own = header_of(self.path("1.prof"))["start_realtime_ns"]
        move_wall_clock(self.path("1.prof"), begin - own)  # both began at the same time
        merged, said = self.merge("0.prof", "1.prof", output="all.pftrace.gz")
        host = self.host_of("0.prof")
        wanted = self.slices_of(
            "0.prof", f"rank 0 on {host}: " + self.process_name("0.prof"), begin
        )
        wanted += self.slices_of("1.prof", "rank 1 on other: " + self.process_name("1.prof"), begin)
        self.check(merged, wanted)
        self.assertIn("2 captures of 2 hosts", said)
        info = subprocess.run(
            [COMMAND, "info", self.path("1.prof")],
            check=True,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        ).stdout
        error_ns = int(re.search(r", error (\d+) ns, ", info)[1])
        error_ns += wall_width_ns(self.path("1.prof"))
        self.assertGreater(error_ns, 0)
        wanted = "host 'other' is placed by its wall clock, which was read within"
        self.assertIn(f"{wanted} {error_ns / 1000:.3f} us;", said)

    def host_of(self, name):
        with open(self.path(name), "rb") as f:
            f.seek(296)
            return f.read(64).split(b"\0")[0].decode()

    def test_hosts_that_did_not_record_together_are_refused_without_unaligned(self):
        change_header(self.path("1.prof"), host="other", boot_id="b" * 36)
        move_wall_clock(self.path("1.prof"), 3600 * SECOND)
        _, said = self.run_prof("merge", "-o", "all.pftrace", "0.prof", "1.prof", status=1)
        self.assertRegex(said, r"host 'other' begin 36\d\d\.\d{6} s after those of host")
        self.assertIn("--unaligned", said)
        self.assertFalse(os.path.exists(self.path("all.pftrace")))
        merged, said = self.merge("--unaligned", "0.prof", "1.prof")
        begin = header_of(self.path("0.prof"))["start_realtime_ns"]
        host = self.host_of("0.prof")
        wanted = self.slices_of(
            "0.prof", f"rank 0 on {host}: " + self.process_name("0.prof"), begin
        )
        wanted += self.slices_of("1.prof", "rank 1 on other: " + self.process_name("1.prof"), begin)
        self.check(merged, wanted)
        self.assertIn("host 'other' is not aligned", said)

    def test_processes_of_one_number_stay_apart(self):
        change_header(self.path("1.prof"), pid=7, world_size=1, rank=0)
        change_header(self.path("2.prof"), pid=7, world_size=1, rank=0)
        merged, _ = self.merge("1.prof", "2.prof")
        called = self.process_name("1.prof")
        wanted = self.slices_of("1.prof", called, self.place_of("1.prof", "1.prof"))
        wanted += self.slices_of(
            "2.prof", "process 7 (2): " + called, self.place_of("2.prof", "1.prof"), 1 << 30
        )
        self.check(merged, wanted)

    def test_imported_traces_keep_their_processes(self):
        for name, ts in (("a", 0), ("b", 5)):
            events = [
                {"ph": "X", "pid": pid, "tid": 1, "name": name + str(pid), "ts": ts, "dur": 9}
                for pid in (11, 12)
            ]
            events += [
                {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": f"p{pid}"}}
                for pid in (11, 12)
            ]
            with open(self.path(name + ".json"), "w") as f:
                json.dump({"baseTimeNanoseconds": 10**18, "traceEvents": events}, f)
            self.run_prof("import", name + ".json", "-o", name + ".prof")
        merged, said = self.merge("a.prof", "b.prof")
        self.assertIn("2 captures of at most 2 hosts", said)
        self.assertIn("an unknown host is placed by its wall clock", said)
        self.assertNotIn("''", said)
        found = {(s.name, s.pid, s.start_ns - 10**18) for s in merged.slices}
        other = 1 << 22
        self.assertEqual(
            found,
            {("a11", 11, 0), ("a12", 12, 0), ("b11", 11 + other, 5000), ("b12", 12 + other, 5000)},
        )

    def test_a_folder_has_its_captures_and_those_of_its_ranks(self):
        shutil.copy(self.path("0.prof"), self.path("3.prof"))
        places = ("out", "out/prof_output", "out/rank-1", "out/rank-2/prof_output")
        for i, place in enumerate(places):
            os.makedirs(self.path(place), exist_ok=True)
            os.rename(self.path(f"{i}.prof"), self.path(f"{place}/{i}.prof"))
        merged, said = self.merge("out")
        self.assertEqual(len(merged.slices), 800)
        self.assertIn("4 captures", said)
        os.makedirs(self.path("empty"))
        _, said = self.run_prof("merge", "-o", "x.pftrace", "empty", status=1)
        self.assertIn("no capture (*.prof, rank-*/*.prof) in the folder 'empty'", said)

    def test_one_capture_is_as_prof_dump_writes_it(self):
        change_header(self.path("0.prof"), world_size=1)
        self.merge("0.prof")
        self.run_prof("dump", "0.prof", "-o", "dump.pftrace")
        with open(self.path("all.pftrace"), "rb") as a, open(self.path("dump.pftrace"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_a_cut_or_missing_capture_leaves_no_file_or_the_old_one(self):
        with open(self.path("all.pftrace"), "w") as f:
            f.write("old")
        with open(self.path("cut.prof"), "wb") as f:
            f.write(b"prof\r\n\x1a\n" + bytes(100))
        for name in ("cut.prof", "none.prof"):
            _, said = self.run_prof("merge", "-o", "all.pftrace", "0.prof", name, status=1)
            self.assertIn(name, said)
        with open(self.path("all.pftrace")) as f:
            self.assertEqual(f.read(), "old")

    def test_wrong_words_are_refused(self):
        os.link(self.path("0.prof"), self.path("same.prof"))
        for words, status, text in (
            (["0.prof"], 2, "needs -o"),
            (["-o", "x.pftrace"], 2, "takes captures"),
            (["-o", "x.json", "0.prof"], 2, "must end in .prof, .pftrace or .pftrace.gz"),
            (["-o", "x.gz", "0.prof"], 2, "must end in .prof, .pftrace or .pftrace.gz"),
            (["-o", "0.prof", "0.prof"], 2, "would write over a capture"),
            (["-o", "x-%p.prof", "0.prof"], 2, "has no single process for %p"),
            (["-o", "x-%h.pftrace", "0.prof"], 2, "has no single host for %h"),
            (["-o", "%r/x.pftrace.gz", "0.prof"], 2, "has no single rank for %r"),
            (["-o", "x.pftrace", "0.prof", "./0.prof"], 1, "are one file"),
            (["-o", "x.pftrace", "0.prof", "same.prof"], 1, "are one file"),
        ):
            self.assertIn(text, self.run_prof("merge", *words, status=status)[1], words)
        self.assertFalse(os.path.exists(self.path("x.pftrace")))

    def test_a_percent_sign_in_the_output_is_doubled(self):
        self.run_prof("merge", "-o", "100%%p.prof", "0.prof", "1.prof")
        self.assertTrue(os.path.exists(self.path("100%p.prof")))

    def test_memory_does_not_grow_with_the_captures(self):
        few, many = self.peaks_of_merges("0.prof", "all.pftrace")
        self.assertLess(many, few + 8192)


if __name__ == "__main__":
    unittest.main()
