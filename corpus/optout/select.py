"""From a whole robots.txt to the few lines that bear on us: our groups, and the groups of AI agents that speak for us.

Agents whose groups say the same are folded into one, so that a file naming 150 of them costs one evaluation. The
result is plain tuples: small to keep for every host, and quick to compile when a host's turn comes.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from corpus.optout.agents import Peers
from corpus.optout.robots import CONTENT_SIGNAL, CONTENT_USAGE, DELAY, LICENSE, Group, RobotsFile, Rule, Signal


class PeerGroup(NamedTuple):
    """Agents (usual spellings) whose groups hold the same rules and signals."""

    agents: tuple[str, ...]
    rules: tuple[Rule, ...]
    signals: tuple[Signal, ...]


class Selection(NamedTuple):
    """`named`: a group names our token, which is the site's answer to us; then nobody else's group speaks for us."""

    named: bool
    rules: tuple[Rule, ...]
    signals: tuple[Signal, ...]
    peers: tuple[PeerGroup, ...]


EMPTY = Selection(named=False, rules=(), signals=(), peers=())


def select(file: RobotsFile, token: str, peers: Peers) -> Selection:
    """The lines that bind `token`. Signals before any group bind everyone; a group's License lines replace global ones."""
    own = token.strip().lower()
    groups, named = file.chosen(own)
    rules = tuple(rule for group in groups for rule in group.rules if rule.pattern)
    signals = tuple(signal for group in groups for signal in group.signals_for(own if named else None))
    licensed = any(signal.kind == LICENSE for signal in signals)
    head = tuple(signal for signal in file.head if not (licensed and signal.kind == LICENSE))
    return Selection(named, rules, head + signals, () if named else _peer_groups(file, peers))


def _peer_groups(file: RobotsFile, peers: Peers) -> tuple[PeerGroup, ...]:
    held: dict[str, list[Group]] = {}
    for group in file.groups:
        tokens = {name for agent in group.agents for name in agent.names if name in peers.names}
        for token in sorted(tokens):
            held.setdefault(token, []).append(group)
    folded: dict[object, tuple[list[str], tuple[Rule, ...], tuple[Signal, ...]]] = {}
    for token, groups in held.items():
        rules = tuple(rule for group in groups for rule in group.rules if rule.pattern)
        signals = tuple(s for group in groups for s in group.signals_for(token) if s.kind in {CONTENT_SIGNAL, CONTENT_USAGE})
        if not signals and all(rule.allow for rule in rules):
            continue  # nothing here can refuse
        said = (frozenset((rule.allow, rule.pattern) for rule in rules), frozenset((s.kind, s.value) for s in signals))
        folded.setdefault(said, ([], rules, signals))[0].append(peers.names[token])
    return tuple(PeerGroup(tuple(sorted(names, key=str.lower)), rules, signals) for names, rules, signals in folded.values())


def without_delays(signals: tuple[Signal, ...]) -> tuple[Signal, ...]:
    """Signals that speak about use."""
    return tuple(signal for signal in signals if signal.kind != DELAY)


_RuleRow = tuple[bool, str, int, str]
_SignalRow = tuple[str, str, int, str]
Packed = tuple[
    bool,
    tuple[_RuleRow, ...],
    tuple[_SignalRow, ...],
    tuple[tuple[tuple[str, ...], tuple[_RuleRow, ...], tuple[_SignalRow, ...]], ...],
]


def pack(selection: Selection) -> Packed:
    """As nested plain tuples (what marshal takes)."""
    peers = tuple((peer.agents, _plain(peer.rules), _plain(peer.signals)) for peer in selection.peers)
    return selection.named, _plain(selection.rules), _plain(selection.signals), peers


_Row = TypeVar("_Row", Rule, Signal)


def _plain(rows: tuple[_Row, ...]) -> Any:
    return tuple(tuple(row) for row in rows)


def unpack(packed: Packed) -> Selection:
    """What `pack` packed."""
    named, rules, signals, peers = packed
    return Selection(named, _rules(rules), _signals(signals), tuple(PeerGroup(a, _rules(r), _signals(s)) for a, r, s in peers))


def _rules(rows: tuple[_RuleRow, ...]) -> tuple[Rule, ...]:
    return tuple(Rule(*row) for row in rows)


def _signals(rows: tuple[_SignalRow, ...]) -> tuple[Signal, ...]:
    return tuple(Signal(*row) for row in rows)
