"""When a visited URL is due again. Pure.

Uniform: every URL after the same time, spread by its hash so that what was crawled in one burst does not come back in
one: each URL keeps its own place within ±10 % of the interval, on every machine and in every crawl.
"""

from __future__ import annotations

import hashlib

from corpus.crawl.ports import Due
from corpus.crawl.settings import RecrawlSettings

SPREAD = 0.1
"""Part of the interval by which a URL's own may be shorter or longer."""


def place(url: str) -> float:
    """A URL's place in [0, 1), from its hash."""
    digest = hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=4, person=b"recrawl").digest()
    return int.from_bytes(digest, "big") / 2**32


def next_visit(url: str, at: float, settings: RecrawlSettings) -> Due:
    """When a URL that was visited at `at` (epoch seconds) is to be asked again."""
    return Due(at, settings.every * (1 - SPREAD + 2 * SPREAD * place(url)))
