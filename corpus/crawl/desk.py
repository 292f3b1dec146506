"""What a fetch process holds of the hosts it is visiting: their rows, their heads, and what is not yet durable.

Only hosts with something to ask for have a desk. A URL that was taken stays out of later heads until its settlement
is durable, because taking moves nothing in the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from corpus.crawl.ports import HostRow, QueuedUrl
from corpus.model import Kind

HEADS = 8
"""URLs read from the store at a time per host."""


@dataclass(frozen=True, slots=True)
class Errand:
    """A redirect hop of an authority file, to be asked of another host for the host it binds."""

    authority: str
    kind: Kind
    url: str
    hops: int
    for_host: str


@dataclass(slots=True)
class Desk:
    """One host. `row` is newer than the store's; `visits` counts visits under way."""

    row: HostRow
    file: int
    heads: deque[QueuedUrl] = field(default_factory=deque)
    taken: dict[str, int] = field(default_factory=dict)
    """URL → settlements under way that touch it."""
    errands: deque[Errand] = field(default_factory=deque)
    visits: int = 0
    unsettled: int = 0
    """Settlements handed in and not yet durable; a desk with any is kept."""
    authorities: set[str] = field(default_factory=set)
    suspended: bool = False
    """An errand for this host is under way elsewhere."""
    idle: bool = False
    """Nothing was left to ask when it was last looked at."""

    def refill(self, fresh: Iterable[QueuedUrl]) -> None:
        self.heads.extend(queued for queued in fresh if queued.url not in self.taken)

    def take(self) -> QueuedUrl | None:
        """The next head; it is in our hands from now on."""
        if not self.heads:
            return None
        queued = self.heads.popleft()
        self.taken[queued.url] = self.taken.get(queued.url, 0) + 1
        return queued

    def put_back(self, queued: QueuedUrl) -> None:
        self.release(queued.url)
        self.heads.appendleft(queued)

    def release(self, url: str) -> None:
        """A settlement of this URL is durable (or it was not asked after all)."""
        left = self.taken.get(url, 0) - 1
        if left > 0:
            self.taken[url] = left
        else:
            self.taken.pop(url, None)

    @property
    def at_rest(self) -> bool:
        return not (self.visits or self.unsettled or self.errands or self.taken)
