"""From the bytes of an answer to a result: when to stop reading, how to decode, what a cut means. Pure.

Both transports use it, so a body means the same over a socket and in a simulation. Where a body is cut depends only
on its bytes and the limits, never on how the network happened to slice it: two fetches of an unchanged page agree.

Choices. A 2xx body that breaks off (its length or framing says so) is kept with `truncated = "disconnect"` when
anything of it decodes, and is a `RESET` (a `PROTOCOL`, when its framing is nonsense) otherwise; the caller may ask
again and keep the better one. A 2xx body that comes too slowly, does not decode or expands past `max_ratio` is a
failure, and so is one under a transfer coding besides `chunked`: nobody asked for it, and the archive, which keeps
bodies without their transfer coding, could not tell that it is still on. Of any other status only the head matters:
it is always a response, whatever its body does.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpus.crawl.fetch_limits import PROBE_AT, Limits
from corpus.crawl.ports import Request
from corpus.crawl.wire import Headers
from corpus.model import Failed, Failure, FetchResult, Response
from corpus.page.encoding import Decoded, content_codings, decode_body

_TRANSFER_CODINGS = frozenset({"gzip", "x-gzip", "deflate", "compress", "x-compress"})
_BROKEN_OFF = frozenset({Failure.RESET, Failure.PROTOCOL})


@dataclass(frozen=True, slots=True)
class Head:
    """Status line and headers as received, and what was sent to get them. Times: epoch seconds, durations in s."""

    status: int
    line: str
    headers: Headers
    raw_request: bytes
    started_at: float
    latency_s: float
    tls: str = ""

    @property
    def success(self) -> bool:
        return 200 <= self.status < 300

    def size(self) -> int:
        """Bytes of the head on the wire."""
        return len(self.line) + 4 + sum(len(name) + len(value) + 4 for name, value in self.headers)


class Body:
    """The wire bytes of one body (transfer-decoded), collected until a limit says that more would be thrown away."""

    def __init__(self, limits: Limits, headers: Headers) -> None:
        self.limits = limits
        self.codings = content_codings(headers)
        self.fault = _transfer_fault(headers)
        self.received = 0
        self._wire = bytearray()
        self._probe_at = PROBE_AT
        self._kept: int | None = None
        self._whole: bytes | None = None

    def add(self, chunk: bytes) -> None:
        self.received += len(chunk)
        if len(self._wire) <= self.limits.max_body:
            self._wire += chunk
            self._whole = None

    @property
    def full(self) -> bool:
        """Enough wire bytes are here: what follows would be cut."""
        return self._kept is not None or len(self._wire) > self.limits.max_body

    def probe(self) -> bytes | None:
        """The next prefix that should be decoded to learn whether the cap is reached; None: read on."""
        if not self.codings or self._kept is not None or len(self._wire) < self._probe_at:
            return None
        return bytes(self._wire[: self._probe_at])

    def probed(self, decoded: Decoded) -> None:
        """What decoding the last probe gave: at the cap (or past the ratio) the body ends there."""
        if decoded.truncated:
            self._kept, self._whole = self._probe_at, None
        self._probe_at *= 2

    def wire(self) -> bytes:
        """The bytes to keep: copied once, and the same object again while nothing is added."""
        if self._whole is None:
            with memoryview(self._wire) as wire:
                self._whole = bytes(wire[: self.limits.max_body if self._kept is None else self._kept])
        return self._whole

    def decode(self, wire: bytes, max_body: int | None = None) -> Decoded:
        """Decode (part of) the body inside the limits; `max_body` lowers the cap."""
        if self.fault:
            return Decoded(b"", fault=self.fault)
        cap = self.limits.max_body if max_body is None else min(max_body, self.limits.max_body)
        return decode_body(self.codings, wire, cap, self.limits.max_ratio)


def settle(
    request: Request, head: Head, body: Body, decoded: Decoded, ended_at: float, *, broke: Failed | None = None
) -> FetchResult:
    """The result of a fetch whose head arrived. `broke` says how the body ended early, None when it did not."""
    wire = body.wire()
    bomb = decoded.truncated and bool(decoded.fault)
    cut = "length" if body.full or decoded.truncated else ""
    if head.success:
        if bomb or body.fault or (decoded.fault and broke is None and not cut):
            return _failed(request, head, ended_at, Failure.DECODE, decoded.fault)
        if broke is not None and not cut:
            if broke.failure not in _BROKEN_OFF or not decoded.body:
                return broke
            cut = "disconnect"
    elif broke is not None and not cut:
        cut = "disconnect" if broke.failure in _BROKEN_OFF else "time"
    return Response(
        status=head.status,
        headers=head.headers,
        body=wire,
        decoded=decoded.body,
        raw_status=head.line,
        raw_request=head.raw_request,
        ip=request.ip,
        started_at=head.started_at,
        ended_at=ended_at,
        latency_s=head.latency_s,
        bytes_wire=head.size() + body.received,
        truncated=cut,
        tls=head.tls,
    )


def _failed(request: Request, head: Head, ended_at: float, failure: Failure, detail: str) -> Failed:
    return Failed(failure, detail, head.started_at, ended_at, request.ip, head.status)


def _transfer_fault(headers: Headers) -> str:
    """What is wrong with the transfer codings; empty when they are none or `chunked`, or names that nobody registered."""
    for name, value in headers:
        if len(name) == 17 and name.lower() == "transfer-encoding":  # few names are lowered: this runs for every page
            for part in value.split(","):
                if (token := part.partition(";")[0].strip().lower()) in _TRANSFER_CODINGS:
                    return f"transfer coding {token!r} is not supported"
    return ""
