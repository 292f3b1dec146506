"""The catalog of ids: it makes a look-up open one shard, changes no answer, and loses nothing when it is lost."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.app import records_view
from corpus.app.catalog import catalogue, contradicts, rebuild, shards_with, stale_releases
from corpus.app.corpus import Corpus
from corpus.app.project import Project
from corpus.app.records_view import ids_asked
from corpus.app.release import manifest_text, release_records
from corpus.app.views import Views
from corpus.store.catalog import Catalog
from tests.bench.bench_lookup import ids_of, made_up

ROWS, SHARD_ROWS = 3_000, 1_000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A release of three shards, catalogued."""
    made = made_up(tmp_path_factory.mktemp("catalog"), ROWS, SHARD_ROWS)
    assert catalogue(made, "v1") == ROWS
    return made


def _opened(project: Project, query: str) -> tuple[list[dict[str, object]], int]:
    """The rows of a query, and how many shards the view `records` stood for."""
    with Views(project) as views:
        rows = views.query(query).to_pylist()
        (text,) = views.connection.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'released'").fetchone() or ("",)
        return rows, text.count(".parquet")


def test_a_look_up_opens_one_shard_of_many(project: Project) -> None:
    """By one id or a few; the next query of the same connection sees the whole release again."""
    one, two, three = ids_of(project, 3)
    rows, shards = _opened(project, f"SELECT id, url FROM records WHERE id = '{two}'")
    assert ([row["id"] for row in rows], shards) == ([two], 1)
    rows, shards = _opened(
        project, f"select r.id from Records r where language IS NOT NULL AND r.id in ('{one}', '{three}') order by 1"
    )
    assert ([row["id"] for row in rows], shards) == (sorted([one, three]), 2)
    assert _opened(project, f"SELECT id FROM records WHERE id = '{'0' * 32}'")[0] == []
    with Views(project) as views:
        assert views.query(f"SELECT count(*) AS n FROM records WHERE id = '{one}'").to_pylist() == [{"n": 1}]
        assert views.query("SELECT count(*) AS n FROM records").to_pylist() == [{"n": ROWS}]
        assert views.query(f"SELECT count(*) AS n FROM records WHERE id = '{three}'").to_pylist() == [{"n": 1}]


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("SELECT * FROM records WHERE id = 'a'", ["a"]),
        ("SELECT * FROM records WHERE 'a' = id AND url > 'x'", ["a"]),
        ("SELECT * FROM records WHERE id IN ('a', 'b') LIMIT 1", ["a", "b"]),
        ("SELECT * FROM records WHERE id = 'a' OR url = 'b'", None),
        ("SELECT * FROM records WHERE NOT id = 'a'", None),
        ("SELECT * FROM records WHERE id <> 'a'", None),
        ("SELECT * FROM records WHERE id NOT IN ('a')", None),
        ("SELECT * FROM records WHERE url_id = 'a'", None),
        ("SELECT * FROM records WHERE id = url", None),
        ("SELECT * FROM records WHERE lower(id) = 'a'", None),
        ("SELECT * FROM records WHERE id IN (SELECT id FROM records)", None),
        ("SELECT (SELECT count(*) FROM records) FROM records WHERE id = 'a'", None),
        ("SELECT * FROM documents WHERE id = 'a'", None),
        ("SELECT * FROM records, documents WHERE records.id = 'a'", None),
        ("SELECT * FROM documents d JOIN records r USING (id) WHERE id = 'a'", None),
        ("WITH records AS (SELECT 1 AS id) SELECT * FROM records WHERE id = 'a'", None),
        ("SELECT * FROM records WHERE id = 'a' UNION ALL SELECT * FROM documents", None),
        ("nonsense records", None),
    ],
)
def test_only_a_plain_look_up_is_narrowed(project: Project, query: str, asked: list[str] | None) -> None:
    """What might need another row of the release is answered from all of it."""
    with Views(project) as views:
        assert ids_asked(views.connection, query) == asked


def test_a_stale_or_lost_or_damaged_catalog_is_not_believed(project: Project) -> None:
    """Answers stay the same without it, with one of another state, and with bytes that are none; it is made again."""
    one = ids_of(project, 1)[0]
    query = f"SELECT url FROM records WHERE id = '{one}'"
    expected = Corpus(project).sql(query).to_pylist()
    assert len(expected) == 1
    before = project.layout.catalog.read_bytes()
    manifest = json.loads(manifest_text(project, "v1"))
    for damage in (b"", b"no database", before[: len(before) // 2]):
        project.layout.catalog.write_bytes(damage)
        assert Corpus(project).sql(query).to_pylist() == expected
    project.layout.catalog.write_bytes(before)
    with mock.patch.object(Catalog, "sets", return_value={"v1": ("another digest", 1), "gone": ("", 0)}):
        assert stale_releases(project, release_records(project)) == ["gone", "v1"]
    project.layout.catalog.unlink()
    assert shards_with(project, "v1", manifest, [one]) is None
    assert stale_releases(project, release_records(project)) == []
    assert rebuild(project) == {"v1": ROWS}
    assert [shard["path"] for shard in shards_with(project, "v1", manifest, [one]) or []] == [manifest["shards"][0]["path"]]
    assert stale_releases(project, release_records(project)) == []
    assert contradicts(project, "v1") == ""


def test_a_catalog_that_lies_is_caught(project: Project) -> None:
    """An id that is missing, or said to stand elsewhere, is named."""
    with sqlite3.connect(project.layout.catalog) as con:
        (number,) = con.execute("SELECT no FROM sets").fetchone()
        con.execute(f"UPDATE ids_{number} SET file = 2 WHERE id = (SELECT min(id) FROM ids_{number} WHERE file = 0)")
    assert "other places" in contradicts(project, "v1")
    assert rebuild(project) == {"v1": ROWS}
    assert contradicts(project, "v1") == ""


def test_thirty_thousand_rows_are_grouped_in_a_thirtieth_of_a_million(tmp_path: Path) -> None:
    """The goal is a second for a million rows (`tests/bench` has the whole): here a fifth of a CPU-second, opening included."""
    made = made_up(tmp_path, 30_000, 30_000)
    with Views(made) as views:
        started = time.process_time()
        assert len(views.query("SELECT domain, count(*), sum(token_count) FROM records GROUP BY 1")) > 10
        assert time.process_time() - started < 0.2


def test_a_query_that_is_no_look_up_never_asks_the_catalog(project: Project) -> None:
    """The detour costs only those who gain by it."""
    with mock.patch.object(records_view, "shards_with", side_effect=AssertionError):
        assert _opened(project, "SELECT count(*) AS n FROM records")[0] == [{"n": ROWS}]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.binary(min_size=16, max_size=16), max_size=8, unique=True), max_size=4))
def test_a_set_gives_back_what_was_put(tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]]) -> None:
    """Law: of each id the file it came with (the same id in two files counts once, with either); no other id is known."""
    catalog = Catalog(tmp_path_factory.mktemp("c") / "catalog.sqlite")
    seen: dict[bytes, str] = {}
    for at, ids in enumerate(files):
        seen |= {one: str(at) for one in ids if one not in seen}
    once = [[one for one in ids if seen[one] == str(at)] for at, ids in enumerate(files)]
    rows = catalog.put("s", "d", [(str(at), np.frombuffer(b"".join(ids), dtype="V16")) for at, ids in enumerate(once)])
    assert rows == len(seen)
    assert {one: path for path, one in catalog.content("s")} == seen
    for one, path in seen.items():
        assert catalog.files_of("s", "d", [one.hex()]) == [path]
    assert catalog.files_of("s", "d", ["00" * 15 + "01"]) in ([], [seen.get(bytes(15) + b"\1", "")])
    assert catalog.files_of("s", "other digest", []) is None
    assert catalog.files_of("t", "d", []) is None
    catalog.keep([])
    assert catalog.sets() == {}
