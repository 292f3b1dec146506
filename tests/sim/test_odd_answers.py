"""Answers that are allowed and rare, or wrong and frequent: none ends a crawl, and each has its true reason. Real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from corpus.app.funnel import whole_funnel
from corpus.app.project import Project
from corpus.app.run import run_all
from corpus.app.verify import verify
from corpus.app.why import why
from corpus.crawl.fetch import HttpTransport
from corpus.crawl.ports import Request
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure
from corpus.testing.web_answer import Answer
from tests.optout_web import HTML, Web, html, project, serving

HOST, OTHER = "127.33.0.1", "127.33.0.2"
STATEMENTS = ("/robots.txt", "/.well-known/tdmrep.json", "/ai.txt", "/license.xml")


def _fetched(made: Project) -> int:
    return whole_funnel(made)[1].n_in


def _faults(made: Project) -> list[object]:
    return list(verify(made, lambda event, **facts: None).faults)


def test_an_empty_statement_file_says_nothing(tmp_path: Path) -> None:
    """Empty files of every kind: the crawl goes on as if they were absent, now and when it is run again."""
    web = Web((HOST, OTHER))
    for host, status in ((HOST, 200), (OTHER, 204)):
        web.page("/", status, host=host)
        for path in STATEMENTS:
            web.put(path, b"", ("Content-Type", "text/plain"), status=status, host=host)
    with serving(web):
        made = project(tmp_path, web)
        for _ in range(2):
            run_all(made, quiet=True)
            assert _fetched(made) == 2
    assert _faults(made) == []


def test_a_304_that_nobody_asked_for_stores_nothing(tmp_path: Path) -> None:
    """A first visit has no copy that a 304 could confirm: the page is a failure with a reason, not stored."""
    web = Web((HOST,))
    web.index("/a", "/odd")
    web.page("/a", 1)
    web.files[HOST, "/odd"] = Answer(304, HTML)
    with serving(web):
        made = project(tmp_path, web, more="retries = 1")
        run_all(made, quiet=True)
    assert _fetched(made) == 2
    told = why(made, web.url("/odd"))
    assert (told["state"], told["reason"]) == ("failed", "protocol")
    assert _faults(made) == []


def test_a_skipped_copy_is_called_one(tmp_path: Path) -> None:
    """`near_copies = "skip"` stores nothing of a copy, so the funnel does not wait for it to be processed."""
    web = Web((HOST,))
    web.index("/a", "/b")
    web.put("/a", html(1))
    web.put("/b", html(1).replace("Page 1", "Page 2"))
    with serving(web):
        made = project(tmp_path, web, more='near_copies = "skip"')
        run_all(made, quiet=True)
    assert whole_funnel(made)[1].dropped == {"near-copy": 1}
    assert _faults(made) == []


@pytest.mark.parametrize("status", ["000", "099"])
def test_a_status_below_100_is_none(status: str) -> None:
    """Nothing could be archived under it that a reader of archives would take for HTTP."""

    async def main() -> object:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {status} odd\r\nContent-Length: 2\r\n\r\nno".encode())
            await writer.drain()

        server = await asyncio.start_server(answer, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        transport = HttpTransport(CrawlSettings(contact="ops@example.org", allow_private=("127.0.0.0/8",)))
        try:
            return await transport.fetch(Request(f"http://{HOST}:{port}/", HOST, HOST))
        finally:
            await transport.close()
            server.close()

    found = asyncio.run(main())
    assert isinstance(found, Failed)
    assert found.failure is Failure.PROTOCOL
