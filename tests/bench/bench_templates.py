"""Extraction in languages without gold: one manual in 26 of them, whose template says what is text: `python -m tests.bench.bench_templates`.

Every page of the manual has the same elements in each language, so a decision can be held against the decision for the
same element of the English page; and the template's frame (banner, title line, navigation lists) is known, so the words of
the body can be counted. Only elements that are translated count. Reads `bench-data` (`make bench-data`), writes nothing.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corpus.filter.blocks.decide import chosen
from corpus.filter.blocks.extract import block_scores
from corpus.filter.blocks.segment import Segments, segment, tree_of
from corpus.filter.blocks.text import readable
from corpus.filter.extract import extract_page
from corpus.page.tree import parse

MANUAL = Path(__file__).resolve().parents[2] / "bench-data" / "tree" / "usr" / "share" / "doc" / "debian-handbook" / "html"
ENGLISH = "en-US"
FRAME = re.compile(r"\b(?:banner|docnav)\b|^\s*title$")
"""Names of the template's frame; `<p id="title">` is its line of logos."""
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W\u3040-\u30ff\u4e00-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Read:
    """One page: its blocks, whether each is body and whether each was kept."""

    found: Segments
    body: tuple[bool, ...]
    kept: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One language. Shares of translated blocks, and word F1 against the template's body; None: no translated block."""

    language: str
    pages: int
    blocks: int
    kept_as_english: float
    """Of the blocks kept here, those whose place is kept in the English page."""
    english_kept: float
    """Of the blocks kept in the English page, those kept here."""
    f1: float
    f1_trafilatura: float


def read(path: Path) -> Read:
    page = parse(path.read_bytes(), "text/html")
    found = segment(tree_of(page), keep_all=True)
    inside = _in_frame(found)
    kept = np.zeros(len(found.texts), bool)
    kept[chosen(found, *block_scores(found, page.title))] = True
    return Read(found, tuple(not inside[owner] for owner in found.owner), tuple(kept.tolist()))


def _in_frame(found: Segments) -> list[bool]:
    inside = [False]
    for at in range(1, len(found.parent)):
        inside.append(inside[found.parent[at]] or FRAME.search(found.names[at]) is not None)
    return inside


def f1(text: str, wanted: str) -> float:
    a, b = (Counter(_WORD.findall(part.lower())) for part in (text, wanted))
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)


def row(language: str, names: Sequence[str], english: dict[str, Read], manual: Path = MANUAL, peer: bool = True) -> Row:
    """Agreement and scores of one language."""
    both = here = there = blocks = 0
    ours, theirs = [], []
    for name in names:
        path = manual / language / name
        mine, other = read(path), english[name]
        if len(mine.found.texts) != len(other.found.texts):
            continue
        for at, text in enumerate(mine.found.texts):
            if language != ENGLISH and text == other.found.texts[at]:
                continue
            blocks += 1
            both += mine.kept[at] and other.kept[at]
            here += mine.kept[at]
            there += other.kept[at]
        wanted = "\n".join(text for text, body in zip(mine.found.texts, mine.body, strict=True) if body)
        ours.append(f1(readable(mine.found, np.flatnonzero(mine.kept).tolist()), wanted))
        if peer:
            theirs.append(f1(extract_page(path.read_bytes(), profile="default", content_type="text/html")[0].text, wanted))
    return Row(language, len(ours), blocks, both / max(here, 1), both / max(there, 1), _mean(ours), _mean(theirs))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def rows(every: int, manual: Path = MANUAL, peer: bool = True) -> Iterator[Row]:
    """English first, then the rest by name; every `every`-th page."""
    names = sorted(path.name for path in (manual / ENGLISH).glob("*.html"))[::every]
    english = {name: read(manual / ENGLISH / name) for name in names}
    others = sorted(path.name for path in manual.iterdir() if path.is_dir() and path.name != ENGLISH)
    for language in [ENGLISH, *others]:
        yield row(language, names, english, manual, peer)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=8, help="every n-th page of the manual")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if not MANUAL.is_dir():
        print("no manual: make bench-data", file=sys.stderr)
        return 2
    print(
        "| language | pages | translated blocks | kept here, kept in English | kept in English, kept here | F1 blocks | F1 default |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|")
    for one in rows(options.every):
        scores = " | ".join(f"{value:.3f}" for value in (one.kept_as_english, one.english_kept, one.f1, one.f1_trafilatura))
        print(f"| {one.language} | {one.pages} | {one.blocks} | {scores} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
