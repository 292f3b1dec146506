"""Numbers for the documents of a snapshot: distinct texts in the order of their smallest ids.

Every join counts in these numbers, here or on other machines, so the pairs it finds do not depend on who found them. They follow
from the documents alone; `Numbering` is what a task must know of them, as a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from corpus.filter.bands import Rows
from corpus.filter.representatives import Facts, Places, read_facts, representatives, with_text

_COMPARED = 1_000_000


@dataclass(frozen=True, slots=True)
class Nodes:
    """Distinct texts in the order of their smallest ids. `node_of[i]` is the node of the i-th document (in id order),
    `node_of_row[row]` that of a documents row that heads a node, -1 for every other row."""

    node_of: Rows
    heads: Places
    node_of_row: Rows
    crawl: npt.NDArray[np.int32]


def distinct_texts(facts: Facts, texts: Places, *, apart: bool) -> Nodes:
    """Exact copies collapsed; `texts` stand in id order, so a node's first document has its smallest id. `apart`: within a crawl."""
    order = np.lexsort((facts.crawl[texts], facts.text[texts, 1], facts.text[texts, 0]))
    new = np.ones(len(order), dtype=bool)
    for start in range(1, len(order), _COMPARED):
        here, before = (texts[order[start - shift : start - shift + _COMPARED]] for shift in (0, 1))
        before = before[: len(here)]
        differs = (facts.text[here] != facts.text[before]).any(axis=1)
        new[start : start + len(here)] = differs | (facts.crawl[here] != facts.crawl[before]) if apart else differs
    heads = np.minimum.reduceat(order, np.flatnonzero(new)) if len(order) else order
    by_id = np.argsort(heads)
    rank = np.empty(len(heads), dtype=np.int32)
    rank[by_id] = np.arange(len(heads), dtype=np.int32)
    node_of = np.empty(len(order), dtype=np.int32)
    node_of[order] = rank[np.cumsum(new) - 1]
    node_of_row = np.full(int(facts.starts[-1]), -1, dtype=np.int32)
    node_of_row[texts[heads[by_id]]] = np.arange(len(heads), dtype=np.int32)
    crawl = facts.crawl[texts[heads[by_id]]] if apart else np.zeros(len(heads), dtype=np.int32)
    return Nodes(node_of, heads[by_id], node_of_row, crawl)


@dataclass(frozen=True, slots=True)
class Numbering:
    """Per row of the signatures files, one after another: its node (-1: it heads none) and the number of its crawl.

    `starts[i]` is the first row of file i; `crawl` is 0 everywhere where crawls are not kept apart.
    """

    node_of: Rows
    crawl: npt.NDArray[np.int32]
    starts: Places

    @classmethod
    def of(cls, facts: Facts, nodes: Nodes) -> Self:
        """Of documents that are numbered: every row with text has a row among the signatures."""
        has_text = facts.kind == 0
        node_of = nodes.node_of_row[has_text]
        crawl = (
            np.where(node_of >= 0, nodes.crawl[np.maximum(node_of, 0)], 0).astype(np.int32) if len(nodes.crawl) else node_of * 0
        )
        return cls(node_of, crawl, np.concatenate(([0], np.cumsum(has_text)))[facts.starts])

    @classmethod
    def from_documents(cls, documents: Sequence[Path], *, apart: bool) -> Self:
        """Number the documents of a snapshot: about 100 bytes a row while it lasts."""
        facts = read_facts(documents)
        texts = with_text(facts, representatives(facts))
        facts = facts.without_urls()
        return cls.of(facts, distinct_texts(facts, texts, apart=apart))

    def save(self, path: Path) -> None:
        """One array [rows, 2] of int32, which `part` reads a stretch of."""
        with path.open("wb") as file:
            np.save(file, np.column_stack((self.node_of, self.crawl)).astype(np.int32))


def part(path: Path, start: int, stop: int) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Nodes and crawls of the signatures rows start..stop of a saved numbering."""
    rows = np.array(np.load(path, mmap_mode="r")[start:stop])
    return rows[:, 0], rows[:, 1]
