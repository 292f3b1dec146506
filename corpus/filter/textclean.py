"""Extracted text in its stored form: NFC, no control characters, one kind of line break, no trailing white space."""

from __future__ import annotations

import re
import unicodedata

_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")
_TRAILING = re.compile(r"[ \t\u00a0]+(?=\n|\Z)")
_BLANK_LINES = re.compile(r"\n{3,}")
_RARE_BREAKS = ("\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029")
_BEFORE_BREAK = (" \n", "\t\n", "\u00a0\n")


def clean_text(text: str) -> str:
    """The stored form of a text. Idempotent; the empty string for white space alone."""
    # plain searches tell whether a pattern can match at all: for most texts it cannot, and they cost a tenth of it
    if any(mark in text for mark in _RARE_BREAKS):
        text = _BREAKS.sub("\n", text)
    text = unicodedata.normalize("NFC", _CONTROL.sub("", text))
    if any(pair in text for pair in _BEFORE_BREAK):
        text = _TRAILING.sub("", text)
    if "\n\n\n" in text:
        text = _BLANK_LINES.sub("\n\n", text)
    return text.strip("\n").rstrip() if text.strip() else ""


def one_line(text: str | None, limit: int = 1000) -> str | None:
    """A metadata value: one line of at most `limit` characters, or None when nothing is left."""
    if not text:
        return None
    line = " ".join(clean_text(text[: 4 * limit]).split())[:limit].rstrip()
    return line or None
