"""The columns of a release, frozen per schema version: the same in every shard, empty ones too.

The order is the contract's: FineWeb's names first. Only the fields of the `signals` struct come from outside, because the
map stage owns the list of signals; `SCHEMA_VERSION` is raised when they change.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from corpus.model import SCHEMA_VERSION

CONSENT_STRUCT = pa.struct(
    [("access", pa.string()), ("use", pa.string()), ("evidence_digest", pa.string()), ("checked_at", pa.timestamp("us"))]
)

DESCRIPTIONS: dict[str, str] = {
    "text": "main text of the page, after the cuts named under Filters",
    "id": "identity of this version: URL and body",
    "dump": "crawl the page comes from",
    "url": "canonical URL",
    "date": "time of the first capture of this version, UTC",
    "file_path": "WARC file of that capture",
    "language": "ISO 639-1 code, 639-3 where there is none, `und` when unknown",
    "language_score": "confidence of the language, 0 to 1",
    "token_count": "tokens of the text; null without a tokenizer",
    "minhash_cluster_size": "documents in the page's near-duplicate cluster, this one included",
    "title": "title of the page",
    "author": "author as the page states it",
    "published": "publication date as the page states it",
    "license_url": "licence that the page links to",
    "host": "host name",
    "domain": "registered domain",
    "crawl_id": "period of the crawl",
    "fetched_at": "time of the first capture of this version, UTC",
    "http_status": "HTTP status",
    "content_type": "media type",
    "charset": "character encoding that was decoded",
    "warc_offset": "byte offset of the response record in `file_path`",
    "warc_length": "length of that record in bytes",
    "content_sha256": "SHA-256 of the decoded body",
    "text_sha256": "SHA-256 of the text before cuts, NFC, white space folded",
    "url_id": "identity of the URL",
    "language_script": "ISO 15924 script",
    "extractor": "extractor and its version",
    "minhash_cluster_id": "smallest id in the cluster",
    "quality_score": "score of the quality model; null without one",
    "signals": "every signal measured on the text",
    "consent": "access and use verdicts, digest of their evidence, time they were checked",
    "policy_digest": "digest of the policy that let the page in",
    "schema_version": "version of these columns",
}

LOW_CARDINALITY = (
    "dump", "file_path", "language", "host", "domain", "crawl_id", "content_type", "charset", "language_script", "extractor",
    "license_url", "policy_digest", "consent.access", "consent.use", "consent.evidence_digest",
)  # fmt: skip
"""Columns that are dictionary-encoded; every other column repeats too little for it."""

STATISTICS = (
    "dump", "url", "date", "file_path", "language", "token_count", "minhash_cluster_size", "host", "domain", "crawl_id", "fetched_at",
    "http_status", "language_script", "policy_digest", "schema_version",
)  # fmt: skip
"""Columns whose least and greatest values stand in footers and page indexes: those by which a row group can be left out. Of
random digests and of signals every row group has all values, and a footer is read whole before the first row."""

COPIED = (
    "id", "url", "file_path", "language_score", "title", "author", "published", "license_url", "host", "domain", "crawl_id",
    "fetched_at", "http_status", "content_type", "charset", "warc_offset", "warc_length", "content_sha256", "text_sha256",
    "url_id", "language_script", "extractor",
)  # fmt: skip
"""Release columns taken over from the documents family as they are."""

SignalFields = Sequence[tuple[str, pa.DataType]]


def release_schema(signals: SignalFields) -> pa.Schema:
    """The Arrow schema of every shard, with `signals` as the fields of its struct."""
    text, number = pa.string(), pa.int64()
    fields: list[tuple[str, pa.DataType]] = [
        ("text", text), ("id", text), ("dump", text), ("url", text), ("date", text), ("file_path", text), ("language", text),
        ("language_score", pa.float64()), ("token_count", number), ("minhash_cluster_size", number), ("title", text),
        ("author", text), ("published", text), ("license_url", text), ("host", text), ("domain", text), ("crawl_id", text),
        ("fetched_at", pa.timestamp("us")), ("http_status", pa.int16()), ("content_type", text), ("charset", text),
        ("warc_offset", number), ("warc_length", number), ("content_sha256", text), ("text_sha256", text), ("url_id", text),
        ("language_script", text), ("extractor", text), ("minhash_cluster_id", text), ("quality_score", pa.float64()),
        ("signals", pa.struct(list(signals))), ("consent", CONSENT_STRUCT), ("policy_digest", text),
        ("schema_version", pa.int32()),
    ]  # fmt: skip
    assert [name for name, _ in fields] == list(DESCRIPTIONS), "every release column needs its description"
    return pa.schema(fields, metadata={"corpus.schema_version": str(SCHEMA_VERSION)})
