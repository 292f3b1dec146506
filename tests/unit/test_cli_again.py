"""What a newcomer tries next: run it again with more budget, ask about strangers, mistype a URL."""

from __future__ import annotations

from pathlib import Path

import pytest

import corpus
from corpus.testing.demo.server import serving
from corpus.testing.demo.settings import demo_config
from tests.demo_corpus import DemoCorpus, corpus_cli


def test_a_bigger_budget_gives_the_next_release(tmp_path: Path) -> None:
    """`run` again with a raised budget is a resume: exit 0, and the release takes the next free name; a fixed name is refused."""
    config = tmp_path / "corpus.toml"
    with serving() as served:
        config.write_text(demo_config(served.origins), "utf-8")
        first = corpus_cli("run", "-c", config, "--set", "crawl.max_pages=12", "--json")
        second = corpus_cli("run", "-c", config, "--set", "crawl.max_pages=25", "--json")
    assert (first.code, first.json["ended"]) == (0, "budget")
    assert second.code == 0
    assert second.json["funnel"][-1]["out"] > first.json["funnel"][-1]["out"]
    assert sorted(path.name for path in (tmp_path / "releases").iterdir()) == ["v1", "v2"]
    fixed = corpus_cli("export", "-c", config, "--name", "v1", "--set", "export.validation=0.5")
    assert fixed.code == 1
    assert "another export.name, for example v3" in fixed.err  # v2 is taken


def test_a_release_without_rows_is_replaced(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """A policy that keeps nothing ends with exit 3, and its name is free for the next attempt."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    (folder / "none.toml").write_text('about = "keeps nothing"\n[rules.huge]\nsignal = "words"\nmin = 100000000\n', "utf-8")
    nothing = corpus_cli("export", "-c", folder / "corpus.toml", "--name", "empty", "--set", "filter.policy=none.toml")
    assert nothing.code == 3, nothing.err
    again = corpus_cli("export", "-c", folder / "corpus.toml", "--name", "empty")
    assert again.code == 0, again.err


def test_nothing_is_said_for_hosts_nobody_asked(demo_corpus: DemoCorpus) -> None:
    """`why` of a stranger: unknown, and no access is claimed for it."""
    told = corpus_cli("why", "http://nowhere.example/", "-c", demo_corpus.config, "--json").json
    assert told["verdict"] == "unknown"
    assert (told["consent"]["access"], told["consent"]["gate"], told["consent"]["export"]) == ("defer", "defer", False)


@pytest.mark.parametrize("url", ["nope", "", "ftp://x/", "http://[::1", "e.org/x/1"])
def test_no_permission_for_what_is_no_url(url: str) -> None:
    """A forgotten scheme defers, never permits; on the command line it is an error."""
    told = corpus.consent(url, robots="User-agent: *\nDisallow: /")
    assert (told.access, told.gate, told.store, told.export) == ("defer", "defer", False, False)
    assert corpus_cli("optout", "check", url, "--header", "X-Robots-Tag: noai").code == 2


def test_a_header_without_a_colon_is_refused() -> None:
    """A mistyped opt-out is not silently nothing."""
    assert corpus_cli("optout", "check", "https://e.org/a", "--header", "X-Robots-Tag noai").code == 2


@pytest.mark.parametrize(
    "setting",
    [
        "store.root=s3://No-Bucket/x",
        "store.s3_region=eu-central-1",
        "store.frontier=postgresql://x",
        "engine.address=127.0.0.1:6379",
        'crawl.scope.domains=["not a domain"]',
        "export.tokenizer=nope.json",
        "crawl.proxy=foo",
    ],
)
def test_check_refuses_what_run_would(demo_corpus: DemoCorpus, setting: str) -> None:
    """What stops a run is found by `check`, before anything is fetched."""
    said = corpus_cli("check", "-c", demo_corpus.config, "--set", setting, "--json")
    assert said.code == 2
    assert len(said.json["problems"]) == 1


def test_utf16_pages_are_pages() -> None:
    """A page in UTF-16 without a declared type is HTML, not text with tags in it."""
    page = "\ufeff<html><body><p>" + "The river rises in the hills and runs to the sea. " * 10 + "</p></body></html>"
    found = corpus.extract(page.encode("utf-16-le"))
    assert "<p>" not in found.text
    assert found.charset == "utf-16le"
