"""Takedowns under audit: each plan has its proof, and what a step says it rewrote is what is recorded now.

A proof that is missing means that an apply was interrupted: running it again is the repair, and only it knows how.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from corpus.app.project import Project
from corpus.app.takedown_open import proof_name, unproved_key
from corpus.app.verify_faults import Findings, Kind
from corpus.store.commits import CommitRecord

_SHAPES = ({"number", "control", "records"}, {"number", "control", "into", "lost", "manifest", "records"})
_KEYS = {
    "schema",
    "number",
    "control",
    "orders",
    "before",
    "after",
    "remaining",
    "looked_at",
    "rows",
    "rewritten",
    "removed",
    "superseded",
}


def takedown_step(record: CommitRecord) -> list[str]:
    """What a step record says against itself."""
    if set(record.info) not in _SHAPES:
        return ["it does not hold what records of its stage hold"]
    faults = [] if record.key.startswith(f"{int(record.info['number']):08d}.") else ["its key is not of its own number"]
    faults += [f"it rewrote {name} and does not say what it was" for name in record.outputs if name not in record.inputs]
    return faults


def check_takedowns(
    project: Project,
    plans: Iterable[CommitRecord],
    steps: Iterable[CommitRecord],
    segments: Mapping[str, str],
    findings: Findings,
) -> None:
    """Plans against proofs, and the last step of each segment against its record. `segments`: file → recorded digest."""
    steps = list(steps)
    ended = {step.key for step in steps}
    plans = sorted(plans, key=lambda plan: plan.key)
    proved = max((plan.key for plan in plans if project.objects.exists(proof_name(plan.key))), default="")
    for plan in plans:
        findings.count("takedowns")
        name = proof_name(plan.key)
        if not project.objects.exists(name) and unproved_key(plan.key) in ended:
            if plan.key > proved:
                findings.add(Kind.TAKEDOWN, name, "a takedown is without proof, because something could not be read")
            continue
        if not project.objects.exists(name):
            findings.add(Kind.TAKEDOWN, name, "a takedown was interrupted half-way: run corpus takedown apply")
            return
        _proof(project, plan, name, findings)
    last = {
        name: digest
        for step in sorted(steps, key=lambda step: step.key)
        for name, digest in step.outputs.items()
        if name in segments
    }
    for name, digest in sorted(last.items()):
        if segments[name] != digest:
            findings.add(Kind.TAKEDOWN, name, "it is not recorded as the takedown left it")


def _proof(project: Project, plan: CommitRecord, name: str, findings: Findings) -> None:
    try:
        told = json.loads(project.objects.get(name))
        whole = told.keys() >= _KEYS and (told["number"], told["control"]) == (int(plan.key), plan.info["control"])
        proves = whole and told["remaining"] == 0 and not any(told["after"].values())
    except (ValueError, TypeError, AttributeError):
        whole = proves = False
    if not whole:
        findings.add(Kind.TAKEDOWN, name, "the proof is damaged, or of another takedown")
    elif not proves:
        findings.add(Kind.TAKEDOWN, name, "it does not prove that nothing remains")
