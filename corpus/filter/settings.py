"""Settings of extraction, filtering and near-duplicate clustering."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from corpus.settings import Bytes, Settings


class ExtractSettings(Settings):
    profile: Literal["default", "fast", "precision", "recall", "blocks"] = "default"
    """`default`: trafilatura; `fast`: resiliparse; `precision`, `recall`: trafilatura's own leanings; `blocks`: our block classifier."""
    language_model: str | None = None
    """Path of a fastText model to use in place of the vendored lid.176.ftz."""


class FilterSettings(Settings):
    policy: str = "balanced"
    """A shipped policy's name or a TOML file."""
    quality_model: str | None = None
    """A fastText classifier for the signal `quality_score` (`corpus quality train`)."""
    url_lists: tuple[str, ...] = ()
    """UT1 blocklists for the `url_list_*` signals: folders or files."""
    unigrams: str | None = None
    """A table of word frequencies for `unigram_logprob`."""
    decontaminate: tuple[str, ...] = ()
    """Benchmark files for `contaminated_ngrams`."""
    rules: tuple[str, ...] = ()
    """`module:function` of your own signals."""
    host_line_pages: int | None = Field(None, ge=2)
    """A line that this many different pages of a host have is a `host-line`; None: lines are not compared."""


class DedupSettings(Settings):
    ngram: PositiveInt = 5
    """Words of a shingle; signatures are made of 5."""
    bands: PositiveInt = 14
    """Bands of the signature; two documents that share one are compared."""
    rows: PositiveInt = 8
    """Values of a band: more of them find only closer copies."""
    threshold: float = Field(0.75, gt=0, le=1)
    """Jaccard similarity from which two documents are near-duplicates; every pair is verified."""
    scope: Literal["run", "crawl", "all"] = "run"
    """`crawl`: only pages of one crawl are compared; `run` and `all`: everything in the folder."""
    keep: Literal["longest", "newest", "oldest", "best"] = "longest"
    """Which member of a cluster a release keeps."""
    memory: Bytes = 2 * 10**9
    """Clustering stays within it, and spills to disk beyond."""
