"""What a visit hands in to become durable, and what a group commit says of it. Frozen values, and one batch on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from corpus.crawl.gate import Fingerprint
from corpus.crawl.ports import Ack, AuthorityRow, HostRow, Original, Request, ResponseRefusal
from corpus.model import Response, Sighting, UrlState
from corpus.page.novelty import Said


@dataclass(frozen=True, slots=True)
class CaptureJob:
    """One response on its way into an archive. `fingerprint` asks the near-copy gate; policy captures have none."""

    url: str
    request: Request
    response: Response
    depth: int
    via: str
    content_sha256: str
    fingerprint: Fingerprint | None = None
    policy: bool = False
    sealed: bool = False
    revisit_of: Original | None = None
    """The capture that a 304 confirms."""
    said: Said | None = None
    """What a page that is new to the crawl says: it is judged by what its patterns yield."""
    payload: bytes = b""
    """The SHA-1 of the response's body, where it is known already."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """All that one visit settled, not yet durable. `ack.settled[0]` belongs to the capture when there is one."""

    file: int
    ack: Ack
    capture: CaptureJob | None = None
    sightings: tuple[Sighting, ...] = ()
    """Links, not yet judged: they find their owners here."""
    refusals: tuple[ResponseRefusal, ...] = ()
    bodies: Mapping[str, bytes] = field(default_factory=dict)
    reopen: tuple[AuthorityRow, ...] = ()
    """Authority files that say something else than before: what they refused is asked about again."""
    unread: str | None = None
    """The visible text of a new page on its way into the archive, whose numbers the group commit works out (`crawl.prints`)."""

    @property
    def size(self) -> int:
        """Roughly the bytes that it holds: body as sent and as decoded, text, links of some 300 bytes."""
        body = 0 if self.capture is None else len(self.capture.response.body) + len(self.capture.response.decoded)
        return body + len(self.unread or "") + 300 * len(self.sightings)

    def stored(self) -> Settlement:
        """The same without what the archives and the frontier have by now: bodies and links need much room."""
        return replace(self, capture=None, sightings=(), unread=None)

    def of(self, host: HostRow) -> Settlement:
        """The same with a newer row of its host."""
        return self if self.ack.host is host else replace(self, ack=replace(self.ack, host=host))


def given_up(settlement: Settlement, reason: str) -> Settlement:
    """The same, but what was to be asked again is excluded: its host is given up."""
    rows = tuple(
        replace(row, state=UrlState.EXCLUDED, reason=reason, due=None) if row.state in (UrlState.QUEUED, UrlState.PARKED) else row
        for row in settlement.ack.settled
    )
    return replace(settlement, ack=replace(settlement.ack, settled=rows))


@dataclass(slots=True)
class Committed:
    """What a group commit did: hosts (by file) that now have queued URLs, and what remains to travel."""

    awake: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    applied: int = 0
    outbox: int = 0
    sealed: list[str] = field(default_factory=list)
    durable: list[Settlement] = field(default_factory=list)
    """Settlements that nothing can take back any more, of this batch or of earlier ones."""
    held: int = 0
    """Settlements whose page waits for its segment to be sealed."""
    linked: set[str] = field(default_factory=set)
    """Hosts that were linked to, where pages are held: a host all of whose URLs are held has something to ask for again."""
    seconds: float = 0.0


@dataclass(slots=True)
class Round:
    """One batch on its way: what of it is done, so that a refusal in the middle loses and repeats nothing."""

    batch: Sequence[Settlement]
    acks: dict[int, list[Ack]] = field(default_factory=dict)
    links: dict[int, Ack] = field(default_factory=dict)
    done: Committed = field(default_factory=Committed)
    said: bool = False
