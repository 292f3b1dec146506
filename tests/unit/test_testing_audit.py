"""The politeness audit: it finds every contact that came too soon, and only those."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from corpus.testing.audit import Group, gap_violations, refused_requests
from corpus.testing.web_log import Contact


def _contact(n: int, arrived: float, ended: float, host: str = "a.example", ip: str = "127.0.0.1", target: str = "/") -> Contact:
    return Contact(
        n=n, host=host, ip=ip, port=80, target=target, status=200, agent="", arrived=arrived, ended=ended,
        arrived_wall=0.0, ended_wall=0.0, end="sent",
    )  # fmt: skip


@st.composite
def _logs(draw: st.DrawFn) -> list[Contact]:
    log = []
    for n in range(draw(st.integers(0, 12))):
        arrived = draw(st.integers(0, 200)) / 10
        host = draw(st.sampled_from(["a.example.com", "b.example.com", "other.org"]))
        log.append(
            _contact(n, arrived, arrived + draw(st.integers(0, 30)) / 10, host, draw(st.sampled_from(["127.0.0.1", "127.0.0.2"])))
        )
    return log


@given(_logs(), st.sampled_from(list(Group)), st.integers(0, 30).map(lambda n: n / 10))
def test_a_violation_is_found_exactly_when_two_contacts_are_too_close(log: list[Contact], group: Group, gap_s: float) -> None:
    """The audit agrees with the definition: some earlier contact of the group ended less than the gap before this one."""
    domain = {"a.example.com": "example.com", "b.example.com": "example.com", "other.org": "other.org"}

    def key(contact: Contact) -> str:
        return {Group.HOST: contact.host, Group.DOMAIN: domain[contact.host], Group.IP: contact.ip}[group]

    order = sorted(log, key=lambda c: (c.arrived, c.n))
    late = set()
    for at, contact in enumerate(order):
        ends = [before.ended for before in order[:at] if key(before) == key(contact)]
        if ends and contact.arrived - max(ends) < gap_s - 1e-9:
            late.add(contact.n)
    assert {v.second.n for v in gap_violations(log, gap_s, group, tolerance_s=1e-9)} == late


@given(st.lists(st.floats(0, 1), max_size=10), st.floats(0.5, 3))
def test_a_polite_log_passes(durations: list[float], gap_s: float) -> None:
    """Contacts that each wait out the gap from the end of the one before are never blamed, in whatever order they are logged."""
    log, now = [], 0.0
    for n, duration in enumerate(durations):
        log.append(_contact(n, now, now + duration))
        now += duration + gap_s
    assert gap_violations(reversed(log), gap_s) == []
    if len(log) > 1:
        assert len(gap_violations(log, gap_s + 0.1)) == len(list(pairwise(log)))


def test_a_short_contact_inside_a_long_one_does_not_hide_it() -> None:
    """The gap runs from the latest end, not from the contact that arrived last."""
    log = [_contact(1, 0, 10), _contact(2, 1, 1.5), _contact(3, 11, 11.5)]
    assert [(v.first.n, v.second.n) for v in gap_violations(log, 2.0)] == [(1, 2), (1, 3)]


def test_gaps_may_differ_by_group() -> None:
    """A function of the group's name gives each group its own gap, as a Crawl-delay does; both lines are shown."""
    log = [
        _contact(n, n * 2.0, n * 2.0 + 0.1, host) for n, host in enumerate(["a.example", "b.example", "a.example", "b.example"])
    ]
    found = gap_violations(log, lambda host: 9.0 if host == "b.example" else 1.0)
    assert [(v.group, v.first.n, v.second.n, v.due_s) for v in found] == [("b.example", 1, 3, 9.0)]
    assert str(found[0]).count("http://b.example/") == 2


def test_refused_requests() -> None:
    """A request for a refused URL or below a refused prefix is found; its neighbours are not."""
    log = [_contact(n, n, n, target=target) for n, target in enumerate(["/a", "/private/x", "/private", "/a?b"])]
    assert [c.n for c in refused_requests(log, {"http://a.example/private/*"})] == [1]
    assert [c.n for c in refused_requests(log, {"http://a.example/a"})] == [0]
    assert refused_requests(log, set()) == []
