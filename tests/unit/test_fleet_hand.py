"""How a member holds its one fetch process: told of files, waited for, ended when it does not move, and begun again."""

from __future__ import annotations

from dataclasses import asdict
from multiprocessing import Pipe
from typing import Any, cast

import pytest

from corpus.app import fleet_hand
from corpus.app.fetch_process import FetchSpec
from corpus.app.fleet_hand import QUICK_S, Hand
from corpus.crawl.worker import Progress

HELD_S = 5.0


class Spec:
    """What the hand reads of a specification."""

    worker, files = 100, (1, 2, 3)


class Process:
    def join(self, timeout: float) -> None:
        """It is over at once."""


class Child:
    """A fetch process that does what the test says."""

    def __init__(self) -> None:
        self.connection, self.far = Pipe()
        self.process, self.heard = Process(), list[tuple[Any, ...]]()

    def send(self, message: tuple[Any, ...]) -> None:
        self.heard.append(message)

    def says(self, **facts: Any) -> None:
        self.far.send(("status", asdict(Progress(**facts))))

    def exit_code(self) -> int:
        return 1


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    made: list[Child] = []

    def start(*_: object) -> Child:
        made.append(Child())
        return made[-1]

    monkeypatch.setattr(fleet_hand, "start", start)
    return made


def begun() -> Hand:
    hand = Hand(lambda *_, **__: None, HELD_S)
    hand.begin(cast(FetchSpec, Spec()))
    return hand


def test_it_moves_until_it_says_that_it_is_done(children: list[Child]) -> None:
    """Its files are those it speaks of; files that are about to leave get no letters meanwhile."""
    hand = begun()
    hand.own((2, 3, 4), (4,))
    assert children[0].heard == [("own", 1, (2, 3, 4), (4,))]
    assert (hand.moving, hand.files, hand.kept) == (True, (1, 2, 3), (2, 3))
    children[0].says(files=(2, 3, 4), moved=1)
    assert list(hand.listen()) == []
    assert (hand.moving, hand.files, hand.kept) == (False, (2, 3, 4), (2, 3, 4))


def test_one_that_died_after_it_had_moved_has_a_successor(children: list[Child]) -> None:
    """Orders of the dead are void: nothing is waited for where nobody is, and the next one begins with none."""
    hand = begun()
    hand.own((2, 3), ())
    children[0].says(files=(2, 3), moved=1)
    assert list(hand.listen()) == []
    children[0].far.close()
    assert [message[0] for message in hand.listen()] == ["gone"]
    assert not hand.moving
    hand.begin(cast(FetchSpec, Spec()))
    assert not hand.moving


def test_one_whose_files_do_not_move_ends_in_order(children: list[Child], monkeypatch: pytest.MonkeyPatch) -> None:
    """After as long as silence would be borne; not while it waits for room, for a successor would wait for that too."""
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    hand = begun()
    hand.own((2, 3), ())
    for stalled, ending in (("the disk is full", ""), ("", "share")):
        now[0] += HELD_S + QUICK_S + 1
        children[0].says(files=(1, 2, 3), stalled=stalled)
        assert list(hand.listen()) == []
        hand.hurry(hard=False)
        assert hand.ending == ending
    assert children[0].heard[-1] == ("drain",)
