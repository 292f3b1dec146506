"""`manifest.json`: what a release consists of and what it was made from, complete enough to make it again and to check it.

No clock speaks in it: two builds of one snapshot have the same manifest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from corpus.export.decide import Decisions
from corpus.export.ports import ReleaseOptions, ReleasePolicy, SnapshotInputs, TokenCounter
from corpus.export.schema import SignalFields
from corpus.export.shard import Written, file_sha256
from corpus.export.summary import Counts
from corpus.model import SCHEMA_VERSION, FunnelStep
from corpus.version import __version__

_CONTENT = (
    "name", "languages", "shard_bytes", "validation", "versions", "gone", "by_language", "keep", "threshold", "cluster", "quality_signal", "length_signal",
    "title", "license", "user_agent", "contact",
)  # fmt: skip
"""The options that change what a release holds."""


def release_key(
    inputs: SnapshotInputs, options: ReleaseOptions, policy: ReleasePolicy, signals: SignalFields, tokens: TokenCounter | None
) -> str:
    """SHA-256 (hex) of everything a release is a function of. Equal keys: equal bytes, under equal writer versions."""
    facts = {
        "snapshot": inputs.digest,
        "identity": dict(inputs.identity),
        "segments": [segment.name for segment in inputs.segments],
        "clusters": file_sha256(inputs.clusters),
        "pairs": file_sha256(inputs.pairs) if inputs.pairs else "",
        "frontier": _digest(inputs.frontier),
        "tombstones": _digest(inputs.tombstones),
        "config": inputs.config,
        "policy": policy.digest,
        "tokenizer": tokens.name if tokens else "none",
        "signals": [f"{name} {kind}" for name, kind in signals],
        "options": {name: getattr(options, name) for name in _CONTENT},
        **({"versions": file_sha256(inputs.versions)} if inputs.versions else {}),
        **({"words": dict(options.words)} if options.words else {}),
        "previous": options.previous,
        "schema": SCHEMA_VERSION,
        "writer": writers(),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _digest(table: pa.Table) -> str:
    ordered = table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()
    return hashlib.sha256(json.dumps(ordered.to_pydict(), default=str).encode()).hexdigest()


def writers() -> dict[str, str]:
    """Versions of what writes the bytes."""
    return {"corpus": __version__, "duckdb": duckdb.__version__, "pyarrow": pa.__version__}


def step_json(step: FunnelStep) -> dict[str, Any]:
    """A funnel step in the form of the run summary."""
    return {"stage": step.stage, "in": step.n_in, "out": step.n_out, "dropped": dict(sorted(step.dropped.items()))}


def manifest(
    key: str,
    inputs: SnapshotInputs,
    options: ReleaseOptions,
    policy: ReleasePolicy,
    tokenizer: str,
    decisions: Decisions,
    counts: Counts,
    shards: Sequence[Written],
    tokens: int | None,
) -> dict[str, Any]:
    """The manifest without the digests of its side files (`with_files` adds them)."""
    return {
        "schema": 1,
        "schema_version": SCHEMA_VERSION,
        "name": options.name,
        "key": key,
        "withdrawn": False,
        "identity": {**inputs.identity, "snapshot": inputs.digest, "policy": policy.digest},
        "policy": policy.name,
        "tokenizer": tokenizer,
        "writer": writers(),
        "options": {name: getattr(options, name) for name in _CONTENT},
        "rows": counts.rows,
        "text_bytes": sum(shard.text_bytes for shard in shards),
        "tokens": tokens,
        "languages": counts.languages,
        "consent": counts.use,
        "turned_away": None if inputs.turned_away is None else dict(inputs.turned_away),
        "funnel": [step_json(step) for step in decisions.funnel],
        **({"versions": step_json(decisions.versions)} if decisions.versions else {}),
        "older_versions": decisions.older,
        "rules": decisions.rules,
        "losses": decisions.losses.to_pylist(),
        "shards": [asdict(shard) for shard in shards],
    }


def with_files(facts: dict[str, Any], folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Add the digest and size of each side file."""
    files = {name: {"sha256": file_sha256(folder / name), "bytes": (folder / name).stat().st_size} for name in sorted(names)}
    return facts | {"files": files}


def to_text(facts: dict[str, Any]) -> str:
    """Canonical JSON: sorted keys, ASCII, one space of indent."""
    return json.dumps(facts, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
