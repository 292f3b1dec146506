"""Several members of a fleet in one virtual time: each the real loop over partition files that move between them, come what may.

They share what a fleet shares (frontier, inbox, gate, claims on addresses, letters) and nothing else. Each drifts towards whatever
share it is told, as `app.fleet_worker` has it: a few files at a time, and only what nobody else has.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from corpus.crawl.assign import moves
from corpus.crawl.authority import AuthorityBook
from corpus.crawl.claims import Granted
from corpus.crawl.commit import Committer
from corpus.crawl.desk import Errand
from corpus.crawl.discover import Router, seed
from corpus.crawl.judge import VisitTools
from corpus.crawl.moves import Arrival
from corpus.crawl.own_files import OwnFiles
from corpus.crawl.ports import Ack, Due, Request
from corpus.crawl.worker import Progress, Worker
from corpus.model import FetchResult
from corpus.store.frontier_memory import MemoryFrontier
from corpus.store.ip_claims import MemoryIpClaims
from corpus.testing.transport import SimResolver
from corpus.url.host import host_of
from tests.sim.crawl_kit import Crawl, MemorySink

BEAT_S, FEW = 0.5, 4
QUIET_S = 5.0
POST_S = 0.3
"""How long a letter is on its way."""


class MortalClaims(MemoryIpClaims):
    """Claims that end with their owner."""

    def end(self, owner: str, wall: float, gap_s: float) -> None:
        for key, claim in self._claims.items():
            if claim.owner == owner:
                self._claims[key] = replace(claim, owner="", due=Due(wall, gap_s))


@dataclass(slots=True)
class Fleet:
    """`crawl` holds what is shared, and what came of it. `plan`: by file, the number of the member that ought to own it."""

    crawl: Crawl
    rng: random.Random
    commit_s: float = 0.0
    members: dict[int, Member] = field(default_factory=dict)
    plan: dict[int, int] = field(default_factory=dict)
    claims: MortalClaims = field(default_factory=MortalClaims)
    died: dict[int, float] = field(default_factory=dict)
    """Files of members that died: when."""
    letters: list[tuple[int, Errand]] = field(default_factory=list)
    """For files that nobody owns just now."""
    under_way: set[asyncio.Task[None]] = field(default_factory=set)
    """Letters, once they have an address."""
    moved: int = 0
    crashed: int = 0
    slowest_s: float = 0.0
    """The longest that a step of any member took."""

    def run(self, members: int, *, moves_every_s: float, moves: int, crashes: int = 0) -> None:
        """Seeds planted, crawled to the end by so many members, while shares are dealt out anew so often."""
        seeds = self.crawl.web.seeds()
        router = self.crawl.router(seeds)
        for url in seeds:
            sighting = seed(url)
            assert sighting is not None, url
            store = self.crawl.files[self.crawl.file_of(host_of(sighting.url))].reborn()
            store.claim("the first")
            store.commit([Ack(own=tuple(router.judge([sighting])))])
            store.close(clean=True)
        self.crawl.clock.run(self._live(members, moves_every_s, moves, crashes))

    def owner(self, file: int) -> Member | None:
        return next((member for member in self.members.values() if file in member.files), None)

    def free(self, file: int) -> bool:
        return self.owner(file) is None

    async def _live(self, members: int, moves_every_s: float, moves: int, crashes: int) -> None:
        clock, rng = self.crawl.clock, self.rng
        for number in range(members):
            self.members[number] = Member(self, number)
        self._deal()
        next_deal, quiet = clock.monotonic() + moves_every_s, 0
        while quiet < 4:
            await clock.sleep(BEAT_S)
            if moves and clock.monotonic() >= next_deal:
                moves, next_deal = moves - 1, clock.monotonic() + moves_every_s * rng.uniform(0.3, 1.7)
                self._deal()
                if crashes and rng.random() < crashes / max(moves, crashes):
                    crashes -= 1
                    await self._crash(rng.choice(sorted(self.members)))
            self._deliver()
            for member in self.members.values():
                member.beat()
            quiet = quiet + 1 if self._rests() and not moves else 0
        for member in self.members.values():
            member.worker.drain()
        for member in self.members.values():
            await member.life
            for file in list(member.files):
                member.hand_over(file)

    def _deal(self) -> None:
        self.plan = {file: self.rng.choice(sorted(self.members)) for file in range(self.crawl.spread)}

    async def _crash(self, number: int) -> None:
        """It is gone from one moment to the next; another member comes in its place."""
        member, self.crashed = self.members.pop(number), self.crashed + 1
        member.life.cancel()
        await asyncio.wait({member.life})
        for file in member.files:
            self.died[file] = self.crawl.clock.monotonic()
        for sink in member.sinks.values():
            sink.crash()
        self.claims.end(str(number), self.crawl.clock.wall(), self.crawl.config.ip_gap_s)
        self.keep(member)
        fresh = max([number, *self.members]) + 1
        self.members[fresh] = Member(self, fresh)
        self.plan = {file: fresh if owner == number else owner for file, owner in self.plan.items()}

    def keep(self, member: Member) -> None:
        """What a member has stored is part of the crawl."""
        for kind, sink in member.sinks.items():
            self.crawl.sinks[kind].kept += sink.kept

    def _rests(self) -> bool:
        said = [member.said for member in self.members.values()]
        for member in self.members.values():
            member.worker.poke()
        owned = sorted(file for one in said for file in one.files)
        return (
            owned == list(range(self.crawl.spread))
            and all(one.idle for one in said if one.files)
            and sum(one.sent for one in said) == sum(one.applied for one in said)
            and not (self.letters or self.under_way)
        )

    def _deliver(self) -> None:
        waiting, self.letters = self.letters, []
        for file, errand in waiting:
            self.post(file, errand)

    def post(self, file: int, errand: Errand) -> None:
        """To the owner of a file, after a while; kept while nobody is."""
        owner = self.owner(file)
        if owner is None:
            self.letters.append((file, errand))
        else:
            self.later(owner.worker.errand(errand))

    def later(self, call: Coroutine[Any, Any, None]) -> None:
        async def arrive() -> None:
            await self.crawl.clock.sleep(POST_S)
            await call

        task = asyncio.get_running_loop().create_task(arrive())
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)


class Member:
    """One member: the loop, its files, its archives; the porter and the post of its loop are itself."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        self.fleet, self.number = fleet, number
        crawl = fleet.crawl
        self.files = OwnFiles()
        self.epochs: dict[int, int] = {}
        self.sinks = {kind: MemorySink(f"{kind}-{number}") for kind in ("pages", "policy", "sealed")}
        self.said = Progress()
        self._told, self._told_at = 0, 0.0
        router: Router = crawl.router(crawl.web.seeds())
        committer = Committer(
            self.files, self.epochs, self.sinks, crawl.consent, crawl.inbox, crawl.gate, router,
            near_copies=crawl.config.near_copies, on_sealed=lambda: None, ack_sealed=True,
        )  # fmt: skip
        tools = VisitTools(
            crawl.config, crawl.optout, AuthorityBook(crawl.optout, crawl.config.robots_token, crawl.consent.body), router,
            crawl.transport, SimResolver(crawl.web, crawl.clock, crawl.config), crawl.clock, lambda url: "",
            recrawl=crawl.recrawl, claims=self, post=self, qualities=dict,
        )  # fmt: skip

        async def in_store(call: Any, *arguments: Any) -> Any:
            if fleet.commit_s:
                await crawl.clock.sleep(fleet.rng.uniform(0.0, 2 * fleet.commit_s))
            return call(*arguments)

        self.worker = Worker(crawl.config, self.files, committer, tools, crawl.clock, in_store, tell=self._tell, porter=self)
        self.life = asyncio.get_running_loop().create_task(self.worker.run())

    def _tell(self, progress: Progress) -> None:
        if progress.moved > self.said.moved:
            self.fleet.slowest_s = max(self.fleet.slowest_s, self.fleet.crawl.clock.monotonic() - self._told_at)
        self.said = replace(progress)

    def beat(self) -> None:
        """One step towards the plan, unless the last one is still on its way."""
        if self.life.done():
            self.life.result()
        if self._told > self.said.moved:
            return
        owned, want = set(self.said.files), {file for file, owner in self.fleet.plan.items() if owner == self.number}
        release, acquire = moves(owned, [file for file in sorted(want) if file in owned or self.fleet.free(file)], at_most=FEW)
        if release or acquire:
            self._told, self._told_at = self._told + 1, self.fleet.crawl.clock.monotonic()
            self.worker.own(self._told, (owned - set(release)) | set(acquire))

    # ---- moves.Porter

    def take_up(self, number: int) -> Arrival | None:
        fleet = self.fleet
        if not fleet.free(number):
            return None
        store: MemoryFrontier = fleet.crawl.files[number].reborn()
        self.epochs[number] = store.claim(f"member {self.number}")
        fleet.crawl.files[number] = store
        self.files.come({number: store})
        fleet.moved += 1
        until = fleet.died.pop(number, -math.inf) + QUIET_S
        return Arrival(self.epochs[number] <= 2, {number: until} if until > fleet.crawl.clock.monotonic() else {})

    def hand_over(self, number: int) -> None:
        self.files[number].close(clean=True)
        self.files.go(number)

    # ---- contact.Claims

    async def claim(self, ip: str) -> float | None:
        wall = self.fleet.crawl.clock.wall()
        answer = self.fleet.claims.claim(ip, str(self.number), 300.0, wall)
        return answer.due.remaining(wall) if isinstance(answer, Granted) else None

    async def release(self, ip: str, gap_s: float) -> None:
        self.fleet.claims.release(ip, str(self.number), Due(self.fleet.crawl.clock.wall(), gap_s))

    # ---- errands.Post

    def ask(self, file: int, errand: Errand) -> None:
        self.fleet.letters.append((file, errand if errand.asker >= 0 else errand.asked_by(self.number)))

    def answer(self, errand: Errand, request: Request | None, result: FetchResult | None) -> None:
        asker = self.fleet.members.get(errand.asker)
        if asker is not None:
            self.fleet.later(asker.worker.errand_returned(errand, request, result))
