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
    """How long a robots.txt holds before it is read again."""
    noindex: bool = True
    """`noindex` and `none` of a page refuse its use."""
    noarchive: bool = True
    """`noarchive` and `nocache` of a page refuse its use."""
    near_miss: bool = True
    """An evident refusal in a wrong spelling counts as no."""
    tdmrep: bool = True
    """Read TDMRep: `/.well-known/tdmrep.json`, headers, meta elements."""
    rsl: bool = True
    """Read RSL licences that a site advertises."""
    ai_txt: bool = True
    """Read `/ai.txt`."""
    domains_file: str | None = None
    """The operator's own list: one domain or URL a line."""
    cluster: Literal["drop", "promote"] = "drop"
    """What a refused member does to the verified near-duplicates of it."""
    recheck_after: Seconds = 30 * 86_400.0
    """Statements older than this are asked for again before a release."""
    stale: Literal["refresh", "block"] = "refresh"
    """`refresh` asks again before a release; `block` asks nobody and holds such rows back."""
    on_use_no: Literal["drop", "seal"] = "drop"
    """A body whose response refuses: `drop` it, or `seal` it where no later stage reads."""
