"""The table of a report, and the distribution of a row."""

import collections
import random
import re

import pytest
from browser import needs_browser
from reports import (
    assert_quiet,
    calls_on_canvas,
    make_capture,
    make_events,
    make_report,
    prof,
    row_sums,
    trace_of,
)

pytestmark = needs_browser


def test_rows_equal_sums_of_the_events(page, opened):
    places = "[0, 2, 3, 4, 6, 9, 7, 8, 5]"
    rows = page.evaluate(f"prof.data.rows.map(row => {places}.map(place => row[place]))")
    sums = row_sums(opened)
    assert max(values[0] for values in sums.values()) < 512  # up to here quantiles are exact
    assert {name: values for name, *values in rows} == sums
    assert page.evaluate("prof.data.self_ns") == sum(event["self"] for event in opened)


def test_table_shows_the_rows_in_order_of_total(page, opened):
    cells = page.evaluate(
        "[...document.querySelectorAll('#body tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    sums = row_sums(opened)
    assert [row[0] for row in cells] == sorted(sums, key=lambda name: -sums[name][1])
    assert [int(re.sub(r"\D", "", row[2])) for row in cells] == [sums[r[0]][0] for r in cells]


def ns_of(cell):
    number, unit = cell.split(" ")
    return float(number) * {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}[unit]


def test_cells_of_the_table_are_below_their_titles(page, opened):
    titles = page.evaluate("[...document.querySelectorAll('#head th')].map(h => h.textContent)")
    cells = page.evaluate(
        "[...document.querySelectorAll('#body tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    sums, whole = row_sums(opened), sum(event["self"] for event in opened)
    keys = ("Calls", "Total", "Self", "Min", "Max", "Median", "p99", "Mean")
    assert len(cells) == len(sums)
    for row in (dict(zip(titles, texts, strict=True)) for texts in cells):
        wanted = dict(zip(keys, sums[row["Name"]], strict=True))
        assert row["Category"] == "op"
        assert int(row["Calls"]) == wanted.pop("Calls")
        assert float(row["Self %"].rstrip("%")) == pytest.approx(
            100 * wanted["Self"] / whole, abs=0.051
        )
        for key, value in wanted.items():
            assert ns_of(row[key]) == pytest.approx(value, rel=1e-4), key


def test_times_of_the_table_have_the_same_number_of_digits(page, opened):
    cells = page.evaluate(
        "[...document.querySelectorAll('#body td')].map(c => c.textContent)"
        ".filter(text => /^[\\d.]+ (\u00b5s|ms|s)$/.test(text))"
    )
    assert len(cells) > 20
    assert {len(re.sub(r"\D", "", cell)) for cell in cells} == {5}, cells


def test_click_on_a_heading_sorts_and_a_second_one_turns_it(page, opened):
    click = (
        "(() => { [...document.querySelectorAll('#head th')].find(h => h.textContent === 'Calls')"
        ".click(); return [...document.querySelectorAll('#body tr')].map(r => r.cells[0]"
        ".textContent); })()"
    )
    sums = row_sums(opened)
    down, up = page.evaluate(click), page.evaluate(click)
    calls = [sums[name][0] for name in down]
    assert calls == sorted(calls, reverse=True)
    assert [sums[name][0] for name in up] == sorted(calls)


def test_heading_can_be_chosen_by_the_keyboard(page, opened):
    page.evaluate("document.querySelector('#head th').focus()")
    page.press("Enter", 13)
    names = page.evaluate("prof.table.rows.map(r => r[0])")
    assert names == sorted(names)


def test_distribution_of_a_row_has_all_its_calls(page, opened):
    counts = {
        row[0]: dict(zip(row[16][::2], row[16][1::2], strict=True))
        for row in page.evaluate("prof.data.rows")
    }
    wanted = collections.defaultdict(collections.Counter)
    for event in opened:
        ns = event["end"] - event["begin"]
        top = max(ns.bit_length() - 4, 0)  # 8 buckets for each doubling, one each below 16
        wanted[event["name"]][top * 8 + (ns >> top)] += 1
    assert counts == wanted
    page.evaluate("document.querySelector('#body tr').click()")
    title = page.evaluate("document.getElementById('distribution-name').textContent")
    name, group = title.split(", ")
    assert group.startswith("Category ")
    assert not page.evaluate("document.getElementById('distribution').hidden")
    assert sum(wanted[name].values()) == int(
        re.sub(
            r"\D",
            "",
            page.evaluate("document.getElementById('bucket').textContent").split(" call")[0],
        )
    )


def test_rows_by_two_groups_have_distributions(page, tmp_path):
    call = {"ph": "X", "pid": 7, "tid": 1, "cat": "op"}
    events = [
        {**call, "name": name, "ts": at * 100, "dur": 10 + at, "args": {"layer": layer}}
        for at, (name, layer) in enumerate((("a", 0), ("a", 1), ("a", 1), ("b", 1)))
    ]
    capture = make_capture(tmp_path, "layers", {"traceEvents": events})
    report = tmp_path / "layers.html"
    prof("report", "--by", "name,arg:layer", "-o", report, capture)
    page.open(report)
    assert_quiet(page)
    heads = page.evaluate("[...document.querySelectorAll('#head th')].map(h => h.textContent)")
    assert heads[:3] == ["Name", "layer", "Calls"]
    found = page.evaluate(
        "[...document.querySelectorAll('#body tr')].map((_, i) => {"
        " const row = document.querySelectorAll('#body tr')[i]; row.click();"
        " return [document.getElementById('distribution-name').textContent,"
        " document.getElementById('bucket').textContent.split(',')[0]]; })"
    )
    assert sorted(found) == [
        ["a, layer 0", "1 call"],
        ["a, layer 1", "2 calls"],
        ["b, layer 1", "1 call"],
    ]
    prof("report", "--by", "arg:layer", "-o", report, capture)
    page.open(report)
    assert_quiet(page)
    heads = page.evaluate("[...document.querySelectorAll('#head th')].map(h => h.textContent)")
    assert heads[:2] == ["layer", "Calls"]


def test_rows_by_four_groups_have_a_column_for_each(page, tmp_path):
    events = [{"ph": "M", "pid": 7, "tid": 1, "name": "thread_name", "args": {"name": "worker"}}]
    events += [
        {"ph": "X", "pid": 7, "tid": 1, "cat": cat, "name": name, "ts": at * 100, "dur": 10 + at}
        | ({} if layer is None else {"args": {"layer": layer}})
        for at, (name, cat, layer) in enumerate(
            (("a", "op", 0), ("a", "op", 1), ("a", "io", 1), ("b", "op", 1), ("c", "op", None))
        )
    ]
    capture = make_capture(tmp_path, "layers", {"traceEvents": events})
    report = tmp_path / "layers.html"
    prof("report", "--by", "arg:layer,thread,category,name", "-o", report, capture)
    page.open(report)
    assert_quiet(page)
    heads = page.evaluate("[...document.querySelectorAll('#head th')].map(h => h.textContent)")
    assert heads[:6] == ["layer", "Thread", "Category", "Name", "Calls", "Total"]
    cells = page.evaluate(
        "[...document.querySelectorAll('#body tr')].map(row =>"
        " [...row.children].slice(0, 5).map(cell => cell.textContent))"
    )
    assert sorted(cells) == [
        ["0", "worker (1)", "op", "a", "1"],
        ["1", "worker (1)", "io", "a", "1"],
        ["1", "worker (1)", "op", "a", "1"],
        ["1", "worker (1)", "op", "b", "1"],
    ]
    page.evaluate("document.querySelectorAll('#head th')[3].click()")
    assert page.evaluate("prof.table.rows.map(row => row[18])") == ["a", "a", "a", "b"]
    page.evaluate("document.querySelectorAll('#body tr')[3].click()")
    name = page.evaluate("document.getElementById('distribution-name').textContent")
    assert name == "1, Thread worker (1), Category op, Name b"
    page.press("/")
    page.press("b")
    assert page.evaluate("prof.table.rows.map(row => row[18])") == ["b"]


def test_many_long_names_are_cut_and_the_page_stays_small(page, tmp_path):
    chance = random.Random(5)
    events = [
        {"name": f"{i} " + "".join(chr(chance.randrange(33, 0x2FF)) for _ in range(300))}
        for i in range(12000)
    ]
    for i, event in enumerate(events):
        event.update(begin=i * 100, end=i * 100 + 50 + i % 3, thread=0)
    report = make_report(make_capture(tmp_path, "names", trace_of(events)))
    page.open(report)
    assert_quiet(page)
    assert report.stat().st_size < 5 << 20
    assert page.evaluate("prof.data.rows.length") == 10000
    assert page.evaluate("prof.data.all_rows") == 12000
    note = page.evaluate("document.getElementById('table-note').textContent")
    assert re.sub(r"(?<=\d)\D(?=\d)", "", note) == "2000 rows with less time are left out."
    assert page.evaluate("prof.rows.reduce((n, r) => n + r.starts.length, 0)") == 12000


def test_name_stays_while_the_other_columns_are_scrolled(page, opened):
    where = "document.querySelector('#body td').getBoundingClientRect().left"
    at = page.evaluate(where)
    page.evaluate("document.getElementById('table').style.width = '400px'")
    page.evaluate("document.querySelector('#table .scroll').scrollLeft = 200")
    assert page.evaluate("document.querySelector('#table .scroll').scrollLeft") == 200
    assert page.evaluate(where) == at


def test_long_table_is_scrolled_below_its_headings(page, tmp_path):
    """So the distribution of a row that is clicked is near it."""
    events = make_events(9, [f"name {i}" for i in range(60)], 200)
    page.open(make_report(make_capture(tmp_path, "long", trace_of(events))))
    box, head = "document.querySelector('#table .scroll')", "document.querySelector('#head th')"
    assert page.evaluate(f"{box}.scrollHeight > {box}.clientHeight")
    assert page.evaluate(f"{box}.clientHeight <= 0.62 * innerHeight")
    at = page.evaluate(f"{head}.getBoundingClientRect().top")
    page.evaluate(f"{box}.scrollTop = 200")
    assert page.evaluate(f"{box}.scrollTop") == 200
    assert page.evaluate(f"{head}.getBoundingClientRect().top") == at
    page.evaluate("document.getElementById('table').scrollIntoView()")
    left, top = page.evaluate(
        f"(() => {{ const r = {head}.getBoundingClientRect(); return [r.left, r.top]; }})()"
    )
    assert page.evaluate(
        f"document.elementFromPoint({left + 5}, {top + 5}).closest('th') === {head}"
    )


def test_labels_of_a_distribution_are_neither_cut_nor_covered(page, opened):
    for marks in ("{}", "{7: row[9], 8: row[9]}", "{7: row[6], 8: row[6]}"):  # longest, shortest
        for row in range(4):
            labels = calls_on_canvas(
                page,
                "distribution-canvas",
                "fillText",
                f"const row = prof.data.rows[{row}];"
                f" prof.chooseRow(Object.assign([...row], {marks}))",
                "(to, [text]) => [to.measureText(text).width]",
            )
            assert len(labels) > 3
            width = page.evaluate("document.getElementById('distribution-canvas').clientWidth")
            last = {}
            for _, left, line, length in labels:
                assert last.get(line, 0) <= left and left + length <= width, labels
                last[line] = left + length
