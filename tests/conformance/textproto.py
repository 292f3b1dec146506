"""Just enough of protocol buffers' text format to read google/robotstxt-spec-test: messages, lists, strings."""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(r"\s+|#[^\n]*|(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|([A-Za-z_]\w*)|([\[\]{}:,])", re.DOTALL)


def parse_textproto(text: str) -> dict[str, list[Any]]:
    """Field name → values; strings are bytes, adjacent strings are joined."""
    tokens: list[str | bytes] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match, f"not a token: {text[at : at + 40]!r}"
        at = match.end()
        if match[1]:
            tokens.append(match[1][1:-1].encode("utf-8").decode("unicode_escape").encode("latin-1"))
        elif match[2] or match[3]:
            tokens.append(match[2] or match[3])
    message, _ = _message(tokens, 0)
    return message


def _message(tokens: list[str | bytes], at: int) -> tuple[dict[str, list[Any]], int]:
    fields: dict[str, list[Any]] = {}
    while at < len(tokens) and tokens[at] != "}":
        name = tokens[at]
        assert isinstance(name, str)
        at += 2 if tokens[at + 1] == ":" else 1
        value, at = _value(tokens, at)
        at += at < len(tokens) and tokens[at] == ","
        fields.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return fields, at


def _value(tokens: list[str | bytes], at: int) -> tuple[Any, int]:
    token = tokens[at]
    if isinstance(token, bytes):
        joined = b""
        while at < len(tokens) and isinstance(piece := tokens[at], bytes):
            joined, at = joined + piece, at + 1
        return joined, at
    if token == "{":
        message, at = _message(tokens, at + 1)
        return message, at + 1
    if token == "[":
        items, at = [], at + 1
        while tokens[at] != "]":
            item, at = _value(tokens, at)
            items.append(item)
            at += tokens[at] == ","
        return items, at + 1
    return token, at + 1
