"""One document per URL: which version stands for it in clusters and in a release, and which row bears its witness.

The version is that of the latest visit; its row is the first capture of that version, the one with text where there is
one. A visit that the near-copy gate linked to the URL's own earlier version brought nothing new and stands for nothing.
The choice is made once, here, before any policy: a release reads it from the clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.filter.hex_ids import Words, to_words
from corpus.model import Outcome, url_id

Places = npt.NDArray[np.int64]

_COLUMNS = ["id", "url", "url_id", "crawl_id", "outcome", "fetched_at", "content_sha256", "text_sha256", "near_original"]
_TEXT, _COPY, _OTHER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Facts:
    """What clustering must know of every documents row, in the order of the files: about 70 bytes each.

    `id`, `url` and `text` are the first 128 bits of identities, `content` the first 64. `kind`: 0 has text, 1 linked copy,
    2 anything else; `own`: a copy of an earlier version of its own URL. `linked` are the rows of linked copies and
    `original` the identities of the URLs they copy. `starts[i]` is the first row of file i.
    """

    id: Words
    url: Words
    text: Words
    content: npt.NDArray[np.uint64]
    at: Places
    kind: npt.NDArray[np.int8]
    own: npt.NDArray[np.bool_]
    crawl: npt.NDArray[np.int32]
    linked: Places
    original: Words
    starts: Places

    def without_urls(self) -> Facts:
        """What is still needed when every URL has its representative."""
        none = np.empty((0, 2), dtype=np.uint64)
        return replace(self, url=none, original=none, at=self.at[:0].copy(), own=self.own[:0].copy())

    def without_texts(self) -> Facts:
        """What is still needed when exact copies have been collapsed."""
        return replace(self, text=np.empty((0, 2), dtype=np.uint64))


def read_facts(documents: Sequence[Path]) -> Facts:
    """The facts of all rows. Raises StoreError when an identity is not one."""
    sizes = [pq.read_metadata(path).num_rows for path in documents]
    rows = sum(sizes)
    none = np.empty((0, 2), dtype=np.uint64)
    held = Facts(
        id=np.empty((rows, 2), dtype=np.uint64),
        url=np.empty((rows, 2), dtype=np.uint64),
        text=np.empty((rows, 2), dtype=np.uint64),
        content=np.empty(rows, dtype=np.uint64),
        at=np.empty(rows, dtype=np.int64),
        kind=np.empty(rows, dtype=np.int8),
        own=np.zeros(rows, dtype=bool),
        crawl=np.empty(rows, dtype=np.int32),
        linked=np.empty(0, dtype=np.int64),
        original=none,
        starts=np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))),
    )
    crawls: dict[str, int] = {}
    linked, original = [held.linked], [held.original]
    for start, path in zip(held.starts.tolist(), documents, strict=False):
        for batch in pq.ParquetFile(path).iter_batches(batch_size=65_536, columns=_COLUMNS):
            place = slice(start, start + len(batch))
            copies, urls = _fill(held, place, pa.Table.from_batches([batch]), str(path), crawls)
            linked.append(copies + start)
            original.append(urls)
            start = place.stop
    return replace(held, linked=np.concatenate(linked), original=np.concatenate(original))


def _fill(held: Facts, place: slice, table: pa.Table, where: str, crawls: dict[str, int]) -> tuple[Places, Words]:
    """Put a batch's facts in their place; returns its linked copies and the URLs they copy."""
    outcome = table["outcome"]
    kind = np.full(len(table), _OTHER, dtype=np.int8)
    kind[np.asarray(pc.equal(outcome, Outcome.OK.value))] = _TEXT
    kind[np.asarray(pc.equal(outcome, Outcome.NEAR_COPY.value))] = _COPY
    held.kind[place] = kind
    held.id[place] = to_words(table["id"], 32, where)
    held.url[place] = to_words(table["url_id"], 32, where)
    held.content[place] = to_words(table["content_sha256"], 64, where)[:, 0]
    held.text[place] = to_words(table["text_sha256"], 64, where)[:, :2]
    held.at[place] = np.asarray(table["fetched_at"].cast(pa.int64()))
    names = table["crawl_id"].combine_chunks().dictionary_encode()
    codes = np.array([crawls.setdefault(name, len(crawls)) for name in names.dictionary.to_pylist()], dtype=np.int32)
    held.crawl[place] = codes[np.asarray(names.indices, dtype=np.int64)]
    copies = np.flatnonzero(kind == _COPY)
    urls = table["near_original"].take(pa.array(copies)).to_pylist()
    digests = b"".join(bytes.fromhex(url_id(url)) if url else bytes(16) for url in urls)
    original = np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(len(copies), 2)
    held.own[place.start + copies] = (original == held.url[place.start + copies]).all(axis=1)
    return copies, original


def representatives(facts: Facts) -> Places:
    """The row that stands for each URL, in rising row order."""
    order = np.argsort(facts.url[:, 0], kind="stable")
    high = facts.url[order, 0]
    repeated = np.zeros(len(order), dtype=bool)
    repeated[1:] = high[1:] == high[:-1]
    repeated[:-1] |= repeated[1:].copy()
    single, several = order[~repeated], order[repeated]
    return np.sort(np.concatenate((single, _choose(facts, several)))) if len(several) else np.sort(single)


def _choose(facts: Facts, rows: Places) -> Places:
    """For URLs captured more than once: latest visit decides the version, first capture with text bears witness."""
    key = (rows, facts.id[rows, 1], facts.id[rows, 0], facts.at[rows], facts.url[rows, 1], facts.url[rows, 0])
    rows = rows[np.lexsort(key)]
    url, ident = facts.url[rows], facts.id[rows]
    first = np.flatnonzero(np.concatenate(([True], (url[1:] != url[:-1]).any(axis=1))))
    group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(rows))))
    position = np.arange(len(rows))
    last = np.append(first[1:], len(rows)) - 1
    brought = np.maximum.reduceat(np.where(facts.own[rows], -1, position), first)
    chosen = np.where(brought >= 0, brought, last)
    same = (ident == ident[chosen[group]]).all(axis=1)
    penalty = np.where(facts.kind[rows] == _TEXT, 0, len(rows)) + np.where(same, 0, 4 * len(rows))
    best: Places = np.minimum.reduceat(position + penalty, first) % len(rows)
    return rows[best]


def with_text(facts: Facts, rows: Places) -> Places:
    """Those of the rows that have a text, in the order of their ids."""
    texts: Places = rows[facts.kind[rows] == _TEXT]
    return texts[np.lexsort((facts.id[texts, 1], facts.id[texts, 0]))]


def linked_copies(facts: Facts, rows: Places) -> Places:
    """Those of the rows that are linked near copies, in the order of their ids."""
    copies: Places = rows[facts.kind[rows] == _COPY]
    return copies[np.lexsort((facts.id[copies, 1], facts.id[copies, 0]))]


def originals(facts: Facts, texts: Places, copies: Places) -> tuple[Places, Words]:
    """Whose near copy each of `copies` is: the row in `texts`, following a chain of copies (-1: not in the snapshot), and the
    identity of the URL it names itself."""
    named = facts.original[np.searchsorted(facts.linked, copies)]
    found = np.full(len(copies), -1, dtype=np.int64)
    if not len(copies):
        return found, named
    known = np.concatenate((texts, copies))
    known = known[np.argsort(facts.url[known, 0], kind="stable")]
    sought = named
    for _ in range(8):  # a chain longer than this is a loop
        hit = _find(facts, known, sought)
        is_text = (hit >= 0) & (facts.kind[np.maximum(hit, 0)] == _TEXT)
        found = np.where((found < 0) & is_text, hit, found)
        onward = (hit >= 0) & ~is_text & (found < 0)
        if not onward.any():
            break
        sought = np.zeros_like(sought)
        sought[onward] = facts.original[np.searchsorted(facts.linked, hit[onward])]
    return found, named


def _find(facts: Facts, known: Places, sought: Words) -> Places:
    at = np.minimum(np.searchsorted(facts.url[known, 0], sought[:, 0]), len(known) - 1)
    hit = known[at]
    return np.where((facts.url[hit] == sought).all(axis=1), hit, -1)
