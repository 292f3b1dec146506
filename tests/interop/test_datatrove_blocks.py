"""Our datatrove blocks in a real pipeline: what is read, and what comes back as shards."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from corpus.contrib.datatrove import jsonl_reader, reader, schema_of, writer
from tests.demo_corpus import DemoCorpus, corpus_cli

pytestmark = pytest.mark.needs("interop")


@pytest.fixture(scope="module")
def release(demo_corpus: DemoCorpus) -> Path:
    return demo_corpus.folder / "releases" / "v1"


def _rows(folder: Path) -> pa.Table:
    files = [str(path) for path in sorted(folder.rglob("*.parquet"))]
    return ds.dataset(files, format="parquet").to_table().sort_by("id")


def test_a_pipeline_gives_back_every_column(release: Path, tmp_path: Path) -> None:
    """Read by two tasks, filtered, written: the rows that stay have every column as it was, in the release's own schema."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.filters import LambdaFilter

    steps = [reader(release), LambdaFilter(_english), writer(tmp_path / "out", like=release)]
    LocalPipelineExecutor(steps, tasks=2, workers=1, logging_dir=str(tmp_path / "logs")).run()
    before, after = _rows(release / "data"), _rows(tmp_path / "out")
    assert after.schema.equals(before.schema)
    assert after.equals(before.filter(pc.equal(before["language"], "en")))
    assert len(after) > 0


def _english(document: object) -> bool:
    return document.metadata["language"] == "en"  # type: ignore[attr-defined]


def test_a_document_has_its_places(release: Path) -> None:
    """Text and id are datatrove's own fields; consent and signals are dictionaries in the metadata."""
    rows = {row["id"]: row for row in _rows(release / "data").to_pylist()}
    documents = list(reader(release)())
    assert {d.id: d.text for d in documents} == {name: row["text"] for name, row in rows.items()}
    assert documents[0].metadata == {k: v for k, v in rows[documents[0].id].items() if k not in ("id", "text")}


def test_json_lines_are_the_same_documents(demo_corpus: DemoCorpus, release: Path, tmp_path: Path) -> None:
    """`corpus sql --format jsonl.zst` read by datatrove: the same ids, texts and URLs."""
    pytest.importorskip("orjson", reason="datatrove reads JSON lines with orjson: pip install orjson")
    target = tmp_path / "v1.jsonl.zst"
    assert corpus_cli("sql", "-c", demo_corpus.config, "--format", "jsonl.zst", "-o", target, "SELECT * FROM records").code == 0
    documents = list(jsonl_reader(target)())
    assert {(d.id, d.text, d.metadata["url"]) for d in documents} == {
        (d.id, d.text, d.metadata["url"]) for d in reader(release)()
    }


def test_an_empty_pipeline_keeps_the_types(release: Path, tmp_path: Path) -> None:
    """A document of somebody else's, without our columns, is written with nulls of the right types."""
    from datatrove.data import Document

    block = writer(tmp_path)
    with block:
        block.write(Document(text="x", id="1", metadata={"unknown": 1}))
    table = pq.read_table(next(tmp_path.rglob("*.parquet")))
    assert table.schema.equals(schema_of(None), check_metadata=False)
    assert table["text"].to_pylist() == ["x"]
    assert table["fetched_at"].null_count == 1
