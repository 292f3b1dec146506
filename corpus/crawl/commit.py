"""Group commit: what contacts settled becomes durable, in one order, in one thread.

Order inside a batch: captures are appended, then synced, then the consent log is appended, then each partition file
commits its acknowledgements. So an acknowledged page is always on disk, and a crash leaves at worst captures that no
one acknowledged. Where only sealed segments are durable (a bucket), clocks, links and whatever needs no archive are
committed at once, and pages are acknowledged when their segment is sealed and recorded. A commit that a store refused
(no room, no answer) is taken up where it stopped by calling `commit` again with the same batch. Links into our own
files are written before the pages that hold them are acknowledged (a URL that is known too early is only known; one
forgotten would be lost); links for other processes wait in the outbox, and travel afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from corpus.crawl.discover import Router
from corpus.crawl.gate import Gate, NearCopy, audited
from corpus.crawl.ports import (
    Ack,
    CaptureSink,
    ConsentSink,
    FrontierStore,
    Inbox,
    Judged,
    OutboxRow,
    Settled,
)
from corpus.crawl.prints import with_numbers
from corpus.crawl.settlement import CaptureJob, Committed, Round, Settlement
from corpus.model import CaptureRef, Kind, Sighting
from corpus.url.host import host_of, registered_domain

OUTBOX_BATCH = 4096
GROUP_PAGES = 500
GROUP_S = 0.5
DEPTHS_MAX = 65_536
"""URLs whose links are dropped before they are judged, because the same was passed on before (about 10 MB)."""
DEEP = 1 << 30
LURES = 32
"""Links of a stale page that are looked up, to see whether it leads on to something new."""
PLAIN_PRIORITY = 0.5
"""What a sighting without a sitemap's claim has."""


class Committer:
    """Runs in the store thread only (`knows` apart); holds every durable thing a fetch process writes."""

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
        ack_sealed: bool = False,
    ) -> None:
        """`on_sealed` records what was sealed; `ack_sealed`: only then is a page in it durable."""
        self._files, self._epochs, self._sinks = files, epochs, sinks
        self._consent, self._inbox, self._gate, self._router = consent, inbox, gate, router
        self._near_copies, self._on_sealed, self._ack_sealed = near_copies, on_sealed, ack_sealed
        self._round: Round | None = None
        self._ending = False
        """A seal was begun: it is gone on with until everything sealed is recorded and acknowledged."""
        self._held: list[tuple[Settlement, Ack]] = []
        self._depths: dict[str, int] = {}
        """The least depth at which a URL was passed on, of those seen lately."""

    def commit(self, batch: Sequence[Settlement], *, seal: bool = False) -> Committed:
        """Make a batch durable and let links travel; `seal` ends the open segments too. Raises StoreError when a store refuses.

        Nothing is then half-true, and after a `TryLater` the same call goes on where this one stopped.
        """
        began = time.monotonic()
        now = self._round = self._round or self._begin(batch)
        assert now.batch is batch, "a batch that was begun is ended before the next one"
        for sink in self._sinks.values():
            sink.sync()
        self._say(now)
        self._acknowledge(now)
        self._reopen(now.done, batch)
        self._receive(now.done)  # first: a former owner of one of our files may have published what lies before our own rows
        self._forward(now.done)
        self._rotate(now.done, force=seal)
        self._count(now.done)
        now.done.held, self._round = len(self._held), None
        now.done.seconds = time.monotonic() - began
        return now.done

    def seal(self) -> list[str]:
        """Seal every open segment (a drain or the end of a run)."""
        done = Committed()
        self._rotate(done, force=True)
        return done.sealed

    def _begin(self, batch: Sequence[Settlement]) -> Round:
        """Hand the batch's captures to the archives (into memory: no disk is asked to write yet)."""
        now, batch = Round(batch), with_numbers(batch)
        for settlement, copy in zip(batch, self._near(batch), strict=True):
            ack = self._learn(settlement, copy, self._store(settlement, copy))
            if self._ack_sealed and ack.settled and ack.settled[0].capture is not None:
                self._held.append((settlement.stored(), Ack(settled=ack.settled)))
                ack = replace(ack, settled=())
            else:
                now.done.durable.append(settlement)
            now.acks.setdefault(settlement.file, []).append(ack)
        links, linked = self._links(batch, now.acks), self._linked()
        now.links = {
            file: Ack(own=tuple(links.get(file, ())), linked=tuple(linked.get(file, ()))) for file in links.keys() | linked.keys()
        }
        return now

    def _say(self, now: Round) -> None:
        """The consent log, once."""
        authorities = [row for s in now.batch for row in s.ack.authorities]
        refusals = [refusal for s in now.batch for refusal in s.refusals]
        if (authorities or refusals) and not now.said:
            self._consent.append(authorities, refusals, {k: v for s in now.batch for k, v in s.bodies.items()})
        now.said = True

    def _acknowledge(self, now: Round) -> None:
        """Links, then what the partition files are told; each file once."""
        for file in sorted(now.links):
            self._awake(now.done, file, self._files[file].commit([now.links[file]]))
            self._linked_to(now.done, now.links.pop(file).own)
        for file in sorted(now.acks):
            self._awake(now.done, file, self._files[file].commit(now.acks[file]))
            del now.acks[file]
        self._remember(now.batch)

    def _rotate(self, done: Committed, *, force: bool) -> None:
        """Seal what is due, and record it. Where pages wait for that, all segments end together, and then their pages are acknowledged."""
        self._ending = self._ending or force or (self._ack_sealed and any(sink.due for sink in self._sinks.values()))
        for sink in self._sinks.values():
            done.sealed += sink.rotate(force=self._ending)
        if done.sealed or self._ending:
            self._on_sealed()
        while self._held and self._ending:
            file = self._held[0][0].file
            mine = [held for held in self._held if held[0].file == file]
            self._awake(done, file, self._files[file].commit([ack for _, ack in mine]))
            done.durable += [settlement for settlement, _ in mine]
            self._held = [held for held in self._held if held[0].file != file]
        self._ending = False

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
            whole = self._near_copies == "store" or (self._near_copies == "link" and self._audits(job, copy))
            first = replace(first, near_original=copy.original.url, whole=first.whole if whole else None)
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
        if copy is not None and self._near_copies == "link" and not self._audits(job, copy):
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
        return sink.append(
            job.url, job.request, job.response, depth=job.depth, via=job.via, metadata=metadata, payload=job.payload
        )

    @staticmethod
    def _audits(job: CaptureJob, copy: NearCopy) -> bool:
        """Whether a copy that is no twin is stored whole, annotated, so that the gate itself can be checked."""
        return not copy.identical and audited(job.url)

    def _learn(self, settlement: Settlement, copy: NearCopy | None, ack: Ack) -> Ack:
        """What a new page tells of its patterns and its domain, added to its acknowledgement."""
        job = settlement.capture
        if job is None or job.said is None:
            return ack
        host = host_of(job.url)
        same = copy is not None and registered_domain(host_of(copy.original.url)) == registered_domain(host)
        original = copy.original.url if copy is not None and same else ""

        def leads_to() -> list[str]:
            news = [s.url for s in settlement.sightings if not self._is_known(s) and host_of(s.url) == host]
            return self._files[settlement.file].unknown(news[:LURES])

        self._router.yields.learn(job.url, original=original, said=job.said, leads_to=leads_to, wall=job.response.ended_at)
        news = self._router.yields.news()
        return replace(ack, closed=news.closed, yields=news.yields)

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

    def _linked(self) -> dict[int, list[tuple[str, int]]]:
        """Which domains link to ours, as far as nobody has stored it, by the files that own the domains linked to."""
        found: dict[int, list[tuple[str, int]]] = {}
        for domain, bits in self._router.yields.new_links().items():
            found.setdefault(self._router.file_of(domain), []).append((domain, bits))
        return {file: pairs for file, pairs in found.items() if file in self._files}

    def knows(self, url: str, depth: int) -> bool:
        """Whether a plain link says nothing new: the same URL, no deeper, is durable at its owner already. From any thread: it
        may lag behind, and a link that is told again is only told again."""
        least = self._depths.get(url)
        return least is not None and least <= depth

    def _is_known(self, sighting: Sighting) -> bool:
        return self.knows(sighting.url, sighting.depth) and _is_plain(sighting)

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
                    self._linked_to(done, judged)
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
                self._linked_to(done, judged)
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

    def _linked_to(self, done: Committed, links: Sequence[Judged]) -> None:
        if self._ack_sealed:
            done.linked.update(judged.host for judged in links if not judged.excluded)

    def _awake(self, done: Committed, file: int, hosts: Sequence[str]) -> None:
        for host in hosts:
            done.awake[host] = file


def _is_plain(sighting: Sighting) -> bool:
    """A link like most: of a page, without redirects or a sitemap's claim."""
    return sighting.kind is Kind.PAGE and not sighting.hops and sighting.priority == PLAIN_PRIORITY
