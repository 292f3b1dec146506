"""The near-copy gate: has this crawl already stored this page, or nearly?

One index spans the crawl and is asked in batches at group commit. Identical payloads are found by digest; near
copies by 64-bit SimHash within `k` bits, looked up through k + 1 blocks of which one must be equal. The first page
seen is the original; which one is first depends on the order of answers, so law B is stated for `near_copies = "store"`.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Protocol

import numpy as np

from corpus.crawl.ports import Original
from corpus.page.simhash import blocks

BUCKET_MAX = 256
"""Candidates compared per block where each is fetched from a server: a template that thousands of pages share must not cost thousands."""
COMPARED_MAX = 4096
"""The same in memory, where they are compared at once: the lists of 2.7 · 10^8 pages are no longer on average."""
_AS_URL = "\0"

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
    """The embedded gate, rebuilt from the frontier at start: for each page 75 bytes and its address, and 65 MB for full tables.

    Nothing about a page is an object of its own. Pages that share a block of bits, or the first bits of their payload's
    digest, lie in one list of row numbers, and a list is compared at once.
    """

    def __init__(self, k: int, known: Iterable[Fingerprint] = ()) -> None:
        self._k = k
        self._rows = _Rows()
        self._by_payload: dict[int, array[int]] = {}
        self._by_block: list[dict[int, array[int]]] = [{} for _ in range(k + 1)]
        for page in known:
            self._add(page)

    def __len__(self) -> int:
        return len(self._rows.hashes)

    def ask(self, pages: Sequence[Fingerprint]) -> list[NearCopy | None]:
        answers: list[NearCopy | None] = []
        for page in pages:
            copy = self._find(page)
            if copy is None and not page.alias:
                self._add(page)
            answers.append(copy)
        return answers

    def _find(self, page: Fingerprint) -> NearCopy | None:
        same = self._same(bytes.fromhex(page.content_sha256))
        if same is not None:
            original = self._rows.original(same)
            return None if original.url == page.url else NearCopy(original, 0, identical=True)
        if page.simhash is None:
            return None
        found = [(apart, self._rows.original(row).url, row) for apart, row in self._close(page.simhash)]
        best = min((one for one in found if one[1] != page.url), default=None)
        return None if best is None else NearCopy(self._rows.original(best[2]), best[0], identical=False)

    def _same(self, digest: bytes) -> int | None:
        """The first row with this payload."""
        rows = self._by_payload.get(int.from_bytes(digest[:2]))
        return None if rows is None else self._rows.with_digest(rows, digest)

    def _close(self, simhash: int) -> list[tuple[int, int]]:
        """(bits that differ, row) of all pages within `k` bits that share a block with this one."""
        candidates = array("I")
        for block, table in zip(blocks(simhash, self._k), self._by_block, strict=True):
            rows = table.get(block)
            if rows is not None:
                candidates += rows if len(rows) <= COMPARED_MAX else rows[:COMPARED_MAX]
        return self._rows.within(candidates, simhash, self._k) if candidates else []

    def _add(self, page: Fingerprint) -> None:
        digest = bytes.fromhex(page.content_sha256)
        same = self._same(digest)
        if same is not None and self._rows.original(same).url == page.url:
            return  # a page that came again as it was
        row = self._rows.append(page, digest)
        if same is None:
            self._by_payload.setdefault(int.from_bytes(digest[:2]), array("I")).append(row)
        if page.simhash is not None:
            for block, table in zip(blocks(page.simhash, self._k), self._by_block, strict=True):
                table.setdefault(block, array("I")).append(row)


class _Rows:
    """What is kept of the pages, by row number: columns of numbers, and all addresses in one run of bytes."""

    def __init__(self) -> None:
        self.hashes = array("Q")
        self._digests = (array("Q"), array("Q"))
        """The first 16 bytes of each payload's SHA-256."""
        self._dates = array("d")
        self._names = bytearray()
        self._ends = array("Q", (0,))
        """Where the URL and the found URL of each row end in `_names`."""

    def append(self, page: Fingerprint, digest: bytes) -> int:
        self.hashes.append(page.simhash or 0)
        for n, half in enumerate(self._digests):
            half.append(int.from_bytes(digest[8 * n : 8 * n + 8]))
        self._dates.append(nan if page.fetched_at is None else page.fetched_at)
        for name in (page.url, _AS_URL if page.found == page.url else page.found):
            self._names += name.encode("utf-8", "surrogatepass")
            self._ends.append(len(self._names))
        return len(self.hashes) - 1

    def original(self, row: int) -> Original:
        start, middle, end = self._ends[2 * row : 2 * row + 3]
        url, found = (str(self._names[a:b], "utf-8", "surrogatepass") for a, b in ((start, middle), (middle, end)))
        at = self._dates[row]
        return Original(url, url if found == _AS_URL else found, None if isnan(at) else at)

    def with_digest(self, rows: array[int], digest: bytes) -> int | None:
        """The first of these rows whose payload has the digest."""
        among = np.frombuffer(rows, dtype=np.uint32)
        for n, half in enumerate(self._digests):
            wanted = np.uint64(int.from_bytes(digest[8 * n : 8 * n + 8]))
            among = among[np.frombuffer(half, dtype=np.uint64)[among] == wanted]
        return int(among[0]) if len(among) else None

    def within(self, rows: array[int], simhash: int, k: int) -> list[tuple[int, int]]:
        """(bits that differ, row) of those of these rows that differ in at most `k` bits; a row may come twice."""
        among = np.frombuffer(rows, dtype=np.uint32)
        apart = np.bitwise_count(np.frombuffer(self.hashes, dtype=np.uint64)[among] ^ np.uint64(simhash))
        near = np.flatnonzero(apart <= k)
        return list(zip(apart[near].tolist(), among[near].tolist(), strict=True))
