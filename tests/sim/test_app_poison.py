"""A record that kills its worker costs one page: it is found, written down by digest, and the run goes on."""

from __future__ import annotations

from pathlib import Path

from corpus.app.views import Views
from tests.demo_corpus import DemoCorpus, corpus_cli, project_of

RULES = '''
"""A user signal with a defect: one text in the corpus crashes the process that measures it."""
import os
import signal

from corpus.filter.user_signals import signals


@signals(fragile="int64")
def fragile(texts, languages):
    if any("sourdough" in text.lower() for text in texts):
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"fragile": [len(text) for text in texts]}
'''


def test_a_page_that_crashes_the_worker_becomes_poison(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Pages whose text crashes a worker are outcome `poison`; every other page is measured, and the funnel adds up."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    (folder / "broken_rules.py").write_text(RULES, "utf-8")
    said = corpus_cli("process", "-c", folder / "corpus.toml", "--set", 'filter.rules=["broken_rules:fragile"]')
    assert said.code == 0, said.err
    project = project_of(folder)
    with Views(project) as views:
        outcomes = dict(
            tuple(row.values()) for row in views.query("SELECT outcome, count(*) n FROM documents GROUP BY 1").to_pylist()
        )
        poisoned = views.query("SELECT url, text FROM documents WHERE outcome = 'poison'").to_pylist()
        whole = views.query("SELECT count(*) n FROM documents").to_pylist()[0]["n"]
    assert 1 <= outcomes["poison"] <= 8
    assert all(row["text"] is None for row in poisoned)
    assert outcomes["ok"] + outcomes["poison"] >= 50
    assert sum(outcomes.values()) == whole
    again = corpus_cli("process", "-c", folder / "corpus.toml", "--set", 'filter.rules=["broken_rules:fragile"]', "--json")
    assert again.code == 0
    assert "to_measure 0" in again.err
