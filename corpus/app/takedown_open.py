"""Whether a takedown was begun and not finished: its plan is there, and its proof is not."""

from __future__ import annotations

from corpus.app.project import Project
from corpus.errors import StoreError
from corpus.store.commits import CommitRecord

PLAN = "takedown-plan"
STEP = "takedown"
_UNPROVED = "unproved"


def open_plan(project: Project) -> CommitRecord | None:
    """The plan of an apply that was interrupted; None when there is none. At most one is open."""
    keys = project.commits.keys(PLAN)
    if not keys or project.objects.exists(proof_name(keys[-1])) or unproved(project, keys[-1]) is not None:
        return None
    return project.commits.get(PLAN, keys[-1])


def proof_name(key: str) -> str:
    """Where the proof of an apply lies."""
    return f"proofs/takedown-{key}.json"


def unproved_key(plan: str) -> str:
    """Key of the step that ends a plan without a proof: all that can be read is removed, and something cannot be read."""
    return f"{plan}.{_UNPROVED}"


def unproved(project: Project, plan: str) -> CommitRecord | None:
    """That step of a plan; None where it has none."""
    return project.commits.get(STEP, unproved_key(plan))


def end_unproved(project: Project, plan: CommitRecord) -> None:
    """End a plan without a proof. Files and their records agree, so that other stages may go on; safe to repeat."""
    if unproved(project, plan.key) is None:
        info = {"number": int(plan.key), "control": plan.info["control"], "records": []}
        project.commits.put(CommitRecord(STEP, unproved_key(plan.key), info=info))


def refuse_half_done(project: Project) -> None:
    """Raises StoreError while a takedown is half carried out: its files and their records do not agree yet."""
    plan = open_plan(project)
    if plan is not None:
        raise StoreError(
            "a takedown was interrupted half-way", proof_name(plan.key), "run corpus takedown apply: it goes on where it was"
        )
