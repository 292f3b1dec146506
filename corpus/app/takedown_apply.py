"""`corpus takedown apply`: what orders cover is removed from every file there is, and a second look at everything proves it.

The plan is written first, create-only, and says which orders count. Each step after it can be repeated: an apply that was
killed at any moment goes on where it was when it is run again. The proof comes last; while there is a plan without one,
stages that would build on half-rewritten files refuse to start.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from corpus.app.fleet_status import refuse_beside_workers
from corpus.app.prepare import recover
from corpus.app.project import Project
from corpus.app.release import release_records
from corpus.app.segments import STAGE as SEGMENT
from corpus.app.segments import record_unrecorded
from corpus.app.takedown_auto import found as automatic_orders
from corpus.app.takedown_auto import order
from corpus.app.takedown_follow import follow_up
from corpus.app.takedown_frontier import exclude
from corpus.app.takedown_open import PLAN, STEP, end_unproved, open_plan, proof_name, unproved
from corpus.app.takedown_orders import completed, iso
from corpus.app.takedown_release import Superseded, supersede_release
from corpus.app.takedown_scan import Scan, forget_catalog, run, scan, segment_tasks, tidy
from corpus.app.takedown_segment import DAMAGED, SegmentTask, announce, install, installed, supersede
from corpus.app.takedown_targets import REMOVING, Targets, targets_of
from corpus.engine.tasks import Engine
from corpus.errors import CorpusError, StoreError
from corpus.observe.runlog import Reporter
from corpus.store.commits import CommitRecord, canonical_json
from corpus.store.control_log import ControlEntry
from corpus.store.locks import stage_lock
from corpus.store.objects import put_same

STAGES = ("crawl", "process", "export")
KEPT = (
    "statement files of sites (robots.txt, tdmrep.json, ai.txt, RSL) and the consent log: evidence of what was allowed",
    "URLs in the frontier, in decisions and in run logs: without them a page would be asked for again",
    "ids and similarities in clusters and pairs",
)
"""What a takedown leaves, on purpose; none of it is a page's text."""


@dataclass(slots=True)
class Applied:
    """What an apply did. `proof` names the object under the root; empty when nothing was ever removed."""

    rows_before: int
    rows_after: int
    remaining: int
    shards_rewritten: int
    proof: str
    orders: int = 0
    removed: dict[str, int] = field(default_factory=dict)
    releases: list[Superseded] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """CONTRACT's `takedown apply` document, and what was removed where."""
        return {
            "rows_before": self.rows_before, "rows_after": self.rows_after, "remaining": self.remaining,
            "shards_rewritten": self.shards_rewritten, "proof": self.proof, "orders": self.orders, "removed": self.removed,
            "superseded": {item.name: item.into for item in self.releases if item.into},
        }  # fmt: skip


def apply(project: Project, engine: Engine, report: Reporter, *, at: float | None = None) -> Applied:
    """Carry out every order that is not carried out yet. Raises Locked while a stage is running, StoreError where something
    cannot be read (what could be was removed all the same, and no proof is given)."""
    now = time.time() if at is None else at
    refuse_beside_workers(project)  # before the locks, one of which a worker of this machine shares
    with ExitStack() as stack:
        for stage in STAGES:
            stack.enter_context(stage_lock(project.layout.locks, stage))
        refuse_beside_workers(project)
        return _apply(project, engine, report, now)


def _apply(project: Project, engine: Engine, report: Reporter, now: float) -> Applied:
    plan = open_plan(project)
    if plan is None:
        order(project, automatic_orders(project, now), now)
        follow_up(project, now)
    version = int(plan.info["control"]) if plan else project.control.version()
    orders = list(project.control.read(upto=version))
    targets, causes = targets_of(orders, version), causes_of(orders)
    tidy(project)
    recover(project)
    record_unrecorded(project)
    if plan is not None:
        report("takedown", what="goes on with an apply that was interrupted", number=int(plan.key))
        _settle_records(project, int(plan.key))
    report("takedown", what="looking at everything", orders=sum(entry.action in REMOVING for entry in orders))
    before = scan(project, engine, targets, causes)
    if plan is None:
        done = completed(project)
        pending = any(entry.action in REMOVING and entry.n > (done[-1][1]["control"] if done else 0) for entry in orders)
        keys = project.commits.keys(PLAN)
        last = unproved(project, keys[-1]) if keys else None
        if before.faults and not before.remaining and last is not None and last.info["control"] == version:
            raise _no_proof(before)  # as it was said before
        if not before.remaining and not pending:
            return Applied(before.live_rows, before.live_rows, 0, 0, done[-1][0] if done else "")
        plan = _plan(project, version, before)
        project.commits.put(plan)
    return _carry_out(project, engine, report, plan, before, orders, targets, causes, now)


def _carry_out(
    project: Project, engine: Engine, report: Reporter, plan: CommitRecord, before: Scan, orders: list[ControlEntry],
    targets: Targets, causes: dict[str, str], now: float,
) -> Applied:  # fmt: skip
    number = int(plan.key)
    _segments(project, engine, report, number, targets, before.touched)
    releases = []
    for record in release_records(project):
        told = supersede_release(project, record, number, targets)
        if told is not None:
            releases.append(told)
            report(
                "takedown",
                release=told.name,
                superseded_by=told.into,
                rows=told.removed,
                shards=told.shards,
                promoted=told.promoted,
            )
    exclude(project, targets, causes)
    forget_catalog(project)
    tidy(project)
    report("takedown", what="looking at everything again")
    after = scan(project, engine, targets, causes)
    if after.remaining:
        raise CorpusError(
            f"{after.remaining} things are still there: {after.found}", "takedown apply", "report it: this is a defect"
        )
    if after.faults:
        end_unproved(project, plan)
        raise _no_proof(after)
    return _prove(project, plan, orders, before, after, releases, now)


def _no_proof(told: Scan) -> StoreError:
    """All that can be read is done, and something cannot be read."""
    (file, offset, reason), n = told.faults[0], len(told.faults)
    return StoreError(
        f"what can be read was removed, but {n} places cannot be read, so no proof is given (at {offset}: {reason})", file,
        "corpus verify names the damage; with a whole copy in its place, corpus takedown apply gives the proof; other stages go on",
    )  # fmt: skip


def _segments(project: Project, engine: Engine, report: Reporter, number: int, targets: Targets, touched: set[str]) -> None:
    """Rewrite the segments that hold something, and finish those an interrupted apply had begun."""
    steps = {step.key: step for step in _steps(project, number)}
    tasks: list[SegmentTask] = []
    for task in segment_tasks(project, number, targets):
        step = steps.get(task.key)
        damaged = step is not None and bool(step.rows.get(DAMAGED))
        if step is not None and installed(project, step) and not (damaged and task.file in touched):
            install(project, step, None)
        elif step is not None or task.file in touched:
            tasks.append(replace(task, again=step is not None, damaged=damaged))
    for done, made in enumerate(run(project, engine, "make", tasks), 1):
        if isinstance(made, CommitRecord):
            known = steps.get(made.key)
            if known is None:
                announce(project, made)
            install(project, known or made, made)
        report("progress", segments=done, of=len(tasks))


def _steps(project: Project, number: int) -> list[CommitRecord]:
    """Step records of one apply."""
    keys = [key for key in project.commits.keys(STEP) if key.startswith(f"{number:08d}.")]
    return [step for key in keys if (step := project.commits.get(STEP, key)) is not None]


def _settle_records(project: Project, number: int) -> None:
    """A kill between two records may have left a segment without one: steps know what is true."""
    for step in _steps(project, number):
        lost = [value for value in step.info["records"] if value["record"]["stage"] == SEGMENT]
        if any(project.commits.get(SEGMENT, value["record"]["key"]) is None for value in lost):
            supersede(project, step)


def _plan(project: Project, version: int, before: Scan) -> CommitRecord:
    """What is about to be done: which orders count, and what was found."""
    keys = project.commits.keys(PLAN)
    number = int(keys[-1]) + 1 if keys else 1
    info = {"control": version, "rows": before.live_rows, "seen": before.seen}
    return CommitRecord(PLAN, f"{number:08d}", rows=dict(before.found), info=info)


def _prove(
    project: Project,
    plan: CommitRecord,
    orders: Iterable[ControlEntry],
    before: Scan,
    after: Scan,
    releases: list[Superseded],
    now: float,
) -> Applied:
    """Write the proof, once."""
    keys = [key for key in project.commits.keys(PLAN) if key == plan.key or not project.objects.exists(proof_name(key))]
    steps = [step for key in keys for step in _steps(project, int(key))]  # of applies before that gave no proof, too
    last = max((told["control"] for _, told in completed(project)), default=0)
    carried = [entry for entry in orders if entry.action in REMOVING and entry.n > last]
    shards = sum(step.rows.get("shards", 0) for step in steps)
    told = {
        "schema": 1, "number": int(plan.key), "at": iso(now), "control": plan.info["control"],
        "orders": [
            {"n": entry.n, "action": entry.action, "kind": entry.kind, "value": entry.value, "cause": entry.detail.get("cause", "request")}
            for entry in carried
        ],
        "before": dict(plan.rows), "after": dict(after.found), "remaining": after.remaining, "looked_at": dict(after.seen),
        "rows": {"before": plan.info["rows"], "after": after.live_rows}, "shards_rewritten": shards,
        "rewritten": [
            {"file": name, "before": step.inputs[name], "after": digest} for step in steps for name, digest in sorted(step.outputs.items())
        ],
        "removed": sorted(name for step in steps for name in step.info.get("lost", ())),
        "superseded": {step.key.split(".release.", 1)[1]: step.info["into"] for step in steps if ".release." in step.key and step.info["into"]},
        "kept": list(KEPT),
    }  # fmt: skip
    name = proof_name(plan.key)
    put_same(project.objects, name, canonical_json(told, name) + b"\n")
    written = json.loads(project.objects.get(name))
    return Applied(
        written["rows"]["before"], written["rows"]["after"], written["remaining"], written["shards_rewritten"], name,
        len(carried), written["before"], releases,
    )  # fmt: skip


def causes_of(orders: Iterable[ControlEntry]) -> dict[str, str]:
    """The reason code of each purge, by `url_id` or domain."""
    names = {"unavailable-after": "x-robots-tag"}
    found: dict[str, str] = {}
    for entry in orders:
        if entry.action == "purge":
            cause = str(entry.detail.get("cause", "operator-list"))
            found |= dict.fromkeys((entry.value, *entry.members), names.get(cause, cause))
    return found
