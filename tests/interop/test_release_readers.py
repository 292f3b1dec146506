"""Other people's tools on a release and an archive of ours, unchanged: what they read is what we wrote.

Each reader gets the demo's release folder as it lies there, hive folders and side files included.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.demo_corpus import DemoCorpus

pytestmark = pytest.mark.needs("interop")
Rows = dict[str, str]
"""id → text: what every reader must agree on."""


@pytest.fixture(scope="module")
def release(demo_corpus: DemoCorpus) -> Path:
    return demo_corpus.folder / "releases" / "v1"


@pytest.fixture(scope="module")
def shards(release: Path) -> list[Path]:
    return sorted(release.glob("data/*/*.parquet"))


@pytest.fixture(scope="module")
def rows(shards: list[Path]) -> Rows:
    """By pyarrow, file by file, without hive columns."""
    found: Rows = {}
    for shard in shards:
        for row in pq.ParquetFile(shard).read(columns=["id", "text"]).to_pylist():
            found[row["id"]] = row["text"]
    assert len(found) > 40
    return found


def test_duckdb(release: Path, rows: Rows) -> None:
    """A glob with hive partitioning: the folder's crawl_id and the column's are the same."""
    import duckdb

    query = f"SELECT id, text, crawl_id, consent.use, signals.words FROM read_parquet('{release}/data/*/*.parquet', hive_partitioning = true)"
    found = duckdb.sql(query).fetchall()
    assert {row[0]: row[1] for row in found} == rows
    assert len({row[2] for row in found}) == 1
    assert {row[3] for row in found} <= {"yes", "unknown"}


def test_polars(release: Path, rows: Rows) -> None:
    """Lazily, with a filter that statistics and the Bloom filter may use."""
    import polars

    frame = polars.scan_parquet(f"{release}/data/**/*.parquet").select("id", "text", "fetched_at", "signals").collect()
    assert dict(zip(frame["id"], frame["text"], strict=True)) == rows
    some = next(iter(rows))
    assert polars.scan_parquet(f"{release}/data/**/*.parquet").filter(polars.col("id") == some).collect().height == 1


def test_pandas(release: Path, rows: Rows) -> None:
    """The data folder as one dataset; `partitioning=None`, because the column `crawl_id` stands in the files as well."""
    import pandas

    frame = pandas.read_parquet(release / "data", partitioning=None)
    assert dict(zip(frame["id"], frame["text"], strict=True)) == rows
    assert str(frame["fetched_at"].dtype).startswith("datetime64")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A hub cache of its own, and no network."""
    for name in ("HF_HOME", "HF_DATASETS_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    return str(tmp_path / "datasets")


def _loaded(dataset: Any) -> Rows:
    return {row["id"]: row["text"] for row in dataset}


@pytest.mark.parametrize("streaming", [False, True])
def test_datasets_by_the_cards_configuration(release: Path, rows: Rows, cache: str, streaming: bool) -> None:
    """`load_dataset(folder)`: the card's front matter says which files are which split."""
    import datasets

    loaded = datasets.load_dataset(str(release), split="train", streaming=streaming, cache_dir=cache)
    assert _loaded(loaded) == rows


@pytest.mark.parametrize("streaming", [False, True])
def test_datasets_by_files(shards: list[Path], rows: Rows, cache: str, streaming: bool) -> None:
    """`load_dataset("parquet", data_files=…)`, streaming and not."""
    import datasets

    files = [str(shard) for shard in shards]
    assert (
        _loaded(datasets.load_dataset("parquet", data_files=files, split="train", streaming=streaming, cache_dir=cache)) == rows
    )


def test_datatrove(release: Path, rows: Rows) -> None:
    """datatrove's ParquetReader: text and id in their places, everything else as metadata."""
    from datatrove.pipeline.readers import ParquetReader

    documents = list(ParquetReader(str(release / "data"), recursive=True, doc_progress=False, file_progress=False)())
    assert {document.id: document.text for document in documents} == rows
    assert {"url", "dump", "language", "minhash_cluster_size"} <= set(documents[0].metadata)


def test_mlcroissant(release: Path) -> None:
    """croissant.json validates without an error."""
    said = subprocess.run(
        [sys.executable, "-m", "mlcroissant.scripts.validate", "--jsonld", str(release / "croissant.json")],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if said.returncode and "No module named" in said.stderr:
        import mlcroissant

        dataset = mlcroissant.Dataset(jsonld=json.loads((release / "croissant.json").read_text("utf-8")))
        assert not dataset.metadata.ctx.issues.errors
        return
    assert said.returncode == 0, said.stderr[-2000:]


def test_mlcroissant_reads_the_responsible_ai_fields(release: Path) -> None:
    """No error and no warning but the one about a citation nobody wrote; each field arrives under its own name, numbers included."""
    import mlcroissant

    dataset = mlcroissant.Dataset(jsonld=json.loads((release / "croissant.json").read_text("utf-8")))
    told = dataset.metadata
    assert not told.ctx.issues.errors
    assert all("citeAs" in str(warning) for warning in told.ctx.issues.warnings)
    manifest = json.loads((release / "manifest.json").read_text("utf-8"))
    assert f"{manifest['consent']['unknown']} of {manifest['rows']} rows" in " ".join(told.data_limitations)
    assert all(f"{code}: " in told.data_collection_missing_data for code, n in manifest["turned_away"].items() if n)
    assert len(told.data_collection_timeframe) == 2
    assert "robots.txt" in told.data_collection
    assert told.data_collection_type == ["Web Scraping"]
    assert manifest["identity"]["policy"] in told.data_preprocessing_protocol[0]
    assert told.personal_sensitive_information
    assert told.data_release_maintenance_plan


def test_croissant_digests(release: Path) -> None:
    """The digests that croissant.json gives are those of the files."""
    facts = json.loads((release / "croissant.json").read_text("utf-8"))
    files = [item for item in facts["distribution"] if item.get("sha256")]
    for item in files:
        path = release / item["contentUrl"]
        if path.is_file():
            assert hashlib.sha256(path.read_bytes()).hexdigest() == item["sha256"]


def segments(demo: DemoCorpus) -> Iterator[Path]:
    yield from sorted((demo.folder / "warc").rglob("*.warc.gz"))


def test_warc_checkers(demo_corpus: DemoCorpus) -> None:
    """`warcio check` and `fastwarc check` pass on every segment of a crawl, pages and policy files."""
    paths = list(segments(demo_corpus))
    assert len(paths) >= 2
    for path in paths:
        for command in (["warcio", "check"], ["fastwarc", "check"]):
            said = subprocess.run(
                [str(Path(sys.executable).with_name(command[0])), *command[1:], str(path)],
                check=False,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert said.returncode == 0, (command, path.name, said.stdout[-500:], said.stderr[-500:])


def test_pywb_indexes_every_page(demo_corpus: DemoCorpus) -> None:
    """pywb's indexer finds each stored page at the offset that the frontier acknowledged."""
    indexer = pytest.importorskip("pywb.indexer.cdxindexer", reason="needs pywb: pip install -r requirements-interop.txt")
    import io

    from corpus.store.warc_read import read_captures

    for path in demo_corpus.folder.glob("warc/crawl_id=*/*.warc.gz"):
        with path.open("rb") as file:
            out = io.BytesIO()
            indexer.write_cdx_index(out, file, path.name, include_all=True)
        lines = out.getvalue().decode("utf-8").splitlines()
        offsets = {int(line.split()[-2]) for line in lines if not line.startswith(" CDX")}
        pages = {capture.ref.offset for capture in read_captures(path, path.name) if not capture.near_original}
        assert pages <= offsets


def test_datatrove_reads_the_archive(demo_corpus: DemoCorpus) -> None:
    """datatrove's WarcReader gets a document for every page that we stored whole."""
    for module in ("cchardet", "magic"):
        pytest.importorskip(
            module, reason="needs datatrove's WARC extras: pip install -r requirements-interop.txt, apt-get install libmagic1"
        )
    from datatrove.pipeline.readers import WarcReader

    from corpus.store.warc_read import read_captures

    for folder in demo_corpus.folder.glob("warc/crawl_id=*"):
        reader = WarcReader(str(folder), glob_pattern="*.warc.gz", doc_progress=False, file_progress=False)
        theirs = {document.metadata["url"] for document in reader()}
        ours = {c.found for path in folder.glob("*.warc.gz") for c in read_captures(path, path.name) if not c.near_original}
        assert theirs == ours
