"""What a site's patterns and domains still yield: which of them only repeat themselves, and how large a budget each earned.

A page repeats its pattern (`templates`) when the near-copy gate knows its text from a page of the same pattern, or when
it says nothing that this part of the site has not said lately. A pattern whose repeating pages keep leading to new URLs
of the same pattern is a trap and is closed; without such lures it takes much longer; pages that say something new pay
it back, and copies of what stands elsewhere on the site (a mirror, an untranslated edition: they have an end) weigh
nothing. A registered domain has a budget that grows with other domains that link to it and with new content, and stops
growing while most recent pages are copies.

Fed in the store thread at group commit; asked from both threads (a look into a dict). Closings and domains' sums are
durable with the acknowledgements that caused them; what is open is learnt again after a start.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from corpus.crawl.budget import grows, spent_up
from corpus.crawl.nouns import ClosedPattern, DomainYield
from corpus.crawl.templates import patterns
from corpus.page.novelty import Said
from corpus.page.words import Hashes
from corpus.url.host import host_of, registered_domain

NEW_SHARE, NEW_WORDS, NEW_WORDS_FACET, NOTHING = 0.3, 40.0, 120.0, 15.0
"""A page says something new when this share of it, or about this many words, are new to this part of its site (for a near
copy: the words alone): navigation that outweighs a short text must not hide it. Listings that several parameters filter
need more, because the same items in another order are new where two of them meet. Under `NOTHING` words it says nothing."""
LURE, COPY, NEW = 24, 1, -16
"""What a stale page that leads deeper into its pattern, one that does not, and one with something new to say weigh."""
CLOSE_AT, CREDIT = 256, -192
"""The weight at which a pattern is closed (11 lures, or 256 mere copies, in a row), and the most credit it can earn."""
REOPEN_S = 30 * 86_400.0
"""A closed pattern is looked at again by a run that starts this much later: sites are rebuilt."""
_RECENT_MASK = (1 << 64) - 1
PATTERNS_MAX, DOMAINS_MAX = 65_536, 16_384
"""Of open patterns and of domains that many are remembered (about 8 and 4 MB), the latest."""


class SaidBefore:
    """A fixed block of memory of sampled runs, by part of a site. It forgets; what it forgot counts as new."""

    def __init__(self, size_bytes: int = 4 * 2**20) -> None:
        places = 1 << max(3, (size_bytes // 8).bit_length() - 1)
        self._table = np.zeros(places, dtype=np.uint64)
        self._mask = np.uint64(places - 1)

    def share_new(self, where: str, runs: Hashes) -> float:
        """The share of `runs` that was not said there lately; they are remembered. 0.0 for no runs."""
        if not len(runs):
            return 0.0
        salt = int.from_bytes(hashlib.blake2b(where.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        keys = runs ^ np.uint64(salt)
        places = (keys >> np.uint64(20)) & self._mask
        new = int(np.count_nonzero(self._table[places] != keys)) / len(keys)
        self._table[places] = keys
        return new


@dataclass(frozen=True, slots=True)
class News:
    """What became true since the last commit, to be stored with its acknowledgements."""

    closed: tuple[ClosedPattern, ...] = ()
    yields: tuple[DomainYield, ...] = ()


class Yields:
    """For one fetch process. `trusted` hosts are never closed and have no yield budget: their owners know what they serve."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted = frozenset(trusted)
        self._said = SaidBefore()
        self._levels: OrderedDict[str, int] = OrderedDict()
        self._closed: dict[str, float] = {}
        self._retired: set[str] = set()
        self._domains: OrderedDict[str, DomainYield] = OrderedDict()
        self._new_links: dict[str, int] = {}
        self._new_closed: list[ClosedPattern] = []
        self._new_yields: dict[str, DomainYield] = {}

    # ---- answers, from any thread

    def excludes(self, url: str, host: str, domain: str) -> str:
        """`host-retired`, `trap` or `low-yield` for a URL that is not worth a request now; empty for all others."""
        if host in self._retired:
            return "host-retired"
        if host in self._trusted:
            return ""
        if self._closed and any(pattern in self._closed for pattern in patterns(url)):
            return "trap"
        known = self._domains.get(domain)
        return "low-yield" if known is not None and spent_up(known.judged, known.novel, known.linkers) else ""

    def retire(self, host: str) -> None:
        """Nothing of this host is worth a request for now: it does not answer."""
        self._retired.add(host)

    def revive(self, host: str) -> None:
        self._retired.discard(host)

    # ---- the store thread's side

    def restore(self, closed: Iterable[ClosedPattern], yields: Iterable[DomainYield], wall: float) -> None:
        """Take in what is durable; what was learnt since stays. A pattern gets another chance after `REOPEN_S`."""
        for pattern in closed:
            if wall - pattern.at < REOPEN_S:
                self._closed[pattern.pattern] = pattern.at
        for row in yields:
            if row.domain not in self._domains:
                self._keep(row)

    def forget(self, leaves: Callable[[str], bool]) -> None:
        """Registered domains of files that leave, where all of this is stored: another owner's counts must not be overwritten when they
        return. In the store thread."""
        for domain in [domain for domain in self._domains if leaves(domain)]:
            del self._domains[domain]
        self._retired = {host for host in self._retired if not leaves(registered_domain(host))}

    def linked(self, domain: str, by: str) -> None:
        """A page of the registered domain `by` links to `domain`."""
        bit = 1 << (hashlib.blake2b(by.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] & 63)
        known = self._domains.get(domain)
        if known is None:
            self._new_links[domain] = self._new_links.get(domain, 0) | bit
        elif not known.linkers & bit:
            self._keep(replace(known, linkers=known.linkers | bit))
            self._new_links[domain] = self._new_links.get(domain, 0) | bit

    def new_links(self) -> dict[str, int]:
        """Registered domain → bits of the domains that link to it, since the last call."""
        links, self._new_links = self._new_links, {}
        return links

    def learn(self, url: str, *, original: str, said: Said, leads_to: Callable[[], Sequence[str]], wall: float) -> None:
        """A page that is new to the crawl. `original`: the page of its domain that it copies, by the gate, or empty;
        `leads_to`: URLs of its host that nobody knew before, asked only where the page repeats its own pattern."""
        host = host_of(url)
        domain = registered_domain(host)
        own = patterns(url)
        share = self._said.share_new(own[-1] if own else host, said.runs)
        much = share * said.words >= (NEW_WORDS_FACET if "&" in url else NEW_WORDS)
        new = much or share >= NEW_SHARE
        known = self._domains.get(domain) or DomainYield(domain)
        copy = bool(original) or not new
        recent = (known.recent << 1 | copy) & _RECENT_MASK
        judged = known.judged + 1
        grown = known.novel + (not copy and grows(recent, judged))
        self._keep(replace(known, judged=judged, novel=grown, recent=recent))
        self._new_yields[domain] = self._domains[domain]
        if host in self._trusted:
            return
        theirs = set(patterns(original)) if original else set()
        stale = {p for p in own if not new or (p in theirs and not much)}
        lures = {pattern for other in (leads_to() if stale else ()) for pattern in patterns(other)}
        for pattern in own:
            if pattern in stale:
                nothing = bool(original) or share * said.words < NOTHING
                self._weigh(host, pattern, LURE if pattern in lures else COPY * nothing, wall)
            elif not original:
                self._weigh(host, pattern, NEW, wall)

    def news(self) -> News:
        """What was learnt since the last call: it is to be stored now."""
        news = News(tuple(self._new_closed), tuple(self._new_yields.values()))
        self._new_closed, self._new_yields = [], {}
        return news

    def _keep(self, row: DomainYield) -> None:
        self._domains[row.domain] = row
        self._domains.move_to_end(row.domain)
        if len(self._domains) > DOMAINS_MAX:
            self._domains.popitem(last=False)

    def _weigh(self, host: str, pattern: str, step: int, wall: float) -> None:
        if pattern in self._closed:
            return
        level = max(self._levels.pop(pattern, 0) + step, CREDIT)
        if level >= CLOSE_AT:
            self._closed[pattern] = wall
            self._new_closed.append(ClosedPattern(host, pattern, wall))
            return
        self._levels[pattern] = level
        if len(self._levels) > PATTERNS_MAX:
            self._levels.popitem(last=False)
