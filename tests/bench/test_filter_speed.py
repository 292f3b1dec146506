"""A floor under the map stage's speed, far below what it does: it fails on an accidental per-word loop, not on a busy machine."""

from __future__ import annotations

import random
import time

from corpus.filter.measure import measure
from corpus.filter.signatures import minhash


def _texts(number: int, words: int) -> list[str]:
    rng = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgk"
    lexicon = ["".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(4000)]
    weights = [1 / (rank + 2) for rank in range(len(lexicon))]
    texts = []
    for _ in range(number):
        picked = rng.choices(lexicon, weights, k=words)
        lines = [" ".join(picked[i : i + 25]).capitalize() + "." for i in range(0, words, 25)]
        texts.append("\n".join(lines))
    return texts


def test_signals_and_signatures_keep_their_pace() -> None:
    """1,000-word documents: more than 100 a CPU-second with all signals, more than 500 with MinHash alone."""
    texts = _texts(60, 1000)
    measure(texts[:2], ["en"] * 2)
    begin = time.process_time()
    measure(texts, ["en"] * len(texts))
    every = len(texts) / (time.process_time() - begin)
    begin = time.process_time()
    minhash(texts)
    alone = len(texts) / (time.process_time() - begin)
    print(f"all signals and MinHash: {every:.0f} documents/CPU-s; MinHash from text: {alone:.0f}")
    assert every > 100
    assert alone > 500
