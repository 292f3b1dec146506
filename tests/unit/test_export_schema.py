"""The columns of a release, frozen: names, order and types are the contract's."""

from __future__ import annotations

import pyarrow as pa

from corpus.export.schema import COPIED, DESCRIPTIONS, LOW_CARDINALITY, release_schema
from corpus.filter.schema import DOCUMENTS

CONTRACT = [
    "text",
    "id",
    "dump",
    "url",
    "date",
    "file_path",
    "language",
    "language_score",
    "token_count",
    "minhash_cluster_size",
    "title",
    "author",
    "published",
    "license_url",
    "host",
    "domain",
    "crawl_id",
    "fetched_at",
    "http_status",
    "content_type",
    "charset",
    "warc_offset",
    "warc_length",
    "content_sha256",
    "text_sha256",
    "url_id",
    "language_script",
    "extractor",
    "minhash_cluster_id",
    "quality_score",
    "signals",
    "consent",
    "policy_digest",
    "schema_version",
]
TYPES = [
    "string",
    "string",
    "string",
    "string",
    "string",
    "string",
    "string",
    "double",
    "int64",
    "int64",
    "string",
    "string",
    "string",
    "string",
    "string",
    "string",
    "string",
    "timestamp[us]",
    "int16",
    "string",
    "string",
    "int64",
    "int64",
    "string",
    "string",
    "string",
    "string",
    "string",
    "string",
    "double",
]


def test_columns_are_the_contracts_in_its_order():
    """FineWeb's names first; every type as published; the structs last."""
    schema = release_schema([("words", pa.int64())])
    assert schema.names == CONTRACT
    assert [str(field.type) for field in schema][: len(TYPES)] == TYPES
    assert str(schema.field("signals").type) == "struct<words: int64>"
    assert (
        str(schema.field("consent").type)
        == "struct<access: string, use: string, evidence_digest: string, checked_at: timestamp[us]>"
    )
    assert str(schema.field("schema_version").type) == "int32"
    assert schema.metadata == {b"corpus.schema_version": b"1"}


def test_every_column_is_described_and_the_tables_name_real_columns():
    """Descriptions, dictionary columns and copied columns speak of columns that exist, in the families too."""
    schema = release_schema([])
    assert list(DESCRIPTIONS) == schema.names
    assert {name.split(".")[0] for name in LOW_CARDINALITY} <= set(schema.names)
    assert set(COPIED) <= set(schema.names)
    for name in COPIED:
        assert schema.field(name).type == DOCUMENTS.field(name).type
