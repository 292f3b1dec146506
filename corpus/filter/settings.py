"""Settings of extraction, filtering and near-duplicate clustering."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from corpus.settings import Bytes, Settings


class ExtractSettings(Settings):
    profile: Literal["default", "fast", "precision", "recall"] = "default"
    language_model: str | None = None
    """Path of a fastText model to use in place of the vendored lid.176.ftz."""


class FilterSettings(Settings):
    policy: str = "balanced"
    """A shipped policy's name or a TOML file."""
    quality_model: str | None = None
    url_lists: tuple[str, ...] = ()
    unigrams: str | None = None
    decontaminate: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """`module:function` of your own signals."""


class DedupSettings(Settings):
    ngram: PositiveInt = 5
    bands: PositiveInt = 14
    rows: PositiveInt = 8
    threshold: float = Field(0.75, gt=0, le=1)
    scope: Literal["run", "crawl", "all"] = "run"
    keep: Literal["longest", "newest", "oldest", "best"] = "longest"
    memory: Bytes = 2 * 10**9
