"""The numbers that the near-copy gate and the yields know a page by, worked out for a whole group commit in a row. Pure.

Page after page each of these few array routines would be fetched into the processor's caches anew, between parsing and
sockets; one page after the other of a batch they cost half as much. A page that was visited before is compared with that
visit at once, and comes with its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from corpus.crawl.settlement import Settlement
from corpus.page.novelty import Said, sample_runs
from corpus.page.simhash import fingerprint
from corpus.page.words import word_hashes


def numbers(url: str, text: str) -> tuple[int | None, Said]:
    """The SimHash of a page's visible text (None under 50 words), and a sample of what it says."""
    words = word_hashes(text)
    return fingerprint(words), sample_runs(words, len(text), listed="&" in url)


def with_numbers(batch: Sequence[Settlement]) -> list[Settlement]:
    """The batch, with the numbers of every page whose text came without them in its capture and its row."""
    return [settlement if settlement.unread is None else _read(settlement, settlement.unread) for settlement in batch]


def _read(settlement: Settlement, text: str) -> Settlement:
    job, ack = settlement.capture, settlement.ack
    assert job is not None, "only a page that is stored is read"
    assert job.fingerprint is not None, "and it has a fingerprint, its SimHash apart"
    simhash, said = numbers(job.url, text)
    row = replace(ack.settled[0], simhash=simhash)
    return replace(
        settlement,
        ack=replace(ack, settled=(row, *ack.settled[1:])),
        capture=replace(job, fingerprint=replace(job.fingerprint, simhash=simhash), said=said),
        unread=None,
    )
