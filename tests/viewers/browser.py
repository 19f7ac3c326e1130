"""A headless Chromium for tests of pages: keeps what the page reported and requested."""

import base64

import pytest
from hang_guard import HANG_SECONDS
from picture import Browser, find_chromium

needs_browser = pytest.mark.skipif(
    not find_chromium(), reason="Chromium is missing: tools/setup.sh viewers, or set CHROME"
)


class Page(Browser):
    """`errors` has exceptions, messages of the console and violations of the security policy.
    `requests` has the addresses of all requests."""

    def __init__(self, width=1200, height=900):
        self.errors, self.requests = [], []
        super().__init__(width, height)
        for domain in ("Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def receive(self, deadline):
        message = super().receive(deadline)
        parameters = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif message.get("method") == "Log.entryAdded":
            self.errors.append(parameters["entry"]["text"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif message.get("method") == "Runtime.consoleAPICalled":
            self.errors.append(str(parameters["args"]))
        return message

    def command(self, method, seconds=HANG_SECONDS, **parameters):
        return super().command(method, seconds, **parameters)

    def evaluate(self, script, seconds=HANG_SECONDS):
        return super().evaluate(script, seconds)

    def open(self, path):
        self.errors.clear()
        self.requests.clear()
        self.command("Page.navigate", url=path.as_uri())
        self.wait_for(
            f"location.href === {str(path.as_uri())!r} &&"
            "(document.documentElement.dataset.ready === '1' ||"
            " document.getElementById('failure')?.hidden === false)",
            HANG_SECONDS,
        )

    def press(self, key, code=0):
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        for kind in ("keyDown", "keyUp"):
            self.command(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                **({"text": text} if kind == "keyDown" and text else {}),
            )

    def click(self, x, y, clicks=1):
        for kind in ("mousePressed", "mouseReleased"):
            self.command(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=clicks
            )

    def drag(self, x, y, to_x):
        for kind, at in (("mousePressed", x), ("mouseMoved", to_x), ("mouseReleased", to_x)):
            self.command("Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", buttons=1)

    def turn_wheel_with_control(self, x, y, pixels):
        self.command(
            "Input.dispatchMouseEvent",
            type="mouseWheel",
            x=x,
            y=y,
            deltaX=0,
            deltaY=pixels,
            modifiers=2,
        )

    def screenshot(self):
        return base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"])
