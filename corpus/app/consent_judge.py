"""Consent at export: the log up to a watermark, today's authority files, and what each page said of itself. Offline.

The newest visit's signals and the newest authority files govern every version of a URL: a refusal learned today removes
a page fetched last year, also where today's answer left nothing but a tombstone. Rows of an authority that nobody could
read recently enough are held back as `stale`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from corpus.app.consent_state import Bodies, fold
from corpus.crawl.authority import PATHS
from corpus.export.ports import CONSENT
from corpus.model import Consent, Evidence, Gate, Kind
from corpus.optout.authority import AuthorityRules, FileState, compile_authority
from corpus.optout.decide import combine, reason_of
from corpus.optout.evidence import evidence_digest
from corpus.optout.operator_list import OperatorList
from corpus.optout.policy import policy_version
from corpus.optout.response import reread
from corpus.optout.settings import OptoutSettings
from corpus.store.consent_log import ConsentLog, Watermark
from corpus.url.host import authority_of

_CACHED = 4096
TDMREP_PATH, AI_TXT_PATH = PATHS[Kind.TDMREP][0], PATHS[Kind.AI_TXT][0]


class LogJudge:
    """A `ConsentJudge` over the consent log. `stale` names authorities whose statements are too old to rely on."""

    def __init__(
        self,
        log: ConsentLog,
        watermark: Watermark,
        settings: OptoutSettings,
        token: str,
        operator: OperatorList,
        stale: frozenset[str],
    ) -> None:
        self._settings, self._token = settings, token
        self._operator, self._stale = operator, stale
        self._state = fold(log, watermark)
        self._bodies = Bodies(log)
        self._rules: dict[str, tuple[AuthorityRules, float] | None] = {}
        self._licences: dict[str, dict[str, FileState]] = {}

    @property
    def policy_version(self) -> str:
        """Version of what decides here."""
        return policy_version(self._settings, self._token)

    def judge(self, urls: pa.Array, use: pa.Array, evidence: pa.Array, fetched_at: pa.Array) -> pa.Table:
        """A `CONSENT` table, row by row."""
        columns = (urls.to_pylist(), evidence.to_pylist(), fetched_at.cast(pa.int64()).to_pylist())
        rows = [self.row(url, said or [], (at or 0) / 1e6) for url, said, at in zip(*columns, strict=True)]
        return pa.Table.from_pylist(rows, schema=CONSENT)

    def row(self, url: str, said: list[dict[str, Any]], fetched_at: float = 0.0) -> dict[str, object]:
        """One URL's verdicts as a row of `CONSENT`."""
        known = self.rules(authority_of(url))
        stale = known is None or authority_of(url) in self._stale
        consent, read_at = self.consent(url, said, fetched_at)
        reason = reason_of(consent) if not consent.export else ""
        if not consent.export and not reason:
            reason = "no-permission" if consent.use.value == "no" else "held"
        return {
            "access": consent.access.value,
            "use": consent.use.value,
            "export": consent.export and not stale,
            "reason": {"permission-only": "no-permission", "operator": "operator-list"}.get(reason, reason),
            "evidence_digest": evidence_digest(consent),
            "checked_at": round(read_at * 1e6) if read_at is not None else None,
            "stale": stale and consent.gate is not Gate.SKIP,  # a no that is known outweighs what is old
        }

    def consent(self, url: str, said: list[dict[str, Any]], fetched_at: float = 0.0) -> tuple[Consent, float | None]:
        """The whole consent of one URL, and when its authority's robots.txt was read.

        `said` is what its stored page said when it was fetched (epoch seconds); a later answer without a page adds to it.
        """
        known = self.rules(authority_of(url))
        of_page = (*(_evidence(row) for row in said), *self.said_since(url, fetched_at))
        if of_page:
            of_page = reread(of_page, url, self._state.now, self._documents(authority_of(url)), self._settings)
        parts: list[Consent | tuple[Evidence, ...] | Evidence] = [of_page]
        if known is not None:
            parts.append(known[0].judge(url, max(known[1], self._state.now)))
        listed = self._operator.refuses(url)
        if listed is not None:
            parts.append(listed)
        consent = combine(parts, self._settings)
        assert consent.export is (consent.gate is Gate.FETCH), "nothing leaves that may not be fetched"
        return consent, known[1] if known else None

    def said_since(self, url: str, fetched_at: float) -> tuple[Evidence, ...]:
        """What the URL's latest answer said, if it came after the stored page and left nothing but words."""
        at, statements = self._state.said.get(url, (0.0, ()))
        return statements if at > fetched_at else ()

    def rules(self, authority: str) -> tuple[AuthorityRules, float] | None:
        """Compiled rules and the read time of robots.txt; None when the log knows nothing of this authority."""
        if authority not in self._rules:
            if len(self._rules) >= _CACHED:
                self._rules.clear()
                self._licences.clear()
            self._rules[authority] = self._compile(authority)
        return self._rules[authority]

    def older(self, authority: str, limit: float) -> bool:
        """Whether the statements of an authority were never read, cannot be read, or were read before `limit` (epoch seconds).

        A side file that robots.txt no longer lets us ask for is as fresh as robots.txt; beside a robots.txt out of an archive
        none is missed.
        """
        robots = self._state.robots(authority)
        known = self.rules(authority)
        if robots is None or known is None or robots.outcome == "unreachable" or robots.read_at < limit:
            return True
        for file, on, path in (("tdmrep", self._settings.tdmrep, TDMREP_PATH), ("ai-txt", self._settings.ai_txt, AI_TXT_PATH)):
            read = self._state.files.get((authority, file, ""))
            missed = robots.origin != "archive" if read is None else read.read_at < limit
            if on and missed and known[0].allows(authority + path):
                return True
        return False

    def _compile(self, authority: str) -> tuple[AuthorityRules, float] | None:
        robots = self._state.robots(authority)
        if robots is None:
            return None
        documents = self._state.documents.get(authority, set())
        files = self._bodies.files(authority, self._state.files, documents, self._state.since)
        return compile_authority(files, self._settings, self._token), robots.read_at

    def _documents(self, authority: str) -> dict[str, FileState]:
        """The licence documents that were read for an authority."""
        if authority not in self._licences:
            urls = self._state.documents.get(authority, set())
            reads = {url: self._state.files[authority, "rsl", url] for url in sorted(urls)}
            oldest = self._state.now - self._settings.recheck_after
            states = {url: self._bodies.state(read) for url, read in reads.items() if read.read_at >= oldest}
            self._licences[authority] = {url: state for url, state in states.items() if state is not None}
        return self._licences[authority]


def _evidence(row: Mapping[str, Any]) -> Evidence:
    return Evidence(
        protocol=row["protocol"], source=row["source"], line_no=row["line_no"], raw=row["raw"] or "", agent=row["agent"] or "",
        file_digest=row["file_digest"] or "", axis=row["axis"], verdict=row["verdict"],
    )  # fmt: skip


def operator_list(text: str) -> OperatorList:
    """The operator's own list from its file's text."""
    return OperatorList.from_lines(text.splitlines())
