"""A headless Chromium, driven by the W3C WebDriver protocol of ChromeDriver, and what a page did in it."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

#: As root there is no sandbox; nothing in the background looks for a network.
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--window-size=1240,1400",
]  # fmt: skip


def missing() -> str | None:
    """Why there is no browser here."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"not here: {', '.join(lacking)}; apt-get install chromium chromium-driver" if lacking else None


class Browser:
    """One session; `close` ends the browser and its driver."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.profile = tempfile.TemporaryDirectory(prefix="stripewise-browser-", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.root = f"http://127.0.0.1:{port}"
        self.session = ""
        options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={self.profile.name}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        until = time.monotonic() + 30
        while True:
            try:
                made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > until or self.driver.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.1)
        self.session = f"/session/{made['sessionId']}"

    def call(self, method: str, path: str, body: object | None = None) -> Any:
        """A command of the protocol."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, page: Path) -> None:
        """Waits until the page says that it is complete."""
        self.call("POST", f"{self.session}/url", {"url": page.as_uri()})
        until = time.monotonic() + 60
        while self.run("return document.body.dataset.ready") != "yes":
            assert time.monotonic() < until, self.console()
            time.sleep(0.05)
        self.settle()

    def settle(self) -> None:
        """Two frames later what was asked for is drawn."""
        script = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
        self.call("POST", f"{self.session}/execute/async", {"script": script, "args": []})

    def run(self, script: str, *args: object) -> Any:
        """The value of a script's return."""
        return self.call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(args)})

    def emulate(self, scheme: str) -> None:
        """The colour scheme that the user prefers."""
        feature = [{"name": "prefers-color-scheme", "value": scheme}]
        body = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": feature}}
        self.call("POST", f"{self.session}/goog/cdp/execute", body)

    def pixels(self, canvas: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The canvas of this number, RGBA."""
        script = (
            "const c = document.querySelectorAll('canvas.view')[arguments[0]];"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let text = '';"
            "for (let i = 0; i < d.length; i += 32768) text += String.fromCharCode(...d.subarray(i, i + 32768));"
            "return [btoa(text), c.width]"
        )
        data, width = self.run(script, canvas)
        return np.frombuffer(base64.b64decode(data), np.uint8).reshape(-1, width, 4)

    def keys(self, canvas: int, keys: str) -> None:
        """Pressed one by one in a canvas."""
        for key in keys.split():
            script = (
                "const c = document.querySelectorAll('canvas.view')[arguments[0]]; c.focus();"
                "c.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[1], bubbles: true, cancelable: true}));"
            )
            self.run(script, canvas, key)
        self.settle()

    def point(self, canvas: int, x: float, y: float, wheel: int = 0) -> None:
        """Moves the mouse to a place of a canvas (parts of its box), and turns its wheel."""
        script = (
            "const c = document.querySelectorAll('canvas.view')[arguments[0]]; c.scrollIntoView({block: 'center'});"
            "const r = c.getBoundingClientRect();"
            "return [r.left + r.width * arguments[1], r.top + r.height * arguments[2]]"
        )
        left, top = (int(each) for each in self.run(script, canvas, x, y))
        move = {"type": "pointerMove", "duration": 0, "x": left, "y": top, "origin": "viewport"}
        actions: list[dict[str, Any]] = [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [move]}
        ]
        self.call("POST", f"{self.session}/actions", {"actions": actions})
        if wheel:
            place = {"x": left, "y": top, "origin": "viewport", "duration": 0}
            turn = {"type": "scroll", "deltaX": 0, "deltaY": wheel, **place}
            actions = [{"type": "wheel", "id": "wheel", "actions": [turn]}]
            self.call("POST", f"{self.session}/actions", {"actions": actions})
        self.settle()

    def pointer(self, canvas: int, kind: str, x: float) -> None:
        """An event of the pointer that has the mouse, half way down a canvas at this part of its width."""
        script = (
            "const c = document.querySelectorAll('canvas.view')[arguments[0]], r = c.getBoundingClientRect();"
            "c.dispatchEvent(new PointerEvent(arguments[1], {pointerId: 1, bubbles: true, cancelable: true,"
            "clientX: r.left + r.width * arguments[2], clientY: r.top + r.height / 2}));"
        )
        self.run(script, canvas, kind, x)
        self.settle()

    def console(self) -> list[str]:
        """What the page said there."""
        said = self.call("POST", f"{self.session}/se/log", {"type": "browser"})
        return [each["message"] for each in said]

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        said = self.call("POST", f"{self.session}/se/log", {"type": "performance"})
        events = [json.loads(each["message"])["message"] for each in said]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def close(self) -> None:
        """Ends browser and driver."""
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(20)
            self.profile.cleanup()
