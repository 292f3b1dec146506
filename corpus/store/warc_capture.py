"""From a raw record (and the metadata that belongs to it) to a `Capture`: pure, bounded, never raising.

A record that is no page (a request, a DNS answer, a log) is `NOT_A_PAGE`; one that should be a page and cannot be used
is a `Fault` with its offset. Bodies come out content-decoded under the same caps as in the fetch.
"""

from __future__ import annotations

import calendar
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from corpus.model import Capture, CaptureRef
from corpus.page.encoding import content_codings, decode_body
from corpus.store.warc_http import Answer, lacks_bytes, parse_answer
from corpus.store.warc_stream import Fault, RawRecord
from corpus.url.canonical import canonical_url

_DATE = re.compile(r"\s*(\d{4})-(\d\d)-(\d\d)\d*[T ](\d\d):(\d\d):(\d\d)(\.\d{1,9})?")
_WEB = ("http://", "https://")


class NotAPage(Enum):
    """The record is whole, and nothing that a page can be made of."""

    NOT_A_PAGE = 0


NOT_A_PAGE = NotAPage.NOT_A_PAGE


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on a decoded body: bytes, and bytes per stored byte. Defaults are the crawl's."""

    max_body: int = 10 * 2**20
    max_ratio: int = 200


def capture_of(record: RawRecord, metadata: Mapping[str, str], file: str, limits: Limits) -> Capture | Fault | NotAPage:
    """What a record says about a page. `metadata` is the joined metadata record's fields, `file` goes into the ref."""
    found = record.get("WARC-Target-URI").strip().removeprefix("<").removesuffix(">")
    if not found.lower().startswith(_WEB):
        return NOT_A_PAGE
    url = metadata.get("corpus-url") or canonical_url(found)
    if not url:
        return Fault(record.offset, f"not a usable address: {found[:120]!r}")
    shell = Capture(
        url=url, found=found, status=0, headers=(), body=b"", fetched_at=_fetched_at(record, metadata),
        ref=CaptureRef(file, record.offset, record.length), depth=_integer(metadata.get("corpus-depth")),
        content_sha256=metadata.get("corpus-content-sha256", ""), truncated=record.get("WARC-Truncated"),
    )  # fmt: skip
    match record.kind:
        case "response":
            return _response(shell, record, limits)
        case "revisit":
            return _revisit(shell, record, metadata)
        case "metadata" if "corpus-near-original" in metadata:
            return _linked(shell, metadata)
        case "conversion" | "resource":
            return _bare(shell, record, limits)
        case _:
            return NOT_A_PAGE


def parse_fields(block: bytes) -> dict[str, str]:
    """A block of type application/warc-fields; the first value of a repeated name."""
    fields: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return fields


def parse_date(text: str) -> float:
    """Epoch seconds of a WARC-Date, read as UTC; 0.0 when it says nothing."""
    match = _DATE.match(text)
    if not match:
        return 0.0
    parts = tuple(int(part) for part in match.groups()[:6])
    try:
        return calendar.timegm((*parts, 0, 0, 0)) + float(match[7] or 0)
    except (ValueError, OverflowError):
        return 0.0


def _fetched_at(record: RawRecord, metadata: Mapping[str, str]) -> float:
    micros = _integer(metadata.get("corpus-fetched-at"))
    return micros / 1_000_000 if micros is not None else parse_date(record.get("WARC-Date"))


def _response(shell: Capture, record: RawRecord, limits: Limits) -> Capture | Fault | NotAPage:
    answer = parse_answer(record.block)
    if answer is None:
        return (
            NOT_A_PAGE
            if record.get("ARC-Content-Type")
            else Fault(record.offset, "a response record without an HTTP status line")
        )
    if record.missing and lacks_bytes(answer):
        return NOT_A_PAGE  # the fault was named when the record was read; half a page is no page
    return _decoded(shell, answer, record, limits)


def _decoded(shell: Capture, answer: Answer, record: RawRecord, limits: Limits) -> Capture | Fault:
    decoded = decode_body(content_codings(answer.headers), answer.body, limits.max_body, limits.max_ratio)
    truncated = shell.truncated or ("length" if record.cut or decoded.truncated else "")
    if decoded.fault and not (truncated and decoded.body):  # a stream that was cut must end early; the rest of it is damage
        return Fault(record.offset, decoded.fault)
    digest = hashlib.sha256(decoded.body).hexdigest()
    if shell.content_sha256 not in {"", digest} and not truncated:
        return Fault(record.offset, "the body is not the one whose digest was recorded")
    return replace(
        shell, status=answer.status, headers=answer.headers, body=decoded.body, truncated=truncated,
        content_sha256=shell.content_sha256 or digest,
    )  # fmt: skip


def _revisit(shell: Capture, record: RawRecord, metadata: Mapping[str, str]) -> Capture | NotAPage:
    refers_to = record.get("WARC-Refers-To-Target-URI").strip().removeprefix("<").removesuffix(">")
    original = metadata.get("corpus-near-original") or canonical_url(refers_to) or shell.url
    answer = parse_answer(record.block) or Answer(304 if "not-modified" in record.get("WARC-Profile") else 200, (), b"")
    return replace(shell, status=answer.status, headers=answer.headers, near_original=original, near_distance=0)


def _linked(shell: Capture, metadata: Mapping[str, str]) -> Capture:
    content_type = metadata.get("corpus-content-type", "")
    return replace(
        shell, status=_integer(metadata.get("corpus-status")) or 200, headers=(("Content-Type", content_type),) if content_type else (),
        near_original=metadata["corpus-near-original"], near_distance=_integer(metadata.get("corpus-near-distance")),
    )  # fmt: skip


def _bare(shell: Capture, record: RawRecord, limits: Limits) -> Capture | NotAPage:
    """A page without its HTTP head: plain text of a WET file, or a resource record."""
    if record.missing:
        return NOT_A_PAGE
    kind = record.get("Content-Type") or "text/plain"
    if record.kind == "conversion" and "charset" not in kind:
        kind = f"{kind}; charset=utf-8"  # what every WET file is
    body = record.block[: limits.max_body]
    cut = "length" if record.cut or len(record.block) > limits.max_body else ""
    digest = hashlib.sha256(body).hexdigest()
    return replace(
        shell, status=200, headers=(("Content-Type", kind),), body=body, truncated=shell.truncated or cut, content_sha256=digest
    )


def _integer(text: str | None) -> int | None:
    return int(text) if text and len(text) < 20 and text.isascii() and text.isdigit() else None
