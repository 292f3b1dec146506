"""One WARC/1.1 record as bytes: header lines, block, gzip member. Pure, and proof against hostile values.

No header value, URI or field can carry a line break or a NUL, whatever a server sent; a value that cannot stand as it
is gets cleaned, never dropped. Record ids are digests of what the record is, so the same capture encodes to the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterable
from typing import Any

try:
    from zlib_ng import zlib_ng as _fast
except ImportError:  # a platform without a wheel: half as fast, just as valid
    import zlib as _fast  # type: ignore[no-redef]

_zlib: Any = _fast

LEVEL = 6
"""perf.md §6: the same ratio as level 9 at twice its speed."""
LEVEL_ENCODED = 1
"""For bodies that a server already compressed."""
_GZIP = 31
_BREAKS = re.compile(r"[\r\n\0]+")
_NOT_IN_URI = re.compile(r"[\x00-\x20\x7f<>\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}\Z")
_MARKUP = re.compile(rb"<(?:!doctype|html|head|body|title|meta|div|p|a|h1|script|table)[\s>]", re.IGNORECASE)

Fields = Iterable[tuple[str, str]]


def encode_record(
    kind: str, record_id: str, date: str, fields: Fields, block: bytes, *, content_type: str, level: int = LEVEL
) -> bytes:
    """One whole gzip member. `fields` are further WARC headers; empty values are left out."""
    lines = ["WARC/1.1", f"WARC-Type: {kind}", f"WARC-Record-ID: {record_id}", f"WARC-Date: {date}"]
    lines += [f"{name}: {clean_value(value)}" for name, value in fields if value]
    lines += [f"WARC-Block-Digest: {sha1(block)}", f"Content-Type: {content_type}", f"Content-Length: {len(block)}", "\r\n"]
    head = "\r\n".join(lines).encode("utf-8")
    # in one call: each would let go of the interpreter's lock, and a page has three records
    member: bytes = _zlib.compress(b"".join((head, block, b"\r\n\r\n")), level, _GZIP)
    return member


def warc_fields(fields: Fields) -> bytes:
    """A block of type application/warc-fields; empty values are left out."""
    lines = (f"{clean_value(name).replace(':', '-')}: {clean_value(value)}\r\n" for name, value in fields if value)
    return "".join(lines).encode("utf-8")


def http_head(first_line: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Status line and headers with the blank line; order, case and repeats as given."""
    lines = [clean_value(first_line)]
    lines += [f"{clean_value(name).replace(':', '-') or 'X-Empty'}: {clean_value(value)}" for name, value in headers]
    return b"".join(_raw(line) + b"\r\n" for line in lines) + b"\r\n"


def clean_value(text: str) -> str:
    """The text on one line, encodable as UTF-8."""
    if text.isascii() and text.isprintable():  # nearly always
        return text.strip()
    return _SURROGATE.sub("\ufffd", _BREAKS.sub(" ", text)).strip()


def clean_uri(uri: str) -> str:
    """The address with whatever could break a header line percent-encoded; anything else stays as found."""
    return _NOT_IN_URI.sub(_percent, uri)


def record_id(*parts: str) -> str:
    """`<urn:uuid:…>` from a digest of the parts (version 8: values of one's own making, RFC 9562)."""
    raw = bytearray(hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x80, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"<urn:uuid:{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}>"


def microseconds(epoch_s: float) -> int:
    """Epoch seconds as whole microseconds, never negative."""
    return max(round(epoch_s * 1_000_000), 0)


def warc_date(epoch_us: int) -> str:
    """ISO 8601 in UTC with microseconds, as WARC/1.1 allows."""
    seconds, rest = divmod(epoch_us, 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:06d}Z"


def sha1(data: bytes) -> str:
    """The labelled digest that every WARC tool reads."""
    return labelled(hashlib.sha1(data, usedforsecurity=False).digest())


def labelled(digest: bytes) -> str:
    """A SHA-1 as WARC tools write it."""
    return "sha1:" + base64.b32encode(digest).decode("ascii")


def identified_type(content_type: str | None, decoded: bytes) -> str:
    """A media type for WARC-Identified-Payload-Type: the declared one if well formed, else a look at the first bytes."""
    declared = (content_type or "").partition(";")[0].strip().lower()
    if _TYPE.match(declared):
        return declared
    start = decoded[:1024]
    if _MARKUP.search(start):
        return "text/html"
    return "application/octet-stream" if b"\0" in start else "text/plain"


def _percent(match: re.Match[str]) -> str:
    char = match[0]
    raw = "\ufffd" if "\ud800" <= char <= "\udfff" else char
    return "".join(f"%{byte:02X}" for byte in raw.encode("utf-8"))


def _raw(line: str) -> bytes:
    """Header text is latin-1 as received; a wider character can only come from our own side."""
    try:
        return line.encode("latin-1")
    except UnicodeEncodeError:
        return line.encode("utf-8")
