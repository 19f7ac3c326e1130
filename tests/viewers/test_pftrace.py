"""Shows prof's Perfetto files to Perfetto's trace processor, beside the Chrome JSON of the same
capture. Both must hold the same scopes, at the same times."""

import collections
import csv
import gzip
import subprocess

import check_trace
import pytest
from hang_guard import HANG_SECONDS
from test_viewers import BUILD, engines, needs_node, traces  # noqa: F401

KINDS = [
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
    "muted.json",
]


def dump(capture, path):
    subprocess.run(
        [str(BUILD / "prof"), "dump", str(capture), "-o", str(path)],
        check=True,
        timeout=HANG_SECONDS,
    )
    return path


def ask(engine_folder, path, *queries):
    answer = check_trace.run_engine("perfetto.mjs", engine_folder, path, *queries)
    assert answer["error"] is None
    assert answer["health"] == []
    return answer["results"]


# Ends of arrows are instants of the Perfetto file alone. Chrome JSON has marks outside of scopes.
WITHOUT_NAMES = {"hostile.json", "hostile-elsewhere.json"}  # Perfetto reads JSON's escapes wrongly
SLICES = (
    "select name, category, ts, dur from slice where dur > 0 "
    "and category not in ('flow', 'ac2g', 'fwdbwd', 'prof')"
)
COUNTS = [
    "select count(*) from slice where category not in ('flow', 'ac2g', 'fwdbwd', 'prof', "
    "'memory', 'cpu_instant_event')",
    "select count(*) from flow",
    "select name, value from counter join track on counter.track_id = track.id "
    "where name not like '% bytes (%'",
]


def shifted(slices):
    """Slices by their time after the first one: the two formats count from different moments."""
    first = min((int(ts) for _, _, ts, _ in slices), default=0)
    return collections.Counter((name, cat, int(ts) - first, dur) for name, cat, ts, dur in slices)


@needs_node
@pytest.mark.parametrize("name", KINDS)
def test_perfetto_reads_the_same_out_of_both_formats(traces, engines, tmp_path, name):  # noqa: F811
    capture = traces[0] / (name + ".prof")
    packets = dump(capture, tmp_path / "t.pftrace")
    text = dump(capture, tmp_path / "t.json")
    slices, [[count]], [[flows]], values = ask(engines, packets, SLICES, *COUNTS)
    slices2, [[count2]], [[flows2]], values2 = ask(engines, text, SLICES, *COUNTS)
    if name in WITHOUT_NAMES:
        document = check_trace.parse(check_trace.read_text(text))
        written = [e for e in document["traceEvents"] if e["ph"] == "X" and e["dur"] != "0.000"]
        named = collections.Counter(e["name"].replace("\0", "\ufffd") for e in written)
        assert collections.Counter(row[0] for row in slices) == named
        slices, slices2 = ([["", "", *row[2:]] for row in rows] for rows in (slices, slices2))
    if name != "deep.json":  # Perfetto holds 512 of them: of JSON, which comes inside out, others
        assert shifted(slices) == shifted(slices2)
    assert (count, flows) == (count2, flows2)
    assert sorted(v for _, v in values) == sorted(v for _, v in values2)


@needs_node
def test_flush_marks_lose_nothing_although_threads_overlap_in_time(engines, tmp_path):  # noqa: F811
    scopes = 140_000  # 17 marks on the last thread: the engine imports a part before the end
    source = tmp_path / "two.json"
    with open(source, "w", encoding="utf-8") as file:
        file.write('{"traceEvents":[\n')
        file.write(
            ",\n".join(
                f'{{"ph":"X","name":"s{i % 9}","cat":"c","pid":1,"tid":{tid},"ts":{i},"dur":0.5}}'
                for tid in (1, 2)
                for i in range(scopes)
            )
        )
        file.write("\n]}\n")
    slices, marks = ask(
        engines,
        dump(source, tmp_path / "t.pftrace"),
        "select tid, count(*), sum(slice.dur) from slice join thread_track on track_id = "
        "thread_track.id join thread using (utid) group by tid order by tid",
        "select count(*) from metadata where name = 'all_data_source_flushed_ns'",
    )
    assert slices == [[1, scopes, scopes * 500], [2, scopes, scopes * 500]]
    assert marks == [[17]]


@needs_node
def test_compressed_is_one_member_of_the_same_bytes(traces, engines, tmp_path):  # noqa: F811
    capture = traces[0] / "nested.json.prof"
    plain = dump(capture, tmp_path / "t.pftrace").read_bytes()
    packed = dump(capture, tmp_path / "t.pftrace.gz")
    assert gzip.decompress(packed.read_bytes()) == plain
    assert ask(engines, packed, "select count(*) from slice where dur > 0")[0][0][0] > 0


@needs_node
def test_a_file_that_is_cut_holds_what_came_before(traces, engines, tmp_path):  # noqa: F811
    data = dump(traces[0] / "nested.json.prof", tmp_path / "t.pftrace").read_bytes()
    cut = tmp_path / "cut.pftrace"
    at = 0
    while at < len(data) // 2:  # the next packet
        size = shift = 0
        at += 1
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        at += size
    cut.write_bytes(data[:at])
    answer = check_trace.run_engine("perfetto.mjs", engines, cut, "select count(*) from slice")
    assert answer["error"] is None
    assert answer["results"][0][0][0] > 0


@needs_node
def test_the_account_says_that_nothing_is_missing(traces, engines, tmp_path):  # noqa: F811
    packets = dump(traces[0] / "plain.json.prof", tmp_path / "t.pftrace")
    [rows] = ask(engines, packets, "select name from slice where category = 'prof'")
    assert [name for [name] in rows] == ["prof: no loss"]


@needs_node
def test_arguments_keep_their_types(traces, engines, tmp_path):  # noqa: F811
    packets = dump(traces[0] / "arguments.json.prof", tmp_path / "t.pftrace")
    [rows] = ask(engines, packets, "select key, value_type from args where key like 'debug.%'")
    kinds = {kind for _, kind in rows}
    assert {"int", "real", "bool", "string", "pointer"} <= kinds


@pytest.mark.parametrize("name", KINDS)
def test_python_reads_csv_and_finds_the_scopes_of_chrome_json(traces, tmp_path, name):  # noqa: F811
    capture = traces[0] / (name + ".prof")
    document = check_trace.parse(check_trace.read_text(dump(capture, tmp_path / "t.json")))
    with open(dump(capture, tmp_path / "t.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows)
    scopes = collections.Counter(
        (row["name"], row["category"], int(row["duration_ns"]))
        for row in rows
        if row["kind"] in ("scope", "unfinished")
    )
    assert scopes == collections.Counter(
        tuple(event[key].replace("\0", "\ufffd") for key in ("name", "cat"))
        + (check_trace.to_ns(event["dur"], "dur"),)
        for event in document["traceEvents"]
        if event["ph"] == "X" and "step mark" not in event.get("args", {})
    )
    kinds = collections.Counter(row["kind"] for row in rows)
    written = document["prof"]["written"]
    assert kinds["instant"] == written["instants"]
    assert all(int(row["self_ns"]) <= int(row["duration_ns"]) for row in rows)


def test_an_ending_that_no_format_has_is_refused(traces, tmp_path):  # noqa: F811
    out = tmp_path / "trace.xyz"
    done = subprocess.run(
        [str(BUILD / "prof"), "dump", str(traces[0] / "plain.json.prof"), "-o", str(out)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert ".pftrace" in done.stderr and ".csv" in done.stderr and done.stderr.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("name", KINDS)
def test_folded_stacks_have_the_self_times_of_csv(traces, tmp_path, name):  # noqa: F811
    capture = traces[0] / (name + ".prof")
    with open(dump(capture, tmp_path / "t.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    lines = dump(capture, tmp_path / "t.folded").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    paths = [line.rpartition(" ") for line in lines]
    assert all(path.count(";") >= 1 for path, _, _ in paths)
    assert sum(int(ns) for _, _, ns in paths) == sum(
        int(row["self_ns"]) for row in rows if row["kind"] in ("scope", "unfinished", "device")
    )
