"""Real pages of other people: multilingual, broken and odd ones end in an outcome each, and the same way twice."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from corpus.filter.map import MapSettings, measure_segment
from corpus.filter.schema import FAMILIES
from corpus.filter.signatures import minhash, shingles
from corpus.model import Capture, CaptureRef, Outcome


def _captures(test_data: Path, every: int) -> list[Capture]:
    archive = test_data / "rawhtml" / "hplt100-CC.tar.gz"
    if not archive.is_file():
        pytest.skip(f"no raw pages at {archive}")
    with tarfile.open(archive) as files:
        bodies = [files.extractfile(member).read() for member in files.getmembers() if member.isfile()]  # type: ignore[union-attr]
    return [
        Capture(
            f"https://h{i % 5}.example.org/{i}",
            f"https://h{i % 5}.example.org/{i}",
            200,
            (),
            body,
            1000.0 + i,
            CaptureRef("w", i, 1),
        )
        for i, body in enumerate(bodies[::every])
    ]


@pytest.mark.parametrize(("profile", "every"), [("fast", 1), ("default", 8)])
def test_real_pages_end_in_an_outcome_whatever_their_order(test_data: Path, profile: str, every: int) -> None:
    """A hundred raw pages in 22 languages: one row each, most with text, the same tables in reverse order."""
    captures = _captures(test_data, every)
    settings = MapSettings(profile=profile)
    first = measure_segment(captures, segment="s", crawl_id="c", settings=settings)
    again = measure_segment(captures[::-1], segment="s", crawl_id="c", settings=settings)
    assert first.documents.num_rows == len(captures)
    assert all(first.family(name).equals(again.family(name)) for name in FAMILIES)
    outcomes = first.documents["outcome"].to_pylist()
    assert outcomes.count(Outcome.OK.value) >= 0.9 * len(captures)
    for text in first.documents["text"].to_pylist():
        json.dumps(text or "").encode("ascii")
        assert "\x00" not in (text or "")


def test_shingles_agree_with_an_independent_jaccard(test_data: Path) -> None:
    """On two builds of one manual, our Jaccard of word shingles is the published one within a hundredth."""
    import csv

    from resiliparse.extract.html2text import extract_plain_text

    table = test_data / "neardup" / "installguide_pairs.tsv"
    if not table.is_file():
        pytest.skip(f"no near-duplicate pairs at {table}")
    with table.open(encoding="utf-8", newline="") as rows:
        pairs = [row for row in csv.DictReader(rows, delimiter="\t") if row["lang"] in {"de", "ru"}][::4]
    with tarfile.open(test_data / "neardup" / "installguide.tar.gz") as files:
        texts = {
            build: [
                extract_plain_text(files.extractfile(f"{build}/{row['lang']}/{row['file']}").read().decode())  # type: ignore[union-attr]
                for row in pairs
            ]
            for build in ("amd64", "arm64")
        }
    gold = np.array([float(row["jaccard_word5"]) for row in pairs])
    ours = np.array(
        [len(np.intersect1d(a, b)) / len(np.union1d(a, b)) for a, b in zip(*(shingles(texts[b]) for b in texts), strict=True)]
    )
    estimate = (minhash(texts["amd64"]) == minhash(texts["arm64"])).mean(axis=1)
    assert np.abs(ours - gold).mean() < 0.01
    assert np.sqrt(((estimate - ours) ** 2).mean()) < 0.05
