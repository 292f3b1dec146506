"""What a task leaves on another machine: durable from there, and found by whoever called it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from corpus.app.engines import published
from corpus.store.commits import CommitRecord, Commits, file_sha256
from corpus.store.files import Files, LocalFiles
from corpus.store.s3_files import S3Files
from tests.s3_kit import KEYS, Server


@dataclass(frozen=True, slots=True)
class Spec:
    files: Files


@pytest.fixture(autouse=True)
def _keys() -> Iterator[None]:
    with mock.patch.dict(os.environ, KEYS):
        yield


@pytest.mark.needs("s3")
def test_what_a_task_wrote_on_a_node_is_published_from_there(s3_server: Server, tmp_path: Path) -> None:
    """The node's file is in the bucket before the caller records it; the caller, who never had it, records and reads it."""
    node, here = (S3Files(s3_server.objects("engines"), tmp_path / name) for name in ("node", "here"))
    (node.root / "joins").mkdir(parents=True)
    (node.root / "joins" / "pairs").write_bytes(b"12345678")
    digest = file_sha256(node.root / "joins" / "pairs")
    record = CommitRecord("join", "k", outputs={"joins/pairs": digest}, rows={"rows": 1})
    published(Spec(node), record)
    assert not (here.root / "joins").exists()
    commits = Commits(s3_server.objects("engines"), here.publish)
    assert commits.put(record)
    assert here.local("joins/pairs", digest).read_bytes() == b"12345678"


def test_on_a_shared_folder_nothing_has_to_be_sent(tmp_path: Path) -> None:
    """A folder that all machines see needs nothing; neither does an answer that is no record."""
    published(Spec(LocalFiles(tmp_path)), CommitRecord("join", "k", outputs={"joins/pairs": "0" * 64}))
    published(object(), 12)
