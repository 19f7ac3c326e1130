"""prof view in a headless Chromium: the page hands the trace to a UI of another origin. Once to a
stand-in that answers as the Perfetto UI does, once to the real UI of fetch-engines.sh."""

import hashlib
import json
import os
import pathlib
import subprocess
import time

import picture
import pytest
from browser import needs_browser
from hang_guard import HANG_SECONDS
from test_viewers import BUILD, engines  # noqa: F401

pytestmark = needs_browser
HOSTILE = "run<script>fail()<!--'\"&\U0001f600.prof"
EVENTS = [
    {"ph": "X", "pid": 1, "tid": 1, "name": f"scope {i}", "cat": "cpu_op", "ts": 10 * i, "dur": 5}
    for i in range(1000)
]

# A stand-in for the Perfetto UI: it speaks the same messages. It does not answer the first PINGs,
# as a UI that still loads.
STAND_IN = b"""<!doctype html><title>stand-in</title><script>
let pings = 0;
window.received = [];
addEventListener("message", async (event) => {
  if (event.data === "PING" && ++pings > 3) event.source.postMessage("PONG", "*");
  if (!event.data.perfetto) return;
  const {buffer, title, fileName} = event.data.perfetto;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", buffer));
  const sha256 = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  window.received.push({sha256, title, fileName, origin: event.origin});
});
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("view")
    (made / "events.json").write_text(json.dumps({"traceEvents": EVENTS}))
    for words in (
        ["import", "events.json", "-o", HOSTILE],
        ["dump", HOSTILE, "-o", "trace.pftrace"],
    ):
        subprocess.run([BUILD / "prof", *words], check=True, cwd=made, timeout=HANG_SECONDS)
    return made


@pytest.fixture
def browser():
    made = picture.Browser(800, 600, HANG_SECONDS)
    yield made
    made.close()


@pytest.fixture
def start(folder):
    """Starts the command for a UI; returns it, and the address of its page. One that the test
    leaves running, because it failed, is ended with it."""
    started = []

    def start_view(ui):
        command = subprocess.Popen(
            [BUILD / "prof", "view", "--no-open", "--ui", ui, HOSTILE],
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={k: v for k, v in os.environ.items() if k != "SSH_CONNECTION"},
        )
        started.append(command)
        return command, command.stdout.readline().strip()

    yield start_view
    for command in started:
        command.kill()
        command.wait()
        command.stdout.close()


def attach(browser, target):
    session, browser.session = browser.session, None
    browser.session = browser.command("Target.attachToTarget", targetId=target, flatten=True)[
        "sessionId"
    ]
    return session


def find_tab(browser, address):
    """The target of the page at that address, or None."""
    session, browser.session = browser.session, None
    targets = browser.command("Target.getTargets")["targetInfos"]
    browser.session = session
    found = [t["targetId"] for t in targets if t["url"].startswith(address)]
    return found[0] if found else None


def open_ui(browser, page, ui):
    """Opens the page; presses its button if the browser wants a click first. Returns the session
    of the page; the browser has that of the UI's tab."""
    browser.command("Page.navigate", url=page)
    browser.wait_for("document.getElementById('state').innerText !== 'Loading the trace.'")
    if browser.evaluate("document.getElementById('state').innerText.startsWith('Ready')"):
        browser.command(
            "Runtime.evaluate",
            expression="document.getElementById('open').click()",
            userGesture=True,
        )
    deadline = time.monotonic() + HANG_SECONDS
    while not find_tab(browser, ui):
        assert time.monotonic() < deadline, "the page opens no tab"
        time.sleep(0.05)
    return attach(browser, find_tab(browser, ui))


def test_the_page_hands_the_trace_to_a_ui_once_it_answers(browser, folder, start):
    ui = picture.serve(str(folder), {"/ui/": STAND_IN}) + "/ui/"
    command, page = start(ui)
    session = open_ui(browser, page, ui)
    browser.wait_for("window.received.length > 0")
    received = browser.evaluate("window.received")
    sent = (folder / "trace.pftrace").read_bytes()
    name = HOSTILE + ".pftrace"
    assert received == [
        {
            "sha256": hashlib.sha256(sent).hexdigest(),
            "title": name,
            "fileName": name,
            "origin": page[: page.index("/", 8)],
        }
    ]
    assert command.wait(HANG_SECONDS) == 0
    browser.session = session
    browser.wait_for("document.getElementById('state').innerText.includes('may close')")
    assert browser.evaluate("document.getElementById('title').textContent") == name
    loaded = browser.evaluate("performance.getEntriesByType('resource').map((r) => r.name)")
    assert loaded == [page + "trace"]


def test_another_origin_gets_no_trace(browser, folder, start):
    pages = {
        "/away/": b"<script>location.replace(location.href.replace('localhost', '127.0.0.1')"
        b".replace('away', 'other'))</script>",
        "/other/": b"<script>window.pings = 0; onmessage = () => window.pings++;"
        b"setInterval(() => opener.postMessage('PONG', '*'), 20)</script>",
    }
    other = picture.serve(str(folder), pages) + "/other/"
    command, page = start(other.replace("127.0.0.1", "localhost").replace("other", "away"))
    session = open_ui(browser, page, other)
    assert command.wait(HANG_SECONDS) == 0
    tab, browser.session = browser.session, session
    browser.evaluate("window.heard = 0; addEventListener('message', () => window.heard++)")
    browser.wait_for("window.heard > 5")
    assert browser.evaluate("[isReady, isDone, buffer.byteLength > 0]") == [False, False, True]
    browser.session = tab
    assert browser.evaluate("window.pings") == 0


def test_the_real_ui_opens_the_trace(browser, start, engines):  # noqa: F811
    ui = picture.serve(str(pathlib.Path(engines).parent), {}) + "/"
    command, page = start(ui + "?testing=1")
    open_ui(browser, page, ui)
    assert command.wait(HANG_SECONDS) == 0
    browser.wait_for("!!(window.app && app.trace)")
    count = browser.evaluate(
        "app.trace.engine.query(\"select count(*) as n from slice where name like 'scope %'\")"
        ".then((rows) => Number(rows.firstRow({n: 0n}).n))"
    )
    assert count == len(EVENTS)
