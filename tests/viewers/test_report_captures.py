"""Reports of captures of all kinds: empty, cut, several, compared."""

import collections
import json

import pytest
from browser import needs_browser
from reports import (
    TWO_FRAMES,
    assert_quiet,
    make_capture,
    make_events,
    make_report,
    prof,
    row_sums,
    trace_of,
)
from test_viewers import CHROME, traces  # noqa: F401

pytestmark = needs_browser


def test_a_trace_without_scopes_has_a_summary(page, tmp_path):
    marks = {"traceEvents": [{"ph": "i", "pid": 1, "tid": 1, "name": "mark", "ts": 1, "s": "t"}]}
    page.open(make_report(make_capture(tmp_path, "marks", marks)))
    assert_quiet(page)
    assert page.evaluate(
        "[...document.querySelectorAll('section')].filter(s => !s.hidden).map(s => s.id)"
    ) == ["summary"]


def test_tiles_are_not_empty(page, opened):
    """An imported trace has no host and no start."""
    tiles = page.evaluate(
        "[...document.querySelectorAll('.tiles div')].map(d => [...d.children]"
        ".map(c => c.textContent))"
    )
    assert ["Scopes", str(len(opened))] in tiles
    assert all(value for _, value in tiles)
    assert "Host" not in dict(tiles) and "Start" not in dict(tiles)


def test_several_captures_are_shown_together(page, tmp_path):
    captures = []
    for seed in (3, 4):
        events = make_events(seed, ["a", "b"], 20)
        captures.append((events, make_capture(tmp_path, f"run{seed}", trace_of(events))))
    page.open(make_report(*(capture for _, capture in captures)))
    assert_quiet(page)
    assert page.evaluate("prof.data.processes.length") == 2
    assert page.evaluate("prof.data.threads.map(t => t[0])") == [0, 0, 1, 1]
    sums = row_sums(captures[0][0] + captures[1][0])
    rows = page.evaluate("prof.data.rows.map(r => [r[0], r[2], r[3], r[4]])")
    assert {row[0]: row[1:] for row in rows} == {n: v[:3] for n, v in sums.items()}
    counts = page.evaluate(
        "prof.data.threads.map((_, t) => prof.rows.filter(r => r.thread === t)"
        ".reduce((n, r) => n + r.starts.length, 0))"
    )
    assert counts == [
        sum(event["thread"] == thread for event in events)
        for events, _ in captures
        for thread in (0, 1)
    ]


def test_difference_of_two_sides_is_what_prof_diff_prints(page, tmp_path):
    names = ["a", "<b>&amp;</b>", "c"]
    base, new = (
        make_capture(tmp_path, f"side{seed}", trace_of(make_events(seed, names, 20)))
        for seed in (6, 7)
    )
    report = tmp_path / "difference.html"
    prof("report", "-o", report, "--base", base, "--new", new)
    page.open(report)
    assert_quiet(page)
    shown = page.evaluate("document.querySelector('#difference pre').textContent")
    assert shown == prof("diff", "--width", 160, base, new).stdout
    assert "new side" in page.evaluate("document.querySelector('#difference .hint').textContent")
    assert page.evaluate("document.querySelectorAll('b').length") == 0
    rows = page.evaluate("prof.data.rows.map(r => [r[0], r[2]])")
    sums = row_sums(make_events(7, names, 20))
    assert dict(rows) == {name: values[0] for name, values in sums.items()}
    page.open(make_report(new))
    assert page.evaluate("document.getElementById('difference').hidden")


def test_long_difference_is_scrolled(page, tmp_path):
    names = [f"name {i}" for i in range(80)]
    base, new = (
        make_capture(tmp_path, f"side{seed}", trace_of(make_events(seed, names, 200)))
        for seed in (6, 7)
    )
    report = tmp_path / "difference.html"
    prof("report", "-o", report, "--base", base, "--new", new)
    page.open(report)
    box = "document.querySelector('#difference .scroll')"
    assert page.evaluate(f"{box}.scrollHeight > {box}.clientHeight")
    assert page.evaluate(f"{box}.clientHeight <= 0.62 * innerHeight")


@pytest.mark.parametrize("name", [name for name in CHROME if name != "forced-gzip"])
def test_every_kind_of_capture_has_a_report(page, traces, name):  # noqa: F811
    folder, expected = traces[0], traces[1][name]
    capture = folder / f"{name}.prof"
    page.open(make_report(capture))
    assert_quiet(page)
    total = page.evaluate("prof.rows.reduce((n, r) => n + r.counts.reduce((a, b) => a + b, 0), 0)")
    assert total == expected["scopes"] + expected["open"] + expected["steps"]
    assert page.evaluate(
        "[...document.querySelectorAll('#devices-head th')].every((_, i) =>"
        " [...document.querySelectorAll('#devices-body tr')].some(r => r.cells[i].textContent))"
    )
    page.evaluate("prof.search('e'), prof.findNext(), prof.zoomLine(0.01)")
    page.evaluate(
        "document.querySelectorAll('#flame-kinds button, #body tr').forEach(e => e.click())"
    )
    page.evaluate(TWO_FRAMES)
    assert page.errors == []


def test_a_cut_capture_has_a_report_of_what_is_left(page, plain, tmp_path):
    """Some of the sizes are cut behind a part of the scopes."""
    whole = plain[1].with_suffix(".prof").read_bytes()
    known = {(event["name"], event["end"] - event["begin"]) for event in plain[0]}
    cut = tmp_path / "cut.prof"
    counts = set()
    for size in range(len(whole) // 2, len(whole), 16384):
        cut.write_bytes(whole[:size])
        left = [json.loads(line) for line in prof("events", "--json", cut).stdout.splitlines()]
        counts.add(len(left))
        page.open(make_report(cut))
        assert_quiet(page)
        assert {(event["name"], event["duration_ns"]) for event in left} <= known
        calls, own = collections.Counter(), collections.Counter()
        for event in left:
            calls[event["name"]] += 1
            own[event["name"]] += event["self_ns"]
        rows = page.evaluate("prof.data.rows.map(row => [row[0], row[2], row[4]])")
        assert {row[0]: row[1:] for row in rows} == {n: [calls[n], own[n]] for n in calls}
        lines = page.evaluate("[...document.querySelectorAll('#lines li')].map(l => l.innerText)")
        said = f"{len(left)} recorded; no loss counted; the capture is damaged"
        assert [line.startswith(said) for line in lines].count(True) == 1, lines
    assert any(0 < count < len(plain[0]) for count in counts)
