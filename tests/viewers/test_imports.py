"""What prof imported, in the engines of the real viewers: they open the exports of traces of tests/python/import_traces.py, and
count what prof counts."""

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
    "on a stream's row",
    "a device by name",
]


@needs_node
@pytest.mark.parametrize("name", SHAPES)
def test_both_engines_take_what_was_imported(tmp_path, engines, name):  # noqa: F811
    (tmp_path / "t.json").write_text(import_traces.text_of(name), encoding="utf-8")
    done = subprocess.run([BUILD / "prof", "import", "t.json", "-o", "t.prof"], cwd=tmp_path, capture_output=True, text=True, check=False)
    if "yajl" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    subprocess.run([BUILD / "prof", "dump", "t.prof", "-o", "back.json"], cwd=tmp_path, check=True)
    document, phases = check_trace.check_chrome(tmp_path / "back.json", engines)
    assert phases["X"] == document["prof"]["written"]["scopes"] > 0
