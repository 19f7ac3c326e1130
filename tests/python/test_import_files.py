"""prof import: files of all kinds, cut, packed, damaged, of other tools, and the way back into
JSON."""

import gzip
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import unittest
import warnings

from hang_guard import HANG_SECONDS
from import_events import COMMAND, EventFolder, trace, training_step, x

import prof


@unittest.skipUnless(os.access(COMMAND, os.X_OK), "the prof command is not built")
class Files(EventFolder):
    def test_an_event_larger_than_any_is_an_error_with_its_place(self):
        """Its texts are in memory at once, so they have a limit: 256 MiB. Packed, so that the file
        itself takes no such room."""
        with gzip.open(self.path("t.json.gz"), "wb", compresslevel=1) as f:
            f.write(
                b'{"traceEvents": ['
                + json.dumps(x("cpu_op", "before", 100, 1, 2)).encode()
                + b", {"
            )
            for _ in range(258):
                f.write(b'"name": "' + b"x" * ((1 << 20) - 1) + b'", ')
            f.write(b'"ph": "X"}, ' + json.dumps(x("cpu_op", "behind", 100, 5, 2)).encode() + b"]}")
        done = self.command("import", "t.json.gz", "-o", "t.prof")
        if "yajl" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("one event has more than 256 MiB of texts", done.stderr)
        place = re.search(r"byte (\d+)", done.stderr)
        self.assertTrue(place and int(place.group(1)) > 256 << 20, done.stderr)
        with prof.Trace.open(self.path("t.prof")) as opened:  # what stands whole before is taken
            self.assertEqual([row.name for row in opened.aggregate()], ["before"])

    def test_what_nobody_reads_of_an_event_takes_no_memory(self):
        with gzip.open(self.path("t.json.gz"), "wb", compresslevel=1) as f:
            f.write(
                b'{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "name": '
                b'"large", '
            )
            for _ in range(258):
                f.write(b'"nobody knows this": "' + b"x" * ((1 << 20) - 1) + b'", ')
            f.write(b'"cat": "cpu_op"}]}')
        self.assertEqual([row.name for row in self.run_import("t.json.gz").aggregate()], ["large"])

    def test_compressed(self):
        whole = json.dumps(trace(training_step())).encode()
        # two members, as some writers append them
        with open(self.path("t.pt.trace.json.gz"), "wb") as f:
            f.write(gzip.compress(whole[:1000]) + gzip.compress(whole[1000:]))
        self.assertEqual(len(self.run_import("t.pt.trace.json.gz").aggregate()), 7)
        done = self.command("import", "t.pt.trace.json.gz")
        # not over what exists
        self.assertEqual((done.returncode, os.path.exists(self.path("t.prof"))), (1, True))
        os.unlink(self.path("t.prof"))
        self.assertEqual(self.command("import", "t.pt.trace.json.gz").returncode, 0)
        self.assertTrue(os.path.exists(self.path("t.prof")))
        with open(self.path("cut.json.gz"), "wb") as f:
            f.write(gzip.compress(whole)[:-200])
        done = self.command("import", "cut.json.gz")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unpacked", done.stderr)

    def test_a_capture_needs_no_import(self):
        self.imported([x("cpu_op", "a", 100, 10, 5)])
        done = self.command("import", "t.prof", "-o", "again.prof")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(
            "'t.prof' is a capture of prof's already, and needs no import; prof table and prof "
            "dump read it as it is, in Python prof.Trace.open()",
            done.stderr,
        )
        with self.assertRaisesRegex(ValueError, "t.prof' is a capture of prof's already"):
            prof.import_trace(self.path("t.prof"))
        self.assertFalse(os.path.exists(self.path("again.prof")))
        for text in ("", "{", "[]", "{}     "):  # less than a capture begins with is read
            with open(self.path("short.json"), "w") as f:
                f.write(text)
            self.assertNotIn(
                "capture of prof's already",
                self.command("import", "short.json", "-o", "short.prof").stderr,
            )

    def test_what_other_tools_write_and_is_no_trace_of_events(self):
        text = json.dumps(trace(training_step()))
        self.refused("", "is empty")
        self.refused(b"\n\xd9\x03\x0a\x04\x08\x01\x12\x00", "is no JSON")  # Perfetto's protobuf
        self.refused(b"SQLite format 3\0" + bytes(100), "damaged SQLite database")
        self.refused(b"SQLite format 3\0" + bytes(10), "cut off")
        self.refused("<!DOCTYPE html><html><body>", "is no JSON")
        self.refused(text.encode("utf-16"), "UTF-16")
        self.refused(text.encode("utf-16-be"), "UTF-16")
        self.refused(text.encode("utf-16-le"), "UTF-16")
        self.refused(text.encode("utf-32"), "UTF-32")
        # a .cpuprofile
        self.refused('{"nodes": [], "samples": [1, 2], "timeDeltas": [3]}', "has no traceEvents")
        self.refused(
            '{"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}',
            "has no traceEvents",
        )
        self.refused('"text"', "has no traceEvents")
        self.refused("null", "has no traceEvents")
        self.refused("{", "ends before the first event")
        self.refused(gzip.compress(text.encode())[:40], "ends", "cut.json.gz")
        self.refused(b"\x1f\x8b", "before anything could be unpacked", "cut.json.gz")
        self.refused(gzip.compress(b""), "is empty", "nothing.json.gz")
        self.refused(b"PK\x03\x04" + bytes(30), "is no JSON")  # a zip

    def test_what_a_file_is_that_is_no_trace(self):
        for content, what in (
            (b"\n\xd9\x03\x0a\x04\x08\x01\x12\x00", "a trace of Perfetto's own format"),
            ("<!DOCTYPE html>", "XML or HTML"),
            (b"PK\x03\x04" + bytes(30), "a zip archive; unpack it first"),
            (b"\x7fELF" + bytes(30), "a program or a library"),
            (b"PERFILE2" + bytes(30), "data of perf"),
            (b"\x28\xb5\x2f\xfd" + bytes(30), "compressed by zstd"),
            ("Kind,Name,Start\n1,2,3\n", "a table (CSV)"),
            ('/* a, b */ {"traceEvents": []}', "text that begins with a comment"),
            ('// a, b\n{"traceEvents": []}', "text that begins with a comment"),
            ("\ufeff \n hello", "plain text"),
            (b"\x80\x01\x02\x03\x80\x05", "binary data"),
            (gzip.compress(b"PK\x03\x04" + bytes(30)), "a zip archive"),
        ):
            with self.subTest(what):
                self.refused(content, f"is no JSON and no database, but {what}", "trace.rpd")
                self.refused(content, "trace.rpd of rocmProfileData", "trace.rpd")

    def test_traces_of_other_tools(self):
        """As they write them: viztracer, Chrome, Perfetto's own JSON, rocprof and Nsight Systems'
        converter."""
        viz = {
            "traceEvents": [
                {
                    "ph": "M",
                    "pid": 7,
                    "tid": 7,
                    "name": "process_name",
                    "args": {"name": "MainProcess"},
                },
                {
                    "ph": "M",
                    "pid": 7,
                    "tid": 7,
                    "name": "thread_name",
                    "args": {"name": "MainThread"},
                },
            ]
        }
        viz["traceEvents"] += [
            {
                "pid": 7,
                "tid": 7,
                "ts": 1.5,
                "ph": "X",
                "dur": 10.25,
                "name": "main (/a.py:1)",
                "cat": "FEE",
            },
            {
                "pid": 7,
                "tid": 7,
                "ts": 2.5,
                "ph": "X",
                "dur": 3,
                "name": "f (/a.py:3)",
                "cat": "FEE",
                "caller_lineno": 9,
            },
        ]
        viz.update(
            {
                "viztracer_metadata": {"version": "1.1.1", "overflow": False},
                "file_info": {"files": {"/a.py": ["text", 3]}, "functions": {}},
            }
        )
        chrome = {
            "traceEvents": [
                {
                    "args": {"number": 8},
                    "cat": "__metadata",
                    "name": "num_cpus",
                    "ph": "M",
                    "pid": 7,
                    "tid": 0,
                    "ts": 0,
                }
            ]
        }
        chrome["traceEvents"] += [
            {
                "args": {},
                "cat": "toplevel",
                "dur": 5,
                "name": "RunTask",
                "ph": "X",
                "pid": 7,
                "tdur": 4,
                "tid": 8,
                "ts": 100,
                "tts": 9,
            },
            {"cat": "blink", "id": "0xa", "name": "load", "ph": "b", "pid": 7, "tid": 8, "ts": 101},
        ]
        chrome["traceEvents"] += [
            {"cat": "blink", "id": "0xa", "name": "load", "ph": "e", "pid": 7, "tid": 8, "ts": 110},
            {
                "cat": "v8",
                "id": "0x1",
                "name": "heap",
                "ph": "O",
                "pid": 7,
                "tid": 8,
                "ts": 111,
                "args": {"snapshot": {}},
            },
        ]
        chrome.update({"metadata": {"os-name": "Linux"}, "stackFrames": {}, "samples": []})
        perfetto = {
            "traceEvents": [
                {"ph": "B", "name": "outer", "pid": 7, "tid": 8, "ts": 1},
                {"ph": "B", "name": "inner", "pid": 7, "tid": 8, "ts": 2},
                {"ph": "E", "pid": 7, "tid": 8, "ts": 3},
                {"ph": "E", "pid": 7, "tid": 8, "ts": 5},
            ],
            "systemTraceEvents": "# tracer: nop\n",
            "displayTimeUnit": "ns",
        }
        rocprof = {
            "traceEvents": [
                {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "CPU HIP API"}},
                {
                    "ph": "X",
                    "name": "hipLaunchKernel",
                    "pid": 2,
                    "tid": 9,
                    "ts": "100",
                    "dur": "5",
                    "args": {"BeginNs": "100000", "EndNs": "105000"},
                },
                {},
            ]
        }
        nsight = [
            {
                "name": "kernel_a",
                "ph": "X",
                "cat": "cuda",
                "ts": 1.0,
                "dur": 2.0,
                "tid": "Stream 7",
                "pid": "CUDA HW 0 (0000:01:00.0)",
                "args": {},
            },
            {
                "name": "range",
                "ph": "X",
                "cat": "nvtx",
                "ts": 0.5,
                "dur": 9.0,
                "tid": "NVTX 1",
                "pid": "Host",
                "args": {},
            },
        ]
        expected = {
            "viz": {"main (/a.py:1)": (10250, 7250), "f (/a.py:3)": (3000, 3000)},
            "chrome": {"RunTask": (5000, 5000), "load": (9000, 9000)},
            "perfetto": {"outer": (4000, 3000), "inner": (1000, 1000)},
        }
        expected.update(
            {
                "rocprof": {"hipLaunchKernel": (5000, 5000)},
                "nsight": {"kernel_a": (2000, 2000), "range": (9000, 9000)},
            }
        )
        for name, content in (
            ("viz", viz),
            ("chrome", chrome),
            ("perfetto", perfetto),
            ("rocprof", rocprof),
            ("nsight", nsight),
        ):
            opened = self.run_import(self.written("t.json", json.dumps(content)), f"{name}.prof")
            self.assertEqual(
                {r.name: (r.total_ns, r.self_ns) for r in opened.aggregate()}, expected[name], name
            )

    def test_odd_values(self):
        """A byte order mark, duplicate keys (the last one counts, as Python's json has it), huge
        and negative numbers, deep nesting, hostile names."""
        one = '{"ph": "X", "name": "%s", "pid": 1, "tid": 1, "ts": %s, "dur": %s, "args": %s}'

        def names(content):
            return sorted(
                r.name for r in self.run_import(self.written("t.json", content)).aggregate()
            )

        self.assertEqual(names(b"\xef\xbb\xbf[" + (one % ("a", 1, 1, "{}")).encode() + b"]"), ["a"])
        self.assertEqual(
            names("[" + (one % ("a", 1, 1, "{}"))[:-1] + ', "name": "b", "dur": 7}]'), ["b"]
        )
        self.assertEqual(
            names(
                "[%s, %s, %s]"
                % (
                    one % ("a", 1, 1, "{}"),
                    one % ("b", "1e400", 1, "{}"),
                    one % ("c", 2, "-3", "{}"),
                )
            ),
            ["a"],
        )
        self.assertIn("1 with a time that is no number", self.said)
        self.assertIn("1 with a negative duration", self.said)
        self.assertEqual(
            names("[" + one % ("a", 1, 1, '{"x": ' + "[" * 20000 + "]" * 20000 + "}") + "]"), ["a"]
        )
        self.assertEqual(names("[" + one % ("a", 1, 1, '{"n": 1' + "0" * 400 + "}") + "]"), ["a"])
        hostile = [
            "../../etc/passwd",
            "\u202egnp.exe",
            "%s%n%99999d",
            "<script>alert(1)</script>",
            "a" * 100000,
            "\0b",
            "\ud800",
            "'; DROP TABLE",
            "\x1b[31m",
        ]
        opened = self.run_import(
            self.written(
                "t.json", json.dumps([x("c", name, 1, 10 * i, 5) for i, name in enumerate(hostile)])
            )
        )
        self.assertEqual(len(opened.aggregate()), len(hostile))
        opened.dump(self.path("back.json"))
        with open(self.path("back.json"), encoding="utf-8") as f:
            self.assertEqual(sum(e["ph"] == "X" for e in json.load(f)["traceEvents"]), len(hostile))

    def test_cut_at_every_place(self):
        """Whatever stands whole is taken, the place is said, and the package raises with it."""
        whole = json.dumps(trace(training_step()[:8])).encode()
        packed = gzip.compress(whole[:700]) + gzip.compress(whole[700:])
        for content, name, step in ((whole, "cut.json", 97), (packed, "cut.json.gz", 41)):
            # of gzip's end eight bytes are a check, behind which nothing stands
            for count in range(3, len(content) - 9, step):
                path = self.written(name, content[:count])
                with self.assertRaisesRegex(
                    ValueError, f"{name}' (ends|is empty|is damaged|is no JSON)"
                ):
                    prof.import_trace(path)
        self.assertEqual(sorted(os.listdir(self.folder)), ["cut.json", "cut.json.gz"])

    def test_progress_on_a_terminal_beyond_two_seconds(self):
        """A trace that comes slowly, through a pipe with a name: a line on the terminal, which goes
        in the end; elsewhere none."""
        import pty

        os.mkfifo(self.path("slow.json"))
        seen = bytearray()
        for is_terminal in (True, False):
            done_writing = threading.Event()

            def feed(enough=done_writing, is_terminal=is_terminal):
                begun, i = time.monotonic(), 0
                with open(self.path("slow.json"), "w") as f:
                    f.write("[")
                    limit = HANG_SECONDS if is_terminal else 3.5
                    while time.monotonic() - begun < limit:
                        if is_terminal and b"prof import: " in seen:
                            break
                        f.write(("," if i else "") + json.dumps(x("cpu_op", "a", 1, 10 * i, 5)))
                        f.flush()
                        i += 1
                        enough.wait(0.05)
                    f.write("]")

            ours, theirs = pty.openpty()
            writer = threading.Thread(target=feed)
            writer.start()
            run = subprocess.Popen(
                [COMMAND, "import", "slow.json", "-o", "t.prof"],
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=theirs if is_terminal else subprocess.PIPE,
            )
            os.close(theirs)
            try:
                while is_terminal:
                    got = os.read(ours, 4096)
                    seen += got
            except OSError:  # nobody has the other end any more
                pass
            said = seen if is_terminal else run.stderr.read()
            self.assertEqual(run.wait(HANG_SECONDS), 0, said)
            writer.join()
            os.close(ours)
            if run.stderr:
                run.stderr.close()
            if is_terminal and b"yajl" not in said:
                self.assertRegex(bytes(said), rb"^\rprof import: \d+ %.*\r\x1b\[K$")
            else:
                self.assertEqual(said, b"")

    def test_python_m_prof_import_is_the_command(self):
        whole = json.dumps(trace(training_step()))
        for name, text in (
            ("t.json", whole),
            ("cut.json", whole[:-300]),
            ("none.json", '{"a": 1}'),
            ("empty.json", ""),
            ("bad.json", whole.replace('"ph"', "ph", 1)),
            ("-o.json", whole),
        ):
            with open(self.path(name), "w") as f:
                f.write(text)
        if "yajl" in self.command("import", "t.json", "-o", "probe.prof").stderr:
            self.skipTest("the command was built without yajl, or it is not here")
        self.assertEqual(self.by_both("t.json").returncode, 0)
        self.assertEqual(self.by_both("t.json").returncode, 1)  # there is one now
        self.assertEqual(self.by_both("t.json", "-o", "t.prof").returncode, 0)
        self.assertEqual(self.by_both("cut.json", "-o", "cut.prof").returncode, 1)
        self.assertTrue(os.path.exists(self.path("cut.prof")))
        for name in ("none.json", "empty.json", "bad.json", "missing.json", "."):
            self.assertEqual(self.by_both(name, "-o", "x.prof").returncode, 1, name)
        self.assertFalse(os.path.exists(self.path("x.prof")))
        self.assertEqual(self.by_both("--", "-o.json").returncode, 0)
        self.assertEqual(self.by_both("t.json", "-o", "t.json").returncode, 2)

    def test_import_trace(self):
        """The package's own: a Trace, a file on request only, an exception with the place where the
        command reports it."""
        whole = json.dumps(trace(training_step()))
        with open(self.path("t.json"), "w") as f:
            f.write(whole)
        if "yajl" in self.command("import", "t.json", "-o", "t.prof").stderr:
            self.skipTest("the command was built without yajl, or it is not here")
        with prof.Trace.open(self.path("t.prof")) as there:
            expected = [tuple(row) for row in there.aggregate()]
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            before, tempfile.tempdir = tempfile.tempdir, temporary
            try:
                with prof.import_trace(self.path("t.json")) as taken:
                    self.assertEqual(os.listdir(temporary), [])
                    self.assertEqual([tuple(row) for row in taken.aggregate()], expected)
                    self.assertIn(
                        "taken: 1 of devices, whose launch is not in the trace", taken.notes
                    )
            finally:
                tempfile.tempdir = before
        prof.import_trace(self.path("t.json"), self.path("out.prof")).close()
        with prof.Trace.open(self.path("out.prof")) as taken:
            for name in ("again.json", "again.json.gz", "again.of a name that says nothing"):
                taken.export_chrome_trace(self.path(name))
                with (gzip.open if name.endswith(".gz") else open)(
                    self.path(name), "rt", encoding="utf-8"
                ) as f:
                    self.assertEqual(json.load(f), json.loads(taken.json()))
            with self.assertRaises(FileNotFoundError):
                taken.export_chrome_trace(self.path("no folder/t.json"))
        with open(self.path("out.prof"), "rb") as a, open(self.path("t.prof"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        cut = whole[: whole.index("Record Window End")]
        with open(self.path("cut.json"), "w") as f:
            f.write(cut)
        with self.assertRaisesRegex(
            ValueError, f"cut.json' ends in the middle, behind {len(cut)} bytes"
        ) as raised:
            prof.import_trace(self.path("cut.json"), self.path("out.prof"))
        self.assertIsInstance(raised.exception, prof.ProfError)
        self.assertRegex(str(raised.exception), "partial=True takes what stands whole before$")
        with open(self.path("out.prof"), "rb") as a, open(self.path("t.prof"), "rb") as b:
            self.assertEqual(a.read(), b.read())  # the old content stays
        self.assertEqual(
            [name for name in os.listdir(self.folder) if name.startswith("out.prof.")], []
        )
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with prof.import_trace(self.path("cut.json"), partial=True) as taken:
                self.assertEqual([tuple(row) for row in taken.aggregate()], expected)
        self.assertEqual([w.category for w in warned], [RuntimeWarning])
        with self.assertRaises(FileNotFoundError):
            prof.import_trace(self.path("missing.json"))
        with self.assertRaises(IsADirectoryError):
            prof.import_trace(self.folder)
        with self.assertRaisesRegex(OSError, "cannot write"):
            prof.import_trace(self.path("t.json"), self.path("none/t.prof"))
        with self.assertRaisesRegex(ValueError, "the trace itself"):
            prof.import_trace(self.path("t.json"), self.path("t.json"))
        with open(self.path("other.json"), "w") as f:
            f.write('{"a": 1}')
        with self.assertRaisesRegex(ValueError, "no traceEvents"):
            prof.import_trace(self.path("other.json"), partial=True)
        for wrong in (None, 3):
            with self.assertRaises(TypeError):
                prof.import_trace(wrong)

    def test_there_and_back(self):
        """prof's own JSON, imported: the same counts and times, launches and memory."""
        before = self.imported(training_step())
        self.assertEqual(self.command("dump", "t.prof", "-o", "back.json").returncode, 0)
        after = self.run_import("back.json", "back.prof")

        def told(opened):
            return sorted(
                (
                    r.name,
                    r.count,
                    r.total_ns,
                    r.self_ns,
                    r.device_total_ns,
                    r.self_device_ns,
                    r.device_count,
                    r.memory_bytes,
                    r.shape,
                )
                for r in opened.aggregate(group=("name", "shape"))
            )

        self.assertEqual(told(after), told(before))

    def test_many(self):
        """Threads of many chunks, events in no order, and scopes in each other: what comes out is
        what stands in the file."""
        events, count = [], 40000
        for i in range(count):
            events.append(x("cpu_op", f"aten::op{i % 7}", i % 3, 1000 * i, 900, i=i))
            events.append(x("cpu_op", "inner", i % 3, 1000 * i + 100, 300 + i % 2 / 1000))
        events = events[1::2] + events[0::2]
        opened = self.imported(events)
        rows = {r.name: r for r in opened.aggregate()}
        self.assertEqual(rows["inner"].count, count)
        self.assertEqual(rows["inner"].total_ns, 300000 * count + count // 2)
        self.assertEqual(sum(rows[f"aten::op{i}"].count for i in range(7)), count)
        self.assertEqual(
            sum(rows[f"aten::op{i}"].self_ns for i in range(7)), 600000 * count - count // 2
        )


if __name__ == "__main__":
    unittest.main()
