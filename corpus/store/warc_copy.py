"""A page out of somebody else's archive as members of one of our own segments: response (or revisit) and metadata.

The body is stored as it was read, content-decoded, so the headers that described its old coding are renamed and the
length is put right. No request record is made up: nobody here asked for the page. The metadata says which file it came from.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote

from corpus.model import Capture
from corpus.store.warc_capture import parse_fields
from corpus.store.warc_groups import Group
from corpus.store.warc_record import (
    LEVEL,
    clean_uri,
    encode_record,
    http_head,
    identified_type,
    microseconds,
    record_id,
    sha1,
    warc_date,
    warc_fields,
)
from corpus.store.warc_source import open_source
from corpus.store.warc_stream import Fault, read_records

_CODING = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_KEPT_AS = "X-Archive-"
_IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_LOOK_AT = 3
"""Records among which an archive introduces itself; by custom it is the first."""


def encode_copy(capture: Capture, *, source: str, source_digest: str) -> Group:
    """The members of one page. `source` names the file it was read from, `source_digest` is that file's SHA-256."""
    us = microseconds(capture.fetched_at)
    date, target = warc_date(us), clean_uri(capture.found or capture.url)
    kind = "revisit" if capture.near_original else "response"
    identity = (source_digest, str(capture.ref.offset), capture.url, str(us))
    anchor = record_id(kind, *identity)
    head = http_head(_status_line(capture.status), _headers(capture, len(capture.body)))
    fields: tuple[tuple[str, str], ...] = (("WARC-Target-URI", target),)
    metadata = {
        "corpus-url": clean_uri(capture.url),
        "corpus-depth": "" if capture.depth is None else str(capture.depth),
        "corpus-fetched-at": str(us),
        "corpus-source-file": source,
        "corpus-source-sha256": source_digest,
        "corpus-source-offset": str(capture.ref.offset),
    }
    if capture.near_original:
        fields += (("WARC-Profile", _IDENTICAL), ("WARC-Refers-To-Target-URI", clean_uri(capture.near_original)))
        distance = 0 if capture.near_distance is None else capture.near_distance
        metadata |= {"corpus-near-original": capture.near_original, "corpus-near-distance": str(distance)}
    else:
        fields += (
            ("WARC-Payload-Digest", sha1(capture.body)),
            ("WARC-Identified-Payload-Type", identified_type(capture.header("content-type"), capture.body)),
            ("WARC-Truncated", capture.truncated),
        )
        metadata["corpus-content-sha256"] = capture.content_sha256
    first = encode_record(
        kind, anchor, date, fields, head + capture.body, content_type="application/http; msgtype=response", level=LEVEL
    )
    last = encode_record(
        "metadata", record_id("metadata", *identity), date, (("WARC-Target-URI", target), ("WARC-Concurrent-To", anchor)),
        warc_fields(metadata.items()), content_type="application/warc-fields",
    )  # fmt: skip
    return Group(first + last, 0, len(first), 2)


def archive_name(path: Path) -> str:
    """What an archive says it is part of (`CC-MAIN-2024-22`); empty when it does not say. Raises OSError."""
    with open_source(path) as source:
        for _, item in zip(range(_LOOK_AT), read_records(source), strict=False):
            if not isinstance(item, Fault) and item.kind == "warcinfo":
                return unquote(parse_fields(item.block).get("isPartOf", "")).strip()
    return ""


def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}"


def _headers(capture: Capture, size: int) -> list[tuple[str, str]]:
    kept = [(f"{_KEPT_AS}{name}" if name.lower() in _CODING else name, value) for name, value in capture.headers]
    return [*kept, ("Content-Length", str(size))]
