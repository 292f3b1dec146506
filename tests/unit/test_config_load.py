"""The configuration: every mistake at once, with its place; nothing is silently ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.config.check import load_checked, problems, require
from corpus.config.lines import key_lines
from corpus.config.load import ConfigError, json_schema, load_config
from corpus.config.load import show as render

GOOD = """
[corpus]
name = "tiny"

[crawl]
seeds = ["https://example.org/"]
contact = "https://example.org/bot"
max_pages = 5
delay = "2s"

[crawl.scope]
domains = ["example.org"]

[[crawl.trusted]]
host = "a.example.org"
delay = "500ms"
why = "we own it"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "corpus.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_good_file_loads_whole(tmp_path: Path) -> None:
    """Values arrive with their units, nested tables and defaults."""
    config = load_config(write(tmp_path, GOOD), environment={})
    assert config.crawl.delay == 2.0
    assert config.crawl.trusted[0].delay == 0.5
    assert config.crawl.slots == 256
    assert config.root == tmp_path.resolve()
    assert problems(config, fetching=True) == []


def test_all_mistakes_come_at_once_with_their_lines(tmp_path: Path) -> None:
    """A typo, a bad unit, a bad choice and a zero are four problems, each with line, key and a hint."""
    text = '[corpus]\nname = "x"\n[crawl]\nseed = ["https://e.org/"]\ndelay = "2 parsecs"\nseen = "maybe"\nmax_pages = 0\n'
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, text), environment={})
    found = {p.key: p for p in caught.value.problems}
    assert set(found) == {"crawl.seed", "crawl.delay", "crawl.seen", "crawl.max_pages"}
    assert "did you mean 'seeds'" in found["crawl.seed"].hint
    assert [found[k].line for k in ("crawl.seed", "crawl.delay", "crawl.seen", "crawl.max_pages")] == [4, 5, 6, 7]
    assert caught.value.exit_code == 2


def test_wrong_values_do_not_hide_contradictions(tmp_path: Path) -> None:
    """A bad unit, a typo, a missing contact, a bad network and an unknown language come in one list."""
    text = '[corpus]\nname = "x"\nlanguages = ["klingonese"]\n[crawl]\nseeds = ["https://e.org/"]\ndelay = "2 parsecs"\nseen_ = 1\nallow_private = ["127.0.0.0/33"]\n'
    with pytest.raises(ConfigError) as caught:
        load_checked(str(write(tmp_path, text)), (), fetching=True)
    assert {p.key for p in caught.value.problems} == {
        "crawl.delay", "crawl.seen_", "crawl.contact", "crawl.allow_private", "corpus.languages",
    }  # fmt: skip


def test_a_fetching_verb_needs_contact_and_seeds(tmp_path: Path) -> None:
    """No contact and no seeds are two problems for a crawl and none for a query."""
    config = load_config(write(tmp_path, '[corpus]\nname = "x"\n'), environment={})
    assert {p.key for p in problems(config, fetching=True)} == {"crawl.contact", "crawl.seeds"}
    assert problems(config, fetching=False) == []


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('seeds = ["missing.txt"]', "crawl.seeds"),
        ('seeds = ["ftp://example.org/"]', "crawl.seeds"),
        ('contact = "call me"', "crawl.contact"),
        ('delay = "100ms"', "crawl.delay"),
        ('user_agent = "Mozilla/5.0"', "crawl.user_agent"),
        ('allow_private = ["127.0.0.0/33"]', "crawl.allow_private"),
        ('resolver = ["localhost"]', "crawl.resolver"),
        ('ca_file = "none.pem"', "crawl.ca_file"),
        ("scope.any = true", "crawl.scope.any"),
    ],
)
def test_what_types_cannot_see_is_found(tmp_path: Path, line: str, key: str) -> None:
    """Contradictions and impolite settings are refused by name before anything is fetched."""
    base = {"seeds": '["https://example.org/"]', "contact": '"bot@example.org"'}
    base.pop(line.split(" =", maxsplit=1)[0], None)
    text = '[corpus]\nname = "x"\n[crawl]\n' + "\n".join(f"{k} = {v}" for k, v in base.items()) + f"\n{line}\n"
    config = load_config(write(tmp_path, text), environment={})
    assert key in {p.key for p in problems(config, fetching=True)}
    with pytest.raises(ConfigError):
        require(config, fetching=True)


def test_unknown_policy_and_language_are_start_up_errors(tmp_path: Path) -> None:
    """A policy or a language nobody knows stops the run; it never gives zero rows."""
    text = '[corpus]\nname = "x"\nlanguages = ["klingonese"]\n[filter]\npolicy = "balancd"\n'
    config = load_config(write(tmp_path, text), environment={})
    assert {p.key for p in problems(config, fetching=False)} == {"corpus.languages", "filter.policy"}


def test_precedence_is_file_then_environment_then_set(tmp_path: Path) -> None:
    """`--set` beats the environment, which beats the file; the origin of each is told."""
    path = write(tmp_path, GOOD)
    config = load_config(
        path, overrides=["crawl.max_pages=7"], environment={"CORPUS__CRAWL__DELAY": "3s", "CORPUS__CRAWL__MAX_PAGES": "6"}
    )
    assert (config.crawl.max_pages, config.crawl.delay) == (7, 3.0)
    assert config.origins["crawl.max_pages"] == "--set"
    assert config.origins["crawl.delay"] == "CORPUS__CRAWL__DELAY"
    assert config.origins["corpus.name"] == f"{path}:3"
    assert "CORPUS__CRAWL__DELAY" in render(config, origin=True)


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    """A syntax error is one problem with its line."""
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, '[corpus]\nname = "x\n'), environment={})
    assert caught.value.problems[0].line == 2


def test_key_lines_survive_strings_and_arrays() -> None:
    """Brackets and hashes inside strings and arrays over several lines do not shift the lines."""
    text = 'a = "[x # y"\nb = [\n  "c = 1",\n  "[d]",\n]\n[t]\ne = 1\n[[u]]\nf = 1\n[[u]]\nf = 2\n'
    lines = key_lines(text)
    assert (lines["a"], lines["b"], lines["t.e"], lines["u.0.f"], lines["u.1.f"]) == (1, 2, 7, 9, 11)
    assert "c" not in lines


def test_worker_counts_do_not_change_the_digest(tmp_path: Path) -> None:
    """The digest of a configuration follows what is collected, never how many processes did it."""
    path = write(tmp_path, GOOD)
    same = load_config(path, overrides=["crawl.processes=4", "engine.workers=2", "store.local=elsewhere"], environment={})
    other = load_config(path, overrides=["crawl.max_depth=3"], environment={})
    base = load_config(path, environment={})
    assert base.digest() == same.digest() != other.digest()


def test_the_schema_documents_every_key() -> None:
    """The published schema names every branch and forbids unknown keys."""
    schema = json_schema()
    assert set(schema["properties"]) >= {"corpus", "crawl", "optout", "store"}
    assert schema["additionalProperties"] is False


def test_an_engine_that_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address is a Ray cluster's, and one that Ray can connect to from a node; without the package there is no such engine."""
    path = write(tmp_path, GOOD)

    def wrong(*settings: str) -> list[str]:
        config = load_config(path, overrides=[f"engine.{setting}" for setting in settings], environment={})
        return [f"{p.key}: {p.message} {p.hint}" for p in problems(config, fetching=False)]

    monkeypatch.setattr("corpus.config.check.find_spec", lambda name: object())
    assert wrong("kind=ray", "address=10.0.0.7:6379") == wrong("kind=ray", "address=auto") == wrong("kind=ray") == []
    assert "only Ray has an address" in wrong("address=auto")[0]
    assert "not the address of a Ray cluster" in wrong("kind=ray", "address=ray://10.0.0.7:10001")[0]
    monkeypatch.setattr("corpus.config.check.find_spec", lambda name: None)
    assert "corpus[ray]" in wrong("kind=ray")[0]


def test_a_root_on_s3_is_checked_without_asking_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket's name, the endpoint, and whether boto3 is here; S3 keys that would mean nothing are problems too."""
    path = write(tmp_path, GOOD)

    def keys(*settings: str) -> list[str]:
        return [p.key for p in problems(load_config(path, overrides=settings, environment={}), fetching=False)]

    good = (
        'store.root="s3://my-bucket/crawls/a"',
        'store.s3_endpoint="https://s3.example.org"',
        'store.s3_region="eu-central-1"',
    )
    assert keys(*good) == []
    assert keys('store.root="s3://My_Bucket/x"', 'store.s3_endpoint="s3.example.org"') == ["store.root", "store.s3_endpoint"]
    assert keys('store.s3_region="eu-central-1"') == ["store.s3_region"]
    config = load_config(path, overrides=good, environment={})
    assert config.in_bucket
    assert config.root == config.local / "working" / "my-bucket" / "crawls" / "a"
    assert config.local == (tmp_path / ".local").resolve()
    monkeypatch.setattr("corpus.store.s3_place.has_boto3", lambda: False)
    assert keys(*good) == ["store.root"]


def test_recrawl_intervals_that_contradict_each_other_are_a_problem(tmp_path: Path) -> None:
    """A shortest interval that is longer than the longest cannot be kept; the modes themselves are all accepted."""
    path = write(tmp_path, GOOD)
    wrong = load_config(path, overrides=['recrawl.min_interval="5d"', 'recrawl.max_interval="1d"'], environment={})
    assert [p.key for p in problems(wrong, fetching=False)] == ["recrawl.min_interval"]
    for mode in ("uniform", "by-change", "proportional", "optimal"):
        assert not problems(load_config(path, overrides=[f'recrawl.mode="{mode}"', "recrawl.share=0.9"], environment={}), fetching=False)  # fmt: skip


def test_a_bad_seed_is_named_where_it_stands(tmp_path: Path) -> None:
    """In a file of seeds: the file and the line, comments and empty lines counted; a byte order mark is no part of an URL."""
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\ufeffhttps://example.org/\n# ours\n\nftp://example.org/\n", "utf-8")
    text = '[corpus]\nname = "x"\n[crawl]\ncontact = "bot@example.org"\nseeds = ["seeds.txt", "gopher://e.org/"]\n'
    found = problems(load_config(write(tmp_path, text), environment={}), fetching=True)
    assert [(p.file, p.line) for p in found] == [(str(seeds), 4), (str(tmp_path / "corpus.toml"), 5)]


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    """Some editors write one; lines count the same."""
    config = load_config(write(tmp_path, "\ufeff" + GOOD.lstrip()), environment={})
    assert config.corpus.name == "tiny"
    assert config.origins["corpus.name"].endswith(":2")


def test_keeping_the_best_needs_a_model(tmp_path: Path) -> None:
    """Without a quality model nothing has a score, so `best` would silently be `longest`."""
    text = '[corpus]\nname = "x"\n[dedup]\nkeep = "best"\n'
    assert [p.key for p in problems(load_config(write(tmp_path, text), environment={}), fetching=False)] == ["dedup.keep"]
