"""Two ranks with kernels in the unchanged TensorBoard plug-in and HTA of PyPI. ranks.py launches
the kernels on the emulated CUDA driver. Each number is compared with one that is worked out here
from the trace alone. Run by CTest, or by hand: .venv/bin/python -m pytest tests/viewers"""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from hang_guard import HANG_SECONDS
from test_python import ENVIRONMENT
from test_readers import python, read  # noqa: F401
from test_viewers import BUILD, HERE, needs_node

import check_trace  # isort: skip
import ranks

VENDORS = (
    pathlib.Path(os.environ.get("PROF_TEST_PLUGIN_DIR", BUILD / "tests" / "device")) / "vendors"
)
RANKS = ("0", "1")
GEMM, REDUCE, COPY = ranks.GEMM.decode(), ranks.REDUCE.decode(), "Memcpy HtoD (Pageable -> Device)"
ROUNDED_US = 0.01  # HTA's own sums of doubles since the base, which are 2^-13 us apart


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not (VENDORS / "libcupti.so.13").exists():
        pytest.skip("tests/device/vendors is not built: cmocka is missing")
    made = tmp_path_factory.mktemp("ranks")
    for rank in RANKS:
        subprocess.run(
            [sys.executable, str(HERE / "ranks.py"), str(made), rank],
            check=True,
            timeout=HANG_SECONDS,
            env={**ENVIRONMENT, "PROF_BACKEND_CUPTI": str(VENDORS / "libcupti.so.13")},
        )
    return made


class Truth:
    """What a rank's trace says, worked out without a reader. Times in us."""

    def __init__(self, path):
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        slices = [e for e in events if e["ph"] == "X"]
        self.pids = {e["pid"] for e in slices if e["cat"] == "kernel"}
        self.steps = sorted(
            (e["ts"], e["ts"] + e["dur"], e["name"].split("#")[1])
            for e in slices
            if e["name"].startswith("ProfilerStep#")
        )
        self.operators = [e for e in slices if e["cat"] == "cpu_op"]
        on_device = sorted((e for e in slices if e["pid"] in self.pids), key=lambda e: e["ts"])
        launched = {e["args"]["correlation"] for e in on_device}
        self.calls = {}
        for call in (
            e
            for e in slices
            if e["cat"] in ("cuda_runtime", "cuda_driver")
            and e["args"].get("correlation") in launched
        ):
            assert call["args"]["correlation"] not in self.calls
            self.calls[call["args"]["correlation"]] = call
        self.waits = [e for e in on_device if e["cat"] == "cuda_sync"]
        self.kernels = [e for e in on_device if e["cat"] != "cuda_sync"]

    def call_of(self, kernel):
        return self.calls[kernel["args"]["correlation"]]

    def step_of(self, kernel):
        at = self.call_of(kernel)["ts"]
        (name,) = (name for begin, end, name in self.steps if begin <= at < end)
        return name

    def without_the_last_step(self, with_waits=False):
        """As HTA reads a trace."""
        return [
            k
            for k in self.kernels + self.waits * with_waits
            if self.step_of(k) != self.steps[-1][2]
        ]


def intervals(kernels, *names):
    """Merged, [begin, end]."""
    merged = []
    for begin, end in sorted(
        (k["ts"], k["ts"] + k["dur"]) for k in kernels if not names or k["name"] in names
    ):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def length(merged):
    return sum(end - begin for begin, end in merged)


def both(a, b):
    return sum(max(0, min(x[1], y[1]) - max(x[0], y[0])) for x in a for y in b)


@pytest.fixture(scope="module")
def truths(folder):
    return {rank: Truth(next(folder.glob(f"node_{rank}.*"))) for rank in RANKS}


def near(value, count=1):
    return pytest.approx(value, abs=ROUNDED_US * count)


# ---- the traces ----


@needs_node
def test_both_engines_take_each_rank_whole(folder):
    for path in folder.iterdir():
        document, phases = check_trace.check_chrome(path, check_trace.find_engines())
        assert phases["s"] == phases["f"] == ranks.STEPS * (ranks.LAYERS + 2 + ranks.STREAMS)
        assert document["prof"]["self_check"]["faults"] == 0


def test_each_rank_has_what_was_launched(truths):
    for rank, truth in truths.items():
        assert collections.Counter(k["name"] for k in truth.kernels) == {
            GEMM: ranks.STEPS * ranks.LAYERS,
            REDUCE: ranks.STEPS,
            COPY: ranks.STEPS,
        }
        assert collections.Counter(w["name"] for w in truth.waits) == {
            "Stream Sync": ranks.STEPS * ranks.STREAMS
        }
        assert {truth.call_of(w)["name"] for w in truth.waits} == {"cudaStreamSynchronize"}
        assert all(k["dur"] >= ranks.KERNEL_NS / 1000 for k in truth.kernels if k["name"] == GEMM)
        assert all(
            k["dur"] >= ranks.REDUCE_NS * (int(rank) + 1) / 1000
            for k in truth.kernels
            if k["name"] == REDUCE
        )


def test_calls_and_kernels_name_their_operator(truths):
    owners = {GEMM: "aten::addmm", REDUCE: "nccl:all_reduce", COPY: "aten::copy_"}
    for truth in truths.values():
        operators = {e["args"]["External id"]: e["name"] for e in truth.operators}
        assert len(operators) == len(truth.operators)
        for kernel in truth.kernels:
            number = kernel["args"]["External id"]
            assert operators[number] == owners[kernel["name"]]
            assert truth.call_of(kernel)["args"]["External id"] == number


# ---- TensorBoard's plug-in ----


@pytest.fixture(scope="module")
def as_it_comes(python, folder):  # noqa: F811
    return {p["worker"]: p for p in read(python, "read_tensorboard.py", folder)}


@pytest.fixture(scope="module")
def with_runtime(python, folder):  # noqa: F811
    return {p["worker"]: p for p in read(python, "read_tensorboard.py", folder, "--with-runtime")}


@pytest.fixture(params=["as_it_comes", "with_runtime"])
def profiles(request):
    return request.getfixturevalue(request.param)


def test_tensorboard_has_its_views(profiles):
    assert {worker: p["views"] for worker, p in profiles.items()} == {
        "All": ["distributed"],
        **{f"node_{rank}": ["overall", "operator", "kernel", "trace"] for rank in RANKS},
    }


def test_tensorboards_kernel_view(profiles, truths):
    for rank, truth in truths.items():
        for name in (GEMM, REDUCE):
            times = [k["dur"] for k in truth.kernels if k["name"] == name]
            assert profiles[f"node_{rank}"]["kernels"][name] == [
                len(times),
                pytest.approx(sum(times), abs=1),
            ]


def test_tensorboards_overview(as_it_comes, truths):
    for rank, truth in truths.items():
        shown = as_it_comes[f"node_{rank}"]
        assert shown["steps"] == [name for _, _, name in truth.steps]
        assert shown["parts"] == [
            "Step",
            "Kernel",
            "Memcpy",
            "Memset",
            "Communication",
            "Runtime",
            "DataLoader",
            "CPU Exec",
            "Other",
        ]
        for (begin, end, _), costs in zip(truth.steps, shown["costs"]):
            gemm, copy, reduce = (
                [
                    [max(b, begin), min(e, end)]
                    for b, e in intervals(truth.kernels, name)
                    if b < end and e > begin
                ]
                for name in (GEMM, COPY, REDUCE)
            )
            assert sum(costs) == pytest.approx(end - begin, abs=1)
            assert costs[0] == pytest.approx(length(gemm), abs=1)
            assert costs[1] == pytest.approx(length(copy) - both(gemm, copy), abs=1)
            host = sum(
                e["dur"]
                for e in truth.operators
                if e["name"] == "nccl:all_reduce" and begin <= e["ts"] < end
            )
            alone = length(reduce) - both(intervals(truth.kernels, GEMM, COPY), reduce)
            # by the operator's id the collective's kernel is communication, what is beside a
            # product or a copy is not
            assert -1 <= costs[3] - alone <= host + 1
        assert shown["average"]["Average Step Time"] == pytest.approx(
            sum(end - begin for begin, end, _ in truth.steps) / len(truth.steps), abs=1
        )


def test_tensorboards_operator_view(with_runtime, truths):
    for rank, truth in truths.items():
        shown = with_runtime[f"node_{rank}"]
        calls = collections.Counter(e["name"] for e in truth.operators)
        assert {name: row["calls"] for name, row in shown["operators"].items()} == dict(calls)
        for name, row in shown["operators"].items():
            assert row["host_total_duration"] == pytest.approx(
                sum(e["dur"] for e in truth.operators if e["name"] == name), abs=1
            )
        linear, addmm = shown["operators"]["aten::linear"], shown["operators"]["aten::addmm"]
        device = sum(k["dur"] for k in truth.kernels if k["name"] == GEMM)
        assert (
            addmm["device_self_duration"]
            == addmm["device_total_duration"]
            == linear["device_total_duration"]
            == pytest.approx(device, abs=1)
        )
        assert linear["device_self_duration"] == 0
        assert ["aten::addmm", "[[64, 32], [32, 16]]"] in shown["shapes"]
        kernels = [[name, by, calls] for name, by, _, calls in shown["kernels by operator"]]
        assert sorted(kernels) == [
            [GEMM, "aten::addmm", ranks.STEPS * ranks.LAYERS],
            [REDUCE, "nccl:all_reduce", ranks.STEPS],
        ]


def test_tensorboards_distributed_view(as_it_comes, truths):
    shown = as_it_comes["All"]
    size = ranks.STEPS * 16 * 32 * 4
    collectives = {
        rank: [k["dur"] for k in truth.kernels if k["name"] == REDUCE]
        for rank, truth in truths.items()
    }
    transfer = [min(durations) for durations in zip(*collectives.values())]
    for rank, durations in collectives.items():
        ((name, calls, whole, each, latency, _, real, _),) = shown["operators"][f"node_{rank}"]
        host = sum(e["dur"] for e in truths[rank].operators if e["name"] == "nccl:all_reduce")
        assert (name, calls, whole, each) == (
            "nccl:all_reduce",
            ranks.STEPS,
            size,
            size // ranks.STEPS,
        )
        assert sum(durations) - 1 <= latency <= sum(durations) + host + 1
        assert sum(transfer) - 1 <= real <= sum(transfer) + host + 1
    steps = [name for _, _, name in truths["0"].steps]
    assert sorted(shown["wait"]) == sorted([*steps, "all"]) == sorted(shown["overlap"])
    # it takes the shortest of the ranks' for the transfer, and the rest for waiting
    for number, step in enumerate(steps):
        for rank, durations in collectives.items():
            (host,) = [
                e["dur"]
                for e in truths[rank].operators
                if e["name"] == "nccl:all_reduce"
                and truths[rank].steps[number][0] <= e["ts"] < truths[rank].steps[number][1]
            ]
            waiting = durations[number] - transfer[number]
            assert (
                waiting - host - 1 <= shown["wait"][step][f"node_{rank}"][1] <= waiting + host + 1
            )


# ---- HTA ----


@pytest.fixture(scope="module")
def found(python, folder, tmp_path_factory):  # noqa: F811
    alone = tmp_path_factory.mktemp("hta")
    for path in folder.iterdir():
        shutil.copy(path, alone)
    return read(python, "read_hta.py", alone, HTA_DISABLE_NS_ROUNDING="1")


def test_hta_reads_both_ranks(found):
    assert sorted(found["ranks"]) == list(RANKS)
    assert len(found["steps"]) == ranks.STEPS - 1


def test_htas_kernel_breakdown(found, truths):
    wanted = []
    for rank, truth in truths.items():
        for kind, name in (("COMMUNICATION", REDUCE), ("COMPUTATION", GEMM), ("MEMORY", COPY)):
            times = [k["dur"] for k in truth.without_the_last_step() if k["name"] == name]
            assert len(times) == (ranks.STEPS - 1) * (ranks.LAYERS if name == GEMM else 1)
            wanted.append(
                [int(rank), kind, name, near(sum(times)), near(max(times)), near(min(times))]
            )
    assert sorted(found["kernels"]) == sorted(wanted, key=lambda row: row[:3])
    alone, shared, count = 0.0, 0.0, 0
    for truth in truths.values():
        kernels = truth.without_the_last_step()
        count += 2 * len(kernels)
        shared += both(intervals(kernels, GEMM), intervals(kernels, REDUCE))
        alone += length(intervals(kernels, GEMM)) - both(
            intervals(kernels, GEMM), intervals(kernels, REDUCE, COPY)
        )
    # it takes whole us of each piece
    assert found["types"]["COMPUTATION overlapping COMMUNICATION"] == pytest.approx(
        shared, abs=count
    )
    assert found["types"]["COMPUTATION"] == pytest.approx(alone, abs=count)


def test_htas_temporal_breakdown(found, truths):
    """To it a wait is time of the device that is no computation."""
    for rank, truth in truths.items():
        kernels = truth.without_the_last_step(with_waits=True)
        merged = intervals(kernels)
        whole = merged[-1][1] - merged[0][0]
        times = {
            "kernel": whole,
            "idle": whole - length(merged),
            "compute": length(intervals(kernels, GEMM)),
            "non_compute": length(merged) - length(intervals(kernels, GEMM)),
        }
        assert found["times"][rank] == {part: near(us, len(kernels)) for part, us in times.items()}


def test_htas_launch_statistics(found, truths):
    for rank, truth in truths.items():
        wanted = []
        # it knows the copies of the runtime
        for kernel in (k for k in truth.without_the_last_step() if k["name"] != COPY):
            call = truth.call_of(kernel)
            assert call["name"] == "cudaLaunchKernel"
            wanted.append(
                [call["dur"], kernel["dur"], max(0.0, kernel["ts"] - call["ts"] - call["dur"])]
            )
        assert len(wanted) == (ranks.STEPS - 1) * (ranks.LAYERS + 1)
        in_order = [
            sorted(rows, key=lambda row: [round(us, 3) for us in row])
            for rows in (found["launches"][rank], wanted)
        ]
        assert in_order[0] == [[near(us) for us in row] for row in in_order[1]]


def test_htas_idle_time(found, truths):
    for rank, truth in truths.items():
        by_stream = collections.defaultdict(list)
        for kernel in truth.without_the_last_step():
            by_stream[kernel["args"]["stream"]].append(kernel)
        assert len(by_stream) == ranks.STREAMS
        for stream, kernels in by_stream.items():
            merged = intervals(kernels)
            idle = merged[-1][1] - merged[0][0] - length(merged)
            assert sum(
                us for r, s, _, us in found["idle"] if (r, s) == (int(rank), stream)
            ) == near(idle, len(kernels) + 3)
        waits = {
            category: us
            for r, s, category, us in found["idle"]
            if (r, s) == (int(rank), kernels[0]["args"]["stream"])
        }
        assert set(waits) <= {"host_wait", "kernel_wait", "other"}


def test_htas_overlap(found, truths):
    for rank, truth in truths.items():
        kernels = truth.without_the_last_step()
        reduce, gemm = intervals(kernels, REDUCE), intervals(kernels, GEMM)
        assert found["overlap"][rank] == pytest.approx(
            100 * both(reduce, gemm) / length(reduce), abs=0.02
        )


def test_htas_critical_path(found, truths):
    """It ends with the last product of the step. Before it are those that ended after the begin of
    the next one's launch. If the thread waits before it launches the collective, as on a busy
    machine, it is with that one, and HTA says that communication bounds the step."""
    for rank, truth in truths.items():
        path = found["paths"][rank]
        assert path["is found"]
        step = [k for k in truth.kernels if truth.step_of(k) == truth.steps[1][2]]
        products = [k for k in step if k["name"] == GEMM]
        chain = [products[-1]]
        for kernel in reversed(products[:-1]):
            if kernel["ts"] + kernel["dur"] <= truth.call_of(chain[-1])["ts"]:
                break
            chain.append(kernel)
        by_products = sorted((GEMM, "gpu_compute_bound", k["dur"]) for k in chain)
        # without its parameters, as HTA writes it here
        by_collective = sorted(
            (k["name"].split("(")[0], "gpu_communication_bound", k["dur"])
            for k in step
            if k["name"] == REDUCE
        )
        on_device = sorted(
            (name, by, us)
            for name, by, us in path["parts"]
            if by.startswith("gpu_com") and name != COPY
        )
        assert on_device in (
            [(name, by, near(us)) for name, by, us in rows] for rows in (by_products, by_collective)
        )
        assert [
            by for name, by, _ in path["parts"] if name == COPY and by.startswith("gpu_com")
        ] in ([], ["gpu_compute_bound"])
