"""Policies: shipped ones load, decisions carry their evidence, and every mistake in a file is named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from corpus.errors import UsageError
from corpus.filter.measure import measure
from corpus.filter.policy import Policy, load_policy
from corpus.filter.policy_file import shipped


def _decide(policy: Policy, texts: list[str], codes: list[str]) -> list[dict[str, Any]]:
    table = measure(texts, codes)
    table = table.append_column("id", pa.array([str(i) for i in range(len(texts))])).append_column("language", pa.array(codes))
    with duckdb.connect() as con:
        con.register("signals", table)
        answer = con.execute(policy.sql("signals"))
        names = [column[0] for column in answer.description]
        rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    return rows


def _file(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, "utf-8")
    return path


def test_shipped_policies_load_and_decide() -> None:
    """Every shipped policy compiles and decides in DuckDB; their digests differ."""
    assert {"fineweb", "fineweb2", "gopher", "c4", "dclm", "permissive", "balanced"} <= set(shipped())
    policies = [load_policy(name) for name in shipped()]
    for policy in policies:
        (row,) = _decide(policy, ["one two three"], ["en"])
        assert row["drop_rule"] is not None
        assert row["measured"] < row["limit"]
    assert len({policy.digest for policy in policies}) == len(policies)


def test_a_drop_names_rule_value_limit_and_kept_range(tmp_path: Path) -> None:
    """The first failing rule is reported with what was measured, the limit it broke and the range that is kept."""
    policy = load_policy(
        str(_file(tmp_path, '[rules.a]\nsignal = "words"\nmin = 2\nmax = 4\n[rules.b]\nsignal = "chars"\nbelow = 9\n'))
    )
    rows = _decide(policy, ["one", "one two", "a b c d e", "one two three"], ["en"] * 4)
    assert [(r["drop_rule"], r["measured"], r["limit"], r["fail_bits"]) for r in rows] == [
        ("a", 1.0, 2.0, 1),
        (None, None, None, 0),
        ("a", 5.0, 4.0, 3),
        ("b", 13.0, 9.0, 2),
    ]
    assert rows[0]["keep"] == "words min 2, max 4"
    assert rows[3]["keep"] == "chars below 9"


def test_languages_override_and_null_passes(tmp_path: Path) -> None:
    """A language's own range replaces the default; a rule on an inapplicable signal passes; `only` limits a rule."""
    text = '[rules.length]\nsignal = "mean_word_length"\nmin = 4\n[rules.length.language.german]\nmin = 1\n[rules.x]\nsignal = "words"\nmin = 9\nonly = ["fr"]\n'
    policy = load_policy(str(_file(tmp_path, text)))
    rows = _decide(policy, ["a bc", "a bc", "我是中国人", "mot mot"], ["en", "de", "zh", "fr"])
    assert [row["drop_rule"] for row in rows] == ["length", None, None, "length"]
    assert rows[3]["fail_bits"] == 3


def test_inheritance_changes_and_removes_rules(tmp_path: Path) -> None:
    """A child overrides limits, drops rules with `off`, and adds kinds to cut; order stays the parent's."""
    policy = load_policy(
        str(
            _file(
                tmp_path,
                'inherit = "fineweb"\ncut = ["card"]\n[rules.gopher_words]\nmin = 5\n[rules.gopher_bullets]\noff = true\n',
            )
        )
    )
    parent = load_policy("fineweb")
    assert [r.name for r in policy.rules] == [r.name for r in parent.rules if r.name != "gopher_bullets"]
    assert policy.rules[0].range.low == 5
    assert policy.cut == (*parent.cut, "card")


def test_a_digest_is_about_decisions_only(tmp_path: Path) -> None:
    """Comments and descriptions leave the digest alone; a limit, a kind or the order changes it."""
    rule = '[rules.a]\nsignal = "words"\nmin = {}\n'
    first = load_policy(str(_file(tmp_path, rule.format(2)))).digest
    assert load_policy(str(_file(tmp_path, 'about = "x"\n# note\n' + rule.format("2.0")))).digest == first
    assert load_policy(str(_file(tmp_path, rule.format(3)))).digest != first
    assert load_policy(str(_file(tmp_path, 'cut = ["email"]\n' + rule.format(2)))).digest != first


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ('[rules.a]\nsignal = "wrods"\nmin = 1\n', 2, "words"),
        ('[rules.a]\nsignal = "words"\nmin = 1\n\n[rules.a.language.frensh]\nmin = 2\n', 5, "french"),
        ('[rules.a]\nsignal = "words"\nmin = nan\n', 3, "not a number"),
        ('[rules.a]\nsignal = "words"\nmin = "5"\n', 3, "not a number"),
        ('[rules.a]\nsignal = "words"\nmin = 5\nabove = 4\n', 1, "two limits"),
        ('[rules.a]\nsignal = "words"\nmin = 5\nmax = 4\n', 3, "keeps nothing"),
        ('[rules.a]\nsignal = "words"\n', 1, "without limits"),
        ("[rules.a]\nmin = 5\n", 1, "names no signal"),
        ('# x\ncut = ["emial"]\n', 2, "email"),
        ('[rules.a]\nsignal = "words"\nminimum = 5\n', 3, "min"),
        ("ruels = 1\n", 1, "rules"),
        ('[rules.a]\nsignal = "words"\nmin = 1\nonly = ["xx9"]\n', 4, "unknown language"),
    ],
)
def test_mistakes_are_usage_errors_with_file_and_line(tmp_path: Path, text: str, line: int, hint: str) -> None:
    """What could silently keep or drop everything stops at the start, and says where and what was probably meant."""
    path = _file(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_policy(str(path))
    assert caught.value.where == f"{path}:{line}"
    assert hint in str(caught.value)
    assert caught.value.exit_code == 2


def test_unknown_names_and_circles_are_refused(tmp_path: Path) -> None:
    """An unknown policy gets a suggestion; a file that inherits from itself ends."""
    with pytest.raises(UsageError, match="balanced"):
        load_policy("balansed")
    with pytest.raises(UsageError, match="circle"):
        load_policy(str(_file(tmp_path, 'inherit = "own.toml"\n')))
    with pytest.raises(UsageError, match="TOML"):
        load_policy(str(_file(tmp_path, "rules = [\n")))
