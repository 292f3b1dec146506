"""One promise of `IpClaims` per test, kept by every implementation; and the shared ones by processes that die."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from corpus.crawl.claims import Granted, Held, IpClaims
from corpus.crawl.ports import Due
from corpus.store.ip_claims import MemoryIpClaims, SqliteIpClaims

IP = "203.0.113.9"


POSTGRES = pytest.param("postgres", marks=pytest.mark.needs("postgres"))


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], IpClaims]:
    """A function that opens the same claims once more, as another process would."""
    if request.param == "postgres":
        dsn = request.getfixturevalue("postgres_server").dsn()
        return lambda: _opened(dsn)
    memory = MemoryIpClaims()
    return (lambda: memory) if request.param == "memory" else (lambda: SqliteIpClaims(tmp_path / "claims.sqlite"))


def _opened(place: str) -> IpClaims:
    """The claims at a path, or on a server."""
    if not place.startswith("postgresql:"):
        return SqliteIpClaims(Path(place))
    from corpus.store.fleet_claims import PostgresIpClaims

    return PostgresIpClaims(place)


def test_an_address_is_held_by_one_owner_at_a_time(reopen: Callable[[], IpClaims]) -> None:
    """Others are told until when; the owner renews; an IPv4 address mapped into IPv6 is the same address."""
    a, b = reopen(), reopen()
    assert a.claim(IP, "a", 30.0, 100.0) == Granted(Due(0.0, 0.0))
    assert b.claim(IP, "b", 30.0, 110.0) == Held(130.0)
    assert b.claim(f"::ffff:{IP}", "b", 30.0, 110.0) == Held(130.0)
    assert a.claim(IP, "a", 30.0, 120.0) == Granted(Due(0.0, 0.0))
    assert b.claim(IP, "b", 30.0, 131.0) == Held(150.0)
    assert b.claim("203.0.113.10", "b", 30.0, 131.0) == Granted(Due(0.0, 0.0))


def test_the_next_contact_is_kept_for_whoever_comes_next(reopen: Callable[[], IpClaims]) -> None:
    """A release stores the clock; every later holder gets it, also after a restart."""
    a = reopen()
    a.claim(IP, "a", 30.0, 100.0)
    a.release(IP, "a", Due(105.0, 2.0))
    assert reopen().claim(IP, "b", 30.0, 106.0) == Granted(Due(105.0, 2.0))
    assert reopen().claim(IP, "b", 30.0, 107.0) == Granted(Due(105.0, 2.0))


def test_a_claim_lapses_and_its_heir_is_warned(reopen: Callable[[], IpClaims]) -> None:
    """A vanished holder blocks an address for its time to live; then `clean` is False, and a late release is ignored."""
    a, b = reopen(), reopen()
    a.claim(IP, "a", 30.0, 100.0)
    assert b.claim(IP, "b", 30.0, 129.9) == Held(130.0)
    assert b.claim(IP, "b", 30.0, 130.0) == Granted(Due(0.0, 0.0), clean=False)
    a.release(IP, "a", Due(131.0, 1.0))
    assert a.claim(IP, "a", 30.0, 140.0) == Held(160.0)


def test_a_clock_that_ran_backwards_lengthens_a_claim_by_no_more_than_itself(reopen: Callable[[], IpClaims]) -> None:
    """An hour back: a dead holder's claim ends its time to live from now, not an hour later."""
    a = reopen()
    a.claim(IP, "a", 30.0, 10_000.0)
    assert a.claim(IP, "b", 30.0, 6_400.0) == Held(6_430.0)
    assert a.claim(IP, "b", 30.0, 6_430.0) == Granted(Due(0.0, 0.0), clean=False)


def _hammer(place: str, owner: str, rounds: int, log: str) -> None:
    claims = _opened(place)
    with Path(log).open("a", encoding="ascii", buffering=1) as out:
        done, tick = 0, 0.0
        while done < rounds:
            tick += 1.0
            if isinstance(claims.claim(IP, owner, 1e9, tick), Granted):
                out.write(f"{owner} begins\n")
                out.write(f"{owner} ends\n")
                claims.release(IP, owner, Due(tick, 0.0))
                done += 1
    claims.close()


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
def test_processes_take_turns(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """Two processes that fight for one address never hold it together."""
    shared = request.getfixturevalue("postgres_server").dsn() if kind == "postgres" else str(tmp_path / "claims.sqlite")
    context = multiprocessing.get_context("spawn")
    log = tmp_path / "log"
    args = [(shared, owner, 60, str(log)) for owner in ("a", "b")]
    children = [context.Process(target=_hammer, args=arg) for arg in args]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    lines = log.read_text("ascii").splitlines()
    assert len(lines) == 240
    for begins, ends in zip(lines[::2], lines[1::2], strict=True):
        assert begins.split() == [ends.split()[0], "begins"]
