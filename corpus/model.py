"""The nouns that flow between rooms. Frozen values, no input or output, no clock.

Every stage takes and returns these; nothing crosses a room boundary as a dict of strings. Identities are
digests of content and address only: no identity contains a time, a position or a worker number.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

SCHEMA_VERSION = 1
"""Version of the release columns and of the folder layout; bumped by hand, refused when newer than ours."""


class Access(StrEnum):
    """May this URL be requested (RFC 9309)? `defer`: nobody knows yet, so not now."""

    YES = "yes"
    NO = "no"
    DEFER = "defer"


class Use(StrEnum):
    """May a model be trained on it? `unknown`: no statement was found; it is never turned into `yes`."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Gate(StrEnum):
    """What the crawler does with a URL, given both verdicts."""

    FETCH = "fetch"
    SKIP = "skip"
    DEFER = "defer"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One statement that bore on a decision, with the raw line and where it stood.

    `source` is the URL of the file, or `header`, `meta`, `status`, `operator`; `line_no` counts from 1 and is None
    for statements without lines; `file_digest` is the SHA-256 (hex) of the whole file; `read_at` is epoch seconds.
    """

    protocol: str
    source: str
    line_no: int | None = None
    raw: str = ""
    agent: str = ""
    file_digest: str = ""
    read_at: float | None = None
    axis: str = "use"
    """`access` or `use`: which verdict the statement speaks to."""
    verdict: str = "unknown"
    """What this statement alone would decide on its axis."""


@dataclass(frozen=True, slots=True)
class Consent:
    """Both verdicts on one URL at one time, what follows from them, and why."""

    access: Access
    use: Use
    gate: Gate
    store: bool
    export: bool
    evidence: tuple[Evidence, ...] = ()


class UrlState(StrEnum):
    """The one state of a known URL. ARCHITECTURE.md draws the transitions; `crawl/states.py` holds them as a table."""

    DISCOVERED = "discovered"
    """Seen by a page, on its way to the partition that owns it."""
    QUEUED = "queued"
    IN_FLIGHT = "in-flight"
    """Only ever in the memory of the process that took it: after a crash it is `queued` again."""
    FETCHED = "fetched"
    PARSED = "parsed"
    """Fetched, and its segment has been measured (derived from commit records, never stored in the frontier)."""
    NOT_MODIFIED = "not-modified"
    REDIRECTED = "redirected"
    REFUSED = "refused"
    FAILED = "failed"
    GONE = "gone"
    EXCLUDED = "excluded"
    PARKED = "parked"


class Kind(StrEnum):
    """What a URL is asked for. Every kind is a contact and takes the host's politeness slot."""

    PAGE = "page"
    SITEMAP = "sitemap"
    ROBOTS = "robots"
    TDMREP = "tdmrep"
    AI_TXT = "ai-txt"
    RSL = "rsl"


class Failure(StrEnum):
    """How the web misbehaved; each has a row in the retry table."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    PROTOCOL = "protocol"
    """Not HTTP, header limits exceeded, a body that contradicts its framing."""
    ADDRESS = "address-refused"
    """The name resolves to an address that is private, loopback or link-local, and was not allowed."""
    THROTTLED = "http-429"
    UNAVAILABLE = "http-503"
    SERVER = "http-5xx"
    CLIENT = "http-4xx"
    CHALLENGE = "challenge"
    CONTENT_TYPE = "content-type"
    TOO_SLOW = "too-slow"
    """Below the minimum throughput, or the total time ran out after the first byte."""
    DECODE = "decode"
    """A content-encoding that does not decode, or a bomb past `max_ratio`."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A URL on its way to the partition that owns it. `url` is the key, `found` is what will be asked for."""

    url: str
    found: str
    depth: int
    kind: Kind = Kind.PAGE
    hops: int = 0
    """Redirects followed since the last link; bounded by `max_redirects`."""
    via: str = ""
    """Canonical URL of the page that linked here; empty for a seed."""
    priority: float = 0.5
    """A sitemap's own claim, 0..1."""


@dataclass(frozen=True, slots=True)
class CaptureRef:
    """Where a capture lies: the response record of `file` (relative to the store root) at `offset`, `length` bytes long."""

    file: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Response:
    """What one request brought back, before anyone judged it.

    `headers` keep the server's order, case and repeats (latin-1 text). `body` is transfer-decoded but still
    content-encoded; `decoded` is the content-decoded body, cut at `max_body`. `raw_status` is the status line.
    Times are epoch seconds; `latency_s` runs from the request's first byte to the answer's first byte.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    decoded: bytes
    raw_status: str
    raw_request: bytes
    ip: str
    started_at: float
    ended_at: float
    latency_s: float
    bytes_wire: int
    truncated: str = ""
    """WARC-Truncated reason (`length`, `time`, `disconnect`) or empty."""
    tls: str = ""
    """`strict`, `lax`, or empty for plain HTTP."""

    def header(self, name: str) -> str | None:
        """The first value of a header, matched without regard to case."""
        low = name.lower()
        for key, value in self.headers:
            if key.lower() == low:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Failed:
    """The web misbehaved: no usable response. `detail` is one line for a person."""

    failure: Failure
    detail: str
    started_at: float
    ended_at: float
    ip: str = ""
    status: int | None = None
    retry_after_s: float | None = None


FetchResult = Response | Failed


@dataclass(frozen=True, slots=True)
class Capture:
    """One page as read back from an archive: what the map stage takes in.

    `url` is the canonical URL (the key), `found` the WARC-Target-URI. `body` is content-decoded. `headers` are as
    stored. For a linked copy `body` is empty and `near_original` / `near_distance` say what it copies; a record
    that cannot be read has a `fault` instead of a body.
    """

    url: str
    found: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    fetched_at: float
    ref: CaptureRef
    depth: int | None = None
    content_sha256: str = ""
    near_original: str = ""
    near_distance: int | None = None
    truncated: str = ""
    fault: str = ""

    def header(self, name: str) -> str | None:
        """The first value of a header, matched without regard to case."""
        low = name.lower()
        for key, value in self.headers:
            if key.lower() == low:
                return value
        return None


class Outcome(StrEnum):
    """What became of a capture in the map stage. Every page capture has exactly one row with one of these."""

    OK = "ok"
    NO_TEXT = "no-text"
    UNSUPPORTED = "unsupported-type"
    TOO_LARGE = "too-large"
    STUCK = "stuck"
    """The parser overran its work limit on this body (recorded by digest, so it stays decided)."""
    POISON = "poison"
    """The record crashed a worker three times and was bisected out."""
    NEAR_COPY = "near-copy"
    """The crawl's near-copy gate linked it to its original; its HTML was not stored."""


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """One step of law C: `n_in == n_out + sum(dropped.values())`."""

    stage: str
    n_in: int
    n_out: int
    dropped: dict[str, int] = field(default_factory=dict)

    def adds_up(self) -> bool:
        return self.n_in == self.n_out + sum(self.dropped.values())


FUNNEL_STAGES = ("known", "fetched", "extracted", "language", "quality", "allowed", "unique", "exported")


def url_id(url: str) -> str:
    """Identity of an address: SHA-256 of the canonical URL, first 16 bytes, as 32 hex digits."""
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).digest()[:16].hex()


def content_sha256(decoded: bytes) -> str:
    """SHA-256 (hex) of a body after transfer- and content-decoding."""
    return hashlib.sha256(decoded).hexdigest()


def document_id(url: str, content: str) -> str:
    """Identity of a version: SHA-256 of canonical URL, a NUL, and the content digest's 32 bytes; first 16 bytes, hex."""
    key = url.encode("utf-8", "surrogatepass") + b"\0" + bytes.fromhex(content)
    return hashlib.sha256(key).digest()[:16].hex()
