"""`corpus audit`: the politeness law over anybody's access log, so that a site owner can check a crawler without it.

The law: between the end of one contact of a group and the start of the next lies the gap that is due, and a URL that
robots.txt refuses is not requested. Nothing here believes the crawler. Where the log is coarser than the law, only what
no reading of it could excuse is called a violation, so every one named is one; what the log cannot show is said. The log
is read once, in order, and only the lines of the crawler that was asked for are looked at.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from corpus.app.access_log import Hit, Reading, Spelling, read_hits
from corpus.errors import NothingDone
from corpus.model import Access
from corpus.optout.consent import consent
from corpus.url.host import registered_domain

SLACK_S = 0.01
"""For bytes in flight and the granularity of two machines' clocks, beside the log's own resolution."""
LATE_S = 900.0
"""A line is written when its answer ends: so long may a request that began earlier stand behind later ones."""
NAMED = 1000
"""Violations that are listed; all are counted."""
_CONTACT = re.compile(r"\(\+?([^()]{1,200})\)")


@dataclass(frozen=True, slots=True)
class TooSoon:
    """Two contacts of one group. `gap_s` is what the log shows at most; `due_s` what was due."""

    line: int
    after_line: int
    group: str
    host: str
    operator: str
    target: str
    gap_s: float
    due_s: float


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A request for what robots.txt refuses, with the line of robots.txt."""

    line: int
    host: str
    operator: str
    target: str
    rule: str
    rule_line: int | None


@dataclass(slots=True)
class Audit:
    """What a log shows of one crawler. `operators`: who runs it, as its User-Agent says, with their contacts."""

    log: str
    agent: str
    gap_s: float
    group: str
    lines: int = 0
    unread: int = 0
    contacts: int = 0
    operators: dict[str, int] = field(default_factory=dict)
    groups: int = 0
    too_soon: int = 0
    forbidden: int = 0
    closest_s: float | None = None
    """The shortest gap that the log shows between two contacts of a group."""
    violations: list[TooSoon] = field(default_factory=list)
    refused: list[Forbidden] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.too_soon or self.forbidden)

    def document(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def audit(
    path: str,
    *,
    agent: str = "CorpusBot",
    gap_s: float = 2.0,
    group: str = "host",
    host: str = "",
    robots: bytes | None = None,
    pattern: str = "",
    spelling: Spelling | None = None,
) -> Audit:
    """Judge a log. `group`: `host`, `domain`, or `server` (one clock for each address of ours, or for the whole log where it
    names none). `host`: what the log is about, where its lines do not say. Raises NothingDone when the crawler is not in it.
    """
    found, reading = Audit(path, agent, gap_s, group), Reading()
    hits = (
        hit for hit in read_hits(path, reading, spelling or Spelling(), pattern=pattern) if agent.lower() in hit.agent.lower()
    )
    state = _State(found, host, robots)
    for hit in by_start(state.looked_at(hits)):
        state.judge(hit)
    found.lines, found.unread, found.groups = reading.lines, reading.unread, len(state.latest)
    if not found.contacts:
        what = f"none of its {reading.lines} lines is a request of {agent}"
        if reading.unread == reading.lines and reading.lines:
            what = f"none of its {reading.lines} lines could be read"
        raise NothingDone(what, path, "see --agent and --pattern")
    found.limits = state.limits()
    return found


def by_start(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Hits in the order in which they began, with as many in memory as may still be overtaken."""
    waiting: list[tuple[float, int, Hit]] = []
    for hit in hits:
        heapq.heappush(waiting, (hit.started, hit.line, hit))
        while waiting[0][0] < hit.at - LATE_S:
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]


@dataclass(slots=True)
class _Last:
    line: int
    ended: float
    resolution_s: float
    earliest: float
    """Before this it cannot have ended, if every gap up to it was kept: whole seconds excuse one pair, not a whole row."""


class _State:
    """One pass over a log."""

    def __init__(self, found: Audit, host: str, robots: bytes | None) -> None:
        self._found, self._host = found, host.lower()
        self._judge: Callable[[str, str], Forbidden | None] = _never if robots is None else _by_robots(robots, found.agent)
        self.latest: dict[tuple[str, str], _Last] = {}
        self._coarse = self._untimed = self._nameless = self._addressless = False
        self._robots = robots is not None

    def looked_at(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        for hit in hits:
            self._coarse |= hit.resolution_s >= 1.0
            self._untimed |= hit.took_s is None
            self._nameless |= not (hit.host or self._host)
            self._addressless |= not hit.server
            yield hit

    def judge(self, hit: Hit) -> None:
        found = self._found
        host = hit.host.split(":")[0] if hit.host.count(":") == 1 else hit.host
        host = host or self._host
        operator = _operator(hit.agent)
        name = {"host": host, "domain": registered_domain(host) if host else "", "server": hit.server}[found.group]
        found.contacts += 1
        found.operators[operator] = found.operators.get(operator, 0) + 1
        key = (operator, name)
        last = self.latest.get(key)
        began = hit.started if last is None else self._gap(hit, last, host, operator, name)
        if last is None or hit.at >= last.ended:
            self.latest[key] = _Last(hit.line, hit.at, hit.resolution_s, max(hit.at, began + (hit.took_s or 0.0)))
        refusal = self._judge(host, hit.target)
        if refusal is not None:
            found.forbidden += 1
            if len(found.refused) < NAMED:
                found.refused.append(Forbidden(hit.line, host, operator, hit.target[:2000], refusal.rule, refusal.rule_line))

    def _gap(self, hit: Hit, last: _Last, host: str, operator: str, name: str) -> float:
        """Judge one gap; returns when the contact began at the earliest, if the gaps before it were kept."""
        found = self._found
        gap_s = hit.started - last.ended
        coarse = max(hit.resolution_s, last.resolution_s)
        found.closest_s = round(gap_s, 3) if found.closest_s is None else min(found.closest_s, round(gap_s, 3))
        began = max(hit.started, last.earliest + found.gap_s - SLACK_S)  # slack for every gap: it adds up over a row
        if began <= hit.started + (coarse if coarse >= 1.0 else 0.0):
            return began
        found.too_soon += 1
        if len(found.violations) < NAMED:
            found.violations.append(
                TooSoon(hit.line, last.line, name, host, operator, hit.target[:2000], round(gap_s, 3), found.gap_s)
            )
        return hit.started

    def limits(self) -> list[str]:
        """What this log cannot show, in sentences."""
        said = []
        if self._coarse:
            said.append(
                "Times are whole seconds: one gap up to a second too short goes unseen (a row of them does not). nginx can log $msec."
            )
        if self._untimed:
            said.append(
                "Lines without a duration: the gap is taken from line to line, and may be shorter by the time an answer took. "
                "nginx can log $request_time, Apache %D."
            )
        if self._nameless:
            said.append(
                "Lines without a host: all of them count as one, so a log of several hosts accuses wrongly. Name the one with --host, or log $host (Apache %v)."
            )
        if self._found.group == "server" and self._addressless:
            said.append("Lines without an address of the server: the whole log counts as one server. nginx can log $server_addr.")
        said.append("A User-Agent can be forged: whether an address belongs to the operator, only the operator can say.")
        said.append("What a CDN in front answered is not in the origin's log, and gaps are then longer than the crawler's own.")
        if not self._robots:
            said.append("Refused URLs were not looked for: give the robots.txt that was in force with --robots.")
        return said


def _operator(agent: str) -> str:
    """Who runs the crawler: the contact in its User-Agent, or the whole of it."""
    match = _CONTACT.search(agent)
    return (match[1] if match else agent)[:200]


def _never(host: str, target: str) -> Forbidden | None:
    return None


def _by_robots(body: bytes, token: str) -> Callable[[str, str], Forbidden | None]:
    """Which targets this robots.txt refuses to the crawler; robots.txt itself is never refused."""

    @lru_cache(maxsize=65_536)
    def judge(host: str, target: str) -> Forbidden | None:
        if target.split("?", 1)[0] == "/robots.txt" or not target.startswith("/"):
            return None
        verdict = consent(f"http://{host or 'host.invalid'}{target}", robots=body, token=token)
        if verdict.access is not Access.NO:
            return None
        deciding = next((item for item in verdict.evidence if item.axis == "access" and item.verdict == "no"), None)
        return Forbidden(0, host, "", target, deciding.raw if deciding else "", deciding.line_no if deciding else None)

    return judge
