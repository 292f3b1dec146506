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
    delay: Seconds
    connections: PositiveInt = 1
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
    max_pages: PositiveInt | None = None
    max_bytes: Bytes | None = None
    max_time: Seconds | None = None
    max_pages_per_host: PositiveInt = 20_000
    max_pages_per_domain: PositiveInt | None = None
    delay: Seconds = 2.0
    """The floor of the gap between two contacts of a group."""
    delay_start: Seconds = 5.0
    """The gap a new host starts with; good answers earn it down."""
    latency_factor: PositiveFloat = 5.0
    max_crawl_delay: Seconds = 60.0
    """A longer Crawl-delay parks the host, with the reason."""
    ip_delay: Seconds | None = None
    """Absent: equal to `delay`."""
    ip_slots: PositiveInt = 8
    backoff_max: Seconds = 86_400.0
    park_after: Seconds = 60.0
    retries: PositiveInt = 5
    slots: PositiveInt = 256
    processes: PositiveInt = Field(1, le=16)
    trusted: tuple[TrustedHost, ...] = ()
    until: Literal["done", "forever"] = "done"
    connect_timeout: Seconds = 10.0
    first_byte_timeout: Seconds = 30.0
    idle_timeout: Seconds = 20.0
    total_timeout: Seconds = 120.0
    max_body: Bytes = 10 * 2**20
    max_ratio: PositiveInt = 200
    max_redirects: PositiveInt = 5
    content_types: tuple[str, ...] = ("text/html", "application/xhtml+xml", "text/plain")
    sitemaps: bool = True
    allow_private: tuple[str, ...] = ()
    """CIDR ranges whose refusal is lifted, e.g. `127.0.0.0/8`."""
    resolver: tuple[str, ...] = ()
    """`IP:PORT` of name servers; absent: the system's."""
    ca_file: str | None = None
    tls: Literal["strict", "lax"] = "strict"
    proxy: str | None = None
    seen: Literal["exact", "bloom"] = "exact"
    seen_fp: float = Field(0.001, gt=0, lt=0.1)
    near_copies: Literal["link", "store", "skip"] = "link"
    near_k: int = Field(3, ge=1, le=7)
    max_url_length: PositiveInt = 2000
    max_query_params: PositiveInt = 12
    max_repeated_segments: PositiveInt = 3

    @property
    def ip_gap_s(self) -> float:
        return self.delay if self.ip_delay is None else self.ip_delay


class RecrawlSettings(Settings):
    every: Seconds = 30 * 86_400.0
    min_interval: Seconds = 600.0
    max_interval: Seconds = 90 * 86_400.0
    mode: Literal["uniform", "by-change", "proportional", "optimal"] = "uniform"
    share: float = Field(0.5, ge=0, le=1)
    period: Literal["day", "week", "month", "year"] = "month"
