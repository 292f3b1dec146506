"""A fetch process as a member's hand: what is different from one that a single machine's supervisor started.

Its partition files are those of the member, its times are the server's, its addresses are claimed from the whole fleet, and a
page is acknowledged only when its segment is sealed and recorded, because nobody else could cut what this machine left open.
Loads PostgreSQL only where it is used.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from corpus.app.fetch_neighbours import ThreadedClaims
from corpus.app.project import Project
from corpus.crawl.clock import RealClock
from corpus.crawl.ports import FrontierStore, Inbox
from corpus.errors import ServerGone
from corpus.store.inbox import ObjectInbox

FRESH_SEAT = 1
"""Up to this epoch nobody but us can have contacted anybody of a partition file."""
_ELSEWHERE = ("192.0.2.1", 9)
"""An address of documentation: asking which way it would be reached sends nothing."""


@dataclass(frozen=True, slots=True)
class Seat:
    """`member`: our number in the fleet; `epoch`: with it, it names our segments; `files`: partition files to own; `seeds`: those of
    them whose seeds nobody has planted in this run."""

    member: int
    node: str
    epoch: int
    files: tuple[int, ...]
    seeds: tuple[int, ...]
    region: str = ""

    def notes(self) -> dict[str, str]:
        """What every capture says of where it was made."""
        named = {"corpus-region": self.region, "corpus-egress": egress(), "corpus-worker": self.node}
        return {name: value for name, value in named.items() if value}


def seated(project: Project, seat: Seat | None) -> Project:
    """The project as a member's own: leases bear its name."""
    return project if seat is None else replace(project, layout=replace(project.layout, node=seat.node))


def egress() -> str:
    """The address from which this machine reaches the world; behind a translator its own side of it. Empty without a route."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_ELSEWHERE)
        return str(probe.getsockname()[0])
    return ""


class ServerClock(RealClock):
    """Epoch seconds as the server counts them: what is stored means the same on every machine, however wrong its clock is."""

    def __init__(self, dsn: str) -> None:
        from corpus.store.frontier_pg_db import dial, shown, translated

        con = dial(dsn, None, readonly=True)
        try:
            with translated(shown(dsn)):
                asked = time.monotonic()
                (now,) = con.execute("SELECT extract(epoch FROM clock_timestamp())::double precision").fetchone() or (0.0,)
                self._zero = float(now) - (asked + time.monotonic()) / 2
        finally:
            con.close()

    def wall(self) -> float:
        return self._zero + time.monotonic()


def open_inbox(project: Project) -> Inbox:
    """Where batches for our files arrive."""
    if not project.layout.server:
        return ObjectInbox(project.mail)
    from corpus.store.fleet_inbox import PostgresInbox

    return PostgresInbox(project.layout.server)


def take_in(project: Project, inbox: Inbox, files: tuple[int, ...]) -> None:
    """Before these files count as ours: a server's inbox takes in what an earlier run left for them as files of this machine."""
    if project.layout.server:
        from corpus.store.fleet_inbox import PostgresInbox

        assert isinstance(inbox, PostgresInbox), "what is on a server is told through it"
        inbox.take_in(ObjectInbox(project.mail), files)


def fleet_claims(project: Project, seat: Seat, clock: RealClock) -> ThreadedClaims:
    """Claims on addresses that the whole fleet shares, by the server's time."""
    from corpus.store.fleet_claims import PostgresIpClaims

    return ThreadedClaims(PostgresIpClaims(project.layout.server), seat.node, project.config.crawl, clock.wall)


def quiet_files(stores: Mapping[int, FrontierStore]) -> dict[int, float]:
    """By file, until when (monotonic) nobody may be contacted, because a former owner died and its contacts may still run."""
    found = {number: getattr(store, "quiet_until", -math.inf) for number, store in stores.items()}
    return {number: until for number, until in found.items() if until > -math.inf}


def let_go(store: FrontierStore) -> None:
    """Free a file whose last pages could not be made durable here; nothing of it is in flight any more."""
    from corpus.store.frontier_postgres import PostgresFrontier

    if isinstance(store, PostgresFrontier):
        with suppress(ServerGone):  # its lease ends by itself then
            store.let_go()


def hold(stores: Iterable[FrontierStore]) -> None:
    """Renew leases that are due for it. Raises FenceLost, ServerGone."""
    for store in stores:
        if (renew := getattr(store, "hold", None)) is not None:
            renew()


def plant(project: Project, stores: Mapping[int, FrontierStore]) -> None:
    """The seeds of files that nobody has planted in this run: harmless when somebody has."""
    from corpus.app.prepare import seeds_by_file
    from corpus.crawl.ports import Ack

    if stores:
        for number, seeds in seeds_by_file(project).items():
            if number in stores:
                stores[number].commit([Ack(own=(judged,)) for judged in seeds])
