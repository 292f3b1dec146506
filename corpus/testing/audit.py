"""Politeness judged from the server's side: which contacts came too soon, and which should never have come.

Pure functions over the contact log that the shipped servers write (`corpus.testing.web_log`, which also reads it from a
file). Nothing here believes the crawler. The gap of two contacts is the end of the earlier one to the arrival of the
later one; contacts that overlap have a negative gap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from corpus.testing.web_log import Contact
from corpus.url.host import registered_domain

TOLERANCE_S = 0.002
"""Slack for what the server cannot see: bytes in flight and the granularity of two processes' clocks. A server sees a
gap that is never shorter than the client's own by more than this on loopback."""


class Group(StrEnum):
    """What shares a politeness clock (law D)."""

    HOST = "host"
    DOMAIN = "domain"
    IP = "ip"


@dataclass(frozen=True, slots=True)
class GapViolation:
    """Two contacts of one group that were too close: both lines, the measured gap and the one that was due (seconds)."""

    group: str
    first: Contact
    second: Contact
    gap_s: float
    due_s: float

    def __str__(self) -> str:
        return (
            f"{self.group}: {self.gap_s:.3f} s instead of {self.due_s:g} s between\n  {_line(self.first)}\n  {_line(self.second)}"
        )


def group_of(contact: Contact, group: Group) -> str:
    """The name of the group that a contact counts for."""
    match group:
        case Group.HOST:
            return contact.host
        case Group.DOMAIN:
            return registered_domain(contact.host)
        case Group.IP:
            return contact.ip


def gap_violations(
    log: Iterable[Contact],
    gap_s: float | Callable[[str], float],
    group: Group = Group.HOST,
    tolerance_s: float = TOLERANCE_S,
) -> list[GapViolation]:
    """Every contact that came less than `gap_s - tolerance_s` after the latest end of an earlier one of its group.

    `gap_s`: one gap for all, or a function of the group's name (a Crawl-delay binds one host only). The log may be in
    any order and may hold the contacts of several runs, as long as they share a clock.
    """
    latest: dict[str, Contact] = {}
    found = []
    for contact in sorted(log, key=lambda c: (c.arrived, c.n)):
        name = group_of(contact, group)
        before = latest.get(name)
        if before is not None:
            due = gap_s(name) if callable(gap_s) else gap_s
            gap = contact.arrived - before.ended
            if gap < due - tolerance_s:
                found.append(GapViolation(name, before, contact, gap, due))
        if before is None or contact.ended >= before.ended:
            latest[name] = contact
    return found


def refused_requests(log: Iterable[Contact], refusals: Collection[str]) -> list[Contact]:
    """Contacts that asked for a refused URL. `refusals` are URLs, or URL prefixes when they end in `*`."""
    exact = {url for url in refusals if not url.endswith("*")}
    prefixes = tuple(url[:-1] for url in refusals if url.endswith("*"))
    return [contact for contact in log if contact.url in exact or (prefixes and contact.url.startswith(prefixes))]


def _line(contact: Contact) -> str:
    return f"{contact.arrived:.3f}–{contact.ended:.3f} {contact.status} {contact.url} ({contact.ip})"
