"""Fixtures every suite shares: where third-party test data lies, and which services are required."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.demo_corpus import DemoCorpus, make_demo
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
def demo_corpus(tmp_path_factory: pytest.TempPathFactory) -> DemoCorpus:
    """A finished demo run, made once per test process. To be looked at only; `copy` it to change anything."""
    return make_demo(tmp_path_factory.mktemp("demo") / "corpus")
