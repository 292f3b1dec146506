"""`corpus verify`: a file system check of a corpus folder, from archive to release.

Reads every byte that a record, a digest or a reference covers, and names each fault with its file. With `repair` it mends
what can be made again from what is whole, says what it did, and looks again. It never touches a byte of an archive that
was acknowledged, a document's text or a release.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from corpus.app.fleet_status import refuse_beside_workers, workers_there
from corpus.app.project import Project
from corpus.app.segments import STAGE as SEGMENT
from corpus.app.takedown_open import PLAN, STEP
from corpus.app.verify_archive import check_families, check_leftovers, check_segments
from corpus.app.verify_catalog import check_catalog, rebuild_catalog
from corpus.app.verify_consent import check_consent, check_control
from corpus.app.verify_faults import Finding, Findings, Kind
from corpus.app.verify_index import check_index
from corpus.app.verify_records import read_records
from corpus.app.verify_refs import Places, check_acked_ends, check_frontier
from corpus.app.verify_release import check_funnel, check_releases, check_snapshots
from corpus.app.verify_takedown import check_takedowns
from corpus.errors import CorpusError
from corpus.observe.runlog import Reporter
from corpus.store.locks import holder, stage_lock

STAGES = ("crawl", "process", "export")
ROUNDS = 4
"""Looks at the folder at most: a repair may bring the next thing to light (a record goes, then its files have none)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`faults` holds what was repaired too; `ok` when nothing else is among them. `checked` counts what was looked at."""

    checked: dict[str, int]
    faults: list[Finding]
    running: str = ""

    @property
    def ok(self) -> bool:
        return all(fault.repaired for fault in self.faults)

    def document(self) -> dict[str, Any]:
        """CONTRACT's `verify` document."""
        return {"ok": self.ok, "checked": self.checked, "faults": [fault.document() for fault in self.faults]}


def verify(project: Project, report: Reporter, *, repair: bool = False, rebuild: bool = False) -> Verdict:
    """Check a folder, and with `repair` mend it; with `rebuild` make its catalog again first.

    Raises Locked when a repair meets a running stage, or a rebuild an export.
    """
    if rebuild:
        rebuild_catalog(project, report)
    project = project.uncached()  # what is durable is under audit, not what this machine keeps of it
    if not repair:
        running = _running(project)
        findings = check(project, report, running=bool(running))
        return Verdict(findings.checked, findings.all(), running)
    refuse_beside_workers(project)  # before the locks, one of which a worker of this machine shares
    with ExitStack() as stack:
        for stage in STAGES:
            stack.enter_context(stage_lock(project.layout.locks, stage))
        refuse_beside_workers(project)
        repaired: list[Finding] = []
        findings = check(project, report)
        for _ in range(ROUNDS - 1):
            mended = _mend(findings, report)
            if not mended:
                break
            repaired += mended
            findings = check(project, report)
        return Verdict(findings.checked, [*repaired, *findings.all()])


def check(project: Project, report: Reporter, *, running: bool = False) -> Findings:
    """One look at everything. While a stage is running, what may be half done is left alone."""
    findings = Findings()
    if not running:
        check_leftovers(project, findings)  # first: what follows spills
    with Places(project) as places:
        report("verify", what="frontier")
        check_frontier(project, findings, places, running=running)  # before the segments: what it names is on disk by then
        records = read_records(project, findings)
        report("verify", what="segments")
        clean = check_segments(project, records, findings, places, running=running)
        check_acked_ends(project, findings)
        check_index(project, records, findings, clean)
        check_takedowns(project, records.of(PLAN), records.of(STEP), records.outputs(SEGMENT), findings)
        report("verify", what="documents")
        documents = check_families(project, records, findings, clean, running=running)
        places.claim_files("a document", project.files.all_local(documents))
        report("verify", what="snapshots and releases")
        snapshots = check_snapshots(project, records, findings)
        check_releases(project, records, snapshots, findings, places)
        check_catalog(project, records, findings)
        places.check(findings)
    report("verify", what="consent")
    check_consent(project, snapshots, findings)
    check_control(project, findings)
    if not running and not findings.found(Kind.RECORD, Kind.MISSING, Kind.DIGEST, Kind.FRONTIER):  # nothing to count with
        check_funnel(project, records, snapshots, findings)
    return findings


def _mend(findings: Findings, report: Reporter) -> list[Finding]:
    """Mend what can be mended; a repair that several faults share is done once."""
    done = []
    for fault in findings.faults:
        if fault.mend is None:
            continue
        try:
            fault.message += f" ({fault.mend()})"
        except (CorpusError, OSError) as error:
            report("repair failed", file=fault.file, why=str(error))
            continue
        fault.repaired = True
        done.append(fault)
    return done


def _running(project: Project) -> str:
    for stage in STAGES:
        found = holder(project.layout.locks / f"{stage}.lock")
        if found:
            return f"{stage} by process {found.get('pid')} on {found.get('host')}"
    workers = workers_there(project)
    return f"crawl by {len(workers)} workers" if workers else ""
