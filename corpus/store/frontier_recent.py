"""The recent-set in front of a partition file: sightings that cannot change anything never reach the table.

Sound because it remembers a sighting only after the transaction that holds it returned, and because a sighting that an
equal or better one preceded changes no row. It may be shared by the files of one process: a URL has one owner, and
links on their way out are kept apart from links that arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from corpus.crawl.ports import Ack
from corpus.crawl.seen import U32, U64, RecentSeen, claim_of, keys_of
from corpus.store.frontier_batch import Link
from corpus.store.frontier_rows import uid_of

Remembered = tuple[U64, U32]
_OUTBOUND = np.uint64(0x9E3779B97F4A7C15)
"""Mixed into the key of a sighting that was sent: having sent a URL is not having applied it."""


class Recent:
    """Sifts acks through a recent-set, or (None) lets everything pass."""

    def __init__(self, seen: RecentSeen | None) -> None:
        self._seen = seen

    def clear(self) -> None:
        if self._seen is not None:
            self._seen.clear()

    def remember(self, remembered: Sequence[Remembered]) -> None:
        """Call when the transaction has returned."""
        for keys, claims in remembered:
            if self._seen is not None:
                self._seen.remember(keys, claims)

    def sift(self, acks: Sequence[Ack], links: list[list[Link]]) -> tuple[Sequence[Ack], list[list[Link]], list[Remembered]]:
        """(acks without repeated outbound links, own links that may change something, what to remember afterwards)."""
        if self._seen is None:
            return acks, links, []
        remembered: list[Remembered] = []
        own = [link for sighted in links for link in sighted]
        if own:
            keys = keys_of([uid for _, uid in own])
            claims = np.array([claim_of(judged.sighting, admitted=not judged.excluded) for judged, _ in own], np.uint32)
            fresh = iter((~self._seen.repeats(keys, claims)).tolist())
            links = [[link for link in sighted if next(fresh)] for sighted in links]
            remembered.append((keys, claims))
        sent = [sighting for ack in acks for _, sighting in ack.foreign]
        if sent:
            keys = keys_of([uid_of(sighting.url) for sighting in sent]) ^ _OUTBOUND
            claims = np.array([claim_of(sighting) for sighting in sent], np.uint32)
            fresh = iter((~self._seen.repeats(keys, claims)).tolist())
            acks = [
                replace(ack, foreign=tuple(pair for pair in ack.foreign if next(fresh))) if ack.foreign else ack for ack in acks
            ]
            remembered.append((keys, claims))
        return acks, links, remembered
