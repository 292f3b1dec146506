"""A release from a snapshot: decide, plan, write, check, and only then put the finished folder in its place.

A pure function of its inputs: no clock, no order of arrival, no trace of threads or batches. A folder that bears a
release's name is whole; what was interrupted leaves a hidden folder behind, which the next build removes.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from corpus.errors import CorpusError, StoreError
from corpus.export.card import CardFacts, card
from corpus.export.changes import changes
from corpus.export.compare import Compared, compared
from corpus.export.croissant import croissant
from corpus.export.decide import Decisions, decide, forget
from corpus.export.domains import domains_csv
from corpus.export.manifest import manifest, release_key, to_text, with_files
from corpus.export.pieces import PieceStore
from corpus.export.plan import make_plan
from corpus.export.ports import ConsentJudge, ReleaseOptions, ReleasePolicy, SnapshotInputs, TokenCounter
from corpus.export.rows import RowMaker
from corpus.export.schema import SignalFields, release_schema
from corpus.export.session import open_session, steady_memory
from corpus.export.shard import Written, write_shards
from corpus.export.summary import DomainRow, DomainTotals, checked, counts
from corpus.export.tombstones import write_tombstones


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """A finished release. `built` is false when the same release was there already; then `decisions` is None."""

    folder: Path
    manifest: dict[str, Any]
    decisions: Decisions | None
    built: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """What a release is made with, besides the snapshot."""

    judge: ConsentJudge
    policy: ReleasePolicy
    signals: SignalFields
    """Fields of the `signals` struct, in order."""
    tokens: TokenCounter | None


def build_release(
    inputs: SnapshotInputs, parts: Parts, options: ReleaseOptions, out_dir: Path, *, decisions_path: Path, scratch: Path
) -> ReleaseResult:
    """Build `out_dir/<name>` and `decisions_path`. `scratch` is an empty folder for spills, on local disk.

    A release of this name made from the same inputs is returned as it is; one of other content raises StoreError.
    """
    inputs = replace(inputs, segments=tuple(sorted(inputs.segments, key=lambda segment: segment.name)))
    final = out_dir / options.name
    key = release_key(inputs, options, parts.policy, parts.signals, parts.tokens)
    if final.exists():
        return ReleaseResult(final, _existing(final, key), None, built=False)
    part = out_dir / f".{options.name}.part"
    if part.exists():
        shutil.rmtree(part)
    part.mkdir(parents=True)
    steady_memory()
    con = open_session(options.memory // 2, options.threads, scratch)
    try:
        decisions = decide(con, inputs, parts.judge, parts.policy, options, decisions_path)
        pages = compared(con, options.previous_shards)
        totals = DomainTotals()
        shards = _write(con, inputs, parts, options, part, scratch, totals)
        facts = _describe(con, key, inputs, parts, options, decisions, pages, shards, totals.ranked(), part)
    finally:
        con.close()
    publish(part, final)
    return ReleaseResult(final, facts, decisions, built=True)


def _existing(final: Path, key: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((final / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"a release of this name is there, and its manifest cannot be read: {error}", str(final), "run corpus verify"
        ) from error
    if found.get("key") != key:
        free = next_name(final.name)
        while (final.parent / free).exists():
            free = next_name(free)
        hint = f"choose another export.name, for example {free}"
        raise StoreError("a release of this name with other content is already there", str(final), hint)
    for shard in found["shards"]:
        path = final / shard["path"]
        if not path.is_file() or path.stat().st_size != shard["bytes"]:
            raise StoreError("a shard of the release is missing or has another size", str(path), "run corpus verify --repair")
    return found


def next_name(name: str) -> str:
    """A release's name counted on: `v1` gives `v2`, `spring` gives `spring-2`."""
    stem = name.rstrip("0123456789")
    return f"{stem}{int(name[len(stem) :]) + 1}" if name != stem else f"{name}-2"


def _write(
    con: duckdb.DuckDBPyConnection,
    inputs: SnapshotInputs,
    parts: Parts,
    options: ReleaseOptions,
    folder: Path,
    scratch: Path,
    totals: DomainTotals,
) -> list[Written]:
    schema = release_schema(parts.signals)
    plan = make_plan(con, options)
    forget(con)
    store = PieceStore(plan.pieces, options.memory // 4, scratch)
    maker = RowMaker(schema, parts.policy, parts.tokens, options.batch)
    for number, segment in enumerate(inputs.segments):
        for positions, rows in maker.of_segment(con, number, segment):
            store.add(positions, rows)
    written = list(write_shards(plan, store, schema, folder, totals.add))
    store.close()
    return written


def _describe(
    con: duckdb.DuckDBPyConnection,
    key: str,
    inputs: SnapshotInputs,
    parts: Parts,
    options: ReleaseOptions,
    decisions: Decisions,
    pages: Compared | None,
    shards: list[Written],
    rows: list[DomainRow],
    folder: Path,
) -> dict[str, Any]:
    """Write the side files, after the shards have been read back against what they will say."""
    found = counts(con)
    if found.rows != decisions.rows:
        raise CorpusError(f"the decisions end with {decisions.rows} rows, {found.rows} were kept", str(folder))
    if (sum(row.pages for row in rows), len(rows)) != (found.rows, found.domains):
        raise CorpusError(f"domains.csv would count {len(rows)} domains, {found.domains} were kept", str(folder))
    tokens = checked(con, found, shards, folder, versions=options.versions == "major")
    tokenizer = parts.tokens.name if parts.tokens else "none"
    facts = manifest(key, inputs, options, parts.policy, tokenizer, decisions, found, shards, tokens)
    schema = release_schema(parts.signals)
    types = {field.name: "struct" if str(field.type).startswith("struct") else str(field.type) for field in schema}
    told = CardFacts(
        inputs, options, parts.policy, decisions, found, rows, shards, tokens, tokenizer, types,
        changes(options.previous, facts, pages),
    )  # fmt: skip
    return write_sides(folder, facts, told, schema)


def write_sides(folder: Path, facts: dict[str, Any], told: CardFacts, schema: pa.Schema) -> dict[str, Any]:
    """Write everything of a release but its shards, the manifest `facts` last; returns the manifest as it reads back."""
    found, inputs = told.counts, told.inputs
    about = f"{found.rows} pages of {found.domains} domains, fetched {found.first_fetched} to {found.last_fetched}."
    files = {
        "README.md": card(told),
        "croissant.json": croissant(inputs, told.options, told.policy, found, told.decisions.funnel, told.shards, schema, about),
        "domains.csv": domains_csv(told.domains),
    }
    if inputs.config:
        files["corpus.toml"] = inputs.config
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    write_tombstones(pa.concat_tables([inputs.tombstones, inputs.purged]), folder / "TOMBSTONES.parquet")
    facts = with_files(facts, folder, [*files, "TOMBSTONES.parquet"])
    text = to_text(facts)
    (folder / "manifest.json").write_text(text, encoding="utf-8", newline="\n")
    read_back: dict[str, Any] = json.loads(text)
    return read_back


def publish(part: Path, final: Path) -> None:
    """Flush everything, then rename the folder as a whole."""
    for path in sorted(part.rglob("*")):
        _fsync(path)
    _fsync(part)
    part.rename(final)
    _fsync(final.parent)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
