"""The control log as a running process obeys it: looked at before every take, folded into what holds now.

Orders are numbered without gaps, so looking costs one question for the next number. On a folder that is a `stat`; where
it would be a request over a network, only `catch_up` asks, from a thread of its own, and takes in the answer when it has come.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from corpus.app.project import Project
from corpus.errors import StoreError, TryLater
from corpus.optout.operator_list import OperatorList
from corpus.store.control_log import ControlEntry, ControlLog, Tombstones
from corpus.store.local_objects import LocalObjects
from corpus.store.standing_orders import StandingOrders, suffixes
from corpus.url.host import host_of

ASK_EVERY_S = 0.5
"""CONTRACT promises that an order is heard within a second."""


class Orders:
    """What the operator wants now. `operator` is the list of addresses that the configuration refuses."""

    def __init__(self, project: Project, operator: OperatorList | None = None) -> None:
        self._log, self._operator = project.control, operator
        self._folder = str(project.layout.control) if isinstance(project.objects, LocalObjects) else ""
        self._news: list[ControlEntry] = []
        self._asked_at = float("-inf")
        self._answer: Future[list[ControlEntry]] | None = None
        self.tombstones, self.standing = Tombstones(), StandingOrders()
        self.first = self._take(list(self._log.read()))
        """What was ordered before this process began."""

    @property
    def version(self) -> int:
        return self.standing.version

    def catch_up(self) -> list[ControlEntry]:
        """Take in what is new, in order; returns it. Over a network it never waits. Raises StoreError for a damaged order."""
        return self._take(list(self._log.read(after=self.version)) if self.looks else self._told())

    def _told(self) -> list[ControlEntry]:
        """The answer to the last question, if it has come; the next one is asked in a thread. No answer is no order yet."""
        if self._answer is None:
            if time.monotonic() - self._asked_at >= ASK_EVERY_S:
                self._asked_at, self._answer = time.monotonic(), Future()
                threading.Thread(target=_ask, args=(self._log, self.version, self._answer), daemon=True).start()
            return []
        if not self._answer.done():
            return []
        answer, self._answer = self._answer, None
        try:
            return answer.result()
        except TryLater:  # the store is away: whoever writes to it says so
            return []

    def _take(self, fresh: list[ControlEntry]) -> list[ControlEntry]:
        if fresh:
            self.tombstones.apply(fresh)
            self.standing.apply(fresh)
            self._news += fresh
        return fresh

    def news(self) -> list[ControlEntry]:
        """What was taken in since the last call, by whichever of the questions here."""
        news, self._news = self._news, []
        return news

    def paused(self) -> bool:
        """Whether nobody may be contacted now. Asked before every take, so this is where new orders are noticed."""
        self._look()
        return self.standing.pause is not None

    def slower(self, host: str) -> float:
        return self.standing.factor(host)

    def blocked(self, url: str) -> str:
        """The reason code that an order, or the operator's list, gives a URL; empty when it may be taken."""
        self._look()
        order = self.tombstones.blocks(url=url)
        if order is not None:
            return "taken-down" if order.action == "takedown" else "blocked"
        refused = self._operator is not None and self._operator.refuses(url) is not None
        return "operator-list" if refused else ""

    @property
    def looks(self) -> bool:
        """Whether new orders are noticed by `paused` and `blocked` themselves; else somebody must call `catch_up`."""
        return bool(self._folder)

    def _look(self) -> None:
        if self._folder and os.path.exists(f"{self._folder}/{self.standing.version + 1:08d}.json"):  # noqa: PTH110  (ten times quicker)
            self.catch_up()


def _ask(log: ControlLog, after: int, answer: Future[list[ControlEntry]]) -> None:
    try:
        answer.set_result(list(log.read(after=after)))
    except StoreError as error:
        answer.set_exception(error)


def lifted_hosts(entries: Iterable[ControlEntry]) -> Callable[[str], bool] | None:
    """Whether a host may have URLs that a lifted block had excluded; None when nothing was lifted."""
    lifted = [entry for entry in entries if entry.action == "unblock"]
    if not lifted:
        return None
    domains = {entry.value for entry in lifted if entry.kind == "domain"}
    hosts = {host_of(entry.value) for entry in lifted if entry.kind == "url"}
    return lambda host: host in hosts or not domains.isdisjoint(suffixes(host))


def described(standing: StandingOrders) -> list[str]:
    """The orders that hold, each in words: for the start of a run and for `corpus status`."""
    words = []
    if standing.pause is not None:
        words.append(f"paused by order {standing.pause.n}" + (f" ({standing.pause.reason})" if standing.pause.reason else ""))
    words += [f"{name} slowed {factor:g} times" for name, factor in sorted(standing.slow.items())]
    units = {"pages": "pages", "bytes": "bytes", "time": "seconds"}
    words += [f"budget of {limit:g} {units[kind]}" for kind, limit in sorted(standing.budgets.items())]
    return words
