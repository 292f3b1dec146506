"""The front queue of a URL: one function, one number from 0 (asked first) to 255.

It decides which hosts become active first and in which order a host's own URLs are asked. It never decides whether a
URL is asked at all, and it never makes a host busier: the pace does that. Turns of hosts at the front are as
1 / 2^(front / 64) (`schedule`), so 64 fronts halve a host's turns.

What counts, in fronts (fewer are earlier):

- **depth**: 12 for every link away from a seed. Breadth first: pages near the seeds are linked most and change least in
  meaning when a crawl is cut short by its budget.
- **sitemap claim**: -12 (1.0) to +12 (0.0); 0.5, the protocol's default, moves nothing. Sitemaps themselves stand first.
- **linking registered domains**: -4 for every doubling of the domains that link to the host's, at most -24.
- **host quality**: +224 for a host none of whose documents was of use, 0 for one whose documents all were, by what
  processing measured; a host that nobody measured stands where the prior puts it (+56).
- **change history**: -16 for a page that was seen to change at every visit, 0 for one that never did. Weight 0 under
  `recrawl.mode = "uniform"`, where all pages are equal.
- **recrawl due**: -6: between a new page and a revisit at the same depth, the revisit goes first. How many of each are
  asked where both wait is not decided here but by `recrawl.share` (`mix`).

The part of the URL is kept with its row; the part of the host is added when its owner lines it up (`with_host`), because
it changes with every segment that is measured.
"""

from __future__ import annotations

import math
from functools import lru_cache

from corpus.crawl.nouns import NO_HISTORY, History
from corpus.model import Kind

FRONTS = 256
SITEMAP_FRONT = 4
"""Sitemaps come before every page: they are few, and they name the pages that the site itself thinks matter."""
FIRST_PAGE = 24
LEVEL = 12
"""Fronts between one link depth and the next."""
CLAIM_REACH = 12
LINKING_STEP, LINKING_REACH = 4, 24
QUALITY_REACH = 224
"""A host of no use gets 2^(224/64) = 11 times fewer turns than one whose every document is kept."""
CHANGE_REACH = 16
DUE_LIFT = 6
PRIOR_QUALITY, PRIOR_DOCUMENTS = 0.75, 2
"""What an unmeasured host is taken for, and how many documents it takes to outweigh that."""
_WEIGHTS = {"unique": 0.5, "kept": 0.25, "wanted": 0.25}


def front(
    depth: int,
    claim: float = 0.5,
    kind: Kind = Kind.PAGE,
    *,
    linking: int = 0,
    quality: float | None = PRIOR_QUALITY,
    history: History = NO_HISTORY,
    by_change: bool = False,
    again: bool = False,
) -> int:
    """The front queue of a URL: see the table above. Nonsense claims count as 0.5; depth saturates at the last front.

    `linking`: registered domains that link to the host's; `quality`: 0..1, None where nothing was measured; `by_change`:
    whether the recrawl mode looks at change; `again`: due for another visit.
    """
    return with_host(url_front(depth, claim, kind, history=history, by_change=by_change, again=again), linking, quality)


@lru_cache(maxsize=4096)
def url_front(
    depth: int,
    claim: float = 0.5,
    kind: Kind = Kind.PAGE,
    *,
    history: History = NO_HISTORY,
    by_change: bool = False,
    again: bool = False,
) -> int:
    """The part of `front` that belongs to the URL itself; what its row keeps."""
    if kind is not Kind.PAGE:
        return SITEMAP_FRONT
    usable = claim if math.isfinite(claim) and 0.0 <= claim <= 1.0 else 0.5
    place = FIRST_PAGE + LEVEL * max(depth, 0) - round((usable - 0.5) * 2 * CLAIM_REACH)
    if by_change and history.seen > 0.0:
        place -= round(CHANGE_REACH * min(history.changed / history.seen, 1.0))
    if again:
        place -= DUE_LIFT
    return max(SITEMAP_FRONT + 1, min(FRONTS - 1, place))


def with_host(place: int, linking: int = 0, quality: float | None = None) -> int:
    """`front` of a URL of this host whose own part is `place`. The order among a host's own URLs stays as it is."""
    useful = PRIOR_QUALITY if quality is None else min(max(quality, 0.0), 1.0)
    linked = min(LINKING_STEP * math.log2(linking + 1), LINKING_REACH) if linking > 0 else 0.0
    return max(0, min(FRONTS - 1, place + round(QUALITY_REACH * (1.0 - useful) - linked)))


def host_quality(documents: int, kept: int, unique: int, wanted: int) -> float:
    """A host's quality from counts of its measured documents: those a policy kept, those kept that are nobody's copy, and
    those in a wanted language. Few documents weigh little against the prior."""
    if documents <= 0:
        return PRIOR_QUALITY
    shares = {"unique": unique / documents, "kept": kept / documents, "wanted": wanted / documents}
    found = sum(weight * min(max(shares[name], 0.0), 1.0) for name, weight in _WEIGHTS.items())
    return (PRIOR_DOCUMENTS * PRIOR_QUALITY + documents * found) / (PRIOR_DOCUMENTS + documents)


assert sum(_WEIGHTS.values()) == 1.0, "shares make a share"
