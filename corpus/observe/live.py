"""A crawl at one moment, as numbers: what the terminal, the status page and the metrics all show. Plain data, no clock.

The supervisor makes one twice a second; it travels as a JSON object, so a reader of another process sees the same.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from corpus.observe.words import many, size

HOST_STATES = ("active", "waiting", "backing-off", "parked", "new", "blocked", "retired")


@dataclass(slots=True)
class Live:
    """Times in seconds, sizes in bytes. Lists hold at most a handful of rows. Counts are of this run unless they say otherwise."""

    at: float = 0.0
    """Epoch seconds."""
    run_id: str = ""
    stage: str = "crawl"
    seconds: float = 0.0
    """Run time, paused time left out."""
    paused: bool = False
    pages: int = 0
    requests: int = 0
    policy_requests: int = 0
    bytes_wire: int = 0
    bytes_body: int = 0
    pages_s: float = 0.0
    pages_s_mean: float = 0.0
    bytes_s: float = 0.0
    in_flight: int = 0
    hosts: dict[str, int] = field(default_factory=dict)
    """Hosts with something to ask for, by state; parked ones by the frontier's account."""
    parked: dict[str, int] = field(default_factory=dict)
    frontier: dict[str, int] = field(default_factory=dict)
    """Known pages by state, of all runs, as they were at `frontier_at` (epoch seconds): counting them costs a query."""
    frontier_at: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    """Answers by status class (`2xx` … `failed`)."""
    refused: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    retried: dict[str, int] = field(default_factory=dict)
    excluded: dict[str, int] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    slowest: list[list[Any]] = field(default_factory=list)
    """[host, latency, gap]"""
    failing: list[list[Any]] = field(default_factory=list)
    """[host, failures, latest reason]"""
    due: list[list[Any]] = field(default_factory=list)
    """[host, seconds until its turn, why]"""
    recent: list[list[Any]] = field(default_factory=list)
    """[epoch seconds, url, state, reason, status]: crawled text, to be escaped wherever it is shown."""
    budget: list[list[Any]] = field(default_factory=list)
    """[key, used, limit]"""
    eta_s: float | None = None
    bound: str = ""
    """What decides the end."""
    stalled: str = ""
    """Why nothing moves; empty while something does."""
    lag_ms: float = 0.0
    """Loop lag, p99 of the worst fetch process."""
    lag_own_ms: float = 0.0
    """The same without waits for a core."""
    commit_s: float = 0.0
    processed_segments: int = 0
    """Segments that were processed while the crawl went on, and their bytes."""
    processed_bytes: int = 0
    processed_pages: int = 0
    """Documents in them, and how many of those have a text."""
    processed_texts: int = 0
    waiting_segments: int = 0
    """Segments that wait for it, and their bytes."""
    waiting_bytes: int = 0
    waiting_limit: int = 0
    """So many bytes may wait (`engine.backlog`); 0: nothing is processed beside this crawl."""
    held: bool = False
    """Fetch waits for processing."""
    orders: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """More rows for `status`, by name: whoever has a number worth showing adds it here."""

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, document: dict[str, Any]) -> Live:
        """The inverse of `document`; keys of another version are left out."""
        return cls(**{name: document[name] for name in cls.__slots__ if name in document})

    def line(self) -> dict[str, Any]:
        """The numbers worth a line of the run's log."""
        names = ("pages", "requests", "policy_requests", "bytes_wire", "in_flight", "lag_ms", "lag_own_ms")
        return {
            **{name: getattr(self, name) for name in names},
            "pages_s": round(self.pages_s, 2),
            "active": self.hosts.get("active", 0),
            "waiting": self.hosts.get("waiting", 0),
            "backing_off": self.hosts.get("backing-off", 0),
            "parked_hosts": sum(self.parked.values()),
            "queued": self.frontier.get("queued", 0),
            "refused": sum(self.refused.values()),
            "failed": sum(self.failed.values()),
            **({"processed_bytes": self.processed_bytes, "waiting_bytes": self.waiting_bytes} if self.waiting_limit else {}),
            **({"held": True} if self.held else {}),
        }


def status_class(status: str) -> str:
    """`404` → `4xx`; what is no status is `failed`."""
    return f"{status[0]}xx" if len(status) == 3 and status.isdigit() else "failed"


def why_stalled(live: Live, quiet_s: float, *, after_s: float = 20.0) -> str:
    """Why nothing was asked for `quiet_s` seconds, in one sentence that names the hosts; empty while all is well.

    A long wait that hosts asked for is no fault, but whoever looks at a crawl that stands still wants to read it.
    """
    if live.paused:
        return "paused by the operator; corpus ctl resume lets it go on"
    if live.held:
        return (
            f"fetch waits for processing: {size(live.waiting_bytes)} in {many(live.waiting_segments, 'segment')} not processed yet, and "
            f"engine.backlog is {size(live.waiting_limit)}"
        )
    if quiet_s < after_s:
        return ""
    since = f"nothing was asked for {quiet_s:.0f} s: "
    if live.commit_s > 10.0:
        return since + f"the disk is slow, the last commit took {live.commit_s:.0f} s"
    if live.in_flight:
        slow = ", ".join(str(row[0]) for row in live.slowest[:3])
        return (
            since
            + f"{live.in_flight} requests are under way and not answered yet"
            + (f" (slowest so far: {slow})" if slow else "")
        )
    running = [row for row in live.due if row[1] > 0]
    if running and not any(row[1] <= 0 for row in live.due):
        return (
            since
            + "every host's clock runs; next are "
            + ", ".join(f"{host} in {wait:.0f} s ({why})" for host, wait, why in running[:3])
        )
    if live.due:
        names = ", ".join(str(row[0]) for row in live.due[:3])
        return since + f"hosts are due ({names}) but wait for their domain, their address or a name server"
    if sum(live.parked.values()):
        return since + "only parked hosts are left: " + ", ".join(f"{n} {reason}" for reason, n in sorted(live.parked.items()))
    return since + "no host has anything left to ask; the crawl is about to end"
