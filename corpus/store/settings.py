"""Settings of the store and of the engine that runs tasks."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from corpus.settings import Bytes, Seconds, Settings

SPREADS = (16, 32, 64, 128, 256)
"""Over how many partition files a frontier on a server can be spread."""


class StoreSettings(Settings):
    root: str = "."
    """A folder (relative to the configuration file) or `s3://bucket/prefix`."""
    local: str = ".local"
    """A folder for what is machine-local: the SQLite frontier and the rebuildable catalog; with a root on S3 also the files
    under work and copies. Relative to the root where that is a folder, else to the configuration file."""
    frontier: str = "sqlite"
    """`sqlite`, or the DSN of a PostgreSQL server (15 or newer, `corpus[fleet]`) with a database for this corpus alone:
    `postgresql://user@host:5432/database`. The password comes from PGPASSWORD or ~/.pgpass."""
    partition_files: Literal[16, 32, 64, 128, 256] = 16
    """Over how many partition files a frontier on PostgreSQL is spread, which is the most workers a fleet can have; each takes a
    connection of the server. Settled when the database is new. SQLite has 16."""
    segment_bytes: Bytes = 128 * 2**20
    """A WARC file is sealed at this size."""
    segment_age: Seconds | None = None
    """Absent: 10 min on a folder, 60 s on S3."""
    lease: Seconds = 30.0
    """How long a partition file on PostgreSQL is owned without being renewed (every quarter of it); past half of it nothing is
    sent. In SQLite the operating system's lock decides."""
    s3_endpoint: str | None = None
    """URL of an S3 store that is not AWS. Credentials come from boto3's own chain, never from here."""
    s3_region: str | None = None
    """Region of the bucket."""


class EngineSettings(Settings):
    kind: Literal["local", "ray", "rank"] = "local"
    """`rank`: stages after the crawl run only as ranks of a batch system (`--rank R --world N`). `ray`: measuring, indexing and the join
    of near-duplicates run as tasks of a Ray cluster (`corpus[ray]`)."""
    address: str | None = None
    """`host:port` of a Ray cluster's head, or `auto`, for a caller on one of its nodes. Absent: a cluster on this machine, as long as
    the command lasts."""
    workers: PositiveInt | None = None
    """Absent: one per core that this process may use. A Ray cluster with an address has its own number."""
    memory: Bytes = 4 * 10**9
    """For all process workers together; with Ray, for each task, which ends when it needs more."""
    overlap: bool = True
    """Whether `corpus run` processes sealed segments while it crawls, at a lower priority (with `kind = "local"`)."""
    backlog: Bytes = 2 * 2**30
    """Archives that wait for processing while the crawl goes on: at this many bytes fetch waits for it."""
