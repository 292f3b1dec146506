"""The crawl's end of the consent log: rows of the crawl's own types in, one durable append out."""

from __future__ import annotations

from collections.abc import Sequence

from corpus.crawl.ports import AuthorityRow, ResponseRefusal
from corpus.store.consent_log import AuthorityRead, ConsentLog, Entry, Refusal, Statement


class ConsentLedger:
    """`ConsentSink` over a `ConsentLog`. `policy`: version of what decides in this process, noted with every entry."""

    def __init__(self, log: ConsentLog, policy: str = "") -> None:
        self._log, self._policy = log, policy

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
                policy=self._policy,
            )
            for row in authorities
        ]
        entries += [self._said(refusal) for refusal in refusals]
        self._log.append(entries, bodies)

    def _said(self, said: ResponseRefusal) -> Entry:
        if said.verdict == "no":
            return Refusal(
                said.url,
                said.at,
                said.protocol,
                said.raw,
                said.source,
                said.line_no,
                said.http_status,
                self._policy,
                said.file_digest,
            )
        return Statement(
            said.url,
            said.at,
            said.protocol,
            said.raw,
            said.verdict,
            said.source,
            said.http_status,
            self._policy,
            said.file_digest,
        )

    def body(self, digest: str) -> bytes:
        """The bytes of an authority file that was read earlier. Raises StoreError when they are missing or damaged."""
        return self._log.body(digest)
