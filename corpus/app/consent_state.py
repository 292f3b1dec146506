"""The consent log folded up to a watermark: what every authority's files came to, and what pages' own answers said last.

One pass over the log. Kept: the latest reading of each file (each RSL document), since when it could not be read, the
latest refusal of each URL, what 304s added after it, and the log's own idea of "now" (its youngest entry), by which
dates in old statements are judged without a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from corpus.model import Evidence
from corpus.optout.authority import AuthorityFiles, FileState
from corpus.store.consent_log import AuthorityRead, ConsentLog, Refusal, Statement, Watermark, parse_entry

FileKey = tuple[str, str, str]
"""(authority, file, URL of an RSL document or empty)."""


@dataclass(slots=True)
class LogState:
    """Times are epoch seconds. `said`: by URL, the time of the latest answer that left only words, and its statements."""

    files: dict[FileKey, AuthorityRead] = field(default_factory=dict)
    since: dict[FileKey, float] = field(default_factory=dict)
    said: dict[str, tuple[float, tuple[Evidence, ...]]] = field(default_factory=dict)
    now: float = 0.0
    documents: dict[str, set[str]] = field(default_factory=dict)
    """RSL documents read for an authority, by URL."""

    def robots(self, authority: str) -> AuthorityRead | None:
        return self.files.get((authority, "robots", ""))


def key_of(read: AuthorityRead) -> FileKey:
    """Which file a reading is of."""
    return read.authority, read.file, read.url if read.file == "rsl" else ""


def fold(log: ConsentLog, watermark: Watermark) -> LogState:
    """The state of the log at a watermark. Of equal times the later entry wins."""
    state = LogState()
    for value in log.read(watermark):
        entry = parse_entry(value)
        if isinstance(entry, AuthorityRead):
            _learn(state, entry)
        else:
            state.now = max(state.now, entry.at)
            known = state.said.get(entry.url)
            if known is None or entry.at > known[0]:
                state.said[entry.url] = (entry.at, (evidence_of(entry),))
            elif entry.at == known[0]:
                state.said[entry.url] = (entry.at, (*known[1], evidence_of(entry)))
    return state


def _learn(state: LogState, read: AuthorityRead) -> None:
    key = key_of(read)
    state.now = max(state.now, read.read_at)
    if read.outcome == "unreachable":
        state.since[key] = min(state.since.get(key, read.read_at), read.read_at)
    known = state.files.get(key)
    if known is not None and read.read_at < known.read_at:
        return
    if read.outcome != "unreachable":
        state.since.pop(key, None)
    state.files[key] = read
    if read.file == "rsl":
        state.documents.setdefault(read.authority, set()).add(read.url)


def evidence_of(entry: Refusal | Statement) -> Evidence:
    """What a response said about itself, as a statement."""
    if isinstance(entry, Refusal):
        return Evidence(
            entry.protocol,
            entry.source,
            entry.line_no,
            entry.raw,
            file_digest=entry.file_digest,
            read_at=entry.at,
            axis="use",
            verdict="no",
        )
    return Evidence(
        entry.protocol,
        entry.source,
        None,
        entry.raw,
        file_digest=entry.file_digest,
        read_at=entry.at,
        axis="use",
        verdict=entry.verdict,
    )


class Bodies:
    """Readings as the states that `optout` compiles, with their bodies from the log."""

    def __init__(self, log: ConsentLog) -> None:
        self._log = log

    def state(self, read: AuthorityRead | None, since: float | None = None) -> FileState | None:
        """None: never asked for. `since`: when it could first not be read."""
        if read is None:
            return None
        body = self._log.body(read.digest) if read.digest else b""
        return FileState(read.outcome, read.status, body, read.digest, read.read_at, read.url, read.truncated, read.detail, since)

    def files(
        self, authority: str, reads: Mapping[FileKey, AuthorityRead], documents: set[str], since: Mapping[FileKey, float]
    ) -> AuthorityFiles:
        """Everything that is known of an authority."""

        def one(file: str, url: str = "") -> FileState | None:
            key = (authority, file, url)
            return self.state(reads.get(key), since.get(key))

        licences = tuple(state for url in sorted(documents) if (state := one("rsl", url)) is not None)
        return AuthorityFiles(robots=one("robots"), tdmrep=one("tdmrep"), ai_txt=one("ai-txt"), rsl=licences)
