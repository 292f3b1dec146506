"""The simulated web without sockets: `SimTransport` and `SimResolver` play a `Site` under any clock.

Promises: the same answers, limits and failures as the real transport meets from the socket server (one contract suite
holds both to it), the same contact log, and no threads and no real time: under a `VirtualClock` a whole crawl is the
same, byte for byte, in every run.
"""

from __future__ import annotations

from email.utils import formatdate

from corpus.crawl.addresses import literal, networks, vet
from corpus.crawl.fetch_body import Body, Head, settle
from corpus.crawl.fetch_limits import HEADER_COUNT, body_deadline, head_deadline, limits_for, wanted
from corpus.crawl.identity import request_headers
from corpus.crawl.ports import Clock, Request, Resolved
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.wire import Target, first, raw_request, target_of
from corpus.model import Failed, Failure, FetchResult
from corpus.testing.web_answer import Answer, Ask, Counts, Fault, Site, head_lines, pieces
from corpus.testing.web_log import Contact, ContactLog

ROUND_TRIP_S = 0.02
BYTES_PER_S = 2_000_000.0
DNS_S = 0.01
DNS_SILENCE_S = 10.0


class SimTransport:
    """`Transport` over a `Site` in memory. `log` holds every contact, as the server would have written it."""

    def __init__(self, site: Site, clock: Clock, settings: CrawlSettings, *, log: ContactLog | None = None) -> None:
        self.site, self.log = site, ContactLog() if log is None else log
        self._clock, self._settings, self._counts = clock, settings, Counts()
        self._names = site.names()
        self._listening = {a for name in self._names.values() for a in name.addresses} - site.down()

    async def fetch(self, request: Request) -> FetchResult:
        target, clock = target_of(request.url), self._clock
        started_at = clock.wall()
        if target is None:
            return Failed(Failure.PROTOCOL, "not a URL that can be asked for", started_at, started_at, request.ip)
        if literal(target.host) not in {None, request.ip}:
            return Failed(Failure.ADDRESS, f"{target.host} is not {request.ip}", started_at, started_at, request.ip)
        if request.ip not in self._listening:
            await clock.sleep(ROUND_TRIP_S)
            return Failed(Failure.CONNECT, "connection refused", started_at, clock.wall(), request.ip)
        play = _Play(self._settings, clock, request, target)
        await clock.sleep(ROUND_TRIP_S)
        play.connected = arrived = clock.monotonic()
        arrived_wall = clock.wall()
        sent = {name.lower(): value for name, value in play.headers} | {"host": target.host_header}
        ask = self._counts.ask(target.host.strip("[]"), target.path, sent, at=arrived, wall=arrived_wall)
        answer = self.site.answer(ask)
        end = "client-left"
        try:
            result = await play.through(answer)
            end = "sent" if answer.fault is Fault.NONE and not play.left else "client-left" if play.left else "closed"
            return result
        finally:
            self._note(request, target, ask, answer, play, (arrived, arrived_wall, end))

    async def close(self) -> None:
        self.log.close()

    def _note(
        self, request: Request, target: Target, ask: Ask, answer: Answer, play: _Play, times: tuple[float, float, str]
    ) -> None:
        arrived, arrived_wall, end = times
        self.log.add(
            Contact(
                n=len(self.log) + 1, host=ask.host, ip=request.ip, port=target.port, target=ask.target,
                status=answer.status if play.head else 0, agent=ask.headers.get("user-agent", ""), arrived=arrived,
                ended=self._clock.monotonic(), arrived_wall=arrived_wall, ended_wall=self._clock.wall(), end=end,
                tag=answer.tag, request=play.sent.decode("latin-1"),
            )
        )  # fmt: skip


class _Play:
    """One answer, played against the limits."""

    def __init__(self, settings: CrawlSettings, clock: Clock, request: Request, target: Target) -> None:
        self.settings, self.clock, self.request, self.target = settings, clock, request, target
        self.headers = request_headers(settings, request)
        self.sent = raw_request(target, self.headers)
        self.started, self.started_at = clock.monotonic(), clock.wall()
        self.connected = self.started
        self.head: Head | None = None
        self.left = False
        """We broke off before the server was done."""

    async def through(self, answer: Answer) -> FetchResult:
        broke = await self._to_head(answer)
        if broke is not None:
            return broke
        line, headers = head_lines(answer, formatdate(self.clock.wall(), usegmt=True))
        tls = self.settings.tls if self.target.scheme == "https" else ""
        latency = self.clock.monotonic() - self.connected
        head = self.head = Head(answer.status, line, headers, self.sent, self.started_at, latency, tls)
        kind = first(headers, "content-type")
        if not wanted(self.request.kind, answer.status, kind, self.settings.content_types):
            self.left = True
            return self._failed(Failure.CONTENT_TYPE, f"Content-Type: {kind}")
        body = Body(limits_for(self.settings, self.request.kind, answer.status), headers)
        broke = await self._read(answer, body)
        return settle(self.request, head, body, body.decode(body.wire()), self.clock.wall(), broke=broke)

    async def _to_head(self, answer: Answer) -> Failed | None:
        """Wait for the header block; a `Failed` when it does not come whole."""
        deadline = head_deadline(limits_for(self.settings, self.request.kind), self.started, self.connected)
        wait_s, failure = answer.wait_s + ROUND_TRIP_S, None
        match answer.fault:
            case Fault.RESET | Fault.CLOSE:
                failure = Failure.RESET
            case Fault.GARBAGE:
                failure = Failure.PROTOCOL
            case Fault.ENDLESS_HEAD:
                wait_s, failure = wait_s + HEADER_COUNT * answer.drip_s, Failure.PROTOCOL
            case Fault.SILENT:
                wait_s = float("inf")
            case Fault.NONE | Fault.CUT | Fault.ENDLESS_BODY:
                pass
        if self.clock.monotonic() + wait_s > deadline.at:
            self.left = True
            await self.clock.sleep(deadline.at - self.clock.monotonic())
            return self._failed(deadline.failure, deadline.detail)
        await self.clock.sleep(wait_s)
        return self._failed(failure, answer.fault.value) if failure else None

    async def _read(self, answer: Answer, body: Body) -> Failed | None:
        head_at = self.clock.monotonic()
        for pause, piece in pieces(answer):
            now = self.clock.monotonic()
            deadline = body_deadline(body.limits, self.started, head_at, now, body.received)
            wait_s = pause + len(piece) / BYTES_PER_S
            if now + wait_s > deadline.at:
                self.left = True
                await self.clock.sleep(deadline.at - now)
                return self._failed(deadline.failure, deadline.detail)
            await self.clock.sleep(wait_s)
            body.add(piece)
            while (part := body.probe()) is not None:
                body.probed(body.decode(part))
            if body.full:
                self.left = answer.fault is not Fault.NONE
                return None
        return self._failed(Failure.RESET, "closed before the end") if answer.fault is Fault.CUT else None

    def _failed(self, failure: Failure, detail: str) -> Failed:
        status = self.head.status if self.head else None
        return Failed(failure, detail, self.started_at, self.clock.wall(), self.request.ip, status)


class SimResolver:
    """`Resolver` over a site's names, vetting as the real one does; asks take `DNS_S`, silence `DNS_SILENCE_S`."""

    def __init__(self, site: Site, clock: Clock, settings: CrawlSettings) -> None:
        self._names, self._clock = site.names(), clock
        self._allow = networks(settings.allow_private)
        self.queries: list[str] = []

    async def resolve(self, host: str) -> Resolved | Failed:
        started = self._clock.wall()
        self.queries.append(host)
        address = literal(host)
        name = self._names.get(host.lower())
        for _ in range(8):
            if name is None or not name.alias:
                break
            name = self._names.get(name.alias)
        if address is None:
            await self._clock.sleep(DNS_SILENCE_S if name is not None and name.silent else DNS_S)
            if name is None or name.silent or name.rcode or not name.addresses:
                return Failed(Failure.DNS, "no address", started, self._clock.wall())
        found = (address,) if address is not None else name.addresses if name is not None else ()
        vetted = tuple(a for a in found if vet(a, self._allow))
        return Resolved(vetted) if vetted else Failed(Failure.ADDRESS, f"resolves to {found[0]}", started, self._clock.wall())

    async def close(self) -> None:
        """Nothing is held open."""
