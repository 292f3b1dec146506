"""Clusters of a whole snapshot: families in, `clusters.parquet` out, in bounded memory and the same bytes for any sharding.

One representative per URL, before any policy. Texts are read again only for candidate pairs, and only to verify them.
Never decides which copy is kept; holds no document text longer than a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from corpus.errors import StoreError
from corpus.filter.bands import KeyColumns, PairRuns, Pairs, Rows, band_keys, join, salted
from corpus.filter.cluster_file import Grouping, write_clusters, write_pairs
from corpus.filter.hex_ids import to_words
from corpus.filter.numbering import Nodes, Numbering, distinct_texts
from corpus.filter.representatives import Facts, Places, linked_copies, originals, read_facts, representatives, with_text
from corpus.filter.settings import DedupSettings
from corpus.filter.stars import stars
from corpus.filter.verify_pairs import (
    Edges,
    ShingleFile,
    Shingles,
    Similarity,
    estimate,
    exact,
    give_back,
    prefilter,
    slack,
    split,
    verified,
)

MakeShingles = Callable[[Sequence[str]], Sequence[Shingles]]
PairSource = Callable[[Numbering], Iterable[Pairs]]
"""Candidate pairs of numbered documents, in any order and with repeats."""

_TEXT_BATCH = 256
_SIGNATURE_BATCH = 16_384


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """Counts of one clustering: representatives with text, distinct texts, linked copies, clusters, and pairs judged."""

    documents: int
    texts: int
    linked: int
    clusters: int
    candidates: int
    verified: int


def cluster_snapshot(
    documents: Sequence[Path],
    signatures: Sequence[Path],
    settings: DedupSettings,
    out_path: Path,
    *,
    scratch: Path,
    shingles: MakeShingles | None = None,
    pairs_path: Path | None = None,
    pairs: PairSource | None = None,
) -> ClusterSummary:
    """Cluster the snapshot's documents and write `out_path` (and the verified pairs inside clusters to `pairs_path`).

    `documents[i]` and `signatures[i]` are the files of the i-th segment; `scratch` is an empty folder on local disk for
    at most about 600 bytes a document. With `shingles` (text to 64-bit shingles) pairs are verified exactly. With
    `settings.scope == "crawl"` only documents of one crawl are compared. With `pairs` the candidates come from there (tasks
    elsewhere joined the bands, `join_files`); else they are joined here.
    Raises StoreError when the families do not belong together.
    """
    if len(documents) != len(signatures):
        raise StoreError(f"{len(documents)} documents files but {len(signatures)} signatures files", str(out_path))
    facts = read_facts(documents)
    chosen = representatives(facts)
    texts, copies = with_text(facts, chosen), linked_copies(facts, chosen)
    del chosen
    original, named = originals(facts, texts, copies)
    facts = facts.without_urls()
    nodes = distinct_texts(facts, texts, apart=settings.scope == "crawl")
    facts = facts.without_texts()
    table, columns, node_of_slot = _signatures(facts, signatures, nodes, settings, scratch, keyed=pairs is None)
    slot_of = np.full(len(nodes.heads), -1, dtype=np.int32)
    slot_of[node_of_slot] = np.arange(len(node_of_slot), dtype=np.int32)
    candidates = PairRuns(len(nodes.heads), settings.memory // 8, scratch, "pairs")
    for found in join(columns, node_of_slot, settings.memory // 2) if pairs is None else pairs(Numbering.of(facts, nodes)):
        candidates.add(_one_crawl(found, nodes) if settings.scope == "crawl" else found)
    judge = _Judge(table, slot_of, settings.threshold)
    if shingles is None:
        edges = Edges.gather(verified(candidates, judge.by_estimate, settings.threshold))
    else:
        sets = ShingleFile(scratch / "shingles.u64", len(nodes.heads))
        likely = PairRuns(len(nodes.heads), settings.memory // 8, scratch, "likely")
        try:
            edges = _exactly(judge, candidates, _Texts(documents, facts, nodes, shingles), sets, likely)
        finally:
            sets.close()
    centre = stars(len(nodes.heads), edges, np.bincount(nodes.node_of, minlength=len(nodes.heads)))
    grouping = Grouping(facts, texts, copies, original, named, nodes.node_of, nodes.heads, centre, edges)
    clusters = write_clusters(grouping, out_path)
    if pairs_path is not None:
        write_pairs(grouping, pairs_path)
    return ClusterSummary(len(texts), len(nodes.heads), len(copies), clusters, judge.judged, len(edges.a))


def _signatures(
    facts: Facts, files: Sequence[Path], nodes: Nodes, settings: DedupSettings, scratch: Path, *, keyed: bool
) -> tuple[npt.NDArray[np.uint32], KeyColumns, Rows]:
    """The signature table, its band keys (where `keyed`), and the node of each of its rows. Texts too short for a shingle have no row."""
    width = settings.bands * settings.rows
    columns = KeyColumns(settings.bands, settings.memory // 8, scratch)
    node_of_slot = np.empty(len(nodes.heads), dtype=np.int32)
    used = 0
    table = _table(len(nodes.heads), width, settings.memory // 4, scratch)
    schemes: set[str] = set()
    for at, source in enumerate(files):
        rows = np.flatnonzero(facts.kind[facts.starts[at] : facts.starts[at + 1]] == 0) + facts.starts[at]
        for part, values in _aligned(source, rows, facts, width, schemes):
            node = nodes.node_of_row[part]
            chosen = node >= 0
            block, node = (values, node) if chosen.all() else (values[chosen], node[chosen])
            if keyed:
                columns.append(salted(band_keys(block, settings.bands, settings.rows), nodes.crawl[node]))
            table[used : used + len(block)] = block
            node_of_slot[used : used + len(block)] = node
            used += len(block)
            give_back(table)
    if len(schemes) > 1:
        raise StoreError(
            f"signatures of several schemes: {', '.join(sorted(schemes))}", str(files[0]), "run corpus process again"
        )
    return table, columns, node_of_slot[:used]


def _table(rows: int, width: int, memory: int, scratch: Path) -> npt.NDArray[np.uint32]:
    """Room for the signatures: in memory, or a file of the scratch folder where they would fill the budget."""
    if rows * width * 4 <= memory:
        return np.empty((rows, width), dtype=np.uint32)
    return np.memmap(scratch / "signatures.u32", dtype=np.uint32, mode="w+", shape=(rows, width))


def _aligned(
    source: Path, rows: Places, facts: Facts, width: int, schemes: set[str]
) -> Iterator[tuple[Places, npt.NDArray[np.uint32]]]:
    """Batches (documents rows, signatures) of one file, checked id by id against its documents file."""
    at = 0
    for batch in pq.ParquetFile(source).iter_batches(batch_size=_SIGNATURE_BATCH):
        part = rows[at : at + len(batch)]
        at += len(batch)
        ids = to_words(batch.column("id"), 32, str(source))
        if len(part) != len(batch) or (ids != facts.id[part]).any():
            raise StoreError("signatures and documents differ in their rows", str(source), "run corpus verify --repair")
        schemes.update(batch.column("scheme").unique().to_pylist())
        values = np.asarray(batch.column("minhash").flatten(), dtype=np.uint32).reshape(len(batch), -1)
        if values.shape[1] < width:
            raise StoreError(
                f"{values.shape[1]} signature values, {width} asked for", str(source), "lower dedup.bands or dedup.rows"
            )
        said = np.asarray(batch.column("shingle_count")) > 0
        yield (part, values[:, :width]) if said.all() else (part[said], values[said, :width])
    if at != len(rows):
        raise StoreError("signatures and documents differ in their rows", str(source), "run corpus verify --repair")


def _one_crawl(pairs: Pairs, nodes: Nodes) -> Pairs:
    """Salted keys may still collide: only the crawl itself tells."""
    a, b = split(pairs)
    alike: Pairs = pairs[nodes.crawl[a] == nodes.crawl[b]]
    return alike


class _Judge:
    """Estimates pairs from the signature table, and counts what it judged."""

    def __init__(self, table: npt.NDArray[np.uint32], slot_of: Rows, threshold: float) -> None:
        self.table, self.slot_of, self.threshold = table, slot_of, threshold
        self.judged = 0

    def by_estimate(self, pairs: Pairs) -> Similarity:
        self.judged += len(pairs)
        return estimate(self.table, self.slot_of, pairs)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Where texts are read again, and how they are shingled."""

    documents: Sequence[Path]
    facts: Facts
    nodes: Nodes
    make: MakeShingles


def _exactly(judge: _Judge, candidates: PairRuns, texts: _Texts, sets: ShingleFile, likely: PairRuns) -> Edges:
    """Edges by exact Jaccard: the estimate refuses the hopeless, the texts of the rest are shingled once, in file order."""
    wanted = np.zeros(len(texts.nodes.heads), dtype=bool)
    floor = judge.threshold - slack(judge.threshold, max(judge.table.shape[1], 1))

    def hopeful(pairs: Pairs) -> npt.NDArray[np.bool_]:
        passed = judge.by_estimate(pairs) >= floor
        for row in split(pairs[passed]):
            wanted[row] = True
        return passed

    prefilter(candidates, likely, hopeful)
    for at, path in enumerate(texts.documents):
        of_file = slice(texts.facts.starts[at], texts.facts.starts[at + 1])
        _shingle_file(path, texts.nodes.node_of_row[of_file], wanted, texts.make, sets)
    return Edges.gather(verified(likely, lambda pairs: exact(pairs, sets.sizes, sets.read, judge.threshold), judge.threshold))


def _shingle_file(path: Path, node_of_row: Rows, wanted: npt.NDArray[np.bool_], make: MakeShingles, sets: ShingleFile) -> None:
    """Shingle one documents file's candidates, reading only the row groups that hold any."""
    need = np.flatnonzero((node_of_row >= 0) & wanted[np.maximum(node_of_row, 0)]) if len(wanted) else np.empty(0, dtype=np.int64)
    if not len(need):
        return
    source = pq.ParquetFile(path)
    start = 0
    for group in range(source.num_row_groups):
        stop = start + source.metadata.row_group(group).num_rows
        here = need[(need >= start) & (need < stop)]
        if len(here):
            column = source.read_row_group(group, columns=["text"])["text"]
            for low in range(0, len(here), _TEXT_BATCH):
                rows = here[low : low + _TEXT_BATCH]
                sets.write(node_of_row[rows], make(column.take(rows - start).to_pylist()))
        start = stop
