"""What a page has cost so far in this folder: bytes on the wire, disk, CPU. Where too little was measured, a stated assumption.

Read from the folder's own files and summaries; nothing is timed here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.app.process import map_records
from corpus.app.project import Project
from corpus.store.layout import FAMILIES, Layout

ENOUGH_PAGES = 50
"""Fewer pages say little about the next ones."""
ENOUGH_URLS = 20_000
"""With fewer, the empty files of the frontier are most of it."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """`source` says where the number is from: a measurement in this folder, the configuration, or our own guess."""

    name: str
    value: float
    unit: str
    source: str

    def document(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "unit": self.unit, "source": self.source}


GUESSES: dict[str, tuple[float, str]] = {
    # a compressed HTML page of the public web; headers included
    "wire bytes a page": (30_000.0, "bytes"),
    # as sent, plus request, headers and metadata
    "archive bytes a page": (33_000.0, "bytes"),
    # text, signals, spans and 448 bytes of signature, compressed
    "measured bytes a page": (12_000.0, "bytes"),
    # the row, its visit and its share of the indexes
    "frontier bytes a URL": (300.0, "bytes"),
    # links that are new, after the filters
    "known URLs a page": (8.0, "URLs"),
    # what the benches of this version show on one core (BENCHMARKS.md)
    "fetch CPU a page": (0.0045, "CPU-s"),
}


def guesses() -> dict[str, Assumption]:
    """What is assumed before anything was measured."""
    return {name: Assumption(name, value, unit, "assumed") for name, (value, unit) in GUESSES.items()}


def costs(project: Project) -> dict[str, Assumption]:
    """Each cost by name: measured here where at least `ENOUGH_PAGES` pages were stored, else our guess."""
    found = guesses()
    summaries = run_summaries(project)
    pages = sum(s["fetch"]["pages"] for s in summaries)
    if pages < ENOUGH_PAGES:
        return found

    def measured(name: str, total: float, of: float) -> None:
        if of >= ENOUGH_PAGES and total > 0:
            found[name] = Assumption(name, total / of, GUESSES[name][1], f"measured here, over {of:.0f}")

    documents = sum(r.rows["documents"] for r in map_records(project).values())
    known = sum(step["in"] for step in summaries[-1]["funnel"][:1])
    layout = project.layout
    measured("wire bytes a page", sum(s["fetch"]["bytes_wire"] for s in summaries), pages)
    measured("archive bytes a page", folder_bytes(layout.warc), pages)
    measured("measured bytes a page", sum(folder_bytes(layout.root / family) for family in FAMILIES), documents)
    if known >= ENOUGH_URLS:
        measured("frontier bytes a URL", _frontier_bytes(layout), known)
    measured("known URLs a page", known, pages)
    return found


def run_summaries(project: Project, pick: Callable[[dict[str, Any]], bool] = lambda summary: True) -> list[dict[str, Any]]:
    """`summary.json` of every run that wrote one, oldest first; one that cannot be read is left out."""
    found = []
    runs = project.layout.runs
    for path in sorted(runs.glob("*/summary.json")) if runs.is_dir() else []:
        try:
            summary = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue  # cut by a full disk: the next run writes its own
        if isinstance(summary, dict) and summary.get("schema") == 1 and pick(summary):
            found.append(summary)
    return found


def _frontier_bytes(layout: Layout) -> int:
    """What the frontier takes on the disk that holds it."""
    if not layout.server:
        return folder_bytes(layout.frontier)
    from corpus.store.frontier_pg_read import disk_bytes

    return disk_bytes(layout.server)


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; 0 where it is not there."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += Path(parent, name).stat().st_size
            except FileNotFoundError:
                continue  # a segment was sealed meanwhile
    return total
