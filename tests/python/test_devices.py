"""What tables and events say of devices: a trace that tests/device/views writes, of an emulated
one. Skipped where that was not built."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import slices
from folder import Folder

from prof import tables
from prof.trace import Trace

VIEWS = os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", ""), "tests", "device", "views")
KERNELS, KERNEL_US = 12, 400.0


@unittest.skipUnless(os.path.exists(VIEWS), "tests/device/views is not here")
class Devices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "views.prof")
            subprocess.run(
                [VIEWS, path],
                check=True,
                env={k: v for k, v in os.environ.items() if not k.startswith("PROF_")},
            )
            cls.trace = Trace.open(path)
        cls.windows = [tables.Window(cls.trace, 0, 0, 0, 0)]

    @classmethod
    def tearDownClass(cls):
        cls.trace.close()

    def stretch_error_us(self):
        """By how much a kernel may be too short or too long on the host's clock. The distance of
        the readings of the device's clock depends on the machine. prof must keep the truth inside
        the bounds."""
        return (
            2
            * (self.trace.devices()[0].clock_error_ns + self.trace.info().clock_error_ns + 1)
            / 1000
        )

    def test_averages_have_what_devices_took(self):
        rows = {row.key: row for row in tables.averages(self.windows, False, 0, False, False)}
        self.assertEqual(set(rows), {"layer", "norm", "kernel", "outer", "inner", "nobody's"})
        self.assertGreater(
            rows["kernel"].self_device_time_total, KERNELS * (KERNEL_US - self.stretch_error_us())
        )
        self.assertEqual(rows["kernel"].device_time_total, rows["kernel"].self_device_time_total)
        self.assertEqual(rows["layer"].device_time_total, rows["kernel"].device_time_total)
        self.assertEqual(
            (rows["layer"].self_device_time_total, rows["norm"].device_time_total), (0, 0)
        )
        self.assertAlmostEqual(
            rows["kernel"].cuda_time, rows["kernel"].self_cuda_time_total / KERNELS
        )
        self.assertAlmostEqual(
            rows["outer"].device_time_total,
            rows["outer"].self_device_time_total + rows["inner"].self_device_time_total,
        )

    def test_the_table_has_the_columns_of_torch_profiler(self):
        averages = tables.averages(self.windows, False, 0, False, False)
        lines = averages.table(sort_by="self_cuda_time_total").splitlines()
        self.assertRegex(
            lines[1],
            r"CPU time avg +Self DEVICE +Self DEVICE % +DEVICE total +DEVICE time avg +# of Calls",
        )
        self.assertEqual(
            lines[3].split()[0], max(averages, key=lambda row: row.self_device_time_total).key
        )
        shares = [float(line.split("%")[2].split()[-1]) for line in lines[3:9]]
        self.assertAlmostEqual(sum(shares), 100, delta=0.05)
        self.assertRegex(lines[-1], r"^Self DEVICE time total: \d+\.\d+ms$")

    def test_events_have_their_kernels(self):
        events = tables.single_events(self.windows, False, False)
        self.assertEqual(len(events), 21)  # the host's alone
        by_name = {}
        for event in events:
            by_name.setdefault(event.name, []).append(event)
        for event in by_name["kernel"]:
            self.assertEqual([(k.name, k.device) for k in event.kernels], [("kernel", 1)])
            self.assertGreaterEqual(event.device_time_total, KERNEL_US - self.stretch_error_us())
        layers = by_name["layer"]
        self.assertAlmostEqual(
            sum(e.device_time_total for e in layers),
            sum(e.device_time_total for e in by_name["kernel"]),
        )
        self.assertEqual(sum(len(e.kernels) for e in layers), 0)
        averages = {row.key: row for row in events.key_averages()}
        self.assertAlmostEqual(
            averages["kernel"].device_time_total,
            sum(e.device_time_total for e in by_name["kernel"]),
        )

    def test_sorted_by_devices(self):
        totals = [row.device_total_ns for row in self.trace.aggregate("name", sort="device")]
        self.assertEqual(totals, sorted(totals, reverse=True))
        rows = self.trace.aggregate("name", sort="self_device")
        self.assertEqual(sum(row.self_device_ns for row in rows), rows.total_self_device_ns)
        self.assertTrue(rows.has_device)

    def test_what_is_known_of_devices(self):
        emulated, nobodys = self.trace.devices()
        self.assertEqual(
            (
                emulated.device.type,
                emulated.device.index,
                emulated.is_emulated,
                emulated.scope_count,
            ),
            (12, 1, 1, KERNELS + 2),
        )
        self.assertEqual(emulated.name, b"emulated accelerator")
        self.assertGreater(emulated.clock_error_ns, 0)
        self.assertEqual((nobodys.device.type, nobodys.result), (77, -6))
        self.assertIn(b"no back end", nobodys.reason)


ON_A_QUEUE = r"""
import ctypes, sys
from prof import op_profiler

try:
    cl = ctypes.CDLL("libOpenCL.so.1")
    platform, device, error = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    all_types = ctypes.c_uint64(0xFFFFFFFF)
    is_there = cl.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0 and (
        cl.clGetDeviceIDs(platform, all_types, 1, ctypes.byref(device), None) == 0
    )
except OSError:
    is_there = False
if not is_there:
    sys.exit(77)
for name in ("clCreateContext", "clCreateCommandQueueWithProperties", "clCreateBuffer"):
    getattr(cl, name).restype = ctypes.c_void_p
BYTES = 4 << 20
told, size = ctypes.byref(error), ctypes.c_size_t(BYTES)
context = ctypes.c_void_p(cl.clCreateContext(None, 1, ctypes.byref(device), None, None, told))
memory = ctypes.c_void_p(cl.clCreateBuffer(context, ctypes.c_uint64(1), size, None, told))
def make_queue(*properties):
    listed = (ctypes.c_uint64 * 3)(*properties)
    return cl.clCreateCommandQueueWithProperties(context, device, listed, told)
queues, plain, flushed = [make_queue(0x1093, 2), make_queue(0x1093, 2)], make_queue(0), []
pattern = ctypes.c_uint(7)
def fill(queue):
    filled = ctypes.byref(pattern), ctypes.c_size_t(4), ctypes.c_size_t(0), size
    assert cl.clEnqueueFillBuffer(ctypes.c_void_p(queue), memory, *filled, 0, None, None) == 0
def flush():
    flushed.append(cl.clFlush(ctypes.c_void_p(queues[0])))
def fail():
    raise LookupError("flush")

def op(key):
    return op_profiler.Op(fill, queues[0], key=key)
each = dict(exec=1, repeat=5, repeat_all=1, stream=queues[0])
once = op_profiler.profile(op("fill"), "opencl", flush=flush, **each)
# 1 TB/s: no machine fills as fast
assert once.sample_count == 5 and once.min_us > BYTES / 1e6, once
assert len(flushed) > 5 and not any(flushed)
assert op_profiler.profile(op("fill"), "opencl", **each).was_kept
two = op_profiler.profile_in_turn([op("a"), op("b")], "opencl", flush=flush, **each)
assert [r.sample_count for r in two] == [5, 5] and min(r.min_us for r in two) > BYTES / 1e6, two
ops = [op_profiler.Op(fill, queue) for queue in queues]
group = op_profiler.ProfileGroup(ops, "opencl", queues, 1, 1, 5)
assert len(group["latency"]) == 5 and min(x.value for x in group["latency"]) > BYTES / 1e6, group
def on_a_plain_queue():
    op_profiler.profile(op_profiler.Op(fill, plain), "opencl", stream=plain)
def with_a_flush_that_fails():
    op_profiler.profile(op("another"), "opencl", stream=queues[0], flush=fail)
def with_too_few_streams():
    op_profiler.ProfileGroup([fill, fill], "opencl", queues[:1])
for wanted, call in (
    ("CL_QUEUE_PROFILING_ENABLE", on_a_plain_queue),
    ("no back end serves", lambda: op_profiler.profile(fill, "oneapi", stream=1)),
    ("flush", with_a_flush_that_fails),
    ("flush is a stream's", lambda: op_profiler.profile(fill, "opencl", flush=flush)),
    ("flush is a stream's", lambda: op_profiler.profile_in_turn([fill], "opencl", flush=flush)),
    ("a stream for each, not 1", with_too_few_streams),
):
    try:
        call()
    except Exception as e:
        assert wanted in str(e), (wanted, e)
    else:
        raise AssertionError(wanted)
print("all is well")
"""


# emulated: no device is behind them
VENDORS = os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", ""), "tests", "device", "vendors")

ON_CUDA = r"""
import ctypes, os, sys
from prof import op_profiler

cuda = ctypes.CDLL(os.path.join(sys.argv[1], "libcuda.so.1"))
# Loaded as PyTorch does it, and kept, or PyPy unloads it. It reports a power cap on device 0.
nvml = ctypes.CDLL(os.path.join(sys.argv[1], "libnvidia-ml.so.1"))
context, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
def allocate():
    places = [ctypes.c_uint64() for _ in range(2)]
    for at in places:
        assert cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(1500)) == 0
    for at in places:
        assert cuda.cuMemFree_v2(at) == 0
each = dict(exec=1, repeat=6, repeat_all=1, stream=stream.value)
plain = op_profiler.profile(op_profiler.Op(allocate, key="plain"), "cuda", **each)
assert (plain.workspace_source, plain.has_workspace) == ("unknown", 0), plain.info
asked = op_profiler.profile(op_profiler.Op(allocate, key="asked"), "cuda", vendor_memory=1, **each)
found = asked.workspace_bytes, asked.workspace_source, asked.workspace_status
assert found == (3000, "vendor", 0), asked.info
assert "workspace 3000 bytes by the vendor's library" in str(asked), asked
assert "device throttled" in asked.doubts and asked.looks > 0 and asked.throttle == 4, asked.info
assert "throttled by its power" in str(asked), asked
op = op_profiler.Op(allocate, key="said", workspace=lambda: 5)
said = op_profiler.profile(op, "cuda", vendor_memory=1, **each)
assert (said.workspace_bytes, said.workspace_source) == (5, "said"), said.info
for cold, is_device_warm, text in (
    (None, 1, "the host's caches cold, the device's as they were"),
    (lambda: None, 0, "cold caches"),
):
    op = op_profiler.Op(lambda: None, key="cold")
    result = op_profiler.profile(op, "cuda", caches="cold", cold=cold, **each)
    assert result.is_device_warm == is_device_warm and text in str(result), result
compared = op_profiler.compare(plain, asked)
assert compared.order == "unclear" and "device throttled" in compared.doubts, compared
assert "had its device throttled" in str(compared), compared
try:
    op_profiler.profile(allocate, "cuda", vendor_memory=2)
except ValueError as e:
    assert "vendor_memory" in str(e), e
else:
    raise AssertionError("vendor_memory=2")
print("all is well")
"""


CALLS = os.path.join(os.environ.get("PROF_TEST_BUILD_DIR", ""), "tests", "unit", "reader_calls")


@unittest.skipUnless(os.path.exists(CALLS), "tests/unit/reader_calls is not here")
class Calls(unittest.TestCase):
    """A layer in a model makes two calls of CUDA's, one with the driver's in it, and each launches
    a kernel."""

    def test_what_a_call_launched_is_its_scopes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "calls.prof")
            subprocess.run([CALLS, path], check=True)
            trace = Trace.open(path)
        with trace:
            made = [(e.name, e.depth) for e in trace.events() if e.is_call and e.thread == 0]
            self.assertEqual(
                made, [("cudaLaunchKernel", 2), ("cuLaunchKernel", 3), ("cudaLaunchKernel", 2)]
            )
            events = tables.single_events([tables.Window(trace, 0, 0, 0, 0)], False, False)
            first = [e for e in events if e.thread == 1]
            rows = [(e.name, len(e.kernels), round(e.self_cpu_time_total, 3)) for e in first]
            self.assertEqual(
                rows,
                [
                    ("model", 0, 7.0),
                    ("layer", 2, 0.4),
                    ("cudaLaunchKernel", 0, 0.2),
                    ("cuLaunchKernel", 0, 0.1),
                    ("cudaLaunchKernel", 0, 0.3),
                ],
            )
            parents = {e.cpu_parent.name for e in first if e.name == "cudaLaunchKernel"}
            self.assertEqual(parents, {"layer"})


class CallsOfOperators(Folder):
    """A vendor's call has the External id of the innermost operator or range around it, in the JSON
    and in events(). The operator's id is its place by begin."""

    def launch(self, name, begin, end, number=0, category="cuda_runtime"):
        self.traced.put(name, begin, end, category, correlation=number or self.next)
        self.next += 1

    def setUp(self):
        super().setUp()
        self.next, self.traced = 1000, slices.Trace()
        t = self.traced
        t.put("step", 0, 900, "user_annotation")
        t.op("aten::linear", 10, 400)
        t.op("aten::addmm", 20, 300)
        t.kernel("gemm", 30, 40, 50, 1)
        self.launch("outer", 60, 90)
        self.launch("inner", 65, 80, category="cuda_driver")
        t.op("aten::add", 100, 200)
        self.launch("in add", 110, 120)
        self.launch("behind add", 210, 220)
        self.launch("in linear", 310, 320)
        t.op("mine::op", 410, 600)
        t.function("a.py(1): f", 420, 590)
        t.function("a.py(9): g", 430, 580)
        self.launch("in functions", 440, 450)
        self.launch("in functions, too", 460, 470)
        t.put("a scope", 610, 650, "scope")
        self.launch("in a scope", 620, 630)
        self.launch("in the step", 700, 710)
        t.function("a.py(2): h", 910, 990)
        self.launch("in a function alone", 920, 930)
        self.launch("in nothing", 1000, 1010)
        t.op("aten::relu", 1020, 1060)
        self.launch("in relu", 1030, 1040)
        t.op("aten::relu", 1025, 1060, thread=2)
        t.put("on another thread", 1030, 1040, "cuda_runtime", 2, correlation=7)

    def test_the_json_and_events_agree(self):
        again = self.path("again.json")
        with self.traced.read(self.path("trace.json")) as read:
            read.dump(again)
            events = tables.single_events([tables.Window(read, 0, 0, 0, 0)], False, False)
            ids = {e.trace_name: (e.external_id, e.category) for e in events if e.external_id}
        with open(again, encoding="utf-8") as f:
            rows = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
        written = {e["name"]: e["args"].get("External id") for e in rows}
        order = ("step", "aten::linear", "aten::addmm", "aten::add", "mine::op")
        for number, name in enumerate(order, 1):
            self.assertEqual((ids[name][0], written[name]), (number, number), name)
        owners = {
            "gemm": "aten::addmm",
            "cudaLaunchKernel": "aten::addmm",
            "outer": "aten::addmm",
            "inner": "aten::addmm",
            "in add": "aten::add",
            "behind add": "aten::addmm",
            "in linear": "aten::linear",
            "in functions": "mine::op",
            "in functions, too": "mine::op",
            "in a scope": "a scope",
            "in the step": "step",
            "in a function alone": "a.py(2): h",
        }
        relu = {(e["tid"], e["args"]["External id"]) for e in rows if e["name"] == "aten::relu"}
        in_relu = [e for e in rows if e["name"] in ("in relu", "on another thread")]
        calls = {(e["tid"], e["args"]["External id"]) for e in in_relu}
        self.assertEqual((relu, len(relu)), (calls, 2))
        for name, owner in owners.items():
            self.assertEqual(written[name], written[owner], name)
            if owner in order and name != "gemm":
                self.assertEqual(ids[name][0], ids[owner][0], name)
        self.assertEqual(written["in nothing"], 0)
        for name in ("in nothing", "in a function alone", "a scope"):
            self.assertNotIn(name, ids)
        operators = [e for e in rows if e["cat"] in ("cpu_op", "user_annotation")]
        numbers = [e["args"]["External id"] for e in operators]
        self.assertEqual(sorted(numbers), list(range(1, len(numbers) + 1)))


class Asynchronous(Folder):
    """An asynchronous range is no thread's own time, and holds nothing: nor does it what was
    launched meanwhile."""

    def test_a_range_has_nothing_of_the_device(self):
        t = slices.Trace()
        for at, number in ((0, 1), (1000, 3)):
            t.put("step", at + 10, at + 210, "user_annotation")
            t.op("aten::conv2d", at + 30, at + 80)
            t.kernel("conv", at + 40, at + 60, at + 80, number)
            t.kernel("fill", at + 100, at + 120, at + 140, number + 1)
            t.put("gloo:all_reduce", at + 20, at + 320, "user_annotation", asynchronous=True)
            t.put(
                "handed over",
                at + 25,
                at + 110,
                "user_annotation",
                **{"ended on another thread": True},
            )
        with t.read(self.path("trace.json")) as read:
            took = {
                "step": (80, 40),
                "aten::conv2d": (40, 40),
                "gloo:all_reduce": (0, 0),
                "handed over": (0, 0),
            }
            events = tables.single_events([tables.Window(read, 0, 0, 0, 0)], False, False)
            for averages in (read.key_averages(), events.key_averages()):
                self.assertEqual(
                    {
                        row.key: (row.device_time_total, row.self_device_time_total)
                        for row in averages
                        if row.key in took
                    },
                    took,
                )

    def test_what_nothing_else_stood_around_keeps_its_own_row(self):
        t = slices.Trace()
        t.put("nccl:all_reduce", 20, 320, "user_annotation", asynchronous=True)
        t.kernel("ncclKernel", 40, 60, 80, 1)
        with t.read(self.path("trace.json")) as read:
            rows = {row.name: row for row in read.aggregate()}
        self.assertEqual(
            {name: (row.self_device_ns, row.device_count) for name, row in rows.items()},
            {"nccl:all_reduce": (0, 0), "cudaLaunchKernel": (0, 0), "ncclKernel": (20000, 1)},
        )


class Operators(unittest.TestCase):
    @unittest.skipUnless(
        os.path.exists(os.path.join(VENDORS, "libcuda.so.1")),
        "the emulated libcuda.so.1 is not here",
    )
    def test_an_operator_on_a_stream_says_what_cuda_handed_out_and_what_held_it_down(self):
        env = {**os.environ, "PROF_BACKEND_CUPTI": os.path.join(VENDORS, "libcupti.so.13")}
        ran = subprocess.run(
            [sys.executable, "-c", ON_CUDA, VENDORS], env=env, capture_output=True, text=True
        )
        self.assertEqual((ran.returncode, ran.stdout), (0, "all is well\n"), ran.stderr)

    def test_an_operator_on_a_queue_is_timed_by_its_device(self):
        with tempfile.TemporaryDirectory() as folder:
            # ctest hides the machine's drivers from the other tests
            env = {
                **{k: v for k, v in os.environ.items() if k != "OCL_ICD_VENDORS"},
                "POCL_CACHE_DIR": folder,
            }
            ran = subprocess.run(
                [sys.executable, "-c", ON_A_QUEUE], env=env, capture_output=True, text=True
            )
        if ran.returncode == 77:
            self.skipTest("there is no OpenCL device: apt-get install pocl-opencl-icd")
        self.assertEqual((ran.returncode, ran.stdout), (0, "all is well\n"), ran.stderr)


if __name__ == "__main__":
    unittest.main()
