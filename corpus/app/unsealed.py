"""What is stored and cannot be processed yet: pages in archives that a crawl has not sealed. Looks at names only."""

from __future__ import annotations

from corpus.app.project import Project
from corpus.app.segments import open_files
from corpus.errors import NothingDone
from corpus.observe.runlog import Reporter
from corpus.store.locks import holder


def nothing_to_process(project: Project) -> NothingDone:
    """Why there is no segment to measure: nothing was stored, or it is still being written."""
    archives = _open(project)
    if not archives:
        return NothingDone(
            "no page has been stored yet, so there is nothing to process", hint="run corpus crawl or corpus ingest first"
        )
    crawl = _crawl(project)
    if crawl:
        said = f"the pages stored so far lie in {archives} archives that {crawl} has not sealed yet"
        hint = (
            "they are sealed at store.segment_bytes or store.segment_age, and at its end; corpus run processes them as they come"
        )
        return NothingDone(said, hint=hint)
    said = f"the pages stored so far lie in {archives} archives that an interrupted crawl left open"
    return NothingDone(said, hint="run corpus run or corpus crawl again: it makes them whole and goes on")


def note_unsealed(project: Project, report: Reporter) -> None:
    """Say what of a running crawl was left out."""
    archives, crawl = _open(project), _crawl(project)
    if archives and crawl:
        report(
            "note",
            what=f"{archives} archives that {crawl} has not sealed yet were left out; run this again later for their pages",
        )


def _open(project: Project) -> int:
    return sum(kind == "pages" for kind, _ in open_files(project))


def _crawl(project: Project) -> str:
    """The crawl that holds the folder now, in words; empty when none does."""
    found = holder(project.layout.locks / "crawl.lock")
    return f"the running crawl (process {found.get('pid', 'unknown')})" if found is not None else ""
