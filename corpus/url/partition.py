"""Which logical partition, and which partition file, owns a registered domain.

The answer depends on the domain's bytes and on how many files a frontier was made with, for ever: a frontier written by any
version, on any machine, is found again by any other. Changing a number here would orphan every frontier on disk.
"""

from __future__ import annotations

import hashlib

PARTITIONS = 256
"""Logical partitions, for ever: first byte of the SHA-256 of the registered domain."""
PARTITION_FILES = 16
"""Files they are spread over in SQLite, and on a server unless `store.partition_files` said otherwise when it was new."""


def partition_of(domain: str) -> int:
    """The logical partition of a registered domain, 0..255."""
    return hashlib.sha256(domain.encode("utf-8", "surrogatepass")).digest()[0]


def partition_file(domain: str, spread: int) -> int:
    """The partition file of a registered domain, 0..spread-1: what one fetch process owns. `spread`: over how many files a frontier is
    spread; partition p lives in file p % spread."""
    return partition_of(domain) % spread
