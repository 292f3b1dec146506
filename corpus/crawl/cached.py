"""What a cache in front of a site did with a request, as far as the answer's own headers say. Pure.

A request that a cache passes on is the expensive kind: it reaches the origin, and crawlers, which read the long tail,
make most of them. Read are `Cache-Status` (RFC 9211), `CF-Cache-Status`, `X-Cache` (and its kin) and `Age`; the nearer
statement wins. Silence is empty, never a miss: most sites have no cache that speaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HIT, MISS = "hit", "miss"
_WORDS: dict[str, str] = {
    "hit": HIT, "stale": HIT, "updating": HIT, "revalidated": HIT,
    "miss": MISS, "expired": MISS, "bypass": MISS, "dynamic": MISS, "pass": MISS, "refreshhit": HIT, "refreshmiss": MISS, "error": "",
}  # fmt: skip
"""What caches write, in letters only. `expired` and `dynamic` went to the origin; `stale` and `updating` were served from store."""
_PLAIN = ("cf-cache-status", "x-cache", "x-cache-status", "x-proxy-cache")
_AGE_MAX = 10 * 366 * 86_400


def cache_of(headers: Iterable[tuple[str, str]]) -> tuple[str, int | None]:
    """(`hit`, `miss` or empty; seconds that the answer was in a cache, None where `Age` does not say)."""
    found = {name.lower(): value for name, value in headers if name.lower() in _READ}
    if not found:
        return "", None
    age = found.get("age", "").strip()
    age_s = min(int(age[:12]), _AGE_MAX) if age[:12].isascii() and age[:12].isdigit() else None
    said = _structured(found["cache-status"]) if "cache-status" in found else ""
    for name in _PLAIN:
        said = said or _plain(found.get(name, ""))
    return said or (HIT if age_s else ""), age_s


_READ = frozenset({"age", "cache-status", *_PLAIN})


def _structured(value: str) -> str:
    """`Cache-Status: origin; fwd=miss, edge; hit`: members from the origin's side to ours; the last one that speaks counts,
    and any cache on the way that has it spares the origin."""
    members = [member.lower().split(";")[1:] for member in value[:4000].split(",")]
    words = [{part.strip().split("=", 1)[0] for part in parts} for parts in members]
    if any("hit" in names for names in words):
        return HIT
    return MISS if any("fwd" in names for names in words) else ""


def _plain(value: str) -> str:
    """`HIT`, `Miss from cloudfront`, `TCP_REFRESH_HIT`, `MISS, HIT` (of a chain: any hit spared the origin)."""
    verdicts = set()
    for part in value[:1000].lower().split(","):
        letters = re.sub(r"[^a-z]+", " ", part).split()
        letters = letters[1:] if letters[:1] in (["tcp"], ["udp"]) else letters
        joined = "".join(letters[:2])
        verdicts.add(_WORDS.get(joined, _WORDS.get(letters[0], "") if letters else ""))
    return HIT if HIT in verdicts else MISS if MISS in verdicts else ""
