"""The notebooks run from top to bottom on a demo corpus; each ends with assertions on its own numbers."""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path

import pytest

from corpus.contrib.notebook import bars, differences, histogram, rows
from tests.demo_corpus import DemoCorpus

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_kept(path: Path) -> None:
    """Outputs and counters are stripped: what was crawled never enters the repository."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert any("assert" in line for cell in code for line in cell["source"])
    assert any("command_line(" in line for cell in code for line in cell["source"])


@pytest.mark.needs("notebooks")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_numbers_hold(path: Path, demo_corpus: DemoCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executed by a real kernel; an assertion that fails inside fails here."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("CORPUS_FOLDER", str(demo_corpus.folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(path.parents[1]), *sys.path])))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()


def test_what_was_crawled_is_escaped() -> None:
    """Markup and control characters in a text show as themselves, in tables, bars and differences."""
    evil = "<script>alert(1)</script>\x1b[2J & \u202e"
    for made in (rows([{evil: evil}]), bars([(evil, 1)]), differences(evil, f"{evil} more")):
        assert "<script" not in made.text
        assert "\x1b" not in made.text
    assert "<ins" in differences("a b", "a b c").text


def test_a_histogram_counts_every_value(demo_corpus: DemoCorpus) -> None:
    """Bins touch, and their sum is the number of measured documents; a signal of one value has one full bin."""
    import corpus

    c = corpus.open(demo_corpus.folder)
    found = histogram(c, "words", bins=7)
    assert len(found) == 7
    assert all(a[1] == pytest.approx(b[0]) for a, b in itertools.pairwise(found))
    [row] = c.sql("SELECT count(signals.words) AS n FROM documents").to_pylist()
    assert sum(n for _, _, n in found) == row["n"] > 0
