"""Lines of `corpus status` and of run reports about the crawl's own judgement: hosts given up, traps, seen URLs, near copies.

Read-only, beside a running crawl. How often the near-copy gate errs is measured: one copy in `gate.AUDITED` is stored whole
all the same, and compared here with its original by what the gate only estimates, their common runs of three words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from corpus.app.frontier_files import read_all, read_columns
from corpus.app.project import Project
from corpus.crawl.memory import sentence
from corpus.errors import CorpusError
from corpus.page.simhash import MIN_WORDS, run_features
from corpus.page.tree import parse
from corpus.page.words import word_hashes
from corpus.store.warc_read import read_at

NAMED = 20
CHECKED = 50
"""Audited pairs that are read for one status: some tens of milliseconds each."""
FALSE_BELOW = 0.7
"""A link whose pages share less than this (Jaccard, runs of three words) is a false one."""

_SAVED = """
SELECT count(*), sum(near_original IS NOT NULL), sum(CASE WHEN near_original IS NULL THEN length END), sum(near_original IS NULL AND length IS NOT NULL),
    sum(CASE WHEN near_original IS NOT NULL THEN length END)
FROM visit WHERE content_sha256 IS NOT NULL AND file > 0
"""
_AUDITED = """
SELECT w.text, v.offset, v.near_original FROM visit v JOIN word w ON w.id = v.file
WHERE v.near_original IS NOT NULL AND v.whole_at IS NOT NULL AND v.offset IS NOT NULL LIMIT ?
"""
_PLACE = "SELECT warc_file, warc_offset FROM urls WHERE url = ? AND warc_file IS NOT NULL"


@dataclass(frozen=True, slots=True)
class GateReport:
    """`copies` of `pages` were recognised; `saved_bytes`: what they would have added to the archive, at the average of the
    pages kept. Of `checked` audited links `false` were none."""

    pages: int
    copies: int
    saved_bytes: int
    checked: int
    false: int


def gate_report(project: Project, *, checked: int = CHECKED) -> GateReport:
    """Saving and false links of the near-copy gate."""
    pages = copies = kept_bytes = kept = copy_bytes = 0
    for row in read_all(project.layout, _SAVED):
        numbers = [int(value or 0) for value in row]
        pages, copies, kept_bytes = pages + numbers[0], copies + numbers[1], kept_bytes + numbers[2]
        kept, copy_bytes = kept + numbers[3], copy_bytes + numbers[4]
    likeness = list(_likeness(project, checked)) if copies and checked else []
    saved = max(copies * kept_bytes // kept - copy_bytes, 0) if kept else 0
    return GateReport(pages, copies, saved, len(likeness), sum(jaccard < FALSE_BELOW for jaccard in likeness))


def _likeness(project: Project, most: int) -> Iterator[float]:
    """Jaccard similarity of audited copies with their originals."""
    left = most
    for file, offset, original in read_all(project.layout, _AUDITED, (most,)):
        if left <= 0:
            return
        place = next(read_all(project.layout, _PLACE, (original,)), None)
        if place is None:
            continue
        sets = [_runs(project, *at) for at in ((file, offset), place)]
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


def facts(project: Project) -> Iterable[tuple[str, str]]:
    """For `status.FACTS`."""
    yield "memory budget", sentence()
    yield from _retired(project)
    closed = [row[0] for row in read_columns(project.layout, "closed_pattern", ("pattern",))]
    if closed:
        yield "traps", f"{len(closed)} patterns closed, such as {', '.join(sorted(closed)[:3])}"
    yield from _seen(project)
    gate = gate_report(project)
    if gate.copies:
        yield "near copies", gate_sentence(gate)


def gate_sentence(gate: GateReport) -> str:
    """The gate's saving and its errors, in words."""
    words = f"{gate.copies} of {gate.pages} pages, about {gate.saved_bytes / 2**20:.1f} MB not stored"
    if not gate.checked:
        return words + "; no link was audited yet"
    return words + f"; of {gate.checked} audited links {gate.false} false (under {FALSE_BELOW:g} of their runs in common)"


def _retired(project: Project) -> Iterator[tuple[str, str]]:
    rows = list(read_all(project.layout, "SELECT host, next_contact FROM hosts WHERE state = 'retired' ORDER BY host"))
    for host, at in rows[:NAMED]:
        day = datetime.fromtimestamp(at, UTC).date().isoformat()
        yield "retired", f"{host}: no answer for days; a run after {day} tries it once more"
    if len(rows) > NAMED:
        yield "retired", f"and {len(rows) - NAMED} more hosts"


def _seen(project: Project) -> Iterator[tuple[str, str]]:
    total: dict[str, float] = {}
    for name, value in read_all(project.layout, "SELECT name, value FROM meta WHERE name LIKE 'seen_%'"):
        total[name] = total.get(name, 0) + float(value)
    if total:
        passed = f"{total['seen_dropped']:.0f} sightings passed over without a look-up, about {total['seen_lost']:.1f} URLs lost"
        yield (
            "seen",
            f"bloom: {passed}; of {total['seen_looked_up']:.0f} looked up all the same {total['seen_wrong']:.0f} were new",
        )
