"""Signals from the operator's own sources: URL lists, word tables, benchmark files, functions. Right answers, loud mistakes."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.errors import CorpusError, UsageError
from corpus.filter.decontaminate import load_benchmarks
from corpus.filter.map import MapSettings
from corpus.filter.policy import load_policy
from corpus.filter.sources import Sources, list_hits, open_sources
from corpus.filter.tokens import chunk
from corpus.filter.unigrams import load_unigrams
from corpus.filter.url_lists import load_url_lists
from corpus.filter.user_signals import load_user_signals


def _ut1(folder: Path, name: str, domains: str = "", urls: str = "") -> str:
    (folder / name).mkdir(parents=True)
    if domains:
        (folder / name / "domains").write_text(domains, "utf-8")
    if urls:
        (folder / name / "urls").write_text(urls, "utf-8")
    return str(folder / name)


def test_a_listed_domain_covers_every_host_below_it(tmp_path: Path) -> None:
    """Between host and registered domain too, where other tools look no more; never a name that only ends alike."""
    lists = load_url_lists(
        [_ut1(tmp_path, "games", "b.example.com\nPlay.Example.NET\n10.1.2.3\n*.wild.example\nmünchen.example\n")]
    )
    for url, hit in {
        "https://b.example.com/": True,
        "https://x.a.b.example.com/p?q": True,
        "https://example.com/b": False,
        "https://notb.example.com/": False,
        "https://play.example.net:8443/": True,
        "http://10.1.2.3/x": True,
        "http://2.3/": False,
        "https://deep.wild.example/": True,
        "https://xn--mnchen-3ya.example/": True,
        "not a url": False,
    }.items():
        assert lists.hits([url]) == [("games",) if hit else ()], url


def test_a_listed_address_covers_its_folder_and_no_more(tmp_path: Path) -> None:
    """`urls` entries hold for themselves and what lies below, with and without `www.`; the rest of the host is not on the list."""
    adult = _ut1(
        tmp_path, "adult", "bad.example", "host.example/~user/pics\nwww.other.example/page.html\nhttp://q.example/find?id=7\n"
    )
    plain = tmp_path / "mine.txt"
    plain.write_text("# my own\nhost.example/~user  # all of him\n", "utf-8")
    lists = load_url_lists([adult, str(plain)])
    assert lists.hits(
        [
            "https://www.host.example/~user/pics/1.html",
            "https://host.example/~user/",
            "https://host.example/~user2/",
            "https://other.example/page.html?x=1",
            "https://q.example/find?id=7",
            "https://q.example/find?id=8",
        ]
    ) == [("adult", "mine"), ("mine",), (), ("adult",), ("adult",), ()]


def test_the_unigram_score_is_a_mean_logarithm(tmp_path: Path) -> None:
    """Known words by their share, unknown ones as one in a billion, NULL without words, and the batch changes nothing."""
    table = tmp_path / "freq.csv"
    table.write_text("word,count\nthe,60\nCat,30\nsat,10\n", "utf-8")
    unigrams = load_unigrams(str(table))
    texts = ["The cat sat.", "zzz", "", "the " * 999]
    column = unigrams.scores(chunk(texts))
    assert column.values[0] == pytest.approx((math.log(0.6) + math.log(0.3) + math.log(0.1)) / 3, abs=1e-6)
    assert column.values[1] == pytest.approx(math.log(1e-9), abs=1e-6)
    assert column.null is not None
    assert column.null.tolist() == [False, False, True, False]
    for number, text in enumerate(texts):
        assert unigrams.scores(chunk([text])).values[0] == column.values[number]


_QUESTION = "A train leaves the northern station at nine and travels for three hours at sixty miles an hour before it stops."


def test_a_benchmark_answer_is_found_however_it_is_wrapped(tmp_path: Path) -> None:
    """Eight words a line, one word a line, other punctuation and case: still the task's; prose of the same words is not."""
    (tmp_path / "gsm.jsonl").write_text(f'{{"id": 1, "question": "{_QUESTION}", "answer": ["180 miles"]}}\n', "utf-8")
    benchmarks = load_benchmarks([str(tmp_path / "gsm.jsonl")])
    words = _QUESTION.split()
    wrapped = "Intro line.\n" + "\n".join(" ".join(words[i : i + 8]) for i in range(0, len(words), 8)) + "\nThe end."
    shuffled = words[:]
    random.Random(1).shuffle(shuffled)
    counts, tasks = benchmarks.find(chunk([wrapped, "\n\n".join(words).upper(), " — ".join(words), " ".join(shuffled), ""]))
    assert (counts > 0).tolist() == [True, True, True, False, False]
    assert counts[0] == len(words) - 11
    assert tasks == ["gsm", "gsm", "gsm", None, None]


def test_short_benchmark_texts_count_whole_and_templates_not_at_all(tmp_path: Path) -> None:
    """Eight to eleven words are looked for as a whole, with their choices too; fewer are phrases; a shared preamble proves nothing."""
    short, phrase = "Which planet of the solar system has most moons?", "What is this?"
    preamble = "Read the following passage carefully and then choose the one best answer from the list"
    (tmp_path / "quiz.txt").write_text(f"{short}\n\n{phrase}\n\n" + "\n\n".join(f"{preamble} {i}" for i in range(12)), "utf-8")
    (tmp_path / "choice.jsonl").write_text(
        '{"q": "Who wrote this book?", "choices": ["Anna Smith of York", "Bob Jones", "Carl Maria Brown"]}\n', "utf-8"
    )
    benchmarks = load_benchmarks([str(tmp_path / "quiz.txt"), str(tmp_path / "choice.jsonl")])
    assert benchmarks.left_out == 5  # the phrase, the question, three choices; together they are thirteen words
    pages = [
        f"We asked: {short.lower()} Nobody knew.",
        f"{phrase} {preamble} here.",
        "who wrote this book anna smith of york bob jones carl maria brown",
    ]
    counts, tasks = benchmarks.find(chunk(pages))
    assert counts.tolist() == [1, 0, 2]
    assert tasks == ["quiz", None, "choice"]


_RULES = """
from corpus.filter.user_signals import signals

@signals(exclaims="int64", shout="double", first="string")
def shouting(texts, languages):
    return {"exclaims": [t.count("!") for t in texts], "shout": [0.5 if l == "en" else None for l in languages], "first": [t[:1] for t in texts]}

@signals(words="int64")
def taken(texts, languages): return {}

@signals(Bad="int64")
def badly_named(texts, languages): return {}

@signals(ratio="double")
def broken(texts, languages): return {"ratio": [float("nan")] * len(texts)}

def undeclared(texts, languages): return {}
"""


def test_a_function_of_the_operators_gives_columns(tmp_path: Path) -> None:
    """Found beside the configuration, declared with types, measured with the rest; a change of its source changes the key."""
    (tmp_path / "mine.py").write_text(_RULES, "utf-8")
    sources = Sources(rules=("mine:shouting",), base=str(tmp_path))
    assert sources.own == {"exclaims": "int64", "first": "string", "shout": "double"}
    columns = open_sources(sources).columns(["https://a.example/"] * 2, chunk(["Hey! You!", "Na!"]), ["en", "de"])
    assert [columns[name].to_pylist() for name in ("exclaims", "shout", "first")] == [[2, 1], [0.5, None], ["H", "N"]]
    before = MapSettings(sources=sources).inputs()
    (tmp_path / "mine.py").write_text(_RULES + "# other\n", "utf-8")
    load_user_signals.cache_clear()
    assert MapSettings(sources=sources).inputs() != before


@pytest.mark.parametrize("name", ["taken", "badly_named", "undeclared", "absent"])
def test_a_function_that_cannot_be_meant_stops_at_the_start(tmp_path: Path, name: str) -> None:
    """A name that is taken or malformed, no declaration, no function: a usage error that says which."""
    (tmp_path / "mine.py").write_text(_RULES, "utf-8")
    with pytest.raises(UsageError, match=f"mine:{name}"):
        load_user_signals((f"mine:{name}",), str(tmp_path))
    with pytest.raises(UsageError, match="entry point"):
        load_user_signals((name,), str(tmp_path))
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_user_signals(("no_such_module:x",), str(tmp_path))


def test_a_function_that_breaks_its_word_stops_the_stage(tmp_path: Path) -> None:
    """NaN, a wrong type or a wrong length is an error with the function's name, not a column of rubbish."""
    (tmp_path / "mine.py").write_text(_RULES, "utf-8")
    (user,) = load_user_signals(("mine:broken",), str(tmp_path))
    with pytest.raises(CorpusError, match="mine:broken"):
        user.measure(["x"], ["en"])


def test_every_source_is_part_of_the_stage_key(tmp_path: Path) -> None:
    """Each source's content changes the key; where it lies does not; nothing configured adds nothing."""
    (tmp_path / "t.csv").write_text("a,1\n", "utf-8")
    (tmp_path / "b.txt").write_text(_QUESTION, "utf-8")
    listed = _ut1(tmp_path, "games", "a.example\n")
    every = [
        Sources(url_lists=(listed,)),
        Sources(unigrams=str(tmp_path / "t.csv")),
        Sources(decontaminate=(str(tmp_path / "b.txt"),)),
        Sources(quality_model=str(tmp_path / "t.csv")),
    ]
    digests = {MapSettings(sources=sources).inputs()["sources"] for sources in every}
    assert len(digests) == 4
    assert "sources" not in MapSettings().inputs()
    moved = _ut1(tmp_path / "elsewhere", "games", "a.example\n")
    assert Sources(url_lists=(moved,)).inputs() == every[0].inputs()
    (tmp_path / "games" / "domains").write_text("b.example\n", "utf-8")
    assert Sources(url_lists=(moved,)).inputs() != every[0].inputs()


def test_a_rule_without_its_source_is_refused_with_the_key_to_set(tmp_path: Path) -> None:
    """A policy may name every sourced number; without the source it would keep everything, so it stops and says what to set."""
    policy = tmp_path / "own.toml"
    for signal, key in {
        "url_list_adult": "filter.url_lists",
        "unigram_logprob": "filter.unigrams",
        "quality_score": "filter.quality_model",
        "contaminated_ngrams": "filter.decontaminate",
    }.items():
        policy.write_text(f'[rules.x]\nsignal = "{signal}"\nmax = 0\n', "utf-8")
        assert load_policy(str(policy), keys={key}).signals == (signal,)
        with pytest.raises(UsageError, match=key):
            load_policy(str(policy), keys=())
    policy.write_text('[rules.x]\nsignal = "contaminated_task"\nmax = 0\n', "utf-8")
    with pytest.raises(UsageError, match="is text"):
        load_policy(str(policy))
    policy.write_text('[rules.x]\nsignal = "exclaims"\nmax = 0\n', "utf-8")
    assert load_policy(str(policy), keys=(), own={"exclaims": "int64"}).signals == ("exclaims",)
    with pytest.raises(UsageError, match="unknown signal"):
        load_policy(str(policy))


@pytest.mark.parametrize(
    ("source", "content"),
    [
        ("url_lists", ""),
        ("url_lists", "# only words\n"),
        ("unigrams", "word,count\nno number here\n"),
        ("decontaminate", "too short\n"),
        ("quality_model", "no model\n"),
    ],
)
def test_a_source_that_cannot_be_meant_is_a_usage_error(tmp_path: Path, source: str, content: str) -> None:
    """Empty lists, tables without counts, benchmark files without a text, files that are no model: refused, with the key."""
    file = tmp_path / "source.txt"
    file.write_text(content, "utf-8")
    value: object = str(file) if source in ("unigrams", "quality_model") else (str(file),)
    with pytest.raises(UsageError):
        open_sources(replace(Sources(), **{source: value}))  # type: ignore[arg-type]
    missing: object = str(tmp_path / "no") if source in ("unigrams", "quality_model") else (str(tmp_path / "no"),)
    with pytest.raises(UsageError, match=f"filter.{source}"):
        replace(Sources(), **{source: missing}).look()  # type: ignore[arg-type]


def test_hits_are_counted_by_list_zeros_included(tmp_path: Path) -> None:
    """A list nobody is on is seen as such."""
    sources = Sources(url_lists=(_ut1(tmp_path, "adult", "a.example\n"), _ut1(tmp_path, "empty", "zzz.example\n")))
    columns = open_sources(sources).columns(["https://a.example/1", "https://b.example/"], chunk(["x", "y"]), ["en", "en"])
    import pyarrow as pa

    assert columns["url_list_adult"].to_pylist() == [1, 0]
    assert list_hits(sources, pa.table(columns)) == {"adult": 1, "empty": 0}
