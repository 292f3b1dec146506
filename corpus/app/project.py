"""One corpus folder, opened: its configuration, its layout, its logs. Opening writes nothing but `corpus.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corpus.config.tree import Config
from corpus.errors import StoreError, UsageError
from corpus.store.commits import Commits
from corpus.store.consent_log import ConsentLog
from corpus.store.control_log import ControlLog
from corpus.store.layout import Layout
from corpus.store.local_objects import LocalObjects


@dataclass(frozen=True, slots=True)
class Project:
    """What every verb works on."""

    config: Config
    layout: Layout
    objects: LocalObjects

    @property
    def commits(self) -> Commits:
        return Commits(self.objects)

    @property
    def control(self) -> ControlLog:
        return ControlLog(self.objects)

    def consent_log(self, writer: str = "reader") -> ConsentLog:
        """The evidence ledger; only a writer with a name of its own may append."""
        return ConsentLog(self.objects, writer)


def open_project(config: Config, *, create: bool = True) -> Project:
    """Open (or start) the folder of a configuration. Raises NewerSchema, StoreError when it cannot be used."""
    root = config.store.root
    if root.startswith("s3://"):
        raise UsageError("this version keeps a corpus in a folder", root, "set store.root to a folder")
    if config.store.frontier != "sqlite":
        raise UsageError("this version keeps the frontier in SQLite", "store.frontier", 'set store.frontier = "sqlite"')
    if config.engine.kind != "local":
        raise UsageError("this version runs the local engine", "engine.kind", 'set engine.kind = "local"')
    layout = Layout(config.root, config.local)
    if not (layout.root / "corpus.json").exists() and not create:
        raise StoreError("there is no corpus in this folder yet", str(layout.root), "run corpus run or corpus ingest first")
    _make(layout.root)
    _make(layout.local)
    layout.check_schema()
    return Project(config, layout, LocalObjects(layout.root))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot be made: {error.strerror}", str(folder), "choose another store.root") from None
