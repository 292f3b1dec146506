"""The front queue of a URL: one function, one number from 0 (asked first) to 255.

It decides which hosts become active first and in which order a host's own URLs are asked. It never decides whether a
URL is asked at all, and it never makes a host busier: the pace does that.
"""

from __future__ import annotations

import math
from functools import lru_cache

from corpus.model import Kind

FRONTS = 256
_SITEMAP_FRONT = 4
"""Sitemaps come before every page: they are few, and they name the pages that the site itself thinks matter."""
_FIRST_PAGE = 24
_LEVEL = 12
"""Fronts between one link depth and the next."""
_CLAIM_REACH = 12
"""A sitemap's claim of 1.0 lifts a page by one level, 0.0 lowers it by one; 0.5, the protocol's default, moves nothing."""


@lru_cache(maxsize=4096)
def front(depth: int, claim: float = 0.5, kind: Kind = Kind.PAGE) -> int:
    """The front queue of a URL `depth` links from a seed, with a sitemap priority `claim` (0..1; nonsense counts as 0.5).

    Breadth first: pages near the seeds are linked most and change least in meaning when a crawl is cut short by its
    budget. Depth is linear and saturates at the last front, so order among very deep pages is by depth itself.
    """
    if kind is not Kind.PAGE:
        return _SITEMAP_FRONT
    usable = claim if math.isfinite(claim) and 0.0 <= claim <= 1.0 else 0.5
    lift = round((usable - 0.5) * 2 * _CLAIM_REACH)
    return max(_SITEMAP_FRONT + 1, min(FRONTS - 1, _FIRST_PAGE + _LEVEL * max(depth, 0) - lift))
