"""The hostile families: servers that break HTTP, bodies that explode, and mazes without end.

Each broken page says how the default limits free us from it. Mazes answer any path below their prefix for ever; the
real pages of the host stay the ones to find.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable

import brotli
import zstandard

from corpus.model import UrlState
from corpus.testing.web_answer import Answer, Ask, Fault
from corpus.testing.web_hosts import Page, Trait
from corpus.testing.web_pages import FAMILIES, HTML, Family, Pages

BOMB_BYTES = 512 * 2**20
_BLOCK = bytes(2**20)


def _packed(feed: Callable[[bytes], bytes], flush: Callable[[], bytes], size: int) -> bytes:
    return b"".join([feed(_BLOCK) for _ in range(size // len(_BLOCK))]) + flush()


def _deflated(size: int, *, as_gzip: bool) -> bytes:
    """One block packed and flushed can stand any number of times: a bomb of any size in the time of one block."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(_BLOCK) + packer.flush(zlib.Z_FULL_FLUSH)
    count, check = size // len(_BLOCK), 0
    body = block * count + b"\x03\x00"  # an empty last block
    if not as_gzip:
        return b"\x78\xda" + body + (size % 65_521 << 16 | 1).to_bytes(4, "big")  # Adler-32 of so many zeros
    for _ in range(count):
        check = zlib.crc32(_BLOCK, check)
    return b"\x1f\x8b\x08\0\0\0\0\0\x02\xff" + body + check.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")


def bomb(coding: str, size: int = BOMB_BYTES) -> bytes:
    """`size` zero bytes (whole MiB) in a coding: `gzip`, `deflate`, `br`, `zstd`, or `nested` (gzip in gzip)."""
    match coding:
        case "gzip" | "deflate":
            return _deflated(size, as_gzip=coding == "gzip")
        case "nested":
            return gzip.compress(_deflated(size, as_gzip=True), mtime=0)
        case "br":
            packer = brotli.Compressor(quality=1)
            return _packed(packer.process, packer.finish, size)
        case _:
            frame = zstandard.ZstdCompressor(level=1).compressobj()
            return _packed(frame.compress, frame.flush, size)


def _broken(make: Pages) -> dict[str, Page]:
    failed = UrlState.FAILED
    text = make.text("/broken/body").encode()

    def page(answer: Answer, *reasons: str, state: UrlState = failed) -> Page:
        return Page(lambda ask: answer, state, reasons)

    return {
        "/broken/reset": page(Answer(fault=Fault.RESET), "reset"),
        "/broken/close": page(Answer(fault=Fault.CLOSE), "reset"),
        "/broken/silent": page(Answer(fault=Fault.SILENT), "timeout"),
        "/broken/garbage": page(Answer(fault=Fault.GARBAGE), "protocol"),
        "/broken/endless-head": page(Answer(fault=Fault.ENDLESS_HEAD), "protocol"),
        "/broken/drip-head": page(Answer(fault=Fault.ENDLESS_HEAD, drip_s=0.5), "timeout", "protocol"),
        "/broken/drip": page(Answer(headers=HTML, body=text, drip_bytes=1, drip_s=10.0), "too-slow"),
        "/broken/silent-body": page(Answer(headers=HTML, body=text, drip_bytes=64, drip_s=3600.0), "timeout"),
        "/broken/cut": page(Answer(headers=HTML, body=text, fault=Fault.CUT), "reset", state=UrlState.FETCHED),
        "/broken/cut-chunked": page(Answer(headers=HTML, body=text, fault=Fault.CUT, framing="chunked"), state=UrlState.FETCHED),
        "/broken/not-gzip": page(Answer(headers=(*HTML, ("Content-Encoding", "zstd")), body=text), "decode"),
        "/broken/endless-body": page(Answer(headers=HTML, body=text * 20, fault=Fault.ENDLESS_BODY, framing="chunked"), state=UrlState.FETCHED),
    }  # fmt: skip


class _Bombs:
    """Bombs are packed when first asked for, and kept."""

    def __init__(self) -> None:
        self._made: dict[str, bytes] = {}

    def respond(self, coding: str) -> Callable[[Ask], Answer]:
        header = "gzip, gzip" if coding == "nested" else coding

        def reply(ask: Ask) -> Answer:
            if coding not in self._made:
                self._made[coding] = bomb(coding)
            return Answer(headers=(*HTML, ("Content-Encoding", header)), body=self._made[coding])

        return reply


def _bombs(make: Pages) -> dict[str, Page]:
    bombs = _Bombs()
    # Deflate cannot pack tighter than 1 : 1030, so its bombs meet the size cap first and are pages cut short.
    cut = {f"/bomb/{coding}": Page(bombs.respond(coding)) for coding in ("gzip", "deflate")}
    return cut | {f"/bomb/{c}": Page(bombs.respond(c), UrlState.FAILED, ("decode",)) for c in ("br", "zstd", "nested")}


def maze_prefixes(trait: Trait) -> tuple[str, ...]:
    """Paths that begin so are inside a maze."""
    return {
        Trait.CALENDAR: ("/calendar",),
        Trait.LOOPING_PATH: ("/loop/",),
        Trait.SESSIONS: ("/session/",),
        Trait.SLUGS: ("/article/",),
    }.get(trait, ())


def maze(make: Pages, trait: Trait, ask: Ask) -> Answer:
    """The answer of a maze to any path below its prefix."""
    match trait:
        case Trait.CALENDAR:
            month = _number(ask.query.removeprefix("month="))
            links = [f"/calendar?month={month + 1}", f"/calendar?month={month + 2}"]
            return make.page("/calendar", links=links)
        case Trait.LOOPING_PATH:
            return make.page("/loop", links=[f"{ask.path}a/b/"])
        case Trait.SESSIONS:
            # Every visit mints a new session id, and every link carries it.
            page = _number(ask.path.rpartition("/")[2].partition(";")[0])
            token = hashlib.sha256(f"{ask.target}{ask.nth}".encode()).hexdigest()[:16]
            return make.page(f"/session/{page}", links=[f"/session/{n};jsessionid={token}" for n in range(1, 5)])
        case _:
            number = _number(ask.path.rpartition("-")[2])
            return make.page("/article", links=[f"/article/a-title-{(number + step) % 2000}" for step in (1, 7, 31)])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1


MAZE_DOORS: dict[Trait, str] = {
    Trait.CALENDAR: "/calendar?month=1",
    Trait.LOOPING_PATH: "/loop/a/b/",
    Trait.SESSIONS: "/session/1",
    Trait.SLUGS: "/article/a-title-1",
}
ALL_FAMILIES: dict[Trait, Family] = {
    **FAMILIES,
    Trait.BROKEN: _broken,
    Trait.BOMBS: _bombs,
    **dict.fromkeys(MAZE_DOORS, lambda make: {}),
}
assert set(ALL_FAMILIES) == set(Trait), "every trait needs its family of pages"
