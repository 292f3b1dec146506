"""The gold sets as pages: bytes, what should be extracted, and which part of the data they belong to.

Found through CORPUS_TEST_DATA (default `../shared/data` beside the repository). Pages of one registered domain always
fall into the same part: the held-back third and the folds are decided by a hash of the domain, not by chance.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.url.host import host_of, registered_domain

SEED = "blocks-1"
FOLDS = 5
_TYPES = {"documentation": "docs"}


@dataclass(frozen=True, slots=True)
class GoldPage:
    """`text` is the whole gold text (WCXB, AEB) or None; `with_`/`without` are snippets (TRAF)."""

    set: str
    """WCXB, AEB or TRAF."""
    key: str
    url: str
    kind: str
    html: bytes
    text: str | None = None
    with_: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        return registered_domain(host_of(self.url)) or self.url

    @property
    def held(self) -> bool:
        """Is it in the third that no training sees?"""
        return _hash("held", self.domain) % 3 == 0

    @property
    def fold(self) -> int:
        return _hash("fold", self.domain) % FOLDS


def _hash(purpose: str, domain: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{SEED}:{purpose}:{domain}".encode()).digest()[:4])


def data_folder() -> Path:
    """Where the gold sets are; the folder may be missing."""
    default = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    return Path(os.environ.get("CORPUS_TEST_DATA", default)) / "extraction"


def load(folder: Path | None = None) -> list[GoldPage]:
    """All pages, in a fixed order."""
    root = folder or data_folder()
    return [*_wcxb(root / "wcxb-dev"), *_aeb(root / "aeb"), *_traf(root / "trafilatura-eval")]


def _read(path: Path) -> bytes:
    with gzip.open(path) as stream:
        return stream.read()


def _wcxb(root: Path) -> Iterator[GoldPage]:
    for path in sorted((root / "ground-truth").glob("*.json.gz")):
        record: dict[str, Any] = json.loads(_read(path))
        truth = record["ground_truth"]
        key, kind = path.name.removesuffix(".json.gz"), record["_internal"]["page_type"]["primary"]
        html = _read(root / "html" / f"{key}.html.gz")
        url = record.get("url") or f"https://wcxb-{key}.invalid/"
        yield GoldPage("WCXB", key, url, _TYPES.get(kind, kind), html, truth["main_content"] or "")


def _aeb(root: Path) -> Iterator[GoldPage]:
    for key, record in sorted(json.loads(_read(root / "ground-truth.json.gz")).items()):
        yield GoldPage("AEB", key, record["url"], "article", _read(root / "html" / f"{key}.html.gz"), record["articleBody"])


def _traf(root: Path) -> Iterator[GoldPage]:
    for key, record in sorted(json.loads(_read(root / "evaldata.json.gz")).items()):
        html = _read(root / "html" / f"{key}.html.gz")
        yield GoldPage("TRAF", key, record["url"], "article", html, None, tuple(record["with"]), tuple(record["without"]))
