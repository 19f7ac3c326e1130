"""What a page of prof report holds, against a computation in Python: its rows, tiles and paths.
tests/viewers/test_report_*.py open the page in a browser."""

import base64
import gzip
import html
import json
import math
import os
import re
import subprocess
import sys

from case import HANG_SECONDS, PROF
from known_capture import Recorded
from nested_capture import Nested

LIBRARY = os.path.join(os.path.dirname(PROF), "libprof.so")

# One scope that ends, and two in each other that do not.
UNFINISHED = """
import ctypes, os, sys
prof = ctypes.CDLL(sys.argv[1])
prof.prof_scope_begin.restype = ctypes.c_uint64
prof.prof_scope_begin.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
prof.prof_scope_end.argtypes = [ctypes.c_uint64]
prof.prof_scope_end(prof.prof_scope_begin(1, b"ended", b"operator", None))
for _ in range(2):
    prof.prof_scope_begin(1, b"open", b"operator", None)
os._exit(0)
"""

# Two names that are not UTF-8 and have the same repaired text.
ILL_FORMED = (
    UNFINISHED[: UNFINISHED.index("prof.prof_scope_end(prof")]
    + """
for name in (b"bad \\x80", b"bad \\x81", b"bad \\x81"):
    prof.prof_scope_end(prof.prof_scope_begin(1, name, b"operator", None))
"""
)

COLUMNS = (
    "name",
    "category",
    "calls",
    "total",
    "self",
    "mean",
    "min",
    "median",
    "p99",
    "max",
    "open",
) + ("device_total", "device_self", "memory", "device_memory", "place", "durations")


class Page:
    def __init__(self, text):
        tiles = re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", text)
        self.tiles = {html.unescape(key): html.unescape(value) for key, value in tiles}
        encoding, data = re.search(r'data-encoding="(\w+)">([^<]*)', text).groups()
        data = base64.b64decode(data)
        data = gzip.decompress(data) if encoding == "gzip" else data
        self.data = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
        self.rows = [dict(zip(COLUMNS, row)) for row in self.data["rows"]]

    def row(self, name):
        (row,) = (row for row in self.rows if row["name"] == name)
        return row


class Pages(Recorded):
    def page(self, *words):
        self.prof("report", "-o", "page.html", *words)
        return Page(self.read("page.html"))

    def import_events(self, name, events, **more):
        trace = self.write(name + ".json", json.dumps({**more, "traceEvents": events}))
        self.prof("import", trace, "-o", name + ".prof")
        return name + ".prof"


class Known(Pages, Nested):
    def test_rows_equal_sums_of_the_scopes(self):
        groups = {}
        for scope in self.scopes:
            groups.setdefault((scope.name, scope.category), []).append(scope)
        expected = []
        for (name, category), scopes in groups.items():
            is_inner = [
                any((x.name, x.category) == (name, category) for x in scope.around())
                for scope in scopes
            ]
            lengths = sorted(scope.duration for scope in scopes)
            count = len(lengths)
            row = [name, category, count]
            row += [sum(x.duration for x, inner in zip(scopes, is_inner) if not inner)]
            row += [sum(x.self for x in scopes), sum(lengths) // count, lengths[0]]
            row += [lengths[math.ceil(share * count) - 1] for share in (0.5, 0.99)]
            expected.append(dict(zip(COLUMNS, [*row, lengths[-1], 0, 0, 0, 0, 0, ""])))
        page = self.page(self.capture)
        for row in page.rows:
            self.assertEqual(sum(row.pop("durations")[1::2]), row["calls"])
        self.assertEqual(sorted(page.rows, key=repr), sorted(expected, key=repr))
        self.assertEqual(page.data["self_ns"], sum(scope.self for scope in self.scopes))

    def test_tiles_have_the_sums_of_the_captures(self):
        end_us = max(scope.end for scope in self.scopes) / 1000
        self.assertEqual(
            self.page(self.capture).tiles,
            {"Duration": f"{end_us / 1000:.3f}ms" if end_us >= 1000 else f"{end_us:.3f}us"}
            | {"Scopes": str(len(self.scopes)), "Threads": "2", "Process id": "7"},
        )
        other = self.import_events(
            "other", [{"ph": "X", "name": "a", "pid": 7, "tid": 1, "ts": 0, "dur": 1}]
        )
        tiles = self.page(self.capture, other).tiles
        self.assertEqual(tiles["Scopes"], str(len(self.scopes) + 1))
        self.assertEqual((tiles["Threads"], tiles["Captures"]), ("3", "2"))
        self.assertNotIn("Process id", tiles)


class Others(Pages):
    def test_a_start_is_in_utc(self):
        events = [{"ph": "X", "name": "a", "pid": 7, "tid": 1, "ts": 0, "dur": 9}]
        page = self.page(self.import_events("a", events, baseTimeNanoseconds=17 * 10**17))
        self.assertEqual(page.tiles["Start"], "2023-11-14 22:13:20 UTC")

    def recorded(self, program):
        subprocess.run(
            [sys.executable, "-c", program, LIBRARY],
            cwd=self.folder,
            env={**os.environ, "PROF_LEVEL": "1", "PROF_OUTPUT": "open.prof"},
            check=True,
            timeout=HANG_SECONDS,
        )
        (name,) = (name for name in os.listdir(self.folder) if name.startswith("open.prof"))
        return self.page(name)

    def test_names_with_one_repaired_text_have_their_own_durations(self):
        rows = sorted(self.recorded(ILL_FORMED).rows, key=lambda row: row["calls"])
        self.assertEqual([row["name"] for row in rows], ["bad \ufffd"] * 2)
        self.assertEqual([row["calls"] for row in rows], [1, 2])
        self.assertEqual([sum(row["durations"][1::2]) for row in rows], [1, 2])

    def test_a_scope_that_had_not_ended_is_open_and_no_call(self):
        page = self.recorded(UNFINISHED)
        self.assertEqual((page.tiles["Scopes"], page.tiles["Open scopes"]), ("1", "2"))
        self.assertEqual((page.row("ended")["calls"], page.row("ended")["open"]), (1, 0))
        self.assertEqual((page.row("open")["calls"], page.row("open")["open"]), (0, 2))

    def test_a_scope_has_the_time_of_its_kernels_and_of_those_below(self):
        call = {"ph": "X", "pid": 1, "tid": 1}
        events = [
            {**call, "name": "step", "cat": "cpu_op", "ts": 0, "dur": 90},
            {**call, "name": "conv", "cat": "cpu_op", "ts": 5, "dur": 20},
            {**call, "name": "launch", "cat": "cuda_runtime", "ts": 10, "dur": 2}
            | {"args": {"correlation": 5}},
            {"ph": "X", "pid": 0, "tid": 7, "name": "kernel", "cat": "kernel", "ts": 20, "dur": 50}
            | {"args": {"device": 0, "stream": 7, "correlation": 5}},
        ]
        page = self.page(self.import_events("a", events))
        for name, times in (("step", (50000, 0)), ("conv", (50000, 50000))):
            row = page.row(name)
            self.assertEqual((row["device_total"], row["device_self"]), times, name)

    def test_memory_is_of_the_host_or_of_a_device(self):
        scope = {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op", "dur": 10}
        memory = {"ph": "i", "s": "t", "pid": 1, "tid": 1, "name": "[memory]"}
        events = [
            {**scope, "name": "host", "ts": 0},
            {**memory, "ts": 5}
            | {
                "args": {"Addr": 1, "Bytes": 4096, "Device Type": 0, "Device Id": -1}
                | {"Total Allocated": 4096, "Total Reserved": 4096}
            },
            {**scope, "name": "device", "ts": 20},
            {**memory, "ts": 25}
            | {
                "args": {"Addr": 2, "Bytes": 512, "Device Type": 1, "Device Id": 0}
                | {"Total Allocated": 512, "Total Reserved": 2048}
            },
        ]
        page = self.page(self.import_events("a", events))
        for name, sizes in (("host", (4096, 0)), ("device", (0, 512))):
            row = page.row(name)
            self.assertEqual((row["memory"], row["device_memory"]), sizes, name)

    def test_a_curve_of_memory_has_the_most_of_each_part_of_the_time(self):
        changes = ((6, 4096), (50, 100), (500, -4096), (500.5, 512), (501, -512), (800, -100))
        events = [{"ph": "X", "name": "all", "pid": 1, "tid": 1, "ts": 0, "dur": 900}]
        for number, (ts, size) in enumerate(changes):
            address = number if size > 0 else {4096: 0, 512: 3, 100: 1}[-size]
            args = {"Addr": address + 1, "Bytes": size, "Device Type": 0, "Device Id": -1}
            memory = {"ph": "i", "s": "t", "pid": 1, "tid": 1, "name": "[memory]"}
            events.append({**memory, "ts": ts, "args": args})
        (pool,) = self.page(self.import_events("a", events)).data["pools"]
        begin, end, count = pool["begin_ns"], pool["end_ns"], len(pool["used"])
        expected, used, before = [0] * count, 0, 0
        for ts, size in changes:
            column = int((ts * 1000 - begin) / (end - begin) * count)
            expected[before : column + 1] = [
                max(used, most) for most in expected[before : column + 1]
            ]
            used, before = used + size, column
            expected[column] = max(expected[column], used)
        self.assertEqual((begin, end, used), (0, 900000, 0))
        self.assertEqual(pool["used"], expected)
        self.assertEqual(pool["used_peak"], [4196, 50000])
        self.assertEqual(pool["used"][-1], 0)

    def test_the_20000_longest_paths_are_drawn_and_the_others_counted(self):
        """Most have one length, so some of that length are drawn, the first ones."""
        events = [
            {"ph": "X", "name": f"n{index}", "pid": 7, "tid": 1, "ts": 10 * index, "dur": 1}
            for index in range(20100)
        ]
        for event in events[:60]:
            event["dur"] = 0.9
        events[70]["dur"] = 2
        page = self.page(self.import_events("many", events))
        (flame,) = page.data["flames"]
        names = [page.data["path_names"][path[1]] for path in flame["paths"][1:]]
        drawn = [f"n{index}" for index in range(60, 60 + 19999)]
        self.assertEqual(names, drawn)  # and the root
        self.assertEqual({path[0] for path in flame["paths"]}, {0})
        self.assertEqual(flame["left_out"], 20100 - len(drawn))
        self.assertEqual(page.data["all_rows"], 20100)
        self.assertEqual(len(page.rows), 10000)

    def test_a_report_is_not_written_over_its_capture(self):
        capture = self.record()
        with open(capture, "rb") as file:
            whole = file.read()
        os.link(capture, os.path.join(self.folder, "same.html"))
        for words in ((capture,), ("--base", capture, "--new", capture)):
            done = self.prof("report", "-o", "same.html", *words, status=2)
            self.assertIn("would write over the capture itself: same.html", done.stderr)
        with open(capture, "rb") as file:
            self.assertEqual(file.read(), whole)
