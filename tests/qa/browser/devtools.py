"""DevTools: a Chromium that is told by messages what to do, over two pipes.

https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from tests.qa.browser.chromium import Program

PATIENCE_S = 60.0
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--hide-scrollbars",
)
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "End": 35}


class Browser:
    """A running Chromium.

    Args:
        told: Where it is told.
        tells: Where it tells.
    """

    def __init__(self, told: int, tells: int) -> None:
        self._told, self._tells = told, tells
        self._numbers = itertools.count(1)
        self._rest = b""
        self.events: list[dict[str, Any]] = []

    @classmethod
    @contextlib.contextmanager
    def started(cls, program: Program) -> Iterator[Self]:
        """One of its own profile, which ends with the context."""
        ours_told, theirs_told = _pipe(reverse=True)
        ours_tells, theirs_tells = _pipe()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            command = [program.path, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
            script = f'exec "$@" 3<&{theirs_told} 4>&{theirs_tells}'
            process = subprocess.Popen(
                ["bash", "-c", script, "bash", *command],
                env=os.environ | program.variables,
                pass_fds=(theirs_told, theirs_tells),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            os.close(theirs_told)
            os.close(theirs_tells)
            browser = cls(ours_told, ours_tells)
            try:
                yield browser
                browser.call("Browser.close")
                process.wait(20)
            finally:
                process.kill()
                process.wait()
                os.close(ours_told)
                os.close(ours_tells)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Have it do something; returns what it answers.

        Raises:
            RuntimeError: It refuses, or does not answer.
        """
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._told, data) :]
        while True:
            answer = self._next()
            if answer.get("id") != number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            result: dict[str, Any] = answer["result"]
            return result

    def wait(self, method: str, session: str) -> None:
        """Until it has told of such an event since events were last forgotten."""
        while not any(one["method"] == method and one.get("sessionId") == session for one in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            if not select.select([self._tells], [], [], max(0.0, until - time.monotonic()))[0]:
                raise RuntimeError("Chromium says nothing")
            data = os.read(self._tells, 1 << 20)
            if not data:
                raise RuntimeError("Chromium has ended")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told


class Tab:
    """A page in it.

    Args:
        browser: Whose.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def show(
        self,
        path: Path,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        scripts: bool = True,
        paper: bool = False,
    ) -> None:
        """Open a file in a window of so many pixels."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", media="print" if paper else "screen", features=[scheme])
        self._call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._browser.events.clear()
        self._call("Page.navigate", url=path.as_uri())
        self._browser.wait("Page.loadEventFired", self._session)

    def tell(self, expression: str) -> Any:
        """What an expression of JavaScript comes to; a promise is waited for.

        Raises:
            RuntimeError: It threw.
        """
        asked = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in asked:
            raise RuntimeError(f"{expression}: {asked['exceptionDetails']}")
        return asked["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key of KEYS, and let it go."""
        code = KEYS[key]
        words = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown" if words else "rawKeyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **words)

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Move the mouse there."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def complaints(self) -> list[str]:
        """Errors and warnings that the page has caused since it was opened."""
        self.tell("1")  # what was said before this is there
        found = []
        for event in self._browser.events:
            match event["method"]:
                case "Runtime.exceptionThrown":
                    found.append(str(event["params"]["exceptionDetails"]))
                case "Runtime.consoleAPICalled":
                    found.append(str(event["params"]["args"]))
                case "Log.entryAdded":
                    found.append(str(event["params"]["entry"]))
        return found

    def asked(self) -> list[str]:
        """The addresses that the page has asked for since it was opened, itself among them; data in it aside."""
        requests = [event for event in self._browser.events if event["method"] == "Network.requestWillBeSent"]
        urls = [str(event["params"]["request"]["url"]) for event in requests]
        return [url for url in urls if not url.startswith("data:")]

    def allow(self, *permissions: str) -> None:
        """Give the page permissions that a user would be asked for."""
        self._browser.call("Browser.grantPermissions", permissions=list(permissions))

    def pictured(self, *, whole: bool = True) -> bytes:
        """What is seen, as PNG; the whole page, or the window alone."""
        return base64.b64decode(
            self._call("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))["data"]
        )

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def printed(self) -> bytes:
        """The page on paper, as PDF."""
        return base64.b64decode(self._call("Page.printToPDF", printBackground=False)["data"])


def _pipe(*, reverse: bool = False) -> tuple[int, int]:
    """Our end and theirs, numbered above those that theirs become."""
    pair = os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pair]
    for end in pair:
        os.close(end)
    return (ends[1], ends[0]) if reverse else (ends[0], ends[1])
