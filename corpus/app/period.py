"""The name of a crawl: the period it falls into. Apart from the crawl itself, because stages without one name their runs so too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpus.config.tree import Config

_FORMATS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}


def crawl_label(config: Config, wall: float) -> str:
    """The crawl's label for a time: the period it falls into, in UTC (`2026-11`, `2026-W48`, `2026-11-30`, `2026`)."""
    return datetime.fromtimestamp(wall, UTC).strftime(_FORMATS[config.recrawl.period])
