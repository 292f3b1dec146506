"""A small web that changes its mind between two crawls: pages and statement files in a dictionary, served on real sockets.

Host names are loopback addresses, so no name server is needed. The server runs in a thread of the test; its log is the
only witness of what was asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.app.project import Project, open_project
from corpus.config.check import require
from corpus.config.load import load_config
from corpus.testing.web_answer import Answer, Ask, Name
from corpus.testing.web_log import Contact
from corpus.testing.web_server import SimServer
from corpus.testing.web_text import paragraphs

HTML = (("Content-Type", "text/html; charset=utf-8"),)
PLAIN = (("Content-Type", "text/plain; charset=utf-8"),)
_NOT_FOUND = Answer(404, HTML, b"<!DOCTYPE html><title>not found</title>")


@dataclass
class Web:
    """`files`: (host, path) → answer. Change it while it is being served; the next request sees the change."""

    hosts: tuple[str, ...]
    files: dict[tuple[str, str], Answer] = field(default_factory=dict)
    port: int = 0
    contacts: list[Contact] = field(default_factory=list)

    def names(self) -> Mapping[str, Name]:
        return {host: Name((host,)) for host in self.hosts}

    def down(self) -> frozenset[str]:
        return frozenset()

    def answer(self, ask: Ask) -> Answer:
        found = self.files.get((ask.host, ask.target), _NOT_FOUND)
        tag = dict(found.headers).get("ETag")
        if tag and ask.headers.get("if-none-match") == tag:
            return self.files.get((ask.host, ask.target + "#304"), Answer(304, (("ETag", tag),)))
        return found

    def url(self, path: str, host: str | None = None) -> str:
        return f"http://{host or self.hosts[0]}:{self.port}{path}"

    def put(self, path: str, body: str | bytes, *headers: tuple[str, str], status: int = 200, host: str | None = None) -> None:
        """An answer of any kind; HTML unless a Content-Type is given."""
        data = body.encode() if isinstance(body, str) else body
        kind = () if any(name.lower() == "content-type" for name, _ in headers) else HTML
        self.files[host or self.hosts[0], path] = Answer(status, (*headers, *kind), data)

    def page(
        self,
        path: str,
        seed: int,
        *headers: tuple[str, str],
        links: tuple[str, ...] = (),
        head: str = "",
        host: str | None = None,
    ) -> None:
        """A page of ordinary prose, different for each seed."""
        self.put(path, html(seed, links, head), *headers, host=host)

    def robots(self, text: str, *, host: str | None = None) -> None:
        self.put("/robots.txt", text, ("Content-Type", "text/plain"), host=host)

    def asked(self, path: str, host: str | None = None) -> int:
        """How often a path was requested so far."""
        return sum(contact.host == (host or self.hosts[0]) and contact.target == path for contact in self.contacts)

    def index(self, *links: str, host: str | None = None) -> None:
        """The front page: links and nothing to extract."""
        self.put(
            "/", "<!DOCTYPE html><title>index</title>" + "".join(f'<a href="{link}">{link}</a> ' for link in links), host=host
        )


def html(seed: int, links: tuple[str, ...] = (), head: str = "") -> str:
    """A page of English prose."""
    text = "".join(f"<p>{paragraph}</p>" for paragraph in prose(seed))
    anchors = "".join(f'<a href="{link}">more</a> ' for link in links)
    return f"<!DOCTYPE html><html lang=en><head><title>Page {seed}</title>{head}</head><body><article><h1>Page {seed}</h1>{text}</article>{anchors}</body></html>"


def prose(seed: int) -> list[str]:
    """A few paragraphs of made-up English, the same for a seed."""
    return paragraphs(seed, f"page {seed}", "en", 2_000)


@contextmanager
def serving(web: Web) -> Iterator[Web]:
    """Serve until the block ends, from a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = SimServer(web, port=web.port)

    def run(step: Any) -> None:
        asyncio.run_coroutine_threadsafe(step, loop).result(10)

    run(server.start())
    web.port, web.contacts = server.port, server.log
    try:
        yield web
    finally:
        run(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def project(folder: Path, web: Web, *, more: str = "", seeds: tuple[str, ...] = ("/",)) -> Project:
    """A corpus over the web's hosts, at a pace that only loopback allows. `more` is further TOML."""
    listed = ", ".join(f'"{web.url(path, host)}"' for host in web.hosts for path in seeds)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.toml").write_text(
        f"""
[corpus]
name = "changing"
[crawl]
seeds = [{listed}]
contact = "https://corpus.example/bot"
delay = "10ms"
delay_start = "10ms"
latency_factor = 1.0
allow_private = ["127.0.0.0/8"]
{more}
""",
        "utf-8",
    )
    return open_project(require(load_config(folder / "corpus.toml", environment={}), fetching=True))
