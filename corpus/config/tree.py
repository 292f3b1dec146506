"""The one configuration tree: it nests every stage's settings and adds nothing of its own but the corpus' name."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr

from corpus.crawl.settings import CrawlSettings, RecrawlSettings
from corpus.export.settings import ExportSettings, PublishSettings
from corpus.filter.settings import DedupSettings, ExtractSettings, FilterSettings
from corpus.optout.settings import OptoutSettings
from corpus.settings import Settings
from corpus.store.settings import EngineSettings, StoreSettings


class CorpusSettings(Settings):
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """The dataset's name."""
    languages: tuple[str, ...] = ()
    """Wanted languages: ISO 639-1, 639-3 or English names. Empty: all of them."""


class Config(Settings):
    """The whole of `corpus.toml`, resolved. Frozen; a stage gets only its own branch."""

    corpus: CorpusSettings
    crawl: CrawlSettings = CrawlSettings()
    optout: OptoutSettings = OptoutSettings()
    extract: ExtractSettings = ExtractSettings()
    filter: FilterSettings = FilterSettings()
    dedup: DedupSettings = DedupSettings()
    recrawl: RecrawlSettings = RecrawlSettings()
    export: ExportSettings = ExportSettings()
    publish: PublishSettings = PublishSettings()
    store: StoreSettings = StoreSettings()
    engine: EngineSettings = EngineSettings()

    _base: Path = PrivateAttr(default_factory=Path.cwd)
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def base(self) -> Path:
        """The folder that relative paths in the file are relative to."""
        return self._base

    @property
    def origins(self) -> dict[str, str]:
        """Where each given value came from: `file:line`, `environment` or `--set`; absent: a default."""
        return dict(self._origins)

    @property
    def in_bucket(self) -> bool:
        """Whether `store.root` is on S3."""
        return self.store.root.startswith("s3://")

    @property
    def root(self) -> Path:
        """The folder of the corpus; for one on S3 the folder of this machine where its files are made."""
        if self.in_bucket:
            return self.local / "working" / self.store.root.removeprefix("s3://").strip("/")
        return (self._base / self.store.root).resolve()

    @property
    def local(self) -> Path:
        return ((self._base if self.in_bucket else self.root) / self.store.local).resolve()

    def digest(self) -> str:
        """SHA-256 (hex) of everything that may change what is collected or kept; never of how many workers did it."""
        tree = self.model_dump(mode="json")
        for branch in ("store", "engine", "publish"):
            del tree[branch]
        for key in ("processes", "slots"):
            del tree["crawl"][key]
        del tree["dedup"]["memory"]
        return hashlib.sha256(json.dumps(tree, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def place(config: Config, base: Path, origins: dict[str, str]) -> Config:
    """The same tree, told where it was read. The only place that sets the two private fields."""
    config._base = base
    config._origins = origins
    return config


def leaves(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"crawl": {"delay": 1}}` as `{"crawl.delay": 1}`."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= leaves(value, f"{path}.")
        else:
            flat[path] = value
    return flat
