"""Copies that take the place of pages taken down, as rows of a release: chosen by the release's own rule, asked about today.

A copy is promoted only where every statement read so far allows it now, its document is still there, and no order covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.app.consent_views import current_judge
from corpus.app.host_lines import lines_file
from corpus.app.process import map_records
from corpus.app.project import Project
from corpus.app.release import tokenizer_of
from corpus.app.segments import segment_of
from corpus.app.snapshot import Snapshot
from corpus.app.takedown_decided import Candidate
from corpus.export.facts import load_host_lines
from corpus.export.ports import ReleaseOptions, ReleasePolicy, Segment
from corpus.export.rows import RowMaker
from corpus.export.session import load, open_session
from corpus.export.tokens import token_counter
from corpus.store.commits import CommitRecord

_KEPT = ("cluster_id", "cluster_size", "access", "use", "evidence_digest", "checked_at")


def promote(
    project: Project,
    snapshot: Snapshot,
    found: Iterable[Candidate],
    options: ReleaseOptions,
    policy: ReleasePolicy,
    schema: pa.Schema,
    scratch: Path,
) -> pa.Table:
    """One row of `schema` for each cluster that has an allowed copy left."""
    places = _Places(project)
    judge = current_judge(project)
    best: dict[str, tuple[tuple[Any, ...], Candidate, _Place]] = {}
    for candidate in sorted(found, key=places.segment_of):  # segment by segment: each is read once
        place = places.of(candidate)
        if place is None or not judge.row(str(candidate.row["url"]), place.said, place.fetched_at)["export"]:
            continue
        rank = _rank(options.keep, candidate, place.score, str(candidate.row["url"]))
        if candidate.cluster not in best or rank < best[candidate.cluster][0]:
            best[candidate.cluster] = (rank, candidate, place)
    chosen: dict[str, list[tuple[Candidate, int, float | None]]] = {}
    for _, candidate, place in best.values():
        chosen.setdefault(place.segment, []).append((candidate, place.row, place.score))
    if not chosen:
        return schema.empty_table()
    tokens = token_counter(tokenizer_of(project, snapshot))
    maker = RowMaker(schema, policy, tokens, options.batch)
    lines = lines_file(project, snapshot)
    return pa.concat_tables(
        [rows for name, rows_of in sorted(chosen.items()) for rows in _rows(maker, places, name, rows_of, lines, scratch)]
    )


def _rank(keep: str, candidate: Candidate, score: float | None, url: str) -> tuple[Any, ...]:
    """The order of `export.elect`, smallest first."""
    at = candidate.row["fetched_at"].timestamp()
    chars = -int(candidate.row["chars"] or 0)
    first: tuple[Any, ...] = {
        "longest": (chars,), "newest": (-at,), "oldest": (at,), "best": (score is None, -(score or 0.0), chars),
    }[keep]  # fmt: skip
    return (*first, url, candidate.id)


class _Place:
    """Where a candidate's document lies, and what its page said."""

    def __init__(self, segment: str, row: int, said: list[dict[str, Any]], fetched_at: float, score: float | None) -> None:
        self.segment, self.row, self.said, self.fetched_at, self.score = segment, row, said, fetched_at, score


class _Places:
    """Looks candidates up in the family files, segment by segment."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._records: dict[str, CommitRecord] = map_records(project)
        self._held: dict[str, tuple[pa.Table, dict[str, float | None]]] = {}

    def segment_of(self, candidate: Candidate) -> str:
        """`crawl/segment` of a candidate's capture."""
        return f"{candidate.row['crawl_id']}/{segment_of(str(candidate.row['file_path']))}"

    def of(self, candidate: Candidate) -> _Place | None:
        """Where the candidate's document lies now; None when it is not there with a text any more."""
        name = self.segment_of(candidate)
        if name not in self._records:
            return None
        documents, scores = self._segment(name)
        rows = pc.indices_nonzero(
            pc.and_(pc.equal(documents["id"], candidate.id), pc.equal(documents["warc_offset"], candidate.row["warc_offset"]))
        ).to_pylist()
        if not rows or documents["outcome"][rows[0]].as_py() != "ok":
            return None
        at = documents["fetched_at"].cast(pa.int64())[rows[0]].as_py() / 1e6
        return _Place(name, rows[0], documents["evidence"][rows[0]].as_py() or [], at, scores.get(candidate.id))

    def segment(self, name: str) -> Segment:
        """The files of a segment, as the export reads them."""
        files = {path.split("/", 1)[0]: self._project.file(path, digest) for path, digest in self._records[name].outputs.items()}
        return Segment(name, files["documents"], files["signals"], files["spans"])

    def _segment(self, name: str) -> tuple[pa.Table, dict[str, float | None]]:
        if name not in self._held:
            files = self.segment(name)
            columns = ["id", "warc_offset", "outcome", "fetched_at", "evidence"]
            scores: dict[str, float | None] = {}
            signals = pq.ParquetFile(files.signals)
            if "quality_score" in signals.schema_arrow.names:
                table = signals.read(columns=["id", "quality_score"])
                scores = dict(zip(table["id"].to_pylist(), table["quality_score"].to_pylist(), strict=True))
            self._held = {name: (pq.ParquetFile(files.documents).read(columns=columns), scores)}
        return self._held[name]


def _rows(
    maker: RowMaker,
    places: _Places,
    name: str,
    chosen: list[tuple[Candidate, int, float | None]],
    lines: Path | None,
    scratch: Path,
) -> Iterator[pa.Table]:
    """Release rows of one segment's chosen documents."""
    chosen = sorted(chosen, key=lambda item: item[1])
    columns: dict[str, Any] = {column: [candidate.row[column] for candidate, _, _ in chosen] for column in _KEPT}
    kept = pa.table(
        {
            "file_no": np.zeros(len(chosen), dtype=np.int32), "row_no": np.array([row for _, row, _ in chosen], dtype=np.int64),
            "position": np.arange(len(chosen), dtype=np.int64), "score": pa.array([score for _, _, score in chosen], pa.float64()),
            "cluster_size": pa.array(columns.pop("cluster_size"), pa.int64()), "checked_at": pa.array(columns.pop("checked_at"), pa.timestamp("us")),
            **{column: pa.array(values, pa.string()) for column, values in columns.items()},
        }
    )  # fmt: skip
    con = open_session(256 * 2**20, 1, scratch)
    try:
        load(con, "kept", kept)
        load_host_lines(con, lines)
        yield from (rows for _, rows in maker.of_segment(con, 0, places.segment(name)))
    finally:
        con.close()
