"""robots.txt as written: groups, agents, rules and every line that speaks about use, each with its line number.

Reads, never judges. Only Allow and Disallow end a list of agents (RFC 9309 2.2.4): blank lines, comments and any
other record stand between agents without effect. Spelling is as forgiving as Google's parser. Nothing is ever read
from a comment. Bad input yields fewer lines, never an exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from corpus.optout.lines import printable, split_lines, strip

CONTENT_SIGNAL, CONTENT_USAGE, LICENSE, DELAY = "content-signal", "content-usage", "license", "crawl-delay"
_OF_USE = frozenset({CONTENT_SIGNAL, CONTENT_USAGE})


class Rule(NamedTuple):
    """An Allow or Disallow line. `pattern` may be empty (it then matches nothing, but the group has an answer)."""

    allow: bool
    pattern: str
    line_no: int
    raw: str


class Signal(NamedTuple):
    """A line that is neither agent nor rule but speaks to us. `kind` is one of the constants above."""

    kind: str
    value: str
    line_no: int
    raw: str


class Agent(NamedTuple):
    """One User-agent line: every name it may mean, lower case; `star` when it addresses everyone."""

    names: frozenset[str]
    star: bool
    line_no: int
    raw: str


@dataclass(frozen=True, slots=True)
class Group:
    """Agents, and what follows them. A signal's int counts the agents named above it."""

    agents: tuple[Agent, ...]
    rules: tuple[Rule, ...]
    signals: tuple[tuple[int, Signal], ...]

    def names(self, token: str) -> bool:
        return any(token in agent.names for agent in self.agents)

    def addresses_all(self) -> bool:
        return any(agent.star for agent in self.agents)

    def signals_for(self, token: str | None) -> tuple[Signal, ...]:
        """The signals that bind an agent of this group (None: everyone).

        Per kind: those below the agent's own line; where it has none there, those its list already held above it
        (agent lines that share their rules share their signals, but an agent's own statement replaces a borrowed one).
        Both kinds that speak of use count as one: a borrowed permission must not outlive a replaced refusal.
        """
        place = next((n for n, agent in enumerate(self.agents) if (agent.star if token is None else token in agent.names)), 0)
        own = {signal.kind for above, signal in self.signals if above > place}
        if own & _OF_USE:
            own |= _OF_USE
        return tuple(signal for above, signal in self.signals if above > place or signal.kind not in own)


@dataclass(frozen=True, slots=True)
class RobotsFile:
    groups: tuple[Group, ...]
    head: tuple[Signal, ...]
    """Signals before any group: they address everyone."""
    sitemaps: tuple[str, ...]
    truncated: bool

    def chosen(self, token: str) -> tuple[tuple[Group, ...], bool]:
        """The groups that bind `token` (lower case): those naming it, else those for everyone; and whether it is named."""
        named = tuple(group for group in self.groups if group.names(token))
        return (named, True) if named else (tuple(group for group in self.groups if group.addresses_all()), False)


_KEYS: tuple[tuple[str, str], ...] = (
    ("user-agent", "agent"), ("useragent", "agent"), ("user agent", "agent"), ("user_agent", "agent"),
    ("allow", "allow"),
    ("disallow", "disallow"), ("dissallow", "disallow"), ("dissalow", "disallow"), ("disalow", "disallow"),
    ("diaslow", "disallow"), ("diasllow", "disallow"), ("disallaw", "disallow"), ("dis-allow", "disallow"),
    ("sitemap", "sitemap"), ("site-map", "sitemap"),
)  # fmt: skip
"""Key prefixes, first hit wins (Google's list of misspellings, and two more that can only refuse or name)."""
_SIGNAL_KEYS = {
    "content-signal": CONTENT_SIGNAL, "content-signals": CONTENT_SIGNAL, "content signal": CONTENT_SIGNAL, "content_signal": CONTENT_SIGNAL,
    "contentsignal": CONTENT_SIGNAL, "content-usage": CONTENT_USAGE, "content usage": CONTENT_USAGE, "content_usage": CONTENT_USAGE,
    "contentusage": CONTENT_USAGE, "license": LICENSE, "licence": LICENSE, "crawl-delay": DELAY, "crawldelay": DELAY, "crawl delay": DELAY,
    "crawl_delay": DELAY,
}  # fmt: skip
_AGENT_END = re.compile(r"[^A-Za-z_-]")
_VERSION = re.compile(r"[\s/(;]")
_GLUED = re.compile(r"(dis-?allow)\s+([/*].*)", re.IGNORECASE | re.DOTALL)
SITEMAPS_MAX = 1_000


def parse_robots(body: bytes) -> RobotsFile:
    """The file's content, whatever its type: an HTML page has no lines that mean anything, and so no rules."""
    lines, truncated = split_lines(body)
    groups: list[_Open] = []
    head: list[Signal] = []
    sitemaps: list[str] = []
    for line_no, line in enumerate(lines, 1):
        key, value = split_line(line)
        if not key:
            continue
        word = _meaning(key)
        if word == "agent":
            if not groups or groups[-1].rules:
                groups.append(_Open())
            groups[-1].agents.append(_agent(value, line_no, line))
        elif word in {"allow", "disallow"}:
            if groups:
                groups[-1].rules.append(Rule(word == "allow", value, line_no, printable(line)))
        elif word == "sitemap":
            if len(sitemaps) < SITEMAPS_MAX and value not in sitemaps[-1:]:
                sitemaps.append(value)
        elif word:
            signal = Signal(word, value, line_no, printable(line))
            if groups:
                groups[-1].signals.append((len(groups[-1].agents), signal))
            else:
                head.append(signal)
    return RobotsFile(tuple(group.closed() for group in groups), tuple(head), tuple(sitemaps), truncated)


class _Open:
    """A group while its lines are read."""

    __slots__ = ("agents", "rules", "signals")

    def __init__(self) -> None:
        self.agents: list[Agent] = []
        self.rules: list[Rule] = []
        self.signals: list[tuple[int, Signal]] = []

    def closed(self) -> Group:
        return Group(tuple(self.agents), tuple(self.rules), tuple(self.signals))


def split_line(line: str) -> tuple[str, str]:
    """Key (lower case) and value of a line, comment removed; ("", "") for a line that is no record.

    A missing colon is forgiven where exactly two words stand (Google), and for a refusal whose path holds a colon.
    """
    line = strip(line.partition("#")[0])
    if glued := _GLUED.fullmatch(line):
        return glued[1].lower(), glued[2]
    key, colon, value = line.partition(":")
    if colon:
        return strip(key).lower(), strip(value)
    words = line.split(None, 2)
    return (words[0].lower(), words[1]) if len(words) == 2 else ("", "")


def _meaning(key: str) -> str:
    if key in _SIGNAL_KEYS:
        return _SIGNAL_KEYS[key]
    return next((word for prefix, word in _KEYS if key.startswith(prefix)), "")


def _agent(value: str, line_no: int, line: str) -> Agent:
    names: set[str] = set()
    star = False
    for part in map(strip, value.lower().split(",")):
        if part == "*" or (part.startswith("*") and part[1:2].isspace()):
            star = True
        elif part:
            names |= {part, _VERSION.split(part, maxsplit=1)[0], _AGENT_END.split(part, maxsplit=1)[0]}
    return Agent(frozenset(names - {""}), star, line_no, printable(line))


_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(?:e\+?[0-9]{1,4})?", re.IGNORECASE)
_DELAY_MAX_S = 1e12


def crawl_delay_s(signals: tuple[Signal, ...]) -> float | None:
    """The longest Crawl-delay stated, in seconds; None without a readable one (negative and not-a-number are none)."""
    stated = [match[0] for signal in signals if signal.kind == DELAY and (match := _NUMBER.match(signal.value))]
    return max((min(float(number), _DELAY_MAX_S) for number in stated), default=None)
