#!/usr/bin/env python3
"""usage: report_pictures.py MODEL [--build DIR] [--keep]

Takes the pictures of `prof report` and `prof flame` in docs/pictures: report.png, report-dark.png,
difference.png, report-flame.png and flame.png. `make picture-report` calls it; no test needs it.

It records examples/minilm with MODEL, the folder that fetch-model.sh prints: once on an OpenCL
device, and several times on the host, with two kinds of OpenBLAS's kernels. A busy machine makes
ugly pictures. --keep takes the captures that an earlier call left in build/pictures."""

import argparse
import base64
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "python"))

from browser import Page  # noqa: E402

WORK, PICTURES = ROOT / "build/pictures", ROOT / "docs/pictures"
RUNS = 5  # of each side; a verdict needs four
WIDTH, HEIGHT, MARGIN = 1280, 860, 16
EDGE = 25  # of the page, beside a table
BYTES_MAX = 200 << 10
# What OpenBLAS runs on any processor of x86-64. The other side has the kernels of this processor.
OLD_KERNELS = {"OPENBLAS_CORETYPE": "Prescott"}

# The line below the graph has its change. It stays when taking the picture draws the page again.
POINT_AT_LARGEST_CHANGE = """(async () => {
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const canvas = document.getElementById("flame-canvas");
  const { left, top } = canvas.getBoundingClientRect(), { places, paths } = prof.flame;
  const change = ({ index }) => Math.abs(paths[index].own - paths[index].baseOwn);
  const place = places.reduce((a, b) => change(a) > change(b) ? a : b);
  canvas.dispatchEvent(new MouseEvent("mousemove",
    { clientX: left + place.x + place.w / 2, clientY: top + place.y + 5 }));
  Object.defineProperty(document.getElementById("frame"), "textContent", { set() {} });
})()"""


def call(*words, env=None):
    done = subprocess.run(
        list(map(str, words)), env=os.environ | (env or {}), capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"report_pictures.py: {words[0]} failed:\n{done.stdout}{done.stderr}")


def record(build, model):
    shutil.rmtree(WORK, ignore_errors=True)
    demo = [build / "examples/minilm-demo", "--model", model, "--quick"]
    WORK.mkdir(parents=True)
    call(*demo, "--device", "opencl", "--texts-limit", 24, "--out", WORK / "opencl.prof")
    for run in range(RUNS):
        for side, env in (("before", OLD_KERNELS), ("after", {})):
            (WORK / side).mkdir(exist_ok=True)
            call(*demo, "--texts-limit", 16, "--out", WORK / side / f"{run}.prof", env=env)


def write_pages(build):
    prof, sides = build / "prof", ("--base", WORK / "before", "--new", WORK / "after")
    call(prof, "report", "-o", WORK / "report.html", WORK / "opencl.prof")
    shapes = ("--by", "name,shape", "--name", "^softmax$")
    call(prof, "report", *shapes, "-o", WORK / "shapes.html", WORK / "opencl.prof")
    title = ("--title", "MiniLM, other kernels of OpenBLAS")
    call(prof, "report", *title, "-o", WORK / "difference.html", *sides)
    # A wait changes most, and would leave pale colours to the operators.
    worker = (*title, "--thread", "worker 0", "--name", "^[^w]")
    call(prof, "report", *worker, "-o", WORK / "flame.html", *sides)
    call(prof, "flame", *worker, "-o", WORK / "flame.svg", *sides)


def take(page, name, last, first=None, width=WIDTH):
    """From the top of the element `first` to the end of `last`, which are selectors. None: from
    the top of the page."""
    place = (
        "(() => { const r = document.querySelector(%r).getBoundingClientRect();"
        " return [r.top + scrollY, r.bottom + scrollY]; })()"
    )
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    top = page.evaluate(place % first)[0] - MARGIN if first else 0
    bottom = page.evaluate(place % last)[1] + MARGIN
    shot = page.command(
        "Page.captureScreenshot",
        format="png",
        captureBeyondViewport=True,
        clip={"x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1},
    )
    data = base64.b64decode(shot["data"])
    if len(data) > BYTES_MAX:
        sys.exit(f"report_pictures.py: {name} has {len(data)} bytes, and may have {BYTES_MAX}")
    (PICTURES / name).write_bytes(data)
    print(f"docs/pictures/{name}: {len(data)} bytes")


def set_scheme(page, scheme):
    page.command(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )


def take_pictures(page):
    page.open(WORK / "report.html")
    page.evaluate("[...document.querySelectorAll('#flame-kinds button')].at(1).click()")
    take(page, "report.png", "#flame .frame")

    set_scheme(page, "dark")
    page.open(WORK / "shapes.html")
    page.evaluate(
        "[...document.querySelectorAll('#head th')].find(h => h.textContent === 'Device total')"
        ".click()"
    )
    page.evaluate("document.querySelector('#body tr').click()")
    table = page.evaluate("document.querySelector('#table .scroll').scrollWidth")
    width = max(WIDTH, table + 2 * EDGE)  # so wide that the table has all its columns
    page.set_size(width, HEIGHT)
    take(page, "report-dark.png", "#memory .pool", "#table h2", width)
    page.set_size(WIDTH, HEIGHT * 3 // 4)

    set_scheme(page, "light")
    page.open(WORK / "difference.html")
    take(page, "difference.png", "#difference .scroll")

    page.open(WORK / "flame.html")
    page.evaluate(POINT_AT_LARGEST_CHANGE)
    take(page, "report-flame.png", "#frame", "#flame h2")

    page.command("Page.navigate", url=(WORK / "flame.svg").as_uri())
    page.wait_for("document.readyState === 'complete' && document.documentElement.tagName == 'svg'")
    width = page.evaluate("document.documentElement.width.baseVal.value")
    take(page, "flame.png", "svg", width=width)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if not options.keep:
        record(options.build, options.model)
    write_pages(options.build)
    page = Page(WIDTH, HEIGHT)
    try:
        take_pictures(page)
    finally:
        page.close()


if __name__ == "__main__":
    main()
