"""Which signals a corpus honours under its settings, in words for people: what a card and a report may claim, and nothing more."""

from __future__ import annotations

from corpus.optout.settings import OptoutSettings


def honoured(settings: OptoutSettings) -> list[str]:
    """One line for each signal that is read and binds. A signal that a setting turns off is not claimed."""
    peers = "" if settings.peers == "off" else ", the groups of AI crawlers included"
    denied = "401, 402, 403 and 451" if settings.robots_denied == "deny" else "401, 402, 403 and 451 of pages"
    switched = {
        "TDMRep": settings.tdmrep,
        "ai.txt": settings.ai_txt,
        "RSL": settings.rsl,
        "the operator's own list": settings.domains_file is not None,
    }
    return [
        f"robots.txt (RFC 9309){peers}",
        "Content-Signal",
        "Content-Usage (AIPREF)",
        *(name for name, on in switched.items() if on),
        "X-Robots-Tag and robots meta elements",
        f"HTTP {denied}",
    ]
