"""What the crawl needs from the world, as Protocols. `store`, `engine` and `testing` implement them.

One `FrontierStore` is one partition file: every host of a registered domain lives in the same file, so that what a
contact settles (the URL, its host's and its domain's clocks, its links) is one transaction in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from corpus.model import CaptureRef, Failed, FetchResult, Kind, Response, Sighting, UrlState

PARTITIONS = 256
"""Logical partitions, for ever: hash of the registered domain."""
PARTITION_FILES = 16
"""Files they share on one machine. A file is what a fetch process owns."""


class Clock(Protocol):
    """Two clocks: `wall` for what is stored, `monotonic` for every gap inside a process."""

    def wall(self) -> float: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


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


class Transport(Protocol):
    """One GET without redirects, cookies or retries, inside every limit of the settings. Never raises for the web."""

    async def fetch(self, request: Request) -> FetchResult: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Resolved:
    """Vetted addresses of a host (never a refused one), in the order to try them."""

    addresses: tuple[str, ...]


class Resolver(Protocol):
    async def resolve(self, host: str) -> Resolved | Failed: ...
    async def close(self) -> None: ...


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


@dataclass(frozen=True, slots=True)
class Judged:
    """A sighting after the pure URL filters: `excluded` is a reason code, or empty for "may be queued"."""

    sighting: Sighting
    host: str
    domain: str
    excluded: str = ""


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


class FrontierStore(Protocol):
    """One partition file. Single owner; every write carries the owner's epoch and fails once it is superseded.

    Errors: `FenceLost` when a newer epoch claimed the file, `NewerSchema` when a newer version wrote it,
    `StoreError` for a disk that will not take the write (nothing of the batch is then visible).
    """

    def claim(self, owner: str) -> int:
        """Become the owner: returns a new epoch, larger than every earlier one."""
        ...

    def was_clean(self) -> bool:
        """Whether the previous owner closed in order (then stored clocks are exact)."""
        ...

    def commit(self, acks: Sequence[Ack]) -> list[str]:
        """Apply a batch in one transaction; returns hosts that now have queued URLs and had none before."""
        ...

    def apply(self, src: int, rows: Sequence[tuple[int, Judged]]) -> list[str]:
        """Apply another file's outbox rows (seq, judged); rows at or below the stored mark of `src` are skipped."""
        ...

    def mark(self, src: int) -> int:
        """Highest seq applied from `src`."""
        ...

    def outbox(self, limit: int) -> list[OutboxRow]: ...

    def forwarded(self, upto: dict[int, int]) -> None:
        """Forget outbox rows: {destination file: highest seq that is durable there or in its inbox}."""
        ...

    def hosts(self, *, pending: bool = True) -> list[HostRow]:
        """Hosts with queued URLs (or all), with their clocks."""
        ...

    def host(self, host: str) -> HostRow | None: ...

    def heads(self, host: str, limit: int) -> list[QueuedUrl]:
        """The next URLs of a host by (priority, depth, url_id) that are due; read-only: taking moves nothing.

        A queued URL with a time of its own (`Settled.due`) is due once a `wake` saw that its wait is over.
        """
        ...

    def authorities(self, host: str) -> list[AuthorityRow]: ...

    def reopen(self, host: str, authority: str, kind: Kind, digest: str) -> int:
        """Return URLs refused under another digest of this authority file to `queued`; returns how many."""
        ...

    def wake(self, wall: float, *, revisit: bool = False) -> list[str]:
        """Return parked and waiting URLs whose wait is over to the line; returns their hosts.

        `revisit`: also visited URLs whose `due` (their next visit) has come.
        """
        ...

    def next_wake(self) -> float | None:
        """Wall time at which `wake` next has a parked or waiting URL; None when none waits for a time."""
        ...

    def readmit(self, host: str, reason: str) -> int:
        """Return URLs excluded for this reason to `queued` (a budget was raised, a block lifted); returns how many.

        URLs that were only counted come back when they are seen again.
        """
        ...

    def exclude_queued(self, host: str, reason: str) -> int:
        """Exclude all that is still queued of a host (budget reached, blocked, retired)."""
        ...

    def lookup(self, url: str) -> dict[str, object] | None:
        """The stored row of a canonical URL, for `why`."""
        ...

    def acked_end(self, segment_file: str) -> int:
        """Largest acknowledged `segment_end` in a segment; 0 when nothing of it was acknowledged."""
        ...

    def tally(self) -> Tally: ...
    def close(self, *, clean: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Original:
    """The capture that a revisit or linked copy refers to: canonical URL, and address and date as archived."""

    url: str
    found: str = ""
    fetched_at: float | None = None


class CaptureSink(Protocol):
    """Where captures go. Append is cheap; nothing counts until `sync` returned."""

    def append(
        self, url: str, request: Request, response: Response, *, depth: int, via: str, metadata: dict[str, str]
    ) -> tuple[CaptureRef, int]:
        """Write request, response and metadata records; returns the response's place and the end offset."""
        ...

    def append_linked(
        self,
        url: str,
        request: Request,
        response: Response,
        *,
        depth: int,
        via: str,
        metadata: dict[str, str],
        original: str,
        distance: int,
    ) -> tuple[CaptureRef, int]:
        """Write request and metadata only: the metadata names the original of a near copy."""
        ...

    def append_revisit(
        self,
        url: str,
        request: Request,
        response: Response,
        *,
        depth: int,
        via: str,
        metadata: dict[str, str],
        original: Original,
    ) -> tuple[CaptureRef, int]:
        """Write request, revisit and metadata: a 304, or a payload identical to the original's."""
        ...

    def sync(self) -> None: ...
    def rotate(self, *, force: bool = False) -> list[str]:
        """Seal the open segment when it is big or old enough (or `force`); returns sealed names."""
        ...


class Admission(Protocol):
    """What decides about a URL without asking anyone: scope, traps, block log. Pure; implemented in `crawl`."""

    def judge(self, sightings: Iterable[Sighting]) -> list[Judged]: ...


@dataclass(frozen=True, slots=True)
class ResponseRefusal:
    """The tombstone of a body that was dropped because its own response said no."""

    url: str
    at: float
    protocol: str
    raw: str
    source: str
    line_no: int | None
    http_status: int


class ConsentSink(Protocol):
    """The evidence ledger, as the crawl sees it. What was appended is durable when the call returns."""

    def append(self, authorities: Sequence[AuthorityRow], refusals: Sequence[ResponseRefusal], bodies: dict[str, bytes]) -> None:
        """`bodies`: digest (SHA-256 hex) → bytes of every authority file named in the rows."""
        ...

    def body(self, digest: str) -> bytes: ...


class Inbox(Protocol):
    """Batches of sightings between partition files. A published batch is durable; publishing twice is harmless."""

    def publish(self, dst: int, src: int, epoch: int, rows: Sequence[OutboxRow]) -> None: ...
    def waiting(self, dst: int) -> list[str]:
        """Names of batches for a file, oldest first."""
        ...

    def read(self, name: str) -> tuple[int, list[tuple[int, Sighting]]]:
        """(source file, [(seq, sighting)]) of a batch."""
        ...

    def drop(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Granted:
    """The address is ours until the claim's time to live is over; contact it only when `due` has passed.

    `clean` is False when the last holder vanished without a release: what it last sent is then unknown.
    """

    due: Due
    clean: bool = True


@dataclass(frozen=True, slots=True)
class Held:
    """Another process holds the address; it lapses at `until` (epoch seconds) unless it is renewed or released."""

    until: float


class IpClaims(Protocol):
    """Who may contact an address, over all processes of one machine. The next contact's time survives every process.

    A holder sends only while less than half of `ttl_s` has passed since it claimed or renewed.
    """

    def claim(self, ip: str, owner: str, ttl_s: float, wall: float) -> Granted | Held:
        """Claim an address, or renew a claim of the same owner."""
        ...

    def release(self, ip: str, owner: str, due: Due) -> None:
        """Give an address back; the next holder waits for `due`. Ignored when the claim has passed to another owner."""
        ...

    def close(self) -> None: ...
