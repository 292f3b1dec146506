"""Signals and MinHash against datatrove, datasketch and rensa: the same texts, one process, CPU seconds. Prints a table.

    python -m tests.bench.bench_filters [--texts 200]

Texts are the gold pages of CORPUS_TEST_DATA and the documentation under bench-data, extracted with the fast profile. Tools
that are not installed are left out. datatrove runs FineWeb's published chain and its MinHash signatures; "stopping" ends
at a document's first drop as its pipeline does, "all" measures every text by every filter, as ours does.
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

from corpus.filter.measure import measured_chunks
from corpus.filter.signatures import minhash, shingles, signatures
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
    import numpy as np

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


def timed(name: str, step: Step, texts: list[str]) -> Row:
    begin = time.process_time()
    step(texts)
    return Row(name, len(texts), time.process_time() - begin)


def run(number: int) -> list[Row]:
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
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=200)
    run(parser.parse_args().texts)
