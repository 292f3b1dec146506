"""Gold sets → `corpus/filter/models/blocks-1.npz`: the one command of `training/extraction/README.md`.

Only pages outside the held-back third are read. Everything is seeded; the same data and library versions give the same
file. Scores of names and of the first forest that later steps train on always come from models that did not see the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from catboost import CatBoostClassifier, Pool

from corpus.filter.blocks.context import context
from corpus.filter.blocks.features import Arrays, features
from corpus.filter.blocks.model import ONE, Forest, dump
from training.extraction import names
from training.extraction.gold import FOLDS, load
from training.extraction.sample import Sample, sample_of

LEAF_SCALE = 1 << 16
FIRST = {"iterations": 300, "depth": 4, "learning_rate": 0.06, "l2_leaf_reg": 3.0}
SECOND = {"iterations": 150, "depth": 4, "learning_rate": 0.05, "l2_leaf_reg": 10.0}
Table = npt.NDArray[np.float32]


def fit(tables: list[Table], samples: list[Sample], settings: dict[str, Any]) -> CatBoostClassifier:
    """Trees over the samples' blocks; tables are [column, block]."""
    model = CatBoostClassifier(
        loss_function="CrossEntropy", random_seed=1, thread_count=2, verbose=0, allow_writing_files=False,
        bootstrap_type="Bernoulli", subsample=0.7, rsm=0.3, **settings,
    )  # fmt: skip
    share = np.concatenate([sample.labels.share for sample in samples])
    weight = np.concatenate([sample.labels.weight for sample in samples])
    model.fit(Pool(np.hstack(tables).T, share, weight=100 * weight))
    return model


def forest(model: CatBoostClassifier, columns: list[str]) -> Forest:
    """The trees as arrays, leaves in 1/LEAF_SCALE of a log odd."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        raw = json.loads(path.read_text())
    scale, (bias, *_) = raw["scale_and_bias"]
    trees, levels = raw["oblivious_trees"], model.get_all_params()["depth"]
    column, border = np.zeros((levels, len(trees)), np.int64), np.full((levels, len(trees)), np.inf)
    leaf = np.zeros((len(trees), 1 << levels), np.int64)
    for at, tree in enumerate(trees):
        for level, split in enumerate(tree["splits"]):
            column[level, at], border[level, at] = split["float_feature_index"], split["border"]
        values = np.rint(np.array(tree["leaf_values"]) * scale * LEAF_SCALE).astype(np.int64)
        leaf[at, : len(values)] = values
    leaf[0] += round(bias * LEAF_SCALE)
    odds = (np.arange(ONE) + 0.5) / ONE
    cut = np.rint(np.log(odds / (1 - odds)) * LEAF_SCALE).astype(np.int64)
    return Forest(tuple(columns), column, border, leaf, cut)


def tables(sample: Sample, scores: names.Scores) -> tuple[Arrays, list[str], Table]:
    arrays = Arrays(sample.found, *names.node_scores(sample, scores))
    columns, table = features(arrays, sample.title)
    return arrays, columns, table.astype(np.float32)


def train(samples: list[Sample]) -> tuple[names.Scores, tuple[Forest, Forest]]:
    """Names, first forest, second forest."""
    folds = [[sample for sample in samples if sample.page.fold == fold] for fold in range(FOLDS)]
    rest = [[sample for sample in samples if sample.page.fold != fold] for fold in range(FOLDS)]
    with ProcessPoolExecutor(2) as pool:
        *partial, scores = pool.map(names.learn, [*rest, samples])
    looked = {id(sample): tables(sample, partial[sample.page.fold]) for sample in samples}
    columns = looked[id(samples[0])][1]
    first = forest(fit([looked[id(sample)][2] for sample in samples], samples, FIRST), columns)
    contexts, order = [], []
    for fold in range(FOLDS):
        part = forest(fit([looked[id(sample)][2] for sample in rest[fold]], rest[fold], FIRST), columns)
        for sample in folds[fold]:
            arrays, _, table = looked[id(sample)]
            second_columns, second = context(arrays, part.scores(table.astype(np.float64)))
            contexts.append(second.astype(np.float32))
            order.append(sample)
    return scores, (first, forest(fit(contexts, order, SECOND), second_columns))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the gold sets (default: CORPUS_TEST_DATA/extraction)")
    parser.add_argument("--out", type=Path, default=Path("corpus/filter/models/blocks-1.npz"))
    parser.add_argument("--all", action="store_true", help="train on the held-back third too: its scores then say nothing")
    options = parser.parse_args()
    pages = [page for page in load(options.data) if options.all or not page.held]
    with ProcessPoolExecutor(2) as pool:
        samples = [sample for sample in pool.map(sample_of, pages, chunksize=8) if sample]
    raw = dump(*train(samples))
    options.out.write_bytes(raw)
    print(f"{len(samples)} pages, {sum(len(sample.found.texts) for sample in samples)} blocks, {len(raw)} bytes in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
