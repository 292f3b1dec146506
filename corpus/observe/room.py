"""Words about a run give way when the disk is full: what they describe goes on, or waits, without them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def if_there_is_room() -> Iterator[None]:
    """Write inside this block; a full disk ends the block in silence, any other error is raised."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
