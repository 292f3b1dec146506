"""kill -9 in the middle of `takedown apply`, at any moment: run again, it ends where an undisturbed one ends, byte for byte."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from corpus.store.locks import holder
from corpus.testing.kill import run_until_killed
from tests.demo_corpus import DemoCorpus
from tests.takedown_kit import Prey, apply, prey, tree, verified

KILLS = 30


@pytest.fixture(scope="module")
def ordered(demo_corpus: DemoCorpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Prey, dict[str, str]]:
    """A corpus with orders to carry out, and what it looks like when nothing disturbs that."""
    place = tmp_path_factory.mktemp("ordered")
    folder, wanted = demo_corpus.copy(place / "corpus"), prey(demo_corpus)
    wanted.order(folder)
    import shutil

    calm = Path(shutil.copytree(folder, place / "calm"))
    apply(calm)
    return folder, wanted, tree(calm)


def _disturbed(ordered: tuple[Path, Prey, dict[str, str]], place: Path, seed: int, kills: int) -> int:
    """Carry the orders out under kills; returns how many came while it was at work."""
    import shutil

    source, _, calm = ordered
    folder = Path(shutil.copytree(source, place / f"corpus-{seed}"))
    report = run_until_killed(
        [sys.executable, "-m", "corpus", "takedown", "apply", "--json", "-c", str(folder / "corpus.toml")], seed=seed, after_s=(0.0, 0.8), kills=kills,
        under_way=lambda: _at_work(folder), timeout_s=120.0,
    )  # fmt: skip
    assert report.exit_code == 0, report.stderr
    told = json.loads(report.stdout)
    assert told["remaining"] == 0
    assert tree(folder) == calm
    proof = json.loads(next(iter(folder.glob("proofs/takedown-*.json"))).read_text())
    assert proof["before"]["documents"] > 0
    assert not any(proof["after"].values())
    assert not list(folder.rglob(".part-*"))
    assert verified(folder) == []
    shutil.rmtree(folder)
    return len(report.kills)


def test_a_killed_takedown_goes_on_where_it_was(ordered: tuple[Path, Prey, dict[str, str]], tmp_path: Path) -> None:
    """Two kills in a row at moments drawn from a seed; the folder ends as without them."""
    assert _disturbed(ordered, tmp_path, 1, 2) > 0


def _at_work(folder: Path) -> bool:
    """Whether an apply has its locks and its plan."""
    return bool(list(folder.glob("commits/takedown-plan/*.json"))) and holder(folder / ".local/locks/export.lock") is not None


@pytest.mark.slow
def test_thirty_kills(ordered: tuple[Path, Prey, dict[str, str]], tmp_path: Path) -> None:
    """At least thirty kills that met an apply at work, over folders of their own."""
    done = seed = 0
    while done < KILLS:
        seed += 1
        assert seed < 4 * KILLS, "the kills come too late to meet anything"
        done += _disturbed(ordered, tmp_path, seed, 3)
