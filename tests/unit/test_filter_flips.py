"""Flip tables say what a full run would, document by document."""

from __future__ import annotations

import random

import duckdb
import pytest

from corpus.errors import UsageError
from corpus.filter.flips import edited, flips
from corpus.filter.measure import measure
from corpus.filter.policy import load_policy


def _prose(words: int) -> str:
    rng = random.Random(words)
    made = ["".join(rng.choices("abcdefghiklmnoprstuw", k=rng.randint(4, 7))) for _ in range(words)]
    return " ".join(f"{word} the" if at % 9 == 0 else f"{word} of" if at % 7 == 0 else word for at, word in enumerate(made)) + "."


def _signals(con: duckdb.DuckDBPyConnection) -> None:
    texts = [_prose(n) for n in (5, 15, 25, 35, 45, 55, 300)] + ["# # # #", "word " * 90]
    table = measure(texts, ["en"] * len(texts))
    con.register("measured", table)
    con.execute(
        "CREATE VIEW signals AS SELECT lpad((row_number() OVER ())::VARCHAR, 32, '0') AS id, 'en' AS language, 0.9 AS language_score, * FROM measured"
    )


def test_an_edited_limit_flips_what_a_full_run_decides_differently() -> None:
    """Counts and rows equal two full decisions compared; every row has its value and the limit it now breaks or keeps."""
    with duckdb.connect() as con:
        _signals(con)
        before = load_policy("gopher")
        after = edited(edited(before, "gopher_words.min=20"), "gopher_top_2gram.max=0.9")
        found = flips(con, "signals", before, after)
        full = [
            {row[0]: row[1] for row in con.execute(f"SELECT id, drop_rule FROM ({p.sql('signals')})").fetchall()}
            for p in (before, after)
        ]
        assert found.kept_before == sum(rule is None for rule in full[0].values())
        assert found.kept_after == sum(rule is None for rule in full[1].values())
        changed = {key for key in full[0] if (full[0][key] is None) != (full[1][key] is None)}
        assert {row["id"] for row in found.rows.to_pylist()} == changed
        assert changed
        assert sum(found.newly_kept.values()) + sum(found.newly_dropped.values()) == len(changed)
        back = flips(con, "signals", after, before)
        assert back.newly_dropped == found.newly_kept
        assert all(row["measured"] is not None and row["limit"] is not None for row in back.rows.to_pylist())
        assert flips(con, "signals", before, before).rows.num_rows == 0


def test_an_edit_is_checked() -> None:
    """Unknown rules and limits, numbers that are none and ranges that keep nothing are usage errors."""
    policy = load_policy("gopher")
    assert len(edited(policy, "gopher_words=off").rules) == len(policy.rules) - 1
    for edit in (
        "gopher_wordz.min=1",
        "gopher_words.least=1",
        "gopher_words.min=x",
        "gopher_words.min=nan",
        "gopher_words.min=200000",
        "gopher_words",
    ):
        with pytest.raises(UsageError):
            edited(policy, edit)
