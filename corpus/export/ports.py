"""What a release is made of, and what it asks of others: a consent judge, a policy, a counter of tokens.

`app` builds these values from the snapshot, the logs and the configuration; everything here is data. A release is a pure
function of them: two equal sets of inputs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

CONSENT = pa.schema(
    [
        ("access", pa.string()),
        ("use", pa.string()),
        ("export", pa.bool_()),
        ("reason", pa.string()),
        ("evidence_digest", pa.string()),
        ("checked_at", pa.timestamp("us")),
        ("stale", pa.bool_()),
    ]
)
"""One row per URL judged. `reason` is a code of `corpus.reasons`, empty when nothing speaks against the page; `stale`: the
authority's statements are older than allowed; `evidence_digest`: SHA-256 (hex) over the statements that decided."""

TOMBSTONES = pa.schema(
    [("kind", pa.string()), ("value", pa.string()), ("reason", pa.string()), ("requested_at", pa.timestamp("us"))]
)
"""`kind` is domain | url_id | id. A domain covers its subdomains; an id also blocks its URL."""

FRONTIER = pa.schema([("url", pa.string()), ("gone", pa.bool_()), ("visited_at", pa.timestamp("us"))])
"""What the frontier knows of a URL beyond its documents: gone by now, and its latest visit (304s included)."""


HOST_LINES = pa.schema([("id", pa.string()), ("starts", pa.list_(pa.int32())), ("ends", pa.list_(pa.int32()))])
"""Of each text its spans of the kind `HOST_LINE`; every further column is a signal of that text, named as policies name it."""
HOST_LINE = "host-line"


class ConsentJudge(Protocol):
    """Both verdicts on URLs, from the consent log up to the snapshot's watermark and from each page's own signals. Offline."""

    def judge(self, urls: pa.Array, use: pa.Array, evidence: pa.Array, fetched_at: pa.Array) -> pa.Table:
        """A `CONSENT` table, row by row for canonical `urls`; `use` and `evidence` are what the newest stored response said,
        at `fetched_at`: later answers, which left nothing but words in the log, count as well.

        URLs come sorted by domain, so that work per authority is done once a batch.
        """
        ...


class ReleasePolicy(Protocol):
    """What enters a release: one SELECT over measured documents, and the kinds of spans to cut."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    def sql(self, signals: str) -> str:
        """A DuckDB SELECT over the relation `signals` (id, language, language_score and the signals named below) with the
        columns `id`, `drop_rule` (NULL: kept), `measured`, `limit`, `keep`; one row per row of the relation."""
        ...

    @property
    def cut(self) -> Sequence[str]:
        """Span kinds to cut from the text."""
        ...

    @property
    def signals(self) -> Sequence[str]:
        """The signals that `sql` names: a segment without one of them stops the release."""
        ...


class TokenCounter(Protocol):
    """Counts tokens of kept texts; `name` goes into the manifest."""

    @property
    def name(self) -> str: ...
    def count(self, texts: Sequence[str]) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Segment:
    """The family files of one segment. All are sorted alike; `signals` has the rows whose outcome is ok."""

    name: str
    documents: Path
    signals: Path
    spans: Path


@dataclass(frozen=True, slots=True)
class SnapshotInputs:
    """Everything a release is a function of, apart from the options.

    `identity` names the digests of the snapshot (`snapshot`, `config`, `code`, models …): they stand in the manifest.
    """

    digest: str
    segments: tuple[Segment, ...]
    clusters: Path
    pairs: Path | None = None
    host_lines: Path | None = None
    """Signals and spans that only the whole snapshot could tell (columns of `HOST_LINES` and the signals); None: not measured."""
    frontier: pa.Table = field(default_factory=FRONTIER.empty_table)
    tombstones: pa.Table = field(default_factory=TOMBSTONES.empty_table)
    purged: pa.Table = field(default_factory=TOMBSTONES.empty_table)
    """Further removals that holders of older copies must follow, and that forbid nothing: a page that was gone may come back."""
    versions: Path | None = None
    """Older versions (`filter.versions.VERSIONS`), where the release takes major ones too."""
    identity: Mapping[str, str] = field(default_factory=dict)
    config: str = ""
    """The configuration file to put beside the release; empty for none."""
    turned_away: Mapping[str, int] | None = None
    """URLs that were not asked for, or whose answer was dropped, because of what their sites said; by reason. None: not recorded."""
    protocols: Sequence[str] = ()
    """The signals that were honoured under the settings of the snapshot, in words."""


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """How a release is cut. The first block changes its content; `memory`, `threads` and `batch` never do."""

    name: str = "v1"
    languages: tuple[str, ...] = ()
    shard_bytes: int = 256 * 2**20
    validation: float = 0.0
    versions: Literal["newest", "major"] = "newest"
    gone: Literal["drop", "keep"] = "drop"
    by_language: bool = False
    keep: Literal["longest", "newest", "oldest", "best"] = "longest"
    threshold: float = 0.75
    cluster: Literal["drop", "promote"] = "drop"
    quality_signal: str = "quality_score"
    length_signal: str = "chars"
    """Code points of the text: what `longest` compares."""
    title: str = ""
    license: str = "other"
    user_agent: str = ""
    contact: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    """Parts of the card that a person wrote (`corpus.export.words.PARTS`), and `repo`, where it will be published."""
    previous: str = ""
    """The manifest (JSON) of the release before this one, for the card's list of changes; empty for none."""
    previous_shards: Sequence[Path] = ()
    """Its shards, to count what came and went; the manifest names their digests, so they are no further input."""

    memory: int = 4 * 10**9
    threads: int = 1
    batch: int = 4096
