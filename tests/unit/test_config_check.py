"""`check` hides nothing behind something else, and refuses what a type allows and nobody can mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.config.check import load_checked, problems
from corpus.config.load import ConfigError, load_config
from corpus.config.sense import LEAST
from corpus.errors import UsageError
from corpus.filter.policy import load_policy

BASE = '[corpus]\nname = "x"\n[crawl]\nseeds = ["https://e.org/"]\ncontact = "https://e.org/bot"\n'


def write(folder: Path, text: str) -> str:
    (folder / "corpus.toml").write_text(text, "utf-8")
    return str(folder / "corpus.toml")


def keys(folder: Path, text: str, *overrides: str, deep: bool = False) -> list[str]:
    """Keys of every problem that a fetching verb would name."""
    try:
        load_checked(write(folder, text), overrides, fetching=True, deep=deep)
    except ConfigError as error:
        return sorted(problem.key for problem in error.problems)
    return []


@pytest.mark.parametrize(
    ("text", "overrides", "expected"),
    [
        ('[crawl]\ndelay = "2 parsecs"\n', (), ["corpus", "crawl.contact", "crawl.delay", "crawl.seeds"]),
        ('[corpus]\n[crawl]\nallow_private = ["x"]\n', (), ["corpus.name", "crawl.allow_private", "crawl.contact", "crawl.seeds"]),
        ('[corpus]\nname = "a b"\n[dedup]\nbands = 20\n', (), ["corpus.name", "crawl.contact", "crawl.seeds", "dedup.bands"]),
        ('[corpus]\nname = "x"\n[crawl]\nseeds = [1]\n', (), ["crawl.contact", "crawl.seeds.0"]),
        ('[corpus]\nname = "x"\n[crawl]\nscope.domains = [1]\nscope.any = true\n', (), ["crawl.contact", "crawl.scope.any", "crawl.scope.domains.0", "crawl.seeds"]),
        (BASE, ("nonsense", "corpus.name.x=1", "corpus.languages=['klingonese']", "dedup.ngram=4"), ["corpus.languages", "corpus.name.x", "dedup.ngram", "nonsense"]),
    ],
)  # fmt: skip
def test_no_problem_hides_another(tmp_path: Path, text: str, overrides: tuple[str, ...], expected: list[str]) -> None:
    """A missing name, a wrong type, a wrong item of a list, a wrong flag: whatever else is wrong is in the same list."""
    assert keys(tmp_path, text, *overrides) == expected


def test_every_source_of_signals_is_named(tmp_path: Path) -> None:
    """All lists, tables, models, benchmarks and functions that are missing or empty, and the policy's mistakes with them."""
    (tmp_path / "empty.txt").write_text("", "utf-8")
    (tmp_path / "own.toml").write_text('[rules.a]\nsignal = "wrods"\nmin = 1\n', "utf-8")
    sources = (
        '[filter]\nurl_lists = ["no-1", "no-2", "empty.txt"]\nunigrams = "no.csv"\nquality_model = "empty.txt"\n'
        'decontaminate = ["no.jsonl", "empty.txt"]\npolicy = "own.toml"\n'
    )
    found = keys(tmp_path, BASE + sources, deep=True)
    assert found.count("filter.url_lists") == 3
    assert found.count("filter.decontaminate") == 2
    assert {"filter.unigrams", "filter.quality_model", "filter.policy"} <= set(found)
    assert keys(tmp_path, BASE + '[filter]\nrules = ["no:one", "nor:this"]\n').count("filter.rules") == 2


POLICY = """inherit = ["balancd", "permissive"]
cut = ["emial", "c4-line", "nosuch"]
ruels = 1
[rules.a]
signal = "wrods"
min = nan
[rules.b]
signal = "words"
[rules.c]
signal = "words"
minimum = 5
[rules.d]
signal = "words"
min = 1
[rules.d.language.frensh]
min = 1
[rules.d.language.german]
min = 5
max = 4
[rules.Large]
signal = "words"
min = 1
"""


def test_a_policy_names_all_its_mistakes(tmp_path: Path) -> None:
    """Parents, keys, spans, signals, limits, languages and names of rules: each once, with its line; and a run names them all too."""
    (tmp_path / "own.toml").write_text(POLICY, "utf-8")
    config = load_config(write(tmp_path, BASE + '[filter]\npolicy = "own.toml"\n'), environment={})
    said = [problem.message for problem in problems(config, fetching=False)]
    assert all(problem.key == "filter.policy" for problem in problems(config, fetching=False))
    expected = ("no policy 'balancd'", "'emial'", "'nosuch'", "'ruels'", "'wrods'", "not a number", "without limits", "'minimum'",
                "'frensh'", "keeps nothing", "'Large'")  # fmt: skip
    for words in expected:
        assert sum(words in message for message in said) == 1, (words, said)
    assert len(said) == len(expected)
    assert f"{tmp_path / 'own.toml'}:5: unknown signal 'wrods'" in said
    with pytest.raises(UsageError, match=f"{len(expected)} mistakes") as caught:
        load_policy(str(tmp_path / "own.toml"))
    assert all(words in str(caught.value) for words in expected)


@pytest.mark.parametrize("text", ["", "# nothing\n", 'name = "mine"\nabout = "x"\n', "cut = []\n[rules]\n"])
def test_a_policy_that_decides_nothing_is_named(tmp_path: Path, text: str) -> None:
    """A file without a rule and without a cut would keep everything, silently."""
    (tmp_path / "own.toml").write_text(text, "utf-8")
    assert keys(tmp_path, BASE + '[filter]\npolicy = "own.toml"\n') == ["filter.policy"]
    (tmp_path / "own.toml").write_text('cut = ["email"]\n', "utf-8")
    assert keys(tmp_path, BASE + '[filter]\npolicy = "own.toml"\n') == []


@pytest.mark.parametrize(
    ("line", "key"),
    [
        *((f'{one.key} = "1ms"' if one.key.endswith("timeout") else f'{one.key} = "1B"', one.key) for one in LEAST),
        ('recrawl.every = "1s"', "recrawl.every"),
        ('recrawl.min_interval = "1s"', "recrawl.min_interval"),
        ('crawl.scope.domains = ["com"]', "crawl.scope.domains"),
        ('crawl.scope.domains = ["*.co.uk"]', "crawl.scope.domains"),
        ('crawl.seeds = ["http://127.0.0.1/"]', "crawl.seeds"),
        ('crawl.seeds = ["http://localhost:8000/"]', "crawl.seeds"),
        ('crawl.seeds = ["http://192.168.1.7/"]', "crawl.seeds"),
        ('crawl.seeds = ["http://[::1]/"]', "crawl.seeds"),
        ('crawl.seeds = ["http://169.254.169.254/"]', "crawl.seeds"),
    ],
)
def test_what_nobody_can_mean_is_refused(tmp_path: Path, line: str, key: str) -> None:
    """Limits that leave no room, revisits every second, a scope without an end, seeds that no request would reach."""
    name, _, value = line.partition(" = ")
    assert keys(tmp_path, BASE, f"{name}={value}") == [key]


@pytest.mark.parametrize(
    "overrides",
    [
        ('recrawl.every="1s"', 'crawl.allow_private=["127.0.0.0/8"]'),
        ('crawl.scope.domains=["cz"]', "crawl.max_pages=1000"),
        ('crawl.seeds=["http://127.0.0.1/"]', 'crawl.allow_private=["127.0.0.0/8"]'),
        ('crawl.seeds=["http://localhost/"]', 'crawl.allow_private=["127.0.0.0/8"]'),
        ('crawl.seeds=["http://8.8.8.8/"]',),
    ],
)
def test_what_can_be_meant_is_accepted(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    """Our own network, a country with a budget, a public address."""
    assert keys(tmp_path, BASE, *overrides) == []
