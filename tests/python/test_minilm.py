"""examples/minilm/minilm.py: a runtime in C called from Python. The embeddings, one trace and one
table of both, levels, memory, threads, what is refused. Skipped where libminilm.so was not built or
the model was not fetched."""

import ctypes
import gc
import json
import os
import sys
import tempfile
import threading
import unittest

ROOT = os.environ.get("PROF_TEST_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
)
PROGRAM = os.path.join(ROOT, "examples", "minilm", "minilm.py")
sys.path.insert(0, os.path.dirname(PROGRAM))

for name in ("MINILM_LIBRARY", "PROF_LIBRARY"):
    if name in os.environ:
        os.environ[name] = os.path.abspath(os.environ[name])

import minilm  # noqa: E402

import prof  # noqa: E402
from prof import memory_profiler, profiler  # noqa: E402
from prof.trace import Trace  # noqa: E402

BOUND = 1e-4  # tests/minilm/test_minilm.c has the same


LAYERS = 6


OPERATORS = {
    "embedding": 1,
    "dense": 6 * LAYERS,
    "batch_matmul": 2 * LAYERS,
    "softmax": LAYERS,
    "gelu": LAYERS,
    "add": 2 * LAYERS,
    "layer_norm": 2 * LAYERS + 1,
    "mean_pool": 1,
    "l2_normalise": 1,
}
"""Of a batch, that is of at most four sentences."""


SENTENCES = [
    "The cat sits outside.",
    "A man is playing guitar.",
    "I love pasta!",
    "The new movie is awesome.",
    "The cat plays in the garden.",
    "x",
]


BATCHES = 2


ROUNDS = 100


def open_model():
    """Of $MINILM_LIBRARY. Skips for what is not there, and for nothing else."""
    try:
        return minilm.Minilm()
    except minilm.MinilmError as e:
        if "there is no" not in str(e) and "No such file" not in str(e):
            raise
        raise unittest.SkipTest(" ".join(str(e).split()).replace("'", '"')) from None


class Base(unittest.TestCase):
    def setUp(self):
        profiler.stop()
        profiler.clear()
        self.model = open_model()
        self.addCleanup(self.model.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def embedded(self, sentences):
        """Copies, and nothing left in the pool, whenever this Python collects."""
        rows = self.model.embed(sentences)
        try:
            return list(rows)
        finally:
            rows.close()

    def profiled(self, level=2, sentences=SENTENCES):
        """A profile of one call, in a scope of Python's between two others."""
        with prof.profile(profile_memory=True, level=level) as p:
            with prof.record_function("before"):
                pass
            with prof.scope("embed from Python", "stage", sentences=len(sentences)):
                self.rows = self.model.embed(sentences)
            with prof.record_function("after"):
                pass
        return p


class Embeddings(Base):
    def setUp(self):
        super().setUp()
        with open(
            os.path.join(ROOT, "tests", "data", "minilm-reference.json"), encoding="utf-8"
        ) as f:
            self.cases = json.load(f)["cases"]

    def compare(self, rows):
        self.assertEqual(len(rows), len(self.cases))
        for row, case in zip(rows, self.cases):
            self.assertEqual(len(row), len(case["embedding"]))
            self.assertLess(
                max(abs(a - b) for a, b in zip(row, case["embedding"])), BOUND, case["text"]
            )

    def test_together_equal_the_reference(self):
        self.compare(self.model.embed([case["text"] for case in self.cases]))

    def test_alone_equal_the_reference(self):
        self.compare([self.model.embed([case["text"]])[0] for case in self.cases])

    def test_recording_does_not_change_them(self):
        plain = self.embedded(SENTENCES)
        self.profiled()
        self.assertEqual(list(self.rows), plain)

    def test_they_are_a_sequence(self):
        rows = self.model.embed(SENTENCES)
        self.assertEqual((len(rows), self.model.width, len(rows[-1])), (6, 384, 384))
        self.assertEqual(rows[1:3], [rows[1], rows[2]])
        with self.assertRaises(IndexError):
            rows[6]
        rows[0][0] = 7.0  # a copy
        self.assertAlmostEqual(sum(x * x for x in rows[0]), 1.0, places=5)

    def test_any_text_has_one(self):
        for text in (
            "",
            " ",
            "a\0b",
            "\ud800 lone",
            "x" * 5000,
            "word " * 1000,
            "\U0010ffff\u200d",
            "東京",
        ):
            self.assertAlmostEqual(
                sum(x * x for x in self.model.embed([text])[0]), 1.0, places=4, msg=ascii(text[:20])
            )
        # a NUL does not end it
        self.assertNotEqual(self.model.embed(["a\0b"])[0], self.model.embed(["a"])[0])


class OneTrace(Base):
    def test_operators_stand_inside_of_pythons_scope(self):
        p = self.profiled(level=2)
        events = p.events()
        by_category = {}
        for e in events:
            by_category.setdefault(e.category, []).append(e)
        (outer,) = by_category["stage"]
        self.assertEqual(
            (outer.name, outer.args, outer.cpu_parent),
            ("embed from Python", {"sentences": 6}, None),
        )
        self.assertEqual({c.name for c in outer.cpu_children}, {"tokenize", "run", "MemoryRequest"})
        operators = [e for e in by_category["operator"] if e.name != "tokenize"]
        self.assertEqual(
            {n: sum(e.name == n for e in operators) for n in OPERATORS},
            {n: count * BATCHES for n, count in OPERATORS.items()},
        )
        self.assertEqual(len(operators), sum(OPERATORS.values()) * BATCHES)
        for e in operators:
            instruction = e.cpu_parent
            run = instruction.cpu_parent
            self.assertEqual(
                (instruction.category, run.name, run.cpu_parent), ("vm", "run", outer), e.name
            )
            self.assertEqual(
                [x.depth for x in (e, instruction, run)],
                [outer.depth + 3, outer.depth + 2, outer.depth + 1],
                e.name,
            )
            self.assertEqual(e.thread, outer.thread)
            for inside, around in ((e, instruction), (instruction, run), (run, outer)):
                self.assertGreaterEqual(inside.time_range.start, around.time_range.start)
                self.assertLessEqual(inside.time_range.end, around.time_range.end)
        tokenized = [e for e in by_category["operator"] if e.name == "tokenize"]
        self.assertEqual([e.cpu_parent for e in tokenized], [outer] * len(SENTENCES))
        before, after = by_category["user_annotation"]
        self.assertEqual((before.cpu_children, after.cpu_children), ([], []))
        self.assertLessEqual(before.time_range.end, outer.time_range.start)
        self.assertLessEqual(outer.time_range.end, after.time_range.start)

    def test_self_times_add_up(self):
        p = self.profiled(level=2)
        rows = {a.key: a for a in p.key_averages()}
        outer = rows.pop("embed from Python")
        del rows["before"], rows["after"]
        self.assertAlmostEqual(
            outer.self_cpu_time_total + sum(a.self_cpu_time_total for a in rows.values()),
            outer.cpu_time_total,
            delta=0.01 * outer.cpu_time_total,
        )
        self.assertEqual(
            {name: rows[name].count for name in OPERATORS},
            {name: count * BATCHES for name, count in OPERATORS.items()},
        )
        self.assertRegex(p.loss_text(), r"no loss|lost (\d+): \1 cleared$")

    def test_the_table_has_both(self):
        text = (
            self.profiled(level=1).key_averages().table(sort_by="self_cpu_time_total", row_limit=20)
        )
        for name in (*OPERATORS, "tokenize", "embed from Python", "Self CPU Mem"):
            self.assertIn(name, text)

    def test_the_exported_trace_has_both(self):
        p = self.profiled(level=2)
        p.export_chrome_trace(self.path("t.json"))
        with open(self.path("t.json"), encoding="utf-8") as f:
            written = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sorted(e["name"] for e in written), sorted(e.name for e in p.events()))
        (outer,) = [e for e in written if e["name"] == "embed from Python"]
        inside = [e for e in written if e["name"] in OPERATORS]
        self.assertEqual(len(inside), sum(OPERATORS.values()) * BATCHES)
        for e in inside:
            self.assertEqual((e["pid"], e["tid"]), (os.getpid(), outer["tid"]))
            self.assertGreaterEqual(e["ts"], outer["ts"])
            self.assertLessEqual(e["ts"] + e["dur"], outer["ts"] + outer["dur"] + 0.002)

    def test_levels(self):
        found = {}
        for level in (1, 2):
            profiler.clear()
            found[level] = {(e.category, e.name) for e in self.profiled(level).events()}
        self.assertEqual(
            {category for category, _ in found[1]}, {"operator", "stage", "user_annotation"}
        )
        self.assertEqual(
            {category for category, _ in found[2]},
            {"operator", "stage", "user_annotation", "vm", "memory"},
        )
        self.assertLess(found[1], found[2])
        for layer in range(LAYERS):
            self.assertIn(("vm", f"layer {layer} query"), found[2])

    def test_outside_of_a_profile_nothing_is_recorded(self):
        p = self.profiled(level=1)
        with Trace.now() as trace:
            count = int(trace.info().event_count)
        self.model.embed(SENTENCES)
        with Trace.now() as trace:
            self.assertEqual(int(trace.info().event_count), count)
        self.assertEqual(sum(a.count for a in p.key_averages() if a.key == "dense"), 36 * BATCHES)

    def test_there_is_one_copy_of_prof(self):
        with open("/proc/self/maps", encoding="utf-8") as f:
            self.assertEqual(len({line.split()[-1] for line in f if "libprof.so" in line}), 1)


class MemoryColumns(Base):
    def test_a_scope_of_pythons_has_what_it_took(self):
        for level in (1, 2):
            profiler.clear()
            p = self.profiled(level)
            rows = {a.key: a for a in p.key_averages()}
            taken = len(SENTENCES) * self.model.width * 4
            self.assertEqual(
                (rows["embed from Python"].cpu_memory_usage, self.model.memory().used_bytes),
                (taken, taken),
            )
            self.assertEqual(sum(a.self_cpu_memory_usage for a in rows.values()), taken)
            with prof.profile(profile_memory=True) as p:
                with prof.record_function("give back"):
                    self.rows.close()
            (row,) = p.key_averages()
            self.assertEqual(
                (row.key, row.cpu_memory_usage, self.model.memory().used_bytes),
                ("give back", -taken, 0),
            )

    def test_an_instruction_has_what_its_operator_writes(self):
        rows = {a.key: a for a in self.profiled(level=2).key_averages()}
        tokens = 16 * len(SENTENCES)  # each is padded to 16
        for layer in range(LAYERS):
            self.assertEqual(
                rows[f"layer {layer} query"].cpu_memory_usage, tokens * self.model.width * 4
            )
            self.assertEqual(
                rows[f"layer {layer} intermediate"].cpu_memory_usage,
                tokens * 4 * self.model.width * 4,
            )

    def test_peaks_and_sums_equal_the_pools_own_account(self):
        p = self.profiled(level=2)
        own = self.model.memory()
        most = memory_profiler.get_max_memory_info("cpu")
        self.assertGreater(own.used_peak_bytes, 0)
        self.assertEqual(
            (most["max_used_bytes"], most["max_allocated_bytes"]),
            (own.used_peak_bytes, own.reserved_peak_bytes),
        )
        self.assertEqual(
            (most["used_bytes"], most["allocated_bytes"]), (own.used_bytes, own.reserved_bytes)
        )
        p.export_chrome_trace(self.path("t.json"))
        with open(self.path("t.json"), encoding="utf-8") as f:
            told = [
                e["args"]["Bytes"] for e in json.load(f)["traceEvents"] if e["name"] == "[memory]"
            ]
        self.assertEqual(
            (sum(b > 0 for b in told), sum(b < 0 for b in told), sum(told)),
            (own.request_count, own.release_count, own.used_bytes),
        )
        self.assertIn("layer 0 intermediate", memory_profiler.report())


class Threads(Base):
    def test_two_at_once_each_with_its_own_scopes(self):
        # Until two operators of different threads have been at work at the same time, which a held
        # GIL would forbid: at most ROUNDS times.
        texts = {"first": SENTENCES[:4], "second": SENTENCES[2:]}
        alone = {name: self.embedded(texts[name]) for name in texts}
        got, errors, is_over = {}, [], threading.Event()

        def work(name):
            try:
                for _ in range(ROUNDS):
                    with prof.record_function(name):
                        got[name] = self.embedded(texts[name])
                    self.assertEqual(got[name], alone[name])
                    if is_over.is_set():
                        break
            except Exception as e:
                errors.append(e)

        with prof.profile() as p:
            threads = [threading.Thread(target=work, args=(name,)) for name in texts]
            for t in threads:
                t.start()
            while any(t.is_alive() for t in threads) and not self.overlap(p):
                pass
            is_over.set()
            for t in threads:
                t.join()
        self.assertEqual(errors, [])
        self.assertTrue(self.overlap(p), "no two operators ran at the same time")
        thread_of = {}
        for e in p.events():
            if e.name in texts:
                self.assertEqual(thread_of.setdefault(e.name, e.thread), e.thread)
                self.assertEqual(sum(c.name == "dense" for c in e.cpu_children), 36)
            elif e.name == "dense":
                self.assertIn(e.cpu_parent.name, texts)
        self.assertEqual(len(set(thread_of.values())), 2)
        self.assertEqual(self.model.memory().used_bytes, 0)

    @staticmethod
    def overlap(p):
        operators = sorted(
            (e.time_range.start, e.time_range.end, e.thread)
            for e in p.events()
            if e.name == "dense"
        )
        return any(a[2] != b[2] and b[0] < a[1] for a, b in zip(operators, operators[1:]))


class Refusals(Base):
    def test_of_sentences(self):
        for bad in ("one str", b"bytes", [1], ["a", None], [b"bytes"]):
            with self.assertRaisesRegex(TypeError, "sequence of str"):
                self.model.embed(bad)
        with self.assertRaisesRegex(ValueError, "no sentences"):
            self.model.embed([])

    def test_by_the_runtime(self):
        # What the class refuses before: C says it, too, and leaves the output as it was.
        rows, why = ctypes.c_void_p(7), minilm._Failure()
        status = self.model._library.minilm_embed(
            self.model._pointer, None, 0, ctypes.byref(rows), ctypes.byref(why)
        )
        self.assertEqual((status, rows.value, why.text), (-1, 7, b"there are no texts to embed"))

    def test_of_what_is_closed(self):
        rows = self.model.embed(["a"])
        rows.close()
        rows.close()
        with self.assertRaisesRegex(ValueError, "embeddings are closed"):
            rows[0]
        rows = self.model.embed(["a"])
        self.model.close()
        self.model.close()
        with self.assertRaisesRegex(ValueError, "embeddings are closed"):
            rows[0]
        rows.close()
        with self.assertRaisesRegex(ValueError, "model is closed"):
            self.model.embed(["a"])
        with self.assertRaisesRegex(ValueError, "model is closed"):
            self.model.memory()

    def test_what_nobody_has_is_given_back(self):
        rows = self.model.embed(SENTENCES)
        self.assertGreater(self.model.memory().used_bytes, 0)
        del rows
        gc.collect()
        self.assertEqual(self.model.memory().used_bytes, 0)

    def test_of_a_folder_or_a_library_that_is_none(self):
        with self.assertRaisesRegex(
            minilm.MinilmError, "(?s)config.json: No such file.*fetch-model.sh"
        ):
            minilm.Minilm(self.folder)
        with self.assertRaisesRegex(minilm.MinilmError, "(?s)there is no .*tools/build.sh"):
            minilm.load(self.path("libminilm.so"))
        with self.assertRaisesRegex(minilm.MinilmError, "cannot be used"):
            minilm.load(PROGRAM)


if __name__ == "__main__":
    unittest.main()
