"""One gold page, segmented and labelled: what training works on."""

from __future__ import annotations

from dataclasses import dataclass

from corpus.filter.blocks.segment import Segments, segment, tree_of
from corpus.page.tree import parse
from training.extraction.align import Labels, labels
from training.extraction.gold import GoldPage


@dataclass(frozen=True, slots=True)
class Sample:
    page: GoldPage
    title: str
    found: Segments
    labels: Labels


def sample_of(page: GoldPage) -> Sample | None:
    """None for a page without blocks."""
    parsed = parse(page.html)
    found = segment(tree_of(parsed))
    if not found.texts:
        return None
    weak = _weak_text(parsed.text) if page.text is None else ""
    return Sample(page, parsed.title, found, labels(page, found.texts, weak))


def _weak_text(html: str) -> str:
    import trafilatura

    return trafilatura.extract(html, include_comments=False) or ""
