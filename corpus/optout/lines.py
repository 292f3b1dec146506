"""Bytes of a statement file to its lines: CR, LF and CRLF end a line, and nothing else does.

Never raises and never guesses an allowance: octets that are not UTF-8 stay themselves (as surrogate escapes, so that
a pattern written in latin-1 still compares octet by octet), UTF-16 is recognised with or without its mark, and of a
file past the cap the cut last line is dropped. Sources: RFC 9309 2.2 and 2.5; specs of each protocol for the rest.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

CAP_BYTES = 512_000
"""RFC 9309 2.5: a limit must be at least 500 KiB; what lies behind it is not read, and the file is flagged."""
LINE_MAX_CHARS = 16_664
"""Characters of one line that count, as in Google's parser: no rule that long can match a URL that exists."""
RAW_MAX_CHARS = 500
"""Evidence keeps this much of a line."""

_LINE_END = re.compile("\r\n|\r|\n")
_BLANKS = " \t\x0b\x0c\0"
_BOMS = ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_SNIFF_BYTES = 512


class Lines(NamedTuple):
    """`lines[0]` is line 1. `truncated`: the file was longer than the cap."""

    lines: list[str]
    truncated: bool


def as_bytes(text: str | bytes) -> bytes:
    """A statement file given as text, as the octets it would have on the wire."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def split_lines(body: bytes) -> Lines:
    """The lines of a file, byte order marks and NULs taken off their ends, other blanks left alone."""
    truncated = len(body) > CAP_BYTES
    lines = _LINE_END.split(decode(body[:CAP_BYTES]))
    if truncated and lines and body[CAP_BYTES : CAP_BYTES + 1] not in {b"\n", b"\r"}:
        lines.pop()
    return Lines([line.lstrip("\ufeff\0").rstrip("\0")[:LINE_MAX_CHARS] for line in lines], truncated)


def decode(body: bytes) -> str:
    """UTF-16 and UTF-32 where a mark or a regular pattern of NULs says so, else UTF-8 with escapes for other octets."""
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(encoding, "replace")
    if b"\0" in body[:_SNIFF_BYTES] and (encoding := _utf16_without_mark(body[:_SNIFF_BYTES])):
        return body.decode(encoding, "replace")
    for partial in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"):  # whole or cut: nothing else starts a file like this
        if body.startswith(partial):
            return body[len(partial) :].decode("utf-8", "surrogateescape")
    return body.decode("utf-8", "surrogateescape")


def _utf16_without_mark(head: bytes) -> str:
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd * 2 > len(head) // 2 and even == 0:
        return "utf-16-le"
    return "utf-16-be" if even * 2 > len(head) // 2 and odd == 0 else ""


def strip(text: str) -> str:
    """Without the blanks that surround keys and values (ASCII only: a no-break space is part of a value)."""
    return text.strip(_BLANKS)


def printable(line: str) -> str:
    """A line as evidence keeps it: bounded, and free of surrogates, so that it can be stored and shown anywhere."""
    raw = line[:RAW_MAX_CHARS].strip("\0\r\n")
    return raw if raw.isascii() else raw.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
