"""prof report in a real browser. The captures are imported traces whose times are known to the
nanosecond, so the page is compared with sums that this test makes itself."""

import base64
import collections
import gzip
import hashlib
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys

import pytest
from browser import Page, needs_browser
from hang_guard import HANG_SECONDS
from picture import serve
from test_viewers import BUILD, CHROME, ROOT, traces  # noqa: F401

pytestmark = needs_browser

HOSTILE = [
    "</script><script>document.title='taken'</script>",
    "<!--<img src=x onerror=\"document.title='taken'\">",
    "\"'&amp;<b>{{data}}",
    "line\u2028separator\u2029 and \u202egnihtyreve",
    "nul\0 bell\a escape\x1b[2J",
    "half a surrogate \ud800 here",
    "a,b;c\\d\n\t",
    "",
    "__proto__",
    "long " * 400,
]
WIDTH, HEIGHT = 1200, 900
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def nest(chance, names, begin, depth, events, path, thread):
    """A call and those inside of it; returns its end. Times in ns."""
    name = chance.choice(names)
    at, inner_ns = begin + chance.randrange(1, 50), 0
    if depth:
        for _ in range(chance.randrange(3)):
            end = nest(chance, names, at, depth - 1, events, (*path, name), thread)
            inner_ns += end - at
            at = end + chance.randrange(1, 200)
    end = at + chance.randrange(1, 2000)
    events.append(
        {"name": name, "begin": begin, "end": end, "depth": len(path), "path": (*path, name)}
    )
    events[-1].update(self=end - begin - inner_ns, thread=thread)
    return end


def make_events(seed, names, calls, threads=2):
    chance, events = random.Random(seed), []
    for thread in range(threads):
        at = 0
        for _ in range(calls):
            at = nest(chance, names, at, 3, events, (), thread) + chance.randrange(1, 3000)
    return events


def trace_of(events, category="op"):
    return {
        "traceEvents": [
            {
                "ph": "X",
                "pid": 7,
                "tid": 100 + event["thread"],
                "name": event["name"],
                "cat": category,
                "ts": event["begin"] / 1000,
                "dur": (event["end"] - event["begin"]) / 1000,
            }
            for event in events
        ]
    }


def prof(*words, status=0, folder=None):
    done = subprocess.run(
        [str(BUILD / "prof"), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        cwd=folder,
    )
    assert done.returncode == status, done.stderr
    return done


def make_capture(folder, name, trace):
    (folder / f"{name}.json").write_text(json.dumps(trace), encoding="utf-8")
    prof("import", folder / f"{name}.json", "-o", folder / f"{name}.prof")
    return folder / f"{name}.prof"


def make_report(*captures):
    page = captures[0].with_suffix(".html")
    prof("report", "-o", page, *captures)
    return page


@pytest.fixture(scope="module")
def page():
    browser = Page(WIDTH, HEIGHT)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Events of known times, and their report."""
    events = make_events(1, [f"operator {i}" for i in range(12)], 150)
    folder = tmp_path_factory.mktemp("report")
    return events, make_report(make_capture(folder, "plain", trace_of(events)))


@pytest.fixture
def opened(page, plain):
    page.open(plain[1])
    return plain[0]


def assert_quiet(page):
    assert page.errors == []
    assert [address for address in page.requests if not address.startswith("file:")] == []
    assert len(page.requests) == 1


def test_page_of_this_tree_is_current():
    subprocess.run([sys.executable, str(ROOT / "tools/report_page.py"), "--check"], check=True)


def test_loads_without_errors_and_without_requests(page, opened):
    assert_quiet(page)
    assert page.evaluate("document.getElementById('failure').hidden")
    assert page.evaluate("performance.getEntriesByName('prof:ready').length") == 1


def test_page_may_request_nothing(page, opened, tmp_path):
    """The server would answer: only the policy of the page keeps a request from it."""
    server = serve(str(tmp_path), {"/there": b"here"})
    for script in (
        f"fetch('{server}/there', {{mode: 'no-cors'}}).then(() => 'sent', () => 'refused')",
        "new Promise(done => { const i = new Image(); i.onerror = () => done('refused');"
        "i.onload = () => done('sent'); i.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='; })",
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s); return window.ran ? 'sent' : 'refused'; })()",
    ):
        assert page.evaluate(script) == "refused"


def test_policy_of_the_page_allows_its_own_style_and_script_alone(page, opened):
    policy = page.evaluate(
        "document.querySelector('meta[http-equiv=Content-Security-Policy]').content"
    )
    parts = {words[0]: words[1:] for words in map(str.split, policy.split(";"))}
    own = {
        f"{tag}-src": page.evaluate(f"[...document.querySelectorAll('{tag}')].at(-1).textContent")
        for tag in ("style", "script")
    }
    hashes = {
        key: [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"]
        for key, text in own.items()
    }
    none = ["'none'"]
    assert parts == {"default-src": none, "base-uri": none, "form-action": none, **hashes}


def row_sums(events):
    """By name: calls, total (of calls that are in no other call of the name), self, min, max,
    median, p99 and mean."""
    rows = collections.defaultdict(lambda: [0, 0, 0, []])
    for event in events:
        row, duration = rows[event["name"]], event["end"] - event["begin"]
        row[0] += 1
        row[1] += duration if event["name"] not in event["path"][:-1] else 0
        row[2] += event["self"]
        row[3].append(duration)
    return {
        name: [calls, total, own, min(all_ns), max(all_ns), statistics.median_low(all_ns)]
        + [sorted(all_ns)[math.ceil(0.99 * calls) - 1], sum(all_ns) // calls]
        for name, (calls, total, own, all_ns) in rows.items()
    }


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


def test_data_without_compression_is_read(page, plain, tmp_path):
    """As it is written where there is no zlib."""
    head, encoded, tail = re.split(
        r'(?<=data-encoding="gzip">)([^<]*)', plain[1].read_text(encoding="utf-8")
    )
    data = base64.b64encode(gzip.decompress(base64.b64decode(encoded))).decode()
    (tmp_path / "plain.html").write_text(
        head.replace('data-encoding="gzip"', 'data-encoding="plain"') + data + tail,
        encoding="utf-8",
    )
    page.open(tmp_path / "plain.html")
    assert_quiet(page)
    assert page.evaluate("prof.data.rows.length") == len(row_sums(plain[0]))


def test_damaged_data_is_reported_on_the_page(page, plain, tmp_path):
    text = plain[1].read_text(encoding="utf-8")
    at = text.index('data-encoding="gzip">') + 400
    (tmp_path / "damaged.html").write_text(text[:at] + "AAAA" + text[at + 4 :], encoding="utf-8")
    page.open(tmp_path / "damaged.html")
    assert not page.evaluate("document.getElementById('failure').hidden")
    assert page.evaluate("document.getElementById('lines').children.length") > 0


def test_time_line_has_every_scope_at_its_time(page, opened):
    slices = page.evaluate(
        "prof.rows.flatMap(r => [...r.starts].map((start, i) => [r.thread, r.level, start,"
        " r.ends[i], r.counts[i], prof.data.names[r.names[i]][0]]))"
    )
    assert page.evaluate("prof.data.shift") == 0
    first = min(event["begin"] for event in opened)
    assert sorted(slices) == sorted(
        [e["thread"], e["depth"], e["begin"] - first, e["end"] - first, 1, e["name"]]
        for e in opened
    )


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


def test_search_filters_the_table_and_finds_scopes_in_order(page, opened):
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    for letter in "OPERATOR 3":
        page.press(letter)
    assert page.evaluate("prof.table.rows.map(r => r[0])") == ["operator 3"]
    first = min(event["begin"] for event in opened)
    starts = sorted(event["begin"] - first for event in opened if event["name"] == "operator 3")
    found = []
    for _ in starts:
        page.press("Enter", 13)
        found.append(page.evaluate("prof.view.chosen.row.starts[prof.view.chosen.index]"))
    assert found == starts
    page.press("Escape", 27)
    assert page.evaluate("prof.table.rows.length") == len(row_sums(opened))


def test_keys_zoom_and_move_within_the_time_line(page, opened):
    whole = page.evaluate("[prof.view.from, prof.view.to]")
    page.press("w")
    near = page.evaluate("[prof.view.from, prof.view.to]")
    assert near[1] - near[0] == pytest.approx(0.7 * (whole[1] - whole[0]))
    page.press("d")
    right = page.evaluate("[prof.view.from, prof.view.to]")
    assert right[0] > near[0]
    assert right[1] - right[0] == pytest.approx(near[1] - near[0])
    for _ in range(60):
        page.press("s")
        page.press("a")
    assert page.evaluate("[prof.view.from, prof.view.to]") == whole


def test_wheel_zooms_at_the_pointer_and_a_drag_moves(page, opened):
    left, top, width = page.evaluate(
        "(() => { document.getElementById('timeline').scrollIntoView(); const r ="
        " document.getElementById('lanes').getBoundingClientRect();"
        " return [r.left, r.top, document.getElementById('lanes').clientWidth]; })()"
    )
    whole = page.evaluate("[prof.view.from, prof.view.to]")
    page.turn_wheel_with_control(left + width / 4, top + 10, -120)
    page.wait_for(f"prof.view.to - prof.view.from < {whole[1] - whole[0]}", HANG_SECONDS)
    near = page.evaluate("[prof.view.from, prof.view.to]")
    under = [begin + (end - begin) / 4 for begin, end in (whole, near)]
    assert under[1] == pytest.approx(under[0], rel=0.01)
    page.drag(left + width / 2, top + 10, left + width / 2 - 60)
    moved = page.evaluate("[prof.view.from, prof.view.to]")
    assert moved[0] - near[0] == pytest.approx(60 / width * (near[1] - near[0]), rel=0.05)


def test_double_click_zooms_to_the_scope_under_the_pointer(page, opened):
    event = max(opened, key=lambda e: (e["depth"] == 0, e["end"] - e["begin"]))
    first = min(e["begin"] for e in opened)
    box = page.evaluate(
        "(() => { document.getElementById('timeline').scrollIntoView(); const r ="
        " document.getElementById('lanes').getBoundingClientRect(); const row = prof.rows.find("
        f"r => r.thread === {event['thread']} && r.level === 0); return [r.left, r.top + row.y + 8,"
        " document.getElementById('lanes').clientWidth, prof.view.from, prof.view.to]; })()"
    )
    left, y, width, begin, end = box
    x = left + ((event["begin"] + event["end"]) / 2 - first - begin) / (end - begin) * width
    page.click(x, y)
    page.click(x, y, 2)
    chosen = page.evaluate(
        "[prof.view.chosen.row.starts[prof.view.chosen.index],"
        " prof.view.chosen.row.ends[prof.view.chosen.index]]"
    )
    view = page.evaluate("[prof.view.from, prof.view.to]")
    assert chosen == [event["begin"] - first, event["end"] - first]
    assert view[0] <= chosen[0] and chosen[1] <= view[1]
    assert view[1] - view[0] == pytest.approx((chosen[1] - chosen[0]) * 1.1, rel=0.1)


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


def test_hostile_names_are_text(page, tmp_path):
    events = make_events(2, HOSTILE, 40)
    trace = trace_of(events, "</script><b>\u2028")
    trace["traceEvents"] += [
        {
            "ph": "M",
            "pid": 7,
            "tid": 100,
            "name": name,
            "args": {"name": "</script><script>document.title='taken'</script>"},
        }
        for name in ("thread_name", "process_name")
    ]
    capture = make_capture(tmp_path, "hostile", trace)
    report = tmp_path / "hostile.html"
    prof(
        "report",
        "-o",
        report,
        "--title",
        "</title><script>document.title='taken'</script>",
        capture,
    )
    page.open(report)
    assert_quiet(page)
    assert page.evaluate("document.title").startswith("</title>")
    assert page.evaluate("document.getElementsByTagName('script').length") == 2
    assert page.evaluate("document.querySelectorAll('b, img').length") == 0
    sums = row_sums(events)
    cells = page.evaluate(
        "[...document.querySelectorAll('#body tr')].map(r => r.cells[0].textContent)"
    )
    assert len(cells) == len(sums)
    assert sum(row[2] for row in page.evaluate("prof.data.rows")) == len(events)
    assert not any(re.search("[\0-\x1f\x7f\u2028-\u202e]", cell) for cell in cells)
    assert "nul\\u2400 bell" in "".join(cells) or "nul\u2400 bell" in "".join(cells)
    page.evaluate(
        "prof.rows.forEach(row => row.starts.forEach((_, index) => {"
        " prof.choose({row, index}, true); }))"
    )
    page.evaluate("prof.search('script')")
    assert page.errors == []


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


def test_one_scope_of_one_nanosecond(page, tmp_path):
    events = [{"name": "one", "begin": 5, "end": 6, "thread": 0}]
    page.open(make_report(make_capture(tmp_path, "one", trace_of(events))))
    assert_quiet(page)
    assert page.evaluate("prof.rows.map(r => [r.starts[0], r.ends[0]])") == [[0, 1]]
    page.press("w")
    assert page.errors == []


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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Makes a report of what make_report.c records."""
    folder = tmp_path_factory.mktemp("recorded")
    program = folder / "make_report"
    source = ROOT / "tests/viewers/make_report.c"
    words = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
    link = [f"-L{BUILD}", "-lprof", f"-Wl,-rpath,{BUILD}"]
    subprocess.run(
        [os.environ.get("CC", "cc"), *words, str(source), "-o", str(program), *link], check=True
    )

    def record(what):
        capture = folder / f"{what}.prof"
        settings = {"PROF_LEVEL": "1", "PROF_OUTPUT": str(capture)}
        subprocess.run(
            [str(program), what], env=os.environ | settings, check=True, timeout=HANG_SECONDS
        )
        return make_report(capture)

    return record


@pytest.fixture(scope="module")
def dense(recorded):
    """A report of more scopes than a page has slices."""
    return recorded("dense")


@pytest.fixture(scope="module")
def parts(recorded):
    return recorded("parts")


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


def test_kind_of_flame_graph_is_chosen_by_the_keyboard(page, parts):
    page.open(parts)
    assert page.evaluate("prof.flame.kind") == "host"
    page.evaluate("document.querySelectorAll('#flame-kinds button')[1].focus()")
    page.press("Enter", 13)
    assert page.evaluate("prof.flame.kind") == "memory"
    assert page.evaluate("prof.flame.paths.map(p => p.total)") == [15 << 20, 15 << 20]


@pytest.mark.parametrize("name", [name for name in CHROME if name != "forced-gzip"])
def test_every_kind_of_capture_has_a_report(page, traces, name):  # noqa: F811
    folder, expected = traces[0], traces[1][name]
    capture = folder / f"{name}.prof"
    page.open(make_report(capture))
    assert_quiet(page)
    total = page.evaluate("prof.rows.reduce((n, r) => n + r.counts.reduce((a, b) => a + b, 0), 0)")
    assert total == expected["scopes"] + expected["open"] + expected["steps"]
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


def test_dense_time_line_keeps_every_scope_in_a_count(page, dense):
    page.open(dense)
    assert_quiet(page)
    total = page.evaluate("prof.rows.reduce((n, r) => n + r.counts.reduce((a, b) => a + b, 0), 0)")
    assert total == page.evaluate("prof.data.rows.reduce((n, r) => n + r[2], 0)") == 1000000
    assert page.evaluate("prof.data.shift") > 0
    assert page.evaluate("prof.rows.reduce((n, r) => n + r.starts.length, 0)") <= 200000
    assert "grid" in page.evaluate("document.getElementById('grid').textContent")
    assert dense.stat().st_size < 5 << 20


def test_dense_time_line_has_no_overlaps_and_lies_on_its_grid(page, dense):
    page.open(dense)
    assert page.evaluate(
        "prof.rows.every(r => r.starts.every((start, i) => start % 2 ** prof.data.shift === 0 &&"
        " start <= r.ends[i] && (i === 0 || r.ends[i - 1] <= start)))"
    )


def test_at_most_one_rectangle_is_drawn_for_a_pixel(page, dense):
    page.open(dense)
    for zoom in (1, 10, 1000):
        page.evaluate(
            "(() => { const starts = prof.rows[0].starts, from = starts[starts.length >> 1];"
            f" prof.setView(from, from + prof.data.end_ns / {zoom}); }})()"
        )
        page.evaluate(TWO_FRAMES)
        assert 0 < page.evaluate("prof.drawn()") <= page.evaluate("prof.rows.length") * (WIDTH + 2)


def test_slices_lie_on_whole_pixels_and_narrow_ones_have_no_hatch(page, dense):
    """Else a frame of a dense time line takes several times as long: bench/report_frames.py."""
    page.open(dense)
    boxes = page.evaluate(
        """(async () => {
          const plain = CanvasRenderingContext2D.prototype.fillRect, boxes = [];
          CanvasRenderingContext2D.prototype.fillRect = function (...box) {
            if (this.canvas.id === "lanes-canvas")
              boxes.push([this.fillStyle instanceof CanvasPattern, ...box]);
            plain.apply(this, box);
          };
          const row = prof.rows.find((row) => row.counts.some((count) => count > 1));
          const i = row.counts.findIndex((count) => count > 1);
          for (const slices of [1e6, 1000, 100, 10]) {  // that long a view
            prof.setView(row.starts[i], row.starts[i] + slices * (row.ends[i] - row.starts[i]));
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          }
          CanvasRenderingContext2D.prototype.fillRect = plain;
          return boxes;
        })()"""
    )
    assert all(place == int(place) for _, *box in boxes for place in box)
    assert {box[0] for box in boxes} == {True, False}
    assert min(width for is_hatch, _, _, width, _ in boxes if is_hatch) > 3
    assert min(width for _, _, _, width, _ in boxes) == 1


def test_dark_and_print_are_drawn(page, opened):
    light = page.screenshot()
    page.command(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-color-scheme", "value": "dark"}],
    )
    page.evaluate(TWO_FRAMES)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    assert page.screenshot() != light
    page.command("Emulation.setEmulatedMedia", features=[])
    assert len(page.command("Page.printToPDF", printBackground=True)["data"]) > 10000
    assert page.errors == []


def test_wrong_words_are_refused_and_nothing_is_written(plain, tmp_path):
    capture = plain[1].with_suffix(".prof")
    prof("report", status=2)
    prof("report", "--base", capture, status=2)
    prof("report", "--base", capture, "--new", capture, capture.with_suffix(".none"), status=1)
    prof("report", "-o", capture, capture, status=2)
    done = prof("report", "-o", tmp_path / "x.html", tmp_path / "none.prof", status=1)
    assert "none.prof" in done.stderr
    (tmp_path / "bad.prof").write_bytes(b"PROF" * 4096)
    prof("report", "-o", tmp_path / "x.html", tmp_path / "bad.prof", status=1)
    prof("report", "-o", tmp_path / "no" / "x.html", capture, status=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.prof"]
