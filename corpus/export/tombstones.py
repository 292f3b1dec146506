"""Takedowns in a release: which representatives a tombstone covers, and the file that lists every tombstone.

A domain covers its subdomains; an id also blocks its URL in every version. A takedown is not a refusal: copies elsewhere
stay, and one of them is elected.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.errors import StoreError
from corpus.export.ports import TOMBSTONES
from corpus.export.session import load

_KINDS = {"domain", "url_id", "id"}

_COVERED = """
CREATE TABLE covered AS
SELECT DISTINCT r.url_id FROM rep r JOIN tombstones t ON t.kind = 'domain' AND (r.domain = t.value OR r.host = t.value)
UNION
SELECT DISTINCT r.url_id FROM rep r, tombstones t WHERE t.kind = 'domain' AND ends_with(r.host, '.' || t.value)
UNION
SELECT t.value FROM tombstones t WHERE t.kind = 'url_id'
UNION
SELECT f.url_id FROM facts f JOIN tombstones t ON t.kind = 'id' AND t.value = f.id
"""


def cover(con: duckdb.DuckDBPyConnection, tombstones: pa.Table) -> None:
    """Create `covered(url_id)`. Raises StoreError for a kind that is none: a takedown must never be overlooked."""
    rows = ordered(tombstones)
    if strange := set(rows["kind"].unique().to_pylist()) - _KINDS:
        raise StoreError(
            f"tombstones of unknown kind: {sorted(map(str, strange))}", "control log", "expected domain, url_id or id"
        )
    load(con, "tombstones", rows)
    con.execute(_COVERED)


def ordered(tombstones: pa.Table) -> pa.Table:
    """The tombstones in the one order they are published in."""
    return tombstones.select(TOMBSTONES.names).cast(TOMBSTONES).sort_by([(name, "ascending") for name in TOMBSTONES.names])


def write_tombstones(tombstones: pa.Table, path: Path) -> None:
    """Write `TOMBSTONES.parquet`: what a holder of any earlier copy must remove."""
    pq.write_table(ordered(tombstones), path, compression="zstd", compression_level=3, write_page_index=True)
