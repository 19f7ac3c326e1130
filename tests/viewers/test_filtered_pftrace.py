"""The contents of a filtered .pftrace, as Perfetto's trace processor reads them. The filtered
Chrome JSON of the same capture must have the same. tests/run/test_filtered_parts.py compares that
JSON with a filter in Python."""

import json
import pathlib
import subprocess
import sys

import pytest
from hang_guard import HANG_SECONDS
from test_pftrace import ask
from test_viewers import BUILD, engines, needs_node  # noqa: F401

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "run"))
from nested_capture import nested_events
from test_filtered_parts import FILTERS, Export, other_events, step_events

ENDS = "('flow', 'ac2g', 'fwdbwd', 'mark')"
# Chrome JSON has scopes that overlap others on rows with larger numbers.
ROWS = 10_000_000
SCOPES = (
    "select s.id, s.name, s.category, s.ts, s.dur, t.tid from slice s"
    " join thread_track k on s.track_id = k.id join thread t using (utid)"
    f" where s.dur >= 0 and s.category not in {ENDS} and s.name not like 'prof: %'"
    " and s.name not like '[memory]%'"
)
ARGUMENTS = (
    "select s.id, a.key, coalesce(a.int_value, a.string_value) from slice s"
    " join args a on a.arg_set_id = s.arg_set_id where a.key in ('debug.layer', 'debug.kind')"
)
ARROWS = (
    "select a.name, a.ts, ta.tid, b.ts, tb.tid from flow f join slice a on a.id = f.slice_out"
    " join slice b on b.id = f.slice_in join thread_track ka on ka.id = a.track_id"
    " join thread ta on ta.utid = ka.utid join thread_track kb on kb.id = b.track_id"
    " join thread tb on tb.utid = kb.utid"
)
VALUES = (
    "select c.ts, c.value from counter c join track k on c.track_id = k.id"
    " where k.name not like '% bytes (%'"
)
MARKS = (
    "select s.name, s.ts, t.tid from slice s join thread_track k on s.track_id = k.id"
    " join thread t using (utid) where s.category = 'mark'"
)
MEMORY = (
    "select s.name, s.ts, t.tid from slice s join thread_track k on s.track_id = k.id"
    " join thread t using (utid) where s.name like '[memory]%'"
)


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filtered")
    events = nested_events(3) + other_events(4) + step_events()
    (folder / "parts.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    subprocess.run(
        [str(BUILD / "prof"), "import", str(folder / "parts.json"), "-o", str(folder / "p.prof")],
        check=True,
        timeout=HANG_SECONDS,
    )
    return folder / "p.prof"


def dump_filtered(capture, path, words):
    subprocess.run(
        [str(BUILD / "prof"), "dump", str(capture), *words, "-o", str(path)],
        check=True,
        stderr=subprocess.DEVNULL,
        timeout=HANG_SECONDS,
    )
    return path


@needs_node
@pytest.mark.parametrize("words", [(), *(words for words, _, _ in FILTERS)], ids=" ".join)
def test_perfetto_reads_what_chrome_json_has(capture, engines, tmp_path, words):  # noqa: F811
    chrome = Export(dump_filtered(capture, tmp_path / "t.json", words), 0)
    packets = dump_filtered(capture, tmp_path / "t.pftrace", words)
    scopes, arguments, arrows, values, marks, memory = ask(
        engines, packets, SCOPES, ARGUMENTS, ARROWS, VALUES, MARKS, MEMORY
    )
    assert scopes and arrows and memory
    # The two formats count from different moments.
    shift = min(x["ns"] for x in chrome.all_scopes) - min(int(x[3]) for x in scopes)

    members = {number: {} for number, *_ in scopes}
    for number, key, value in arguments:
        members.setdefault(number, {})[key.removeprefix("debug.")] = value
    found = sorted(
        (name, category, int(ts) + shift, dur, tid, *sorted(members[number].items()))
        for number, name, category, ts, dur, tid in scopes
    )
    assert found == sorted(
        (x["name"], x["cat"], x["ns"], round(x["dur"] * 1000), x["tid"] % ROWS)
        + tuple((k, x["args"][k]) for k in ("kind", "layer") if k in x.get("args", {}))
        for x in chrome.all_scopes
    )
    assert sorted(
        (name, int(ts) + shift, tid, int(to) + shift, to_tid)
        for name, ts, tid, to, to_tid in arrows
    ) == sorted(
        (name, ends["s"]["ns"], ends["s"]["tid"], ends["f"]["ns"], ends["f"]["tid"])
        for name, ends in chrome.arrows.items()
    )
    assert sorted((int(ts) + shift, value) for ts, value in values) == sorted(
        (x["ns"], x["args"]["value"]) for x in chrome.counters
    )
    assert sorted((name, int(ts) + shift, tid) for name, ts, tid in marks) == sorted(
        (x["name"], x["ns"], x["tid"]) for x in chrome.instants
    )
    assert sorted((name, int(ts) + shift, tid) for name, ts, tid in memory) == sorted(
        ("[memory] free" if x["args"]["Bytes"] < 0 else "[memory] alloc", x["ns"], x["tid"])
        for x in chrome.memory
    )
