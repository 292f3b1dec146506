"""Every documents row gets one decision: the stage it ended at, the reason, the rule with its measured value and limit.

The order of stages is the funnel's; the first that refuses decides. Nothing is written but `decisions.parquet`, sorted and
the same for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.errors import CorpusError, StoreError
from corpus.export.consent_rows import judge_all
from corpus.export.elect import elect
from corpus.export.facts import choose_representatives, load_facts
from corpus.export.funnel import check, funnel
from corpus.export.measured import Places, SignalRows, require_signals
from corpus.export.ports import ConsentJudge, ReleaseOptions, ReleasePolicy, Segment, SnapshotInputs
from corpus.export.refusals import fall, losses
from corpus.export.session import append, count, load, query, stream
from corpus.export.tombstones import cover
from corpus.model import FunnelStep
from corpus.reasons import REASONS

VERDICTS = pa.schema(
    [
        ("id", pa.string()),
        ("drop_rule", pa.string()),
        ("measured", pa.float64()),
        ("limit", pa.float64()),
        ("keep", pa.string()),
        ("score", pa.float64()),
        ("chars", pa.int64()),
    ]
)

_POLICY_ROWS = 65_536
_WRITE_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided: the funnel from `extracted` on, drops per policy rule, losses to refusals of others, consent counts,
    and the number of documents rows that are older captures of a URL (outside the funnel)."""

    funnel: tuple[FunnelStep, ...]
    rules: dict[str, int]
    losses: pa.Table
    consent: dict[str, int]
    older: int
    path: Path


def decide(
    con: duckdb.DuckDBPyConnection,
    inputs: SnapshotInputs,
    judge: ConsentJudge,
    policy: ReleasePolicy,
    options: ReleaseOptions,
    path: Path,
) -> Decisions:
    """Decide every row and write `path`. Leaves the tables `rep`, `staged` and `elected` behind for the writer of shards."""
    require_signals(inputs.segments, [*policy.signals, options.length_signal])
    load_facts(con, inputs)
    choose_representatives(con, str(inputs.clusters))
    apply_policy(con, inputs, policy, options)
    judge_all(con, inputs, judge, options.batch)
    cover(con, inputs.tombstones)
    fall(con, options.threshold, drop=options.cluster == "drop")
    load(con, "wanted", pa.table({"language": pa.array(sorted(set(options.languages)), pa.string())}))
    con.execute(_STAGED, {"all_languages": not options.languages, "drop_gone": options.gone == "drop"})
    elect(con, options.keep)
    con.execute("UPDATE staged SET stage = 'exported', reason = '' WHERE stage IS NULL")
    steps = funnel(con)
    check(steps, count(con, "SELECT count(*) FROM staged WHERE reason = ''"))
    _known_reasons(steps)
    older = _write(con, path)
    rules = dict(con.execute("SELECT drop_rule, count(*) FROM staged WHERE reason = 'quality' GROUP BY 1 ORDER BY 1").fetchall())
    consent = dict(con.execute("SELECT use, count(*) FROM staged WHERE reason = '' GROUP BY 1 ORDER BY 1").fetchall())
    return Decisions(steps, rules, losses(con), consent, older, path)


def apply_policy(con: duckdb.DuckDBPyConnection, inputs: SnapshotInputs, policy: ReleasePolicy, options: ReleaseOptions) -> None:
    """Create `verdicts`: the policy's word on each representative with text, some ten thousand rows at a time."""
    load(con, "verdicts", VERDICTS.empty_table())
    places = query(con, "SELECT file_no, row_no FROM rep WHERE outcome = 'ok' ORDER BY file_no, row_no")
    files, rows = np.asarray(places["file_no"]), np.asarray(places["row_no"]).astype(np.int64)
    held: list[pa.Table] = []
    for number, segment in enumerate(inputs.segments):
        low, high = np.searchsorted(files, (number, number + 1))
        if low < high:
            held.append(_measured(segment, rows[low:high], policy, options))
        last = number + 1 == len(inputs.segments)
        if held and (last or sum(map(len, held)) >= _POLICY_ROWS):
            _run_policy(con, policy, options, pa.concat_tables(held, promote_options="default"))
            held = []


def _measured(segment: Segment, rows: Places, policy: ReleasePolicy, options: ReleaseOptions) -> pa.Table:
    """The signals that the policy and the election read, of one segment's representatives."""
    table = SignalRows(
        segment, sorted({*policy.signals, "language", "language_score", options.quality_signal, options.length_signal})
    ).take(rows)
    if options.quality_signal not in table.column_names:
        return table.append_column(options.quality_signal, pa.nulls(len(table), pa.float64()))
    return table


def _run_policy(con: duckdb.DuckDBPyConnection, policy: ReleasePolicy, options: ReleaseOptions, measured: pa.Table) -> None:
    if measured[options.length_signal].null_count:
        raise StoreError(f"documents without the signal {options.length_signal}", "signals", "run corpus process again")
    con.register("signals", measured)
    try:
        verdicts = query(
            con,
            f'SELECT v.id, v.drop_rule, v.measured, v."limit", v.keep, CAST(m."{options.quality_signal}" AS DOUBLE) AS score,'
            f' CAST(m."{options.length_signal}" AS BIGINT) AS chars'
            f" FROM ({policy.sql('signals')}) v JOIN signals m ON m.id = v.id",
        )
    finally:
        con.unregister("signals")
    if len(verdicts) != len(measured):
        raise CorpusError(f"policy {policy.name} answered {len(verdicts)} of {len(measured)} rows", "export")
    append(con, "verdicts", verdicts.cast(VERDICTS))


_STAGED = """
CREATE TABLE staged AS
SELECT r.*, v.drop_rule, v."measured", v."limit", v.keep, v.score, v.chars, c.access, c.use, c.evidence_digest, c.checked_at, c.stale,
    x.stage, coalesce(x.why, '') AS reason, coalesce(f.refusing_domain, '') AS refusing_domain
FROM rep r
LEFT JOIN verdicts v ON v.id = r.id
LEFT JOIN consent c ON c.url_id = r.url_id
LEFT JOIN covered t ON t.url_id = r.url_id
LEFT JOIN fallen f ON f.url_id = r.url_id,
LATERAL (SELECT CASE
    WHEN r.outcome <> 'ok' THEN struct_pack(stage := 'extracted', why := r.outcome)
    WHEN NOT $all_languages AND coalesce(r.language, 'und') NOT IN (SELECT language FROM wanted)
        THEN struct_pack(stage := 'language', why := 'language')
    WHEN v.drop_rule IS NOT NULL THEN struct_pack(stage := 'quality', why := 'quality')
    WHEN t.url_id IS NOT NULL THEN struct_pack(stage := 'allowed', why := 'taken-down')
    WHEN r.gone AND $drop_gone THEN struct_pack(stage := 'allowed', why := 'gone')
    WHEN c.stale THEN struct_pack(stage := 'allowed', why := 'stale')
    WHEN NOT c.export THEN struct_pack(stage := 'allowed', why := CASE WHEN c.reason = '' THEN 'held' ELSE c.reason END)
    WHEN f.url_id IS NOT NULL THEN struct_pack(stage := 'allowed', why := 'cluster-refused')
    END AS verdict) y,
LATERAL (SELECT y.verdict.stage AS stage, y.verdict.why AS why) x
"""


def _known_reasons(steps: tuple[FunnelStep, ...]) -> None:
    if strange := sorted({code for step in steps for code in step.dropped} - set(REASONS)):
        raise CorpusError(f"dropped for reasons that no table explains: {', '.join(strange)}", "export")


_DECISIONS = """
SELECT a.id, a.url_id, a.url, a.host, a.domain, a.crawl_id, a.fetched_at, a.file_path, a.warc_offset, s.url_id IS NOT NULL AS latest,
    coalesce(s.stage, 'exported') AS stage, coalesce(s.reason, 'older-version') AS reason, s.drop_rule, s."measured", s."limit", s.keep,
    s.access, s.use, s.evidence_digest, s.checked_at, s.stale, s.refusing_domain, s.cluster_id, s.cluster_size, s.center,
    s.similarity, e.keep_id, e.keep_url, a.language, s.chars
FROM facts a
LEFT JOIN staged s ON s.file_no = a.file_no AND s.row_no = a.row_no
LEFT JOIN elected e ON e.cluster_id = s.cluster_id
ORDER BY a.domain, a.url, a.id, a.fetched_at, a.file_path, a.warc_offset, a.file_no, a.row_no
"""


def _write(con: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Write the decisions in fixed slices; returns how many rows are older captures."""
    schema = query(con, f"SELECT * FROM ({_DECISIONS}) LIMIT 0").schema
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=3, write_page_index=True) as writer:
        for table in stream(con, _DECISIONS, _WRITE_ROWS):
            writer.write_table(table, row_group_size=_WRITE_ROWS)
    return count(con, "SELECT (SELECT count(*) FROM facts) - (SELECT count(*) FROM staged)")
