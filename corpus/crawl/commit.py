"""Group commit: what contacts settled becomes durable, in one order, in one thread.

Order inside a batch: captures are appended, then synced, then the consent log is appended, then each partition file
commits its acknowledgements. So an acknowledged page is always on disk, and a crash leaves at worst captures that no
one acknowledged. Links into our own files are written before the pages that hold them are acknowledged (a URL that is
known too early is only known; one forgotten would be lost); links for other processes wait in the outbox of the
acknowledging transaction, and travel afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corpus.crawl.discover import Router
from corpus.crawl.gate import Fingerprint, Gate, NearCopy
from corpus.crawl.ports import (
    Ack,
    AuthorityRow,
    CaptureSink,
    ConsentSink,
    FrontierStore,
    HostRow,
    Inbox,
    Judged,
    Original,
    OutboxRow,
    Request,
    ResponseRefusal,
    Settled,
)
from corpus.model import CaptureRef, Kind, Response, Sighting
from corpus.url.host import host_of

OUTBOX_BATCH = 4096
GROUP_PAGES = 500
GROUP_S = 0.5
DEPTHS_MAX = 65_536
"""URLs whose links are dropped before they are judged, because the same was passed on before (about 10 MB)."""
DEEP = 1 << 30
PLAIN_PRIORITY = 0.5
"""What a sighting without a sitemap's claim has."""


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

    def of(self, host: HostRow) -> Settlement:
        """The same with a newer row of its host."""
        return replace(self, ack=replace(self.ack, host=host))


@dataclass(slots=True)
class Committed:
    """What a group commit did: hosts (by file) that now have queued URLs, and what remains to travel."""

    awake: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    applied: int = 0
    outbox: int = 0
    sealed: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Committer:
    """Runs in the store thread only; holds every durable thing a fetch process writes."""

    def __init__(
        self,
        files: Mapping[int, FrontierStore],
        epochs: Mapping[int, int],
        sinks: Mapping[str, CaptureSink],
        consent: ConsentSink,
        inbox: Inbox,
        gate: Gate,
        router: Router,
        *,
        near_copies: str,
        on_sealed: Callable[[], None],
    ) -> None:
        self._files, self._epochs, self._sinks = files, epochs, sinks
        self._consent, self._inbox, self._gate, self._router = consent, inbox, gate, router
        self._near_copies, self._on_sealed = near_copies, on_sealed
        self._depths: dict[str, int] = {}
        """The least depth at which a URL was passed on, of those seen lately."""

    def commit(self, batch: Sequence[Settlement]) -> Committed:
        """Make a batch durable and let links travel. Raises StoreError when a disk refuses; nothing is then half-true."""
        began = time.monotonic()
        done = Committed()
        acks: dict[int, list[Ack]] = {}
        copies = self._near(batch)
        for settlement, copy in zip(batch, copies, strict=True):
            acks.setdefault(settlement.file, []).append(self._store(settlement, copy))
        for sink in self._sinks.values():
            sink.sync()
        authorities = [row for s in batch for row in s.ack.authorities]
        refusals = [refusal for s in batch for refusal in s.refusals]
        if authorities or refusals:
            self._consent.append(authorities, refusals, {k: v for s in batch for k, v in s.bodies.items()})
        for file, links in sorted(self._links(batch, acks).items()):
            self._awake(done, file, self._files[file].commit([Ack(own=tuple(links))]))
        for file, rows in sorted(acks.items()):
            self._awake(done, file, self._files[file].commit(rows))
        self._remember(batch)
        self._reopen(done, batch)
        self._forward(done)
        self._receive(done)
        self._count(done)
        for sink in self._sinks.values():
            done.sealed += sink.rotate()
        if done.sealed:
            self._on_sealed()
        done.seconds = time.monotonic() - began
        return done

    def seal(self) -> list[str]:
        """Seal every open segment (a drain or the end of a run)."""
        names = [name for sink in self._sinks.values() for name in sink.rotate(force=True)]
        self._on_sealed()
        return names

    def _near(self, batch: Sequence[Settlement]) -> list[NearCopy | None]:
        asked = [
            (n, s.capture.fingerprint) for n, s in enumerate(batch) if s.capture is not None and s.capture.fingerprint is not None
        ]
        answers = self._gate.ask([fingerprint for _, fingerprint in asked if fingerprint is not None]) if asked else []
        copies: list[NearCopy | None] = [None] * len(batch)
        for (n, _), answer in zip(asked, answers, strict=True):
            copies[n] = answer
        return copies

    def _store(self, settlement: Settlement, copy: NearCopy | None) -> Ack:
        """Append the capture in the form the near-copy setting asks for; the acknowledgement then says where it lies."""
        job, ack = settlement.capture, settlement.ack
        if job is None:
            return ack
        if not ack.settled:  # an authority file: the consent log holds it, the archive's copy is for people
            self._append(self._sinks["policy"], job, {"corpus-content-sha256": job.content_sha256}, None)
            return ack
        first: Settled = ack.settled[0]
        if copy is not None:
            first = replace(first, near_original=copy.original.url)
            if self._near_copies == "skip":
                return replace(ack, settled=(first, *ack.settled[1:]))
        sink = self._sinks["sealed" if job.sealed else "policy" if job.policy else "pages"]
        metadata = {"corpus-content-sha256": job.content_sha256}
        if job.fingerprint is not None and job.fingerprint.simhash is not None:
            metadata["corpus-simhash"] = f"{job.fingerprint.simhash:016x}"
        ref, end = self._append(sink, job, metadata, copy)
        first = replace(first, capture=ref, segment_end=end)
        return replace(ack, settled=(first, *ack.settled[1:]))

    def _append(
        self, sink: CaptureSink, job: CaptureJob, metadata: dict[str, str], copy: NearCopy | None
    ) -> tuple[CaptureRef, int]:
        if job.revisit_of is not None:
            return sink.append_revisit(
                job.url, job.request, job.response, depth=job.depth, via=job.via, metadata=metadata, original=job.revisit_of
            )
        if copy is not None and self._near_copies == "link":
            if copy.identical:
                return sink.append_revisit(
                    job.url, job.request, job.response, depth=job.depth, via=job.via, metadata=metadata, original=copy.original
                )
            return sink.append_linked(
                job.url, job.request, job.response, depth=job.depth, via=job.via, metadata=metadata,
                original=copy.original.url, distance=copy.distance,
            )  # fmt: skip
        if copy is not None:
            metadata |= {"corpus-near-original": copy.original.url, "corpus-near-distance": str(copy.distance)}
        return sink.append(job.url, job.request, job.response, depth=job.depth, via=job.via, metadata=metadata)

    # links
    def _links(self, batch: Sequence[Settlement], acks: dict[int, list[Ack]]) -> dict[int, list[Judged]]:
        """Links by those of our files that own them; links for other processes join the acks of their pages.

        A link that stands on many pages of a batch is judged once for each way it was found.
        """
        news = (sighting for settlement in batch for sighting in settlement.sightings if not self._is_known(sighting))
        found = self._router.by_file(news)
        theirs = {sighting: file for file, sightings in found.items() if file not in self._files for sighting in sightings}
        if theirs:
            place = dict.fromkeys(acks, 0)
            for settlement in batch:
                at = place[settlement.file]
                place[settlement.file] += 1
                foreign = tuple((theirs[sighting], sighting) for sighting in settlement.sightings if sighting in theirs)
                if foreign:
                    acks[settlement.file][at] = replace(acks[settlement.file][at], foreign=foreign)
        return {file: self._router.judge(sightings) for file, sightings in found.items() if file in self._files}

    def _is_known(self, sighting: Sighting) -> bool:
        """Whether a plain link says nothing new: the same URL, no deeper, is durable at its owner already."""
        depth = self._depths.get(sighting.url)
        return depth is not None and depth <= sighting.depth and _is_plain(sighting)

    def _remember(self, batch: Sequence[Settlement]) -> None:
        """What was just made durable need not be judged again while this process lives."""
        if len(self._depths) > DEPTHS_MAX:
            self._depths.clear()
        for settlement in batch:
            for sighting in settlement.sightings:
                if _is_plain(sighting) and sighting.depth < self._depths.get(sighting.url, DEEP):
                    self._depths[sighting.url] = sighting.depth

    def _reopen(self, done: Committed, batch: Sequence[Settlement]) -> None:
        """What a changed authority file refused gets back in line."""
        for settlement in batch:
            for row in settlement.reopen:
                host = host_of(row.authority)
                if self._files[settlement.file].reopen(host, row.authority, row.kind, row.digest):
                    done.awake[host] = settlement.file

    def _forward(self, done: Committed) -> None:
        """Outbox rows to their owners: straight into a file of ours, else published. Forgotten only when durable there."""
        for src, store in self._files.items():
            rows = store.outbox(OUTBOX_BATCH)
            by_dst: dict[int, list[OutboxRow]] = {}
            for row in rows:
                by_dst.setdefault(row.dst, []).append(row)
            for dst, group in sorted(by_dst.items()):
                if dst in self._files:
                    judged = self._router.judge([row.sighting for row in group])
                    self._awake(
                        done, dst, self._files[dst].apply(src, [(row.seq, j) for row, j in zip(group, judged, strict=True)])
                    )
                else:
                    self._inbox.publish(dst, src, self._epochs[src], group)
            if by_dst:
                store.forwarded({dst: group[-1].seq for dst, group in by_dst.items()})

    def _receive(self, done: Committed) -> None:
        for dst, store in self._files.items():
            for name in self._arrived(dst):
                src, rows = self._inbox.read(name)
                judged = self._router.judge([sighting for _, sighting in rows])
                self._awake(done, dst, store.apply(src, [(seq, j) for (seq, _), j in zip(rows, judged, strict=True)]))
                self._inbox.drop(name)

    def _arrived(self, dst: int) -> list[str]:
        """Batches to apply now, oldest first, none left out before the last one.

        A folder that is listed while it grows may show a batch and not an earlier one; the mark would then pass over it.
        What a first listing shows was complete before a second one began, so the second shows all that came before it.
        """
        first = self._inbox.waiting(dst)
        if not first:
            return []
        seen = set(first)
        again = self._inbox.waiting(dst)
        last = max(n for n, name in enumerate(again) if name in seen)
        return again[: last + 1]

    def _count(self, done: Committed) -> None:
        for store in self._files.values():
            tally = store.tally()
            done.sent += tally.sent
            done.applied += tally.applied
            done.outbox += tally.outbox

    def _awake(self, done: Committed, file: int, hosts: Sequence[str]) -> None:
        for host in hosts:
            done.awake[host] = file


def _is_plain(sighting: Sighting) -> bool:
    """A link like most: of a page, without redirects or a sitemap's claim."""
    return sighting.kind is Kind.PAGE and not sighting.hops and sighting.priority == PLAIN_PRIORITY
