"""What a member of a fleet says while it stands still, and what ends a question that is never answered."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("psycopg")

from corpus.app.fleet_budget import used
from corpus.app.fleet_guard import Guard
from corpus.app.fleet_share import gives_way, share
from corpus.app.fleet_waits import waits
from corpus.app.spending import Budget
from corpus.store.fleet_members import Beat
from tests.unit.test_fleet_share import ALL, ME, OTHER, beat, member

WAIT_S = 30.0


def said(of: Beat | None, owned: tuple[int, ...] = (), *, connected: bool = True, **gauges: Any) -> str:
    return waits(of, ME, owned, f"member {ME}", connected=connected, gauges=gauges)


def test_all_is_well_and_nothing_is_said() -> None:
    """With its share in hand, or before the first beat."""
    assert said(None) == ""
    assert said(beat(member(ME, ALL)), ALL, doubt=False, quiet_s=0.0) == ""


def test_a_silent_server_and_a_lease_in_doubt_are_no_idle_hosts() -> None:
    """What is wrong is the server, and the sentence says so."""
    assert "server does not answer" in said(beat(member(ME, ALL)), ALL, connected=False)
    assert "a lease is not renewed" in said(beat(member(ME, ALL)), ALL, doubt=True)


def test_a_lost_owner_is_named_while_its_leases_last() -> None:
    """No fetch process yet because the files are a lost member's: its name, and how many files."""
    lost = beat(member(ME), member(OTHER, ALL, alive=False), leases=dict.fromkeys(ALL, (f"member {OTHER}", True)))
    assert f"waits for 16 partition files of its share, still leased to member {OTHER}" in said(lost)
    ended = beat(member(ME), member(OTHER, ALL, alive=False), leases=dict.fromkeys(ALL, (f"member {OTHER}", False)))
    assert said(ended) == ""


def test_files_of_the_dead_rest() -> None:
    """The quarantine after an unclean take-over has a name and an end."""
    assert "hosts of 3 partition files rest for 41 s more" in said(beat(member(ME, ALL)), ALL, quiet=3, quiet_s=41.2)


def test_the_seventeenth_worker_is_a_spare_and_says_so() -> None:
    """Sixteen own a file each; one of seventeen owns none, waits, and has a share again when one goes."""
    numbers = range(ME, ME + 17)
    (extra,) = [number for number in numbers if not share(number, numbers, len(ALL))]
    crowd = beat(*(member(number) for number in numbers))
    told = waits(crowd, extra, (), f"member {extra}", connected=True, gauges={})
    assert "17 workers share the 16 partition files; it takes over as soon as one of them goes" in told
    gone = next(number for number in numbers if number != extra)
    assert share(extra, (number for number in numbers if number != gone), len(ALL))


def test_what_bounds_a_run_is_summed_over_its_members() -> None:
    """Pages as dealt, bytes of all, the run's own time; no row for what has no limit."""
    made = beat(member(ME, bytes_wire=7), member(OTHER, bytes_wire=5))
    assert used(made, Budget(pages=9, bytes=100.0, seconds=60.0), 12.0) == [
        ["crawl.max_pages", 0, 9], ["crawl.max_bytes", 12, 100.0], ["crawl.max_time", 12.0, 60.0],
    ]  # fmt: skip
    assert used(made, Budget(), 12.0) == []


def test_a_full_disk_gives_its_files_to_somebody_with_room() -> None:
    """Not at once, not where nobody else is, and not where everybody's is full (a disk they share)."""
    assert gives_way(31.0, 30.0, [member(OTHER)])
    assert not gives_way(29.0, 30.0, [member(OTHER)])
    for others in ([], [member(OTHER, full=True)], [member(OTHER, state="draining")], [member(OTHER, alive=False)]):
        assert not gives_way(31.0, 30.0, others)


def test_who_lags_behind_the_orders_it_was_told_of_is_paused() -> None:
    """Until its own reading of the log has come as far as the server said it goes."""
    from corpus.app.fetch_process import _Process

    for read, told, paused in ((3, 3, False), (2, 3, True), (4, 3, False)):
        process = SimpleNamespace(_held=False, _orders=SimpleNamespace(paused=lambda: False, version=read), _orders_due=told)
        assert _Process._paused(process) is paused  # type: ignore[arg-type]


@pytest.mark.parametrize("hurried", [False, True])
def test_a_guard_cuts_what_lasts_too_long_and_nothing_else(hurried: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short step is left alone, a nested one counts from the outer one's beginning, and a hurried one has less time."""
    monkeypatch.setattr("corpus.app.fleet_guard.LOOK_S", 0.02)
    monkeypatch.setattr("corpus.app.fleet_guard.HURRIED_S", 0.2)
    cut = threading.Event()
    guard = Guard(600.0 if hurried else 0.3, cut.set, lambda: hurried)
    try:
        with guard.step():
            time.sleep(0.01)
        time.sleep(0.5)
        assert not cut.is_set(), "nothing lasted"
        with guard.step(), guard.step():
            assert cut.wait(WAIT_S)
    finally:
        guard.close()
