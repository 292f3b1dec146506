"""Refusals addressed to other AI agents, read as speaking for us (`optout.peers`) where no group names our token.

A peer's Disallow, or its group's refusal of training by a usage signal, is a refusal; a peer's Allow is never a
grant, and `*` is never a peer. Under `quorum:N` the refusing agents are counted; otherwise the first one settles it.
"""

from __future__ import annotations

from collections.abc import Sequence

from corpus.model import Evidence
from corpus.optout.aipref import ContentUsage
from corpus.optout.content_signal import ContentSignals
from corpus.optout.evidence import Origin, stated
from corpus.optout.match import Target
from corpus.optout.robots import Rule
from corpus.optout.rules import Ruleset
from corpus.optout.select import PeerGroup

_NAMED_MAX = 8
"""Agents that an evidence line names; the raw line and its number lead to the rest."""


class PeerVoices:
    """The peer groups of one file, compiled."""

    __slots__ = ("_anybody", "_origin", "_protocol", "_quorum", "_said", "_voices")

    def __init__(self, groups: Sequence[PeerGroup], quorum: int, origin: Origin, *, near_miss: bool, protocol: str = "") -> None:
        self._origin = origin
        self._protocol = protocol
        self._quorum = quorum
        self._voices = [
            (
                group.agents,
                Ruleset(group.rules),
                (
                    ContentSignals(group.signals, origin, near_miss=near_miss),
                    ContentUsage(group.signals, origin, near_miss=near_miss),
                )
                if group.signals
                else (),
            )
            for group in groups
        ]
        plain = not any(group.signals for group in groups)
        # every Disallow of every peer at once: most URLs meet none of them, and then nobody need be asked singly
        self._anybody = Ruleset(rule for group in groups for rule in group.rules if not rule.allow) if plain else None
        self._said: dict[tuple[int, int, str], Evidence] = {}

    def __bool__(self) -> bool:
        return bool(self._voices)

    def at(self, target: Target) -> tuple[Evidence, ...]:
        """The refusals that count, or those that were too few to count."""
        if self._anybody is not None and self._anybody.find(target) is None:
            return ()
        heard: list[tuple[int, Rule | Evidence]] = []
        count = 0
        for number, (agents, rules, signals) in enumerate(self._voices):
            refusal: Rule | Evidence | None = rules.find(target)
            if refusal is None or (isinstance(refusal, Rule) and refusal.allow):
                refusal = next((item for scope in signals for item in scope.at(target) if item.verdict == "no"), None)
            if refusal is not None:
                heard.append((number, refusal))
                count += len(agents)
                if self._quorum == 1:
                    break
        value = "disallow" if count >= self._quorum else "too-few"
        return tuple(self._evidence(number, refusal, value) for number, refusal in heard)

    def _evidence(self, number: int, refusal: Rule | Evidence, value: str) -> Evidence:
        key = (number, refusal.line_no or 0, value)
        said = self._said.get(key)
        if said is None:
            agents = self._voices[number][0]
            named = ", ".join(agents[:_NAMED_MAX]) + (f" and {len(agents) - _NAMED_MAX} more" if len(agents) > _NAMED_MAX else "")
            said = self._said[key] = stated(
                "peer", value, self._origin, raw=refusal.raw, line_no=refusal.line_no, agent=named, protocol=self._protocol
            )
        return said
