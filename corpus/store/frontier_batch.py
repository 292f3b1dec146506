"""What one transaction changes in a frontier, worked out before anything is written. Shared by both stores.

Rows are looked up through a small view of the store; the batch keeps an overlay of its own changes, so that acks of one
batch see each other in order. It writes nothing: a store takes its `Changes` in one transaction, or drops them whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from corpus.crawl.ports import Ack, Judged, Settled
from corpus.model import Kind, UrlState
from corpus.store.frontier_rows import (
    Counted,
    Key,
    Peek,
    UrlRow,
    changes,
    first_sighting,
    merge,
    readmits,
    settle,
    uid_of,
    unsighted,
)
from corpus.url.host import host_of

KEPT_EXCLUSIONS = 1000
"""Excluded rows kept whole per (host, reason)."""
COUNTED_EXACTLY = 100_000
"""Beyond the kept ones, this many more URLs per (host, reason) are told apart by a 64-bit key, so that a second sighting
does not count twice; past that a trap is only counted, sighting by sighting, and costs no space at all."""

TallyKey = tuple[bool, UrlState, str]
"""(is a page, state, reason)"""


Link = tuple[Judged, bytes]
"""(sighting, uid)"""


def links_of(acks: Sequence[Ack]) -> list[list[Link]]:
    """Per ack its own sightings with their uids."""
    return [[(judged, uid_of(judged.sighting.url)) for judged in ack.own] for ack in acks]


class View(Protocol):
    """What a batch must know of the stored rows."""

    def peek(self, keys: Sequence[Key], soon: Sequence[Key] = ()) -> dict[Key, Peek | Counted]:
        """What is known of `keys`. `soon`: whose rows will be loaded next, for a store that would rather read them now."""
        ...

    def load(self, key: Key) -> UrlRow | None: ...
    def exclusions(self, host: str, reason: str) -> tuple[int, int]:
        """(rows kept, URLs only counted) of a host under a reason."""
        ...

    def queued(self, host: str) -> int: ...


@dataclass(slots=True)
class Changes:
    """`rows`: (before or None, after); `dropped`: rows that are only counted from now on."""

    rows: list[tuple[UrlRow | None, UrlRow]] = field(default_factory=list)
    dropped: list[UrlRow] = field(default_factory=list)
    counted: list[tuple[Key, str]] = field(default_factory=list)
    uncounted: list[tuple[Key, str]] = field(default_factory=list)
    exclusions: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    queued: dict[str, int] = field(default_factory=dict)
    tally: dict[TallyKey, int] = field(default_factory=dict)
    visits: dict[Key, Settled] = field(default_factory=dict)
    awake: list[str] = field(default_factory=list)


def tally_key(known: UrlRow | Counted) -> TallyKey:
    """Under what a URL is counted; URLs without a row are pages (others are always kept)."""
    if isinstance(known, Counted):
        return True, UrlState.EXCLUDED, known.reason
    return known.kind is Kind.PAGE, known.state, known.reason


class Batch:
    """An overlay over a view. Feed it with `take` or `sight` and `put`, then read `finish`."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._peeks: dict[Key, Peek | Counted] = {}
        self._peeked: set[Key] = set()
        self._before: dict[Key, UrlRow | Counted | None] = {}
        self._now: dict[Key, UrlRow | Counted | None] = {}
        self._visits: dict[Key, Settled] = {}
        self._exclusions: dict[tuple[str, str], tuple[int, int]] = {}
        self._queued: dict[str, tuple[int, int]] = {}
        self._tally: dict[TallyKey, int] = {}

    def take(self, acks: Sequence[Ack], links: Sequence[Sequence[Link]] | None = None) -> None:
        """Apply acks in order; within one, sightings before settlements (a redirect's target is settled by its own ack).

        `links`: per ack those of its own sightings that may change anything; absent, all of them.
        """
        sightings = links_of(acks) if links is None else links
        soon = [(host_of(settled.url), uid_of(settled.url)) for ack in acks for settled in ack.settled]
        self.prepare([(judged.host, uid) for sighted in sightings for judged, uid in sighted], soon)
        for ack, sighted in zip(acks, sightings, strict=True):
            for judged, uid in sighted:
                self.sight(judged, uid)
            for settled in ack.settled:
                self._settle(settled)

    def prepare(self, keys: Sequence[Key], soon: Sequence[Key] = ()) -> None:
        """Read what is known of these URLs in one go; `soon`: those that will be settled."""
        fresh = [key for key in dict.fromkeys(keys) if key not in self._peeked]
        self._peeked.update(fresh)
        self._peeks.update(self._view.peek(fresh, soon))

    def sight(self, judged: Judged, uid: bytes) -> None:
        """One sighting of a URL that was prepared."""
        key = (judged.host, uid)
        if key in self._now:
            known = self._now[key]
        else:
            seen = self._peeks.get(key)
            if isinstance(seen, Peek) and not changes(seen, judged):
                return
            known = self._view.load(key) if isinstance(seen, Peek) else seen
            self._before[key] = known
        if isinstance(known, UrlRow):
            after = merge(known, judged)
            if after is not known:
                self.put(key, after)
        elif known is None or readmits(UrlState.EXCLUDED, known.reason, judged):
            self.put(key, first_sighting(judged, uid))

    def put(self, key: Key, after: UrlRow) -> None:
        """Replace the row of `key` in the overlay, keeping every count exact."""
        before = self._now.get(key)
        if key not in self._now:
            before = self._before.setdefault(key, None)
        if before is not None:
            self._account(key, before, -1)
        self._now[key] = self._account(key, after, 1)

    def adopt(self, row: UrlRow) -> None:
        """Tell the batch a row that the store has just read, so that `put` knows what it replaces."""
        self._before.setdefault(row.key, row)

    def _settle(self, settled: Settled) -> None:
        uid = uid_of(settled.url)
        blank = unsighted(settled.url, uid)
        key = blank.key
        if key not in self._now and key not in self._before:
            self._before[key] = self._view.load(key)
        known = self._now[key] if key in self._now else self._before[key]
        row = known if isinstance(known, UrlRow) else blank
        after = settle(row, settled)
        if after is row and known is row:
            return
        self.put(key, after)
        self._visits[key] = settled

    def _account(self, key: Key, known: UrlRow | Counted, step: int) -> UrlRow | Counted | None:
        """Count a row in (+1) or out (-1); returns what is to be stored of it (an exclusion may only be counted)."""
        host = key[0]
        count = tally_key(known)
        self._tally[count] = self._tally.get(count, 0) + step
        if isinstance(known, UrlRow) and known.state is UrlState.QUEUED:
            if host not in self._queued:
                self._queued[host] = (self._view.queued(host), 0)
            had, more = self._queued[host]
            self._queued[host] = (had, more + step)
        if count[1] is not UrlState.EXCLUDED or not count[0]:
            return known
        reason = count[2]
        if (host, reason) not in self._exclusions:
            self._exclusions[host, reason] = self._view.exclusions(host, reason)
        kept, only = self._exclusions[host, reason]
        if isinstance(known, Counted) or (step > 0 and kept >= KEPT_EXCLUSIONS):
            self._exclusions[host, reason] = (kept, only + step)
            return Counted(reason) if only < COUNTED_EXACTLY else None
        self._exclusions[host, reason] = (kept + step, only)
        return known

    def finish(self) -> Changes:
        """All changes, in the order in which URLs were first touched."""
        out = Changes(exclusions=self._exclusions, tally={key: n for key, n in self._tally.items() if n}, visits=self._visits)
        for key, after in self._now.items():
            before = self._before.get(key)
            if isinstance(before, Counted) and before != after:
                out.uncounted.append((key, before.reason))
            if isinstance(after, UrlRow):
                out.rows.append((before if isinstance(before, UrlRow) else None, after))
                continue
            if isinstance(before, UrlRow):
                out.dropped.append(before)
            out.visits.pop(key, None)
            if after is not None and before != after:
                out.counted.append((key, after.reason))
        for host, (had, more) in self._queued.items():
            out.queued[host] = had + more
            if not had and more > 0:
                out.awake.append(host)
        return out
