"""Which split a URL belongs to, and where a row group may end: both read off `url_id`, so neither moves when others do.

A URL stays in its split in every release; a row group ends at the same pages after a takedown elsewhere in the shard, so
that content-defined chunks after it are found again.
"""

from __future__ import annotations

TRAIN, VALIDATION = "train", "validation"

_RANKED_ONE_IN = 32
_SHARES = 2**32


def split_sql(validation: float) -> str:
    """A SQL expression over `url_id`: the name of its split. Compares eight hex digits as text."""
    limit = round(validation * _SHARES)
    if limit <= 0:
        return f"'{TRAIN}'"
    return f"CASE WHEN substr(url_id, 1, 8) < '{limit:08x}' THEN '{VALIDATION}' ELSE '{TRAIN}' END"


def rank_sql() -> str:
    """A SQL expression over `url_id`: how strongly a row group wants to end after this row, 0 most; -1 for 31 rows of 32."""
    digits = "substr(url_id, 25, 8)"
    return f"CASE WHEN {digits} < '{_SHARES // _RANKED_ONE_IN:08x}' THEN CAST('0x' || {digits} AS BIGINT) ELSE -1 END"
