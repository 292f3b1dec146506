"""The crawl's end of the consent log: rows of the crawl's own types in, one durable append out."""

from __future__ import annotations

from collections.abc import Sequence

from corpus.crawl.ports import AuthorityRow, ResponseRefusal
from corpus.store.consent_log import AuthorityRead, ConsentLog, Entry, Refusal


class ConsentLedger:
    """`ConsentSink` over a `ConsentLog`."""

    def __init__(self, log: ConsentLog) -> None:
        self._log = log

    def append(self, authorities: Sequence[AuthorityRow], refusals: Sequence[ResponseRefusal], bodies: dict[str, bytes]) -> None:
        """Durable on return; bodies already kept cost nothing."""
        entries: list[Entry] = [
            AuthorityRead(
                row.authority,
                row.kind.value,
                row.url,
                row.status,
                row.outcome,
                row.digest,
                row.read_at,
                row.detail,
                row.truncated,
            )
            for row in authorities
        ]
        entries += [
            Refusal(refusal.url, refusal.at, refusal.protocol, refusal.raw, refusal.source, refusal.line_no, refusal.http_status)
            for refusal in refusals
        ]
        self._log.append(entries, bodies)

    def body(self, digest: str) -> bytes:
        """The bytes of an authority file that was read earlier. Raises StoreError when they are missing or damaged."""
        return self._log.body(digest)
