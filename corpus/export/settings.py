"""Settings of releases and their publication."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpus.settings import Bytes, Settings


class ExportSettings(Settings):
    name: str = Field("v1", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    shard_bytes: Bytes = 256 * 2**20
    """Uncompressed text bytes a shard aims at."""
    validation: float = Field(0.0, ge=0, lt=1)
    """Share of URLs (by `url_id`) in the validation split."""
    versions: Literal["newest", "major"] = "newest"
    gone: Literal["drop", "keep"] = "drop"
    by_language: bool = False
    tokenizer: str = "gpt2"
    """`gpt2`, a tokenizer file, or `none`."""


class PublishSettings(Settings):
    repo: str | None = None
    """`owner/name` of the dataset on the hub."""
    private: bool = True
    """A repository that does not exist yet is made private."""
    license: str = "other"
    card: str | None = None
    """A TOML file with the parts of the card that only a person can write (`corpus.export.words`)."""
