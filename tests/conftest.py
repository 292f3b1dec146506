"""Fixtures every suite shares: where third-party test data lies, and which services are required."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo_corpus import DemoCorpus, make_demo
from tests.postgres_kit import Postgres, postgres
from tests.s3_kit import Server, moto, nanio
from tests.services import missing, required

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of third-party test data; a test that asks for it skips where the folder is absent."""
    folder = Path(os.environ.get("CORPUS_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no third-party test data at {folder}: set CORPUS_TEST_DATA")
    return folder


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip (or, where the service is required, fail) a test whose service is not here."""
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            why = missing(name)
            if why and name in required():
                pytest.fail(f"required by CORPUS_REQUIRE, and missing: {why}", pytrace=False)
            if why:
                pytest.skip(why)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Server]:
    """moto's S3, once per test process; every test takes a prefix of its own."""
    with moto() as server:
        yield server


@pytest.fixture(scope="session")
def nanio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """nanio, once per test process: a store that checks signatures and ignores If-None-Match."""
    with nanio(tmp_path_factory.mktemp("nanio")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """PostgreSQL, once per test process; every test takes a database of its own."""
    with postgres(("fsync=off", "full_page_writes=off")) as server:
        yield server


@pytest.fixture(scope="session")
def demo_corpus(tmp_path_factory: pytest.TempPathFactory) -> DemoCorpus:
    """A finished demo run, made once per test process. To be looked at only; `copy` it to change anything."""
    return make_demo(tmp_path_factory.mktemp("demo") / "corpus")
