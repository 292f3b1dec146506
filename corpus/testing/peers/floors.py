"""The raw floors of the fetch stage, with our own libraries: no frontier, no politeness, no consent, no second look.

`get` GETs the listed pages, one connection per host; `warc` also reads their links with lexbor and writes the same gzip
WARC bytes as we do. What a crawler spends above the second is the price of everything it promises.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

import aiohttp
import uvloop
from selectolax.lexbor import LexborHTMLParser


class Floor:
    """One pass over the pages."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job, self.items, self.bytes, self.links = job, 0, 0, 0
        self.warc = job["floor"] == "warc"

    async def run(self, out: BinaryIO) -> None:
        """All hosts at once, each page of a host after the other."""
        connector = aiohttp.TCPConnector(limit=self.job["slots"], limit_per_host=1)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            hosts = groupby(sorted(self.job["urls"]), key=lambda url: urlsplit(url).netloc)
            await asyncio.gather(*(self._host(session, list(urls), out) for _, urls in hosts))

    async def _host(self, session: aiohttp.ClientSession, urls: list[str], out: BinaryIO) -> None:
        for url in urls:
            async with session.get(url) as answer:
                body = await answer.read()
                headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers)
            self.items += 1
            self.bytes += len(body)
            if self.warc:
                nodes = LexborHTMLParser(body.decode("utf-8", "replace")).css("a[href]")
                self.links += len({urljoin(url, node.attributes["href"] or "") for node in nodes})
                out.write(_warc(url, headers, body))


def _warc(url: str, headers: tuple[tuple[str, str], ...], body: bytes) -> bytes:
    from corpus.crawl.ports import Request
    from corpus.model import Response, content_sha256
    from corpus.store.warc_groups import encode_group

    raw = b"GET / HTTP/1.1\r\nUser-Agent: floor\r\nAccept: text/html\r\n\r\n"
    response = Response(200, headers, body, body, "HTTP/1.1 200 OK", raw, "127.0.0.1", 0.0, 0.1, 0.1, len(body))
    notes = {"corpus-content-sha256": content_sha256(body)}
    request = Request(url, urlsplit(url).netloc, "127.0.0.1")
    return encode_group(url, request, response, depth=1, via=url, metadata=notes, indexed=False).data


def main() -> None:
    """Run once and count."""
    floor = Floor(json.loads(Path(sys.argv[1]).read_text("utf-8")))
    with Path(floor.job["out"]).open("wb") as out:
        uvloop.run(floor.run(out))
    print(json.dumps({"items": floor.items, "bytes": floor.bytes}))


if __name__ == "__main__":
    main()
