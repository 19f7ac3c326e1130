#!/usr/bin/env python3
"""usage: report_frames.py [--runs N] [--size WxH] [BUILD | REPORT.html]

How long the page of `prof report` takes to appear, and each of its frames while a person zooms,
in a headless Chromium. BUILD is where CMake built prof; build/release by default. From it the
script records ten million scopes and makes their report, in TMPDIR, with 300 MB of disk. Instead a
page may be given.

It appears: from the start of the navigation to the first paint of the summary, and to the second
frame after the first drawing of the time line. The column "empty" is the first paint of a page of
one word, the floor.

Zoom: at each frame the page gets one turn of the wheel with Ctrl. The view goes to a thousandth of
the whole and back, at three places. For each run it prints the p95 of these, in ms a frame:

- script: processor time of the page's main thread in the wheel's event and the callbacks of the
  frame. Other processes change it little, so the bound is for it.
- by clock: the same by the clock. On a busy machine it includes waits for a processor.
- interval: from frame to frame. On a busy machine it says little about the page.

The last column is the mean processor time of all processes of the browser for a frame. If it is
below the bound of the interval, one free processor can draw most frames in time.

The best run counts: other processes only add to a time. It measures, and gives no verdict."""

import argparse
import bisect
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/viewers"))

from picture import Browser  # noqa: E402

READY = "document.documentElement.dataset.ready === '1'"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
PAINTED = """({
  summary: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity,
  line: performance.getEntriesByName('prof:ready')[0].startTime,
})"""
# Turns the wheel once a frame, and resolves with the intervals and the most rectangles of a frame.
ZOOM = """new Promise((done) => {
  const lanes = document.getElementById('lanes'), steps = 70, intervals = [];
  lanes.scrollIntoView({ block: 'center' });
  const box = lanes.getBoundingClientRect();
  let frame = 0, before = 0, most = 0;
  const tick = (now) => {
    if (before) intervals.push(now - before);
    before = now;
    most = Math.max(most, prof.drawn());
    if (frame === 6 * steps) return done({ intervals, most });
    lanes.dispatchEvent(new WheelEvent('wheel', {
      deltaY: frame % (2 * steps) < steps ? -30 : 30, ctrlKey: true, bubbles: true,
      cancelable: true, clientY: box.top + 40,
      clientX: box.left + box.width * [0.5, 0.21, 0.83][Math.floor(frame / (2 * steps))]
    }));
    frame++;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})"""
COLUMNS = ("empty", "summary", "line", "script", "by clock", "interval", "all")
BOUNDS = {"summary": 300, "line": 1500, "script": 10, "interval": 20}


def record(build, folder):
    """The page of ten million scopes."""
    program, capture, page = folder / "make_report", folder / "wide.prof", folder / "wide.html"
    source = ROOT / "tests/viewers/make_report.c"
    words = ["-std=c11", "-O1", f"-I{ROOT / 'include'}", str(source), "-o", str(program)]
    link = [f"-L{build}", "-lprof", "-pthread", f"-Wl,-rpath,{build}"]
    subprocess.run([os.environ.get("CC", "cc"), *words, *link], check=True)
    settings = {"PROF_LEVEL": "1", "PROF_OUTPUT": str(capture)}
    subprocess.run([str(program), "wide"], env=os.environ | settings, check=True)
    subprocess.run([str(build / "prof"), "report", "-o", str(page), str(capture)], check=True)
    return page


def p95(values):
    return sorted(values)[int(0.95 * (len(values) - 1) + 0.5)]


class TracedBrowser(Browser):
    def __init__(self, width, height):
        self.events, self.is_traced = [], False
        super().__init__(width, height, 600)

    def receive(self, deadline):
        message = super().receive(deadline)
        if message.get("method") == "Tracing.dataCollected":
            self.events.extend(message["params"]["value"])
        elif message.get("method") == "Tracing.tracingComplete":
            self.is_traced = True
        return message

    def open(self, page, condition=READY):
        self.command("Page.navigate", url="about:blank")
        self.command("Page.navigate", url=page.as_uri())
        self.wait_for(condition)

    def traced(self, script):
        """The script's value, and Chromium's events meanwhile."""
        self.events, self.is_traced = [], False
        self.command("Tracing.start", categories="devtools.timeline", transferMode="ReportEvents")
        value = self.evaluate(script)
        self.command("Tracing.end")
        while not self.is_traced:
            self.receive(time.monotonic() + self.seconds)
        return value, self.events

    def processor_ms(self):
        """Of all its processes so far."""
        pids, ticks = [self.process.pid], 0
        for pid in pids:
            try:
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    pids.extend(map(int, (task / "children").read_text().split()))
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
            except OSError:
                pass  # it has ended
        return 1000 * ticks / os.sysconf("SC_CLK_TCK")


def frames_of(events):
    """The script of each frame: its processor time and its time by the clock, in ms. The last
    callback of a frame is tick() of ZOOM, which also turns the wheel."""
    events = [event for event in events if event["ph"] == "X" and "tdur" in event]
    ticks = [
        event
        for event in events
        if event["name"] == "FunctionCall" and event["args"]["data"].get("functionName") == "tick"
    ]
    main = ticks[0]["pid"], ticks[0]["tid"]
    callbacks = [
        event
        for event in events
        if event["name"] == "FireAnimationFrame" and (event["pid"], event["tid"]) == main
    ]
    ends = sorted(event["ts"] for event in ticks)
    frames = [[0.0, 0.0] for _ in ends]
    for event in callbacks:
        frame = bisect.bisect_left(ends, event["ts"])
        if frame < len(frames):
            frames[frame][0] += event["tdur"] / 1000
            frames[frame][1] += event["dur"] / 1000
    return frames


def measure(browser, page, empty):
    """Two loads and two zooms: with a trace for the script, and without one for the intervals."""
    browser.open(empty, f"location.protocol === 'file:' && {PAINT} > 0")
    floor = browser.evaluate(PAINT)
    browser.open(page)
    result = browser.evaluate(PAINTED) | {"empty": floor}
    traced, events = browser.traced(ZOOM)
    frames = frames_of(events)
    result["script"] = p95([frame[0] for frame in frames])
    result["by clock"] = p95([frame[1] for frame in frames])
    before = browser.processor_ms()
    zoomed = browser.evaluate(ZOOM)
    result["all"] = (browser.processor_ms() - before) / len(zoomed["intervals"])
    result["interval"] = p95(zoomed["intervals"])
    result["rectangles"] = traced["most"]
    return result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", default="1600x1000", metavar="WxH")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    results = []
    with tempfile.TemporaryDirectory(prefix="prof-frames-") as folder:
        what = options.what.resolve()
        page = record(what, pathlib.Path(folder)) if what.is_dir() else what
        empty = pathlib.Path(folder) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title><p>word</p>\n", encoding="utf-8")
        print(f"page: {page.stat().st_size / 1e6:.2f} MB; load of the machine: {os.getloadavg()}")
        print("ms     " + "".join(f"{column:>11}" for column in COLUMNS))
        for number in range(options.runs):
            browser = TracedBrowser(width, height)
            try:
                results.append(measure(browser, page, empty))
            finally:
                browser.close()
            print(f"run {number + 1:<3}" + "".join(f"{results[-1][c]:11.2f}" for c in COLUMNS))
    print("best   " + "".join(f"{min(r[c] for r in results):11.2f}" for c in COLUMNS))
    print("bound  " + "".join(f"{BOUNDS.get(c, ''):>11}" for c in COLUMNS))
    print(f"at most {max(r['rectangles'] for r in results)} rectangles in a frame")


if __name__ == "__main__":
    main()
