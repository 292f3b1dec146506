"""`corpus ingest --robots PATH`: robots.txt answers out of other people's archives become readings of the consent log.

Each keeps the date at which the archive's crawler read it and says that it comes from an archive, so it counts for as
long as `optout.recheck_after` lets any reading count and is out of date after that. Redirects are followed inside the
archive; what leads out of it stays unknown, and an unknown host is asked before anything of it is exported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from corpus.app.ingest_files import archives
from corpus.app.project import Project
from corpus.crawl.settle import REDIRECTS
from corpus.model import Capture
from corpus.observe.runlog import Reporter
from corpus.optout.filestate import HOPS_MAX, classify_robots
from corpus.optout.settings import OptoutSettings
from corpus.store.commits import CommitRecord, file_sha256
from corpus.store.consent_log import AuthorityRead, ConsentLog
from corpus.store.warc_capture import Limits, capture_of
from corpus.store.warc_read import join
from corpus.store.warc_source import open_source
from corpus.store.warc_stream import Fault, read_records
from corpus.url.canonical import fetch_url
from corpus.url.host import authority_of

STAGE = "ingest-robots"
BATCH = 500


@dataclass(slots=True)
class RobotsEnd:
    """What one archive gave: answers to robots.txt requests, and the authorities that have a reading because of them."""

    file: str
    answers: int = 0
    authorities: int = 0
    unresolved: int = 0
    """Redirects whose target is not in the archive."""
    faults: int = 0
    known: bool = False


@dataclass(slots=True)
class _Heard:
    """One archive's answers by URL; redirects apart until all is read. Bodies go straight into the log."""

    reads: dict[str, AuthorityRead] = field(default_factory=dict)
    moved: dict[str, tuple[str, float]] = field(default_factory=dict)


def ingest_robots(project: Project, names: Iterable[str], report: Reporter) -> list[RobotsEnd]:
    """Take in every archive the names stand for; the same archive twice adds nothing. Raises UsageError, StoreError."""
    ends = []
    for path in archives(names):
        digest = file_sha256(path)
        record = project.commits.get(STAGE, digest[:32])
        if record is not None:
            ends.append(RobotsEnd(path.name, **{name: int(n) for name, n in record.rows.items()}, known=True))
            continue
        end = _file(project, path, digest)
        report("ingest robots", file=path.name, answers=end.answers, authorities=end.authorities)
        rows = {"answers": end.answers, "authorities": end.authorities, "unresolved": end.unresolved, "faults": end.faults}
        project.commits.put(CommitRecord(STAGE, digest[:32], inputs={"archive": digest}, rows=rows, info={"file": path.name}))
        ends.append(end)
    return ends


def _file(project: Project, path: Path, digest: str) -> RobotsEnd:
    end, heard = RobotsEnd(path.name), _Heard()
    log = project.consent_log(f"a{digest[:16]}")
    bodies: dict[str, bytes] = {}
    for capture in _answers(path, end):
        _hear(heard, capture, project.config.optout, bodies)
        if len(bodies) >= BATCH:
            _keep(log, bodies)
    _keep(log, bodies)
    found = list(heard.reads.values())
    for url, (target, at) in heard.moved.items():
        read = _resolved(heard, url, target, at)
        if read is None:
            end.unresolved += 1
        else:
            found.append(read)
    for start in range(0, len(found), BATCH):
        log.append(found[start : start + BATCH])
    end.authorities = len({read.authority for read in found})
    return end


def _keep(log: ConsentLog, bodies: dict[str, bytes]) -> None:
    log.append([], bodies)
    bodies.clear()


def _answers(path: Path, end: RobotsEnd) -> Iterator[Capture]:
    """Whole answers in an archive, whatever their status."""
    with open_source(path) as source:
        for item in join(read_records(source)):
            found = item if isinstance(item, Fault) else capture_of(item[0], item[1], path.name, Limits())
            if isinstance(found, Fault):
                end.faults += 1
            elif isinstance(found, Capture) and fetch_url(found.found) is not None:
                end.answers += urlsplit(found.found).path == "/robots.txt"
                yield found


def _hear(heard: _Heard, capture: Capture, settings: OptoutSettings, bodies: dict[str, bytes]) -> None:
    """The latest answer of each URL. Files that are not called robots.txt count only as targets of redirects."""
    url = fetch_url(capture.found) or capture.found
    is_robots = urlsplit(url).path == "/robots.txt"
    if capture.status in REDIRECTS and is_robots:
        if capture.fetched_at >= heard.moved.get(url, ("", 0.0))[1]:
            heard.moved[url] = (fetch_url(_joined(url, capture.header("location") or "")) or "", capture.fetched_at)
        return
    if not is_robots:
        return
    cut = capture.truncated if capture.truncated not in ("", "length") else ""
    state = classify_robots(
        capture.status, None, 0, capture.headers, capture.body, cut, settings=settings, url=url, read_at=capture.fetched_at
    )
    digest = ""
    if state.outcome == "ok":
        digest = hashlib.sha256(capture.body).hexdigest()
        bodies[digest] = capture.body
    read = AuthorityRead(
        authority_of(url),
        "robots",
        url,
        capture.status,
        state.outcome,
        digest,
        capture.fetched_at,
        state.detail,
        state.truncated,
        origin="archive",
    )
    if url not in heard.reads or read.read_at >= heard.reads[url].read_at:
        heard.reads[url] = read


def _resolved(heard: _Heard, url: str, target: str, at: float) -> AuthorityRead | None:
    """The reading at the end of a redirect, binding the authority that was first asked; None when it lies elsewhere."""
    mine = heard.reads.get(url)
    if mine is not None and mine.read_at >= at:
        return mine  # it answered by itself later on
    for _ in range(HOPS_MAX):
        read = heard.reads.get(target)
        if read is not None:
            return replace(read, authority=authority_of(url), url=url, read_at=at)
        if target not in heard.moved:
            return None
        target = heard.moved[target][0]
    return AuthorityRead(authority_of(url), "robots", url, None, "denied", "", at, "redirects", origin="archive")


def _joined(base: str, location: str) -> str:
    try:
        return urljoin(base, location)
    except ValueError:
        return ""
