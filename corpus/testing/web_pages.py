"""Pages of simulated hosts: ordinary ones, and the families of special ones that a decent web contains.

Bodies depend on (seed, host, path, language) alone, so an unchanged server answers the same bytes for ever; what a
polite crawl must make of each page stands beside it. Hostile families are in `web_hostile`.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import zlib
from collections.abc import Callable
from html import escape

import brotli
import zstandard

from corpus.model import UrlState
from corpus.testing.web_answer import Answer, Ask, Headers
from corpus.testing.web_hosts import Page, SimHost, Trait
from corpus.testing.web_text import paragraphs

HTML: Headers = (("Content-Type", "text/html; charset=utf-8"),)
_KEPT = 1_000
Family = Callable[["Pages"], dict[str, Page]]


def html(title: str, language: str, texts: list[str], links: list[str], head: str = "") -> str:
    """A whole page: navigation, article, footer."""
    nav = "\n".join(f'<li><a href="{escape(link)}">{escape(link.strip("/") or "home")}</a></li>' for link in links)
    body = "\n".join(f"<p>{escape(text)}</p>" for text in texts)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head><meta charset="utf-8"><title>{escape(title)}</title>{head}</head>\n'
        f"<body>\n<nav><ul>\n{nav}\n</ul></nav>\n<main><article><h1>{escape(title)}</h1>\n{body}\n</article></main>\n</body>\n</html>\n"
    )


class Pages:
    """Makes the pages of one host. `neighbours` are other hosts' names with port, in scope; `port` is the web's."""

    def __init__(self, seed: int, host: SimHost, port: int, neighbours: tuple[str, ...] = ()) -> None:
        self.seed, self.host, self.port, self.neighbours = seed, host, port, neighbours
        self._made: dict[tuple[str, tuple[str, ...], str, Headers], Answer] = {}

    def at(self, name: str, path: str) -> str:
        """An absolute URL on a host of this web."""
        return f"http://{name}{path}" if self.port == 80 else f"http://{name}:{self.port}{path}"

    def text(self, path: str, *, links: list[str] | None = None, head: str = "", size: int | None = None) -> str:
        """The page of a path."""
        host = self.host
        texts = paragraphs(self.seed, f"{host.name}{path}", host.language, size or host.page_bytes)
        title = texts[0].split("." if "." in texts[0] else "。")[0][:70]
        return html(title, host.language, texts, ["/"] if links is None else links, head)

    def page(self, path: str, *, links: list[str] | None = None, head: str = "", headers: Headers = ()) -> Answer:
        """The answer with that page. Kept once made: prose costs more to write than to send."""
        key = (path, tuple(links or ()), head, headers)
        made = self._made.get(key)
        if made is None:
            body = self.text(path, links=links, head=head).encode()
            size, pause = self.host.drip
            made = Answer(headers=(*HTML, *headers), body=body, wait_s=self.host.latency_s, drip_bytes=size, drip_s=pause)
            if len(self._made) >= _KEPT:
                self._made.clear()
            self._made[key] = made
        return made

    def static(self, path: str, state: UrlState = UrlState.FETCHED, *reasons: str, headers: Headers = (), head: str = "") -> Page:
        """A page whose answer never changes."""
        return Page(lambda ask: self.page(path, headers=headers, head=head), state, reasons)

    def ordinary(self, number: int) -> Page:
        """`/p/0001` and so on: links to other pages of the host, drawn from the seed."""
        host, path = self.host, ordinary_path(number)
        rng = random.Random(f"{self.seed}/{host.name}/links/{number}")
        others = [n for n in range(1, host.pages + 1) if n != number]
        chosen = [others[rng.randrange(len(others))] for _ in range(host.links - 1)] if others else []
        links = ["/", ordinary_path(number % host.pages + 1), *(ordinary_path(n) for n in chosen)]
        return Page(lambda ask: self.page(path, links=links), linked=number <= host.links)


def ordinary_path(number: int) -> str:
    """The path of the n-th ordinary page."""
    return f"/p/{number:04d}"


def answer(status: int, *headers: tuple[str, str], body: bytes = b"") -> Callable[[Ask], Answer]:
    """What the page graph answers to one request."""
    return lambda ask: Answer(status, (*headers, *HTML), body or b"<!DOCTYPE html><title>notice</title><p>Nothing more.</p>\n")


def _sitemap(make: Pages) -> dict[str, Page]:
    """An index of a gzipped sitemap; its pages are linked from nowhere else."""
    paths = [f"/only-in-sitemap/{n}" for n in range(1, 4)]
    here = make.host.name
    urls = "".join(f"<url><loc>{make.at(here, p)}</loc><priority>0.{9 - n}</priority></url>" for n, p in enumerate(paths))
    child = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
    index = f"<sitemapindex><sitemap><loc>{make.at(here, '/sitemap-1.xml.gz')}</loc></sitemap></sitemapindex>"
    xml, gz = (("Content-Type", "application/xml"),), (("Content-Type", "application/gzip"),)
    packed = gzip.compress(child.encode(), mtime=0)
    pages = {path: Page(make.static(path).respond, linked=False) for path in paths}
    pages["/sitemap.xml"] = Page(lambda ask: Answer(headers=xml, body=index.encode()), linked=False)
    pages["/sitemap-1.xml.gz"] = Page(lambda ask: Answer(headers=gz, body=packed), linked=False)
    return pages


def _redirects(make: Pages) -> dict[str, Page]:
    gone = UrlState.REDIRECTED
    many = ("too-many-redirects", "redirected")

    def hop(target: str, *reasons: str, linked: bool = True, status: int = 302) -> Page:
        return Page(answer(status, ("Location", target), ("Set-Cookie", "seen=1")), gone, reasons or ("redirected",), linked)

    pages = {"/r/1": hop("/r/2", status=301), "/r/2": hop("r3", linked=False, status=308), "/r/r3": hop("/p/0001", linked=False)}
    pages |= {"/r/self": hop("/r/self", *many), "/r/a": hop("/r/b", *many), "/r/b": hop("/r/a", *many, linked=False)}
    pages |= {f"/r/long-{n}": hop(f"/r/long-{n + 1}", *many, linked=n == 0) for n in range(8)}
    pages |= {f"/r/old-{n}": hop("/login") for n in range(6)}
    pages["/login"] = Page(make.static("/login").respond, linked=False)
    pages["/r/outside"] = hop("http://elsewhere.invalid/")
    pages["/r/private"] = hop("http://169.254.169.254/latest/meta-data/")
    pages["/r/nowhere"] = Page(answer(302), UrlState.FAILED, ("bad-redirect",))
    if make.neighbours:
        pages["/r/neighbour"] = hop(make.at(make.neighbours[0], "/"))
    return pages


def _statuses(make: Pages) -> dict[str, Page]:
    def refused(status: int) -> Page:
        return Page(answer(status), UrlState.REFUSED, (f"http-{status}",))

    pages = {f"/status/{status}": refused(status) for status in (401, 402, 403, 451)}
    pages |= {f"/status/{status}": Page(answer(status), UrlState.GONE, (f"http-{status}",)) for status in (404, 410)}
    pages["/status/400"] = Page(answer(400), UrlState.FAILED, ("http-4xx",))
    pages["/status/challenge"] = Page(answer(403, ("cf-mitigated", "challenge")), UrlState.FAILED, ("challenge",))
    return pages


def _recovers(make: Pages) -> dict[str, Page]:
    """Twice 503 or 500, then the page: asked again, and not lost."""

    def after(path: str, status: int) -> Page:
        return Page(lambda ask: Answer(status, HTML, b"later") if ask.nth <= 2 else make.page(path))

    return {"/recovers/503": after("/recovers/503", 503), "/recovers/500": after("/recovers/500", 500)}


def _charsets(make: Pages) -> dict[str, Page]:
    """Wrong and missing declarations; the text is the same prose in bytes of the true charset."""

    def coded(path: str, true: str, header: str, head: str = "", mark: bytes = b"") -> Page:
        text = make.text(path, head=head).replace('<meta charset="utf-8">', "")
        body = mark + text.encode(true, "xmlcharrefreplace")
        return Page(lambda ask: Answer(headers=(("Content-Type", header),), body=body))

    return {
        "/charset/header-lies": coded("/charset/header-lies", "utf-8", "text/html; charset=ISO-8859-1", '<meta charset="utf-8">'),
        "/charset/meta-1251": coded("/charset/meta-1251", "cp1251", "text/html", '<meta charset="windows-1251">'),
        "/charset/bom-16": coded("/charset/bom-16", "utf-16-le", "text/html; charset=utf-8", mark=b"\xff\xfe"),
        "/charset/none": coded("/charset/none", "utf-8", "text/html"),
        "/charset/unknown": coded("/charset/unknown", "utf-8", "text/html; charset=ISO-8559-1", '<meta charset="utf-8">'),
    }


def deflated(body: bytes) -> bytes:
    """A deflate stream of a body, with or without the zlib frame."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(body) + packer.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, mtime=0),
    "deflate": zlib.compress,
    "deflate-raw": deflated,
    "br": lambda body: brotli.compress(body, quality=5),
    "zstd": lambda body: zstandard.ZstdCompressor().compress(body),
}


def coded(body: bytes, *names: str) -> tuple[Headers, bytes]:
    """A body in content codings, applied in order, and its headers."""
    for name in names:
        body = CODERS[name](body)
    return (*HTML, ("Content-Encoding", ", ".join(name.removesuffix("-raw") for name in names))), body


def _codings(make: Pages) -> dict[str, Page]:
    def in_coding(path: str, framing: str, *names: str) -> Page:
        headers, body = coded(make.text(path).encode(), *names)
        return Page(lambda ask: Answer(headers=headers, body=body, framing=framing))

    pages = {f"/coding/{name}": in_coding(f"/coding/{name}", "length", name) for name in CODERS}
    pages["/coding/nested"] = in_coding("/coding/nested", "chunked", "gzip", "br")
    pages["/coding/chunked"] = in_coding("/coding/chunked", "chunked", "gzip")
    pages["/coding/closed"] = in_coding("/coding/closed", "close", "gzip")
    return pages


def _types(make: Pages) -> dict[str, Page]:
    def typed(kind: str, body: bytes, state: UrlState = UrlState.FAILED, *reasons: str) -> Page:
        return Page(lambda ask: Answer(headers=(("Content-Type", kind),), body=body), state, reasons)

    return {
        "/type/image": typed("image/png", b"\x89PNG\r\n" + bytes(200_000), UrlState.FAILED, "content-type"),
        "/type/pdf": typed("application/pdf", b"%PDF-1.7" + bytes(90_000), UrlState.FAILED, "content-type"),
        "/type/json": typed("application/json", b'{"a": 1}', UrlState.FAILED, "content-type"),
        "/type/plain": typed(
            "text/plain; charset=utf-8", "\n\n".join(paragraphs(1, "plain", "en", 1500)).encode(), UrlState.FETCHED
        ),
    }


def _copies(make: Pages) -> dict[str, Page]:
    """One article at three addresses byte for byte, and once more with another sentence at its end."""
    same = make.text("/copy/original")
    near = same.replace("</article>", f"<p>{escape(paragraphs(make.seed, 'near', make.host.language, 40)[0][:60])}</p></article>")

    def fixed(text: str) -> Page:
        return Page(lambda ask: Answer(headers=HTML, body=text.encode()))

    return {**{f"/copy/{name}": fixed(same) for name in ("original", "twin", "third")}, "/copy/near": fixed(near)}


def _conditional(make: Pages) -> dict[str, Page]:
    def respond(path: str) -> Callable[[Ask], Answer]:
        def reply(ask: Ask) -> Answer:
            page = make.page(path)
            tag = f'"{hashlib.sha256(page.body).hexdigest()[:16]}"'
            marks = (("ETag", tag), ("Last-Modified", "Tue, 01 Sep 2026 10:00:00 GMT"))
            if ask.headers.get("if-none-match") == tag:
                return Answer(304, marks)
            return Answer(headers=(*page.headers, *marks), body=page.body)

        return reply

    return {f"/etag/{n}": Page(respond(f"/etag/{n}")) for n in (1, 2)}


def _optout_pages(make: Pages) -> dict[str, Page]:
    """Signals on single answers: the page is asked for, and its body dropped."""
    refused = UrlState.REFUSED
    return {
        "/optout/header-noai": make.static("/optout/header-noai", refused, "x-robots-tag", headers=(("X-Robots-Tag", "noai, noimageai"),)),
        "/optout/header-noindex": make.static("/optout/header-noindex", refused, "x-robots-tag", headers=(("X-Robots-Tag", "noindex"),)),
        "/optout/header-tdm": make.static("/optout/header-tdm", refused, "tdmrep", headers=(("tdm-reservation", "1"),)),
        "/optout/header-usage": make.static("/optout/header-usage", refused, "content-usage", headers=(("Content-Usage", "train-ai=n"),)),
        "/optout/meta-noai": make.static("/optout/meta-noai", refused, "meta-robots", head='<meta name="robots" content="noai">'),
        "/optout/meta-noindex": make.static("/optout/meta-noindex", refused, "meta-robots", head='<meta name="robots" content="noindex">'),
        "/optout/meta-tdm": make.static("/optout/meta-tdm", refused, "tdmrep", head='<meta name="tdm-reservation" content="1">'),
        "/optout/other-bot": make.static("/optout/other-bot", headers=(("X-Robots-Tag", "otherbot: noindex"),)),
    }  # fmt: skip


def _slow(make: Pages) -> dict[str, Page]:
    def late(path: str, wait_s: float) -> Page:
        return Page(lambda ask: Answer(headers=HTML, body=make.text(path).encode(), wait_s=wait_s))

    return {f"/slow/{ms}": late(f"/slow/{ms}", ms / 1000) for ms in (100, 300, 600)}


FAMILIES: dict[Trait, Family] = {
    Trait.SITEMAP: _sitemap,
    Trait.REDIRECTS: _redirects,
    Trait.STATUSES: _statuses,
    Trait.RECOVERS: _recovers,
    Trait.CHARSETS: _charsets,
    Trait.CODINGS: _codings,
    Trait.TYPES: _types,
    Trait.COPIES: _copies,
    Trait.CONDITIONAL: _conditional,
    Trait.OPTOUT_PAGES: _optout_pages,
    Trait.SLOW: _slow,
    Trait.TDMREP: lambda make: {},
    Trait.AI_TXT: lambda make: {},
}
