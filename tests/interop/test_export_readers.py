"""Other people's readers on a release: DuckDB and Arrow always, Croissant and datasets where they are installed."""

from __future__ import annotations

import duckdb
import pyarrow.dataset as ds
import pytest

from tests import release_kit as rk
from tests.make_families import Page


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A release of two crawls, one of which lacks every optional value."""
    pages = [
        Page(f"https://h{i}.example.com/", rk.text(i), extra={"crawl_id": f"2026-{10 + i % 2}", "author": "A" if i % 2 else None})
        for i in range(20)
    ]
    return rk.Kit(tmp_path_factory.mktemp("interop")).release(pages)


def test_duckdb_reads_all_shards_with_and_without_folder_keys(release):
    """`crawl_id` in the folder and in the file agree; types are those of the schema."""
    files = f"{release.folder}/data/*/*.parquet"
    for hive in ("true", "false"):
        query = f"SELECT crawl_id, count(*), count(author) FROM read_parquet('{files}', hive_partitioning = {hive}) GROUP BY 1 ORDER BY 1"
        assert duckdb.sql(query).fetchall() == [("2026-10", 10, 0), ("2026-11", 10, 10)]
    [(words,)] = duckdb.sql(f"SELECT sum(signals.words)::BIGINT FROM read_parquet('{files}')").fetchall()
    assert words == 20 * 120


def test_arrow_datasets_read_all_shards(release):
    """One schema for all files, so a dataset scan needs no unification."""
    dataset = ds.dataset(release.folder / "data", format="parquet")
    assert dataset.count_rows() == 20
    assert dataset.to_table(columns=["author"])["author"].null_count == 10


def test_croissant_is_valid_and_reads_the_rows(release, monkeypatch):
    """mlcroissant finds no error and streams a record."""
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    monkeypatch.chdir(release.folder)
    dataset = mlcroissant.Dataset("croissant.json")
    assert not dataset.metadata.ctx.issues.errors
    assert next(iter(dataset.records("documents")))["documents/crawl_id"] in {b"2026-10", b"2026-11"}


def test_datasets_streams_a_configuration_of_the_card(release):
    """`load_dataset` takes configurations and splits from the card's front matter."""
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    rows = datasets.load_dataset(str(release.folder), "2026-11", split="train", streaming=True)
    assert {row["crawl_id"] for row in rows} == {"2026-11"}
