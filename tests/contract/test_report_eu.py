"""`corpus report eu` against a corpus whose every number was worked out by hand: domains, both readings, both sizes of provider."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from corpus.app.project import Project, open_project
from corpus.app.release import RELEASE_STAGE
from corpus.app.report_eu import MARK
from corpus.app.report_eu_domains import DomainTable
from corpus.config.load import load_config
from corpus.export.ports import TOMBSTONES, ReleaseOptions
from corpus.export.summary import DomainRow
from corpus.optout.settings import OptoutSettings
from corpus.store.commits import CommitRecord, canonical_json, file_sha256
from tests import release_kit as rk
from tests.demo_corpus import Said, corpus_cli
from tests.make_families import Page

TAKEN_DOWN = [{"kind": "domain", "value": "gone.example", "reason": "asked", "requested_at": 1}]
SETTINGS = {"token": "CorpusBot", "optout": OptoutSettings(rsl=False).model_dump(mode="json")}


def _text(page: int) -> str:
    """25 words of four letters: 124 bytes."""
    return " ".join(f"{page:02d}{k:02d}" for k in range(25))


def _page(number: int, url: str, size: int, day: float = 0.0, **extra: Any) -> Page:
    return Page(url, _text(number), day=day, extra={"warc_length": size, **extra})


PAGES = [
    _page(1, "https://www.aa.example/1", 30),
    _page(2, "https://aa.example/2", 20, day=3),
    _page(3, "https://bb.example/", 40),
    _page(4, "https://cc.example/", 40, day=1),
    _page(5, "https://dd.example/", 40),
    *(_page(10 + i, f"https://e{i:02d}.example/", 10) for i in range(1, 17)),
    _page(27, "https://e17.example/", 10, day=-40, origin="ingest", crawl_id="CC-MAIN-2026-40"),
    Page("https://e16.example/copy", outcome="near-copy", near_original="https://e16.example/", extra={"warc_length": 900}),
    _page(30, "https://www.gone.example/", 5000),
]
"""21 domains that count, 340 bytes. cc says no only when exported, a linked copy has no bytes, and one domain is taken down."""

FIRST = [
    # rank, domain, pages fetched, bytes, share, cumulative, pages kept, text kept, its share
    (1, "aa.example", 2, 50, 0.147058, 0.147058, 2, 248, 0.095238),
    (2, "bb.example", 1, 40, 0.117647, 0.264705, 1, 124, 0.047619),
    (3, "cc.example", 1, 40, 0.117647, 0.382352, 0, 0, 0.0),
    (4, "dd.example", 1, 40, 0.117647, 0.5, 1, 124, 0.047619),
    (5, "e01.example", 1, 10, 0.029411, 0.529411, 1, 124, 0.047619),
]


def _made(folder: Path, pages: list[Page], asked: dict[str, int] | None) -> Project:
    """A folder with one release, made by the real export from hand-made families."""
    (folder / "corpus.toml").write_text('[corpus]\nname = "hand"\n', "utf-8")
    project = open_project(load_config(folder / "corpus.toml"))
    kit = rk.Kit(
        folder / "kit",
        judge=rk.Judge({"cc.example": "tdmrep"}),
        options=ReleaseOptions(user_agent="HandBot/1 (+a|b)", contact="mail@example.org"),
        tokens=rk.Lengths(),
        inputs={
            "tombstones": pa.Table.from_pylist(TAKEN_DOWN, TOMBSTONES),
            "turned_away": asked,
        },
    )
    inputs = kit.snapshot(pages)
    built = kit.build(inputs)
    family = "documents/crawl_id=2026-11/s00-000001-000001.parquet"
    (folder / family).parent.mkdir(parents=True)
    shutil.copyfile(inputs.segments[0].documents, folder / family)
    shutil.copytree(built.folder, folder / "releases" / "v1")
    snapshot = canonical_json(
        {
            "segments": [{"outputs": {family: file_sha256(folder / family)}}], "settings": SETTINGS, "tombstones": TAKEN_DOWN,
        }
    )  # fmt: skip
    digest = hashlib.sha256(snapshot).hexdigest()[:32]
    project.objects.put_new(f"snapshots/{digest}/snapshot.json", snapshot)
    outputs = {"releases/v1/manifest.json": file_sha256(folder / "releases/v1/manifest.json")}
    project.commits.put(CommitRecord(RELEASE_STAGE, "v1", outputs=outputs, info={"snapshot": digest, "order": 1, "previous": ""}))
    return project


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("eu")
    _made(made, PAGES, {"robots": 7, "challenge": 2, "tdmrep": 1})
    return made


def _eu(folder: Path, *arguments: str) -> Said:
    return corpus_cli("report", "eu", "-c", folder / "corpus.toml", *arguments)


def test_the_domains_are_those_worked_out_by_hand(folder: Path) -> None:
    """Pages, bytes, shares, cumulative shares, text kept: each number of the first rows; ties in order of name."""
    told = _eu(folder, "--json").json
    names = (
        "rank",
        "domain",
        "pages_fetched",
        "bytes_fetched",
        "share",
        "cumulative_share",
        "pages_kept",
        "text_bytes_kept",
        "text_share",
    )
    assert [tuple(row[name] for name in names) for row in told["domains"]] == FIRST[:3]
    assert (told["domain_rule"]["domains"], told["domain_rule"]["bytes"]) == (21, 340)
    rows = list(csv.DictReader(io.StringIO(_eu(folder, "--format", "csv").out)))
    assert [(int(r["rank"]), r["domain"], int(r["bytes_fetched"]), float(r["cumulative_share"])) for r in rows[:5]] == [
        (row[0], row[1], row[3], row[5]) for row in FIRST
    ]
    assert len(rows) == 21
    assert rows[-1]["cumulative_share"] == "1.000000"
    assert (rows[-2]["domain"], rows[-2]["pages_fetched"], rows[-2]["bytes_fetched"]) == ("e16.example", "2", "10")
    assert "gone.example" not in _eu(folder, "--format", "csv").out
    assert (rows[0]["first_fetched"], rows[0]["last_fetched"]) == ("2026-11-01T00:00:00Z", "2026-11-04T00:00:00Z")


def test_both_readings_for_both_sizes_of_provider(folder: Path) -> None:
    """10 % of 21 domains are 3 (dd is as large as the third, and told so), 10 % of 340 bytes are in the first; 5 %: 2, and the first."""
    rules = _eu(folder, "--json").json["domain_rule"]["providers"]
    assert rules["any"] == {
        "percent": 10, "cap": None,
        "by_number": {"uncapped": 3, "domains": 3, "as_large_but_not_named": 1},
        "by_size": {"uncapped": 1, "domains": 1, "as_large_but_not_named": 0},
    }  # fmt: skip
    assert rules["sme"] == {
        "percent": 5, "cap": 1000,
        "by_number": {"uncapped": 2, "domains": 2, "as_large_but_not_named": 2},
        "by_size": {"uncapped": 1, "domains": 1, "as_large_but_not_named": 0},
    }  # fmt: skip
    assert [row["domain"] for row in _eu(folder, "--sme", "--json").json["domains"]] == ["aa.example", "bb.example"]
    rows = list(csv.DictReader(io.StringIO(_eu(folder, "--format", "csv").out)))
    marked = {
        name: [r["domain"] for r in rows if r[name] == "yes"]
        for name in ("any_by_number", "any_by_size", "sme_by_number", "sme_by_size")
    }
    first = [row[1] for row in FIRST]
    assert marked == {"any_by_number": first[:3], "any_by_size": first[:1], "sme_by_number": first[:2], "sme_by_size": first[:1]}


@pytest.mark.parametrize(
    ("sizes", "number", "size", "sme_number", "sme_size"),
    [
        ([], 0, 0, 0, 0),
        ([0, 0], 1, 0, 1, 0),
        ([5], 1, 1, 1, 1),
        ([10] * 30, 3, 3, 2, 2),
        ([3] * 10 + [1] * 10, 2, 2, 1, 1),
        ([7] * 30_000, 3000, 3000, 1000, 1000),
    ],
)
def test_the_rule_at_its_edges(sizes: list[int], number: int, size: int, sme_number: int, sme_size: int) -> None:
    """Nothing, nothing fetched, one domain, equal domains, a cut on the byte, and the cap of 1,000 for small providers."""
    with duckdb.connect(":memory:") as con:
        names = [f"d{i:05d}.example" for i in range(len(sizes))]
        rows = pa.table({"domain": pa.array(names, pa.string()), "warc_length": pa.array(sizes, pa.int64())})
        con.register("rows", rows)
        con.execute("CREATE VIEW scraped AS SELECT *, 'ok' AS outcome, TIMESTAMP '2026-01-01' AS fetched_at FROM rows")
        table = DomainTable(con, [])
        rules = table.rules()
        found = [rules[who][reading]["domains"] for who in ("any", "sme") for reading in ("by_number", "by_size")]
        assert found == [number, size, sme_number, sme_size]
        assert [row["domain"] for row in table.rows(3)] == names[:3]


def test_a_domain_of_the_release_alone_is_not_lost() -> None:
    """Where families were rewritten since, a domain of the release stands with nothing fetched."""
    with duckdb.connect(":memory:") as con:
        con.execute("CREATE TABLE scraped (domain VARCHAR, warc_length BIGINT, outcome VARCHAR, fetched_at TIMESTAMP)")
        table = DomainTable(con, [DomainRow("a.example", 2, 9, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")])
        assert [(r["domain"], r["bytes_fetched"], r["text_bytes_kept"]) for r in table.rows(9)] == [("a.example", 0, 9)]


def test_every_section_says_what_is_known(folder: Path) -> None:
    """Size, languages, sources, periods, crawler, opt-outs with counts: each from the folder."""
    told = _eu(folder, "--json").json
    general = told["general"]
    assert (general["pages"], general["text_bytes"], general["tokens"], general["size"]) == (
        21,
        21 * 124,
        21 * 25,
        "less than 1 billion tokens",
    )
    assert general["latest_acquisition"] == "2026-11-04T00:00:00Z"
    assert general["languages"] == {"en": 21}
    assert [(p["crawl_id"], p["pages"], p["bytes"], p["domains"], p["linked_copies"]) for p in told["crawled"]["periods"]] == [
        ("2026-11", 22, 330, 20, 1)
    ]
    assert [(p["crawl_id"], p["pages"], p["bytes"]) for p in told["public_datasets"]["taken_in"]] == [("CC-MAIN-2026-40", 1, 10)]
    assert told["crawled"]["crawler"] == "HandBot/1 (+a|b)"
    assert [(s["signal"], s["when_asked"], s["when_exported"]) for s in told["optouts"]["signals"]] == [
        ("robots", 7, 0),
        ("tdmrep", 1, 1),
    ]
    assert told["optouts"]["use"] == {"yes": 0, "unknown": 21, "no": 0}
    assert (told["optouts"]["challenges"], told["optouts"]["takedowns"]) == (2, 1)
    assert "RSL" not in told["optouts"]["protocols"], "a signal that the settings turn off is not claimed"
    assert "TDMRep" in told["optouts"]["protocols"]
    assert len(told["domain_rule"]["suffix_list"]) > 9


def test_what_only_the_provider_knows_is_marked(folder: Path) -> None:
    """The mark stands word for word in each such place, in JSON and Markdown, and nothing is guessed."""
    told = _eu(folder, "--json").json
    assert {told[name] for name in ("provider", "model", "illegal_content", "other_information")} == {MARK}
    assert {told["crawled"]["purposes"], told["public_datasets"]["others"], told["optouts"]["policy_of_the_provider"]} == {MARK}
    page = _eu(folder).out
    for heading in ("1.1", "1.2", "2.2", "2.4", "2.5", "2.6", "3.2", "3.3"):
        after = page.partition(f"### {heading} ")[2].partition("\n")[2].strip()
        assert after.startswith("TO BE PROVIDED BY PROVIDER"), heading


def test_markdown_carries_the_same_numbers(folder: Path) -> None:
    """The rows of both readings, the counts by signal and the totals stand in the page; the same call gives the same bytes."""
    page = _eu(folder, "--sme").out
    assert "| 2 | bb\\.example | 1 | 40 | 0.117647 | 0.264705 | 1 | 124 | 2026-11-01T00:00:00Z | 2026-11-01T00:00:00Z |" in page
    assert "cc\\.example" not in page
    assert "- 5 % of the number of domains: the first 2; 2 more are as large as the last of them" in page
    assert "- 5 % of the bytes fetched: the first 1" in page
    assert "| `tdmrep` | text and data mining rights are reserved (TDMRep) | 1 | 1 |" in page
    assert "21 registered domains" in page
    assert _eu(folder, "--sme").out == page


def test_the_web_writes_nothing_into_the_report(tmp_path: Path) -> None:
    """A domain, a content type and a user agent that are Markdown, HTML or a formula show as themselves in all three forms."""
    evil = "=1+1|<b>[x](http://evil.example)\u202e`\n# no"
    _made(tmp_path, [_page(1, "https://a.example/", 5, domain=evil, content_type="text/<script>|x")], {})
    page = _eu(tmp_path).out
    assert "<b>" not in page
    assert "<script>" not in page
    assert "](http" not in page
    assert "\n# no" not in page
    assert "\u202e" not in page
    assert "a|b" not in page
    head, first = next(iter([_eu(tmp_path, "--format", "csv").out.splitlines()]))[:2]
    assert head.startswith("rank,domain")
    assert first.lstrip('1,"').startswith("'=1+1|")
    assert _eu(tmp_path, "--json").json["domains"][0]["bytes_fetched"] == 5


def test_to_a_file_for_a_named_release(folder: Path, tmp_path: Path) -> None:
    """`-o` writes the same text and prints nothing; an unknown release is exit 2 with the names there are."""
    out = tmp_path / "eu.md"
    told = _eu(folder, "--release", "v1", "-o", str(out))
    assert (told.code, told.out) == (0, "")
    assert out.read_text("utf-8") == _eu(folder).out
    wrong = _eu(folder, "--release", "v9")
    assert wrong.code == 2
    assert "v1" in wrong.err


def test_an_older_snapshot_is_not_credited(tmp_path: Path) -> None:
    """A snapshot that did not record what was refused when asked says so; no zero is made up."""
    _made(tmp_path, PAGES[:4], None)
    told = _eu(tmp_path, "--json").json
    assert told["optouts"]["recorded_when_asked"] is False
    assert [s["when_asked"] for s in told["optouts"]["signals"]] == [None]
    assert "does not say what was refused" in _eu(tmp_path).out


def test_files_that_disagree_are_refused(tmp_path: Path) -> None:
    """domains.csv and manifest must add up to the same; a missing family is named; without a release it says so."""
    _made(tmp_path, PAGES[:3], {})
    side = tmp_path / "releases" / "v1" / "domains.csv"
    good = side.read_text("utf-8")
    side.write_text(good.replace(",124,", ",125,"), "utf-8")
    told = _eu(tmp_path)
    assert told.code == 1
    assert "domains.csv" in told.err
    side.write_text(good, "utf-8")
    next((tmp_path / "documents").rglob("*.parquet")).unlink()
    assert _eu(tmp_path).code == 1
    other = tmp_path / "empty"
    other.mkdir()
    (other / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    open_project(load_config(other / "corpus.toml"))
    none = _eu(other)
    assert none.code == 1
    assert "no release" in none.err
    assert json.dumps(none.out) == '""'


def test_a_slip_in_the_path_makes_no_folder(folder: Path, tmp_path: Path) -> None:
    """`-o` into a folder that is not there is refused, as every verb refuses it."""
    said = _eu(folder, "-o", str(tmp_path / "none" / "eu.md"))
    assert (said.code, "no such folder" in said.err) == (2, True)
    assert list(tmp_path.iterdir()) == []
