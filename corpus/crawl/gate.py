"""The near-copy gate: has this crawl already stored this page, or nearly?

One index spans the crawl and is asked in batches at group commit. Identical payloads are found by digest; near
copies by 64-bit SimHash within `k` bits, looked up through k + 1 blocks of which one must be equal. The first page
seen is the original; which one is first depends on the order of answers, so law B is stated for `near_copies = "store"`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from corpus.crawl.ports import Original
from corpus.page.simhash import blocks, distance

BUCKET_MAX = 256
"""Candidates compared per block: a template that thousands of pages share must not cost thousands of comparisons."""


AUDITED = 64
"""One copy in so many is stored whole all the same, so that somebody can compare it with its original."""


def audited(url: str) -> bool:
    """Whether the copy at this canonical URL is one of those; the same in every crawl."""
    return int.from_bytes(hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=2).digest(), "big") % AUDITED == 0


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What the gate knows of a page. `simhash` is None for pages with too few words."""

    url: str
    content_sha256: str
    simhash: int | None
    found: str = ""
    fetched_at: float | None = None
    alias: bool = False
    """The page names another address as its own (`rel=canonical`): it is never the original of others."""


@dataclass(frozen=True, slots=True)
class NearCopy:
    """The page copies `original`; `identical` means the same payload (distance 0)."""

    original: Original
    distance: int
    identical: bool


class Gate(Protocol):
    def ask(self, pages: Sequence[Fingerprint]) -> list[NearCopy | None]:
        """For each page, what it copies (pages earlier in the batch included); originals are remembered."""
        ...


class NearIndex:
    """The embedded gate: dictionaries in memory, rebuilt from the frontier at start."""

    def __init__(self, k: int, known: Iterable[Fingerprint] = ()) -> None:
        self._k = k
        self._pages: list[Original] = []
        self._hashes: list[int | None] = []
        self._by_payload: dict[str, int] = {}
        self._by_block: list[dict[int, list[int]]] = [{} for _ in range(k + 1)]
        for page in known:
            self._add(page)

    def __len__(self) -> int:
        return len(self._pages)

    def ask(self, pages: Sequence[Fingerprint]) -> list[NearCopy | None]:
        answers: list[NearCopy | None] = []
        for page in pages:
            copy = self._find(page)
            if copy is None and not page.alias:
                self._add(page)
            answers.append(copy)
        return answers

    def _find(self, page: Fingerprint) -> NearCopy | None:
        same = self._by_payload.get(page.content_sha256)
        if same is not None:
            return None if self._pages[same].url == page.url else NearCopy(self._pages[same], 0, identical=True)
        if page.simhash is None:
            return None
        best: tuple[int, str, int] | None = None
        for block, table in zip(blocks(page.simhash, self._k), self._by_block, strict=True):
            for row in table.get(block, ())[:BUCKET_MAX]:
                other = self._hashes[row]
                url = self._pages[row].url
                if other is None or url == page.url:
                    continue
                apart = distance(page.simhash, other)
                if apart <= self._k and (best is None or (apart, url, row) < best):
                    best = (apart, url, row)
        return None if best is None else NearCopy(self._pages[best[2]], best[0], identical=False)

    def _add(self, page: Fingerprint) -> None:
        row = len(self._pages)
        self._pages.append(Original(page.url, page.found, page.fetched_at))
        self._hashes.append(page.simhash)
        self._by_payload.setdefault(page.content_sha256, row)
        if page.simhash is not None:
            for block, table in zip(blocks(page.simhash, self._k), self._by_block, strict=True):
                table.setdefault(block, []).append(row)
