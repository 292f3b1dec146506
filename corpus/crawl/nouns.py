"""The crawl's nouns: what flows between its loop, its frontier and its archives. Frozen values, no behaviour.

They stand apart from `ports.py`, which says who must understand them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from corpus.model import CaptureRef, Kind, Sighting, UrlState


@dataclass(frozen=True, slots=True)
class Due:
    """A deadline that survives clock jumps: the store's time when it was set, and a duration from then."""

    set_at: float
    wait_s: float

    def remaining(self, wall: float) -> float:
        """Seconds still to wait; a wall clock that ran backwards costs the whole wait, never less."""
        return self.wait_s - min(max(wall - self.set_at, 0.0), self.wait_s)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, already judged: connect to `ip`, nothing else."""

    url: str
    host: str
    ip: str
    kind: Kind = Kind.PAGE
    headers: tuple[tuple[str, str], ...] = ()
    """Conditional headers on a recrawl."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Vetted addresses of a host (never a refused one), in the order to try them."""

    addresses: tuple[str, ...]


class Change(StrEnum):
    """What a visit found of a page that was known before (`crawl.versions`)."""

    UNCHANGED = "unchanged"
    MINOR = "minor"
    MAJOR = "major"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class History:
    """How often a page was compared with itself, older comparisons weighing less (`crawl.recrawl`).

    `seen` comparisons, of which `changed` found a change, over `watched_s` seconds; `checked_at`: the last visit that brought
    or confirmed a version (epoch seconds), None before the first.
    """

    seen: float = 0.0
    changed: float = 0.0
    watched_s: float = 0.0
    checked_at: float | None = None


NO_HISTORY = History()


@dataclass(frozen=True, slots=True)
class Whole:
    """The capture that holds a page's present body: when it was made (epoch seconds), and the first 64 bits of the SHA-1
    over the body as sent, signed: what a revisit record may refer to."""

    at: float
    payload: int


@dataclass(frozen=True, slots=True)
class HostRow:
    """All that is remembered of a host. `pace_s` is the current gap; `state` is CONTRACT's host state."""

    host: str
    domain: str
    state: str = "new"
    reason: str = ""
    pace_s: float = 0.0
    latency_s: float = 0.0
    latency_median_s: float = 0.0
    due: Due = Due(0.0, 0.0)
    """Next contact of this host."""
    domain_due: Due = Due(0.0, 0.0)
    """Next contact of its registered domain (one value per domain; the store keeps it once)."""
    crawl_delay_s: float | None = None
    strikes: int = 0
    """Consecutive answers that asked us to back off."""
    ips: tuple[str, ...] = ()
    pages: int = 0
    """Page contacts settled in this crawl, for budgets."""
    queued: int = 0
    domain_pages: int = 0
    """Page contacts of its whole registered domain (the store adds them up; ignored in an ack)."""
    front: int = 128
    """Front queue of its best waiting URL, 0 first (`crawl.priority`; the store knows it; ignored in an ack)."""
    new_waits: bool = True
    due_waits: bool = False
    """Whether URLs wait that are new, or due for another visit (the store knows it; ignored in an ack)."""
    quality: float | None = None
    """How useful its pages were once measured, 0 to 1 (`FrontierStore.grade`); None: not known (ignored in an ack)."""
    linking: int = 0
    """Registered domains known to link to its own, as far as they are told apart (ignored in an ack)."""
    cache_hits: int = 0
    cache_misses: int = 0
    """Contacts that a cache in front of the origin answered, or passed on, as far as its headers say."""
    failures: int = 0
    """Consecutive contacts (or look-ups of its name) that brought no answer (`crawl.breaker`)."""
    failing_since: float | None = None
    """When the first of them was (epoch seconds)."""


@dataclass(frozen=True, slots=True)
class AuthorityRow:
    """The latest state of one authority file. `outcome` is `ok`, `absent`, `denied` or `unreachable`."""

    authority: str
    """`scheme://host:port`, port always given."""
    kind: Kind
    outcome: str
    status: int | None
    digest: str
    """SHA-256 (hex) of the body read; empty when there was none."""
    read_at: float
    expires_at: float
    detail: str = ""
    url: str = ""
    truncated: bool = False
    unreachable_since: float | None = None
    """When it could first not be read, of tries in a row that failed; None when the last one did not."""


@dataclass(frozen=True, slots=True)
class QueuedUrl:
    """A URL at the head of its host's back queue."""

    url: str
    found: str
    host: str
    domain: str
    kind: Kind
    depth: int
    hops: int
    via: str
    attempts: int
    priority: float
    etag: str = ""
    last_modified: str = ""
    content_sha256: str = ""
    simhash: int | None = None
    history: History = NO_HISTORY
    again: bool = False
    """Due for another visit."""
    whole: Whole | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What a contact (or a decision without one) settled about one URL: the row's new state, whole."""

    url: str
    state: UrlState
    reason: str = ""
    """A code of `corpus.reasons`; empty for the states that need none."""
    attempts: int = 0
    due: Due | None = None
    """When a queued or parked URL may be asked again."""
    http_status: int | None = None
    content_type: str = ""
    fetched_at: float | None = None
    capture: CaptureRef | None = None
    segment_end: int = 0
    """End offset of the capture's last member: what a crash may cut back to."""
    content_sha256: str = ""
    simhash: int | None = None
    near_original: str = ""
    etag: str = ""
    last_modified: str = ""
    target: str = ""
    """Where a redirect pointed (canonical)."""
    rule: str = ""
    """The raw line (or header) that refused, for `why`."""
    rule_line: int | None = None
    authority_digest: str = ""
    """Digest of the authority file that refused: when it changes, the URL returns to `queued`."""
    protocol: str = ""
    history: History | None = None
    """None leaves what is stored as it is."""
    change: Change | None = None
    """Against the version before; None: nothing to compare."""
    front: int | None = None
    """Front queue in which it will stand when it is due again; None: as it stood."""
    cache: str = ""
    """What a cache in front of the origin did, by its headers (`crawl.cached`), and `age_s`, the seconds it had the answer."""
    age_s: int | None = None
    whole: Whole | None = None
    """Where the body lies that this visit brought or confirmed."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A sighting after the pure URL filters: `excluded` is a reason code, or empty for "may be queued"."""

    sighting: Sighting
    host: str
    domain: str
    excluded: str = ""


@dataclass(frozen=True, slots=True)
class ClosedPattern:
    """A pattern of URLs (`crawl.templates`) of one host that only repeats itself, and when that was found (epoch seconds)."""

    host: str
    pattern: str
    at: float


@dataclass(frozen=True, slots=True)
class DomainYield:
    """What a registered domain has brought: pages judged, pages that let its budget grow, one bit for each of the last 64
    (set: a copy, newest lowest), one bit for each hashed domain that links to it."""

    domain: str
    judged: int = 0
    novel: int = 0
    recent: int = 0
    linkers: int = 0


@dataclass(frozen=True, slots=True)
class Ack:
    """One transaction's worth of news about one host. Everything in it becomes true together, or nothing does."""

    host: HostRow | None = None
    settled: tuple[Settled, ...] = ()
    authorities: tuple[AuthorityRow, ...] = ()
    own: tuple[Judged, ...] = ()
    """Links into this partition file, already judged."""
    foreign: tuple[tuple[int, Sighting], ...] = ()
    """Links for other files: (destination file, sighting); they go to the outbox."""
    closed: tuple[ClosedPattern, ...] = ()
    yields: tuple[DomainYield, ...] = ()
    """Sums of domains, whole; but `linkers` only ever gains bits."""
    linked: tuple[tuple[str, int], ...] = ()
    """(registered domain, bits of domains that link to it)"""


@dataclass(frozen=True, slots=True)
class OutboxRow:
    seq: int
    dst: int
    sighting: Sighting


@dataclass(frozen=True, slots=True)
class Tally:
    """What one partition file holds: rows by (state, reason), counted exclusions included."""

    by_state: dict[tuple[str, str], int] = field(default_factory=dict)
    sent: int = 0
    """Sightings ever put into the outbox."""
    applied: int = 0
    """Sightings ever applied from other files."""
    outbox: int = 0
    not_pages: dict[tuple[str, str], int] = field(default_factory=dict)
    """The part of `by_state` that are no pages (sitemaps): known URLs, but not of the funnel."""


@dataclass(frozen=True, slots=True)
class Original:
    """The capture that a revisit or linked copy refers to: canonical URL, and address and date as archived."""

    url: str
    found: str = ""
    fetched_at: float | None = None


@dataclass(frozen=True, slots=True)
class ResponseRefusal:
    """The tombstone of a body that was dropped because its own response said no. `verdict` is another than `no` for what
    a 304 adds to the signals of a page that is kept."""

    url: str
    at: float
    protocol: str
    raw: str
    source: str
    line_no: int | None
    http_status: int
    verdict: str = "no"
    file_digest: str = ""
    """Of the licence document that the response advertised, where that is what refuses."""
