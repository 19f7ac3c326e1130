"""examples/minilm/minilm.py: a runtime in C called from Python. The embeddings, one trace and one
table of both, levels, memory, threads, what is refused. Skipped where libminilm.so was not built or
the model was not fetched."""

import ctypes
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from hang_guard import HANG_SECONDS

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

PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(prof.__file__)))
LIBRARY = os.environ.get("PROF_LIBRARY") or os.path.join(PACKAGES, "prof", "lib", "libprof.so.0")
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


class Program(Base):
    def run_program(self, *arguments, stdin="", **variables):
        environment = {**os.environ, "PYTHONPATH": PACKAGES, **variables}
        return subprocess.run(
            [sys.executable, "-S", PROGRAM, *arguments],
            capture_output=True,
            text=True,
            input=stdin,
            timeout=HANG_SECONDS,
            cwd=self.folder,
            env=environment,
        )

    def test_default(self):
        done = self.run_program()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in (
            "Sentences: 12, each embedded as 384 floats",
            "a cup of tea",
            "dense",
            "python: ",
            "Self CPU Mem",
            "The pool's peaks",
            "minilm-python-trace.json",
        ):
            self.assertIn(text, done.stdout)
        with open(self.path("minilm-python-trace.json"), encoding="utf-8") as f:
            names = {e["name"] for e in json.load(f)["traceEvents"]}
        self.assertLessEqual(
            {
                "python: open the model",
                "python: embed",
                "python: nearest pairs",
                "layer 3 key",
                "dense",
            },
            names,
        )

    def test_on_a_device(self):
        """The same pairs, and the device's columns and memory in Python's table."""
        own = {"OCL_ICD_VENDORS": "", "POCL_CACHE_DIR": self.folder}
        done = self.run_program("--device", "opencl", "--level", "1", **own)
        if done.returncode and re.search(
            "there is no OpenCL|OpenCL has no device|without OpenCL's headers", done.stderr
        ):
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        pairs = re.compile(r"  \d\.\d{3}  .*\n         .*\n")
        self.assertEqual(
            pairs.findall(done.stdout), pairs.findall(self.run_program("--level", "1").stdout)
        )
        for text in ("Self OPENCL %", "OPENCL total", "Self OPENCL Mem", "Self OPENCL time total"):
            self.assertIn(text, done.stdout)
        row = next(
            line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["dense"]
        )
        self.assertEqual((row[-1], float(re.sub("[a-z]+$", "", row[6])) > 0), ("108", True), row)
        peaks = re.search(
            r"peaks: (\S+) MiB used, (\S+) MiB allocated. By its own account: (\S+) and (\S+) MiB",
            done.stdout,
        )
        self.assertEqual(peaks.group(1, 2), peaks.group(3, 4))
        self.assertGreater(float(peaks[1]), 86)  # the weights

    def test_sentences_of_the_user(self):
        done = self.run_program(
            "--level", "1", "--out", "t.json", "--file", "-", stdin="tea\n\ncup of tea\nrain\n"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"Sentences: 3, .*\n  0\.\d{3}  tea\n         cup of tea\n")
        self.assertNotRegex(done.stdout, r"layer \d")
        done = self.run_program("only one")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("nearest to each other", done.stdout)

    def test_what_is_wrong_is_said(self):
        open(self.path("libcuda.so.1"), "w").close()  # before the machine's own
        for arguments, variables, text in (
            (["--file", os.devnull], {}, "there are no sentences"),
            (["--file", "nothing.txt"], {}, "nothing.txt"),
            (["--model", self.folder], {}, "fetch-model.sh"),
            (["--out", "no/where.json"], {}, "no/where.json"),
            ([], {"MINILM_LIBRARY": self.path("none.so")}, "tools/build.sh"),
            ([], {"PYTHONPATH": ""}, "pip install ./bindings/python"),
            (
                ["--device", "opencl"],
                {"OCL_ICD_VENDORS": os.path.join(ROOT, "tests", "device", "no-drivers")},
                "OpenCL",
            ),
            (["--device", "cuda"], {"LD_LIBRARY_PATH": self.folder}, "there is no CUDA"),
        ):
            done = self.run_program(*arguments, **variables)
            self.assertEqual((done.returncode, "Traceback" in done.stderr), (1, False), done.stderr)
            self.assertRegex(done.stderr, "^minilm.py: ")
            self.assertIn(text, done.stderr)
        self.assertEqual(self.run_program("--file", "a.txt", "a sentence").returncode, 2)


ACTIVITIES = """
import json, os, sys, time
sys.path.insert(0, os.path.dirname({program!r}))
import minilm, prof
cpu, device = prof.ProfilerActivity.CPU, prof.ProfilerActivity.PrivateUse1
chosen = {{"none": None, "cpu": [cpu], "device": [cpu, device]}}
model = minilm.Minilm(device="opencl")
late = 0


def kernels(path):
    # Kernels in the file, and those that were lost because the collector did not run before the
    # stop. Each is counted.
    global late
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    ran = [e["cat"] for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] > 5000000]
    before, late = late, trace["prof"]["lost"]["device_late"]
    lost = late - before if late >= before else late
    return ran.count("kernel") + lost, ran.count("gpu_user_annotation") > 0


for name in sys.argv[1:]:
    with prof.profile(activities=chosen[name]) as p:
        model.embed(["a"]).close()
    p.export_chrome_trace(name + ".json")
    events, lost = p.events(), late
    ran, has_sides = kernels(name + ".json")
    print(name, ran, has_sides)
    if name == "device":  # each event has its kernels, and averages are their sums
        of_events = sum(e.self_device_time_total for e in events)
        of_rows = sum(a.self_device_time_total for a in p.key_averages())
        seen = sum(len(e.kernels) for e in events) + late - lost
        print(seen >= 2 * ran, abs(of_events / of_rows - 1) < 0.01)
with prof.profile(activities=chosen["device"]) as p:
    for is_on in (True, False, True):
        p.toggle_collection_dynamic(is_on, [prof.ProfilerActivity.PrivateUse1])
        time.sleep(0.2)  # where the collector has no processor, it comes later
        model.embed(["a"]).close()
p.export_chrome_trace("toggled.json")
print("toggled", kernels("toggled.json")[0])
print(sorted(a.name for a in prof.supported_activities()))
"""


class Activities(Base):
    """Which of a device's sides are recorded, with the layer that records kernels by itself."""

    def test_kernels_are_recorded_unless_they_are_left_out(self):
        layer = os.path.join(os.path.dirname(os.path.abspath(LIBRARY)), "libprof_opencl.so")
        if not os.path.exists(layer):
            self.skipTest("libprof_opencl.so is not beside the library: it is no part of the wheel")
        own = {
            **os.environ,
            "OCL_ICD_VENDORS": "",
            "OPENCL_LAYERS": layer,
            "POCL_CACHE_DIR": self.folder,
            "PYTHONPATH": PACKAGES,
        }
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                ACTIVITIES.format(program=PROGRAM),
                "none",
                "cpu",
                "device",
                "cpu",
                "none",
            ],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            cwd=self.folder,
            env=own,
        )
        if done.returncode and re.search(
            "there is no OpenCL|OpenCL has no device|without OpenCL's headers", done.stderr
        ):
            self.skipTest(done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.stderr, "")
        kernels = sum(OPERATORS.values())
        lines = [
            f"{name} {0 if name == 'cpu' else kernels} True"
            for name in ("none", "cpu", "device", "cpu", "none")
        ]
        lines.insert(3, "True True")
        self.assertEqual(
            done.stdout.splitlines(), [*lines, f"toggled {2 * kernels}", "['CPU', 'PrivateUse1']"]
        )


COPIES = """
import os, sys, warnings
sys.path.insert(0, os.path.dirname({program!r}))
import minilm, prof
warnings.simplefilter("always")
for step in sys.argv[1:]:
    if step == "runtime":
        model = minilm.Minilm()
    else:
        profiler = prof.profiler
with prof.profile() as p:
    model.embed(["a"])
with open("/proc/self/maps") as f:
    libraries = {{line.split()[-1] for line in f if "libprof" in line}}
print(len(libraries), any(a.key == "dense" for a in p.key_averages()))
"""


class Copies(Base):
    """Which copy of prof is used, for each order of imports."""

    def run_steps(self, *steps, **variables):
        environment = {key: value for key, value in os.environ.items() if key != "PROF_LIBRARY"}
        return subprocess.run(
            [sys.executable, "-c", COPIES.format(program=PROGRAM), *steps],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            env={**environment, "PYTHONPATH": PACKAGES, **variables},
        )

    def test_the_runtimes_copy_is_found(self):
        done = self.run_steps("runtime", "prof")
        self.assertEqual((done.stdout, done.stderr), ("1 True\n", ""))

    def test_a_copy_that_prof_opened_first_serves_the_runtime(self):
        other = self.path("libprof.so.0")
        shutil.copyfile(LIBRARY, other)
        done = self.run_steps("prof", "runtime", PROF_LIBRARY=other)
        self.assertEqual((done.stdout, done.stderr), ("1 True\n", ""))

    def test_a_second_copy_is_warned_of(self):
        other = self.path("libprof.so.0")
        shutil.copyfile(LIBRARY, other)
        done = self.run_steps("runtime", "prof", PROF_LIBRARY=other)
        self.assertEqual(done.stdout, "2 False\n")
        self.assertIn("another copy", done.stderr)


if __name__ == "__main__":
    unittest.main()
