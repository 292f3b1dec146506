"""Signals and MinHash against datatrove, datasketch and rensa: the same texts, one process, CPU seconds. Prints a table.

    python -m tests.bench.bench_filters [--texts 200] [--signatures 20000]

Texts are the gold pages of CORPUS_TEST_DATA and the documentation under bench-data, extracted with the fast profile. Tools
that are not installed are left out. datatrove runs FineWeb's published chain and its MinHash signatures; "stopping" ends
at a document's first drop as its pipeline does, "all" measures every text by every filter, as ours does. Near-duplicates are
found among made-up signatures, one in ten a near copy: ours ends in verified clusters, the others in candidates.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corpus.filter.bands import KeyColumns, PairRuns, band_keys, join
from corpus.filter.measure import measured_chunks
from corpus.filter.signatures import U32, VALUES, minhash, shingles, signatures
from corpus.filter.stars import stars
from corpus.filter.verify_pairs import Edges, estimate, verified
from tests.bench.bench_clusters import BANDS, ROWS, THRESHOLD, Sizes, made
from tests.conformance.real_texts import english_texts

ROOT = Path(__file__).resolve().parents[2]
Step = Callable[[list[str]], object]


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    documents: int
    cpu_s: float

    @property
    def per_s(self) -> float:
        return self.documents / self.cpu_s


def ours_all(texts: list[str]) -> object:
    return list(measured_chunks(texts, ["en"] * len(texts)))


def ours_from_shingles(texts: list[str]) -> Step:
    """MinHash alone, its input ready: what datasketch's and rensa's update measures."""
    sets = shingles(texts)
    grams = np.concatenate(sets)
    bounds = np.concatenate(([0], np.cumsum([len(s) for s in sets])))
    return lambda _: signatures(grams, bounds)


def datatrove_steps() -> dict[str, Step]:
    from datatrove.data import Document
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.utils.hashing import HashConfig

    from tests.conformance.datatrove_rules import chain

    hashing = HashConfig(precision=64, hash_fc="sha1")  # its xxhash wrapper does not run with xxhash 4
    config = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8, hash_config=hashing)
    signer = MinhashDedupSignature(output_folder=tempfile.mkdtemp(), config=config)
    filters = chain()

    def run(texts: list[str], *, stopping: bool) -> None:
        for text in texts:
            document = Document(text=text, id="x")
            kept = True
            for step in filters:
                kept = step.filter(document) is True and kept
                if stopping and not kept:
                    break
            if kept or not stopping:
                grams = signer.get_shingles(document.text)
                if len(grams):
                    signer.get_signature(grams)

    return {
        "datatrove filters + MinHash, all": lambda texts: run(texts, stopping=False),
        "datatrove filters + MinHash, stopping": lambda texts: run(texts, stopping=True),
    }


def other_minhash(texts: list[str]) -> dict[str, Step]:
    """datasketch and rensa over ready shingles (as bytes): the signature arithmetic alone."""
    ready = [[int(h).to_bytes(8, "little") for h in s] for s in shingles(texts)]
    found: dict[str, Step] = {}
    if importlib.util.find_spec("datasketch"):
        from datasketch import MinHash

        def sketch(_: list[str]) -> None:
            for grams in ready:
                MinHash(num_perm=112, seed=1, scheme="affine32").update_batch(grams)

        found["datasketch MinHash from shingles"] = sketch
    if importlib.util.find_spec("rensa"):
        from rensa import RMinHash

        words = [[g.hex() for g in grams] for grams in ready]

        def rensa(_: list[str]) -> None:
            for grams in words:
                RMinHash(num_perm=112, seed=1).update(grams)

        found["rensa R-MinHash from shingles"] = rensa
    return found


def our_clusters(table: U32) -> Edges:
    """Band join, estimates and star clusters of signatures, as the dedup stage runs them."""
    rows = np.arange(len(table), dtype=np.int32)
    with tempfile.TemporaryDirectory() as scratch:
        columns = KeyColumns(BANDS, 10**9, Path(scratch))
        columns.append(band_keys(table, BANDS, ROWS))
        candidates = PairRuns(len(table), 10**9, Path(scratch), "pairs")
        for pairs in join(columns, rows, 10**9):
            candidates.add(pairs)
        edges = Edges.gather(verified(candidates, lambda pairs: estimate(table, rows, pairs), THRESHOLD))
        stars(len(table), edges, np.ones(len(table), dtype=np.int64))
    return edges


def near_duplicates(number: int) -> dict[str, Callable[[], object]]:
    """Finding the near copies among `number` signatures: ours, datasketch's LSH and rensa's, bands and rows alike."""
    blocks = Sizes(number, 24, 0, False)
    sets = np.concatenate([made(block, blocks) for block in range(-(-number // 50_000))])
    table = signatures(sets.reshape(-1), np.arange(number + 1, dtype=np.int64) * 24)
    steps: dict[str, Callable[[], object]] = {"corpus clusters of signatures": lambda: our_clusters(table)}
    if importlib.util.find_spec("datasketch"):
        from datasketch import MinHash, MinHashLSH

        sketches = [MinHash(num_perm=VALUES, seed=1, scheme="affine32", hashvalues=row) for row in table]

        def lsh() -> object:
            index = MinHashLSH(num_perm=VALUES, params=(BANDS, ROWS))
            found = []
            for at, sketch in enumerate(sketches):
                found.append(index.query(sketch))
                index.insert(at, sketch)
            return found

        steps["datasketch MinHashLSH, query and insert"] = lsh
    if importlib.util.find_spec("rensa"):
        from rensa import RMinHash, RMinHashLSH

        own = []
        for row in sets:
            sketch = RMinHash(num_perm=VALUES, seed=1)
            sketch.update([f"{value:x}" for value in row.tolist()])
            own.append(sketch)

        def rensa() -> object:
            index = RMinHashLSH(threshold=THRESHOLD, num_perm=VALUES, num_bands=BANDS)
            found = []
            for at, sketch in enumerate(own):
                found.append(index.query(sketch))
                index.insert(at, sketch)
            return found

        steps["rensa RMinHashLSH, query and insert"] = rensa
    return steps


def timed(name: str, step: Step, texts: list[str]) -> Row:
    begin = time.process_time()
    step(texts)
    return Row(name, len(texts), time.process_time() - begin)


def run(number: int, number_of_signatures: int) -> list[Row]:
    """One row a tool; ours first."""
    data = Path(os.environ.get("CORPUS_TEST_DATA", ROOT.parent / "shared" / "data"))
    texts = english_texts(data, ROOT / "bench-data" / "tree", number)
    ours_all(texts[:3])
    steps: dict[str, Step] = {"corpus all signals + spans + MinHash": ours_all, "corpus MinHash from text": minhash}
    steps["corpus MinHash from shingles"] = ours_from_shingles(texts)
    if importlib.util.find_spec("datatrove"):
        trove = datatrove_steps()
        for step in trove.values():
            step(texts[:1])  # loads its tokeniser
        steps |= trove
    steps |= other_minhash(texts)
    rows = [timed(name, step, texts) for name, step in steps.items()]
    print(f"{len(texts)} texts of {sum(len(t.split()) for t in texts) / len(texts):.0f} words (white space) on average")
    for row in rows:
        print(f"{row.name:40} {row.per_s:9.1f} documents/CPU-s   {rows[0].per_s / row.per_s:7.1f} x slower than the first")
    print(f"{number_of_signatures} signatures of {VALUES} values")
    found = []
    for name, step in near_duplicates(number_of_signatures).items():
        begin = time.process_time()
        step()
        found.append(Row(name, number_of_signatures, time.process_time() - begin))
        print(
            f"{name:40} {1e6 / found[-1].per_s:9.2f} CPU-us a document   {found[0].per_s / found[-1].per_s:7.1f} x slower than the first"
        )
    return rows + found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--signatures", type=int, default=20_000)
    given = parser.parse_args()
    run(given.texts, given.signatures)
