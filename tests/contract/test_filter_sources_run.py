"""Sources of signals through the whole pipeline: measured, decided, exported, explained, and warned about when idle."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from corpus.config.load import load_config
from corpus.filter.quality import train
from tests.demo_corpus import DemoCorpus, Said, corpus_cli, project_of


def _again(folder: Path, *more: str) -> Said:
    said = corpus_cli("process", "-c", folder / "corpus.toml", *more)
    return said if said.code else corpus_cli("export", "-c", folder / "corpus.toml", "--set", "export.name=v2", *more)


def _sql(folder: Path, query: str, *more: str) -> list[list[object]]:
    said = corpus_cli("sql", "-c", folder / "corpus.toml", query, "--json", *more)
    assert said.code == 0, said.err
    return said.json["rows"]  # type: ignore[no-any-return]


@pytest.fixture
def folder(demo_corpus: DemoCorpus, tmp_path: Path) -> Path:
    return demo_corpus.copy(tmp_path / "corpus")


def _quality(folder: Path) -> str:
    rng = random.Random(3)
    for name, words in (("good", "the river summer village bridge mill"), ("pool", "menu login cookie click basket footer")):
        (folder / f"{name}.txt").write_text("\n".join(" ".join(rng.choices(words.split(), k=30)) for _ in range(40)), "utf-8")
    return train([folder / "good.txt"], [folder / "pool.txt"], folder / "quality.bin", quantile=0.5).digest


def test_sources_reach_the_release_and_its_policy(folder: Path) -> None:
    """List hits, quality score, contamination and a function of the operator's decide, and stand in the release's columns."""
    host = str(_sql(folder, "SELECT host FROM records GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1")[0][0])
    text = str(_sql(folder, f"SELECT text FROM records WHERE host <> '{host}' AND len(text) > 600 ORDER BY id LIMIT 1")[0][0])
    (folder / "adult").mkdir()
    (folder / "adult" / "domains").write_text(host + "\n", "utf-8")
    (folder / "nobody.txt").write_text("nobody.example\n", "utf-8")
    (folder / "task.txt").write_text("\n".join(text.split()[20:60]), "utf-8")  # one word a line
    (folder / "freq.csv").write_text("the,70\nof,30\n", "utf-8")
    (folder / "mine.py").write_text(
        "from corpus.filter.user_signals import signals\n@signals(vowels='int64')\ndef vowels(texts, languages):\n"
        "    return {'vowels': [sum(c in 'aeiou' for c in t) for t in texts]}\n",
        "utf-8",
    )
    (folder / "own.toml").write_text(
        'inherit = "balanced"\n[rules.adult]\nsignal = "url_list_adult"\nmax = 0\n[rules.leaked]\nsignal = "contaminated_ngrams"\nmax = 0\n'
        '[rules.some_vowels]\nsignal = "vowels"\nmin = 1\n',
        "utf-8",
    )
    digest = _quality(folder)
    config = folder / "corpus.toml"
    config.write_text(
        config.read_text("utf-8")
        + '\n[filter]\npolicy = "own.toml"\nurl_lists = ["adult", "nobody.txt"]\nunigrams = "freq.csv"\nquality_model = "quality.bin"\n'
        'decontaminate = ["task.txt"]\nrules = ["mine:vowels"]\n[dedup]\nkeep = "best"\n',
        "utf-8",
    )
    said = _again(folder)
    assert said.code == 0, said.err
    warned = [
        line
        for path in (folder / "runs").glob("*/log.jsonl")
        for line in map(json.loads, path.read_text("utf-8").splitlines())
        if line["event"] == "warning"
    ]
    assert [line["list"] for line in warned if "URL list" in line["what"]] == ["nobody.txt".removesuffix(".txt")]
    dropped = dict(_sql(folder, "SELECT drop_rule, count(*) FROM documents WHERE drop_rule IN ('adult', 'leaked') GROUP BY 1"))
    assert dropped["adult"] >= 1
    assert dropped["leaked"] >= 1
    assert _sql(folder, f"SELECT count(*) FROM records WHERE host = '{host}'") == [[0]]
    assert _sql(
        folder,
        "SELECT count(*) FROM records WHERE quality_score IS NULL OR signals.vowels IS NULL OR signals.unigram_logprob IS NULL",
    ) == [[0]]
    record = next(iter(project_of(folder).commits.list("map")))
    assert record.inputs["quality_model"] == digest
    kept = "SELECT count(*) FROM clusters a JOIN documents k ON k.id = a.id JOIN clusters b USING (cluster_id) JOIN documents d ON d.id = b.id"
    assert _sql(
        folder,
        f"{kept} WHERE a.keep AND d.reason IN ('near-duplicate', 'exact-duplicate') AND d.signals.quality_score > k.signals.quality_score",
    ) == [[0]]


def test_a_rule_whose_source_is_not_configured_stops_every_verb(folder: Path) -> None:
    """`process`, `export` and `check` exit 2 and name the key to set; nothing is written."""
    (folder / "own.toml").write_text('[rules.good]\nsignal = "quality_score"\nmin = 0.5\n', "utf-8")
    for verb in ("process", "export", "check"):
        said = corpus_cli(verb, "-c", folder / "corpus.toml", "--set", "filter.policy=own.toml")
        assert said.code == 2
        assert "filter.quality_model" in said.out + said.err
    for key in ("url_lists", "decontaminate"):
        said = corpus_cli("process", "-c", folder / "corpus.toml", "--set", f'filter.{key}=["no-such-file"]')
        assert (said.code, f"filter.{key}" in said.err) == (2, True)


def test_flips_are_what_a_full_run_counts(folder: Path) -> None:
    """`sample --flips` says before what the export with the other limit then does: the same drops by the policy."""
    policy = folder / "own.toml"
    policy.write_text('inherit = "balanced"\n[rules.enough_words]\nsignal = "words"\nmin = 150\n', "utf-8")
    said = corpus_cli(
        "sample", "-c", folder / "corpus.toml", "--flips", "own.toml", "--flips", "enough_words.max=5000", "-n", "1000", "--json"
    )
    assert said.code == 0, said.err
    table = said.json
    assert table["newly_dropped"]["enough_words"] == len([row for row in table["rows"] if row["becomes"] == "dropped"]) > 0
    policy.write_text('inherit = "balanced"\n[rules.enough_words]\nsignal = "words"\nmin = 150\nmax = 5000\n', "utf-8")
    assert _again(folder, "--set", "filter.policy=own.toml").code == 0
    full = dict(_sql(folder, "SELECT stage, n_out FROM funnel", "--set", "filter.policy=own.toml"))
    assert full["quality"] == table["kept_after"]
    assert full["language"] == table["documents"]
    gone = {
        row[0] for row in _sql(folder, "SELECT url FROM documents WHERE reason = 'quality'", "--set", "filter.policy=own.toml")
    }
    assert {row["url"] for row in table["rows"] if row["becomes"] == "dropped"} <= gone
    assert corpus_cli("sample", "-c", folder / "corpus.toml", "--flips", "enough_wordz.min=1").code == 2


def test_a_policy_that_drops_nothing_warns(folder: Path) -> None:
    """A rule that no document breaks is announced in the run's log; the release is made."""
    (folder / "own.toml").write_text('[rules.any]\nsignal = "words"\nmin = 1\n', "utf-8")
    said = _again(folder, "--set", "filter.policy=own.toml")
    assert said.code == 0
    assert "the policy dropped nothing" in said.err
    assert load_config(folder / "corpus.toml").filter.policy == "balanced"
