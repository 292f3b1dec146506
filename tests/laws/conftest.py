"""The web, its server and one undisturbed run, made once for each file of laws about whole crawls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corpus.testing.web_process import ServerProcess
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb


@pytest.fixture(scope="module")
def web() -> LawWeb:
    return LawWeb()


@pytest.fixture(scope="module")
def server(web: LawWeb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with web.serve_in_process(tmp_path_factory.mktemp("server") / "contacts.jsonl") as process:
        yield process


@pytest.fixture(scope="module")
def whole(web: LawWeb, server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """What one undisturbed run with one process makes of the web."""
    folder = Folder.make(tmp_path_factory.mktemp("whole") / "corpus", server, web.seeds())
    folder.run()
    return folder
