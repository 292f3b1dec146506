"""Bytes of a page -> text, the encoding that was used, and which evidence spoke for it. Never raises.

Order of evidence: byte order mark, HTTP `charset`, the page's own declaration (first 1,024 bytes as the standard says,
then, where nobody has spoken yet, up to 16,384: browsers honour a late one too), detection, windows-1252. Unknown
labels are no evidence.

Two declarations are overruled by the bytes. A multi-byte encoding is believed only while it decodes: when more than a
fifth of the non-ASCII characters come out malformed, or UTF-16 is declared for bytes without a NUL, the next evidence
is asked. And a page that declares a single-byte set in its markup, but is well-formed UTF-8 with eight or more
non-ASCII characters, was re-encoded on its way (text in such a set never looks so by chance). Otherwise malformed
sequences become U+FFFD. NULs become U+FFFD too, and the result holds no surrogates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from resiliparse.parse.encoding import detect_encoding

from corpus.page.codecs import DECODERS, MULTI_BYTE
from corpus.page.labels import encoding_name
from corpus.page.prescan import declared_encoding

PRESCAN_BYTES = 1024
SECOND_LOOK_BYTES = 16_384
DETECT_BYTES = 65_536
"""How much of a body is shown to the detector."""
_SAMPLE_BYTES = 262_144
"""How much of a body decides whether a declared encoding is believed."""
_MAX_MALFORMED = 5
"""One malformed character in this many non-ASCII ones is tolerated."""
_REENCODED_CHARS = 8

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_HTTP_CHARSET = re.compile(r";\s*charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^;,\s\"']*))", re.IGNORECASE)
DEFAULT = "windows-1252"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A page's text. `charset` is a WHATWG name in lower case; `source` is bom, http, meta, detected or default."""

    text: str
    charset: str
    source: str


def decode(body: bytes, content_type: str | None = None) -> Decoded:
    """The text of `body` (content-decoded), given the value of its Content-Type header if it had one."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], name, "bom")
    http = http_charset(content_type)
    text = None if http is None else _believed(body, http)
    if http is not None and text is not None:  # nearly always; what the page says of itself need not be looked for
        return Decoded(text, http, "http")
    declared = _declared(body, http)
    for name, source in declared:
        text = None if source == "http" or _reencoded(body, name) else _believed(body, name)
        if text is not None:
            return Decoded(text, name, source)
    detected = _detected(body, {name for name, _ in declared})
    if detected is not None:
        return _decoded(body, detected, "detected")
    name, source = declared[0] if declared else (DEFAULT, "default")
    return _decoded(body, name, source)


def http_charset(content_type: str | None) -> str | None:
    """The encoding a Content-Type header names, or None when it names none that is known."""
    match = _HTTP_CHARSET.search(content_type or "")
    return encoding_name(next(filter(None, match.groups()), "")) if match else None


def _declared(body: bytes, http: str | None) -> list[tuple[str, str]]:
    """What header and page say, in the order they are believed, each encoding once."""
    meta = declared_encoding(body[:PRESCAN_BYTES])
    if meta is None and http is None and len(body) > PRESCAN_BYTES:
        meta = declared_encoding(body[:SECOND_LOOK_BYTES])
    said = [(http, "http"), (meta if meta != http else None, "meta")]
    return [(name, source) for name, source in said if name is not None]


def _believed(body: bytes, name: str) -> str | None:
    """The text of `body` in a declared encoding, or None when it plainly is in another."""
    decoder = DECODERS[name]
    if name not in MULTI_BYTE:
        return _clean(decoder(body, False))
    if name.startswith("utf-16") and b"\0" not in body[:PRESCAN_BYTES] and body:
        return None
    try:
        return _clean(decoder(body, True))
    except UnicodeDecodeError:
        sample = decoder(body[:_SAMPLE_BYTES], False)
        return None if _malformed(sample) else _clean(decoder(body, False))


def _reencoded(body: bytes, name: str) -> bool:
    """Is a page that declares a single-byte set plainly UTF-8?"""
    if name in MULTI_BYTE or body.isascii():
        return False
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return len(text) - len(text.encode("ascii", "ignore")) >= _REENCODED_CHARS


def _malformed(text: str) -> bool:
    """Is more than a fifth of the non-ASCII text malformed? One bad character at the very end (a cut) never counts."""
    bad = text.count("\ufffd") - text.endswith("\ufffd")
    if bad <= 0:
        return False
    other = len(text) - len(text.encode("ascii", "ignore"))
    return bad * _MAX_MALFORMED > other


def _detected(body: bytes, ruled_out: set[str]) -> str | None:
    """What the bytes look like, when nobody said so; None for plain ASCII and for what looks like nothing."""
    head = body[:DETECT_BYTES]
    if head.isascii():
        if b"\0" not in head[:PRESCAN_BYTES] and body.isascii():
            return None
        wide = _looks_wide(head)
        if wide is not None or body.isascii():
            return wide
        head = body[_first_non_ascii(body) :][:DETECT_BYTES]
    wide = _looks_wide(head)
    if wide is not None:
        return wide
    if "utf-8" not in ruled_out and _believed(head, "utf-8") is not None:
        return "utf-8"
    guess = encoding_name(detect_encoding(head) or "")
    if guess is None or guess in ruled_out or guess in {"utf-8", "replacement"}:
        return None
    return guess if _believed(head, guess) is not None else None


def _first_non_ascii(body: bytes) -> int:
    return len(body) - len(body.lstrip(bytes(range(128))))


def _looks_wide(head: bytes) -> str | None:
    """UTF-16 without a mark: markup puts a NUL at every other byte."""
    sample = head[:PRESCAN_BYTES]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd * 4 > len(sample) and even * 20 < odd:
        return "utf-16le"
    if even * 4 > len(sample) and odd * 20 < even:
        return "utf-16be"
    return None


def _decoded(body: bytes, name: str, source: str) -> Decoded:
    return Decoded(_clean(DECODERS[name](body, False)), name, source)


def _clean(text: str) -> str:
    return text.replace("\0", "\ufffd") if "\0" in text else text
