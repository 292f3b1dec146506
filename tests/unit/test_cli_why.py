"""`why` and `corpus.open`: for everything the demo shows on purpose, the verdict, the reason and the raw line behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import corpus
from corpus.app.why import why
from corpus.errors import StoreError, UsageError
from corpus.reasons import REASONS
from corpus.testing.demo.shows import SHOWS, Show
from tests.demo_corpus import DemoCorpus, corpus_cli

VERDICTS = {"exported", "dropped", "duplicate", "refused", "failed", "excluded", "gone", "taken-down", "pending", "unknown"}
STEPS = {"scope", "robots", "consent", "fetch", "extract", "language", "quality", "dedup", "export", "takedown"}


@pytest.mark.parametrize("show", SHOWS, ids=[show.name for show in SHOWS])
def test_every_show_has_its_verdict(demo_corpus: DemoCorpus, show: Show) -> None:
    """One of the honest verdicts and reasons of the show, at the step the reason belongs to, and a sentence with the URL."""
    told = why(demo_corpus.project(), show.url(demo_corpus.origins))
    assert told["verdict"] in show.verdicts
    assert told["verdict"] in VERDICTS
    assert told["step"] in STEPS
    if told["verdict"] not in ("exported", "unknown"):
        assert told["reason"] in show.reasons
        assert told["step"] == REASONS[told["reason"]].step
    assert told["canonical_url"] in told["sentence"]
    if show.rival:
        other = why(demo_corpus.project(), Show("", show.rival, ()).url(demo_corpus.origins))
        assert sorted([told["verdict"], other["verdict"]]) == ["duplicate", "exported"]


@pytest.mark.parametrize("show", [show for show in SHOWS if show.verdicts == ("refused",)], ids=lambda show: show.name)
def test_a_refusal_carries_its_raw_line(demo_corpus: DemoCorpus, show: Show) -> None:
    """The evidence of a refusal is the line itself, as it stood where it stood, and the sentence quotes it."""
    told = why(demo_corpus.project(), show.url(demo_corpus.origins))
    no = [item for item in told["consent"]["evidence"] if item["verdict"] == "no"]
    assert no
    assert all(item["raw"] and item["read_at"] and item["read_at"].endswith("Z") for item in no)
    assert any(item["raw"].strip() in told["sentence"] for item in no)
    assert told["consent"]["export"] is False
    if told["reason"] == "robots":
        assert no[0]["raw"].strip() == "Disallow: /private/"
        assert no[0]["line_no"] == 3
        assert no[0]["source"].endswith("/robots.txt")


def _one(demo: DemoCorpus, name: str) -> dict[str, Any]:
    (show,) = [show for show in SHOWS if show.name == name]
    return why(demo.project(), show.url(demo.origins))


def test_the_whole_chain_of_a_kept_page(demo_corpus: DemoCorpus) -> None:
    """Discovery to release: seed, fetch with its place in WARC, document, cluster, release."""
    told = _one(demo_corpus, "only in the sitemap")
    assert told["verdict"] == "exported"
    assert told["releases"] == ["v1"]
    assert told["discovery"]["seed"]
    assert told["fetches"][0]["status"] == 200
    assert told["fetches"][0]["warc"]["file"].startswith("warc/crawl_id=")
    assert told["document"]["language"] == "de"
    assert told["rules"] == []


def test_a_dropped_page_names_rule_measure_and_limit(demo_corpus: DemoCorpus) -> None:
    """A quality drop says which rule, what was measured and what is kept."""
    told = _one(demo_corpus, "quality: the same line again and again")
    (rule,) = told["rules"]
    assert set(rule) == {"rule", "measured", "limit", "keep"}
    assert rule["measured"] is not None
    assert rule["rule"] in told["sentence"]


def test_a_duplicate_names_what_is_kept(demo_corpus: DemoCorpus) -> None:
    """A near duplicate tells the cluster and the page that stands for it."""
    pair = [_one(demo_corpus, "near duplicate"), why(demo_corpus.project(), f"{demo_corpus.origins['wheels']}/knots.html")]
    dropped, kept = sorted(pair, key=lambda told: told["verdict"])
    assert dropped["cluster"]["keep_id"] == kept["id"]
    assert dropped["cluster"]["keep_url"] == kept["canonical_url"]
    assert dropped["cluster"]["similarity"] >= 0.75
    assert kept["canonical_url"] in dropped["sentence"]


def test_a_redirect_names_its_target(demo_corpus: DemoCorpus) -> None:
    """The row of a redirect says where it leads."""
    told = _one(demo_corpus, "redirect")
    assert told["fetches"][0]["redirects"] == [f"{demo_corpus.origins['bakery']}/sourdough.html"]


def test_by_id_and_by_url_id(demo_corpus: DemoCorpus) -> None:
    """An id, a url_id and a URL in another spelling give the same answer."""
    by_url = _one(demo_corpus, "kept")
    url_id = corpus.open(demo_corpus.folder).sql(f"select url_id from documents where id = '{by_url['id']}'")["url_id"][0].as_py()
    for name in (by_url["id"], url_id, by_url["canonical_url"] + "?utm_source=x#top"):
        assert why(demo_corpus.project(), name)["id"] == by_url["id"]


def test_for_a_person(demo_corpus: DemoCorpus) -> None:
    """The terminal form begins with the verdict and shows the line with its place."""
    said = corpus_cli("why", f"{demo_corpus.origins['bakery']}/private/orders.html", "-c", demo_corpus.config)
    assert said.out.startswith("REFUSED")
    assert "robots.txt line 3 \u201cDisallow: /private/\u201d" in said.out


def test_open_a_folder_or_its_configuration(demo_corpus: DemoCorpus) -> None:
    """`corpus.open` takes either, and answers as the command line does."""
    for path in (demo_corpus.folder, demo_corpus.config, str(demo_corpus.folder)):
        opened = corpus.open(path)
        assert opened.sql("select count(*) as n from records")["n"][0].as_py() > 40
    assert opened.why(demo_corpus.origins["bakery"] + "/sourdough.html") == _one(demo_corpus, "kept")
    assert json.dumps(opened.sample(3)) == json.dumps(opened.sample(3))
    assert {row["reason"] for row in opened.sample(50, dropped=True)} >= {"quality"}


def test_documents_come_in_batches(demo_corpus: DemoCorpus) -> None:
    """All rows, never more of them at a time than asked for; a condition narrows them."""
    opened = corpus.open(demo_corpus.folder)
    batches = list(opened.documents(batch_rows=10))
    assert sum(batch.num_rows for batch in batches) == opened.sql("select count(*) as n from documents")["n"][0].as_py()
    kept = list(opened.documents("reason = ''"))
    assert sum(batch.num_rows for batch in kept) == opened.sql("select count(*) as n from records")["n"][0].as_py()
    with pytest.raises(UsageError):
        next(opened.documents("no such thing"))


def test_the_raw_page_of_a_row(demo_corpus: DemoCorpus) -> None:
    """`page(id)` is the response as it was sent: the digest of its body is the row's; near copies and strangers say why not."""
    from corpus.model import content_sha256

    opened = corpus.open(demo_corpus.folder)
    rows = opened.sql("select id, url, content_sha256 from records limit 5").to_pylist()
    for row in rows:
        page = opened.page(row["id"])
        assert (page.url, page.status, content_sha256(page.body)) == (row["url"], 200, row["content_sha256"])
        assert page.header("content-type")
    copies = opened.sql("select id from documents where outcome = 'near-copy'")["id"].to_pylist()
    for stranger in (*copies, "0" * 32, "x", ""):
        with pytest.raises(UsageError):
            opened.page(stranger)


def test_what_is_no_corpus_is_not_opened(tmp_path: Any) -> None:
    """A folder without a configuration, or with one and nothing crawled yet, is an error with a hint."""
    with pytest.raises(UsageError):
        corpus.open(tmp_path)
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    with pytest.raises(StoreError):
        corpus.open(tmp_path)
