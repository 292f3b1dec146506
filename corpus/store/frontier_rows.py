"""One URL as a frontier keeps it, and the pure rules by which sightings and settlements change it.

Both stores, memory and SQLite, use exactly these functions, so they cannot differ in what a sighting means. Order of
sightings does not matter for what will be asked for: the smallest (depth, hops) wins, the largest sitemap claim wins.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from corpus.crawl.nouns import NO_HISTORY
from corpus.crawl.ports import Change, Due, History, Judged, Settled, Whole
from corpus.crawl.priority import url_front
from corpus.crawl.states import READMITTED_BY_A_SIGHTING, VISITED, check_settlement
from corpus.model import Kind, UrlState
from corpus.url.host import host_of

Key = tuple[str, bytes]
"""(host, first 16 bytes of the canonical URL's SHA-256): the host first, so that a page's links lie close together."""


class UrlRow(NamedTuple):
    """Identity, discovery and state of one URL. `front` follows from depth, claim and kind (`crawl.priority`)."""

    host: str
    uid: bytes
    url: str
    found: str
    kind: Kind
    depth: int
    hops: int
    via: str
    claim: float
    front: int
    state: UrlState
    reason: str = ""
    attempts: int = 0
    due: Due | None = None
    again: bool = False
    """In line (or waiting for it) for another visit."""

    @property
    def key(self) -> Key:
        return self.host, self.uid

    @property
    def waits(self) -> bool:
        """Queued, but not before its time."""
        return self.state is UrlState.QUEUED and self.due is not None


class Peek(NamedTuple):
    """The part of a row that tells whether a sighting changes anything."""

    state: UrlState
    reason: str
    kind: Kind
    depth: int
    hops: int
    claim: float


class Counted(NamedTuple):
    """An excluded page that is only counted: past the first rows of its (host, reason) no address is kept."""

    reason: str


class Validators(NamedTuple):
    """What the last visit brought: for a conditional request, and to compare the next answer with."""

    etag: str = ""
    last_modified: str = ""
    content_sha256: str = ""
    simhash: int | None = None
    history: History = NO_HISTORY
    whole: Whole | None = None


class Version(NamedTuple):
    """One link of a page's chain of versions, as it is kept once there is more than one."""

    first_at: float
    last_at: float
    change: str
    content_sha256: str


def next_version(settled: Settled) -> Version | None:
    """The link that a visit adds to its page's chain; None where it only confirms the last one (or compared nothing)."""
    if settled.change is None or settled.change is Change.UNCHANGED or settled.fetched_at is None:
        return None
    return Version(settled.fetched_at, settled.fetched_at, settled.change.value, settled.content_sha256)


def carry_on(chain: list[Version], before: Settled | None, settled: Settled) -> None:
    """A page's chain after one more visit that compared; it begins with what the visit `before` brought."""
    if not chain and before is not None and before.content_sha256 and before.fetched_at is not None:
        chain.append(Version(before.fetched_at, before.fetched_at, "", before.content_sha256))
    if (link := next_version(settled)) is not None:
        chain.append(link)
    elif chain and settled.fetched_at is not None:
        chain[-1] = chain[-1]._replace(last_at=max(chain[-1].last_at, settled.fetched_at))


def uid_of(url: str) -> bytes:
    """`model.url_id` as 16 raw bytes."""
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).digest()[:16]


def tidy(claim: float) -> float:
    """A sitemap's claim in thousandths; what is no number from 0 to 1 counts as the protocol's default."""
    return round(claim, 3) if 0.0 <= claim <= 1.0 else 0.5


def first_sighting(judged: Judged, uid: bytes) -> UrlRow:
    """The row of a URL that nobody has seen before: queued, or excluded with the filter's reason."""
    s = judged.sighting
    state = UrlState.EXCLUDED if judged.excluded else UrlState.QUEUED
    claim = tidy(s.priority)
    rank = url_front(s.depth, claim, s.kind)
    return UrlRow(judged.host, uid, s.url, s.found, s.kind, s.depth, s.hops, s.via, claim, rank, state, judged.excluded)


def unsighted(url: str, uid: bytes) -> UrlRow:
    """A row for a URL that was settled although no page was seen to link to it (the end of a redirect, say)."""
    return UrlRow(host_of(url), uid, url, url, Kind.PAGE, 0, 0, "", 0.5, url_front(0), UrlState.QUEUED)


_NOT_YET_ASKED = frozenset({UrlState.QUEUED, UrlState.PARKED, UrlState.EXCLUDED})


def readmits(state: UrlState, reason: str, judged: Judged) -> bool:
    """Whether this sighting lifts the exclusion of a URL in this state."""
    return state is UrlState.EXCLUDED and not judged.excluded and reason in READMITTED_BY_A_SIGHTING


def nearer(known: Peek | UrlRow, judged: Judged) -> bool:
    """Whether this sighting's place is better; one that would be excluded has no say about a URL that is not."""
    heard = known.state is UrlState.EXCLUDED or not judged.excluded
    return heard and (judged.sighting.depth, judged.sighting.hops) < (known.depth, known.hops)


def changes(known: Peek | UrlRow, judged: Judged) -> bool:
    """Whether a sighting of a known URL changes its row."""
    s = judged.sighting
    if nearer(known, judged) or readmits(known.state, known.reason, judged):
        return True
    return known.state in _NOT_YET_ASKED and (
        tidy(s.priority) > known.claim or (s.kind is not Kind.PAGE and known.kind is Kind.PAGE)
    )


def merge(row: UrlRow, judged: Judged) -> UrlRow:
    """The row after one more sighting; the same object when the sighting changes nothing."""
    if not changes(row, judged):
        return row
    s, reopened = judged.sighting, readmits(row.state, row.reason, judged)
    better = reopened or nearer(row, judged)
    # a URL that was excluded for its hops must come back with the sighting that has few, even if that one is deeper
    depth, hops, via = (s.depth, s.hops, s.via) if better else (row.depth, row.hops, row.via)
    waiting = row.state in _NOT_YET_ASKED
    kind = s.kind if waiting and row.kind is Kind.PAGE else row.kind
    claim = max(row.claim, tidy(s.priority)) if waiting else row.claim
    return row._replace(
        found=s.found if better and waiting else row.found,
        kind=kind,
        depth=depth,
        hops=hops,
        via=via,
        claim=claim,
        front=url_front(depth, claim, kind, again=row.again),
        state=UrlState.QUEUED if reopened else row.state,
        reason="" if reopened else row.reason,
    )


def settle(row: UrlRow, settled: Settled) -> UrlRow:
    """The row after its owner's report. Raises IllegalTransition. A takedown is final: the report then changes nothing."""
    if row.state is UrlState.EXCLUDED and row.reason == "taken-down":
        return row
    check_settlement(row.state, settled.state)
    place = row.front if settled.front is None else settled.front
    # a retry of a revisit is a revisit; what is settled is no longer in line for anything
    again = row.again and settled.state in (UrlState.QUEUED, UrlState.PARKED)
    return row._replace(
        state=settled.state, reason=settled.reason, attempts=settled.attempts, due=settled.due, front=place, again=again
    )


def requeued(row: UrlRow) -> UrlRow:
    """The row back in line: woken with its attempts, or (reopened, readmitted, due for another visit) with none."""
    attempts = row.attempts if row.state in (UrlState.QUEUED, UrlState.PARKED) else 0
    again = row.again or (row.state in VISITED and row.due is not None)
    return row._replace(state=UrlState.QUEUED, reason="", attempts=attempts, due=None, again=again)


def later(a: Due, b: Due) -> Due:
    """The deadline that ends later: a host row that is a little old must not shorten its domain's clock."""
    return b if b.set_at + b.wait_s >= a.set_at + a.wait_s else a


def excluded(row: UrlRow, reason: str) -> UrlRow:
    """The row after a budget, a block or a takedown said no."""
    return row._replace(state=UrlState.EXCLUDED, reason=reason, due=None, again=False)


_ONLY_IN_ROBOTS = frozenset({"robots", "robots-denied", "robots-redirects", "robots-peer"})
PROTOCOLS: dict[Kind, frozenset[str]] = {
    Kind.PAGE: frozenset(),
    Kind.SITEMAP: frozenset(),
    Kind.ROBOTS: _ONLY_IN_ROBOTS | {"content-signal", "content-usage"},
    Kind.TDMREP: frozenset({"tdmrep"}),
    Kind.AI_TXT: frozenset({"ai-txt"}),
    Kind.RSL: frozenset({"rsl"}),
}
"""Which refusals an authority file of a kind can pronounce."""
assert set(PROTOCOLS) == set(Kind), "every kind must say which refusals it can pronounce"


def reopens(settled: Settled, kind: Kind, digest: str) -> bool:
    """Whether a refusal falls when its authority's file of this kind has another digest now.

    A refusal that a response pronounced (the same protocol in a header, with no file behind it) does not.
    """
    if settled.protocol not in PROTOCOLS[kind] or settled.authority_digest == digest:
        return False
    return bool(settled.authority_digest) or settled.protocol in _ONLY_IN_ROBOTS
