"""What a page says about its own encoding: the HTML Standard's prescan of the first bytes, and the XML declaration.

Follows "prescan a byte stream to determine its encoding" (HTML Standard §13.2.3.2) step by step; a declaration inside
a comment, a script's string or a wrong attribute does not count. Linear in the bytes it is given.
"""

from __future__ import annotations

import re

from corpus.page.labels import encoding_name

_SPACE = b"\t\n\x0c\r "
_META = re.compile(rb"<meta[\t\n\x0c\r /]", re.IGNORECASE)
_TAG = re.compile(rb"</?[A-Za-z]")
_TAG_NAME_END = re.compile(rb"[\t\n\x0c\r >]")
_SKIP = re.compile(rb"[\t\n\x0c\r /]*")
_SPACES = re.compile(rb"[\t\n\x0c\r ]*")
_NAME = re.compile(rb"=?[^\t\n\x0c\r />=]*")
_UNQUOTED = re.compile(rb"[^\t\n\x0c\r >]*")
_CHARSET = re.compile(rb"charset[\t\n\x0c\r ]*=[\t\n\x0c\r ]*", re.IGNORECASE)
_VALUE = re.compile(rb"\"([^\"]*)\"|'([^']*)'|([^\"'\t\n\x0c\r ;][^\t\n\x0c\r ;]*)")
_XML = re.compile(rb"<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*(?:\"([^\">]*)\"|'([^'>]*)')")


class _End(Exception):
    """The bytes ran out in the middle of something: the standard then says "no encoding"."""


def declared_encoding(head: bytes) -> str | None:
    """The encoding that `head`, a page's first bytes, declares; None when it declares none that is known."""
    if head.startswith(b"<\x00?\x00x\x00"):
        return "utf-16le"
    if head.startswith(b"\x00<\x00?\x00x"):
        return "utf-16be"
    return _prescan(head) or _xml_encoding(head)


def _prescan(head: bytes) -> str | None:
    at = head.find(b"<")
    try:
        while at >= 0:
            if head.startswith(b"<!--", at):
                at = _after(head, b"-->", at + 2)
            elif _META.match(head, at):
                found, at = _meta(head, at + 5)
                if found is not None:
                    return found
            elif _TAG.match(head, at):
                at = _past_tag(head, at)
            elif head.startswith((b"<!", b"</", b"<?"), at):
                at = _after(head, b">", at)
            else:
                at += 1
            at = head.find(b"<", at)
    except _End:
        return None
    return None


def _after(head: bytes, mark: bytes, at: int) -> int:
    found = head.find(mark, at)
    if found < 0:
        raise _End
    return found + len(mark)


def _past_tag(head: bytes, at: int) -> int:
    end = _TAG_NAME_END.search(head, at)
    if end is None:
        raise _End
    at = end.start()
    while True:
        attribute, at = _attribute(head, at)
        if attribute is None:
            return at


def _attribute(head: bytes, at: int) -> tuple[tuple[bytes, bytes] | None, int]:
    """The next attribute (name and value, lower-case) and where it ends; None at the tag's end."""
    at = _end(_SKIP, head, at)
    if head[at : at + 1] == b">":
        return None, at
    name_end = _end(_NAME, head, at)
    name = head[at:name_end].lower()
    at = _end(_SPACES, head, name_end)
    if head[at : at + 1] != b"=":
        return (name, b""), at
    at = _end(_SPACES, head, at + 1)
    quote = head[at : at + 1]
    if quote in {b'"', b"'"}:
        close = _after(head, quote, at + 1)
        return (name, head[at + 1 : close - 1].lower()), close
    if quote == b">":
        return (name, b""), at
    value_end = _end(_UNQUOTED, head, at)
    return (name, head[at:value_end].lower()), value_end


def _end(pattern: re.Pattern[bytes], head: bytes, at: int) -> int:
    match = pattern.match(head, at)
    if match is None or match.end() >= len(head):
        raise _End
    return match.end()


def _meta(head: bytes, at: int) -> tuple[str | None, int]:
    """What one meta element declares, and where it ends."""
    seen: set[bytes] = set()
    pragma, needs_pragma, label = False, False, None
    while True:
        attribute, at = _attribute(head, at)
        if attribute is None:
            break
        name, value = attribute
        if name in seen:
            continue
        seen.add(name)
        if name == b"http-equiv":
            pragma = value == b"content-type"
        elif name == b"content" and label is None:
            label = label_in(value)
            needs_pragma = label is not None
        elif name == b"charset":
            label, needs_pragma = value, False
    if label is None or (needs_pragma and not pragma):
        return None, at
    name_of = encoding_name(label.decode("latin-1"))
    # A page whose markup can be read byte by byte is not UTF-16, whatever it says (HTML Standard, same section).
    return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}.get(name_of or "", name_of), at


def label_in(content: bytes) -> bytes | None:
    """The label in a `Content-Type`-like string: "extracting a character encoding from a meta element" (§2.4.4)."""
    for match in _CHARSET.finditer(content):
        value = _VALUE.match(content, match.end())
        return None if value is None else next(group for group in value.groups() if group is not None)
    return None


def _xml_encoding(head: bytes) -> str | None:
    match = _XML.match(head)
    if match is None:
        return None
    name = encoding_name((match[1] or match[2] or b"").decode("latin-1"))
    return {"utf-16le": "utf-8", "utf-16be": "utf-8"}.get(name or "", name)
