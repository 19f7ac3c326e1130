"""Devices in the viewers' engines: what tests/device/views writes, of an emulated one. Slices on
the device's rows, arrows from each launch to what ran, one number on both."""

import os
import pathlib
import subprocess
import sys

import pytest
from hang_guard import HANG_SECONDS

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("PROF_TEST_BUILD_DIR", HERE.parent.parent / "build" / "dev"))
sys.path.insert(0, str(HERE))

import check_trace  # noqa: E402
from test_readers import python, read  # noqa: E402, F401
from test_viewers import needs_node  # noqa: E402

DEVICE, UNSERVED = 5012001, 5077002
HOST, RAN = 21, 14


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    views = BUILD / "tests" / "device" / "views"
    if not views.exists():
        pytest.skip("tests/device/views is not built: cmocka is missing")
    file = tmp_path_factory.mktemp("devices") / "views.json"
    subprocess.run([str(views), str(file)], check=True, timeout=HANG_SECONDS)
    return file


@needs_node
def test_both_engines_take_it_whole(trace):
    document, phases = check_trace.check_chrome(trace, check_trace.find_engines())
    assert phases["X"] == HOST + RAN
    assert phases["s"] == phases["f"] == RAN
    assert document["prof"]["self_check"]["faults"] == 0


def test_each_side_has_the_others_number(trace):
    events = check_trace.parse(check_trace.read_text(trace))["traceEvents"]
    ran = [e for e in events if e["ph"] == "X" and e["pid"] == DEVICE]
    host = {
        e["args"]["correlation"]: e
        for e in events
        if e["ph"] == "X" and e["pid"] != DEVICE and "correlation" in e.get("args", {})
    }
    assert len(ran) == len(host) == RAN
    for event in ran:
        launch = host[event["args"]["correlation"]]
        assert (event["name"], event["cat"]) == (launch["name"], "gpu_user_annotation")
        assert event["args"]["External id"] == launch["args"]["External id"]
        assert (event["args"]["device"], event["args"]["stream"]) == (1, event["tid"])
        assert event["ts"] >= launch["ts"]


def test_arrows_go_from_launch_to_begin(trace):
    events = check_trace.parse(check_trace.read_text(trace))["traceEvents"]
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    slices = {(e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "X"}
    for end in (e for e in events if e["ph"] == "f"):
        begin = begins[end["id"]]
        assert (begin["cat"], end["cat"], end["bp"], end["pid"]) == ("ac2g", "ac2g", "e", DEVICE)
        assert (begin["pid"], begin["tid"], begin["ts"]) in slices and (
            end["pid"],
            end["tid"],
            end["ts"],
        ) in slices


def test_rows_are_named(trace):
    events = check_trace.parse(check_trace.read_text(trace))["traceEvents"]
    names = {(e["name"], e["pid"], e["tid"]): e["args"] for e in events if e["ph"] == "M"}
    assert names["process_labels", DEVICE, 0] == {"labels": "GPU"}
    streams = sorted(
        a["name"] for (what, pid, _), a in names.items() if what == "thread_name" and pid == DEVICE
    )
    assert streams in (["stream 1", "stream 2: compute"], ["stream 1: compute", "stream 2"])
    assert ("process_name", UNSERVED, 0) not in names  # that row is empty


# ---- what a vendor's own tracing told: tests/device/records FILE ----

STEPS, LAYERS = 4, 3


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    program = BUILD / "tests" / "device" / "records"
    if not program.exists():
        pytest.skip("tests/device/records is not built: cmocka is missing")
    file = tmp_path_factory.mktemp("records") / "records.json"
    subprocess.run(
        [str(program), str(file)],
        check=True,
        timeout=HANG_SECONDS,
        env={**os.environ, "RANK": "0", "WORLD_SIZE": "1"},
    )
    return file


@needs_node
def test_both_engines_take_records_whole(records):
    document, phases = check_trace.check_chrome(records, check_trace.find_engines())
    assert phases["s"] == phases["f"] == STEPS * (1 + 3 * LAYERS)
    assert document["prof"]["self_check"]["faults"] == 0
    assert phases["C"] > 0


def test_meters_are_counters_on_the_same_time_line(records):
    events = check_trace.parse(check_trace.read_text(records))["traceEvents"]
    kernels = [e["ts"] for e in events if e.get("cat") == "kernel"]
    power = [e for e in events if e["ph"] == "C" and e["name"] == "emulated:1 power (W)"]
    # check_trace reads numbers as they stand
    assert {float(e["args"]["value"]) for e in power} == {75.5}
    assert len([e for e in power if min(kernels) < e["ts"] < max(kernels)]) >= 3
    assert {e["name"] for e in events if e["ph"] == "C"} == {
        "emulated:1 power (W)",
        "emulated:1 average power (W)",
        "emulated:1 memory used (B)",
        "emulated:1 utilisation (%)",
        "emulated:1 clock (Hz)",
        "used bytes (tensors)",
    }


def test_a_devices_values_stand_on_its_process(records):
    events = check_trace.parse(check_trace.read_text(records))["traceEvents"]
    assert {e["pid"] for e in events if e["ph"] == "C"} == {DEVICE}
    assert (
        len(
            [
                e
                for e in events
                if e["ph"] == "M" and e["name"] == "process_name" and e["pid"] == DEVICE
            ]
        )
        == 1
    )
    used = [
        int(e["args"]["value"])
        for e in events
        if e["ph"] == "C" and e["name"] == "used bytes (tensors)"
    ]
    assert used == [0, 1 << 20, 0]


def test_kernels_and_copies_are_as_kineto_writes_them(records):
    events = check_trace.parse(check_trace.read_text(records))["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    copies = [e for e in events if e.get("cat") == "gpu_memcpy"]
    host = {
        e["args"]["External id"]: e
        for e in events
        if e["ph"] == "X" and e["pid"] != DEVICE and "External id" in e.get("args", {})
    }
    assert (len(kernels), len(copies)) == (STEPS * 3 * LAYERS, STEPS)
    launched = [host[e["args"]["External id"]]["name"] for e in kernels]
    assert (launched.count("cudaLaunchKernel"), launched.count("fused")) == (
        STEPS * LAYERS,
        STEPS * 2 * LAYERS,
    )
    for event in kernels + copies:
        launch = host[event["args"]["External id"]]
        assert event["pid"] == DEVICE and (event["args"]["device"], event["args"]["stream"]) == (
            1,
            event["tid"],
        )
        assert event["ts"] >= launch["ts"]
        assert event["args"]["correlation"] == launch["args"]["correlation"]
    for event in kernels:
        assert (
            event["args"]["grid"],
            event["args"]["block"],
            event["args"]["registers per thread"],
        ) == ([64, 2, 1], [256, 1, 1], 32)
    for event in copies:
        assert (event["args"]["bytes"], event["args"]["direction"]) == (1 << 20, "host to device")


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    writer, prof = BUILD / "tests" / "unit" / "reader_calls", BUILD / "prof"
    if not writer.exists():
        pytest.skip("tests/unit/reader_calls is not built: cmocka is missing")
    folder = tmp_path_factory.mktemp("calls")
    subprocess.run([str(writer), str(folder / "calls.prof")], check=True, timeout=HANG_SECONDS)
    subprocess.run(
        [str(prof), "dump", str(folder / "calls.prof"), "-o", str(folder / "calls.json")],
        check=True,
        timeout=HANG_SECONDS,
    )
    return folder / "calls.json"


@needs_node
def test_both_engines_take_a_vendors_calls(calls):
    document, phases = check_trace.check_chrome(calls, check_trace.find_engines())
    assert (phases["X"], phases["s"], phases["f"]) == (6 + 3, 3, 3)
    assert document["prof"]["self_check"]["faults"] == 0


def test_kernels_are_tied_to_the_runtimes_calls(calls):
    events = check_trace.parse(check_trace.read_text(calls))["traceEvents"]
    launches = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert len(kernels) == 3
    assert sorted(launches[e["args"]["correlation"]]["tid"] for e in kernels) == [101, 101, 4711]


def test_hta_finds_kernels_launches_and_steps(python, records, tmp_path):  # noqa: F811
    os.link(records, tmp_path / "rank0.json")
    found = read(python, "read_hta.py", tmp_path, HTA_DISABLE_NS_ROUNDING="1")
    assert found["steps"] == list(range(STEPS - 1))  # it leaves out the last one
    rows = found["ranks"]["0"]
    assert {category for _, category, *_ in rows} >= {
        "kernel",
        "gpu_memcpy",
        "cuda_runtime",
        "cpu_op",
    }
    for step in found["steps"]:
        kernels = [row for row in rows if row[1] == "kernel" and row[2] == step]
        assert len(kernels) == 3 * LAYERS
    assert [row[:3] for row in found["kernels"]] == [
        [0, "COMPUTATION", "busy"],
        [0, "MEMORY", "Memcpy HtoD"],
    ]
    assert len(found["launches"]["0"]) == (STEPS - 1) * (LAYERS + 1)
    assert all(
        on_device_us > 0 and host_us >= 0 for host_us, on_device_us, _ in found["launches"]["0"]
    )
    assert 0 < found["times"]["0"]["compute"] < found["times"]["0"]["kernel"]
