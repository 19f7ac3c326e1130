"""What prof import says in the end."""

import gzip
import json
import unittest

from folder import HAS_COMMAND
from import_folder import ImportFolder
from import_traces import x

STEPS = [x(f"ProfilerStep#{i}", i * 100, 100, args={"step mark": i}) for i in range(2)]
SCOPES = [x("a", i * 10, 5) for i in range(12)]


@unittest.skipUnless(HAS_COMMAND, "the command is not built")
class Words(ImportFolder):
    def said_of(self, content, name="t.json"):
        with open(self.path(name), "wb") as f:
            f.write(content)
        done = self.command("import", name, "-o", "t.prof")
        if "yajl" in done.stderr or "zlib" in done.stderr:
            self.skipTest(done.stderr.strip())
        return done

    def test_steps_are_counted(self):
        done = self.said_of(json.dumps([*SCOPES, *STEPS]).encode())
        self.assertIn(": 12 scopes of 1 thread, 2 steps, 0 other\n", done.stdout)
        done = self.said_of(json.dumps(SCOPES).encode())
        self.assertIn(": 12 scopes of 1 thread, 0 other\n", done.stdout)

    def test_a_cut_gzip_file_is_told_in_plain_words(self):
        whole = gzip.compress(json.dumps(SCOPES).encode(), 0)
        done = self.said_of(whole[: len(whole) // 2], "t.json.gz")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(
            done.stderr, r"behind \d+ bytes \(unpacked\): what stands whole before is taken"
        )

    def test_scopes_that_took_no_time_have_their_times_in_tables(self):
        self.said_of(json.dumps([x("nothing", 10, 0), x("a", 20, 5)]).encode())
        text = self.command("table", "t.prof", "--sort", "name").stdout
        self.assertNotIn("--:", text)
        row = next(line for line in text.splitlines() if line.startswith("nothing")).split()
        self.assertNotIn("--", row)
        self.assertEqual(row.count("0.000us"), 6)

    def test_bytes_behind_a_gzip_member_are_told(self):
        packed = gzip.compress(json.dumps(SCOPES).encode())
        line = "not taken: 9 bytes behind the compressed data"
        self.assertIn(line, self.said_of(packed + b"and more\n", "t.json.gz").stderr)
        for padded in (packed, packed + bytes(512), packed + packed[:0]):
            self.assertNotIn("behind", self.said_of(padded, "t.json.gz").stderr)


if __name__ == "__main__":
    unittest.main()
