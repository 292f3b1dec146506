"""One set of numbers: the card, the Croissant file, the manifest, `report eu`, `report consent` and SQL say the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from corpus.reasons import REASONS
from tests.demo_corpus import DemoCorpus, Said, corpus_cli

Counts = dict[str, tuple[int, int]]
"""Signal → (URLs not fetched, stored pages left out)."""


def _run(folder: Path, verb: str, *arguments: str) -> Said:
    sets = ("--set", "optout.recheck_after=3000d", "--set", "optout.domains_file=no.txt")
    return corpus_cli(*verb.split(), "-c", folder / "corpus.toml", *sets, *arguments)


def _sql(folder: Path, query: str) -> list[list[Any]]:
    found: list[list[Any]] = _run(folder, "sql", "--json", query).json["rows"]
    return found


@pytest.fixture(scope="module", params=["release", "superseded"])
def told(request: pytest.FixtureRequest, demo_corpus: DemoCorpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A release that an operator's list took a domain out of; and one that a takedown was then applied to."""
    folder = demo_corpus.copy(tmp_path_factory.mktemp("numbers") / "corpus")
    (folder / "no.txt").write_text("127.10.0.5\n", "utf-8")
    assert _run(folder, "export", "--name", "v2").code == 0
    if request.param == "release":
        return folder, "v2"
    assert _run(folder, "takedown add", "127.10.0.2", "--reason", "asked").code == 0
    assert _run(folder, "takedown apply").code == 0
    return folder, "v2.1"


def _of_card(text: str) -> Counts:
    rows = re.findall(r"^\| `([a-z0-9-]+)`: [^|]* \| ([0-9]+) \| ([0-9]+) \|$", text.partition("## Consent")[2], re.MULTILINE)
    return {code: (int(asked), int(left)) for code, asked, left in rows}


def _of_croissant(text: str) -> Counts:
    found = {}
    for line in text.split("; "):
        if match := re.match(r"([a-z0-9-]+): .*: ([0-9]+) URLs not fetched, ([0-9]+) stored pages left out$", line):
            found[match[1]] = (int(match[2]), int(match[3]))
    return found


def test_what_sites_said_no_to(told: tuple[Path, str]) -> None:
    """By signal, when asked and when exported: six sources, one answer, and both kinds occur."""
    folder, name = told
    release = folder / "releases" / name
    eu = _run(folder, "report eu", "--json").json["optouts"]["signals"]
    expected = {row["signal"]: (row["when_asked"], row["when_exported"]) for row in eu}
    assert sum(asked for asked, _ in expected.values()) > 0
    if name == "v2":  # an apply removes what the operator's list names, so nothing is left to leave out
        assert sum(left for _, left in expected.values()) > 0
    assert _of_card((release / "README.md").read_text("utf-8")) == expected
    assert _of_croissant(json.loads((release / "croissant.json").read_text("utf-8"))["rai:dataCollectionMissingData"]) == expected
    consent = _run(folder, "report consent", "--json").json["by_signal"]
    left = dict(_sql(folder, "SELECT reason, n FROM funnel WHERE stage = 'allowed' AND reason <> ''"))
    left = {code: n for code, n in left.items() if REASONS[code].step in ("consent", "robots")}
    exported = {code: n for code, (_, n) in expected.items() if n}
    assert {row["signal"]: row["when_exported"] for row in consent if row["when_exported"]} == left == exported
    if name == "v2":  # what is asked since a release is counted from the frontier of today, and the apply has told it of the list
        asked = dict(_sql(folder, "SELECT reason, count(*) FROM pages WHERE state = 'refused' GROUP BY 1"))
        assert {row["signal"]: row["when_asked"] for row in consent if row["when_asked"]} == asked
        assert asked == {code: n for code, (n, _) in expected.items() if n}
    manifest = json.loads((release / "manifest.json").read_text("utf-8"))
    refused = {code: n for code, n in manifest["turned_away"].items() if REASONS[code].verdict == "refused"}
    assert refused == {code: n for code, (n, _) in expected.items() if n}


def test_the_trend_adds_up(told: tuple[Path, str]) -> None:
    """For each signal the days of the trend sum to its URLs, the running sum ends there, and the days are in order."""
    consent = _run(told[0], "report consent", "--json").json
    for row in consent["by_signal"]:
        mine = [item for item in consent["trend"] if item["signal"] == row["signal"]]
        assert sum(item["urls"] for item in mine) == row["urls"] == mine[-1]["urls_so_far"]
        days = [item["day"] for item in mine if item["day"]]
        assert days == sorted(days)
    assert {item["signal"] for item in consent["trend"]} == {row["signal"] for row in consent["by_signal"]}
    assert sum(row["readings"] for row in consent["files_by_day"]) == sum(row["readings"] for row in consent["by_day"])
    page = _run(told[0], "report consent").out
    assert f"{consent['trend'][0]['day']}" in page
    assert "By signal and day" in page


def test_rows_uses_languages_and_domains(told: tuple[Path, str]) -> None:
    """Rows, uses, languages, tokens, text and bytes fetched by domain: the card, the report and SQL agree."""
    folder, name = told
    eu = _run(folder, "report eu", "--json").json
    card = (folder / "releases" / name / "README.md").read_text("utf-8")
    rows, text = _sql(folder, "SELECT count(*), sum(strlen(text)) FROM records")[0]
    assert (eu["release"]["name"], eu["general"]["pages"], eu["general"]["text_bytes"]) == (name, rows, text)
    uses = dict(_sql(folder, "SELECT consent.use, count(*) FROM records GROUP BY 1"))
    assert {use: n for use, n in eu["optouts"]["use"].items() if n} == uses
    assert _run(folder, "report consent", "--json").json["exported_by_use"] == uses
    assert f"{uses['unknown']:,} of {rows:,} rows" in card
    assert f"{rows:,} pages of" in card
    assert f"{text:,} bytes of text" in card
    languages = dict(_sql(folder, "SELECT language, count(*) FROM records GROUP BY 1"))
    assert eu["general"]["languages"] == languages
    assert all(f"| {code} | {n} |" in card for code, n in languages.items())
    kept = {d: (n, size) for d, n, size in _sql(folder, "SELECT domain, count(*), sum(strlen(text)) FROM records GROUP BY 1")}
    domain, (pages, _) = next(iter(kept.items()))
    held = {item["release"]: item["rows"] for item in _run(folder, "lookup", domain, "--json").json["releases"]}
    assert held[name] == pages
    fetched = "SELECT domain, count(*), sum(CASE outcome WHEN 'near-copy' THEN 0 ELSE warc_length END) FROM documents GROUP BY 1"
    listed = [line.split(",") for line in _run(folder, "report eu", "--format", "csv").out.splitlines()[1:]]
    assert {row[1]: (int(row[2]), int(row[3])) for row in listed} == {d: (n, size) for d, n, size in _sql(folder, fetched)}
    assert {row[1]: (int(row[6]), int(row[7])) for row in listed if int(row[6])} == kept
    assert eu["domain_rule"]["bytes"] == sum(int(row[3]) for row in listed)
    assert eu["optouts"]["takedowns"] == (2 if name == "v2.1" else 0), "the takedown, and what the operator's list names"
    assert f"lists {eu['optouts']['takedowns']} removals" in card
