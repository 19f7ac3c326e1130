"""The time line of a report: what it shows, how it moves, and what is drawn."""

import pytest
from browser import needs_browser
from hang_guard import HANG_SECONDS
from reports import TWO_FRAMES, WIDTH, assert_quiet, make_capture, make_report, row_sums, trace_of

pytestmark = needs_browser


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


def test_one_scope_of_one_nanosecond(page, tmp_path):
    events = [{"name": "one", "begin": 5, "end": 6, "thread": 0}]
    page.open(make_report(make_capture(tmp_path, "one", trace_of(events))))
    assert_quiet(page)
    assert page.evaluate("prof.rows.map(r => [r.starts[0], r.ends[0]])") == [[0, 1]]
    page.press("w")
    assert page.errors == []


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
