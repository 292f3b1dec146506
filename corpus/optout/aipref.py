"""AIPREF Content-Usage: RFC 9651 dictionaries of `train-ai`, `ai-use` and `search`, from robots.txt and from headers.

`usage_of` is the strict reading of the drafts (vocab-08, attach-05): anything but the tokens `y` and `n` is unknown,
and what does not parse says nothing at all. `judge_usage` adds our policy: an evident refusal in a wrong spelling or
under an earlier draft's label is a no (`optout.near_miss`). Nothing malformed is ever read as a yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import http_sf

from corpus.model import Evidence
from corpus.optout.evidence import Origin, stated
from corpus.optout.match import Target
from corpus.optout.robots import CONTENT_USAGE, Signal
from corpus.optout.scoped import Scope, split_path, statement
from corpus.optout.spelling import LEGACY_USAGE_LABELS, REFUSING_WORDS

CATEGORIES = ("train-ai", "ai-use", "search")
_ANSWERS = {"y": "allow", "n": "disallow"}
_VALUE_MAX = 8_192


def usage_of(value: str) -> dict[str, str]:
    """`allow`, `disallow` or `unknown` per category, exactly as the drafts say."""
    try:
        parsed: Any = http_sf.parse(value[:_VALUE_MAX].encode("utf-8", "replace"), tltype="dictionary")
    except (ValueError, UnicodeError):  # StructuredFieldError is a ValueError: the whole statement is unknown
        parsed = {}
    return {category: _answer(parsed.get(category)) for category in CATEGORIES}


def _answer(member: object) -> str:
    item = member[0] if isinstance(member, tuple) else None
    return _ANSWERS.get(str(item), "unknown") if isinstance(item, http_sf.Token) else "unknown"


def judge_usage(value: str, *, near_miss: bool) -> str:
    """The value of the decision table for one statement."""
    answer = usage_of(value)["train-ai"]
    if answer == "disallow":
        return "train-ai=n"
    if near_miss and _nearly_refuses(value, ignore_own=answer == "allow"):
        return "near-miss"
    return "train-ai=y" if answer == "allow" else "unstated"


def _nearly_refuses(value: str, *, ignore_own: bool) -> bool:
    last: dict[str, str] = {}
    for member in value[:_VALUE_MAX].lower().split(","):
        key, _, word = member.partition(";")[0].partition("=")
        last[key.strip().replace("_", "-")] = word.strip().strip("\"'")
    own = last.pop("train-ai", "")
    if own in REFUSING_WORDS and not ignore_own:
        return True
    return any(last.get(label) in REFUSING_WORDS for label in LEGACY_USAGE_LABELS)


class ContentUsage:
    """The Content-Usage lines that bind one agent: only the longest matching path supplies the statement."""

    __slots__ = ("_scope",)

    def __init__(self, signals: Iterable[Signal], origin: Origin, *, near_miss: bool) -> None:
        lines = []
        for signal in signals:
            if signal.kind == CONTENT_USAGE:
                path, rest = split_path(signal.value)
                evidence = stated(
                    "content-usage", judge_usage(rest, near_miss=near_miss), origin, raw=signal.raw, line_no=signal.line_no
                )
                lines.append(statement(path, evidence))
        self._scope = Scope(lines)

    def at(self, target: Target) -> tuple[Evidence, ...]:
        return self._scope.at(target)

    @property
    def fixed(self) -> bool:
        return self._scope.fixed


def header_usage(values: Sequence[str], origin: Origin, *, near_miss: bool) -> tuple[Evidence, ...]:
    """One statement from all `Content-Usage` headers of a response, joined as RFC 9651 4.2 says."""
    if not values:
        return ()
    joined = ", ".join(value.strip() for value in values)
    return (stated("content-usage", judge_usage(joined, near_miss=near_miss), origin, raw=f"Content-Usage: {joined}"),)
