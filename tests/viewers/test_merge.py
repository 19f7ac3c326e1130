"""prof merge, as Perfetto's trace processor reads it: each capture of a merged file has what it has
alone, and nothing of one capture is tied to another."""

import shutil
import subprocess

import pytest
from hang_guard import HANG_SECONDS
from test_pftrace import ask, dump
from test_viewers import BUILD, engines, needs_node, traces  # noqa: F401

KINDS = ["arrows.json", "devices.json", "hostile.json", "overlaps.json", "threads.json"]
SLICES = "select name, category, ts, dur, depth from slice"
FLOWS = (
    "select o.name, i.name, i.ts - o.ts from flow "
    "join slice o on slice_out = o.id join slice i on slice_in = i.id"
)
COUNTERS = (
    "select track.name, counter.value, counter.ts from counter join track on track_id = track.id"
)
PROCESSES = "select pid, name from process where pid > 0"


def rows_of(engines, path):  # noqa: F811
    answers = ask(engines, path, SLICES, FLOWS, COUNTERS, PROCESSES)
    return [sorted(map(tuple, rows), key=repr) for rows in answers]


@needs_node
@pytest.mark.parametrize("name", KINDS)
def test_a_capture_has_in_the_file_what_it_has_alone(traces, engines, tmp_path, name):  # noqa: F811
    capture = (traces[0] / name).with_suffix(".prof")
    if not capture.exists():
        subprocess.run(
            [BUILD / "prof", "import", traces[0] / name, "-o", tmp_path / "one.prof"],
            check=True,
            timeout=HANG_SECONDS,
        )
        capture = tmp_path / "one.prof"
    shutil.copy(capture, tmp_path / "two.prof")
    alone = rows_of(engines, dump(capture, tmp_path / "alone.pftrace"))
    subprocess.run(
        [BUILD / "prof", "merge", "-o", tmp_path / "all.pftrace", capture, tmp_path / "two.prof"],
        check=True,
        timeout=HANG_SECONDS,
    )
    merged = rows_of(engines, tmp_path / "all.pftrace")
    for one, both in zip(alone[:3], merged[:3]):
        assert both == sorted(one * 2, key=repr)
    # An import without a process has the number 0, which Perfetto keeps for the idle one.
    if alone[3]:
        assert len(merged[3]) == 2 * len(alone[3])
