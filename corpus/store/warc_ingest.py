"""Pages out of other people's archives: WARC, WET and ARC; gzip, lz4, zstd or plain.

Every fault is named with its offset and reason, and everything readable is kept. Digests are checked where a record
carries one: a mismatch is a fault, but the page is kept, because half of all writers compute payload digests their own way.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus.model import Capture
from corpus.store.warc_capture import Limits, capture_of
from corpus.store.warc_http import parse_answer
from corpus.store.warc_read import join
from corpus.store.warc_source import open_source
from corpus.store.warc_stream import Fault, RawRecord, read_records

__all__ = ["Fault", "RecordCount", "ingest_captures"]

_DIGESTS = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "md5": hashlib.md5}


@dataclass(slots=True)
class RecordCount:
    """Filled while an archive is read: records of every kind, and the pages among them."""

    records: int = 0
    pages: int = 0


def ingest_captures(
    path: Path, file_name: str | None = None, *, limits: Limits = Limits(), count: RecordCount | None = None  # noqa: B008
) -> Iterator[Capture | Fault]:  # fmt: skip
    """Pages (2xx answers, WET texts, resources, revisits of either) and faults of an archive, in file order.

    `file_name` goes into the refs (absent: the file's own name). A ref of length 0 cannot be opened again by offset (lz4,
    or several records in one gzip member). Raises OSError when the file itself cannot be opened.
    """
    count = count if count is not None else RecordCount()
    name = path.name if file_name is None else file_name
    faults = 0
    with open_source(path) as source:
        for item in join(_checked(read_records(source), count)):
            result = item if isinstance(item, Fault) else capture_of(item[0], item[1], name, limits)
            if isinstance(result, Fault):
                faults += 1
                yield result
            elif isinstance(result, Capture) and 200 <= result.status < 300:
                count.pages += 1
                yield result
    if not faults and not count.records:
        yield Fault(0, "the file holds no record")


def _checked(items: Iterator[RawRecord | Fault], count: RecordCount) -> Iterator[RawRecord | Fault]:
    """Count records, and put a fault in front of each whose digest or framing is wrong."""
    for item in items:
        if isinstance(item, RawRecord):
            count.records += 1
            if not item.cut and not item.missing:
                yield from (Fault(item.offset, reason) for reason in digest_faults(item))
        yield item


def digest_faults(record: RawRecord) -> list[str]:
    """What is wrong with the digests and the chunks of a whole record, one phrase each."""
    reasons = []
    answer = parse_answer(record.block) if record.kind in {"response", "revisit"} else None
    if answer is not None and answer.note:
        reasons.append(answer.note)
    if _differs(record.get("WARC-Block-Digest"), [record.block]):
        reasons.append("the block does not match its WARC-Block-Digest")
    if record.kind == "revisit":
        return reasons  # its payload digest is of the original's payload
    payload = record.block.partition(b"\r\n\r\n")[2]
    bodies = [payload, record.block] if answer is None else [answer.body, payload, record.block]
    if _differs(record.get("WARC-Payload-Digest"), bodies):
        reasons.append("the payload does not match its WARC-Payload-Digest")
    return reasons


def _differs(label: str, candidates: list[bytes]) -> bool:
    """Whether a digest of a kind we know fits none of the byte strings it may be meant of."""
    algorithm, _, text = label.partition(":")
    make = _DIGESTS.get(algorithm.strip().lower().replace("-", ""))
    if make is None or not text:
        return False
    size = make(usedforsecurity=False).digest_size
    expected = _spellings(text.strip(), size)
    return not any(make(data, usedforsecurity=False).digest() in expected for data in candidates)


def _spellings(text: str, size: int) -> set[bytes]:
    """What a digest may mean: base32 by custom, hex and both base64 alphabets in the wild."""
    found = set()
    for decode in (_base32, bytes.fromhex, base64.b64decode, base64.urlsafe_b64decode):
        try:
            raw = decode(text)
        except (ValueError, binascii.Error):
            continue
        if len(raw) == size:
            found.add(raw)
    return found


def _base32(text: str) -> bytes:
    return base64.b32decode(text.upper() + "=" * (-len(text) % 8))
