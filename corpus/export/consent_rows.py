"""Consent at export: the newest visit's own signals and the authority files of the consent log, URL by URL, in batches.

What a page said when an older version of it was fetched does not matter; what its newest response says governs them all.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from corpus.errors import CorpusError
from corpus.export.measured import read_rows
from corpus.export.ports import CONSENT, ConsentJudge, SnapshotInputs
from corpus.export.session import append, load, query
from corpus.model import Access, Use


def judge_all(con: duckdb.DuckDBPyConnection, inputs: SnapshotInputs, judge: ConsentJudge, batch: int) -> None:
    """Create `consent(url_id, access, use, export, reason, …)`: one row per URL that has a text or copies one."""
    load(con, "consent", CONSENT.insert(0, pa.field("url_id", pa.string())).empty_table())
    wanted = query(
        con,
        "SELECT newest_file, newest_row FROM rep WHERE outcome IN ('ok', 'near-copy') OR url_id IN (SELECT url_id FROM older)"
        " ORDER BY newest_file, newest_row",
    )
    files, rows = np.asarray(wanted["newest_file"]), np.asarray(wanted["newest_row"]).astype(np.int64)
    for number, segment in enumerate(inputs.segments):
        low, high = np.searchsorted(files, (number, number + 1))
        for _, table in read_rows(segment.documents, rows[low:high], ["url_id", "url", "use", "evidence", "fetched_at"], batch):
            append(con, "consent", _judged(table, judge))


def _judged(table: pa.Table, judge: ConsentJudge) -> pa.Table:
    columns = [table[name].combine_chunks() for name in ("url", "use", "evidence", "fetched_at")]
    verdicts = judge.judge(*columns)
    if len(verdicts) != len(table):
        raise CorpusError(f"the consent judge answered {len(verdicts)} of {len(table)} URLs", "export")
    verdicts = verdicts.select(CONSENT.names).cast(CONSENT)
    for name, closed in (("access", Access), ("use", Use)):
        if strange := set(verdicts[name].unique().to_pylist()) - {member.value for member in closed}:
            raise CorpusError(f"the consent judge answered {name} = {sorted(map(str, strange))}", "export")
    return verdicts.add_column(0, "url_id", table["url_id"])
