"""The evidence ledger as tables: what was said when, at which line, which URLs it bore on, and what a release rested on.

`ledger` one row per URL and statement, with the interval in which the statement was in force, as far as we read it.
`statements` those behind every `consent.evidence_digest` of the newest decisions.
`consent` every reading of an authority file with the validity of the version it read, and every word a response left.

All are derived: from the consent log, the bodies it keeps by digest, and the readers as they are now (`policy_version`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.consent_judge import LogJudge
from corpus.app.consent_state import Bodies, FileKey, key_of
from corpus.app.project import Project
from corpus.app.release import DECISIONS, snapshot_judge
from corpus.app.snapshot import Snapshot, latest_snapshot, load_snapshot
from corpus.model import Evidence
from corpus.optout.authority import AuthorityRules, compile_authority
from corpus.optout.policy import policy_version
from corpus.store.consent_log import AuthorityRead, parse_entry
from corpus.url.host import authority_of, host_of

_S, _I, _T = pa.string(), pa.int64(), pa.timestamp("us")
_STATEMENT = [
    ("axis", _S),
    ("verdict", _S),
    ("protocol", _S),
    ("source", _S),
    ("line_no", _I),
    ("raw", _S),
    ("agent", _S),
    ("file_digest", _S),
]
LEDGER_SCHEMA = pa.schema(
    [("host", _S), ("authority", _S), ("url", _S), ("valid_from", _T), ("valid_to", _T), *_STATEMENT, ("policy_version", _S)]
)
EVIDENCE_SCHEMA = pa.schema([("evidence_digest", _S), *_STATEMENT])
BATCH = 20_000
_SEEN_MAX = 100_000
Row = tuple[Any, ...]

CONSENT_VIEW = """
CREATE VIEW consent AS
WITH runs AS (
    SELECT *, CASE WHEN lag(digest || '|' || outcome) OVER w IS NOT DISTINCT FROM digest || '|' || outcome THEN 0 ELSE 1 END AS changed FROM consent_entries
    WHERE kind = 'authority' WINDOW w AS (PARTITION BY authority, file, url ORDER BY read_at, digest, outcome)
), versions AS (
    SELECT *, sum(changed) OVER (PARTITION BY authority, file, url ORDER BY read_at, digest, outcome ROWS UNBOUNDED PRECEDING) AS version FROM runs
), spans AS (
    SELECT authority, file, url, version, min(read_at) AS valid_from, max(read_at) AS last_read FROM versions GROUP BY ALL
), ends AS (
    SELECT *, lead(valid_from) OVER (PARTITION BY authority, file, url ORDER BY version) AS valid_to FROM spans
)
SELECT v.* EXCLUDE (changed, version), e.valid_from, e.valid_to FROM versions v JOIN ends e USING (authority, file, url, version)
UNION ALL SELECT *, read_at, NULL FROM consent_entries WHERE kind <> 'authority'
"""
"""`valid_from`: first reading of this version; `valid_to`: first reading of another one, NULL while it stands."""

LEDGER_VIEW = """
CREATE VIEW ledger AS SELECT * FROM ledger_rows
UNION ALL SELECT d.host, NULL, d.url, d.fetched_at, NULL, e.axis, e.verdict, e.protocol, e.source, e.line_no, e.raw, e.agent, e.file_digest,
    (SELECT any_value(policy_version) FROM ledger_rows)
FROM measured_documents d, unnest(d.evidence) AS u(e)
UNION ALL SELECT f.host, NULL, c.url, c.read_at, NULL, 'use', c.outcome, c.protocol, c.source, c.line_no, c.raw, '', coalesce(c.digest, ''), c.policy_version
FROM consent_entries c JOIN frontier_urls f ON f.url = c.url WHERE c.kind <> 'authority'
"""
"""What an answer said of its own page has no end that anybody read; `authority` is NULL for it."""

DECISIONS_VIEW = """
CREATE VIEW decisions AS
SELECT url, axis, verdict, protocol, raw, line_no, file_digest, read_at, source, agent, policy_version FROM decision_rows
UNION ALL SELECT d.url, e.axis, e.verdict, e.protocol, e.raw, e.line_no, e.file_digest, d.fetched_at, e.source, e.agent,
    (SELECT any_value(policy_version) FROM decision_rows)
FROM measured_documents d, unnest(d.evidence) AS u(e)
UNION ALL SELECT c.url, 'use', coalesce(c.outcome, 'no'), c.protocol, c.raw, c.line_no, coalesce(c.digest, ''), c.read_at, c.source, '', c.policy_version
FROM consent_entries c SEMI JOIN frontier_urls f ON f.url = c.url AND f.state IN ('refused', 'not-modified') WHERE c.kind <> 'authority'
"""
"""Statements of today's authority files, of stored pages, and of answers that left nothing but words."""


def ledger_batches(project: Project, urls: Iterable[str]) -> Iterator[list[Row]]:
    """Rows of `ledger` for canonical URLs in order of URL: one authority's history in memory at a time."""
    timelines = _timelines(project)
    batch: list[Row] = []
    for authority, group in groupby(urls, key=authority_of):
        for row in _of_authority(project, authority, timelines.get(authority, []), group):
            batch.append(row)
            if len(batch) >= BATCH:
                yield batch
                batch = []
    if batch:
        yield batch


def _timelines(project: Project) -> dict[str, list[AuthorityRead]]:
    """Readings that changed something, by authority, oldest first."""
    reads: dict[str, list[AuthorityRead]] = {}
    for value in project.consent_log().read():
        entry = parse_entry(value)
        if isinstance(entry, AuthorityRead):
            reads.setdefault(entry.authority, []).append(entry)
    for authority, found in reads.items():
        state: dict[FileKey, tuple[str, str]] = {}
        kept = []
        for read in sorted(found, key=lambda r: r.read_at):
            if state.get(key_of(read)) != (read.outcome, read.digest):
                kept.append(read)
                state[key_of(read)] = (read.outcome, read.digest)
        reads[authority] = kept
    return reads


def _of_authority(project: Project, authority: str, reads: list[AuthorityRead], urls: Iterable[str]) -> Iterator[Row]:
    config = project.config
    version = policy_version(config.optout, config.crawl.robots_token)
    steps = _steps(project, authority, reads)
    for url in urls:
        open_since: dict[Evidence, float] = {}
        for at, rules in steps:
            said = {replace(item, read_at=None): None for item in rules.judge(url, at).evidence}
            for item in [item for item in open_since if item not in said]:
                yield _row(authority, url, open_since.pop(item), at, item, version)
            for item in said:
                open_since.setdefault(item, at)
        for item, since in open_since.items():
            yield _row(authority, url, since, None, item, version)


def _steps(project: Project, authority: str, reads: list[AuthorityRead]) -> list[tuple[float, AuthorityRules]]:
    """Compiled rules from each time on at which a file was another than before."""
    bodies = Bodies(project.consent_log())
    known: dict[FileKey, AuthorityRead] = {}
    documents: set[str] = set()
    steps: list[tuple[float, AuthorityRules]] = []
    for read, following in pairwise([*reads, None]):
        assert read is not None, "only the last of the pairs is open"
        known[key_of(read)] = read
        if read.file == "rsl":
            documents.add(read.url)
        if following is not None and following.read_at == read.read_at:
            continue
        files = bodies.files(authority, known, documents, {})
        steps.append((read.read_at, compile_authority(files, project.config.optout, project.config.crawl.robots_token)))
    return steps


def _row(authority: str, url: str, since: float, until: float | None, item: Evidence, version: str) -> Row:
    return (host_of(url), authority, url, _us(since), None if until is None else _us(until), *_statement(item), version)


def evidence_batches(project: Project) -> Iterator[list[Row]]:
    """Rows of `statements`: each digest of the newest decisions once, decided again as the release did, offline."""
    folder = latest_snapshot(project, DECISIONS)
    if folder is None:
        return
    snapshot = load_snapshot(project, folder.name)
    judge = snapshot_judge(project, snapshot)
    seen: dict[str, None] = {}
    for urls in _documents(project, snapshot):
        batch: list[Row] = []
        for url, said, at in urls:
            row = judge.row(url, said, at)
            digest = str(row["evidence_digest"])
            if digest in seen:
                continue
            if len(seen) >= _SEEN_MAX:
                seen.clear()  # a digest may then come twice, which the view's DISTINCT undoes
            seen[digest] = None
            batch += [(digest, *_statement(item)) for item in _evidence(judge, url, said, at)]
        if batch:
            yield batch


def _evidence(judge: LogJudge, url: str, said: list[dict[str, Any]], at: float) -> tuple[Evidence, ...]:
    return judge.consent(url, said, at)[0].evidence


def _documents(project: Project, snapshot: Snapshot) -> Iterator[list[tuple[str, list[dict[str, Any]], float]]]:
    for path in snapshot.family("documents"):
        with pq.ParquetFile(project.file(path)) as file:  # as it is now: a takedown may have rewritten it since the snapshot
            for batch in file.iter_batches(batch_size=BATCH, columns=["url", "evidence", "fetched_at"]):
                at = batch["fetched_at"].cast(_I).to_pylist()
                yield [
                    (u, s or [], t / 1e6)
                    for u, s, t in zip(batch["url"].to_pylist(), batch["evidence"].to_pylist(), at, strict=True)
                ]


def _statement(e: Evidence) -> Row:
    return (e.axis, e.verdict, e.protocol, e.source, e.line_no, _text(e.raw), _text(e.agent), e.file_digest)


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
