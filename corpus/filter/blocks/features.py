"""Blocks → one row of numbers each, for all blocks of a page at once. Integers and their quotients only: the same bytes on
every machine. Nothing here knows a language or a site; words of `class` and `id` enter as learned scores (`model.names`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from corpus.filter.blocks.counts import Ints, counts
from corpus.filter.blocks.groups import Groups, groups
from corpus.filter.blocks.segment import MARKS, TAG_CODE, TAGS, Segments

Floats = npt.NDArray[np.float64]
LEVELS: Final = 5
HEADING: Final = np.array([int(tag[1]) if tag[:1] == "h" and tag[1:].isdigit() else 0 for tag in TAGS])
_PARAGRAPH: Final = np.array([tag in {"p", "pre", "blockquote", "dd"} for tag in TAGS])
_FAR: Final = 10_000


class Columns:
    """The rows under construction: named columns of one length."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[npt.NDArray[np.generic]] = []

    def add(self, name: str, value: npt.NDArray[np.generic]) -> None:
        self.names.append(name)
        self.values.append(value)

    def ratio(self, name: str, over: Ints, under: Ints | int) -> None:
        self.add(name, over / np.maximum(under, 1))

    def table(self) -> Floats:
        """[column, row]"""
        table = np.empty((len(self.values), len(self.values[0])))
        for at, value in enumerate(self.values):
            table[at] = value
        return table


def features(page: Arrays, title: str = "") -> tuple[list[str], Floats]:
    """(column names, [column, block])."""
    columns = Columns()
    page.text(columns, title)
    page.levels(columns)
    page.containers(columns)
    page.neighbours(columns)
    page.headings(columns)
    page.repeats(columns)
    page.whole(columns)
    return columns.names, columns.table()


class Arrays:
    """Arrays of one page. Element arrays are indexed by element, the others by block.

    `near`, `far`: scores of each element's names as own or near ancestor and as distant one. The page has a block.
    """

    def __init__(self, found: Segments, near: Ints, far: Ints) -> None:
        self.found = found
        self.size = len(found.texts)
        self.counts = counts(found.texts)
        self.parent = np.array(found.parent)
        self.tag = np.array(found.tag)
        self.first, self.end = np.array(found.first), np.array(found.end)
        owner = np.array(found.owner)
        up = [owner]
        for _ in range(LEVELS + 1):
            up.append(self.parent[up[-1]])
        self.up = up
        self.near, self.far = near, far
        self.near_sum = near[up[0]] + near[up[1]] + near[up[2]]
        self.link = np.array(found.link_chars)
        chars, words = self.counts.chars, self.counts.words
        self.prose = words * (_PARAGRAPH[self.tag[owner]] | (self.counts.commas + self.counts.ends > 2)) * (self.link * 2 < chars)
        stack = np.stack((words, chars, self.link, self.prose, self.counts.commas, np.ones_like(words)))
        self.sums = np.zeros((6, self.size + 1), np.int64)
        np.cumsum(stack, axis=1, out=self.sums[:, 1:])
        self.inside = self.sums[:, self.end] - self.sums[:, self.first]
        self.total = int(self.sums[0, -1])
        self.groups: Groups = groups(found, self.inside[0])

    def text(self, out: Columns, title: str) -> None:
        """The block by itself."""
        c = self.counts
        for name in ("chars", "words", "commas", "ends", "closed"):
            out.add(name, getattr(c, name))
        for name in ("upper", "digits", "punct", "colons", "ends", "commas"):
            out.ratio(f"{name}/char", getattr(c, name), c.chars)
        out.ratio("link", self.link, c.chars)
        out.ratio("bold", np.array(self.found.bold_chars), c.chars)
        out.ratio("char/word", c.chars, c.words)
        out.add("lines", np.array([text.count("\n") for text in self.found.texts]))
        times: dict[str, int] = {}
        for text in self.found.texts:
            times[text] = times.get(text, 0) + 1
        out.add("dup", np.array([times[text] for text in self.found.texts]))
        out.add("title", np.array([len(text) if len(text) < 300 and text in title else 0 for text in self.found.texts]))

    def levels(self, out: Columns) -> None:
        """The block's element and its ancestors: tags, names, mass, links."""
        path = np.zeros(len(self.parent), np.int64)
        low = np.zeros(len(self.parent), np.int64)
        depth = np.zeros(len(self.parent), np.int64)
        _paths(self.found.parent, self.far.tolist(), path, low, depth)
        out.add("near", self.near_sum)
        out.add("far", path[self.up[3]])
        out.add("path", path[self.up[0]])
        out.add("low", low[self.up[0]])
        out.add("depth", depth[self.up[0]])
        marks = np.array(self.found.marks)[self.up[0]]
        for at, name in enumerate(MARKS):
            out.add(f"in {name}", marks >> at & 1)
        for level in range(LEVELS):
            node = self.up[level]
            words, chars, link, prose, _, blocks = self.inside[:, node]
            out.add(f"tag{level}", self.tag[node])
            out.add(f"near{level}", self.near[node])
            out.add(f"blocks{level}", blocks)
            if level:
                out.ratio(f"words{level}", words, self.total)
                out.ratio(f"link{level}", link, chars)
                out.ratio(f"prose{level}", prose, words)
                out.add(f"mean{level}", words / np.maximum(blocks, 1))
                out.add(f"at{level}", np.arange(self.size) - self.first[node])
                out.add(f"to{level}", self.end[node] - np.arange(self.size))

    def containers(self, out: Columns) -> None:
        """Where the page's paragraphs lie: the classic score of containers, and the block's place relative to the best one."""
        c = self.counts
        weight = 1 + c.commas + np.minimum(c.chars // 100, 3)
        weight = weight * (c.words >= 5)
        score = np.bincount(self.up[1], 2 * weight, len(self.parent)) + np.bincount(self.up[2], weight, len(self.parent))
        chars, link = self.inside[1], self.inside[2]
        score = score.astype(np.int64) * (chars - link) // np.maximum(chars, 1)
        best = int(np.argmax(score))
        top = int(score[best])
        for level in (1, 2, 3):
            out.ratio(f"score{level}", score[self.up[level]], top)
        at = np.arange(self.size)
        for name, node in (("best", best), ("best+", int(self.parent[best]))):
            first, end = int(self.first[node]), int(self.end[node])
            out.add(f"{name} in", (at >= first) & (at < end))
            out.add(f"{name} from", at - first)
            out.add(f"{name} to", end - at)
            out.add(f"{name} share", np.full(self.size, self.inside[0, node] / max(self.total, 1)))

    def neighbours(self, out: Columns) -> None:
        """What stands around the block in reading order."""
        at = np.arange(self.size)
        for reach in (1, 3, 8, 20):
            low, high = np.maximum(at - reach, 0), np.minimum(at + reach + 1, self.size)
            words = self.sums[0, high] - self.sums[0, low]
            out.add(f"words +-{reach}", words)
            out.ratio(f"prose +-{reach}", self.sums[3, high] - self.sums[3, low], words)
            out.ratio(f"link +-{reach}", self.sums[2, high] - self.sums[2, low], self.sums[1, high] - self.sums[1, low])
        near = np.zeros(self.size + 1, np.int64)
        np.cumsum(self.near_sum, out=near[1:])
        for reach in (3, 10):
            low, high = np.maximum(at - reach, 0), np.minimum(at + reach + 1, self.size)
            out.ratio(f"near +-{reach}", near[high] - near[low], high - low)
        for name, step in (("prev", -1), ("next", 1)):
            other = np.clip(at + step, 0, self.size - 1)
            out.add(f"{name} words", self.counts.words[other])
            out.add(f"{name} link", self.link[other] / self.counts.chars[other])
            out.add(f"{name} tag", self.tag[self.up[0][other]])
            out.add(f"{name} near", self.near_sum[other])
            out.add(f"{name} same", (self.up[1][other] == self.up[1]).astype(np.int64) + 2 * (self.up[0][other] == self.up[0]))
        out.ratio("position", at, self.size)
        out.ratio("words before", self.sums[0, :-1], self.total)
        out.ratio("prose before", self.sums[3, :-1], self.sums[3, -1:])
        out.add("index", at)

    def headings(self, out: Columns) -> None:
        """Distance to headings, in blocks, and what the last one was."""
        at = np.arange(self.size)
        level = HEADING[self.tag[self.up[0]]]
        is_first = level == 1
        h1 = int(np.argmax(is_first)) if is_first.any() else -1
        out.add("since h1", at - h1 if h1 >= 0 else np.full(self.size, _FAR))
        last = np.maximum.accumulate(np.where(level > 0, at, -1))
        out.add("since h", np.where(last >= 0, at - last, _FAR))
        out.add("last h", np.where(last >= 0, level[last], 0))
        following = np.minimum.accumulate(np.where(level > 0, at, 2 * _FAR)[::-1])[::-1]
        out.add("to h", np.minimum(following - at, _FAR))
        out.add("h1s", np.full(self.size, int(is_first.sum())))
        out.add("last h near", np.where(last >= 0, self.near_sum[last], 0))
        out.add("last h in", np.where(last >= 0, self.up[1][last] == self.up[1], False))

    def repeats(self, out: Columns) -> None:
        """Elements of the same look: how many, how much of the page, and the innermost run of siblings the block lies in."""
        g = self.groups
        share = np.bincount(g.look[self.up[0]], self.counts.words, g.looks).astype(np.int64)
        out.ratio("look words", share[g.look[self.up[0]]], self.total)
        share = np.bincount(g.look[self.up[1]], self.counts.words, g.looks).astype(np.int64)
        out.ratio("look words1", share[g.look[self.up[1]]], self.total)
        for level in (0, 1, 2, 3):
            out.add(f"look {level}", g.look_count[self.up[level]])
        for name, member in (("run", g.inner), ("card", g.card)):
            node = member[self.up[0]]
            row = g.siblings[node]
            words, chars, link, prose, _, blocks = (
                np.bincount(g.siblings, part, g.rows).astype(np.int64)[row] for part in self.inside
            )
            count = g.sibling_count[node]
            inside = node > 0
            out.add(f"{name} n", count * inside)
            out.ratio(f"{name} words", words * inside, self.total)
            out.ratio(f"{name} link", link * inside, chars)
            out.ratio(f"{name} prose", prose * inside, words)
            out.ratio(f"{name} mean", words * inside, count)
            out.ratio(f"{name} blocks", blocks * inside, count)
            out.add(f"{name} tag", self.tag[node] * inside)
            out.add(f"{name} near", self.near[node] * inside)
            out.add(f"{name} at", (np.arange(self.size) - self.first[node]) * inside)
            out.ratio(f"{name} start", g.row_first[row] * inside, self.size)

    def whole(self, out: Columns) -> None:
        """The page: the same for every block."""
        words, chars, link, prose, commas, blocks = (int(value) for value in self.sums[:, -1])
        marks = np.array(self.found.marks)[self.up[0]]
        tags = self.tag[self.up[0]]
        of = {
            "page words": words,
            "page blocks": blocks,
            "page link": link / max(chars, 1),
            "page prose": prose / max(words, 1),
            "page commas": commas / max(words, 1),
            "page longest": int(self.counts.words.max()),
            "page h": int((HEADING[tags] > 0).sum()) / blocks,
            "page articles": int((self.tag == TAG_CODE["article"]).sum()),
            "page forms": int((self.tag == TAG_CODE["form"]).sum()),
            "page cards": int((self.counts.words * (self.groups.card[self.up[0]] > 0)).sum()) / max(words, 1),
            "page near": int(self.near_sum.sum()) / blocks,
        }
        for name in ("article", "main", "table", "li", "pre"):
            of[f"page {name}"] = int((self.counts.words * (marks >> MARKS.index(name) & 1)).sum()) / max(words, 1)
        for name, value in of.items():
            out.add(name, np.full(self.size, value))


def _paths(parent: list[int], far: list[int], path: Ints, low: Ints, depth: Ints) -> None:
    """Along each element's path from the root: sum of scores, lowest score, length."""
    sums, lows, depths = far[:], far[:], [0] * len(far)
    for node in range(1, len(parent)):
        above = parent[node]
        sums[node] += sums[above]
        lows[node] = min(lows[node], lows[above])
        depths[node] = depths[above] + 1
    path[:], low[:], depth[:] = sums, lows, depths
