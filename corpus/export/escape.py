"""Text of unknown origin made harmless for the place it is shown in: Markdown, YAML, CSV.

A domain or a title comes from the crawled web and may hold anything; nothing of it may become a link, a tag, a formula, a
new line or an invisible direction mark.
"""

from __future__ import annotations

import json
import re
import unicodedata


class Ours(str):
    """Text of this package's own making, which no one need defuse."""

    __slots__ = ()


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>&~^$:@/=\"'])")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LONGEST = 200


def plain(text: str) -> str:
    """One line without control, format or surrogate characters, at most 200 characters long."""
    if not (text.isascii() and text.isprintable()):  # nearly every domain is, and a release has very many
        text = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace() or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn"}
        )
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def markdown(text: str) -> str:
    """Text as Markdown that renders as itself, in a paragraph or a table cell; what is `Ours` is Markdown already."""
    if isinstance(text, Ours):
        return text
    return _MARKDOWN.sub(lambda match: f"&#{ord(match[1])};" if match[1] in "<>&|" else "\\" + match[1], plain(text))


def yaml(text: str) -> str:
    """Text as a YAML double-quoted scalar (JSON strings are YAML)."""
    return json.dumps(plain(text), ensure_ascii=True)


def csv_cell(text: str) -> str:
    """Text as a CSV cell that no spreadsheet takes for a formula."""
    line = plain(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def csv_value(cell: str) -> str:
    """The text that `csv_cell` made a cell of."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
