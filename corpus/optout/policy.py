"""The version of everything that decides: table, agents and settings. Two decisions are comparable when it is equal."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from corpus.optout.agents import AGENTS, AgentTable
from corpus.optout.settings import OptoutSettings
from corpus.optout.table import TABLE

READERS_VERSION = 2
"""Bumped by hand whenever a reader changes what it reads from the same bytes."""

_DECIDING = ("profile", "peers", "robots_denied", "noindex", "noarchive", "near_miss", "tdmrep", "rsl", "ai_txt", "cluster")
"""Settings that change a decision; the others change only when one is made."""


def policy_version(settings: OptoutSettings, token: str, agents: AgentTable = AGENTS) -> str:
    """SHA-256 (hex) over the readers' version, the decision table, the agent table and the settings that decide."""
    body = policy_document(settings, token, agents)
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def policy_document(settings: OptoutSettings, token: str, agents: AgentTable = AGENTS) -> dict[str, Any]:
    """What a version stands for, as plain JSON."""
    return {
        "readers": READERS_VERSION,
        "table": sorted([*key, *row] for key, row in TABLE.items()),
        "agents": [agents.version, sorted((token, purpose.value) for token, (_, purpose) in agents.purposes.items())],
        "settings": settings.model_dump(mode="json", include=set(_DECIDING)),
        "token": token.lower(),
    }
