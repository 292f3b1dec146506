"""Texts of real pages for comparisons with other tools: gold pages first, documentation pages after them, English only."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from corpus.filter.extract import extract
from corpus.filter.language import detect_language

SHORTEST = 200
"""Characters below which a page is an error message."""


def _bodies(test_data: Path, documentation: Path) -> Iterator[bytes]:
    for path in sorted(test_data.glob("extraction/*/html/*.html.gz")):
        yield gzip.decompress(path.read_bytes())
    pages = [
        path for path in sorted(documentation.rglob("*.html")) if "debian-handbook" not in path.parts or "en-US" in path.parts
    ]
    for path in sorted(pages, key=lambda path: (path.name[::-1], str(path))):  # not one manual's chapters in a row
        yield path.read_bytes()


def english_texts(test_data: Path, documentation: Path, number: int) -> list[str]:
    """Up to `number` different extracted English texts, the same ones in the same order on every machine that has the data."""
    found: dict[str, None] = {}
    for body in _bodies(test_data, documentation):
        text = extract(body, profile="fast").text
        if len(text) >= SHORTEST and detect_language(text).code == "en":
            found[text] = None
        if len(found) == number:
            break
    return list(found)
