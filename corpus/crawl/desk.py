"""What a fetch process holds of the hosts it is visiting: their rows, their heads, and what is not yet durable.

Only hosts with something to ask for have a desk. A URL that was taken stays out of later heads until its settlement
is durable, because taking moves nothing in the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from corpus.crawl.ports import HostRow, QueuedUrl
from corpus.model import Kind

if TYPE_CHECKING:
    from corpus.crawl.answers import Undecided

HEADS = 8
"""URLs read from the store at a time per host."""


@dataclass(frozen=True, slots=True)
class Errand:
    """One request for an authority file. `url` is where it is asked now, after `hops` redirects; `for_host` is the host
    whose authority it binds, and `asker` the process that owns that host (-1: this one)."""

    authority: str
    kind: Kind
    url: str
    hops: int
    for_host: str
    asker: int = -1
    first: str = ""
    """Where it was first asked for, once it was redirected."""

    def asked_by(self, worker: int) -> Errand:
        """The same errand, on its way to another process."""
        return replace(self, asker=worker)


@dataclass(slots=True)
class Desk:
    """One host. `row` is newer than the store's; `visits` counts visits under way."""

    row: HostRow
    file: int
    heads: deque[QueuedUrl] = field(default_factory=deque)
    taken: dict[str, int] = field(default_factory=dict)
    """URL → settlements under way that touch it."""
    errands: deque[Errand] = field(default_factory=deque)
    undecided: list[Undecided] = field(default_factory=list)
    """Pages in hand that wait for a licence document."""
    visits: int = 0
    unsettled: int = 0
    """Settlements handed in and not yet durable; a desk with any is kept."""
    authorities: set[str] = field(default_factory=set)
    known: bool = False
    """The store's rows of its authorities have been read."""
    asking: set[tuple[str, Kind]] = field(default_factory=set)
    """Authority files being asked for right now (a trusted host may have several visits at once)."""
    suspended: bool = False
    """An errand for this host is under way elsewhere: it judges none of its own URLs, and runs errands for others."""
    idle: bool = False
    """Nothing was left to ask when it was last looked at."""
    more_new: bool = True
    more_due: bool = True
    """Whether the store may hold more new pages, or more that are due again, than stand in `heads`."""

    def refill(self, fresh: Iterable[QueuedUrl], limit: int) -> None:
        """Take in heads read from the store, up to `limit` of each kind; what is in hand or in line already stays out (two
        visits may read at once)."""
        found = list(fresh)
        revisits = sum(queued.again for queued in found)
        self.more_new, self.more_due = len(found) - revisits >= limit, revisits >= limit
        have = {queued.url for queued in self.heads}
        self.heads.extend(queued for queued in found if queued.url not in self.taken and queued.url not in have)

    def waits(self, *, again: bool) -> bool:
        """Whether a URL of this kind stands in line here."""
        return (self.more_due if again else self.more_new) or any(queued.again is again for queued in self.heads)

    def lacks(self, *, again: bool) -> bool:
        """Whether the store should be asked for more URLs of this kind."""
        return (self.more_due if again else self.more_new) and not any(queued.again is again for queued in self.heads)

    def take(self, *, again: bool = False) -> QueuedUrl | None:
        """The next head of this kind, or else of the other; it is in our hands from now on."""
        if not self.heads:
            return None
        at = next((n for n, queued in enumerate(self.heads) if queued.again is again), 0)
        queued = self.heads[at]
        del self.heads[at]
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
