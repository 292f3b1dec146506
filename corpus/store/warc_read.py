"""Captures out of our own segments: each response joined with its metadata record, faults in place.

Reading never stops at damage: a member that cannot be read comes out as a `Capture` whose `fault` says why, and the
next member follows. Memory holds one record at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from corpus.model import Capture, CaptureRef
from corpus.store.warc_capture import NOT_A_PAGE, Limits, capture_of, parse_fields
from corpus.store.warc_source import open_source, source_of
from corpus.store.warc_stream import Fault, RawRecord, read_records

_PAGES = frozenset({"response", "revisit", "conversion", "resource"})


def read_captures(path: Path, file_name: str, *, limits: Limits = Limits()) -> Iterator[Capture]:  # noqa: B008  (frozen)
    """Every capture of a segment, in file order.

    `file_name` (relative to the store's root) goes into the refs. Linked copies and revisits come out with
    `near_original` and an empty body; for a 304 the original is the page itself and `status` is 304.
    """
    with open_source(path) as source:
        for item in join(read_records(source)):
            if (capture := _capture(item, file_name, limits)) is not None:
                yield capture


def read_at(path: Path, offset: int, file_name: str = "", *, limits: Limits = Limits()) -> Capture:  # noqa: B008
    """The capture whose ref has this offset; with a `fault` when there is none to be read."""
    with path.open("rb") as file:
        return read_in(file, offset, file_name or path.name, limits=limits)


def read_in(file: BinaryIO, offset: int, file_name: str, *, limits: Limits = Limits()) -> Capture:  # noqa: B008
    """The same in a segment of our own that is open already, wherever it lies."""
    with source_of(file, Path(file_name), offset) as source:
        fault = Fault(offset, "no capture begins here")
        for item in join(read_records(source)):
            if isinstance(item, Fault) and item.offset == offset:
                fault = item  # what it is about may still follow, whole enough
                continue
            capture = _capture(item, file_name, limits)
            if capture is not None and capture.ref.offset == offset:
                return capture
            break
    return _faulty(file_name, fault)


def join(items: Iterable[RawRecord | Fault]) -> Iterator[tuple[RawRecord, dict[str, str]] | Fault]:
    """Pair each page record with the fields of the metadata record that names it (or, lacking a name, follows it).

    Metadata of a linked copy passes alone, for it has no page record by design; records about no page do not pass at all.
    """
    held: RawRecord | None = None
    for item in items:
        if isinstance(item, RawRecord) and item.kind == "metadata":
            fields = parse_fields(item.block)
            if held is not None and _belongs(item, fields, held):
                yield held, fields
                held = None
            elif "corpus-near-original" in fields:
                yield item, fields
        elif isinstance(item, Fault) or item.kind in _PAGES:
            if held is not None:
                yield held, {}
            held = None
            if isinstance(item, Fault):
                yield item
            else:
                held = item
    if held is not None:
        yield held, {}


def _belongs(metadata: RawRecord, fields: dict[str, str], page: RawRecord) -> bool:
    """Our own metadata names its record; other writers' may name the request, which shares the address."""
    if metadata.get("WARC-Concurrent-To") == page.get("WARC-Record-ID"):
        return True
    return "corpus-url" not in fields and metadata.get("WARC-Target-URI") == page.get("WARC-Target-URI")


def _capture(item: tuple[RawRecord, dict[str, str]] | Fault, file_name: str, limits: Limits) -> Capture | None:
    result = item if isinstance(item, Fault) else capture_of(item[0], item[1], file_name, limits)
    if isinstance(result, Fault):
        return _faulty(file_name, result)
    return None if result is NOT_A_PAGE else result


def _faulty(file_name: str, fault: Fault) -> Capture:
    return Capture(
        url="",
        found="",
        status=0,
        headers=(),
        body=b"",
        fetched_at=0.0,
        ref=CaptureRef(file_name, fault.offset, 0),
        fault=fault.reason,
    )
