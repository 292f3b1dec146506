"""When a visited URL is due again, and how often pages seem to change. Pure.

Uniform: every URL after the same time, spread by its hash so that what was crawled in one burst does not come back in
one: each URL keeps its own place within ±10 % of the interval, on every machine and in every crawl. It is the default
because it needs to know nothing and loses least: for the same number of visits, visiting in proportion to the rate of
change keeps fewer pages fresh on average, whatever the rates are (Cho and Garcia-Molina 2003; `corpus simulate recrawl`
measures it). The other modes space visits by an estimate of each page's own rate of change.

The estimate: changes are taken for a Poisson process seen through visits that only tell *whether* something changed.
With x changes in n comparisons, i seconds apart on average, Cho and Garcia-Molina's bias-corrected estimator gives
-log((n - x + 0.5) / (n + 0.5)) / i changes a second. Older comparisons weigh less (`FORGET`), so that a page which
wakes up is noticed; n, x and the seconds watched are therefore sums of decaying weights. While all comparisons said the
same, only the last few count (`FORGET_ALIKE`): the right interval is then far off.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from corpus.crawl.nouns import NO_HISTORY, Change, Due, History
from corpus.crawl.settings import RecrawlSettings

SPREAD = 0.1
"""Part of the interval by which a URL's own may be shorter or longer."""
FORGET = 0.75
"""Weight of what was known before, at each new comparison: about the last four count."""
FORGET_ALIKE = 0.25
"""The same while every comparison said the same: then they only bound the rate, and the newest bounds it best."""
GROWTH, CUT = 2.0, 3.0
"""By how much an interval grows at most (one unchanged visit proves little), and is cut at least while every visit finds a
change (the rate is then only known to be higher)."""
DAY_S = 86_400.0
BINS_PER_OCTAVE = 4
NEVER_BIN = -1_000
"""The bin of pages that were compared and never seen to change."""
_COUNTS = frozenset({Change.MAJOR, Change.GONE})
"""Changes that the rate counts. A minor one (a near copy of itself: a date, a counter) is nothing a dataset would notice."""


def place(url: str) -> float:
    """A URL's place in [0, 1), from its hash."""
    digest = hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=4, person=b"recrawl").digest()
    return int.from_bytes(digest, "big") / 2**32


# ---- how often a page changes


def compared(history: History, at: float, change: Change | None) -> History:
    """The history after a visit at `at` (epoch seconds) that brought or confirmed a version. `change` None: nothing to compare with."""
    if change is None or history.checked_at is None:
        return replace(history, checked_at=at)
    found = change in _COUNTS
    alike = history.changed == (history.seen if found else 0.0)
    keep = FORGET_ALIKE if alike else FORGET
    return History(
        seen=keep * history.seen + 1.0,
        changed=keep * history.changed + found,
        watched_s=keep * history.watched_s + max(at - history.checked_at, 0.0),
        checked_at=at,
    )


def rate(history: History) -> float | None:
    """Estimated changes a second; None before there was a comparison. 0 when none of them found a change."""
    if history.seen <= 0.0 or history.watched_s <= 0.0:
        return None
    unchanged = max(history.seen - history.changed, 0.0)
    return max(-math.log((unchanged + 0.5) / (history.seen + 0.5)), 0.0) * history.seen / history.watched_s


def rate_bin(history: History) -> int | None:
    """The estimate as a quarter of an octave of changes a day (what a frontier counts pages by); None without one."""
    found = rate(history)
    if found is None:
        return None
    return NEVER_BIN if found <= 0.0 else round(math.log2(found * DAY_S) * BINS_PER_OCTAVE)


def bin_rate(number: int) -> float:
    """The rate in the middle of a bin, in changes a second."""
    return 0.0 if number <= NEVER_BIN else float(2.0 ** (number / BINS_PER_OCTAVE)) / DAY_S


def freshness(changes: float) -> float:
    """Share of time for which a copy visited at fixed intervals equals its page, at so many changes per interval."""
    return 1.0 if changes <= 0.0 else -math.expm1(-changes) / changes


# ---- when it is due again


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings, and the one number by which `proportional` and `optimal` share out what `uniform` would spend.

    `level`: for `proportional` the visits per change; for `optimal` the freshness that one more visit must gain (in
    seconds). 0: not known yet, and pages are visited uniformly.
    """

    settings: RecrawlSettings
    level: float = 0.0


def plan(settings: RecrawlSettings, rates: Mapping[int, int]) -> Plan:
    """The plan for pages whose rates fall into these bins; together they get one visit each per `every`."""
    known = {bin_rate(number): n for number, n in rates.items() if number > NEVER_BIN and n > 0}
    budget = sum(n for n in rates.values()) / settings.every
    if not known or settings.mode not in ("proportional", "optimal"):
        return Plan(settings)
    if settings.mode == "proportional":
        return Plan(settings, budget / sum(value * n for value, n in known.items()))
    low, high = 0.0, 1.0 / min(known)
    for _ in range(60):
        level = (low + high) / 2
        spent = sum(n / optimal_interval(value, level) for value, n in known.items() if level * value < 1.0)
        low, high = (level, high) if spent > budget else (low, level)
    return Plan(settings, high)


def optimal_interval(value: float, level: float) -> float:
    """The interval at which one more visit would gain `level`: g(x) = 1 - (1 + x)e^-x = level * rate, at x = rate * interval.

    Infinite for a page that changes faster than any visit could pay for (Cho and Garcia-Molina's optimum leaves it alone).
    """
    wanted = level * value
    if value <= 0.0 or wanted >= 1.0:
        return math.inf
    low, high = 0.0, 50.0
    for _ in range(50):
        x = (low + high) / 2
        low, high = (x, high) if 1.0 - (1.0 + x) * math.exp(-x) < wanted else (low, x)
    return max(high, 1e-9) / value


def interval_s(history: History, of: Plan) -> float:
    """Seconds from a visit to the next one, before the spread."""
    settings, found = of.settings, rate(history)
    if settings.mode == "uniform":
        return settings.every
    if settings.mode == "by-change":
        if found is None:  # nothing known: between the bounds, so that neither news nor archives are far off
            return min(settings.every, math.sqrt(settings.min_interval * settings.max_interval))
        asked = 1.0 / found if found > 0.0 else math.inf
        mean_s = history.watched_s / history.seen
        asked = min(asked, GROWTH * mean_s, mean_s / CUT if history.changed == history.seen else math.inf)
    elif found is None or of.level <= 0.0:
        asked = settings.every
    elif settings.mode == "proportional":
        asked = 1.0 / (found * of.level) if found > 0.0 else math.inf
    else:
        asked = optimal_interval(found, of.level)
    return min(max(asked, settings.min_interval), settings.max_interval)


def next_visit(url: str, at: float, settings: RecrawlSettings | Plan, history: History = NO_HISTORY) -> Due:
    """When a URL that was visited at `at` (epoch seconds) is to be asked again."""
    of = settings if isinstance(settings, Plan) else Plan(settings)
    return Due(at, interval_s(history, of) * (1 - SPREAD + 2 * SPREAD * place(url)))
