"""Settings of the store and of the engine that runs tasks."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from corpus.settings import Bytes, Seconds, Settings


class StoreSettings(Settings):
    root: str = "."
    """A folder (relative to the configuration file) or `s3://bucket/prefix`."""
    local: str = ".local"
    """A folder for what is machine-local: the SQLite frontier and the rebuildable catalog."""
    frontier: str = "sqlite"
    """`sqlite` or a PostgreSQL DSN."""
    segment_bytes: Bytes = 128 * 2**20
    segment_age: Seconds | None = None
    """Absent: 10 min on a folder, 60 s on S3."""
    lease: Seconds = 30.0
    s3_endpoint: str | None = None
    s3_region: str | None = None


class EngineSettings(Settings):
    kind: Literal["local", "ray", "rank"] = "local"
    address: str | None = None
    workers: PositiveInt | None = None
    """Absent: one per core."""
    memory: Bytes = 4 * 10**9
