"""`extract()` over a hundred raw pages of other people, in 22 languages: no crash, and the same bytes in 1 and 16 processes."""

from __future__ import annotations

import hashlib
import tarfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from multiprocessing import get_context
from pathlib import Path

import pytest

from corpus.filter.extract import PROFILES, extract


def bodies(test_data: Path) -> list[bytes]:
    archive = test_data / "rawhtml" / "hplt100-CC.tar.gz"
    if not archive.is_file():
        pytest.skip(f"no raw pages at {archive}")
    with tarfile.open(archive) as files:
        return [files.extractfile(member).read() for member in files.getmembers() if member.isfile()]  # type: ignore[union-attr]


def digest(read: tuple[str, bytes]) -> str:
    """SHA-256 of everything an extractor says of a page."""
    extractor, body = read
    said = repr(astuple(extract(body, url="https://h.example.org/", profile=extractor)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _same_everywhere(reads: list[tuple[str, bytes]]) -> None:
    here = [digest(read) for read in reads]
    context = get_context("forkserver")
    context.set_forkserver_preload(["trafilatura", "resiliparse.extract.html2text", __name__])  # imported once, not 16 times
    with ProcessPoolExecutor(16, mp_context=context) as pool:
        backwards = list(pool.map(digest, reads[::-1], chunksize=max(len(reads) // 16, 1)))[::-1]
    assert here == backwards


@pytest.mark.slow
@pytest.mark.parametrize("extractor", PROFILES)
def test_all_raw_pages_are_the_same_in_1_and_16_workers(test_data: Path, extractor: str) -> None:
    """Every page, one after the other here and backwards in sixteen processes: nothing raises, all bytes are equal."""
    _same_everywhere([(extractor, body) for body in bodies(test_data)])


def test_raw_pages_are_the_same_in_1_and_16_workers(test_data: Path) -> None:
    """Every page by `fast` or the block classifier in turn, each tenth by trafilatura's profiles."""
    every = bodies(test_data)
    reads = [(("fast", "blocks")[at % 2], body) for at, body in enumerate(every)]
    reads += [(("default", "precision", "recall")[at % 3], body) for at, body in enumerate(every[::10])]
    _same_everywhere(reads)
