"""Shows prof's traces to the engines of the real viewers. make_traces.c records one trace of each
kind and says what is in it. Each file must pass check_trace.py, and hold exactly that. Run by
CTest, or by hand: .venv/bin/python -m pytest tests/viewers"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from hang_guard import HANG_SECONDS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PROF_TEST_BUILD_DIR", ROOT / "build" / "dev"))
sys.path.insert(0, str(HERE))

import check_trace  # noqa: E402

# What make_traces.c writes. A file that it no longer writes, or one that is not listed, fails a
# test.
CHROME = [
    "empty.json",
    "plain.json",
    "nested.json",
    "deep.json",
    "hostile.json",
    "hostile-elsewhere.json",
    "arguments.json",
    "marks.json",
    "arrows.json",
    "overlaps.json",
    "threads.json",
    "devices.json",
    "unfinished.json",
    "nested.json.gz",
    "forced-gzip",
    "muted.json",
    "all.json.gz",
]
RAF = ["raf-nested.json", "raf-muted.json", "raf-all.json.gz"]
CAPTURES = ["nested.prof"]


def node_version():
    """The major version of node; 0 without it."""
    if not shutil.which("node"):
        return 0
    return int(
        subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
        .stdout.lstrip("v")
        .split(".")[0]
    )


needs_node = pytest.mark.skipif(
    node_version() < 18, reason="node 18 or newer is missing: apt-get install nodejs"
)


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    """The folder with all traces, and what is in each of them."""
    folder = tmp_path_factory.mktemp("traces")
    program = folder / "make_traces"
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-std=c11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{ROOT / 'include'}",
            str(HERE / "make_traces.c"),
            "-o",
            str(program),
            f"-L{BUILD}",
            "-lprof",
            "-lpthread",
            f"-Wl,-rpath,{BUILD}",
        ],
        check=True,
    )
    subprocess.run([str(program), str(folder)], check=True, timeout=HANG_SECONDS)
    entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return folder, {entry["file"]: entry for entry in entries}


@pytest.fixture(scope="session")
def engines():
    """The folder of the viewers' engines."""
    return check_trace.find_engines()


def test_each_trace_is_listed_here(traces):
    assert sorted(traces[1]) == sorted(CHROME + RAF + CAPTURES)


@needs_node
@pytest.mark.parametrize("name", CHROME)
def test_both_engines_take_the_trace_and_see_what_was_recorded(traces, engines, name):
    folder, expected = traces[0], traces[1][name]
    document, phases = check_trace.check_chrome(folder / name, engines)
    written = document["prof"]["written"]
    assert written["scopes"] == expected["scopes"]
    assert written["unfinished"] == expected["open"]
    assert written["steps"] == expected["steps"]
    assert written["instants"] == expected["instants"]
    assert written["counters"] == expected["counters"]
    assert phases["s"] == expected["arrows"]
    assert document["distributedInfo"] == {"backend": "", "rank": 3, "world_size": 8}


@needs_node
@pytest.mark.parametrize("name", RAF)
def test_both_engines_take_rafs_log(traces, engines, name):
    folder, expected = traces[0], traces[1][name]
    assert check_trace.check_raf(folder / name, engines) == expected["scopes"]


@needs_node
def test_both_engines_take_every_text_in_every_place(engines, tmp_path):
    """What tests/hostile/test_text.c writes: 579 texts as names, categories, keys, values, threads,
    tracks, counters and arrows."""
    writer = BUILD / "tests" / "hostile" / "text"
    if not writer.exists():
        pytest.skip("tests/hostile/text is not built: cmocka is missing")
    subprocess.run([str(writer), "--write", str(tmp_path)], check=True, timeout=HANG_SECONDS)
    texts = (tmp_path / "texts").read_text(encoding="ascii").splitlines()
    _, phases = check_trace.check_chrome(tmp_path / "texts.json", engines)
    assert phases["X"] > 4 * len(texts) and phases["C"] == phases["s"] > 500
    assert check_trace.check_raf(tmp_path / "texts-raf.json", engines) == phases["X"]
    for path in sorted(
        tmp_path.glob("process-*.json"), key=lambda path: int(path.stem.split("-")[1])
    )[:64:4]:
        check_trace.check_chrome(path, engines)


def events_of(traces, name):
    """The file's document and its scopes."""
    document = check_trace.parse(check_trace.read_text(traces[0] / name))
    return document, [event for event in document["traceEvents"] if event["ph"] == "X"]


def test_any_bytes_come_out_as_python_repairs_them(traces):
    """Python replaces ill-formed UTF-8 as Unicode recommends, and so must prof."""
    _, scopes = events_of(traces, "hostile.json")
    names = [scope["name"] for scope in scopes]
    for byte in range(256):
        assert bytes([ord("x"), byte, ord("y")]).decode("utf-8", "replace") in names
    for raw in (
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xed\xa0\x80",
        b"\xed\xa0\xbd\xed\xb8\x80",
        b"\xf4\x90\x80\x80",
        b"\xff\xfe",
        b"\xc3",
        b"\xe2\x80\xa8line\xe2\x80\xa9",
        b"</script><script>alert(1)</script>",
        b"%s%n%d%p%%",
        b"\\",
        b'"',
    ):
        assert raw.decode("utf-8", "replace") in names
    assert "(unnamed)" in names


def test_names_past_their_bound_are_cut_and_say_so(traces):
    _, scopes = events_of(traces, "hostile.json")
    cut = [scope for scope in scopes if scope.get("args", {}).get("cut")]
    assert len(cut) == 3
    assert all(1000 < len(scope["name"]) < 2**20 for scope in cut)


def test_arguments_keep_their_types_and_values(traces):
    _, scopes = events_of(traces, "arguments.json")
    args = {scope["name"]: scope.get("args", {}) for scope in scopes}
    integers = args["integers"]
    assert integers["zero"] == 0 and integers["minus"] == -1 and integers["char"] == 99
    assert integers["2^53"] == 2**53
    assert integers["2^53+1"] == str(2**53 + 1)  # no double holds it
    assert (
        integers["i64 min"] == str(-(2**63))
        and integers["i64 max"] == str(2**63 - 1)
        and integers["u64 max"] == str(2**64 - 1)
    )
    doubles = args["doubles"]
    assert [doubles["nan"], doubles["inf"], doubles["minus inf"]] == [
        "NaN",
        "Infinity",
        "-Infinity",
    ]
    assert [float(doubles[key]) for key in ("half", "tiny", "huge", "float")] == [
        0.5,
        5e-324,
        1.7976931348623157e308,
        1.5,
    ]
    others = args["others"]
    assert others["true"] is True and others["false"] is False
    assert others["text"] == "run-time" and others["quote"] == '"' and others["empty"] == ""
    assert others["bad"] == "\ufffd\ufffd("
    assert int(others["pointer"], 16) > 0
    assert args["formatted"]["text"] == '3 of run-time: 99.50% "ff"'
    assert len(args["wide"]["text"]) == 300
    assert args["shapes"]["Input Dims"] == [[2, 3], [3, 4], []]
    assert args["shapes"]["Input type"] == ["float", "c10::BFloat16", "long int"]


def test_a_key_that_comes_twice_is_told_apart(traces):
    _, scopes = events_of(traces, "arguments.json")
    args = next(scope["args"] for scope in scopes if scope["name"] == "the same key")
    values = [value for key, value in args.items() if key != "External id"]
    assert sorted(values) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_what_viewers_would_refuse_is_left_out_and_counted(traces):
    document, _ = events_of(traces, "arrows.json")
    assert document["prof"]["self_check"]["flows_without_partner"] == 2
    assert document["prof"]["self_check"]["flows_outside_scopes"] == 1  # it stands at a mark
    document, _ = events_of(traces, "marks.json")
    assert document["prof"]["self_check"]["counters_not_finite"] == 3
    document, _ = events_of(traces, "deep.json")
    assert document["prof"]["self_check"]["deeper_than_512"] == 600 - 512


def test_steps_are_named_as_readers_look_for_them(traces):
    _, scopes = events_of(traces, "marks.json")
    steps = [scope["name"] for scope in scopes if scope["cat"] == "user_annotation"]
    assert sorted(steps) == [f"ProfilerStep#{i}" for i in range(5)]


def test_the_host_side_of_a_launch_is_not_taken_for_a_kernel(traces):
    document, scopes = events_of(traces, "devices.json")
    args = {scope["name"]: scope.get("args", {}) for scope in scopes}
    assert args["launch"]["Device"] == "GPU 0" and args["launch"]["Stream"] == 7
    assert args["enqueue"]["Device"] == "OpenCL 1" and args["enqueue"]["Stream"] == hex(2**64 - 1)
    assert not any(
        key in arg for arg in args.values() for key in ("stream", "device", "correlation")
    )
    names = [
        event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] == "process_name"
    ]
    assert names == ["make_traces", "GPU 0", "OpenCL 1"]


def test_a_scope_that_had_not_ended_says_so(traces):
    _, scopes = events_of(traces, "unfinished.json")
    unfinished = {scope["name"] for scope in scopes if scope.get("args", {}).get("unfinished")}
    assert unfinished == {"outer", 'run-time "name"'}


@pytest.mark.parametrize("name", ["muted.json", "raf-muted.json"])
def test_what_was_left_out_is_told(traces, name):
    account = json.loads((traces[0] / name).read_text(encoding="utf-8"))["prof"]
    assert account["lost"]["muted"] == 2
    changes = [change["change"] for change in account["changes"]]
    assert changes == [
        "muted 'muted \"</script>\ufffd' (operator): as asked",
        "muted 'muted mark' (marks): as asked",
        "heard again 'muted \"</script>\ufffd' (operator): as asked",
        "heard again 'muted mark' (marks): as asked",
    ]


def test_each_thread_has_its_row_and_its_name(traces):
    document, scopes = events_of(traces, "threads.json")
    names = [
        event["args"]["name"] for event in document["traceEvents"] if event["name"] == "thread_name"
    ]
    assert sorted(name for name in names if name.startswith("worker")) == sorted(
        f"worker {i}" for i in range(16)
    )
    rows = {}
    for scope in scopes:
        rows[scope["tid"]] = rows.get(scope["tid"], 0) + 1
    assert sorted(rows.values()) == [1000] * 16


def test_compressed_and_plain_hold_the_same(traces):
    folder = traces[0]
    packed, forced = (
        check_trace.parse(check_trace.read_text(folder / name))
        for name in ("nested.json.gz", "forced-gzip")
    )
    # of one capture, but dumped one after the other, while the clock was measured on
    for document in (packed, forced):
        document.pop("prof")
        document["traceEvents"].pop()
        for event in document["traceEvents"]:
            event.pop("ts", None)
            event.pop("dur", None)
    assert packed == forced


def with_overlap(text):
    """One scope more, which begins inside the longest and ends after it."""
    lines = [line for line in text.split("\n") if line.startswith('{"ph":"X"')]
    longest = max(lines, key=lambda line: float(re.search(r'"dur":([0-9.]+)', line).group(1)))
    shifted = re.sub(
        r'"ts":(\d+)\.(\d+)',
        lambda m: f'"ts":{m.group(1)}.{(int(m.group(2)) + 1) % 1000:03}',
        longest,
    )
    return text.replace(longest, longest + "\n" + shifted, 1)


@needs_node
@pytest.mark.parametrize(
    "damage, complaint",
    [
        (lambda text: text.replace('"dur":', '"dur":NaN,"x":', 1), "NaN"),
        (lambda text: text.replace('"cat":', '"name":"twice","cat":', 1), "twice"),
        (lambda text: text.replace("}}\n],", "}},\n],", 1), "JSON"),
        (lambda text: text[: len(text) // 2], "JSON"),
        (
            lambda text: text.replace('"plain"', '"pl\x01in"', 1).replace(
                '"matmul"', '"mat\x01mul"', 1
            ),
            "control",
        ),
        (with_overlap, "crosses"),
        (lambda text: text.replace('"ph":"X"', '"ph":"i","s":"t"', 1), "slices"),
    ],
    ids=[
        "a NaN",
        "a key twice",
        "a comma too many",
        "half of it",
        "a control byte",
        "an overlap",
        "a slice less",
    ],
)
def test_the_check_refuses(traces, engines, tmp_path, damage, complaint):
    """A check that takes everything would show nothing: each kind of damage must be seen."""
    text = damage(check_trace.read_text(traces[0] / "plain.json"))
    broken = tmp_path / "broken.json"
    broken.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(check_trace.Bad, match=complaint):
        check_trace.check_chrome(broken, engines)


def test_the_check_refuses_a_second_gzip_member(traces, tmp_path):
    data = (traces[0] / "nested.json.gz").read_bytes()
    two = tmp_path / "two.json.gz"
    two.write_bytes(data + data)
    with pytest.raises(check_trace.Bad, match="behind the first gzip member"):
        check_trace.read_text(two)
