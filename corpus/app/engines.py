"""Which engine a configuration asks for, and what a task of ours must do where it ran before the caller can rely on it."""

from __future__ import annotations

from typing import Any

from corpus.config.tree import Config
from corpus.engine.local import LocalPool
from corpus.engine.tasks import Engine
from corpus.store.commits import CommitRecord


def engine_of(config: Config) -> Engine:
    """The engine of stages after the crawl. `rank` is the local one: ranks share stages out, not tasks."""
    engine = config.engine
    if engine.kind == "ray":
        from corpus.engine.ray import RayEngine

        return RayEngine(engine.address, workers=engine.workers, memory=engine.memory, after="corpus.app.engines:published")
    return LocalPool(engine.workers)


def published(spec: Any, value: Any) -> None:
    """On another machine, after a task: what it wrote is made durable from there, because it lies nowhere else."""
    files = getattr(spec, "files", None)
    if files is not None and files.remote and isinstance(value, CommitRecord):
        files.publish(value.outputs)
