"""The flame graph of a report with a base: its colours, legend and numbers, against `prof flame`
and `prof diff` of the same captures."""

import collections
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from browser import needs_browser
from reports import (
    assert_quiet,
    calls_on_canvas,
    make_capture,
    make_events,
    make_report,
    prof,
    trace_of,
)
from test_report import contrast

pytestmark = needs_browser

TEXT = {"light": "#1b1f24", "dark": "#e4e7eb"}
SVG = "{http://www.w3.org/2000/svg}"
NAMES = ["load", "compute"]
VALUES = ("total", "own", "base", "baseOwn")
MEMORY = {"ph": "i", "s": "t", "pid": 7, "tid": 100, "name": "[memory]"}


def with_memory(trace, sizes):
    """Allocations in the first calls, which all last longer than these times."""
    calls = [event for event in trace["traceEvents"] if event["tid"] == 100]
    for number, (call, size) in enumerate(zip(calls, sizes)):
        values = {"Addr": number + 1, "Bytes": size, "Device Type": 0, "Device Id": -1}
        trace["traceEvents"].append({**MEMORY, "ts": call["ts"] + call["dur"] / 2, "args": values})
    return trace


def make_side(folder, side, seeds, names=NAMES):
    captures = []
    for seed in seeds:
        sizes = [1024 * (seed + i % 5) for i in range(60)]
        trace = with_memory(trace_of(make_events(seed, names, 60)), sizes)
        captures.append(make_capture(folder, f"{side}{seed}", trace))
    return captures


class Difference:
    def __init__(self, folder, base, new):
        self.base, self.new, self.page = base, new, folder / "difference.html"
        self.sides = ("--base", *base, "--new", *new)
        prof("report", "-o", self.page, *self.sides)

    def folded(self, kind):
        """Path: own value of the base, own value of the new side."""
        lines = prof("flame", "--folded", "--of", kind, *self.sides).stdout.splitlines()
        values = {}
        for line in lines:
            stack, base, new = line.rsplit(" ", 2)
            path = () if stack == "(no scope)" else tuple(stack.split(";"))
            values[path] = (int(base), int(new))
        return values

    def svg(self, kind):
        """(name, title, colour) of each frame but the root, and the words beside them."""
        picture = self.page.with_suffix(".svg")
        prof("flame", "-o", picture, "--of", kind, *self.sides)
        tree = ElementTree.parse(picture)
        groups = [group for group in tree.iter(f"{SVG}g") if group.get("class") == "f"]
        frames = [
            (group.get("data-n"), group[0].text, group.find(f"{SVG}rect").get("fill"))
            for group in groups[1:]
        ]
        return frames, " ".join(text.text or "" for text in tree.iter(f"{SVG}text"))


@pytest.fixture(scope="module")
def difference(tmp_path_factory):
    """Three runs and two, and a name that each side alone has."""
    folder = tmp_path_factory.mktemp("difference")
    base = make_side(folder, "base", (21, 22, 23), [*NAMES, "old"])
    return Difference(folder, base, make_side(folder, "new", (31, 32), [*NAMES, "fresh"]))


def choose_kind(page, kind):
    page.evaluate(
        "[...document.querySelectorAll('#flame-kinds button')]"
        f".find(button => button.textContent === {kind!r}).click()"
    )


def paths_of(page):
    """Path: the frame of the page."""
    frames = page.evaluate(
        "prof.flame.paths.map((p, i) => { const names = []; for (let at = i; at;"
        " at = prof.flame.paths[at].parent) names.unshift(prof.data.path_names["
        "prof.flame.paths[at].row]); return [names, p]; })"
    )
    return {tuple(names): frame for names, frame in frames}


def with_totals(own):
    """Of the root and of each path: the sums of those below it, on both sides."""
    totals = collections.defaultdict(lambda: [0, 0])
    for path, values in own.items():
        for depth in range(len(path) + 1):
            for side, value in enumerate(values):
                totals[path[:depth]][side] += value
    return totals


@pytest.mark.parametrize("kind", ["host", "memory"])
def test_values_are_those_of_prof_flame(page, difference, kind):
    page.open(difference.page)
    choose_kind(page, kind)
    assert_quiet(page)
    own = difference.folded(kind)
    totals = with_totals(own)
    frames = paths_of(page)
    # Means are rounded: a sum of them is off by at most half a unit for each.
    for path, frame in frames.items():
        assert [frame["baseOwn"], frame["own"]] == list(own.get(path, (0, 0))), path
        assert frame["base"] == pytest.approx(totals[path][0], abs=len(own) / 2 + 1), path
        assert frame["total"] == pytest.approx(totals[path][1], abs=len(own) / 2 + 1), path
    assert set(frames) == {path for path, (_, new) in totals.items() if new}
    assert any(not frame["base"] for frame in frames.values())


def shown(text):
    """Nanoseconds or bytes of a text of the page or of `prof flame`, and its last digit."""
    number, unit = re.fullmatch(r"([\d.]+) ?([a-zA-Zµ]+)", text).groups()
    sizes = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
    sizes |= {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    digits = len(number.partition(".")[2])
    return float(number) * sizes[unit], sizes[unit] / 10**digits


def changes_of(text):
    """[(sign, value, last digit, percent)] of the text below the graph: of all, and own."""
    found = re.findall(r"(?:change|own) ([-+])([\d.]+ \S+?)(?:, [-+]([\d.]+) %)?(?=  |$)", text)
    return [(sign, *shown(value), percent and float(percent)) for sign, value, percent in found]


def assert_change(change, base, new):
    sign, value, last, percent = change
    assert sign == ("-" if new < base else "+")
    assert abs(value - abs(new - base)) <= last
    if base:
        assert percent == pytest.approx(100 * abs(new - base) / base, abs=0.051)
    else:
        assert percent == ""


@pytest.mark.parametrize("kind", ["host", "memory"])
def test_pointer_shows_the_change_in_numbers(page, difference, kind):
    page.open(difference.page)
    choose_kind(page, kind)
    page.evaluate("document.getElementById('flame').scrollIntoView()")
    script = """(async () => {
      await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
      const canvas = document.getElementById("flame-canvas"), texts = [];
      const { left, top } = canvas.getBoundingClientRect();
      for (const { x, y, w, index } of prof.flame.places.filter(p => p.w > 3)) {
        canvas.dispatchEvent(new MouseEvent("mousemove",
          { clientX: left + x + w / 2, clientY: top + y + 5 }));
        texts.push([index, document.getElementById("frame").textContent]);
      }
      return texts;
    })()"""
    frames = {frame["index"]: frame for frame in paths_of(page).values()}
    texts = page.evaluate(script)
    assert len(texts) > 20
    for index, text in texts:
        frame = frames[index]
        if not frame["base"]:
            assert text.endswith("  nothing in the base")
            continue
        total, *own = changes_of(text)
        assert_change(total, frame["base"], frame["total"])
        assert len(own) == bool(frame["own"] or frame["baseOwn"])
        for change in own:
            assert_change(change, frame["baseOwn"], frame["own"])


def test_titles_of_prof_flame_have_the_numbers_of_the_page(page, difference):
    page.open(difference.page)
    pattern = re.compile(r".*: (\S+), [\d.]+%; own (\S+); base (\S+), own (\S+)", re.DOTALL)
    frames = page.evaluate("prof.flame.paths.slice(1)")
    svg = difference.svg("host")[0]
    assert len(svg) == len(frames) > 20  # in the same order
    for (name, title, _), frame in zip(svg, frames):
        assert name == page.evaluate(f"prof.data.path_names[{frame['row']}]")
        for text, key in zip(pattern.fullmatch(title).groups(), VALUES):
            value, last = shown(text)
            assert abs(value - frame[key]) <= last, title


def test_totals_are_those_of_the_table_of_differences(page, difference):
    """A row's total is that of its paths. A recursion counts its outermost call alone."""
    page.open(difference.page)
    lines = json.loads(prof("diff", "--json", *difference.sides).stdout)["rows"]
    totals = collections.Counter()
    for path, frame in paths_of(page).items():
        if path and path[-1] not in path[:-1]:
            totals[path[-1]] += frame["total"]
    assert len(totals) == len(NAMES) + 1
    new = {
        line.get("new_name", line["name"]): line["new"]["total_ns"]
        for line in lines
        if line["state"] != "gone"
    }
    assert set(new) == set(totals)
    for name, total in totals.items():
        assert total == pytest.approx(new[name], abs=len(paths_of(page)))


def rgb(colour):
    """Of '#rrggbb' or 'color(srgb r g b)'."""
    if colour[0] == "#":
        return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    parts = re.fullmatch(r"color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)\)", colour).groups()
    return [255 * float(part) for part in parts]


def share_of(colour, same, full):
    """Where a colour lies between two others. All three channels agree."""
    parts = [(c - s) / (f - s) for c, s, f in zip(colour, same, full) if abs(f - s) > 20]
    assert max(parts) - min(parts) < 0.05
    return sum(parts) / len(parts)


def set_scheme(page, scheme):
    value = [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []
    page.command("Emulation.setEmulatedMedia", features=value)


def drawn_colours(page):
    """Of all frames but the root, by place: [index, colour]."""
    boxes = calls_on_canvas(
        page, "flame-canvas", "fillRect", "prof.zoomFlame(0)", "(to) => [to.fillStyle]"
    )[1:]
    places = page.evaluate("prof.flame.places")
    assert len(boxes) == len(places)
    return [(place["index"], box[4]) for place, box in zip(places, boxes) if place["index"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["host", "memory"])
def test_colours_have_the_direction_and_strength_of_prof_flame(page, difference, kind, scheme):
    set_scheme(page, scheme)
    page.open(difference.page)
    choose_kind(page, kind)
    style = "getComputedStyle(document.documentElement).getPropertyValue('--%s').trim()"
    same, less, more = (rgb(page.evaluate(style % name)) for name in ("same", "less", "more"))
    colours = drawn_colours(page)
    frames = {frame["index"]: frame for frame in paths_of(page).values()}
    set_scheme(page, None)
    own = difference.folded(kind)
    most = max(abs(new - base) for base, new in own.values())
    assert page.evaluate("prof.flame.most") == pytest.approx(most, abs=1)
    seen = {-1: 0, 0: 0, 1: 0}
    for index, colour in colours:
        change = frames[index]["own"] - frames[index]["baseOwn"]
        share = share_of(rgb(colour), same, less if change < 0 else more)
        assert share == pytest.approx(abs(change) / most, abs=0.02)
        seen[(change > 0) - (change < 0)] += 1
    assert seen[-1] > 3 and seen[1] > 3
    # 0xee of 0xf0 and 0xf4 is the weakest colour of the SVG, 0x58 the strongest.
    svg = dict(enumerate((colour for _, _, colour in difference.svg(kind)[0]), 1))
    for index, _ in colours:
        change = frames[index]["own"] - frames[index]["baseOwn"]
        red, green, blue = rgb(svg[index])
        assert green == pytest.approx(0xEE - 150 * abs(change) / most, abs=1)
        assert (red == 0xF0, blue == 0xF4) == (change > 0, change < 0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_can_be_read_on_the_strongest_colours(page, difference, scheme):
    set_scheme(page, scheme)
    page.open(difference.page)
    style = "getComputedStyle(document.documentElement).getPropertyValue('--%s').trim()"
    colours = [page.evaluate(style % name) for name in ("same", "less", "more", "text")]
    back = page.evaluate(style % "back")
    set_scheme(page, None)
    assert colours.pop() == TEXT[scheme]
    assert min(contrast(colour, TEXT[scheme]) for colour in colours) >= 4.5
    assert all(colour != back for colour in colours)


def legend_of(page):
    return " ".join(page.evaluate("document.getElementById('legend').innerText").split())


def test_legend_has_the_ends_of_the_scale_and_what_is_not_drawn(page, difference):
    page.open(difference.page)
    legend = legend_of(page)
    (gone,) = re.findall(r"(\d+) with nothing in the new side", difference.svg("host")[1])
    most = max(abs(new - base) for base, new in difference.folded("host").values())
    less, more = re.fullmatch(
        r"Widths are of the new side\. Change of own time since the base: -(\S+ \S+), blue ?red, "
        r"\+(\S+ \S+)\. Means of 3 runs of the base, and of 2 new ones\. "
        rf"Paths with nothing in the new side are not drawn: {gone}\.",
        legend,
    ).groups()
    assert less == more
    value, last = shown(more)
    assert abs(value - most) <= last
    assert int(gone) > 0
    choose_kind(page, "memory")
    assert "Change of own bytes" in legend_of(page)
    assert "KiB" in legend_of(page)
    assert page.evaluate("document.querySelector('#legend i').getClientRects().length") == 1


def test_a_wide_frame_has_its_own_change_in_its_label(page, tmp_path):
    sides = [
        make_capture(
            tmp_path,
            name,
            trace_of([{"name": "call", "begin": 0, "end": end, "thread": 0, "depth": 0}]),
        )
        for name, end in (("base", 4000), ("new", 5000))
    ]
    page.open(Difference(tmp_path, [sides[0]], [sides[1]]).page)
    labels = calls_on_canvas(page, "flame-canvas", "fillText", "prof.zoomFlame(0)")
    assert [label[0] for label in labels] == ["all", "call  own +1 µs, +25.0 %"]
    page.open(Difference(tmp_path, [sides[1]], [sides[1]]).page)
    labels = calls_on_canvas(page, "flame-canvas", "fillText", "prof.zoomFlame(0)")
    assert [label[0] for label in labels] == ["all", "call  own +0 ns, +0.0 %"]
    assert "Means" not in legend_of(page) and "not drawn" not in legend_of(page)
    assert_quiet(page)


def test_a_report_without_a_base_has_no_legend(page, difference):
    page.open(make_report(difference.new[0]))
    assert page.evaluate("document.getElementById('legend').hidden")
    labels = calls_on_canvas(page, "flame-canvas", "fillText", "prof.zoomFlame(0)")
    assert not any("%" in label[0] for label in labels)


def test_a_filter_applies_to_both_sides(page, difference):
    words = ("--name", "^compute$")
    prof("report", "-o", difference.page.with_name("some.html"), *words, *difference.sides)
    page.open(difference.page.with_name("some.html"))
    lines = prof("flame", "--folded", *words, *difference.sides).stdout.splitlines()
    expected = {
        tuple(stack.split(";")): [int(base), int(new)]
        for stack, base, new in (line.rsplit(" ", 2) for line in lines)
        if int(new)
    }
    frames = {
        path: [frame["baseOwn"], frame["own"]]
        for path, frame in paths_of(page).items()
        if frame["own"]
    }
    assert frames == expected
