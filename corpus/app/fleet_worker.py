"""`corpus worker`: one member of a fleet that crawls together on one PostgreSQL, and its one fetch process.

A member owns a share of the partition files that every member computes alike. When the share changes, its fetch process lets
a few files go and takes a few at a time, and visits the hosts of the others meanwhile; what is released so is free at once, what
a dead member held is free when its leases have ended. It ends when the run does, when it is told to (draining, acknowledging, releasing), and never because
another member or the server died: whatever was not acknowledged is fetched again by whoever owns it then.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from corpus.app.crawl import COUNTED, CrawlEnd
from corpus.app.crawl_watch import Watch
from corpus.app.fetch_process import FetchSpec
from corpus.app.fleet_budget import PageShare, used, verdict
from corpus.app.fleet_guard import HURRIED_S, Guard
from corpus.app.fleet_hand import Hand
from corpus.app.fleet_open import first_in, sweep
from corpus.app.fleet_shape import shape
from corpus.app.fleet_share import Quiet, change, gives_way, share_of
from corpus.app.fleet_waits import spare, waits
from corpus.app.frontier_files import longer_s
from corpus.app.orders import Orders
from corpus.app.project import Project
from corpus.app.seat import Seat, egress
from corpus.app.segments import newest_epoch
from corpus.app.spending import Budget, PausableClock, budget_of
from corpus.errors import CorpusError, FenceLost, NoRoom, ServerGone, WorkerDied
from corpus.observe.runlog import Reporter
from corpus.store.fleet_members import Beat, Fleet, node_of
from corpus.store.fleet_near import PostgresNearIndex

BEAT_S = 0.5
SETTLE_S = 1.0
"""How long the list of members must stay as it is before anybody moves files: several often come at once."""
AWAY_S = 1.0
WAYS_S = 10.0
"""How often it is told how far our region is from the hosts of our files."""
FULL_S = 10.0
"""A full disk is waited for at least as long, and at least as long as a lease, before its files are given back."""
_MAKE_ROOM = "free some space, and start this worker again; the others go on with its files"
DEATHS = 3
"""Young deaths of the fetch process in a row before the member gives up."""


class FleetWorker:
    """One member's life. `stopping()` counts interrupts: 1 drains, 2 stops at once."""

    def __init__(self, project: Project, crawl_id: str, run_id: str, region: str, report: Reporter) -> None:
        self._project, self._config, self._report = project, project.config, report
        self._label, self._run_id, self._region = crawl_id, run_id, region
        self._orders = Orders(project)
        self._orders.news()
        self._lease_s, self._longer_s = project.layout.lease[0], longer_s(project.layout)
        self._gap_s = max(self._config.crawl.ip_gap_s, self._config.crawl.delay_start)
        """How long an address is left alone whose last holder died."""
        self._guard: Guard | None = None
        self._fleet: Fleet | None = None
        self._near: PostgresNearIndex | None = None
        self._number, self._node, self._life, self._run = 0, "", 0, 0
        self._hand = Hand(report, self._lease_s + self._longer_s)
        self._beat: Beat | None = None
        self._next_beat = self._next_try = 0.0
        self._members: tuple[int, ...] = ()
        self._far: Mapping[int, tuple[str, ...]] = {}
        self._settled_at = self._next_ways = 0.0
        self._said: tuple[int, ...] = ()
        """The files that were last told of."""
        self._quiet, self._pages = Quiet(), PageShare()
        self._ended = ""
        self._drained = False
        self._clock, self._joined_age = PausableClock(), 0.0
        self._since = PausableClock()
        """Of this member's whole life; `_clock` begins anew with every number."""
        self._spare = False
        self._full_since = time.monotonic()
        self._unfit: NoRoom | None = None
        self._watch, self._pages_s = Watch(project, run_id, "crawl", self._orders, 0), 0.0

    # ---- life

    def run(self, stopping: Callable[[], int]) -> CrawlEnd:
        """Work until the run or the member ends. Raises CorpusError for what a person must see to."""
        self._guard = Guard(max(self._lease_s, HURRIED_S), self._sever, lambda: bool(stopping()) or self._drained)
        self._join()
        while not (self._ended and not self._hand.at_work):
            for message in self._hand.listen():
                self._hear(message)
            self._heed()
            self._ended = self._ended or ("interrupted" if stopping() or self._drained else "")
            if self._ended:
                self._hand.drain(self._ended)
            now = time.monotonic()
            if self._fleet is None and now >= self._next_try:
                self._try(self._come_back)
            elif self._fleet is not None and now >= self._next_beat:
                self._next_beat = now + BEAT_S
                self._try(self._step)
            self._hand.hurry(hard=stopping() > 1)
            self._progress()
        self._try(self._leave)
        self._progress(last=True)
        if self._unfit is not None:
            raise self._unfit
        return CrawlEnd(self._ended, **{name: self._hand.total(name) for name in COUNTED}, parked=dict(self._hand.status.parked))

    def close(self) -> None:
        """The fetch process is gone afterwards, in whatever state."""
        self._hand.close()
        self._away()
        if self._guard is not None:
            self._guard.close()

    def _join(self) -> None:
        """Become a member. Where nobody else is, what the run begins with is made ready first."""
        server = self._project.layout.server
        fleet = self._server(lambda: newest_epoch(self._project))
        try:
            who = (socket.gethostname(), os.getpid(), self._region)
            self._number, run = fleet.enter(self._label, who, lambda: first_in(self._project, self._report), shape(self._project))
            self._near = PostgresNearIndex(server, self._config.crawl.near_k)
        except BaseException:
            fleet.close()
            raise
        self._fleet, self._run = fleet, run.id
        self._node, self._life, self._label = node_of(self._number), 0, run.crawl_id
        self._joined_age, self._clock = run.age_s, PausableClock()
        self._beat, self._members, self._settled_at = None, (), time.monotonic()
        self._report(
            "worker",
            number=self._number,
            run=run.id,
            crawl_id=run.crawl_id,
            region=self._region,
            egress=egress(),
            epoch=fleet.generation,
        )

    def _server(self, generation: Callable[[], int]) -> Fleet:
        return Fleet(self._project.layout.server, self._lease_s, self._gap_s, generation, longer_s=self._longer_s)

    def _try(self, step: Callable[[], None]) -> None:
        """A step that needs the server; without it we wait, and what our fetch process does is bounded by its leases."""
        assert self._guard is not None, "steps are taken by `run`"
        try:
            with self._guard.step():
                step()
        except ServerGone as error:
            if self._fleet is not None:
                self._report("waiting for the server", why=str(error.what))
            self._away()
            self._next_try = time.monotonic() + AWAY_S

    def _sever(self) -> None:
        """From the guard's thread: whatever is asked of the server right now has failed."""
        for one in (self._fleet, self._near):
            if one is not None:
                one.sever()

    def _away(self) -> None:
        fleet, near, self._fleet, self._near = self._fleet, self._near, None, None
        for one in (fleet, near):
            if one is not None:
                one.close()

    def _come_back(self) -> None:
        """The server was gone: go on as the member we were, which the next beat finds given up or not."""
        if not self._number:
            self._join()
            return
        fleet = self._server(lambda: 0)
        fleet.run = self._run
        self._fleet, self._near = fleet, PostgresNearIndex(self._project.layout.server, self._config.crawl.near_k)
        self._report("the server answers again", number=self._number)

    def _leave(self) -> None:
        if self._fleet is not None and self._number:
            self._fleet.leave(self._number)

    # ---- every half second

    def _step(self) -> None:
        assert self._fleet is not None, "a step is taken with a server"
        beat = self._beat = self._fleet.beat(self._number, self._words(), "draining" if self._ended else "live")
        mine = beat.member(self._number)
        if mine is None or not mine.there:
            self._rejected()
            return
        for number in beat.lost:
            self._report("a member is lost", number=number, what="its files are taken over when their leases have ended")
        if beat.lost:
            sweep(self._project, beat.lost)
        if self._region and time.monotonic() >= self._next_ways:
            self._next_ways = time.monotonic() + WAYS_S
            self._fleet.note_ways(self._region, self._hand.status.gauges.get("ways", {}))
        self._exchange(self._fleet, beat)
        if self._ended:
            return
        self._give_way(beat)
        self._ended = beat.run.ended or self._verdict(self._fleet, beat)
        if not self._ended:
            self._assign(self._fleet, beat)

    def _give_way(self, beat: Beat) -> None:
        """A disk without room for as long as a lease lasts: whoever has some goes on with our files, and we end. Alone we wait."""
        now, hand = time.monotonic(), self._hand
        if not hand.status.full:
            self._full_since = now
        others = [member for member in beat.members if member.id != self._number]
        if gives_way(now - self._full_since, max(self._lease_s, FULL_S), others):
            self._unfit = NoRoom(hand.status.stalled, hint=_MAKE_ROOM)
            hand.give_up("no room")

    def _exchange(self, fleet: Fleet, beat: Beat) -> None:
        """What the fetch process has to hear of the others, and they of it."""
        hand = self._hand
        if not hand.at_work:
            return
        hand.send(("scan", beat.now, max(beat.control, fleet.heard())))
        if hand.status.facts and not beat.run.seeded.issuperset(hand.files):  # it has spoken: their seeds are in them
            fleet.seeded(hand.files)
        if not hand.ending:
            asked, answers = fleet.post.take(hand.kept, self._number)
            for errand in asked:
                hand.send(("errand", errand))
            for answer in answers:
                hand.send(("errand-done", *answer))

    def _rejected(self) -> None:
        """We were silent for so long that others have our files: nothing of ours counts any more, so we begin anew."""
        self._report("this worker was taken for dead", number=self._number, what="it begins again under another number")
        self._hand.kill()
        while self._hand.at_work:
            for _ in self._hand.listen():
                pass
        self._away()
        lost, self._number, self._pages = self._number, 0, PageShare()
        self._join()
        if self._fleet is not None:  # claims that were on their way while we were given up reached the server afterwards
            self._fleet.end_claims(lost)

    def _words(self) -> dict[str, Any]:
        """What the others hear of us: totals of this member in the run, and how its fetch process is."""
        hand, status, gauges = self._hand, self._hand.status, self._hand.status.gauges
        at_rest = status.idle and not status.stalled and not hand.ending if hand.files else True
        return {
            **{name: hand.total(name) for name in (*COUNTED, "new_pages")},
            "files": list(hand.files), "life": self._life, "idle": at_rest, "sent": status.sent, "applied": status.applied,
            "starving": status.starving, "unused": self._pages.unused(status.new_pages), "stalled": status.stalled or self._waits(),
            "full": status.full, "heard": gauges.get("heard", 0.0), "orders": min(self._orders.version, gauges.get("orders", self._orders.version)),
            "pages_s": round(self._pages_s, 2),
        }  # fmt: skip

    def _waits(self) -> str:
        if self._ended:
            return ""
        gauges = self._hand.status.gauges if self._hand.at_work else {}
        connected = self._fleet is not None
        return waits(self._beat, self._number, self._hand.files, self._node, connected=connected, gauges=gauges)

    # ---- decisions

    @property
    def _budget(self) -> Budget:
        return budget_of(self._config.crawl, self._orders.standing)

    def _verdict(self, fleet: Fleet, beat: Beat) -> str:
        """Why the run ends now; empty while it goes on. Any member may find it; the server keeps one answer."""
        quiet, budget = self._quiet.look(beat), self._budget
        self._pages.see_to(fleet, beat, self._number, budget.pages, self._hand)
        why = verdict(self._project, fleet, beat, budget, self._joined_age + self._clock.seconds(), quiet=quiet)
        if why == "done" and self._config.crawl.until == "forever":
            return ""
        if why:
            fleet.end(why)
        return why

    def _assign(self, fleet: Fleet, beat: Beat) -> None:
        now = time.monotonic()
        live = tuple(member.id for member in beat.members if member.live)
        if (live, beat.run.far) != (self._members, self._far):
            self._far = beat.run.far
            self._members, self._settled_at = live, now + SETTLE_S
        hand = self._hand
        if hand.at_work and hand.files != self._said:
            self._tell_files(hand.files)
        if now < self._settled_at or hand.ending or hand.moving:
            return
        if self._spare != (not share_of(beat, self._number)):
            self._spare = not self._spare
            self._report("spare" if self._spare else "no spare any more", what=spare(beat) if self._spare else "it has a share")
        files = change(beat, self._number, frozenset(hand.files), self._node)
        if files is None:
            return
        if not files:
            hand.drain("share")
        elif hand.at_work:
            hand.own(files, tuple(sorted(set(files) - beat.run.seeded)))
        else:
            self._begin(fleet, beat, files)

    def _tell_files(self, files: tuple[int, ...]) -> None:
        self._said = files
        self._report("files", owned=len(files), files=",".join(map(str, files)), life=self._life)

    def _begin(self, fleet: Fleet, beat: Beat, files: tuple[int, ...]) -> None:
        """A fetch process with these files."""
        self._life += 1
        seeds = tuple(sorted(set(files) - beat.run.seeded))
        seat = Seat(self._number, self._node, fleet.generation + self._life, files, seeds, self._region)
        quota = self._pages.first(fleet, beat, self._budget.pages)
        self._tell_files(files)
        self._hand.begin(
            FetchSpec(self._number, 1, self._label, self._run_id, self._config, str(self._config.base), quota, seat=seat)
        )

    # ---- what the fetch process says

    def _hear(self, message: tuple[Any, ...]) -> None:
        match message:
            case ("near", pages):
                self._answer_near(pages)
            case ("errand", int(file), errand):
                self._try(lambda: self._fleet.post.ask(file, errand) if self._fleet is not None else None)
            case ("errand-done", errand, request, result):
                self._try(lambda: self._fleet.post.answer(errand, request, result) if self._fleet is not None else None)
            case ("error", FenceLost() | ServerGone() | NoRoom() as error):
                self._report("the fetch process ended", why=str(error.what))
            case ("error", CorpusError() as error):
                raise error
            case ("gone", bool(clean), code, why):
                self._gone(code, why, clean=clean)
            case _:
                raise WorkerDied(f"a fetch process sent {message[:1]!r}, which no one understands", f"fetch-{self._number}")

    def _answer_near(self, pages: Any) -> None:
        """The gate is on the server. Without an answer nothing of the batch can be stored, so the process ends."""
        answers: list[Any] = []
        self._try(lambda: answers.extend(self._near.ask(pages)) if self._near is not None else None)
        if len(answers) == len(pages):
            self._hand.send(("near", answers))
        else:
            self._hand.kill()

    def _gone(self, code: int | None, why: str, *, clean: bool) -> None:
        """What it had been dealt of the page budget and did not use goes back where that is known; its claims end."""
        unused = self._pages.unused(self._hand.dead[-1].new_pages) if clean else 0
        self._pages = PageShare()
        if unused:
            self._try(lambda: self._fleet.give_back(unused) if self._fleet is not None else None)
        if self._unfit is not None:
            self._ended = self._ended or "no room"
        if clean:
            return
        self._report("fetch process died", exit_status=code, ending=why)
        self._try(lambda: self._fleet.end_claims(self._number) if self._fleet is not None else None)
        if self._hand.young_deaths > DEATHS and self._fleet is not None and not self._ended:
            hint = "see the lines above; what it had not acknowledged will be fetched again"
            raise WorkerDied(f"died {self._hand.young_deaths} times in a row (exit status {code})", f"fetch-{self._number}", hint)

    # ---- orders, reports

    def _heed(self) -> None:
        self._orders.catch_up()
        for order in self._orders.news():
            self._report("order", n=order.n, action=order.action, value=order.value, **dict(order.detail), reason=order.reason)
            self._drained |= order.action == "drain"
        for clock in (self._clock, self._since):
            clock.pause(self._orders.standing.pause is not None)

    def _progress(self, *, last: bool = False) -> None:
        hand = self._hand
        if last or self._watch.due(hand.total("requests")):
            live = self._watch.look([hand.status], hand.dead, Budget(), self._since.seconds(), last=last)
            live.stalled = hand.status.stalled or self._waits() or live.stalled
            if self._beat is not None:
                live.budget = used(self._beat, self._budget, self._joined_age + self._clock.seconds())
            self._pages_s = live.pages_s
            self._report("live", live=live)
