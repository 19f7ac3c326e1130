"""What the tests of prof import share that make a trace event by event: a training step as
torch.profiler writes it, and the folder where it becomes a capture."""

import json
import os
import subprocess
import sys
import tempfile

from folder import Folder
from hang_guard import HANG_SECONDS

import prof

COMMAND = os.path.abspath(os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", "build/dev"), "prof"))


BASE_NS = 1735689600 * 10**9 + 7


def x(category, name, tid, ts, dur, pid=100, **args):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def trace(events, **members):
    head = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    return {**head, **members, "traceEvents": events, "traceName": "t.json"}


def training_step():
    """As Kineto writes one: in the order of begins, outer scopes first."""
    shapes = {
        "Input Dims": [[5, 3, 224, 224], [64, 3, 7, 7], [], []],
        "Input type": ["float", "float", "", "ScalarList"],
    }
    kernel = {
        "device": 1,
        "stream": 7,
        "context": 1,
        "queued": 0,
        "grid": [4, 1, 1],
        "block": [128, 1, 1],
        "registers per thread": 32,
        "est. achieved occupancy %": 25,
    }
    return [
        {
            "ph": "M",
            "name": "process_name",
            "pid": 100,
            "tid": 0,
            "ts": 0,
            "args": {"name": "python"},
        },
        {
            "ph": "M",
            "name": "thread_name",
            "pid": 100,
            "tid": 100,
            "ts": 0,
            "args": {"name": "thread 100 (python)"},
        },
        {
            "ph": "M",
            "name": "thread_name",
            "pid": 1,
            "tid": 7,
            "ts": 0,
            "args": {"name": "stream 7 "},
        },
        x("user_annotation", "ProfilerStep#3", 100, 1000.001, 900.5),
        x(
            "cpu_op",
            "aten::conv2d",
            100,
            1010.125,
            500.25,
            **{
                "External id": 1,
                "Record function id": 0,
                "Sequence number": 7,
                "Fwd thread id": 0,
                "Ev Idx": 1,
                "Call stack": "a.py(1): f;b.py(2): g",
                **shapes,
            },
        ),
        x("cpu_op", "aten::convolution", 100, 1010.125, 500.25, **{"External id": 2}),
        x(
            "cuda_runtime",
            "cudaLaunchKernel",
            100,
            1030,
            10.5,
            cbid=211,
            correlation=55,
            **{"External id": 2},
        ),
        x("cuda_runtime", "cudaMemcpyAsync", 100, 1050.25, 1.002, correlation=56),
        x(
            "cpu_op",
            "ConvolutionBackward0",
            101,
            1600,
            10,
            **{"Sequence number": 7, "Fwd thread id": 1},
        ),
        x("kernel", "void sgemm<float>(int)", 7, 1060.25, 33.333, pid=1, correlation=55, **kernel),
        x(
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            7,
            1100,
            5,
            pid=1,
            device=1,
            stream=7,
            correlation=56,
            bytes=1024,
        ),
        x("kernel", "nobody's", 7, 1110, 2, pid=1, device=1, stream=7, correlation=99),
        {"ph": "s", "id": 55, "pid": 100, "tid": 100, "ts": 1030, "cat": "ac2g", "name": "ac2g"},
        {
            "ph": "f",
            "id": 55,
            "pid": 1,
            "tid": 7,
            "ts": 1060.25,
            "cat": "ac2g",
            "name": "ac2g",
            "bp": "e",
        },
        {
            "ph": "s",
            "id": 7,
            "pid": 100,
            "tid": 100,
            "ts": 1010.125,
            "cat": "fwdbwd",
            "name": "fwdbwd",
        },
        {
            "ph": "f",
            "id": 7,
            "pid": 100,
            "tid": 101,
            "ts": 1600,
            "cat": "fwdbwd",
            "name": "fwdbwd",
            "bp": "e",
        },
        {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": 1021,
            "args": {
                "Total Allocated": 4096,
                "Bytes": 1024,
                "Addr": 5000,
                "Device Id": -1,
                "Device Type": 0,
            },
        },
        {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": 1022,
            "args": {
                "Total Allocated": 512,
                "Bytes": 512,
                "Addr": 6000,
                "Device Id": 1,
                "Device Type": 1,
            },
        },
        {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": 1700,
            "args": {
                "Total Allocated": 3072,
                "Bytes": -1024,
                "Addr": 5000,
                "Device Id": -1,
                "Device Type": 0,
            },
        },
        {
            "ph": "C",
            "cat": "x",
            "name": "queue",
            "pid": 100,
            "tid": 100,
            "ts": 1100,
            "args": {"value": 3.5},
        },
        {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Spans",
            "tid": "PyTorch Profiler",
            "ts": 1000,
            "dur": 1000,
            "args": {"Op count": 0},
        },
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 2000, "s": "g"},
    ]


class EventFolder(Folder):
    def command(self, *words):
        return subprocess.run(
            [COMMAND, *words], capture_output=True, text=True, timeout=HANG_SECONDS, cwd=self.folder
        )

    def run_import(self, path, output="t.prof"):
        done = self.command("import", path, "-o", output)
        if "yajl" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stdout + done.stderr
        opened = prof.Trace.open(self.path(output))
        self.addCleanup(opened.close)
        return opened

    def imported(self, events, output="t.prof", **members):
        with open(self.path("t.json"), "w") as f:
            json.dump(trace(events, **members), f)
        return self.run_import("t.json", output)

    def arguments_again(self, args):
        opened = self.imported([x("cpu_op", "many", 100, 10, 5, **args)])
        if len(args["Input Dims"]) <= 64:
            (row,) = opened.key_averages(group_by_input_shape=True)
            self.assertEqual(len(row.input_shapes), len(args["Input Dims"]))
        (back,) = [e["args"] for e in json.loads(opened.json())["traceEvents"] if e["ph"] == "X"]
        return back

    def memory(self, name, ts, **args):
        return {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": name,
            "pid": 100,
            "tid": 100,
            "ts": ts,
            "args": {"Device Id": 0, "Device Type": 1, **args},
        }

    def written(self, name, content):
        with open(self.path(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def refused(self, content, says, name="other.json"):
        """By the command and by the package, with the same words; nothing stands under the
        capture's name."""
        path = self.written(name, content)
        done = self.command("import", path, "-o", "none.prof")
        if "yajl" in done.stderr and "built" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(
            (done.returncode, sorted(os.listdir(self.folder))), (1, [name]), done.stderr
        )
        with self.assertRaises(ValueError) as raised:
            prof.import_trace(path, self.path("none.prof"))
        self.assertEqual(sorted(os.listdir(self.folder)), [name])
        for text in (done.stderr, str(raised.exception)):
            self.assertIn(says, text)
            self.assertIn(path, text)
        os.unlink(path)

    def by_both(self, *words):
        """What the command says and gives, and ``python -m prof import``, each in a folder of its
        own that begins like the others."""
        with tempfile.TemporaryDirectory() as other:
            for name in os.listdir(self.folder):
                with (
                    open(self.path(name), "rb") as f,
                    open(os.path.join(other, name), "wb") as copy,
                ):
                    copy.write(f.read())
            found = self.command("import", *words)
            module = subprocess.run(
                [sys.executable, "-m", "prof", "import", *words],
                capture_output=True,
                text=True,
                timeout=HANG_SECONDS,
                cwd=other,
            )
            self.assertEqual(
                (module.stdout, module.stderr, module.returncode),
                (found.stdout, found.stderr, found.returncode),
                words,
            )
            for name in os.listdir(self.folder):
                with (
                    open(self.path(name), "rb") as f,
                    open(os.path.join(other, name), "rb") as copy,
                ):
                    self.assertEqual(f.read(), copy.read(), name)
            self.assertEqual(sorted(os.listdir(other)), sorted(os.listdir(self.folder)))
        return found
