"""Paths against patterns of RFC 9309: compiled once, matched in time linear in the path, without regular expressions.

Both sides are normalised before they meet (RFC 9309 2.2.2): octets outside the URL alphabet become percent escapes,
escapes of unreserved characters are decoded, hex digits are upper case. Escapes of *reserved* characters have two
defensible readings (`literal`: they stay distinct; `loose`: they equal the character, except an encoded slash,
question mark or number sign in the path). What a refusal matches under either reading, a permission must match under
both: the callers choose. Never raises, whatever the octets.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RESERVED = frozenset(b":/?#[]@!$&'()*+,;=")
_WILD = frozenset(b"$*")
_PATH_DISTINCT = frozenset({"%2F", "%3F", "%23"})
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_ODD = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]")
_UNENCODED = re.compile(r"[^\x21-\x7e]|[\"<>\\^`{|}]")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#\\]*")
_SKIPPED = {ord(sign): None for sign in "\t\r\n"}
_KEPT = _UNRESERVED | _RESERVED | {ord("%")}
_ESCAPED_RESERVED = {f"%{code:02X}": chr(code) for code in sorted(_RESERVED)}


class Target(NamedTuple):
    """What a URL offers to patterns: path and query, normalised under both readings (equal for most URLs)."""

    literal: str
    loose: str


def normal(text: str) -> str:
    """One side of a comparison, literal reading: see the module's first paragraph; `%24` and `%2A` are decoded."""
    if not _ODD.search(text):
        return text
    if _UNENCODED.search(text):
        text = _encode_odd(text)
    return _ESCAPE.sub(_settle_escape, text) if "%" in text else text


def _encode_odd(text: str) -> str:
    try:
        octets = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that no octet stands behind
        octets = text.encode("utf-8", "surrogatepass")
    return "".join(chr(octet) if octet in _KEPT else f"%{octet:02X}" for octet in octets)


def _settle_escape(escape: re.Match[str]) -> str:
    code = int(escape[0][1:], 16)
    return chr(code) if code in _UNRESERVED or code in _WILD else escape[0].upper()


def loosen(text: str, *, in_query: bool = False) -> str:
    """The loose reading of a normalised text; past its first `?` an escaped slash equals a slash too."""
    if "%" not in text:
        return text
    path, mark, query = ("", "", text) if in_query else text.partition("?")
    path = _ESCAPE.sub(lambda m: m[0] if m[0] in _PATH_DISTINCT else _ESCAPED_RESERVED.get(m[0], m[0]), path)
    return path + mark + _ESCAPE.sub(lambda m: m[0] if m[0] == "%23" else _ESCAPED_RESERVED.get(m[0], m[0]), query)


def target_of(url: str) -> Target:
    """What a request for an absolute URL (or a path) would ask: no fragment, dot segments resolved, starts with `/`."""
    origin = _ORIGIN.match(url)
    path = url[origin.end() :] if origin else url
    if "#" in path:
        path = path[: path.index("#")]
    if not path.startswith("/"):
        path = "/" + path.lstrip("\\")
    if not _ODD.search(path):
        return Target(path, path) if "/." not in path else Target(*(_without_dots(path),) * 2)
    head, mark, query = path.translate(_SKIPPED).partition("?")
    path = normal(head.replace("\\", "/") + mark + query)  # a browser reads a backslash in a path as a slash
    if "/." in path:
        path = _without_dots(path)
    return Target(path, loosen(path))


def _without_dots(path: str) -> str:
    """RFC 3986 5.2.4, for a path that starts with a slash; the query is left alone."""
    path, mark, query = path.partition("?")
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept) + mark + query


class Wild(NamedTuple):
    """A pattern that is more than a prefix: `head`, then `parts` in order anywhere, then `tail` at the very end.

    `tail` is None where the end is open. `exact`: no wildcard at all, the path is the head and nothing more.
    """

    head: str
    parts: tuple[str, ...]
    tail: str | None
    exact: bool = False

    def matches(self, path: str) -> bool:
        """Leftmost parts first: one pass, no going back (what fits earliest leaves the most for the rest)."""
        if self.exact:
            return path == self.head
        if not path.startswith(self.head):
            return False
        at = len(self.head)
        for part in self.parts:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return self.tail is None or (path.endswith(self.tail) and len(path) - len(self.tail) >= at)


class Pattern(NamedTuple):
    """A compiled pattern. `size` is its length in octets after normalising: what "longest" compares.

    `literal` and `loose` are a plain prefix (str) or a `Wild`; they are equal where no reserved escape occurs.
    """

    size: int
    literal: str | Wild
    loose: str | Wild

    def under(self, target: Target, *, both: bool) -> bool:
        """Whether it matches: under `both` readings, or (not `both`) under at least one."""
        literal = _hit(self.literal, target.literal)
        if literal != both:  # one reading suffices, or the first of both already failed
            return literal
        return _hit(self.loose, target.loose)


def _hit(form: str | Wild, path: str) -> bool:
    return path.startswith(form) if isinstance(form, str) else form.matches(path)


def compile_pattern(pattern: str) -> Pattern | None:
    """None for a pattern that matches nothing: empty, or not starting with `/` or `*` (Google's reading)."""
    if not pattern.startswith(("/", "*")):
        return None
    anchored = pattern.endswith("$")
    pieces = [normal(piece) for piece in (pattern[:-1] if anchored else pattern).split("*")]
    size = sum(map(len, pieces)) + len(pieces) - 1 + anchored
    loose, seen_query = [], False
    for piece in pieces:
        loose.append(loosen(piece, in_query=seen_query))
        seen_query = seen_query or "?" in piece
    return Pattern(size, _form(pieces, anchored), _form(loose, anchored))


def _form(pieces: list[str], anchored: bool) -> str | Wild:
    if len(pieces) == 1:
        return Wild(pieces[0], (), None, exact=True) if anchored else pieces[0]
    tail = pieces[-1] if anchored else None
    parts = tuple(piece for piece in (pieces[1:-1] if anchored else pieces[1:]) if piece)
    if not parts and tail is None:
        return pieces[0]  # a trailing star adds length and nothing else
    return Wild(pieces[0], parts, tail)
