"""`corpus diff`: every page of two releases is accounted for once, with the reason the decisions give."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpus.reasons import REASONS
from tests.demo_corpus import DemoCorpus, Said, corpus_cli, project_of


def _run(folder: Path, verb: str, *arguments: str) -> Said:
    return corpus_cli(verb, "-c", folder / "corpus.toml", "--set", "optout.recheck_after=3000d", *arguments)


def _domain(folder: Path) -> tuple[str, int]:
    """The domain with most pages in the newest release, and how many."""
    rows = _run(folder, "sql", "--json", "SELECT domain, count(*) FROM records GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1").json[
        "rows"
    ]
    return rows[0][0], rows[0][1]


@pytest.fixture(scope="module")
def three(demo_corpus: DemoCorpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """v1; v2 after a domain was taken down; v3 with an operator's opt-out and another policy as well."""
    folder = demo_corpus.copy(tmp_path_factory.mktemp("diff") / "corpus")
    domain, pages = _domain(folder)
    project_of(folder).control.append("takedown", at=1.0, kind="domain", value=domain, reason="asked")
    assert _run(folder, "export", "--name", "v2").code == 0
    (folder / "no.txt").write_text(f"{_domain(folder)[0]}\n", "utf-8")
    assert (
        _run(folder, "export", "--name", "v3", "--set", "optout.domains_file=no.txt", "--set", "filter.policy=gopher").code == 0
    )
    return folder, domain, pages


def _says(folder: Path, a: str, b: str) -> dict:
    told = _run(folder, "diff", a, b, "--json")
    assert told.code == 0, told
    return told.json


@pytest.mark.parametrize(("a", "b"), [("v1", "v2"), ("v2", "v3"), ("v1", "v3"), ("v3", "v1"), ("v1", "v1")])
def test_every_page_is_accounted_for(three: tuple[Path, str, int], a: str, b: str) -> None:
    """rows(B) = rows(A) + added − removed; counts equal the list; each reason has a sentence."""
    told = _says(three[0], a, b)
    assert told["rows_b"] == told["rows_a"] + told["added"] - told["removed"]
    assert told["unchanged"] == told["rows_a"] - told["removed"] - told["changed"]
    for kind in ("added", "removed", "changed"):
        listed = [change for change in told["changes"] if change["change"] == kind]
        assert len(listed) == told[kind] == sum(told["reasons"][kind].values())
        assert len({change["url"] for change in listed}) == len(listed)
        assert all(change["sentence"] for change in listed)
    if a == b:
        assert told["changes"] == []


def test_a_takedown_is_named(three: tuple[Path, str, int]) -> None:
    """Every page of the domain is removed, and the reason is the takedown."""
    folder, _, pages = three
    told = _says(folder, "v1", "v2")
    assert told["removed_because"]["taken-down"] == told["reasons"]["removed"]["taken-down"] == pages


def test_opt_outs_come_with_their_line_and_drops_with_their_rule(three: tuple[Path, str, int]) -> None:
    """The operator's list took pages out as opted out, with the raw line; the policy's drops are `quality`."""
    told = _says(three[0], "v2", "v3")
    out = [change for change in told["changes"] if change["group"] == "opted-out"]
    assert len(out) == told["removed_because"]["opted-out"] > 0
    assert {change["reason"] for change in out} <= {code for code, row in REASONS.items() if row.step in ("consent", "robots")}
    assert all(change["evidence"]["raw"] for change in out if change["reason"] == "operator-list")
    assert told["reasons"]["removed"].get("quality", 0) > 0


def test_the_other_way_round_tells_why_they_were_out(three: tuple[Path, str, int]) -> None:
    """What comes back is `added`, with the reason it was not in the first."""
    told = _says(three[0], "v2", "v1")
    assert told["removed"] == 0
    assert told["reasons"]["added"].get("taken-down", 0) == three[2]


def test_another_body_at_the_same_address_is_a_change(three: tuple[Path, str, int], tmp_path: Path) -> None:
    """Same URL, other id: changed, with both ids and whether the text is another."""
    folder = Path(shutil.copytree(three[0], tmp_path / "corpus"))
    shard = next((folder / "releases/v2").glob("data/*/*.parquet"))
    table = pq.read_table(shard, partitioning=None)
    ids, texts = table["id"].to_pylist(), table["text_sha256"].to_pylist()
    before, ids[0], ids[1], texts[1] = ids[:2], "0" * 32, "1" * 32, "2" * 64
    for name, values in (("id", ids), ("text_sha256", texts)):
        table = table.set_column(table.column_names.index(name), name, [values])
    pq.write_table(table, shard)
    changed = [change for change in _says(folder, "v1", "v2")["changes"] if change["change"] == "changed"]
    found = {change["url"]: (change["ids_a"], change["ids_b"], change["reason"]) for change in changed}
    urls = table["url"].to_pylist()
    assert found == {
        urls[0]: ([before[0]], ["0" * 32], "same-text"),
        urls[1]: ([before[1]], ["1" * 32], "other-text"),
    }


def test_a_person_reads_a_short_list(three: tuple[Path, str, int]) -> None:
    """Counts, reasons, and no more examples than asked for."""
    told = _run(three[0], "diff", "v1", "v3", "-n", "2")
    assert told.code == 0
    assert sum(line.startswith("- ") for line in told.out.splitlines()) == 2
    assert "taken-down" in told.out


def test_an_unknown_release_is_named(three: tuple[Path, str, int]) -> None:
    """Exit 2, and the names there are; a name that is a path is only a name."""
    told = _run(three[0], "diff", "v1", "../v2")
    assert told.code == 2
    assert "v1, v2, v3" in told.err


def test_a_damaged_shard_is_said_plainly(three: tuple[Path, str, int], tmp_path: Path) -> None:
    """Exit 1 with a sentence, no traceback."""
    folder = Path(shutil.copytree(three[0], tmp_path / "corpus"))
    next((folder / "releases/v2").glob("data/*/*.parquet")).write_bytes(b"not parquet")
    told = _run(folder, "diff", "v1", "v2")
    assert told.code == 1
    assert "corpus verify" in told.err
