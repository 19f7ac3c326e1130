"""What prof imported, in the engines of the real viewers: they open the exports of traces of
tests/python/import_traces.py, and count what prof counts."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PROF_TEST_BUILD_DIR", ROOT / "build" / "dev"))
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "python")]

import check_trace  # noqa: E402
import import_traces  # noqa: E402
from test_viewers import engines, needs_node  # noqa: E402, F401

# One of each shape of export: rows, overlaps, arrows, counters, devices.
SHAPES = [
    "ranks",
    "calls that overlap",
    "one id",
    "counters",
    "arrows at kernels",
    "arrow to the next",
    "arrows that scopes name",
    "arrows at asynchronous events",
    "arrows at asynchronous events, older",
    "arrows that no scope holds",
    "arrows of launches that end on no work",
    "arrows of two launches to one work",
    "before its launch",
    "no names",
    "on a stream's row",
    "a device by name",
    "JAX on a GPU",
    "nsys2json",
    "summaries of Ascend",
    "streams without numbers",
    "counters whose names meet",
]


def taken_back(tmp_path, name):
    """The trace's export, once it was imported."""
    (tmp_path / "t.json").write_text(import_traces.text_of(name), encoding="utf-8")
    done = subprocess.run(
        [BUILD / "prof", "import", "t.json", "-o", "t.prof"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if "yajl" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    subprocess.run([BUILD / "prof", "dump", "t.prof", "-o", "back.json"], cwd=tmp_path, check=True)
    return tmp_path / "back.json"


@needs_node
@pytest.mark.parametrize("name", SHAPES)
def test_both_engines_take_what_was_imported(tmp_path, engines, name):  # noqa: F811
    document, phases = check_trace.check_chrome(taken_back(tmp_path, name), engines)
    assert phases["X"] == document["prof"]["written"]["scopes"] > 0


def arrows_in_perfetto(engines, path):  # noqa: F811
    """(from, to) by the names of the slices."""
    query = (
        "select a.name, b.name from flow "
        "join slice a on slice_out = a.id join slice b on slice_in = b.id"
    )
    answer = check_trace.run_engine("perfetto.mjs", engines, path, query)
    assert answer["error"] is None
    return sorted(map(tuple, answer["results"][0]))


@needs_node
@pytest.mark.parametrize("name", ["arrows that scopes name", "arrows at asynchronous events"])
def test_perfetto_has_the_sources_arrows_in_the_export(tmp_path, engines, name):  # noqa: F811
    back = arrows_in_perfetto(engines, taken_back(tmp_path, name))
    at_marks = {"flow": "in none"}  # beside an instant that no scope holds
    back = sorted((begin, at_marks.get(end, end)) for begin, end in back)
    assert back == arrows_in_perfetto(engines, tmp_path / "t.json") != []


@needs_node
def test_of_two_equal_scopes_the_outer_one_is_the_sources(tmp_path, engines):  # noqa: F811
    back = taken_back(tmp_path, "scopes that begin and end together")
    query = "select name, depth from slice where name like 's%' order by name"
    for path in (tmp_path / "t.json", back):
        answer = check_trace.run_engine("perfetto.mjs", engines, path, query)
        assert answer["error"] is None
        assert answer["results"][0] == [[f"s{i}", i] for i in range(5)]


@needs_node
def test_an_arrow_in_no_scope_goes_from_mark_to_mark(tmp_path, engines):  # noqa: F811
    found = arrows_in_perfetto(engines, taken_back(tmp_path, "arrows that no scope holds"))
    marks = [("neither", "neither")] * 2 + [("at no length", "at no length"), ("from none", "b")]
    assert found == sorted([*marks, ("a", "to none"), ("a", "at the end"), ("a", "no next")])
