"""The frozen schemas of the four families and the version of the map stage.

One file per segment and family, rows in the order (domain, url, id). `documents` has a row for every page capture, whatever
became of it; the others have a row only where `outcome` is `ok` (spans: any number). Changing a column or any byte that a
fixed input produces means bumping `STAGE_VERSION` by hand: a golden test fails otherwise.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from corpus.filter.signals import SIGNALS
from corpus.filter.signals_sourced import SOURCED
from corpus.filter.signatures import VALUES

STAGE_VERSION: Final = 5
FAMILIES: Final = ("documents", "signals", "spans", "signatures")
SORT_ORDER: Final = ("domain", "url", "id")

EVIDENCE: Final = pa.struct(
    [
        ("protocol", pa.string()),
        ("source", pa.string()),
        ("line_no", pa.int32()),
        ("raw", pa.string()),
        ("agent", pa.string()),
        ("file_digest", pa.string()),
        ("axis", pa.string()),
        ("verdict", pa.string()),
    ]
)

DOCUMENTS: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("url_id", pa.string(), nullable=False),
        pa.field("host", pa.string(), nullable=False),
        pa.field("domain", pa.string(), nullable=False),
        pa.field("crawl_id", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("fetched_at", pa.timestamp("us"), nullable=False),
        ("depth", pa.int32()),
        ("http_status", pa.int16()),
        ("content_type", pa.string()),
        ("charset", pa.string()),
        ("charset_source", pa.string()),
        ("content_sha256", pa.string()),
        ("text", pa.string()),
        ("text_sha256", pa.string()),
        ("title", pa.string()),
        ("author", pa.string()),
        ("published", pa.string()),
        ("license_url", pa.string()),
        ("language", pa.string()),
        ("language_score", pa.float64()),
        ("language_script", pa.string()),
        ("extractor", pa.string()),
        ("near_original", pa.string()),
        ("near_distance", pa.int32()),
        pa.field("use", pa.string(), nullable=False),
        pa.field("evidence", pa.list_(EVIDENCE), nullable=False),
        ("file_path", pa.string()),
        ("warc_offset", pa.int64()),
        ("warc_length", pa.int64()),
    ]
)
ARROW_TYPES: Final = {"int64": pa.int64(), "double": pa.float64(), "string": pa.string()}
SIGNALS_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("language_score", pa.float64(), nullable=False),
        *((name, ARROW_TYPES[signal.type]) for name, signal in SIGNALS.items()),
        *((name, ARROW_TYPES[sourced.signal.type]) for name, sourced in SOURCED.items()),
    ]
)
"""`language` stands here too: policies differ by language, and a decision then reads this family alone. The operator's own
signals (`filter.rules`) follow as further columns, by name."""
SPANS: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
    ]
)
SIGNATURES: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("scheme", pa.string(), nullable=False),
        pa.field("minhash", pa.list_(pa.field("element", pa.uint32(), nullable=False), VALUES), nullable=False),
        pa.field("shingle_count", pa.int64(), nullable=False),
    ]
)
SCHEMAS: Final = dict(zip(FAMILIES, (DOCUMENTS, SIGNALS_SCHEMA, SPANS, SIGNATURES), strict=True))


def file_schema(family: str, table: pa.Table) -> pa.Schema:
    """The schema of one file: the family's, and behind it whatever signals of the operator's own the table has, by name."""
    schema = SCHEMAS[family]
    if family != "signals":
        return schema
    own = sorted(set(table.column_names) - set(schema.names))
    return pa.schema([*schema, *(table.schema.field(name) for name in own)])
