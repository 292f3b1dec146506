"""Learned scores of the words in `class` and `id`: a logistic regression over the words on a block's path.

A word seen on fewer than three domains is dropped, so no site is in the table. Scores of training pages come from the
other folds (`cross_scores`): a model must not learn to trust what it has seen the answers of.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from corpus.filter.blocks.names import NEAR_LEVELS, SCALE, words_of
from training.extraction.sample import Sample

MIN_DOMAINS = 3
Scores = dict[str, tuple[int, int]]
"""Word → (score as own or near ancestor, score as distant one), in 1/SCALE."""


@dataclass(frozen=True, slots=True)
class _Row:
    near: frozenset[str]
    far: frozenset[str]


def _rows(sample: Sample) -> list[_Row]:
    found = sample.found
    own = [frozenset(words_of(names)) for names in found.names]
    far: list[frozenset[str]] = []
    for node, above in enumerate(found.parent):
        far.append(own[0] if node == 0 else far[above] | own[node])
    rows = []
    for owner in found.owner:
        near: frozenset[str] = frozenset()
        node = owner
        for _ in range(NEAR_LEVELS):
            near |= own[node]
            node = found.parent[node]
        rows.append(_Row(near, far[node]))
    return rows


def learn(samples: list[Sample], strength: float = 0.3) -> Scores:
    """Scores from these pages."""
    domains: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        for names in set(sample.found.names):
            for word in words_of(names):
                domains[word].add(sample.page.domain)
    vocabulary = sorted(word for word, seen in domains.items() if len(seen) >= MIN_DOMAINS)
    index = {word: at for at, word in enumerate(vocabulary)}
    columns, starts = [], [0]
    share, weight = [], []
    for sample in samples:
        for row in _rows(sample):
            columns += [index[word] for word in sorted(row.near) if word in index]
            columns += [index[word] + len(index) for word in sorted(row.far) if word in index]
            starts.append(len(columns))
        share.append(sample.labels.share)
        weight.append(sample.labels.weight)
    shape = (len(starts) - 1, 2 * len(index))
    matrix = csr_matrix((np.ones(len(columns)), np.array(columns, np.int64), np.array(starts, np.int64)), shape=shape)
    coefficients = _fit(matrix, np.concatenate(share), np.concatenate(weight), strength)
    near, far = coefficients[: len(index)], coefficients[len(index) :]
    return {word: (int(near[at]), int(far[at])) for word, at in index.items() if near[at] or far[at]}


def _fit(
    matrix: csr_matrix, share: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], strength: float
) -> npt.NDArray[np.int64]:
    both = csr_matrix(
        (np.tile(matrix.data, 2), np.tile(matrix.indices, 2), np.append(matrix.indptr, matrix.indptr[1:] + matrix.nnz))
    )
    both.resize(2 * matrix.shape[0], matrix.shape[1])
    answer = np.repeat([1, 0], matrix.shape[0])
    weights = np.concatenate([weight * share, weight * (1 - share)])
    model = LogisticRegression(C=strength, solver="lbfgs", max_iter=200)
    model.fit(both, answer, sample_weight=weights)
    scores: npt.NDArray[np.int64] = np.clip(np.rint(model.coef_[0] * SCALE), -127, 127).astype(np.int64)
    return scores


def node_scores(sample: Sample, scores: Scores) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(near, far) by element of one page."""
    known: dict[str, tuple[int, int]] = {}
    for names in sample.found.names:
        if names not in known:
            hits = [scores[word] for word in words_of(names) if word in scores]
            known[names] = (sum(near for near, _ in hits), sum(far for _, far in hits))
    pairs = np.array([known[names] for names in sample.found.names], np.int64).reshape(-1, 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy()
