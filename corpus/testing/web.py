"""The simulated web: many hosts on loopback, made from a seed, with every misbehaviour a crawler meets outside.

    web = SimWeb(seed=1, hosts=zoo())
    async with web.serve() as server: ...          # sockets, in this loop: server.port, server.log
    with web.serve_in_process() as process: ...    # its own process: process.port, process.log()
    SimTransport(web, VirtualClock(), settings)    # no sockets at all (`corpus.testing.transport`)

Promises: the same seed and hosts give the same bytes for ever; `expected()` is the ground truth of a crawl with
default settings; every contact is logged by the server. Only 127.0.0.0/8 is listened on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from corpus.errors import UsageError
from corpus.model import UrlState
from corpus.testing.web_answer import Answer, Ask, Name
from corpus.testing.web_hostile import ALL_FAMILIES, MAZE_DOORS, maze, maze_prefixes
from corpus.testing.web_hosts import Page, Robots, SimHost, Throttle, Trait, address_of, plain_hosts, zoo
from corpus.testing.web_log import Contact, ContactLog, read_log
from corpus.testing.web_pages import HTML, Pages, answer, ordinary_path
from corpus.testing.web_policy import effect_of, policy_files
from corpus.testing.web_process import ServerProcess
from corpus.testing.web_server import SimServer

__all__ = [
    "Contact",
    "ContactLog",
    "Expectation",
    "Robots",
    "ServerProcess",
    "SimHost",
    "SimServer",
    "SimWeb",
    "Throttle",
    "Trait",
    "address_of",
    "plain_hosts",
    "read_log",
    "zoo",
]

_NOT_FOUND = answer(404, body=b"<!DOCTYPE html><title>not found</title><p>There is nothing here.</p>\n")


@dataclass(frozen=True, slots=True)
class Expectation:
    """The end of a URL: its state, and the reason codes that may stand beside it (any when empty).

    `requested` is False for a URL that must never appear in the server's log.
    """

    state: UrlState
    reasons: tuple[str, ...] = ()
    requested: bool = True


class SimWeb:
    """A `Site`. `hosts` may be a number: so many plain hosts. `port` 0: whatever the server finds free."""

    def __init__(self, seed: int = 1, hosts: Sequence[SimHost] | int = 8, *, port: int = 0, pages: int = 6) -> None:
        self.seed = seed
        self.hosts = tuple(plain_hosts(hosts, pages) if isinstance(hosts, int) else hosts)
        self.port = port or 80
        self._fixed_port = port
        self._plans: dict[str, dict[str, Page]] = {}
        self._makers: dict[str, Pages] = {}
        self._by_name = {host.name: host for host in self.hosts}
        if len(self._by_name) != len(self.hosts):
            raise UsageError("two simulated hosts share a name", "SimWeb")
        self._closed_until: dict[str, float] = {}
        self._served_since: dict[str, int] = {}

    def __reduce__(self) -> tuple[type[SimWeb], tuple[int, tuple[SimHost, ...]], dict[str, int]]:
        # A copy in another process starts with an empty memory.
        return SimWeb, (self.seed, self.hosts), {"port": self.port, "_fixed_port": self._fixed_port}

    # -- Site ----------------------------------------------------------------------------------------------------
    def names(self) -> Mapping[str, Name]:
        return {host.name: host.dns or Name((host.address,)) for host in self.hosts}

    def down(self) -> frozenset[str]:
        up = {host.address for host in self.hosts if not host.down}
        return frozenset(host.address for host in self.hosts if host.down) - up

    def answer(self, ask: Ask) -> Answer:
        """What the host says: a throttle first, then the path's own page, a maze, or 404."""
        host = self._by_name.get(ask.host)
        if host is None:
            return Answer(421, HTML, b"no such host here")
        if host.throttle is not None and (refusal := self._throttled(host, host.throttle, ask)):
            return refusal
        page = self._plan(host).get(ask.target) or self._plan(host).get(ask.path)
        if page is not None:
            return page.respond(ask)
        for trait in host.traits:
            if ask.path.startswith(maze_prefixes(trait) or ("\0",)):
                return maze(self._make(host), trait, ask)
        return _NOT_FOUND(ask)

    def _throttled(self, host: SimHost, throttle: Throttle, ask: Ask) -> Answer | None:
        until = self._closed_until.get(host.name, 0.0)
        early = ask.at < until
        if not early and self._served_since.get(host.name, 0) < throttle.after:
            self._served_since[host.name] = self._served_since.get(host.name, 0) + 1
            return None
        if not early:
            self._closed_until[host.name] = ask.at + (0.0 if throttle.form == "past" else throttle.wait_s)
            self._served_since[host.name] = 0
        left = max(self._closed_until[host.name] - ask.at, 0.0)
        value = {
            "seconds": f"{-(-left // 1):.0f}",
            "date": formatdate(-(-(ask.wall + left) // 1), usegmt=True),
            "past": formatdate(ask.wall - 3600, usegmt=True),
            "none": "",
        }[throttle.form]
        headers = (("Retry-After", value),) if value else ()
        return Answer(throttle.status, (*headers, *HTML), b"slow down\n", tag="early" if early else "throttled")

    # -- the plan of a host --------------------------------------------------------------------------------------
    def _make(self, host: SimHost) -> Pages:
        make = self._makers.get(host.name)
        if make is None:
            at = self.hosts.index(host)
            others = [h.name for h in (*self.hosts[at + 1 : at + 3], *self.hosts[: min(at, 2)])]
            make = self._makers[host.name] = Pages(self.seed, host, self.port, tuple(others[:2]))
        return make

    def _plan(self, host: SimHost) -> dict[str, Page]:
        plan = self._plans.get(host.name)
        if plan is None:
            plan = self._plans[host.name] = self._planned(host)
        return plan

    def _planned(self, host: SimHost) -> dict[str, Page]:
        make = self._make(host)
        plan = {ordinary_path(n): make.ordinary(n) for n in range(1, host.pages + 1)}
        for trait in host.traits:
            plan |= ALL_FAMILIES[trait](make)
        if effect_of(host).private:
            for number in (1, 2):
                path = f"/private/{number}"
                plan[path] = Page(make.static(path).respond, UrlState.REFUSED, ("robots",), requested=False)
        doors = [MAZE_DOORS[trait] for trait in host.traits if trait in MAZE_DOORS]
        links = [path for path, page in plan.items() if page.linked]
        links += [*doors, *(make.at(name, "/") for name in make.neighbours)]
        plan["/"] = Page(lambda ask: make.page("/", links=links))
        return plan | policy_files(host, self.port)

    def at_port(self, port: int) -> None:
        """The port is known now: absolute links and expectations are made anew with it."""
        if port != self.port:
            self.port = port
            self._plans.clear()
            self._makers.clear()

    # -- for tests -----------------------------------------------------------------------------------------------
    def url(self, host: SimHost | str, path: str = "/") -> str:
        """An absolute URL of this web."""
        name = host if isinstance(host, str) else host.name
        return f"http://{name}{path}" if self.port == 80 else f"http://{name}:{self.port}{path}"

    def seeds(self) -> list[str]:
        """The index of every host."""
        return [self.url(host) for host in self.hosts]

    def expected(self) -> dict[str, Expectation]:
        """Ground truth by URL, mazes left out (they have no end): what a whole crawl from `seeds()` with default
        settings makes of every page that can be found."""
        truth: dict[str, Expectation] = {}
        for host in self.hosts:
            effect = effect_of(host)
            lost = _lost(host)
            policy = set(policy_files(host, self.port)) | {"/sitemap.xml", "/sitemap-1.xml.gz"}
            for path, page in self._plan(host).items():
                if path in policy:
                    continue
                seen = Expectation(page.state, page.reasons, page.requested)
                if effect.state is not None:
                    seen = Expectation(effect.state, effect.reasons, requested=False)
                if lost is not None:
                    seen = lost
                if (lost is None and effect.state is None) or path == "/":  # the rest is never discovered
                    truth[self.url(host, path)] = seen
        return truth

    def maze_urls(self) -> list[str]:
        """Prefixes of URLs inside mazes."""
        return [self.url(host, prefix) for host in self.hosts for trait in host.traits for prefix in maze_prefixes(trait)]

    def serve(self, log: ContactLog | None = None) -> SimServer:
        """A server for the running loop: use it as an async context manager."""
        return _WebServer(self, port=self._fixed_port, log=log)

    def serve_in_process(self, log_path: Path | None = None) -> ServerProcess:
        """A server in its own process: use it as a context manager. It dies with its parent."""
        return ServerProcess(self, port=self._fixed_port, log_path=log_path)


class _WebServer(SimServer):
    """Tells the web its port: absolute links and expectations hold it."""

    async def start(self) -> None:
        await super().start()
        assert isinstance(self.site, SimWeb)
        self.site.at_port(self.port)


def _lost(host: SimHost) -> Expectation | None:
    """Hosts that cannot be asked at all."""
    if host.dns is not None and host.dns.rcode == 0 and not host.dns.silent and host.dns.addresses != (host.address,):
        return Expectation(UrlState.FAILED, ("address-refused",), requested=False)
    if host.dns is not None and (host.dns.rcode or host.dns.silent):
        return Expectation(UrlState.FAILED, ("dns", "robots-unreachable", "backing-off"), requested=False)
    if host.down:
        return Expectation(UrlState.PARKED, ("robots-unreachable", "connect", "backing-off"), requested=False)
    return None
