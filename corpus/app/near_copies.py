"""What the near-copy gate saved, and how often it errs, for `status` and run reports. Read-only, beside a running crawl.

A copy that is linked is not stored, so nobody can compare it any more. One copy in `gate.AUDITED` is stored whole all the
same (all of them under `near_copies = "store"`), drawn by a hash of its URL: those are compared here with their originals by
what the gate only estimates, their common runs of three words. Where none can be compared the share of false links is None,
with the reason; never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from corpus.app.frontier_files import read_all
from corpus.app.project import Project
from corpus.crawl.gate import AUDITED
from corpus.errors import CorpusError
from corpus.page.simhash import MIN_WORDS, run_features
from corpus.page.tree import parse
from corpus.page.words import word_hashes
from corpus.store.warc_read import read_at

CHECKED, CHECKED_IN_REPORT = 50, 300
"""Pairs that are read for one status, for one report: some tens of milliseconds each."""
FALSE_BELOW = 0.7
"""A link whose pages share less than this (Jaccard, runs of three words) is a false one."""
FALSE_LINK = (
    f"A link is false when the two pages share less than {FALSE_BELOW:g} of their runs of three words (Jaccard). Measured on copies "
    f"that were stored whole, drawn by a hash of their address: one in {AUDITED}, or all of them where copies are stored. Pages of the "
    "same bytes are no part of it: no such link can be false."
)
AT_ONCE_S = 300.0
"""An original that was asked for so long after its copy was visited again since."""
_Z = 1.96
"""95 % of a normal distribution lies within so many standard deviations."""

_COUNTS = """
SELECT count(*), sum(near_original IS NOT NULL), sum(CASE WHEN near_original IS NULL THEN length END), sum(near_original IS NULL AND length IS NOT NULL),
    sum(near_original IS NOT NULL AND whole_at IS NULL), sum(CASE WHEN near_original IS NOT NULL AND whole_at IS NULL THEN length END)
FROM visit WHERE content_sha256 IS NOT NULL AND file > 0
"""
_WHOLE = """
SELECT v.uid, w.text, v.offset, v.near_original, lower(hex(v.content_sha256)), v.fetched_at FROM visit v JOIN word w ON w.id = v.file
WHERE v.near_original IS NOT NULL AND v.whole_at IS NOT NULL AND v.offset IS NOT NULL ORDER BY v.uid LIMIT ?
"""
_PLACE = "SELECT warc_file, warc_offset, content_sha256, fetched_at FROM urls WHERE url = ? AND warc_file IS NOT NULL"


@dataclass(frozen=True, slots=True)
class GateReport:
    """`copies` of `pages` were recognised, `linked` of them not stored; `saved_bytes`: what these would have added to the
    archive, at the average of the pages kept. Of `checked` copies compared with their originals `false` were none."""

    pages: int = 0
    copies: int = 0
    linked: int = 0
    saved_bytes: int = 0
    checked: int = 0
    false: int = 0
    setting: str = "link"

    @property
    def false_share(self) -> float | None:
        """None where no copy could be compared: `unknown` says why."""
        return self.false / self.checked if self.checked else None

    @property
    def false_at_most(self) -> float | None:
        """The upper end of the share's 95 % interval (Wilson): few comparisons prove little."""
        if not self.checked:
            return None
        n, share = self.checked, self.false / self.checked
        spread = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        return (share + _Z**2 / (2 * n) + spread) / (1 + _Z**2 / n)

    @property
    def unknown(self) -> str:
        """Why the share of false links is not known; empty where it is."""
        if self.checked:
            return ""
        if not self.copies:
            return "no copy was found"
        if self.setting == "skip":
            return 'crawl.near_copies = "skip" keeps nothing of a copy, so none can be compared'
        return f"no copy that was kept whole for comparison (one in {AUDITED}) can be read here yet"

    def document(self) -> dict[str, int | float | str | None]:
        """For JSON."""
        return {
            "pages": self.pages, "copies": self.copies, "linked": self.linked, "saved_bytes": self.saved_bytes, "setting": self.setting,
            "compared": self.checked, "false": self.false if self.checked else None, "false_below": FALSE_BELOW,
            "false_share": self.false_share, "false_share_at_most": self.false_at_most, "unknown": self.unknown,
        }  # fmt: skip


def gate_report(project: Project, *, checked: int = CHECKED) -> GateReport:
    """Saving and false links of the near-copy gate; at most `checked` pairs are read and compared."""
    pages = copies = kept_bytes = kept = linked = linked_bytes = 0
    for row in read_all(project.layout, _COUNTS):
        numbers = [int(value or 0) for value in row]
        pages, copies, kept_bytes = pages + numbers[0], copies + numbers[1], kept_bytes + numbers[2]
        kept, linked, linked_bytes = kept + numbers[3], linked + numbers[4], linked_bytes + numbers[5]
    likeness = list(_likeness(project, checked)) if copies and checked else []
    saved = max(linked * kept_bytes // kept - linked_bytes, 0) if kept else 0
    false = sum(jaccard < FALSE_BELOW for jaccard in likeness)
    return GateReport(pages, copies, linked, saved, len(likeness), false, project.config.crawl.near_copies)


def gate_sentence(gate: GateReport) -> str:
    """The gate's saving and its errors, in words."""
    words = f"{gate.copies} of {gate.pages} pages, about {gate.saved_bytes / 2**20:.1f} MB not stored"
    if gate.false_at_most is None:
        return f"{words}; how many links are false is not known: {gate.unknown}"
    return (
        f"{words}; of {gate.checked} that were kept and compared {gate.false} false (under {FALSE_BELOW:g} of their runs of three "
        f"words in common), so at most {gate.false_at_most:.0%} of all near copies by 95 %"
    )


def _likeness(project: Project, most: int) -> Iterator[float]:
    """Jaccard similarity of copies that were stored whole with their originals, in the order of a hash over all files.

    Left out: the very bytes of the original (no link of those can be false), an original that was visited since (it may say
    something else by now), and what cannot be read.
    """
    left = most
    for _, file, offset, original, digest, at in sorted(read_all(project.layout, _WHOLE, (4 * most,))):
        if left <= 0:
            return
        place = next(read_all(project.layout, _PLACE, (original,)), None)
        if place is None or place[2] == digest or (place[3] or 0.0) > (at or 0.0) + AT_ONCE_S:
            continue
        sets = [_runs(project, *where) for where in ((file, offset), place[:2])]
        if all(sets):
            left -= 1
            yield len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def _runs(project: Project, file: str, offset: int) -> set[int]:
    """The runs of three words of a stored page; empty when it cannot be read (an open segment, a page moved away)."""
    path = project.layout.root / file
    if not path.exists():
        return set()
    try:
        capture = read_at(path, offset, file)
    except CorpusError:
        return set()
    kind = capture.header("content-type")
    words = word_hashes(parse(capture.body, kind, capture.url).visible_text)
    return set(run_features(words).tolist()) if len(words) >= MIN_WORDS else set()
