"""`corpus status --serve`: the status page, `/status.json` and `/metrics`, for this machine alone.

Listens on a loopback address only and answers only to its names, so no other site's page can read it through a browser.
GET and HEAD; nothing is changed by any request. A strict policy lets a page load its own style and script and nothing
else. Looking runs in threads, at a lower priority than the crawl.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from aiohttp import web

from corpus.app import status_pages as pages
from corpus.app.project import Project
from corpus.app.status_look import Look
from corpus.app.status_why import why_page
from corpus.errors import CorpusError, UsageError
from corpus.observe.live import HOST_STATES
from corpus.observe.markup import Child, Markup, asset, crawled, el, join
from corpus.observe.metrics import exposition
from corpus.reasons import REASONS

HOST, PORT = "127.0.0.1", 8420
NICE = 10
"""The crawl comes first."""
THREADS = 2
DRAWN_S = 3.0
"""How old an overview may be, however dear it was to draw."""
NAMES = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LONG = 4000
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class StatusServer:
    """`await start()`, then `port` says where; `await close()`. One folder."""

    def __init__(self, project: Project, port: int = PORT) -> None:
        self._look = Look(project)
        self._wanted, self.port = port, 0
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="look")
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises UsageError when the port is taken."""
        app = web.Application(middlewares=[_guarded])
        for path, handler in (
            ("/", self._overview), ("/hosts", self._hosts), ("/host", self._host), ("/reason", self._reason), ("/urls", self._urls),
            ("/refusals", self._refusals), ("/errors", self._errors), ("/samples", self._samples), ("/why", self._why),
            ("/status.json", self._json), ("/metrics", self._metrics), ("/look.css", _style), ("/status.js", _script), ("/favicon.ico", _no_icon),
        ):  # fmt: skip
            app.router.add_get(path, handler)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, self._wanted).start()
        except OSError as error:
            await self.close()
            raise UsageError(f"cannot listen: {error.strerror}", f"{HOST}:{self._wanted}", "choose another --port") from None
        self.port = int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Let go of the port and the threads."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, call: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def _page(
        self, request: web.Request, title: str, inside: Child, *, live: bool = False, status: int = 200
    ) -> web.Response:
        if live and request.query.get("part"):
            return _html(join(inside), status)
        stage = await self._ask(self._look.running)
        state = f"running: {stage}" if stage else "no run holds this folder"
        return _html(pages.page(title, inside, path=request.path, state=state, live=live), status)

    # ---- pages

    async def _overview(self, request: web.Request) -> web.Response:
        look = self._look

        def draw() -> Markup:
            return join(pages.overview(look.live(), look.series(), look.funnel(), look.status()))

        inside = await self._ask(lambda: look.kept.get("overview", draw, most_s=DRAWN_S))
        return await self._page(request, look.project.config.corpus.name, inside, live=True)

    async def _hosts(self, request: web.Request) -> web.Response:
        search, state, sort = _word(request, "q"), _word(request, "state"), _word(request, "sort") or "queued"
        state = state if state in HOST_STATES else ""
        number = int(request.query.get("page", "0")) if request.query.get("page", "0").isdigit() else 0
        number = min(number, 10_000)
        found = await self._ask(lambda: self._look.hosts(search=search, state=state, sort=sort, page=number))
        return await self._page(request, "Hosts", pages.hosts(found, search=search, state=state, sort=sort, number=number))

    async def _host(self, request: web.Request) -> web.Response:
        name, state, reason = _word(request, "name"), _word(request, "state"), _word(request, "reason")
        row = await self._ask(lambda: self._look.host(name))
        if row is None:
            return await self._missing(request, f"No host of this name is known: {name[:200]}")
        found = await self._ask(lambda: self._look.urls(host=name, state=state, reason=reason))
        return await self._page(request, name, pages.host(row, found, state=state, reason=reason))

    async def _reason(self, request: web.Request) -> web.Response:
        code = _word(request, "code")
        if code not in REASONS:
            return await self._missing(request, f"There is no such reason: {code[:100]}")
        found = await self._ask(lambda: self._look.hosts_of(code))
        return await self._page(request, code, pages.reason(code, found))

    async def _urls(self, request: web.Request) -> web.Response:
        search, code = _word(request, "q"), _word(request, "reason")
        found = await self._ask(lambda: self._look.urls(reason=code, search=search))
        return await self._page(request, "Pages", pages.urls(found, search=search, code=code))

    async def _refusals(self, request: web.Request) -> web.Response:
        return await self._losses(request, "Refusals", ("refused", "taken-down"))

    async def _errors(self, request: web.Request) -> web.Response:
        return await self._losses(request, "Errors", ("failed", "gone"))

    async def _losses(self, request: web.Request, title: str, verdicts: tuple[str, ...]) -> web.Response:
        told = await self._ask(self._look.status)
        counts: dict[str, int] = {}
        for row in told["urls"]:
            counts[row["reason"]] = counts.get(row["reason"], 0) + row["n"]
        inside = pages.losses(counts, lambda code: code in REASONS and REASONS[code].verdict in verdicts)
        return await self._page(request, title, inside)

    async def _samples(self, request: web.Request) -> web.Response:
        kept = await self._ask(lambda: self._look.samples(dropped=False))
        dropped = await self._ask(lambda: self._look.samples(dropped=True))
        return await self._page(request, "Samples", pages.samples(kept, dropped))

    async def _why(self, request: web.Request) -> web.Response:
        url = _word(request, "url")
        try:
            told = await self._ask(lambda: self._look.why(url))
        except CorpusError as error:
            return await self._missing(request, f"{error.what}: {url[:200]}")
        return await self._page(request, str(told["canonical_url"]), why_page(told))

    async def _missing(self, request: web.Request, words: str) -> web.Response:
        return await self._page(request, "Not found", el("p", crawled(words)), status=404)

    # ---- for programs

    async def _json(self, request: web.Request) -> web.Response:
        def document() -> dict[str, Any]:
            live = self._look.live()
            told = self._look.status()
            funnel = [{"stage": s.stage, "in": s.n_in, "out": s.n_out, "dropped": s.dropped} for s in self._look.funnel()]
            return {**told, "funnel": funnel, "live": live.document() if live is not None else None}

        return web.json_response(await self._ask(document), dumps=_ascii)

    async def _metrics(self, request: web.Request) -> web.Response:
        def text() -> str:
            return exposition(
                self._look.live(),
                self._look.funnel(),
                running=self._look.crawling(),
                now=time.time(),
                steps_age_s=self._look.kept.age_s("funnel"),
                fleet=self._look.fleet(),
            )

        return web.Response(
            body=(await self._ask(text)).encode(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )


def serve(project: Project, port: int, told: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. `told` hears the address."""
    with suppress(OSError):  # where priorities are fixed, the page is merely as urgent as the crawl
        os.nice(NICE)

    async def run() -> None:
        server, over = StatusServer(project, port), asyncio.Event()
        await server.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, over.set)
        told(f"http://{HOST}:{server.port}/")
        await over.wait()
        await server.close()

    asyncio.run(run())


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Only to our own names, only to be read, and never with a stranger's leave to run anything."""
    if not NAMES.fullmatch(request.host):
        answer: web.StreamResponse = web.Response(status=403, text="this page answers to 127.0.0.1 and localhost only\n")
    else:
        try:
            answer = await handler(request)
        except CorpusError as error:  # a folder at its very beginning, or one that is damaged
            answer = web.Response(status=503, text=f"this cannot be read right now: {error.what}\n", headers={"Retry-After": "2"})
        except web.HTTPException as error:
            answer = web.Response(status=error.status, text=f"{error.status} {error.reason}\n", headers=_allowed(error))
    answer.headers.update(HEADERS)
    return answer


def _allowed(error: web.HTTPException) -> dict[str, str]:
    return {"Allow": "GET, HEAD"} if error.status == 405 else {}


async def _style(_: web.Request) -> web.Response:
    return web.Response(text=asset("look.css"), content_type="text/css")


async def _script(_: web.Request) -> web.Response:
    return web.Response(text=asset("status.js"), content_type="text/javascript")


async def _no_icon(_: web.Request) -> web.Response:
    return web.Response(status=204)


def _html(markup: Markup, status: int) -> web.Response:
    return web.Response(body=markup.encode("utf-8", "replace"), status=status, content_type="text/html", charset="utf-8")


def _word(request: web.Request, name: str) -> str:
    return request.query.get(name, "")[:_LONG]


def _ascii(document: Any) -> str:
    import json

    return json.dumps(document, ensure_ascii=True)
