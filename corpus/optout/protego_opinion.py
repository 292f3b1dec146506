"""Protego's opinion beside ours, for `optout check`: a second reader of the rules that we chose, never of the file.

Protego misreads real files in ways that fail open (agents in lists, byte order marks, unknown lines between agents), so
it is handed one clean group made of the rules that bind us, and is asked about paths only.
"""

from __future__ import annotations

from protego import Protego

from corpus.optout.robots import parse_robots


def second_opinion(robots: bytes, token: str, url: str) -> bool:
    """Whether Protego would let `token` request `url`, given the group that our reader chose."""
    groups, _ = parse_robots(robots).chosen(token.strip().lower())
    rules = [rule for group in groups for rule in group.rules if rule.pattern]
    lines = ["User-agent: *"] + [f"{'Allow' if rule.allow else 'Disallow'}: {_clean(rule.pattern)}" for rule in rules]
    return bool(Protego.parse("\n".join(lines)).can_fetch(url, "anybody"))


def _clean(pattern: str) -> str:
    """Without what another reader of lines might take for the end of one."""
    return "".join(pattern.encode("utf-8", "surrogateescape").decode("utf-8", "replace").splitlines())
