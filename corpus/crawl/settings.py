"""Settings of the crawl and the recrawl. Names are CONTRACT's; every default is the polite one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from corpus.settings import Bytes, Seconds, Settings


class Scope(Settings):
    """Which URLs may be crawled. With none of the first three given, the seeds' registered domains."""

    domains: tuple[str, ...] = ()
    """Registered or other domains, each with all its subdomains."""
    hosts: tuple[str, ...] = ()
    """Exact host names."""
    prefixes: tuple[str, ...] = ()
    """URL prefixes."""
    exclude: tuple[str, ...] = ()
    """URL prefixes or `*`-patterns that are never crawled, whatever else says yes."""
    any: bool = False
    """Crawl everything that is linked. Needs a budget."""


class TrustedHost(Settings):
    """A host whose owner agreed to a faster pace."""

    host: str
    """The host that agreed."""
    delay: Seconds
    """The gap it agreed to."""
    connections: PositiveInt = 1
    """Requests at a time that it agreed to."""
    why: str = Field(min_length=3)
    """Who agreed, and when; shown in reports."""


class CrawlSettings(Settings):
    seeds: tuple[str, ...] = ()
    """URLs, or files with one URL a line (relative to the configuration file)."""
    contact: str = ""
    """A page about the crawl (https://…) or a mailbox. Site owners must be able to reach you."""
    user_agent: str = ""
    """Overrides the whole User-Agent; must contain `robots_token`."""
    robots_token: str = Field("CorpusBot", pattern=r"^[A-Za-z_-]+$")
    """The product token looked up in robots.txt: letters, `_`, `-` only (RFC 9309)."""
    scope: Scope = Scope()
    max_depth: PositiveInt = 20
    """Links away from a seed."""
    max_pages: PositiveInt | None = None
    """Ends the run after so many pages asked for; statement files and sitemaps are free."""
    max_bytes: Bytes | None = None
    """Ends the run after so many bytes received."""
    max_time: Seconds | None = None
    """Ends the run after so long; paused time does not count."""
    max_pages_per_host: PositiveInt = 20_000
    """No site pays for the others."""
    max_pages_per_domain: PositiveInt | None = None
    """The same for a registered domain with all its hosts."""
    delay: Seconds = 2.0
    """The floor of the gap between two contacts of a group."""
    delay_start: Seconds = 5.0
    """The gap a new host starts with; good answers earn it down."""
    latency_factor: PositiveFloat = 5.0
    """The gap is at least this many times what the host takes to answer."""
    max_crawl_delay: Seconds = 60.0
    """A longer Crawl-delay parks the host, with the reason."""
    ip_delay: Seconds | None = None
    """Absent: equal to `delay`."""
    ip_slots: PositiveInt = 8
    """Requests at a time to an address of a known content network, in place of its clock."""
    backoff_max: Seconds = 86_400.0
    """The longest gap and wait that trouble with a host may lead to."""
    park_after: Seconds = 60.0
    """A longer wait is not waited out: the host is parked, and a `done` run may end without it."""
    retries: PositiveInt = 5
    """Tries of a URL at most; some failures end sooner."""
    slots: PositiveInt = 256
    """Requests in flight at a time, over all hosts, in each process."""
    processes: PositiveInt = Field(1, le=16)
    """Fetch processes on this machine."""
    trusted: tuple[TrustedHost, ...] = ()
    """Hosts whose owners agreed to a faster pace."""
    until: Literal["done", "forever"] = "done"
    """`done`: every URL at most once a run; `forever`: visit again when due, until it is stopped."""
    connect_timeout: Seconds = 10.0
    """For the connection and the TLS handshake."""
    first_byte_timeout: Seconds = 30.0
    """From the request to the first byte of the answer."""
    idle_timeout: Seconds = 20.0
    """Between two pieces of a body."""
    total_timeout: Seconds = 120.0
    """For the whole contact."""
    max_body: Bytes = 10 * 2**20
    """Decoded bytes; what is longer is cut there, and the archive says so."""
    max_ratio: PositiveInt = 200
    """Decoded bytes per received byte; more is taken for a bomb."""
    max_redirects: PositiveInt = 5
    """In a row; each hop is judged, and asked for at its own pace."""
    content_types: tuple[str, ...] = ("text/html", "application/xhtml+xml", "text/plain")
    """What is stored; anything else ends as `content-type`."""
    sitemaps: bool = True
    """Read the sitemaps that robots.txt names."""
    allow_private: tuple[str, ...] = ()
    """CIDR ranges whose refusal is lifted, e.g. `127.0.0.0/8`."""
    resolver: tuple[str, ...] = ()
    """`IP:PORT` of name servers; absent: the system's."""
    ca_file: str | None = None
    """A PEM file of further certificate authorities."""
    tls: Literal["strict", "lax"] = "strict"
    """`lax`: any certificate is accepted."""
    proxy: str | None = None
    """`http://host:port`."""
    seen: Literal["exact", "bloom"] = "exact"
    """`bloom`: less memory; of all new URLs a share of `seen_fp` is taken for known."""
    seen_fp: float = Field(0.001, gt=0, lt=0.1)
    """See `seen`."""
    near_copies: Literal["link", "store", "skip"] = "link"
    """A page that nearly repeats a stored one: keep only the link to it, store both, or keep nothing."""
    near_k: int = Field(3, ge=1, le=7)
    """Bits of the 64-bit SimHash in which near copies differ at most."""
    max_url_length: PositiveInt = 2000
    """Longer URLs are excluded."""
    max_query_params: PositiveInt = 12
    """URLs with more are excluded."""
    max_repeated_segments: PositiveInt = 3
    """URLs in whose path a segment stands more often are excluded."""

    @property
    def ip_gap_s(self) -> float:
        return self.delay if self.ip_delay is None else self.ip_delay


class RecrawlSettings(Settings):
    every: Seconds = 30 * 86_400.0
    """From a visit to the next one."""
    min_interval: Seconds = 600.0
    """The shortest that the other modes may choose."""
    max_interval: Seconds = 90 * 86_400.0
    """The longest that the other modes may choose."""
    mode: Literal["uniform", "by-change", "proportional", "optimal"] = "uniform"
    """`uniform`: all pages alike; `by-change`: as often as each page changed; `proportional`, `optimal`: share out what `uniform` would spend."""
    share: float = Field(0.5, ge=0, le=1)
    """Of the contacts that go to pages due again while new ones wait too."""
    period: Literal["day", "week", "month", "year"] = "month"
    """A crawl's label is the day, week, month or year that it began in."""
