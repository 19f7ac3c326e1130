"""What a profile writes for viewers, and the modules that it needs or works beside."""

import contextlib
import gzip
import json
import os
import stat
import subprocess
import sys
import threading
import time
import unittest

from hang_guard import HANG_SECONDS
from recorded import counts, work
from test_profile import Base

import prof
from prof import tables


class Exports(Base):
    def test_an_open_scope_is_no_loss(self):
        with prof.profile() as p:
            prof.record_function("done")("x".upper)()
            left = prof.record_function("left")
            left.__enter__()
        p.export_chrome_trace(self.path("t.json"))
        left.__exit__(None, None, None)
        with open(self.path("t.json")) as f:
            said = [e for e in json.load(f)["traceEvents"] if e.get("cat") == "prof"]
        self.assertEqual(
            [("prof: no loss, some unfinished", 1)],
            [(e["name"], e["args"]["unfinished"]) for e in said],
        )

    def test_chrome_trace(self):
        with prof.profile() as p:
            work()
        p.export_chrome_trace(self.path("t.json"))
        p.export_chrome_trace(self.path("t.json.gz"))
        with open(self.path("t.json")) as plain, gzip.open(self.path("t.json.gz"), "rt") as packed:
            found = json.load(plain)
            self.assertEqual(found["traceEvents"], json.load(packed)["traceEvents"])
        self.assertEqual(
            sorted(e["name"] for e in found["traceEvents"] if e["ph"] == "X"),
            ["inner", "inner", "outer"],
        )

    def test_metadata(self):
        with prof.profile() as p:
            work()
        p.add_metadata("text", 'with "quotes"')
        p.add_metadata_json("list", "[1, 2]")
        with self.assertRaises(ValueError):
            p.add_metadata_json("bad", "{")
        with self.assertRaises(TypeError):
            p.add_metadata_json("bad", 3)
        p.export_chrome_trace(self.path("t.json.gz"))
        with gzip.open(self.path("t.json.gz"), "rt") as f:
            found = json.load(f)
        self.assertEqual((found["text"], found["list"]), ('with "quotes"', [1, 2]))

    def test_flags_and_a_key_that_the_trace_has_already(self):
        with prof.profile(
            record_shapes=True,
            with_stack=True,
            profile_memory=True,
            with_flops=True,
            custom_trace_id_callback=lambda: "mine",
        ) as p:
            work()
        p.add_metadata_json("distributedInfo", '{"backend": "gloo", "rank": 3, "world_size": 8}')
        for name in ("t.json", "t.json.gz"):
            p.export_chrome_trace(self.path(name))
            with (gzip.open if name.endswith("gz") else open)(self.path(name), "rb") as f:
                pairs = json.load(f, object_pairs_hook=lambda pairs: pairs)
            self.assertEqual(len(dict(pairs)), len(pairs), "a key stands twice")
            found = dict(pairs)
            self.assertEqual(
                [
                    found[k]
                    for k in (
                        "record_shapes",
                        "with_stack",
                        "profile_memory",
                        "with_flops",
                        "trace_id",
                    )
                ],
                [1, 1, 1, 1, "mine"],
            )
            self.assertEqual(dict(found["distributedInfo"])["rank"], 3)
            self.assertNotIn("with_modules", found)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["t.json", "t.json.gz"])

    def test_events_as_a_list(self):
        with prof.profile() as p:
            work()
        p.events().export_chrome_trace(self.path("e.json"))
        with open(self.path("e.json")) as f:
            self.assertEqual([e["name"] for e in json.load(f)], ["outer", "inner", "inner"])

    def test_paths(self):
        with prof.profile() as p:
            work()
        for path, error in (
            (self.path("no/such/t.json"), FileNotFoundError),
            (self.folder.name, OSError),
        ):
            with self.assertRaises(error):
                p.export_chrome_trace(path)
        p.add_metadata("a", "b")
        with self.assertRaises(FileNotFoundError):
            p.export_chrome_trace(self.path("no/such/t.json"))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_annotations_of_cuda_graphs_are_refused(self):
        with prof.profile() as p:
            work()
        path = self.path("t.json")
        for options in ({"cuda_graph_annotations": {1: {"a": 2}}}, {"graph_lanes": "all"}):
            ((name, value),) = options.items()
            with self.assertRaises(NotImplementedError) as raised:
                p.export_chrome_trace(path, **options)
            self.assertIn(f"{name}={value!r}", str(raised.exception))
        self.assertEqual(os.listdir(self.folder.name), [])
        p.export_chrome_trace(path, False, None, "none", 7)
        self.assertEqual(os.listdir(self.folder.name), ["t.json"])

    def test_what_is_no_file_stays_what_it_is(self):
        text = "a\n" * 100
        fifo, link, file, dangling = (
            self.path(name) for name in ("fifo", "link", "file", "dangling")
        )
        os.mkfifo(fifo)
        with self.assertRaisesRegex(OSError, "nobody reads from it"):
            tables.write_whole(fifo, text)
        got = []

        def read():
            with open(fifo) as f:
                got.append(f.read())

        reader = threading.Thread(target=read)
        reader.start()
        end = time.monotonic() + HANG_SECONDS
        while reader.is_alive() and time.monotonic() < end:
            with contextlib.suppress(OSError):
                tables.write_whole(fifo, text)
                break
        reader.join()
        self.assertEqual(got, [text])
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))
        os.symlink("/dev/null", self.path("null"))
        tables.write_whole(self.path("null"), text)
        self.assertEqual(os.readlink(self.path("null")), "/dev/null")
        with open(file, "w") as f:
            f.write("kept")
        for name, to in ((link, file), (dangling, self.path("no/such"))):
            os.symlink(to, name)
            tables.write_whole(name, text)
            self.assertFalse(os.path.islink(name))
        with open(file) as f:
            self.assertEqual(f.read(), "kept")
        before = sorted(os.listdir(self.folder.name))
        os.symlink("/dev/zero", self.path("zero"))
        for path, error in (
            (self.folder.name, IsADirectoryError),
            (self.path("zero"), OSError),
            ("", OSError),
        ):
            with self.assertRaises(error):
                tables.write_whole(path, text)
        self.assertTrue(os.path.islink(self.path("zero")))
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted([*before, "zero"]))

    def test_standard_output_goes_on_where_it_stands(self):
        code = (
            "import os\nfrom prof import tables\nos.write(1, b'before\\n')\n"
            "tables.write_whole('/dev/stdout', 'stacks\\n')\nos.write(1, b'behind\\n')"
        )
        with open(self.path("out"), "w+") as f:
            subprocess.run([sys.executable, "-c", code], stdout=f, timeout=HANG_SECONDS, check=True)
            f.seek(0)
            self.assertEqual(f.read(), "before\nstacks\nbehind\n")

    def test_tensorboard(self):
        with prof.profile(
            on_trace_ready=prof.tensorboard_trace_handler(self.path("log"), "worker", use_gzip=True)
        ):
            work()
        (name,) = os.listdir(self.path("log"))
        self.assertRegex(name, r"^worker\.\d+\.pt\.trace\.json\.gz$")
        open(self.path("file"), "w").close()
        with self.assertRaises(RuntimeError):
            prof.tensorboard_trace_handler(self.path("file"))(None)


class Modules(Base):
    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed for this Python")
        originals = numpy.matmul, numpy.zeros, numpy.add
        a, b = numpy.ones((4, 3), numpy.float32), numpy.ones((3, 5), numpy.float32)
        plain = numpy.matmul(a, b), numpy.add.reduce([1, 2, 3])
        try:
            self.assertGreater(prof.trace_module(numpy), 300)
            with prof.profile(record_shapes=True, with_flops=True) as p:
                traced = numpy.matmul(a, b), numpy.add.reduce([1, 2, 3])
                numpy.linalg.norm(numpy.einsum("ij,jk", a, b))
                with self.assertRaises(ValueError):
                    numpy.matmul(a, a)
        finally:
            prof.untrace_module(numpy)
        self.assertEqual((numpy.matmul, numpy.zeros, numpy.add), originals)
        self.assertTrue((traced[0] == plain[0]).all() and traced[1] == plain[1])
        rows = {(e.key, str(e.input_shapes)): e for e in p.key_averages(group_by_input_shape=True)}
        self.assertEqual(rows["numpy.matmul", "[[4, 3], [3, 5]]"].flops, 2 * 4 * 3 * 5)
        self.assertIn(("numpy.matmul", "[[4, 3], [4, 3]]"), rows)
        self.assertIn(("numpy.einsum", "[[4, 3], [3, 5]]"), rows)

    def test_a_module_is_seen(self):
        import math

        self.addCleanup(prof.untrace_module, math)
        original = math.sqrt
        self.assertGreater(prof.trace_module(math), 10)
        self.assertEqual(prof.trace_module(math), 0)
        with prof.profile() as p:
            self.assertEqual(math.sqrt(4), 2)
            with self.assertRaises(ValueError):
                math.sqrt(-1)
        self.assertEqual(counts(p.key_averages()), {"math.sqrt": 2})
        prof.untrace_module(math)
        self.assertIs(math.sqrt, original)
        with self.assertRaises(TypeError):
            prof.trace_module("math")
        with self.assertRaises(AttributeError):
            prof.trace_module(math, ["nothing"])


if __name__ == "__main__":
    unittest.main()
