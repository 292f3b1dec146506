"""The committed model: scores of names and two sets of oblivious trees, evaluated in integers.

A tree asks the same question of every block at one level, so many trees and all blocks are answered at once. Comparisons
are of float64 numbers computed by fixed operations, leaves are integers, and a sum becomes a probability by a table: the
same bytes on every machine and with any number of threads. Training is in `training/extraction`; nothing here learns.
"""

from __future__ import annotations

import functools
import hashlib
import io
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import numpy as np
import numpy.typing as npt

from corpus.filter.blocks.counts import Ints
from corpus.filter.blocks.features import Floats
from corpus.filter.blocks.names import NameScores

VERSION: Final = 1
FILE: Final = "models/blocks-1.npz"
ONE: Final = 1000
"""A probability of 1, in the thousandths that scores are in."""
AT_ONCE: Final = 1 << 14
"""Answers (trees x blocks) worked on together: few enough to stay in the processor's nearest caches."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Oblivious trees. `column`, `border`: [level, tree]; `leaf`: [tree, 2 ** levels]; `cut`: the sums at which the score rises by one."""

    names: tuple[str, ...]
    """The columns it expects, in order."""
    column: npt.NDArray[np.intp]
    border: Floats
    leaf: Ints
    cut: Ints

    def scores(self, table: Floats) -> Ints:
        """0 … `ONE` by block; `table` is [column, block]. A tree's answers are the bits of one byte: eight levels at most."""
        levels, trees = self.column.shape
        leaf, sums = self.leaf.reshape(-1), np.zeros(table.shape[1], np.int64)
        step = min(max(AT_ONCE // max(table.shape[1], 1), 32), trees)
        for low in range(0, trees, step):
            part = slice(low, min(low + step, trees))
            asked = np.zeros((part.stop - low, table.shape[1]), np.uint8)
            for level in range(levels):
                above = table[self.column[level, part]] > self.border[level, part, None]
                asked |= above.view(np.uint8) << level
            sums += leaf[asked + (np.arange(low, part.stop) << levels)[:, None]].sum(axis=0)
        found: Ints = np.searchsorted(self.cut, sums, side="right")
        return found


@dataclass(frozen=True, slots=True)
class Model:
    names: NameScores
    first: Forest
    second: Forest
    label: str
    """Name, version and digest, as recorded in every document."""


def dump(scores: dict[str, tuple[int, int]], forests: tuple[Forest, Forest]) -> bytes:
    """A model file. The same model gives the same bytes."""
    words = sorted(scores)
    parts: dict[str, npt.NDArray[np.generic]] = {
        "words": np.frombuffer("\n".join(words).encode(), np.uint8),
        "near": np.array([scores[word][0] for word in words], np.int8),
        "far": np.array([scores[word][1] for word in words], np.int8),
    }
    for at, forest in enumerate(forests):
        parts[f"names{at}"] = np.frombuffer("\n".join(forest.names).encode(), np.uint8)
        parts[f"column{at}"] = forest.column.astype(np.uint8)
        parts[f"border{at}"] = forest.border.astype(np.float32)
        parts[f"leaf{at}"] = forest.leaf.astype(np.int32)
        parts[f"cut{at}"] = forest.cut.astype(np.int32)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **parts)
    return buffer.getvalue()


def load(raw: bytes) -> Model:
    """The model of a file's bytes."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as parts:
        words = parts["words"].tobytes().decode().split("\n")
        pairs = zip(parts["near"].tolist(), parts["far"].tolist(), strict=True)
        forests = [
            Forest(
                tuple(parts[f"names{at}"].tobytes().decode().split("\n")),
                parts[f"column{at}"].astype(np.intp),
                parts[f"border{at}"].astype(np.float64),
                parts[f"leaf{at}"].astype(np.int64),
                parts[f"cut{at}"].astype(np.int64),
            )
            for at in range(2)
        ]
    digest = hashlib.sha256(raw).hexdigest()
    return Model(NameScores(dict(zip(words, pairs, strict=True))), forests[0], forests[1], f"blocks/{VERSION}+{digest[:12]}")


@functools.cache
def model() -> Model:
    """The committed model, read once per process."""
    return load(files("corpus.filter").joinpath(FILE).read_bytes())
