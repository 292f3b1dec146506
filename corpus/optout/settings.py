"""Settings of the opt-out reader. Every default is the stricter reading (`specs` of each protocol: ARCHITECTURE.md)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpus.settings import Seconds, Settings


class OptoutSettings(Settings):
    profile: Literal["standard", "permission-only"] = "standard"
    """`permission-only` turns an unknown use into no."""
    peers: str = Field("any", pattern=r"^(any|control|off|quorum:[1-9][0-9]*)$")
    """Which AI agents' robots groups speak for us when none names our token."""
    robots_denied: Literal["deny", "allow"] = "deny"
    """robots.txt answered 401, 403 or 451."""
    robots_ttl: Seconds = 86_400.0
    noindex: bool = True
    noarchive: bool = True
    near_miss: bool = True
    """An evident refusal in a wrong spelling counts as no."""
    tdmrep: bool = True
    rsl: bool = True
    ai_txt: bool = True
    domains_file: str | None = None
    """The operator's own list: one domain or URL a line."""
    cluster: Literal["drop", "promote"] = "drop"
    """What a refused member does to the verified near-duplicates of it."""
    recheck_after: Seconds = 30 * 86_400.0
    stale: Literal["refresh", "block"] = "refresh"
    on_use_no: Literal["drop", "seal"] = "drop"
