"""A real headless Chromium, spoken to over its own debugging protocol: what a person would do, and what the console said."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

START_S, WAIT_S = 30.0, 10.0
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--mute-audio", "--remote-debugging-port=0", "--window-size=1200,900",
)  # fmt: skip
_CENTRE = """(() => { const e = %s; if (!e) return null; e.scrollIntoView({block: 'center'});
const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2]; })()"""
KEYS = {"Enter": ("\r", 13), "Tab": ("\t", 9), "/": ("/", 191), "Escape": ("", 27)}


class Browser:
    """`async with Browser(folder) as page:`; `troubles` are errors of the console, of scripts and of the page's policy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.troubles: list[str] = []

    async def __aenter__(self) -> Browser:
        self._process = self._start()
        port = await self._port()
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json") as answer:
            targets = await answer.json()
        target = next(t for t in targets if t["type"] == "page")
        self._socket = await self._session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0)
        self._reader = asyncio.create_task(self._read())
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(ConnectionError, aiohttp.ClientError):  # it may have gone by itself
            await self._socket.close()
        self._reader.cancel()
        await self._session.close()
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def open(self, url: str) -> None:
        """Go to an address and wait until it has loaded."""
        await self._going(lambda: self.call("Page.navigate", url=url))

    async def click(self, element: str, *, loads: bool = True) -> None:
        """Click what a JavaScript expression finds; `loads`: and wait for the next page."""
        place = await self.value(_CENTRE % element)
        assert place is not None, f"nothing to click on: {element}"

        async def press() -> None:
            for what in ("mousePressed", "mouseReleased"):
                await self.call("Input.dispatchMouseEvent", type=what, x=place[0], y=place[1], button="left", clickCount=1)

        await (self._going(press) if loads else press())

    async def press(self, key: str, *, loads: bool = False) -> None:
        """One key, down and up."""
        text, code = KEYS[key]

        async def strike() -> None:
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, text=text, windowsVirtualKeyCode=code)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

        await (self._going(strike) if loads else strike())

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def value(self, expression: str) -> Any:
        """What an expression gives in the page."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def text(self) -> str:
        return str(await self.value("document.body.innerText"))

    async def until(self, expression: str) -> None:
        """Wait until an expression holds in the page."""
        end = asyncio.get_running_loop().time() + WAIT_S
        while not await self.value(expression):
            assert asyncio.get_running_loop().time() < end, f"never came true: {expression}"
            await asyncio.sleep(0.1)

    async def screen(self, width: int, height: int, *, dark: bool = False) -> None:
        """The size of the screen, and whether the reader likes it dark."""
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self, path: Path) -> None:
        """The page as it is seen, as a PNG."""
        import base64

        shot = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol."""
        number = next(self._numbers)
        coming = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": parameters}))
        answer = await asyncio.wait_for(coming, WAIT_S)
        del self._answers[number]
        assert "error" not in answer, (method, answer["error"])
        return dict(answer.get("result", {}))

    async def _going(self, act: Callable[[], Awaitable[Any]]) -> None:
        self._loaded.clear()
        await act()
        await asyncio.wait_for(self._loaded.wait(), WAIT_S)

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                future = self._answers.get(told["id"])
                if future is not None and not future.done():
                    future.set_result(told)
                continue
            match told["method"]:
                case "Page.loadEventFired":
                    self._loaded.set()
                case "Runtime.exceptionThrown":
                    self.troubles.append(json.dumps(told["params"])[:500])
                case "Runtime.consoleAPICalled" if told["params"]["type"] in ("error", "warning", "assert"):
                    self.troubles.append(json.dumps(told["params"]["args"])[:500])
                case "Log.entryAdded" if told["params"]["entry"]["level"] in ("error", "warning"):
                    self.troubles.append(json.dumps(told["params"]["entry"])[:500])
                case _:
                    pass

    def _start(self) -> subprocess.Popen[bytes]:
        program = shutil.which("chromium")
        assert program, "the caller asked whether there is one"
        command = [program, *_FLAGS, f"--user-data-dir={self._folder}", "about:blank"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    async def _port(self) -> int:
        path = self._folder / "DevToolsActivePort"
        end = asyncio.get_running_loop().time() + START_S
        while not (path.exists() and path.read_text("ascii").strip()):
            assert asyncio.get_running_loop().time() < end, "the browser did not come up"
            await asyncio.sleep(0.05)
        return int(path.read_text("ascii").splitlines()[0])
