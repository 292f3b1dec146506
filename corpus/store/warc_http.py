"""The HTTP answer inside an archive record, as dirty as other people's crawlers left it.

Tolerant where meaning is clear (bare line feeds, folded lines, a body that claims chunks it no longer has), and never
raises: a block without a status line is simply not an HTTP answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? +(\d{3})(?:[ \r\n]|\Z)")
_BLANK = re.compile(rb"\r?\n\r?\n")
_CHUNK = re.compile(rb"\s*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]{0,1000})?\r?\n")
_MAX_HEAD = 256 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers in order, and the body after transfer-decoding. `note` says what was wrong with the framing."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    note: str = ""

    def header(self, name: str) -> str:
        """The first value; empty when absent."""
        return next((value for key, value in self.headers if key.lower() == name), "")


def parse_answer(block: bytes) -> Answer | None:
    """The answer in a record's block; None when it is not one."""
    status = _STATUS.match(block)
    if not status:
        return None
    blank = _BLANK.search(block, status.end(1), _MAX_HEAD)
    head, body = (block[: blank.start()], block[blank.end() :]) if blank else (block[:_MAX_HEAD], b"")
    headers = _headers(head)
    if not any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in headers):
        return Answer(int(status[1]), headers, body)
    whole, note = _unchunk(body)
    return Answer(int(status[1]), headers, whole, note)


def lacks_bytes(answer: Answer) -> bool:
    """Whether the answer's own Content-Length promises more than is there (or does not say)."""
    length = answer.header("content-length").strip()
    return not (length.isascii() and length.isdigit()) or int(length[:20]) > len(answer.body)


def _headers(head: bytes) -> tuple[tuple[str, str], ...]:
    headers: list[tuple[str, str]] = []
    for line in head.decode("latin-1").split("\n")[1:]:
        text = line.rstrip("\r")
        name, colon, value = text.partition(":")
        if text[:1] in {" ", "\t"} and headers:
            headers[-1] = (headers[-1][0], f"{headers[-1][1]} {text.strip()}")
        elif colon and name.strip():
            headers.append((name.strip(), value.strip()))
    return tuple(headers)


def _unchunk(body: bytes) -> tuple[bytes, str]:
    """Undo chunks. A body that never was in chunks stays as it is; one that breaks off keeps its rest as it is."""
    parts: list[bytes] = []
    at = 0
    while match := _CHUNK.match(body, at):
        size, start = int(match[1], 16), match.end()
        if size == 0:
            return b"".join(parts), ""
        if start + size > len(body):
            return b"".join([*parts, body[start:]]), f"the last chunk is {start + size - len(body)} bytes short"
        parts.append(body[start : start + size])
        at = start + size
    if not parts:
        return body, ""
    rest = body[at:]
    return b"".join([*parts, rest]), f"chunks end after {at} of {len(body)} bytes without a last one" if rest.strip() else ""
