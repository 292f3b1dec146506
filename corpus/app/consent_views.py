"""The consent log as tables: every reading of an authority file, and what today's files decide about known URLs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from corpus.app.consent_judge import LogJudge, operator_list
from corpus.app.consent_state import evidence_of
from corpus.app.project import Project
from corpus.store.consent_log import AuthorityRead, Refusal, parse_entry

_S = pa.string()
AUTHORITY_SCHEMA = pa.schema(
    [
        ("kind", _S), ("authority", _S), ("file", _S), ("url", _S), ("status", pa.int64()), ("outcome", _S), ("digest", _S), ("read_at", pa.timestamp("us")),
        ("protocol", _S), ("raw", _S), ("source", _S), ("line_no", pa.int64()), ("detail", _S), ("origin", _S), ("policy_version", _S),
    ]
)  # fmt: skip
"""One row per entry of the log: readings of authority files (`kind` authority) and what responses left (`kind` refusal, statement)."""
DECISION_SCHEMA = pa.schema(
    [
        ("url", _S), ("axis", _S), ("verdict", _S), ("protocol", _S), ("raw", _S), ("line_no", pa.int64()), ("file_digest", _S),
        ("read_at", pa.timestamp("us")), ("source", _S), ("agent", _S), ("policy_version", _S),
    ]
)  # fmt: skip
BATCH = 20_000


def authority_batches(project: Project) -> Iterator[list[tuple[Any, ...]]]:
    """Rows of `AUTHORITY_SCHEMA`, batch by batch."""
    batch: list[tuple[Any, ...]] = []
    for value in project.consent_log().read():
        entry = parse_entry(value)
        if isinstance(entry, AuthorityRead):
            batch.append(
                ("authority", entry.authority, entry.file, entry.url, entry.status, entry.outcome, entry.digest, _us(entry.read_at), None, None, None, None,
                 entry.detail, entry.origin, entry.policy)
            )  # fmt: skip
        else:
            item, kind = evidence_of(entry), "refusal" if isinstance(entry, Refusal) else "statement"
            batch.append(
                (kind, None, None, entry.url, entry.http_status, item.verdict, item.file_digest or None, _us(entry.at), item.protocol, _text(item.raw), item.source, item.line_no,
                 "", "crawl", entry.policy)
            )  # fmt: skip
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def current_judge(project: Project) -> LogJudge:
    """The offline judge over all of the log as it stands."""
    config = project.config
    log = project.consent_log()
    file = config.optout.domains_file
    text = (config.base / file).read_text("utf-8") if file else ""
    return LogJudge(log, log.watermark(), config.optout, config.crawl.robots_token, operator_list(text), frozenset())


def decision_batches(project: Project, urls: Iterable[str]) -> Iterator[list[tuple[Any, ...]]]:
    """Every statement of today's authority files on each URL; URLs of authorities nobody asked have none."""
    judge = current_judge(project)
    version = judge.policy_version
    batch: list[tuple[Any, ...]] = []
    for url in urls:
        consent, _ = judge.consent(url, [])
        batch += [
            (
                url,
                e.axis,
                e.verdict,
                e.protocol,
                _text(e.raw),
                e.line_no,
                e.file_digest,
                _us(e.read_at) if e.read_at is not None else None,
                e.source,
                _text(e.agent),
                version,
            )
            for e in consent.evidence
        ]
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
