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
from corpus.export.facts import choose_representatives, facts_in, load_facts, stand_apart
from corpus.export.funnel import check, funnel
from corpus.export.measured import Places, SignalRows, reduced_signals, require_signals, with_reduced
from corpus.export.ports import HOST_LINE, ConsentJudge, ReleaseOptions, ReleasePolicy, Segment, SnapshotInputs
from corpus.export.refusals import fall, losses
from corpus.export.session import append, count, load, query, stream
from corpus.export.tombstones import cover
from corpus.export.versions import judge_versions, load_versions
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
    versions: FunnelStep | None = None
    """The line of older versions, where the release takes major ones."""

    @property
    def rows(self) -> int:
        """Rows of the release: what the funnel brings out, and older versions."""
        return self.funnel[-1].n_out + (self.versions.n_out if self.versions else 0)


def decide(
    con: duckdb.DuckDBPyConnection,
    inputs: SnapshotInputs,
    judge: ConsentJudge,
    policy: ReleasePolicy,
    options: ReleaseOptions,
    path: Path,
) -> Decisions:
    """Decide every row and write `path`. Leaves the view `released` behind, for the plan; then `forget` it."""
    load_facts(con, inputs)
    if HOST_LINE in policy.cut and inputs.host_lines is None:
        raise StoreError("the policy cuts host lines, and they were not measured", policy.name, "set filter.host_line_pages")
    reduced = reduced_signals(con)
    require_signals(inputs.segments, {*policy.signals, options.length_signal}.difference(reduced))
    choose_representatives(con, str(inputs.clusters))
    load_versions(con, inputs.versions)
    stand_apart(con)
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
    versions = _versions(con, options)
    facts_in(con, "staged")
    for table in ("rep", "clusters", "pairs", "verdicts", "consent"):  # all that is still asked for stands in `staged`
        con.execute(f"DROP TABLE {table}")
    _known_reasons((*steps, *([versions] if versions else [])))
    older = _write(con, path)
    rules = dict(con.execute("SELECT drop_rule, count(*) FROM staged WHERE reason = 'quality' GROUP BY 1 ORDER BY 1").fetchall())
    consent = dict(con.execute("SELECT use, count(*) FROM released WHERE reason = '' GROUP BY 1 ORDER BY 1").fetchall())
    return Decisions(steps, rules, losses(con), consent, older, path, versions)


def forget(con: duckdb.DuckDBPyConnection) -> None:
    """Give the memory of the decisions back: they are written, and what is kept stands in `kept`."""
    con.execute("DROP VIEW released")
    con.execute("DROP VIEW facts")
    for table in ("staged", "older_staged", "elected", "superseded"):
        con.execute(f"DROP TABLE {table}")


def _versions(con: duckdb.DuckDBPyConnection, options: ReleaseOptions) -> FunnelStep | None:
    """Judge the older versions (there are none unless the release wants them)."""
    drop = {"drop_gone": options.gone == "drop", "fall": options.cluster == "drop"}
    step = judge_versions(con, all_languages=not options.languages, **drop)
    return step if options.versions == "major" else None


def apply_policy(con: duckdb.DuckDBPyConnection, inputs: SnapshotInputs, policy: ReleasePolicy, options: ReleaseOptions) -> None:
    """Create `verdicts`: the policy's word on each representative with text, some ten thousand rows at a time."""
    load(con, "verdicts", VERDICTS.empty_table())
    places = query(
        con,
        "SELECT file_no, row_no FROM (SELECT file_no, row_no FROM rep WHERE outcome = 'ok' UNION ALL SELECT file_no, row_no FROM older)"
        " ORDER BY file_no, row_no",
    )
    files, rows = np.asarray(places["file_no"]), np.asarray(places["row_no"]).astype(np.int64)
    held: list[pa.Table] = []
    for number, segment in enumerate(inputs.segments):
        low, high = np.searchsorted(files, (number, number + 1))
        if low < high:
            held.append(_measured(segment, rows[low:high], policy, options))
        last = number + 1 == len(inputs.segments)
        if held and (last or sum(map(len, held)) >= _POLICY_ROWS):
            measured = pa.concat_tables(held, promote_options="default")
            _run_policy(con, policy, options, with_reduced(con, measured, policy.signals))
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
WITH decided AS (
    SELECT *, true AS latest FROM staged
    UNION ALL BY NAME SELECT *, false AS latest FROM older_staged
    UNION ALL BY NAME SELECT *, false AS latest FROM superseded ANTI JOIN older_staged USING (file_no, row_no)
)
SELECT a.id, a.url_id, a.url, a.host, a.domain, a.crawl_id, a.fetched_at, a.file_path, a.warc_offset, a.latest,
    coalesce(a.stage, 'exported') AS stage, coalesce(a.reason, 'older-version') AS reason, a.drop_rule, a."measured", a."limit", a.keep,
    a.access, a.use, a.evidence_digest, a.checked_at, a.stale, a.refusing_domain, a.cluster_id, a.cluster_size, a.center,
    a.similarity, CASE WHEN a.latest AND a.cluster_size = 1 AND a.reason = '' THEN a.id ELSE e.keep_id END AS keep_id,
    CASE WHEN a.latest AND a.cluster_size = 1 AND a.reason = '' THEN a.url ELSE e.keep_url END AS keep_url, a.language, a.chars
FROM decided a
LEFT JOIN elected e ON a.latest AND e.cluster_id = a.cluster_id
ORDER BY a.domain, a.url, a.id, a.fetched_at, a.file_path, a.warc_offset, a.file_no, a.row_no
"""


def _write(con: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Write the decisions in fixed slices; returns how many rows are older captures."""
    schema = query(con, f"SELECT * FROM ({_DECISIONS}) LIMIT 0").schema
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=3, write_page_index=True) as writer:
        for table in stream(con, _DECISIONS, _WRITE_ROWS):
            writer.write_table(table, row_group_size=_WRITE_ROWS)
    return count(con, "SELECT count(*) FROM superseded")
