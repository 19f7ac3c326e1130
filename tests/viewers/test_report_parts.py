"""The flame graph, memory, steps and counters of a report."""

import collections
import os
import statistics
import subprocess

from browser import needs_browser
from hang_guard import HANG_SECONDS
from reports import TWO_FRAMES, assert_quiet, make_report
from test_viewers import ROOT

pytestmark = needs_browser


def test_flame_graph_has_the_self_time_of_each_path(page, opened):
    paths = page.evaluate(
        "prof.flame.paths.map((p, i) => { const names = []; for (let at = i; at;"
        " at = prof.flame.paths[at].parent) names.unshift(prof.data.path_names["
        "prof.flame.paths[at].row]); return [names, p.own, p.total, p.calls]; })"
    )
    own, total, calls = (collections.Counter() for _ in range(3))
    for event in opened:
        own[event["path"]] += event["self"]
        calls[event["path"]] += 1
        for depth in range(len(event["path"]) + 1):
            total[event["path"][:depth]] += event["self"]
    assert {tuple(names): rest for names, *rest in paths} == {
        path: [own[path], total[path], calls[path]] for path in total
    }


def test_click_in_the_flame_graph_zooms_to_that_path(page, opened):
    page.evaluate("document.getElementById('flame').scrollIntoView()")
    left, top = page.evaluate(
        "(() => { const r = document.getElementById('flame-canvas').getBoundingClientRect();"
        " return [r.left, r.top]; })()"
    )
    place = page.evaluate("prof.flame.places.filter(p => p.index).sort((a, b) => b.w - a.w)[0]")
    page.click(left + place["x"] + place["w"] / 2, top + place["y"] + 5)
    assert page.evaluate("prof.flame.zoom") == place["index"]
    page.press("Escape", 27)
    assert page.evaluate("prof.flame.zoom") == 0


def test_kind_of_flame_graph_is_chosen_by_the_keyboard(page, parts):
    page.open(parts)
    assert page.evaluate("prof.flame.kind") == "host"
    page.evaluate("document.querySelectorAll('#flame-kinds button')[1].focus()")
    page.press("Enter", 13)
    assert page.evaluate("prof.flame.kind") == "memory"
    assert page.evaluate("prof.flame.paths.map(p => p.total)") == [15 << 20, 15 << 20]


def test_memory_steps_and_counters_are_as_recorded(page, parts):
    page.open(parts)
    assert_quiet(page)
    (pool,) = page.evaluate("prof.data.pools")
    assert pool["name"] == "</script>arena"
    assert pool["used_peak"][0] == max(pool["used"]) == 5 * (3 << 20)
    assert pool["allocated_peak"][0] == max(pool["allocated"]) == 64 << 20
    assert pool["live"] == [["fill", 5, 15 << 20]]
    steps = page.evaluate("prof.data.steps")
    assert [number for _, _, number, _ in steps] == list(range(len(steps))) and len(steps) == 5
    ((name, values),) = page.evaluate("prof.data.counters")
    assert page.evaluate(f"prof.data.names[{name}][0]") == "filled"
    assert [v for v in values if v is not None][-1] == 5
    (row,) = page.evaluate("prof.data.rows")
    source = (ROOT / "tests/viewers/make_report.c").read_text(encoding="utf-8").splitlines()
    (line,) = (number for number, text in enumerate(source, 1) if '"fill"' in text)
    assert row[15] == f"make_report.c:{line}"
    assert row[13:15] == [15 << 20, 0]
    assert "15 MiB" in page.evaluate("document.getElementById('memory').textContent")
    note = "[...document.querySelectorAll('#memory .status span')].map(mark => mark.className)"
    assert page.evaluate(note) == ["accent", "mark"]


def test_pools_of_several_captures_lie_on_one_time_line(page, parts, tmp_path):
    captures = [tmp_path / "first.prof", tmp_path / "second.prof"]
    captures[0].write_bytes(parts.with_suffix(".prof").read_bytes())
    settings = {"PROF_LEVEL": "1", "PROF_OUTPUT": str(captures[1])}
    program = parts.parent / "make_report"
    subprocess.run(
        [str(program), "parts"], env=os.environ | settings, check=True, timeout=HANG_SECONDS
    )
    page.open(make_report(*captures))
    assert_quiet(page)
    first, second = page.evaluate("prof.data.pools")
    assert first["end_ns"] < second["begin_ns"]
    for pool in (first, second):
        assert pool["begin_ns"] <= pool["used_peak"][1] <= pool["end_ns"]
    starts = page.evaluate("prof.data.steps.map(step => step[0])")
    assert starts == sorted(starts) and len(starts) == 10
    lengths = page.evaluate("prof.data.steps.map(step => step[1])")
    assert page.evaluate("prof.data.medianStep[1]") == statistics.median_low(lengths)


def test_click_on_a_step_shows_it_in_the_time_line(page, parts):
    page.open(parts)
    page.evaluate("document.getElementById('steps').scrollIntoView()")
    left, top, width = page.evaluate(
        "(() => { const r = document.getElementById('steps-canvas').getBoundingClientRect();"
        " return [r.left, r.top, r.width]; })()"
    )
    page.click(left + width * 0.7, top + 100)
    begin, duration, *_ = page.evaluate("prof.data.steps[3]")
    view = page.evaluate("[prof.view.from, prof.view.to]")
    assert view[0] <= begin and begin + duration <= view[1]
    assert page.evaluate("prof.data.chosenStep === prof.data.steps[3]")
    lengths = sorted(page.evaluate("prof.data.steps.map(step => step[1])"))
    assert page.evaluate("prof.data.medianStep[1]") == lengths[len(lengths) // 2]
    page.evaluate(TWO_FRAMES)
    # Two rows, their headings and the ruler.
    rows = page.evaluate("prof.rows.length")
    height = page.evaluate("document.getElementById('sides-canvas').clientHeight")
    assert height == 2 * (rows * 18 + 22) + 26
