"""Circuit breakers: a host, or an address, that keeps failing is left alone for longer and longer, then tried once.

Closed: contacts are made. After a run of contacts without any answer the breaker opens: nothing is asked until a
cooling time has passed, then one contact probes (half open). An answer closes it; another failure opens it for twice
as long. A host that has failed for days is retired: what waits there is excluded with a reason, until a run that
starts `RETIRED_S` later tries it once more. Pure; a host's run of failures is durable in its row, and an address's
breaker is made again from the rows of its hosts.

What counts is silence: no name, no connection, no TLS, no bytes in time, a broken connection, a server error. An
answer that asks us to slow down, or says no, is an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from corpus.crawl.nouns import Due, HostRow
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure, FetchResult

OPEN_AFTER = 6
"""Failures in a row that open a host's breaker: one more than `crawl.retries`, so that what failed is named first."""
COOL_GAPS = 60.0
"""The first cooling time, in gaps of the host; it doubles with each failed probe, up to `crawl.backoff_max`."""
RETIRE_AFTER, RETIRE_S = 12, 3 * 86_400.0
"""A host is retired after so many failures in a row, if the first of them lies so far back."""
RETIRED_S = 30 * 86_400.0
"""How long a retired host is left alone: a run that starts later gives it one probe."""
ADDRESS_AFTER, ADDRESS_HOSTS, ADDRESS_COOL_S = 8, 3, 60.0
"""An address's breaker opens after so many failures in a row at so many of its hosts, and first cools for so long."""

_SILENCE = frozenset(
    {
        Failure.DNS,
        Failure.CONNECT,
        Failure.TLS,
        Failure.TIMEOUT,
        Failure.RESET,
        Failure.PROTOCOL,
        Failure.TOO_SLOW,
        Failure.SERVER,
    }
)
_OF_THE_ADDRESS = frozenset({Failure.CONNECT, Failure.TIMEOUT, Failure.RESET})


def failed(result: FetchResult) -> bool:
    """Whether a contact brought no answer that a host in order would give."""
    if isinstance(result, Failed):
        return result.failure in _SILENCE
    return result.status >= 500 and result.status != 503


def host_after(row: HostRow, failing: bool, settings: CrawlSettings, wall: float, why: str = "backing-off") -> HostRow:
    """The row after one more contact that failed or did not; an open breaker only ever lengthens its wait, and says why."""
    if not failing:
        return replace(row, failures=0, failing_since=None) if row.failures else row
    row = replace(row, failures=row.failures + 1, failing_since=wall if row.failing_since is None else row.failing_since)
    cool_s = cooling_s(row, settings)
    if cool_s <= row.due.remaining(wall):
        return row
    row = replace(row, due=Due(wall, cool_s))
    if row.state in ("blocked", "retired"):
        return row
    return replace(row, state="parked" if cool_s > settings.park_after else "backing-off", reason=why)


def cooling_s(row: HostRow, settings: CrawlSettings) -> float:
    """How long a host with this run of failures is left alone after the last; 0.0 while its breaker is closed."""
    over = row.failures - OPEN_AFTER
    if over < 0:
        return 0.0
    gap_s = max(row.pace_s, settings.delay)
    return min(COOL_GAPS * gap_s * 2.0 ** min(over, 40), settings.backoff_max)


def state(row: HostRow, wall: float) -> str:
    """`closed`, `open` or `half-open` (the next contact is a probe)."""
    if row.failures < OPEN_AFTER:
        return "closed"
    return "open" if row.due.remaining(wall) > 0 else "half-open"


def is_spent(row: HostRow, wall: float) -> bool:
    """Whether a host has failed so often and for so long that it is to be retired."""
    since = wall if row.failing_since is None else row.failing_since
    return row.state != "retired" and row.failures >= RETIRE_AFTER and wall - since >= RETIRE_S


def retired(row: HostRow, wall: float) -> HostRow:
    """The row of a host that is given up, and not asked before `RETIRED_S` have passed."""
    return replace(row, state="retired", reason="host-retired", due=Due(wall, RETIRED_S))


def revived(row: HostRow, wall: float) -> HostRow | None:
    """The row of a retired host that gets its probe: one more failure retires it again. None while it is too early."""
    if row.state != "retired" or row.due.remaining(wall) > 0:
        return None
    return replace(row, state="active", reason="", failures=RETIRE_AFTER - 1, due=Due(wall, 0.0))


@dataclass(slots=True)
class _Address:
    failures: int = 0
    hosts: set[str] = field(default_factory=set)
    until: float = 0.0
    probing: bool = False


class AddressBreakers:
    """The addresses that do not answer, for one fetch process; times are monotonic seconds."""

    def __init__(self, settings: CrawlSettings) -> None:
        self._most_s = settings.backoff_max
        self._addresses: dict[str, _Address] = {}

    def wait_s(self, ip: str, now: float) -> float:
        """How long an address is still to be left alone; 0.0: go on, and `ended` must follow. Of an address whose time has
        come only one contact is let through before its outcome is known."""
        known = self._addresses.get(ip)
        if known is None or not self._is_open(known):
            return 0.0
        if known.until > now:
            return known.until - now
        if known.probing:
            return ADDRESS_COOL_S
        known.probing = True
        return 0.0

    def ended(self, ip: str, host: str, result: FetchResult | None, now: float) -> None:
        """A contact at this address is over; None: it was broken off, and says nothing."""
        known = self._addresses.get(ip)
        if isinstance(result, Failed) and result.failure in _OF_THE_ADDRESS and result.status is None:
            known = self._addresses.setdefault(ip, known or _Address())
            known.failures += 1
            if len(known.hosts) < ADDRESS_HOSTS:
                known.hosts.add(host)
            if self._is_open(known):
                over = min(known.failures - ADDRESS_AFTER, 40)
                known.until = now + min(ADDRESS_COOL_S * 2.0**over, self._most_s)
            known.probing = False
        elif known is not None and result is None:
            known.probing = False
        elif known is not None:
            del self._addresses[ip]

    def restore(self, rows: Iterable[HostRow], now: float, wall: float) -> None:
        """What the rows of hosts at one address say together: hosts whose breakers are open there now open the address's."""
        waits: dict[str, list[float]] = {}
        for row in rows:
            if row.failures >= OPEN_AFTER and row.ips and (left := row.due.remaining(wall)) > 0:
                waits.setdefault(row.ips[0], []).append(left)
        for ip, found in waits.items():
            if len(found) >= ADDRESS_HOSTS:
                known = self._addresses.setdefault(ip, _Address())  # what was learnt since stays
                known.failures, known.until = max(known.failures, ADDRESS_AFTER), max(known.until, now + min(found))
                known.hosts |= {str(n) for n in range(ADDRESS_HOSTS - len(known.hosts))}

    @staticmethod
    def _is_open(known: _Address) -> bool:
        return known.failures >= ADDRESS_AFTER and len(known.hosts) >= ADDRESS_HOSTS
