"""Takedowns on copies of the demo corpus: what to take down, what its texts were, and what a folder looks like afterwards."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from tests.demo_corpus import DemoCorpus, Said, corpus_cli, project_of

SETTINGS = ("optout.recheck_after=3000d",)


def run(folder: Path, verb: str, *arguments: str | Path, settings: tuple[str, ...] = ()) -> Said:
    """A verb on a folder whose hosts are no longer served."""
    sets = [part for setting in (*SETTINGS, *settings) for part in ("--set", setting)]
    return corpus_cli(verb, *arguments, "-c", folder / "corpus.toml", *sets)


def apply(folder: Path, settings: tuple[str, ...] = ()) -> dict[str, Any]:
    said = run(folder, "takedown", "apply", "--json", settings=settings)
    assert said.code == 0, said.err
    told: dict[str, Any] = said.json
    return told


@dataclass(frozen=True, slots=True)
class Prey:
    """A domain, a URL and an id, and lines of text that only their pages have."""

    domain: str
    url: str
    id: str
    urls: tuple[str, ...]
    needles: tuple[bytes, ...]

    def order(self, folder: Path) -> None:
        for name in (self.domain, self.url, self.id):
            said = run(folder, "takedown", "add", name, "--reason", "request")
            assert said.code == 0, said.err


def prey(demo: DemoCorpus) -> Prey:
    """One whole host, one URL of another, one id of a third."""
    rows = duckdb.execute(
        "SELECT id, url, host, text, title FROM read_parquet($f, hive_partitioning = false) WHERE text IS NOT NULL ORDER BY url",
        {"f": [str(path) for path in demo.folder.glob("documents/*/*.parquet")]},
    ).fetchall()
    domain = demo.origins["fluesse"].split("//")[1].split(":")[0]
    url = f"{demo.origins['bakery']}/flour.html"
    id_, id_url = next((row[0], row[1]) for row in rows if row[1].startswith(demo.origins["diwan"]) and "kilim" in row[1])
    gone = [row for row in rows if row[2] == domain or row[1] in (url, id_url)]
    rest = "\n".join(row[3] for row in rows if row not in gone)
    lines = {line for row in gone for line in row[3].split("\n") if len(line) > 40 and line not in rest}
    needles = {line[:60].encode() for line in lines} | {line[-40:].encode() for line in lines}
    assert len(gone) > 5
    assert len(needles) > 10
    return Prey(domain, url, id_, tuple(row[1] for row in gone), tuple(sorted(needles)))


def tree(folder: Path) -> dict[str, str]:
    """Digests of everything durable but what bears a time: proofs, logs, orders."""
    skipped = ("proofs/", "runs/", ".local/", "control/", "corpus.toml", "card.toml")
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in sorted(files.items())
        if not name.startswith(skipped)
    }


def verified(folder: Path) -> list[str]:
    """Faults that `verify` finds."""
    from corpus.app.verify import verify

    return [
        f"{fault.kind}: {fault.file}: {fault.message}" for fault in verify(project_of(folder), lambda event, **facts: None).faults
    ]


def manifest(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "releases" / name / "manifest.json").read_text("utf-8"))
    return found
