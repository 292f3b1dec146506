"""Circuit breakers of hosts and addresses: pure decisions over rows and times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl import breaker
from corpus.crawl.breaker import ADDRESS_AFTER, OPEN_AFTER, RETIRE_AFTER, RETIRE_S, RETIRED_S, AddressBreakers
from corpus.crawl.nouns import Due, HostRow
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure, Response

SETTINGS = CrawlSettings(delay=1.0)
ROW = HostRow("a.test", "a.test", state="active", pace_s=1.0, ips=("192.0.2.1",))


def _down(failure: Failure = Failure.CONNECT) -> Failed:
    return Failed(failure, "", 0.0, 0.0, "192.0.2.1")


def _response(status: int) -> Response:
    return Response(status, (), b"", b"", "", b"", "192.0.2.1", 0.0, 1.0, 0.1, 0)


def test_what_counts_is_silence() -> None:
    """No name, no connection, no bytes, a server error; being slowed down or refused is an answer."""
    silent = {failure for failure in Failure if breaker.failed(_down(failure))}
    assert silent == {
        Failure.DNS, Failure.CONNECT, Failure.TLS, Failure.TIMEOUT, Failure.RESET, Failure.PROTOCOL, Failure.TOO_SLOW, Failure.SERVER,
    }  # fmt: skip
    assert {status for status in (200, 304, 404, 429, 500, 502, 503, 504) if breaker.failed(_response(status))} == {500, 502, 504}


def test_a_run_of_failures_opens_a_probe_closes() -> None:
    """Closed, open after six, half open once its time has come, open for twice as long, closed by any answer."""
    row, wall = ROW, 1000.0
    for _ in range(OPEN_AFTER - 1):
        row = breaker.host_after(row, True, SETTINGS, wall)
        assert breaker.state(row, wall) == "closed"
    row = breaker.host_after(row, True, SETTINGS, wall)
    assert breaker.state(row, wall) == "open"
    assert (row.state, row.reason, row.due) == ("backing-off", "backing-off", Due(wall, 60.0))
    assert breaker.state(row, wall + 60.0) == "half-open"
    again = breaker.host_after(row, True, SETTINGS, wall + 60.0)
    assert (again.state, again.due.wait_s) == ("parked", 120.0)
    well = breaker.host_after(again, False, SETTINGS, wall + 200.0)
    assert (well.failures, well.failing_since, breaker.state(well, wall)) == (0, None, "closed")


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e6)), max_size=60))
def test_a_breaker_never_shortens_a_wait(steps: list[tuple[bool, float]]) -> None:
    """Whatever happens, the wait that was running is not cut, and no cooling passes `backoff_max`."""
    row, wall = ROW, 0.0
    for failing, pause in steps:
        wall += pause
        before = row.due.remaining(wall)
        row = breaker.host_after(row, failing, SETTINGS, wall)
        assert row.due.remaining(wall) >= before
        assert breaker.cooling_s(row, SETTINGS) <= SETTINGS.backoff_max


def test_days_of_failures_retire_and_a_month_later_one_probe_decides() -> None:
    """Not before three days, whatever the number; then for thirty days; one more failure retires again, an answer ends it."""
    row = ROW
    for n in range(RETIRE_AFTER):
        row = breaker.host_after(row, True, SETTINGS, float(n))
    assert not breaker.is_spent(row, 100.0)
    assert breaker.is_spent(row, RETIRE_S)
    gone = breaker.retired(row, RETIRE_S)
    assert (gone.state, gone.reason) == ("retired", "host-retired")
    assert breaker.revived(gone, RETIRE_S + RETIRED_S - 1.0) is None
    later = RETIRE_S + RETIRED_S
    back = breaker.revived(gone, later)
    assert back is not None
    assert (back.state, breaker.state(back, later)) == ("active", "half-open")
    assert breaker.is_spent(breaker.host_after(back, True, SETTINGS, later), later)
    assert breaker.host_after(back, False, SETTINGS, later).failures == 0


def test_an_address_opens_when_many_of_its_hosts_fail_and_lets_one_probe_through() -> None:
    """Eight failures at three hosts; one host alone never opens it; a second contact waits for the probe's outcome."""
    alone = AddressBreakers(SETTINGS)
    for _ in range(30):
        assert alone.wait_s("192.0.2.1", 0.0) == 0.0
        alone.ended("192.0.2.1", "a.test", _down(), 0.0)
    shared = AddressBreakers(SETTINGS)
    for n in range(ADDRESS_AFTER):
        assert shared.wait_s("192.0.2.1", 0.0) == 0.0
        shared.ended("192.0.2.1", f"h{n % 3}.test", _down(Failure.TIMEOUT), 0.0)
    assert shared.wait_s("192.0.2.1", 10.0) == 50.0
    assert shared.wait_s("192.0.2.9", 10.0) == 0.0
    assert shared.wait_s("192.0.2.1", 60.0) == 0.0
    assert shared.wait_s("192.0.2.1", 60.0) > 0.0
    shared.ended("192.0.2.1", "h1.test", _down(), 61.0)
    assert shared.wait_s("192.0.2.1", 62.0) == 119.0
    assert shared.wait_s("192.0.2.1", 200.0) == 0.0
    shared.ended("192.0.2.1", "h1.test", None, 200.0)
    assert shared.wait_s("192.0.2.1", 200.0) == 0.0
    shared.ended("192.0.2.1", "h2.test", _response(404), 201.0)
    assert shared.wait_s("192.0.2.1", 201.0) == shared.wait_s("192.0.2.1", 201.0) == 0.0


def test_a_name_that_does_not_resolve_says_nothing_of_an_address() -> None:
    """Nor does a server error: something answered there."""
    shared = AddressBreakers(SETTINGS)
    for n in range(30):
        shared.ended("192.0.2.1", f"h{n}.test", _down(Failure.DNS if n % 2 else Failure.SERVER), 0.0)
    assert shared.wait_s("192.0.2.1", 0.0) == 0.0


def test_an_addresss_breaker_is_made_again_from_its_hosts() -> None:
    """After a restart: three hosts whose breakers are open at one address keep a fourth from trying; two do not."""
    rows = [
        HostRow(f"h{n}.test", f"h{n}.test", failures=OPEN_AFTER, ips=("192.0.2.1",), due=Due(100.0, 500.0 + n)) for n in range(3)
    ]
    two, three = AddressBreakers(SETTINGS), AddressBreakers(SETTINGS)
    two.restore(rows[:2], 7.0, 200.0)
    three.restore(rows, 7.0, 200.0)
    assert two.wait_s("192.0.2.1", 7.0) == 0.0
    assert three.wait_s("192.0.2.1", 7.0) == 400.0


def test_what_comes_later_never_shortens_an_addresss_rest() -> None:
    """Hosts of a file that comes say how long they have been silent; what was learnt of the address here stays when it is worse."""
    short, long = (
        [
            HostRow(f"{name}{n}.test", f"{name}{n}.test", failures=OPEN_AFTER, ips=("192.0.2.7",), due=Due(100.0, wait_s))
            for n in range(4)
        ]
        for name, wait_s in (("a", 5.0), ("b", 3_600.0))
    )
    for order in ((short, long), (long, short)):
        found = AddressBreakers(CrawlSettings(contact="https://example.org/bot"))
        for rows in order:
            found.restore(rows, 0.0, 100.0)
        assert found.wait_s("192.0.2.7", 1.0) > 3_000.0
