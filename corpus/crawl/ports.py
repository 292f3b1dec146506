"""What the crawl needs from the world, as Protocols. `store`, `engine` and `testing` implement them.

One `FrontierStore` is one partition file: every host of a registered domain lives in the same file, so that what a
contact settles (the URL, its host's and its domain's clocks, its links) is one transaction in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from corpus.crawl.nouns import (
    Ack,
    AuthorityRow,
    Change,
    ClosedPattern,
    DomainYield,
    Due,
    History,
    HostRow,
    Judged,
    Original,
    OutboxRow,
    QueuedUrl,
    Request,
    Resolved,
    ResponseRefusal,
    Settled,
    Tally,
    Whole,
)
from corpus.model import CaptureRef, Failed, FetchResult, Kind, Response, Sighting

__all__ = [  # noqa: RUF022  (nouns first, then the ports that speak of them)
    "Ack",
    "AuthorityRow",
    "Change",
    "ClosedPattern",
    "DomainYield",
    "Due",
    "History",
    "HostRow",
    "Judged",
    "Original",
    "OutboxRow",
    "QueuedUrl",
    "Request",
    "Resolved",
    "ResponseRefusal",
    "Settled",
    "Tally",
    "Whole",
    "Clock",
    "Transport",
    "Resolver",
    "FrontierStore",
    "CaptureSink",
    "ConsentSink",
    "Inbox",
]


class Clock(Protocol):
    """Two clocks: `wall` for what is stored, `monotonic` for every gap inside a process."""

    def wall(self) -> float: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class Transport(Protocol):
    """One GET without redirects, cookies or retries, inside every limit of the settings. Never raises for the web."""

    async def fetch(self, request: Request) -> FetchResult: ...
    async def close(self) -> None: ...


class Resolver(Protocol):
    async def resolve(self, host: str) -> Resolved | Failed: ...
    async def close(self) -> None: ...


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

    def retired(self) -> list[HostRow]:
        """Hosts that were retired."""
        ...

    def parked(self) -> list[tuple[str, str]]:
        """(host, reason) of every host with parked URLs, whether or not the host itself is parked."""
        ...

    def heads(self, host: str, limit: int, *, again: bool | None = None) -> list[QueuedUrl]:
        """The next URLs of a host by (priority, depth, url_id) that are due; read-only: taking moves nothing.

        A queued URL with a time of its own (`Settled.due`) is due once a `wake` saw that its wait is over. `again`: only
        revisits, or only what is no revisit.
        """
        ...

    def grade(self, qualities: Mapping[str, float]) -> None:
        """What processing found of hosts (`crawl.priority.host_quality`); hosts that are not known here are passed over."""
        ...

    def rates(self) -> dict[int, int]:
        """Pages by the bin of their estimated rate of change (`crawl.recrawl.rate_bin`); those never compared are left out."""
        ...

    def versions(self, url: str) -> list[tuple[float, float, str, str]]:
        """The version chain of a canonical URL, oldest first: (first seen, last confirmed, change against the one before,
        content digest). Empty for a page visited once; then its visit is its only version."""
        ...

    def authorities(self, host: str) -> list[AuthorityRow]: ...

    def yields(self, host: str) -> tuple[list[ClosedPattern], DomainYield]:
        """The closed patterns of a host, and what its registered domain has brought."""
        ...

    def unknown(self, urls: Sequence[str]) -> list[str]:
        """Those of these canonical URLs that were never seen."""
        ...

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

    def exclude_queued(self, host: str, reason: str, *, revisits: bool = False) -> int:
        """Exclude what is still queued of a host: a budget that was reached, which says nothing about `revisits` of what is stored
        already; or those too (a host that does not answer any more)."""
        ...

    def lookup(self, url: str) -> dict[str, object] | None:
        """The stored row of a canonical URL, for `why`."""
        ...

    def acked_end(self, segment_file: str) -> int:
        """Largest acknowledged `segment_end` in a segment; 0 when nothing of it was acknowledged."""
        ...

    def tally(self) -> Tally: ...
    def close(self, *, clean: bool) -> None: ...


class CaptureSink(Protocol):
    """Where captures go. Append is cheap; nothing counts until `sync` returned."""

    def append(
        self,
        url: str,
        request: Request,
        response: Response,
        *,
        depth: int,
        via: str,
        metadata: dict[str, str],
        payload: bytes = b"",
    ) -> tuple[CaptureRef, int]:
        """Write request, response and metadata records; returns the response's place and the end offset. `payload`: the SHA-1 of
        the response's body, where it is known already."""
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

    @property
    def due(self) -> bool:
        """Whether the open segment is big or old enough to be sealed, or a seal has begun."""
        ...

    def sync(self) -> None: ...
    def rotate(self, *, force: bool = False) -> list[str]:
        """Seal the open segment when it is big or old enough (or `force`); returns sealed names."""
        ...


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
