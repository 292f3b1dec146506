"""What the crawl needs to share addresses between processes, as a Protocol; `store.ip_claims` implements it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from corpus.crawl.ports import Due


@dataclass(frozen=True, slots=True)
class Granted:
    """The address is ours until the claim's time to live is over; contact it only when `due` has passed.

    `clean` is False when the last holder vanished without a release: what it last sent is then unknown.
    """

    due: Due
    clean: bool = True


@dataclass(frozen=True, slots=True)
class Held:
    """Another process holds the address; it lapses at `until` (epoch seconds) unless it is renewed or released."""

    until: float


class IpClaims(Protocol):
    """Who may contact an address, over all processes of one machine. The next contact's time survives every process.

    A holder sends only while less than half of `ttl_s` has passed since it claimed or renewed.
    """

    def claim(self, ip: str, owner: str, ttl_s: float, wall: float) -> Granted | Held:
        """Claim an address, or renew a claim of the same owner."""
        ...

    def release(self, ip: str, owner: str, due: Due) -> None:
        """Give an address back; the next holder waits for `due`. Ignored when the claim has passed to another owner."""
        ...

    def close(self) -> None: ...
