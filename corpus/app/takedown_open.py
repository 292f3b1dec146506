"""Whether a takedown was begun and not finished: its plan is there, and its proof is not."""

from __future__ import annotations

from corpus.app.project import Project
from corpus.errors import StoreError
from corpus.store.commits import CommitRecord

PLAN = "takedown-plan"


def open_plan(project: Project) -> CommitRecord | None:
    """The plan of an apply that was interrupted; None when there is none. At most one is open."""
    keys = project.commits.keys(PLAN)
    if not keys or project.objects.exists(proof_name(keys[-1])):
        return None
    return project.commits.get(PLAN, keys[-1])


def proof_name(key: str) -> str:
    """Where the proof of an apply lies."""
    return f"proofs/takedown-{key}.json"


def refuse_half_done(project: Project) -> None:
    """Raises StoreError while a takedown is half carried out: its files and their records do not agree yet."""
    plan = open_plan(project)
    if plan is not None:
        raise StoreError(
            "a takedown was interrupted half-way", proof_name(plan.key), "run corpus takedown apply: it goes on where it was"
        )
