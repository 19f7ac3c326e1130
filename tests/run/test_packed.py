"""Packed captures: every command gives for one what it gives for the plain capture.

Run by CTest: PROF_TEST_BUILD_DIR has the command.
"""

import ctypes.util
import json
import os
import re
import resource
import struct
import subprocess
import unittest

from case import HANG_SECONDS, PROF
from known_capture import Recorded
from nested_capture import nested_events

HEADER_BYTES = 4096
MEMORY_BYTES = 64 << 20
COMMANDS = (
    ("info",),
    ("table",),
    ("table", "--by", "stack"),
    ("events",),
    ("events", "--sort", "duration", "--top", "3"),
    ("tree",),
    ("flame",),
    ("memory",),
    ("table", "--json"),
)
ON_ONE_PROCESSOR = {"preexec_fn": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})}
EXPORTS = ("json", "pftrace", "csv", "folded", "speedscope.json", "pb")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


@unittest.skipUnless(ctypes.util.find_library("zstd"), "zstd is not installed")
class Packed(Recorded):
    def pack(self, path, name):
        """The packed capture's path, in a folder of its own: its name is in outputs."""
        packed = os.path.join(self.folder, name, os.path.basename(path))
        os.makedirs(os.path.dirname(packed), exist_ok=True)
        self.prof("dump", path, "-o", packed, "--pack")
        return packed

    def run_on(self, path, *words, status=0, **options):
        """What the command gives for the capture, in the capture's folder."""
        done = subprocess.run(
            [PROF, words[0], os.path.basename(path), *words[1:]],
            cwd=os.path.dirname(path),
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
            **options,
        )
        self.assertEqual(done.returncode, status, (words, done.stderr))
        return done.stdout, done.stderr

    def assert_same(self, packed, plain, words):
        """All output is equal, except for the line `packed` of prof info."""
        output, said = self.run_on(packed, *words)
        if words[0] == "info":
            output, count = re.subn(rb"(?m)^packed  .*\n", b"", output)
            self.assertEqual(count, 1)
        self.assertEqual((output, said), self.run_on(plain, *words), words)

    def test_info_says_what_is_packed(self):
        plain = self.record_many()
        packed = self.pack(plain, "packed")
        count, at, data = 0, HEADER_BYTES, read(packed)
        while at < len(data):
            self.assertEqual(data[at : at + 8], b"profpack")
            at += struct.unpack_from("<Q", data, at + 8)[0]
            count += 1
        facts = json.loads(self.prof("info", packed, "--json").stdout)
        sizes = len(data), os.path.getsize(plain)
        self.assertEqual(
            facts["packed"],
            {
                "packed_extents": count,
                "plain_extents": 0,
                "file_bytes": sizes[0],
                "unpacked_bytes": sizes[1],
                "ratio": facts["packed"]["ratio"],
            },
        )
        self.assertAlmostEqual(facts["packed"]["ratio"], sizes[1] / sizes[0])
        line = re.search(r"(?m)^packed +(.*)$", self.prof("info", packed).stdout)[1]
        tenths = sizes[1] * 10 // sizes[0]
        self.assertEqual(
            line,
            f"{count} extents packed, 0 plain; {sizes[0]} bytes, unpacked {sizes[1]}: "
            f"{tenths // 10}.{tenths % 10} times as many",
        )
        alone = json.loads(self.prof("info", plain, "--json").stdout)
        self.assertIsNone(alone.pop("packed"))
        facts.pop("packed")
        self.assertEqual(facts, alone)
        self.assertEqual(alone["scopes"], 5000000)
        self.assertNotIn("\npacked ", self.prof("info", plain).stdout)

    def test_every_command_reads_it_as_the_plain_one(self):
        plain = self.record()
        packed = self.pack(plain, "packed")
        self.assertLess(os.path.getsize(packed), os.path.getsize(plain) / 2)
        for words in COMMANDS:
            self.assert_same(packed, plain, words)
        for ending in EXPORTS:
            outputs = []
            for path in plain, packed:
                self.prof("dump", path, "-o", f"{path}.{ending}")
                outputs.append(read(f"{path}.{ending}"))
            self.assertEqual(*outputs)

    def test_arguments_and_threads_are_the_same(self):
        trace = self.write("trace.json", json.dumps({"traceEvents": nested_events(3)}))
        plain = os.path.join(self.folder, "nested.prof")
        self.prof("import", trace, "-o", plain)
        packed = self.pack(plain, "packed")
        for words in (*COMMANDS, ("table", "--by", "arg:layer")):
            self.assert_same(packed, plain, words)

    def test_unpacking_gives_the_plain_capture_back(self):
        plain = self.record()
        back = os.path.join(self.folder, "back.prof")
        self.prof("dump", self.pack(plain, "packed"), "-o", back)
        self.assertEqual(read(back), read(plain))

    def test_packing_it_again_changes_nothing(self):
        packed = self.pack(self.record(), "packed")
        again = self.pack(packed, "again")
        self.assertEqual(read(again), read(packed))

    def test_diff_report_and_merge_take_it(self):
        plain = self.record()
        packed = self.pack(plain, "packed")
        expected = self.prof("diff", plain, plain).stdout
        self.assertEqual(self.prof("diff", plain, packed).stdout.replace(packed, plain), expected)
        self.prof("report", packed, "-o", os.path.join(self.folder, "page.html"))
        other = self.record("other.prof", process=8)
        merged = os.path.join(self.folder, "merged.pftrace")
        self.prof("merge", packed, other, "-o", merged)
        self.assertGreater(os.path.getsize(merged), 0)

    def test_a_cut_file_keeps_what_is_whole(self):
        packed = self.pack(self.record(), "packed")
        data = read(packed)
        cut = os.path.join(self.folder, "cut.prof")
        for size in {
            *range(0, len(data), max(1, len(data) // 40)),
            100,
            HEADER_BYTES,
            len(data) - 1,
        }:
            write(cut, data[:size])
            done = self.run_on(cut, "info", status=int(size < HEADER_BYTES))
            if size >= HEADER_BYTES:
                self.assertIn(b"cut off", done[0] + done[1], size)

    def test_a_flipped_bit_is_said(self):
        packed = self.pack(self.record(), "packed")
        data = bytearray(read(packed))
        for place in range(HEADER_BYTES, len(data), max(1, (len(data) - HEADER_BYTES) // 40)):
            data[place] ^= 16
            write(packed, data)
            done = self.run_on(packed, "info")
            self.assertIn(b"damaged", done[0] + done[1], place)
            data[place] ^= 16

    def test_pack_is_for_captures_alone(self):
        plain = self.record()
        refused = self.prof("dump", plain, "-o", "trace.json", "--pack", status=2)
        self.assertIn("--pack", refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "trace.json")))

    def record_many(self, scopes=5000000):
        """By default, a capture of more bytes than are unpacked into memory."""
        program = self.write("many.c", MANY_SCOPES % (scopes // 2))
        build = os.path.dirname(PROF)
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        words = ["cc", "-O2", "-I" + os.path.join(source, "include"), program, "-o", "many"]
        words += ["-L" + build, "-lprof", "-Wl,-rpath," + build]
        subprocess.run(words, cwd=self.folder, check=True, timeout=HANG_SECONDS)
        plain = os.path.join(self.folder, "many.prof")
        recording = {**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": plain}
        subprocess.run([program[:-2]], env=recording, check=True, timeout=HANG_SECONDS)
        if scopes == 5000000:
            self.assertGreater(os.path.getsize(plain), MEMORY_BYTES)
        return plain

    def test_a_large_capture_goes_through_a_temporary_file(self):
        plain = self.record_many()
        packed = self.pack(plain, "packed")
        self.assertEqual(self.run_on(packed, "table"), self.run_on(plain, "table"))
        room = os.path.join(self.folder, "room")
        os.mkdir(room)
        for folder in room, "/nowhere":
            back = os.path.join(self.folder, "back.prof")
            self.prof("dump", packed, "-o", back, env={"TMPDIR": folder})
            self.assertEqual(read(back), read(plain))
            os.remove(back)
        self.assertEqual(os.listdir(room), [])
        self.cut_one_extent(packed)
        self.assertIn("damaged", self.prof("info", packed).stdout)

    def test_one_processor_writes_the_same(self):
        """Two processors have a worker each for packing, for unpacking and for reading ahead."""
        plain = self.record_many()
        packed = self.pack(plain, "packed")
        for path, source, words in (
            (os.path.join(self.folder, "again.prof"), plain, ("--pack",)),
            (os.path.join(self.folder, "back.prof"), packed, ()),
            (os.path.join(self.folder, "export.pftrace"), packed, ()),
        ):
            outputs = []
            for options in {}, ON_ONE_PROCESSOR:
                command = [PROF, "dump", source, "-o", path, *words]
                subprocess.run(command, check=True, timeout=HANG_SECONDS, **options)
                outputs.append(read(path))
                os.remove(path)
            self.assertEqual(*outputs)

    def test_one_processor_reads_the_same(self):
        """The capture has several extents, and is unpacked into memory."""
        packed = self.pack(self.record_many(500000), "packed")
        beside = self.pack(self.record_many(300000), "beside")
        for words in *COMMANDS, ("diff", beside), ("dump", "-o", "trace.json"):
            outputs = []
            for options in {}, ON_ONE_PROCESSOR:
                outputs.append([self.run_on(packed, *words, **options)])
                if words[0] == "dump":
                    outputs[-1].append(read(os.path.join(os.path.dirname(packed), words[-1])))
            self.assertEqual(*outputs, words)

    def cut_one_extent(self, packed):
        """Removes the second packed extent: the others are whole."""
        data = read(packed)
        first = HEADER_BYTES
        second = first + struct.unpack_from("<Q", data, first + 8)[0]
        third = second + struct.unpack_from("<Q", data, second + 8)[0]
        self.assertEqual(data[third : third + 8], b"profpack")
        write(packed, data[:second] + data[third:])

    def test_a_large_capture_without_a_temporary_file_is_refused(self):
        packed = self.pack(self.record_many(), "packed")

        def limit_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY_BYTES, MEMORY_BYTES))

        done = subprocess.run(
            [PROF, "info", packed],
            preexec_fn=limit_files,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        for words in "TMPDIR", "ulimit", "64 MiB":
            self.assertIn(words, done.stderr)

    def test_its_level_cannot_be_switched(self):
        packed = self.pack(self.record(), "packed")
        before = read(packed)
        refused = self.prof("level", packed, "0", status=1)
        self.assertIn("is packed", refused.stderr)
        self.assertEqual(read(packed), before)


MANY_SCOPES = """
#include <prof/scope.h>
int main(void) {
  for (int i = 0; i < %d; i++) {
    PROF_SCOPE("outer");
    { PROF_SCOPE("inner"); }
  }
}
"""


@unittest.skipUnless(ctypes.util.find_library("zstd"), "zstd is not installed")
class WithoutZstd(Recorded):
    """A file that is no library is found first, in place of zstd."""

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.folder, "lib"))
        self.write("lib/libzstd.so.1", "no library")
        self.env = {"LD_LIBRARY_PATH": os.path.join(self.folder, "lib")}

    def test_packing_and_reading_say_what_to_install(self):
        plain = self.record()
        packed = os.path.join(self.folder, "packed.prof")
        self.prof("dump", plain, "-o", packed, "--pack")
        for words in (("dump", plain, "-o", "no.prof", "--pack"), ("info", packed)):
            refused = self.prof(*words, status=1, env=self.env)
            self.assertIn("zstd", refused.stderr)
            self.assertIn("install", refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "no.prof")))


if __name__ == "__main__":
    unittest.main()
