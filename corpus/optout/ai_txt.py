"""ai.txt, in the dialects that share the name: robots grammar with extension patterns, and `Training: deny` lines.

Neither is registered, so both are read for refusals only: nothing in an ai.txt is a grant. Prose, Markdown and HTML
under the same name say nothing. `llms.txt` is guidance for readers and is not read at all.
"""

from __future__ import annotations

from typing import NamedTuple

from corpus.model import Evidence
from corpus.optout.agents import Peers
from corpus.optout.challenge import looks_like_markup
from corpus.optout.evidence import Origin, stated
from corpus.optout.lines import printable, split_lines
from corpus.optout.match import Target
from corpus.optout.peers import PeerVoices
from corpus.optout.robots import parse_robots, split_line
from corpus.optout.rules import Ruleset
from corpus.optout.select import EMPTY, Selection, select
from corpus.optout.spelling import REFUSING_WORDS

_TRAINING_KEYS = frozenset(
    {"training", "ai-training", "ai training", "train", "ai-train", "train-ai", "allow-training", "model-training", "tdm"}
)
_CONDITIONAL = frozenset({"conditional", "paid", "license", "licensed", "licence", "permission", "ask"})
"""Permission under terms that nobody has agreed to is no permission."""


class AiTxt(NamedTuple):
    """`selection`: robots grammar. `denial`: (line number, raw) of a line that refuses training of everything."""

    selection: Selection
    denial: tuple[int, str] | None


def parse_ai_txt(body: bytes, token: str, peers: Peers) -> AiTxt:
    """Both dialects at once; a page of markup under this name has neither."""
    if looks_like_markup(body):
        return AiTxt(EMPTY, None)
    denial = None
    for line_no, line in enumerate(split_lines(body).lines, 1):
        key, value = split_line(line)
        if key in _TRAINING_KEYS and value.lower().strip("\"'").partition(" ")[0] in REFUSING_WORDS | _CONDITIONAL:
            denial = (line_no, printable(line))
            break
    return AiTxt(select(parse_robots(body), token, peers), denial)


class AiTxtRules:
    """A parsed ai.txt, compiled."""

    __slots__ = ("_denied", "_origin", "_own", "_peers", "_said")

    def __init__(self, parsed: AiTxt, quorum: int, origin: Origin, *, near_miss: bool) -> None:
        self._origin = origin
        self._own = Ruleset(parsed.selection.rules)
        self._peers = PeerVoices(parsed.selection.peers, quorum, origin, near_miss=near_miss, protocol="ai-txt")
        self._denied = (
            ()
            if parsed.denial is None
            else (stated("ai-txt", "refuses", origin, raw=parsed.denial[1], line_no=parsed.denial[0]),)
        )
        self._said: dict[int, tuple[Evidence, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._denied) or len(self._own) > 0 or bool(self._peers)

    def at(self, target: Target) -> tuple[Evidence, ...]:
        """A page without an extension is text, so a rule about `.html` or `.txt` files speaks about it."""
        if self._denied:
            return self._denied
        forms = [target]
        path, mark, query = target.literal.partition("?")
        if "." not in path.rpartition("/")[2]:
            forms += [Target(*(f"{path.rstrip('/') or '/index'}{ending}{mark}{query}",) * 2) for ending in (".html", ".txt")]
        for form in forms:
            rule = self._own.find(form)
            if rule is not None and not rule.allow:
                if rule.line_no not in self._said:
                    self._said[rule.line_no] = (stated("ai-txt", "refuses", self._origin, raw=rule.raw, line_no=rule.line_no),)
                return self._said[rule.line_no]
        return self._peers.at(target)
