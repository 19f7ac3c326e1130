"""What the tests of reports share. Their traces have times that are known to the nanosecond, so a
page is compared with sums that the tests make. conftest.py hands the fixtures out."""

import collections
import json
import math
import os
import random
import statistics
import subprocess

import pytest
from browser import Page
from hang_guard import HANG_SECONDS
from test_viewers import BUILD, ROOT

WIDTH, HEIGHT = 1200, 900
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"

# The calls of a context's method, on a canvas, while the script runs: its arguments and `more`.
CALLS = """(async () => {
  const plain = CanvasRenderingContext2D.prototype.%(method)s, calls = [];
  CanvasRenderingContext2D.prototype.%(method)s = function (...words) {
    if (this.canvas.id === "%(canvas)s") calls.push([...words, ...(%(more)s)(this, words)]);
    plain.apply(this, words);
  };
  %(script)s;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  CanvasRenderingContext2D.prototype.%(method)s = plain;
  return calls;
})()"""


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


def calls_on_canvas(page, canvas, method, script, more="() => []"):
    """What CALLS returns."""
    words = {"canvas": canvas, "method": method, "script": script, "more": more}
    return page.evaluate(CALLS % words)


def assert_quiet(page):
    assert page.errors == []
    assert [address for address in page.requests if not address.startswith("file:")] == []
    assert len(page.requests) == 1


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
