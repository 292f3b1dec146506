"""A disk that fills up while libraries of others write to it: their errors as ours, so that a run ends in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from corpus.errors import TryLater
from corpus.store.disk import NO_ROOM
from corpus.store.local_objects import failed

_SIGNS = ("no space left", "max_temp_directory_size", "disk quota")
_HINT = "free some space, then run the same command again: what is finished is kept"


@contextmanager
def told_plainly(folder: Path) -> Iterator[None]:
    """Work that writes below `folder`. Raises TryLater where the disk is full; every other error as it is."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise failed(error, str(error.filename or folder)) from error
    except duckdb.Error as error:
        words = " ".join(str(error).split())
        if not any(sign in words.lower() for sign in _SIGNS):
            raise
        raise TryLater(f"the disk is full: {words[:200]}", str(folder), _HINT) from error
