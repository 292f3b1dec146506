"""The versioned table of AI agents and what each is for, and who of them speaks about training under a setting.

Data lies in `agents.toml`; this file only reads and checks it. A token is compared whole, without regard to case:
`Applebot` never speaks for `Applebot-Extended`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple


class Purpose(StrEnum):
    CONTROL = "control"
    TRAINING = "training"
    DATASET = "dataset"
    SEARCH = "search"
    USER = "user"


SPEAKS_ABOUT_TRAINING = {
    Purpose.CONTROL: True,
    Purpose.TRAINING: True,
    Purpose.DATASET: True,
    Purpose.SEARCH: False,
    Purpose.USER: False,
}
assert set(SPEAKS_ABOUT_TRAINING) == set(Purpose), "every purpose needs an answer"


class Peers(NamedTuple):
    """Whose refusals count for us: token (lower case) → its usual spelling; `quorum` of them are needed."""

    names: Mapping[str, str]
    quorum: int


@dataclass(frozen=True, slots=True)
class AgentTable:
    """`purposes` maps a lower-case token to (usual spelling, purpose)."""

    version: str
    purposes: Mapping[str, tuple[str, Purpose]]
    _peers: dict[tuple[str, str], Peers] = field(default_factory=dict, init=False, repr=False, compare=False)

    def only(self, tokens: Iterable[str]) -> AgentTable:
        """The same facts about these tokens only; one the table does not know is taken for a training agent."""
        chosen = {t.lower(): self.purposes.get(t.lower(), (t, Purpose.TRAINING)) for t in tokens}
        return AgentTable(self.version, MappingProxyType(chosen))

    def peers(self, mode: str, own: str) -> Peers:
        """Agents that speak for us under `optout.peers`: `off`, `control`, `any` or `quorum:N`; never ourselves."""
        known = self._peers.get((mode, own))
        if known is None:
            known = self._peers[mode, own] = self._speaking(mode, own)
        return known

    def _speaking(self, mode: str, own: str) -> Peers:
        kind, _, number = mode.partition(":")
        names = {
            token: name
            for token, (name, purpose) in self.purposes.items()
            if kind != "off"
            and token != own.lower()
            and (purpose is Purpose.CONTROL if kind == "control" else SPEAKS_ABOUT_TRAINING[purpose])
        }
        return Peers(MappingProxyType(names), int(number) if number else 1)


def load_agents(text: str) -> AgentTable:
    """A table from TOML: `version`, and one list of tokens per purpose. Raises ValueError where a token stands twice."""
    data = tomllib.loads(text)
    purposes: dict[str, tuple[str, Purpose]] = {}
    for purpose in Purpose:
        for name in data[purpose]:
            if name.lower() in purposes:
                raise ValueError(f"agents.toml: {name} stands twice")
            purposes[name.lower()] = (name, purpose)
    return AgentTable(data["version"], MappingProxyType(purposes))


AGENTS = load_agents(files("corpus.optout").joinpath("agents.toml").read_text(encoding="utf-8"))
"""The shipped table."""
