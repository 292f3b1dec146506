"""The dataset card says everything it promises to say, from the run alone: each clause with a number that was worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpus.errors import CorpusError
from corpus.export.card import TO_DO
from corpus.export.ports import TOMBSTONES, ReleaseOptions
from corpus.export.summary import DomainTotals
from tests import release_kit as rk
from tests.make_families import Page

OLD = [
    Page("https://a.example/stays", rk.text(1)),
    Page("https://a.example/changes", rk.text(2)),
    Page("https://b.example/goes", rk.text(3)),
]
NEW = [
    Page("https://a.example/stays", rk.text(1)),
    Page("https://a.example/changes", rk.text(4)),
    Page("https://c.example/comes", rk.text(5), use="yes"),
    Page("https://c.example/copy", rk.near(5, 1), use="yes"),
    Page("https://c.example/short", "too short"),
    Page("https://no.example/", rk.text(6)),
    Page("https://gone.example/", rk.text(7)),
    Page("https://gone.example/none", outcome="no-text"),
]


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The card of a second release."""
    import pyarrow as pa

    kit = rk.Kit(
        tmp_path_factory.mktemp("card"), judge=rk.Judge({"no.example": "tdmrep"}), policy=rk.Policy(least=10, cut=("email",))
    )
    first = kit.release(OLD)
    down = [{"kind": "domain", "value": "gone.example", "reason": "asked", "requested_at": 1}]
    kit.inputs = {
        "tombstones": pa.Table.from_pylist(down, TOMBSTONES), "turned_away": {"robots": 9, "challenge": 4}, "protocols": ["robots.txt", "TDMRep"],
    }  # fmt: skip
    kit.options = ReleaseOptions(
        name="v2", memory=500 * 2**20, user_agent="Bot/1", contact="me@example.org", words={"about": "Said by a person."},
        previous=json.dumps(first.manifest), previous_shards=[first.folder / shard["path"] for shard in first.manifest["shards"]],
    )  # fmt: skip
    return (kit.release(NEW).folder / "README.md").read_text("utf-8")


def _section(card: str, name: str) -> str:
    found = card.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert found, f"there is no section {name}"
    return found


def test_what_sites_said(card: str) -> None:
    """Uses in this release, how many rows are unknown, and by signal what was not fetched and what was left out."""
    said = _section(card, "Consent")
    assert "2 of 3 rows (0.666666) are `unknown`." in said
    assert "| yes | 1 |\n| unknown | 2 |\n| no | 0 |" in said
    assert "| `robots`: robots.txt refuses it | 9 | 0 |" in said
    assert "| `tdmrep`: text and data mining rights are reserved (TDMRep) | 0 | 1 |" in said
    assert "| `taken-down`: taken down on request | 1 |" in said
    assert "challenge" not in said, "somebody who stops robots has said nothing about training"


def test_funnel_filters_and_copies(card: str) -> None:
    """Every step with what it dropped, the rule that dropped, and the near-duplicates left out."""
    funnel = _section(card, "Funnel")
    for line in (
        "| extracted | 8 | 7 |",
        "| quality | 7 | 6 |",
        "| allowed | 6 | 4 |",
        "| unique | 4 | 3 |",
        "| exported | 3 | 3 |",
    ):
        assert line in funnel, line
    assert "min\\_words | 1 |" in _section(card, "Filters")
    assert "Cut from the texts: email." in _section(card, "Filters")
    assert "| `near-duplicate`: nearly the same text as another page | 1 |" in _section(card, "Near-duplicates")


def test_collection_domains_and_limits(card: str) -> None:
    """Who collected, when, under which signals; the domains with their running share; what the method cannot do; how to take down."""
    collected = _section(card, "Collection")
    for words in ("Bot\\/1", "me\\@example\\.org", "2026\\-11", "2026-11-01T00:00:00Z", "robots\\.txt; TDMRep"):
        assert words in collected, words
    domains = _section(card, "Top domains")
    assert "| domain | pages | text bytes | share | cumulative |" in domains
    assert "| c\\.example | 1 | 830 | 0\\.334677 | 1\\.000000 |" in domains
    assert "Known limits" in _section(card, "Personal data, bias and known limits")
    assert "lists 1 removals" in _section(card, "Rights and takedown")


def test_changes_since_the_last_release(card: str) -> None:
    """Rows then and now, pages that came, went and changed, uses then and now."""
    changed = _section(card, "Changes since the last release")
    assert "Compared with `v1`: 3 rows then, 3 now." in changed
    assert "1 pages were added, 1 removed, 1 have another body." in changed
    assert "`yes` 0 and 1, `unknown` 3 and 2, `no` 0 and 0." in changed
    assert "The policy changed" not in changed


def test_what_only_a_person_can_say(card: str) -> None:
    """Words that were given stand there; every other human part is marked, and nothing else is."""
    assert "Said by a person." in _section(card, "What it is")
    assert card.count(TO_DO) == 6
    assert TO_DO in _section(card, "Rights and takedown")
    assert _section(card, "Datasheet").count(TO_DO) == 4


def test_columns_and_front_matter(card: str) -> None:
    """Each column with its type and meaning; front matter that names languages, size and configurations."""
    columns = _section(card, "Columns")
    assert all(
        f"| `{name}` |" in columns for name in ("text", "id", "url", "consent", "signals", "warc_offset", "schema_version")
    )
    front = card.split("---\n")[1]
    assert 'language: ["en"]' in front
    assert 'size_categories: ["n<1K"]' in front
    assert "config_name: default" in front


def test_domains_that_disagree_with_the_shards_are_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of domains that leaves one out is found before anything is published."""
    ranked = DomainTotals.ranked
    monkeypatch.setattr(DomainTotals, "ranked", lambda self: ranked(self)[1:])
    with pytest.raises(CorpusError, match="would count 1 domains, 2 were kept"):
        rk.Kit(tmp_path).release(OLD)
    assert not list(tmp_path.rglob("README.md"))
