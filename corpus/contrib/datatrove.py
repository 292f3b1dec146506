"""Blocks for datatrove pipelines: a reader and a writer of release shards, as stock datatrove blocks told our columns.

    from corpus.contrib.datatrove import reader, writer
    LocalPipelineExecutor([reader("releases/v1"), MyFilter(), writer("out", like="releases/v1")], tasks=4).run()

datatrove is imported when a block is made. The writer has the release's own schema, so an empty first value never decides
a column's type. What a pipeline changes in a text is not measured again: token counts and digests are those it was read with.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.errors import StoreError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

SHARDS = "**/*.parquet"


def reader(release: str | Path, *, limit: int = -1, skip: int = 0, batch_size: int = 1000, split: str = "") -> Any:
    """A datatrove reader of a release: a folder, or `hf://datasets/owner/name`. `split`: only `train` or `validation`.

    A document's text and id are in their places; every other column is metadata, structs as dictionaries, times as
    `datetime`. Tasks share the shards. Raises UsageError without datatrove.
    """
    _need("pipeline")
    from datatrove.pipeline.readers import ParquetReader

    folder = f"{str(release).rstrip('/')}/data"
    pattern = f"**/{split}-*.parquet" if split else SHARDS
    return ParquetReader(folder, glob_pattern=pattern, limit=limit, skip=skip, batch_size=batch_size, adapter=to_document)


def writer(folder: str | Path, *, like: str | Path | None = None, batch_size: int = 1000) -> Any:
    """A datatrove writer of shards with the columns of a release, one file a task (`train-<rank>.parquet`).

    `like`: a release folder whose schema to take (its signals may be of an older version); else the current one. Metadata
    that is no column of a release is left out, and columns without metadata are null.
    """
    _need("pipeline")
    from datatrove.pipeline.writers import ParquetWriter

    return ParquetWriter(
        str(folder), output_filename="train-${rank}.parquet", compression="zstd", adapter=from_document, batch_size=batch_size,
        schema=schema_of(like),
    )  # fmt: skip


def jsonl_reader(file_or_folder: str | Path, *, limit: int = -1) -> Any:
    """A datatrove reader of what `corpus sql --format jsonl.zst` wrote: documents with the same places as `reader`'s."""
    _need("pipeline")
    from datatrove.pipeline.readers import JsonlReader

    path = Path(file_or_folder)
    folder, pattern = (path.parent, path.name) if path.is_file() else (path, "**/*.jsonl.zst")
    return JsonlReader(str(folder), glob_pattern=pattern, compression="zstd", limit=limit, adapter=to_document)


def to_document(_: Any, data: dict[str, Any], path: str, id_in_file: int | str) -> dict[str, Any]:
    """datatrove's adapter for reading: a row as text, id and metadata."""
    metadata = {name: value for name, value in data.items() if name not in ("text", "id")}
    return {"text": data.get("text") or "", "id": data.get("id") or f"{path}/{id_in_file}", "media": [], "metadata": metadata}


def from_document(_: Any, document: Any) -> dict[str, Any]:
    """datatrove's adapter for writing: metadata back in columns."""
    return {**document.metadata, "text": document.text, "id": document.id}


def schema_of(release: str | Path | None) -> pa.Schema:
    """The Arrow schema of a release's shards; without one, of releases this version makes."""
    import pyarrow.parquet as pq

    if release is None:
        from corpus.app.release import SIGNAL_FIELDS
        from corpus.export.schema import release_schema

        return release_schema(SIGNAL_FIELDS)
    shard = next(iter(sorted(Path(release, "data").glob(SHARDS))), None)
    if shard is None:
        raise StoreError("there is no shard in this release", str(release), "give the folder that holds manifest.json")
    return pq.read_schema(shard)


def _need(module: str) -> None:
    from importlib.util import find_spec

    if find_spec("datatrove") is None or find_spec(f"datatrove.{module}") is None:
        raise UsageError("datatrove is not installed", "corpus.contrib.datatrove", "pip install 'datatrove[io]>=0.10'")
