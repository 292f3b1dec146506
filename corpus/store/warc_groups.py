"""The records of one capture, encoded together: request, response, metadata, linked by WARC-Concurrent-To.

Pure and thread-safe: for a large body the caller runs `encode_group` in a thread and hands the result to the writer.
Every date is the moment the request began; nothing here reads a clock or knows where the bytes will lie.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from corpus.crawl.ports import Original, Request
from corpus.model import Response
from corpus.store.cdxj import Told, told
from corpus.store.warc_record import (
    LEVEL,
    LEVEL_ENCODED,
    clean_uri,
    clean_value,
    encode_record,
    http_head,
    identified_type,
    labelled,
    microseconds,
    record_id,
    sha1,
    warc_date,
    warc_fields,
)

_IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_HTTP_REQUEST = "application/http; msgtype=request"
_HTTP_RESPONSE = "application/http; msgtype=response"
_WARC_FIELDS = "application/warc-fields"
_AUTHORITY = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
_TRUNCATIONS = frozenset({"length", "time", "disconnect", "unspecified"})
_TARGET_MAX = 8_192
"""Characters of an address up to which a reader surely finds a record's head as it was written."""
_CONFORMS = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


@dataclass(frozen=True, slots=True)
class Group:
    """Encoded members of one capture. `offset`, `length`: the record a CaptureRef points at, within `data`. `told`: what an index says
    of that record (nothing: it has no line there); None where nobody has looked."""

    data: bytes
    offset: int
    length: int
    records: int
    told: tuple[Told, ...] | None = None


def encode_group(
    url: str, request: Request, response: Response, *, depth: int, via: str, metadata: Mapping[str, str], identity: str = "",
    payload: bytes = b"", indexed: bool = True,
) -> Group:  # fmt: skip
    """A whole capture: request, response with its stored body, metadata. The ref is the response. `payload`: the SHA-1 of the
    body, where it is known already; `indexed`: say what an index says of it."""
    frame = _Frame(url, request, response, identity)
    anchor = frame.id_of("response")
    encoded = response.header("content-encoding") not in {None, "", "identity"}
    head = frame.response_head()
    digest = labelled(payload) if payload else sha1(response.body)
    fields = (
        *frame.response_fields(), ("WARC-Payload-Digest", digest),
        ("WARC-Identified-Payload-Type", identified_type(response.header("content-type"), response.decoded)),
        ("WARC-Truncated", response.truncated if response.truncated in _TRUNCATIONS else ""),
    )  # fmt: skip
    level = LEVEL_ENCODED if encoded else LEVEL
    block = head + response.body
    middle = encode_record("response", anchor, frame.date, fields, block, content_type=_HTTP_RESPONSE, level=level)
    first = frame.request(anchor)
    last = frame.metadata(anchor, depth, via, {}, metadata)
    return Group(first + middle + last, len(first), len(middle), 3, frame.told("response", digest, head) if indexed else None)


def encode_linked(
    url: str, request: Request, response: Response, *, depth: int, via: str, metadata: Mapping[str, str],
    original: str, distance: int, identity: str = "",
) -> Group:  # fmt: skip
    """A near copy: request and metadata only. The ref is the metadata record, which says what it copies and how far off."""
    frame = _Frame(url, request, response, identity)
    first = frame.request(frame.id_of("metadata"))
    near = {
        "corpus-near-original": original, "corpus-near-distance": str(distance),
        "corpus-status": str(response.status), "corpus-content-type": response.header("content-type") or "",
    }  # fmt: skip
    last = frame.metadata(frame.id_of("request"), depth, via, near, metadata)
    return Group(first + last, len(first), len(last), 2, ())


def encode_revisit(
    url: str, request: Request, response: Response, *, depth: int, via: str, metadata: Mapping[str, str],
    original: Original, identity: str = "",
) -> Group:  # fmt: skip
    """A 304, or the very payload of another capture: the answer's head without its body. The ref is the revisit."""
    frame = _Frame(url, request, response, identity)
    anchor = frame.id_of("revisit")
    digest = "" if response.status == 304 else sha1(response.body)
    fields = (
        *frame.response_fields(), ("WARC-Payload-Digest", digest),
        ("WARC-Profile", _NOT_MODIFIED if response.status == 304 else _IDENTICAL),
        ("WARC-Refers-To-Target-URI", clean_uri(original.found or original.url)),
        ("WARC-Refers-To-Date", "" if original.fetched_at is None else warc_date(microseconds(original.fetched_at))),
        ("WARC-Truncated", "length" if response.body else ""),
    )  # fmt: skip
    head = frame.response_head()
    middle = encode_record("revisit", anchor, frame.date, fields, head, content_type=_HTTP_RESPONSE)
    first = frame.request(anchor)
    last = frame.metadata(anchor, depth, via, {"corpus-near-original": original.url, "corpus-near-distance": "0"}, metadata)
    return Group(first + middle + last, len(first), len(middle), 3, frame.told("revisit", digest, head))


def encode_warcinfo(segment: str, fields: Mapping[str, str], opened_at: float, identity: str = "") -> bytes:
    """The first record of a segment. `fields` say who crawls and by which rules (software, operator, robots …)."""
    block = warc_fields({"format": "WARC File Format 1.1", "conformsTo": _CONFORMS, **fields}.items())
    name = f"{segment}.warc.gz"
    us = microseconds(opened_at)
    return encode_record(
        "warcinfo",
        record_id(identity, "warcinfo", name, str(us)),
        warc_date(us),
        [("WARC-Filename", name)],
        block,
        content_type=_WARC_FIELDS,
    )


class _Frame:
    """What the records of one capture share."""

    def __init__(self, url: str, request: Request, response: Response, identity: str) -> None:
        self._url, self._request, self._response, self._identity = url, request, response, identity
        self._us = microseconds(response.started_at)
        self.date = warc_date(self._us)
        self.target = clean_uri(request.url)

    def id_of(self, kind: str) -> str:
        return record_id(self._identity, kind, self._url, self._request.url, str(self._us), str(self._response.status))

    def request(self, concurrent_to: str) -> bytes:
        fields = (("WARC-Target-URI", self.target), ("WARC-Concurrent-To", concurrent_to), ("WARC-IP-Address", self._ip()))
        block = self._response.raw_request or self._plain_request()
        return encode_record("request", self.id_of("request"), self.date, fields, block, content_type=_HTTP_REQUEST)

    def response_fields(self) -> tuple[tuple[str, str], ...]:
        return (("WARC-Target-URI", self.target), ("WARC-IP-Address", self._ip()))

    def response_head(self) -> bytes:
        """Status line and headers as sent; Transfer-Encoding renamed, because the body is stored without it."""
        status = (
            self._response.raw_status if self._response.raw_status.startswith("HTTP/") else f"HTTP/1.1 {self._response.status}"
        )
        headers = ((f"X-Crawler-{n}" if n.lower() == "transfer-encoding" else n, v) for n, v in self._response.headers)
        return http_head(status, headers)

    def told(self, kind: str, digest: str, head: bytes) -> tuple[Told, ...] | None:
        """What the index says of a record, as a reader of it would find out. `head`: status line and headers of its block."""
        if len(self.target) > _TARGET_MAX:
            return None
        said = told(kind, clean_value(self.target), self.date, digest, head)
        return () if said is None else (said,)

    def metadata(self, concurrent_to: str, depth: int, via: str, own: Mapping[str, str], given: Mapping[str, str]) -> bytes:
        response = self._response
        values = {
            "corpus-url": clean_uri(self._url),
            "corpus-content-sha256": given.get("corpus-content-sha256") or self._content(),
            "corpus-depth": str(depth),
            "corpus-via": via,
            "corpus-fetched-at": str(self._us),
            "fetchTimeMs": str(max(round((response.ended_at - response.started_at) * 1000), 0)),
            "corpus-tls": response.tls,
        } | {**given, **own}
        fields = (("WARC-Target-URI", self.target), ("WARC-Concurrent-To", concurrent_to))
        return encode_record(
            "metadata", self.id_of("metadata"), self.date, fields, warc_fields(values.items()), content_type=_WARC_FIELDS
        )

    def _content(self) -> str:
        """A 304 has no body of its own: only the caller knows which one it confirms."""
        return "" if self._response.status == 304 else hashlib.sha256(self._response.decoded).hexdigest()

    def _ip(self) -> str:
        return self._response.ip or self._request.ip

    def _plain_request(self) -> bytes:
        """The request of a transport that does not record its own bytes."""
        path = _AUTHORITY.sub("", self.target).partition("#")[0]
        return http_head(
            f"GET {path if path.startswith('/') else '/' + path} HTTP/1.1", [("Host", self._request.host), *self._request.headers]
        )
