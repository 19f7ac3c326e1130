"""prof report in a real browser: how the page loads, what it may do, and what is refused."""

import base64
import gzip
import hashlib
import re
import subprocess
import sys

import pytest
from browser import needs_browser
from picture import serve
from reports import (
    HEIGHT,
    TWO_FRAMES,
    WIDTH,
    assert_quiet,
    calls_on_canvas,
    make_capture,
    make_events,
    make_report,
    prof,
    row_sums,
    trace_of,
)
from test_viewers import ROOT

pytestmark = needs_browser


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


@pytest.mark.parametrize("width", [1280, 700])
def test_header_covers_no_heading_that_a_link_goes_to(page, parts, width):
    page.set_size(width, 800)
    try:
        page.open(parts)
        page.evaluate(TWO_FRAMES)
        header = "document.querySelector('header').getBoundingClientRect().bottom"
        links = page.evaluate("[...document.querySelectorAll('#nav a')].map(a => a.hash)")
        assert len(links) > 6
        rows = "new Set([...document.querySelectorAll('#nav a')].map(a => a.offsetTop)).size"
        assert page.evaluate(rows) == 1
        for link in links:
            page.evaluate(f"document.querySelector('#nav a[href=\"{link}\"]').click()")
            page.evaluate(TWO_FRAMES)
            heading = f"document.querySelector('{link} h2').getBoundingClientRect().top"
            assert page.evaluate(heading) >= page.evaluate(header)
        assert page.evaluate("document.documentElement.scrollWidth") == width
    finally:
        page.set_size(WIDTH, HEIGHT)


def test_dark_page_is_printed_light(page, plain):
    """Else text would be light on white paper, where the browser prints no backgrounds."""
    corner = (
        "(id) => [...document.getElementById(id).getContext('2d').getImageData(0, 0, 1, 1).data]"
    )
    back = "getComputedStyle(document.body).backgroundColor"
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    canvases = ["lanes-canvas", "flame-canvas"]
    page.command("Emulation.setEmulatedMedia", features=dark)
    page.open(plain[1])
    before = page.evaluate(f"{canvases}.map({corner})")
    assert all(max(pixel[:3]) < 0x60 for pixel in before)
    page.command("Emulation.setEmulatedMedia", media="print", features=dark)
    assert page.evaluate(back) == "rgb(255, 255, 255)"
    page.command("Emulation.setEmulatedMedia", media="", features=dark)
    assert page.evaluate(back) == "rgb(21, 24, 28)"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = page.evaluate(f"{canvases}.map({corner})")
    assert all(min(pixel[:3]) > 0xC0 for pixel in printed)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(f"{canvases}.map({corner})") == before
    page.command("Emulation.setEmulatedMedia", media="", features=[])
    assert [error for error in page.errors if "getImageData" not in error] == []


def luminance(colour):
    """The relative luminance of WCAG, of '#rrggbb'."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return sum(part * value for part, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    dim, bright = sorted((luminance(a), luminance(b)))
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize(("scheme", "text"), [("light", "#15181c"), ("dark", "#f2f4f6")])
def test_text_on_slices_has_contrast(page, tmp_path, scheme, text):
    events = [
        {"name": f"name {i}", "begin": i * 100, "end": i * 100 + 90, "thread": 0}
        for i in range(200)
    ]
    page.command(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    page.open(make_report(make_capture(tmp_path, "names", trace_of(events))))
    boxes = calls_on_canvas(
        page,
        "lanes-canvas",
        "fillRect",
        "prof.setView(0, prof.data.end_ns)",
        "(to) => [to.fillStyle]",
    )
    page.command("Emulation.setEmulatedMedia", features=[])
    # The first two are the background and the thread's heading.
    back, colours = boxes[0][4], {box[4] for box in boxes[2:]}
    assert len(colours) > 150
    assert min(contrast(colour, text) for colour in colours) >= 4.5
    if scheme == "dark":
        assert min(contrast(colour, back) for colour in colours) >= 2


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
