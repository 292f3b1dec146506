"""Settings of releases and their publication."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpus.settings import Bytes, Settings


class ExportSettings(Settings):
    name: str = Field("v1", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    """The release's name; `corpus run` takes the next free number where it is taken."""
    shard_bytes: Bytes = 256 * 2**20
    """Uncompressed text bytes a shard aims at."""
    validation: float = Field(0.0, ge=0, lt=1)
    """Share of URLs (by `url_id`) in the validation split."""
    versions: Literal["newest", "major"] = "newest"
    """`major` keeps older versions of a page whose text is clearly another one."""
    gone: Literal["drop", "keep"] = "drop"
    """What a page becomes that answered 404 or 410 at its last visit."""
    by_language: bool = False
    """One folder of shards per language."""
    tokenizer: str = "gpt2"
    """`gpt2`, a tokenizer file, or `none`."""


class PublishSettings(Settings):
    repo: str | None = None
    """`owner/name` of the dataset on the hub."""
    private: bool = True
    """A repository that does not exist yet is made private."""
    license: str = "other"
    """The card's licence; rights are per document, see `license_url` and `consent`."""
    card: str | None = None
    """A TOML file with the parts of the card that only a person can write (`corpus.export.words`)."""
