"""The versions of each page: which older ones differ so much from what came after that they are documents of their own.

From the version that stands for a URL backwards: an older version is `major` when its similarity to the next newer major
one (or the newest) is under the near-duplicate threshold, else `minor`. Similarities are estimates from MinHash, with a
standard error of about 0.04. Major versions are also compared with the pages of all other URLs. Never decides what is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.filter.bands import KeyColumns, PairRuns, Pairs, Rows, band_keys, join
from corpus.filter.hex_ids import to_hex
from corpus.filter.representatives import Facts, Places, read_facts, representatives
from corpus.filter.settings import DedupSettings
from corpus.filter.verify_pairs import estimate, split, verified

VERSIONS = pa.schema(
    [
        ("id", pa.string()),
        ("url_id", pa.string()),
        ("change", pa.string()),
        ("similarity", pa.float64()),
        ("visited_at", pa.timestamp("us")),
        ("like", pa.list_(pa.string())),
    ]
)
"""One row per older version with text, sorted by (url_id, visited_at descending, id). `similarity` is to the newer version it
was compared with (null: that has no text); `visited_at` its latest visit; `like` the ids it is a near duplicate of."""
MINOR, MAJOR = "minor", "major"
_TEXT = 0
_BATCH = 16_384
_SLICE = 65_536

Signatures = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class _Chains:
    """Older versions in the order of the file: `rows` are their first captures with text, `newest[i]` the row that stands for
    the URL, `first[i]` whether a new URL begins, `visited[i]` the latest visit."""

    rows: Places
    newest: Places
    first: npt.NDArray[np.bool_]
    visited: Places


def write_versions(
    documents: Sequence[Path], signatures: Sequence[Path], settings: DedupSettings, out: Path, *, scratch: Path
) -> int:
    """Write the versions of a snapshot; returns how many are major. `documents[i]` and `signatures[i]` are of one segment.

    Costs memory for the facts of all rows and 450 bytes per version of a page that changed; `scratch` takes what is more.
    """
    facts = read_facts(documents)
    chosen = representatives(facts)
    chains = _chains(facts, chosen)
    wanted = np.unique(np.concatenate((chains.rows, chains.newest)))
    table, said = _gather(facts, signatures, wanted, settings.bands * settings.rows)
    similarity, major = _walk(facts, chains, wanted, table, said, settings.threshold)
    like = _alike(facts, signatures, chosen, chains.rows[major], settings, scratch)
    _write(facts, chains, similarity, major, like, out)
    return int(major.sum())


def _chains(facts: Facts, chosen: Places) -> _Chains:
    """Older versions, by URL and from the latest visit backwards."""
    order = np.lexsort((np.arange(len(facts.at)), facts.at, facts.id[:, 1], facts.id[:, 0], facts.url[:, 1], facts.url[:, 0]))
    url, ident = facts.url[order], facts.id[order]
    new_url = _starts(url)
    version = np.cumsum(new_url | _starts(ident)) - 1  # of each row: the number of its (URL, id)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    number_of_url = np.cumsum(new_url) - 1
    newest = np.empty(int(number_of_url[-1]) + 1 if len(order) else 0, dtype=np.int64)
    newest[number_of_url[place[chosen]]] = chosen
    is_text = facts.kind[order] == _TEXT
    texts = np.flatnonzero(is_text)
    first_text = texts[np.unique(version[texts], return_index=True)[1]]  # the first capture with text of each version
    last = np.append(np.flatnonzero(np.diff(version)), len(order) - 1) if len(order) else texts
    older = first_text[(ident[first_text] != facts.id[newest[number_of_url[first_text]]]).any(axis=1)]
    visited = facts.at[order[last[version[older]]]]
    by = np.lexsort((ident[older, 1], ident[older, 0], -visited, url[older, 1], url[older, 0]))
    older, visited = older[by], visited[by]
    return _Chains(order[older], newest[number_of_url[older]], _starts(url[older]), visited)


def _starts(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Where a value differs from the one before."""
    new = np.ones(len(words), dtype=bool)
    new[1:] = (words[1:] != words[:-1]).any(axis=1)
    return new


def _batches(facts: Facts, files: Sequence[Path], width: int) -> Iterator[tuple[Places, Signatures, npt.NDArray[np.bool_]]]:
    """(documents rows, signatures, whether there was a shingle) of every row with text."""
    for at, path in enumerate(files):
        rows = np.flatnonzero(facts.kind[facts.starts[at] : facts.starts[at + 1]] == _TEXT) + facts.starts[at]
        done = 0
        for batch in pq.ParquetFile(path).iter_batches(batch_size=_BATCH, columns=["minhash", "shingle_count"]):
            values = np.asarray(batch.column("minhash").flatten(), dtype=np.uint32).reshape(len(batch), -1)[:, :width]
            yield rows[done : done + len(batch)], values, np.asarray(batch.column("shingle_count")) > 0
            done += len(batch)


def _gather(facts: Facts, files: Sequence[Path], wanted: Places, width: int) -> tuple[Signatures, npt.NDArray[np.bool_]]:
    """Signatures of some rows, in their order, and which of them say anything."""
    table, said = np.zeros((len(wanted), width), dtype=np.uint32), np.zeros(len(wanted), dtype=bool)
    if not len(wanted):
        return table, said
    for rows, values, there in _batches(facts, files, width):
        low, high = np.searchsorted(wanted, (rows[0], rows[-1] + 1)) if len(rows) else (0, 0)
        if low < high:
            at = np.searchsorted(rows, wanted[low:high])
            hit = rows[np.minimum(at, len(rows) - 1)] == wanted[low:high]
            slots = np.arange(low, high)[hit]
            table[slots], said[slots] = values[at[hit]], there[at[hit]]
    return table, said


def _walk(
    facts: Facts, chains: _Chains, wanted: Places, table: Signatures, said: npt.NDArray[np.bool_], threshold: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The similarity of each older version to the newer one it is measured against (NaN: that one has no text), and who is major."""
    similarity, major = np.full(len(chains.rows), np.nan), np.zeros(len(chains.rows), dtype=bool)
    slots, newest = np.searchsorted(wanted, chains.rows), np.searchsorted(wanted, chains.newest)
    against = -1
    for at, (row, slot) in enumerate(zip(chains.rows.tolist(), slots.tolist(), strict=True)):
        if chains.first[at]:
            against = int(newest[at]) if facts.kind[chains.newest[at]] == _TEXT else -1
        if against >= 0:
            same = bool((facts.text[row] == facts.text[wanted[against]]).all())
            known = bool(said[slot] and said[against])
            similarity[at] = 1.0 if same else np.count_nonzero(table[slot] == table[against]) / table.shape[1] if known else 0.0
        if against < 0 or similarity[at] < threshold:
            major[at], against = True, slot
    return similarity, major


def _alike(
    facts: Facts, files: Sequence[Path], chosen: Places, majors: Places, settings: DedupSettings, scratch: Path
) -> dict[int, list[int]]:
    """Documents rows that each major version is a near duplicate of, among the pages that stand for URLs and the other majors."""
    found: dict[int, list[int]] = {}
    if not len(majors):
        return found
    width = settings.bands * settings.rows
    own, said = _gather(facts, files, np.sort(majors), width)
    rows, values = [np.sort(majors)[said]], [own[said]]
    keys = [np.unique(column) for column in band_keys(values[0], settings.bands, settings.rows)]
    stands = np.zeros(len(facts.at), dtype=bool)
    stands[chosen] = True
    for part, block, there in _batches(facts, files, width):
        near = np.zeros(len(part), dtype=bool)
        for band, column in enumerate(band_keys(block, settings.bands, settings.rows)):
            near |= np.isin(column, keys[band])
        near &= there & stands[part]
        rows.append(part[near])
        values.append(block[near])
    table, row = np.concatenate(values), np.concatenate(rows)
    rank = np.lexsort((facts.id[row, 1], facts.id[row, 0]))  # numbers in the order of ids, as every join of ours has them
    table, row = table[rank], row[rank]
    is_major = np.isin(row, majors)
    for a, b in _verified(table, is_major, settings, scratch):
        for one, other in ((a, b), (b, a)):
            if is_major[one]:
                found.setdefault(int(row[one]), []).append(int(row[other]))
    return found


def _verified(
    table: Signatures, is_major: npt.NDArray[np.bool_], settings: DedupSettings, scratch: Path
) -> Iterator[tuple[int, int]]:
    """Pairs of near duplicates of which at least one is major."""
    columns = KeyColumns(settings.bands, settings.memory // 8, scratch)
    for start in range(0, len(table), _BATCH):
        columns.append(band_keys(table[start : start + _BATCH], settings.bands, settings.rows))
    numbers: Rows = np.arange(len(table), dtype=np.int32)
    candidates = PairRuns(len(table), settings.memory // 8, scratch, "versions")
    for pairs in join(columns, numbers, settings.memory // 2):
        a, b = split(pairs)
        candidates.add(pairs[is_major[a] | is_major[b]])

    def judge(pairs: Pairs) -> npt.NDArray[np.float64]:
        return estimate(table, numbers, pairs)

    for pairs, _ in verified(candidates, judge, settings.threshold):
        a, b = split(pairs)
        yield from zip(a.tolist(), b.tolist(), strict=True)


def _write(
    facts: Facts,
    chains: _Chains,
    similarity: npt.NDArray[np.float64],
    major: npt.NDArray[np.bool_],
    like: dict[int, list[int]],
    out: Path,
) -> None:
    with pq.ParquetWriter(out, VERSIONS, compression="zstd", compression_level=3, write_page_index=True) as writer:
        for start in range(0, max(len(chains.rows), 1), _SLICE):
            part = slice(start, start + _SLICE)
            rows = chains.rows[part]
            alike = [like.get(row, []) for row in rows.tolist()]
            names = to_hex(facts.id[np.array([row for some in alike for row in some], dtype=np.int64)]).to_pylist()
            cuts = np.cumsum([0, *map(len, alike)]).tolist()
            columns = [
                to_hex(facts.id[rows]),
                to_hex(facts.url[rows]),
                pa.array(np.where(major[part], MAJOR, MINOR).astype(object), pa.string()),
                pa.array(similarity[part], mask=np.isnan(similarity[part])),
                pa.array(chains.visited[part], pa.timestamp("us")),
                pa.array([sorted(names[a:b]) for a, b in itertools.pairwise(cuts)], pa.list_(pa.string())),
            ]
            writer.write_table(pa.table(columns, schema=VERSIONS), row_group_size=_SLICE)
