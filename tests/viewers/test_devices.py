"""Devices in the viewers' engines: what tests/device/views writes, of an emulated one. Slices on the device's rows, arrows from each launch to what ran, one number on both."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("PROF_TEST_BUILD_DIR", HERE.parent.parent / "build" / "dev"))
sys.path.insert(0, str(HERE))

import check_trace  # noqa: E402
from test_viewers import needs_node  # noqa: E402

DEVICE, UNSERVED = 5012001, 5077002
HOST, RAN = 21, 14


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    views = BUILD / "tests" / "device" / "views"
    if not views.exists():
        pytest.skip("tests/device/views is not built: cmocka is missing")
    file = tmp_path_factory.mktemp("devices") / "views.json"
    subprocess.run([str(views), str(file)], check=True, timeout=60)
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
    host = {e["args"]["correlation"]: e for e in events if e["ph"] == "X" and e["pid"] != DEVICE and "correlation" in e["args"]}
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
        assert (begin["pid"], begin["tid"], begin["ts"]) in slices and (end["pid"], end["tid"], end["ts"]) in slices


def test_rows_are_named(trace):
    events = check_trace.parse(check_trace.read_text(trace))["traceEvents"]
    names = {(e["name"], e["pid"], e["tid"]): e["args"] for e in events if e["ph"] == "M"}
    assert names["process_labels", DEVICE, 0] == {"labels": "GPU"}
    streams = sorted(a["name"] for (what, pid, _), a in names.items() if what == "thread_name" and pid == DEVICE)
    assert streams in (["stream 0", "stream 1: compute"], ["stream 0: compute", "stream 1"])
    assert ("process_name", UNSERVED, 0) not in names  # nothing stands there
