"""Statements as evidence: every reader states what it found through the decision table, and nothing is decided elsewhere.

`evidence_digest` names a body of evidence by what was said and where, not by when it was read: the same statements on
the next visit give the same digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from corpus.model import Consent, Evidence
from corpus.optout.lines import RAW_MAX_CHARS
from corpus.optout.table import TABLE


class Origin(NamedTuple):
    """Where statements come from: a file (URL, digest, time read) or a part of a response (`header`, `meta`, `status`)."""

    source: str
    digest: str = ""
    read_at: float | None = None


def stated(
    signal: str, value: str, origin: Origin, *, raw: str = "", line_no: int | None = None, agent: str = "", protocol: str = ""
) -> Evidence:
    """One statement, with the verdict its row in the table gives. `protocol` overrides the row's (meta for header)."""
    row = TABLE[signal, value]
    return Evidence(
        protocol=protocol or row.protocol,
        source=origin.source,
        line_no=line_no,
        raw=raw[:RAW_MAX_CHARS],
        agent=agent,
        file_digest=origin.digest,
        read_at=origin.read_at,
        axis=row.axis,
        verdict=row.verdict,
    )


def evidence_digest(consent: Consent | Iterable[Evidence]) -> str:
    """SHA-256 (hex) over the sorted statements without their times: stable across visits that found the same."""
    items = consent.evidence if isinstance(consent, Consent) else consent
    rows = sorted(
        "\x1f".join(
            (e.axis, e.verdict, e.protocol, e.source, "" if e.line_no is None else str(e.line_no), e.raw, e.agent, e.file_digest)
        )
        for e in items
    )
    return hashlib.sha256("\x1e".join(rows).encode("utf-8", "surrogatepass")).hexdigest()
