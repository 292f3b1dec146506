"""`corpus push --purge-history`: make the hub forget every earlier revision, ask for each of them, and write down the answers.

What must be gone is written (create-only) before the first thing is deleted, so a purge that broke anywhere is taken up by
the next one, which also asks again for everything any earlier purge removed. A proof is written only when every answer was
404 and the newest release is still whole. Cannot be undone, and never touches the files of the newest revision.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

from corpus.app.hub import Hub
from corpus.app.hub_history import AGAIN, MAIN, Asked, HubHistory, Ref
from corpus.app.project import Project
from corpus.errors import StoreError
from corpus.store.commits import canonical_json
from corpus.store.objects import ObjectStore

PREFIX = "proofs/purge-"
_ASKED_PATHS = 3
"""Files asked for at each old revision, besides the revision itself."""
_NAMED = 5
_BY_HAND = "delete those refs on the hub's pages (close a pull request first), or ask its support; then run corpus push --purge-history again"


@dataclass(frozen=True, slots=True)
class Purge:
    """What stands in the way of there being one revision only. `revisions`: name → (a ref that reaches it, some of its files)."""

    repo: str
    revisions: dict[str, tuple[str, tuple[str, ...]]]
    refs: tuple[Ref, ...]
    large: dict[str, str]

    @classmethod
    def of(cls, hub: Hub, kept: Set[str] | None = None) -> Purge:
        """Look at the repository; nothing is changed. Nothing to purge: one revision, one ref, no large file but its own.

        `kept`: digests of the large files that stay; without it, those of the newest revision of main.
        """
        history = HubHistory(hub)
        refs = history.refs()
        kept = _kept(hub, refs) if kept is None else kept
        large = {digest: name for digest, name in history.large().items() if digest not in kept}
        others = tuple(ref for ref in refs if ref.name != MAIN and not _copies(hub, ref, kept))
        found = {ref.name: history.revisions(ref) for ref in refs if ref.name == MAIN or ref in others}
        reached: dict[str, str] = {}
        if others or large or len(found.get(MAIN, [])) > 1:
            for name, revisions in found.items():
                reached.update((revision, name) for revision in revisions if revision not in reached)
        return cls(hub.repo, {revision: (name, _some(hub, revision)) for revision, name in reached.items()}, others, large)

    def document(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "repo": self.repo,
            "revisions": {
                revision: {"ref": ref, "paths": list(paths)} for revision, (ref, paths) in sorted(self.revisions.items())
            },
            "refs": [ref.name for ref in self.refs],
            "large": dict(sorted(self.large.items())),
        }


def purge(project: Project, hub: Hub, *, release: str, at: float, check: Callable[[str], int]) -> dict[str, Any]:
    """Purge, ask, prove. `check` compares a revision with the release, file by file. Returns the proof, with its own name.

    Raises HubError when the hub refuses or cannot be reached, StoreError when it still serves what it was told to forget.
    """
    objects, history = project.objects, HubHistory(hub)
    planned = Purge.of(hub)
    if planned.revisions:
        _put(objects, "plan.json", planned.document())
        for ref in planned.refs:
            history.drop(ref)
        history.squash()
        if planned.large:
            history.delete_large(sorted(planned.large))
    wanted = _plans(objects, hub.repo)
    asked = {revision: history.ask(revision, facts["paths"]) for revision, facts in wanted["revisions"].items()}
    state = hub.state()
    commit = state[0] if state else ""
    _refuse(asked, wanted, Purge.of(hub))
    proof = {
        "schema": 1, "kind": "purge", "repo": hub.repo, "release": release, "at": at, "commit": commit, "files_read_back": check(commit),
        "refs": wanted["refs"], "large": wanted["large"],
        "now": {"revisions": len(planned.revisions), "refs": len(planned.refs), "large": len(planned.large)},
        "revisions": {
            revision: {"ref": wanted["revisions"][revision]["ref"], "asked": [{"what": a.what, "status": a.status} for a in answers]}
            for revision, answers in asked.items()
        },
    }  # fmt: skip
    return proof | {"proof": _put(objects, "json", proof)}


def _kept(hub: Hub, refs: list[Ref]) -> set[str]:
    """Digests of the large files of the newest revision of main."""
    main = next((ref.commit for ref in refs if ref.name == MAIN), "")
    return {file.digest for file in hub.files(main).values() if file.large} if main else set()


def _copies(hub: Hub, ref: Ref, kept: Set[str]) -> bool:
    """Whether a ref is the hub's own conversion of the newest revision: it makes those by itself, again and again."""
    return ref.kind == "convert" and all(file.digest in kept for file in hub.files(ref.commit).values() if file.large)


def _some(hub: Hub, revision: str) -> tuple[str, ...]:
    """A few files of a revision to ask for afterwards: large ones first, which hold the texts."""
    files = hub.files(revision)
    return tuple(sorted(files, key=lambda path: (not files[path].large, path))[:_ASKED_PATHS])


def _plans(objects: ObjectStore, repo: str) -> dict[str, Any]:
    """Everything that any purge of this repository set out to remove."""
    together: dict[str, Any] = {"revisions": {}, "refs": [], "large": {}}
    for name in objects.list(PREFIX):
        if not name.endswith(".plan.json"):
            continue
        plan = json.loads(objects.get(name))
        if plan["repo"] == repo:
            together["revisions"] |= plan["revisions"]
            together["large"] |= plan["large"]
            together["refs"] += [ref for ref in plan["refs"] if ref not in together["refs"]]
    return together


def _refuse(asked: dict[str, list[Asked]], wanted: dict[str, Any], now: Purge) -> None:
    """Raise StoreError unless everything that was asked for is gone and nothing else holds on to the past."""
    served = [revision for revision, answers in asked.items() if not all(answer.gone for answer in answers)]
    if served:
        named = ", ".join(f"{revision[:12]} ({wanted['revisions'][revision]['ref']})" for revision in served[:_NAMED])
        raise StoreError(f"the hub still serves {len(served)} of {len(asked)} old revisions: {named}", now.repo, _BY_HAND)
    if now.refs:
        named = ", ".join(ref.name for ref in now.refs[:_NAMED])
        raise StoreError(f"{len(now.refs)} refs still hold files of old revisions: {named}", now.repo, _BY_HAND)
    if now.large:
        named = ", ".join(list(now.large)[:_NAMED])
        raise StoreError(f"the hub still keeps {len(now.large)} large files of old revisions: {named}", now.repo, AGAIN)
    if now.revisions:
        raise StoreError(f"main still has {len(now.revisions)} revisions", now.repo, AGAIN)


def _put(objects: ObjectStore, ending: str, document: dict[str, Any]) -> str:
    """Write under the next free number; the object's name."""
    number = 1 + max((int(name.removeprefix(PREFIX)[:8]) for name in objects.list(PREFIX)), default=0)
    name = f"{PREFIX}{number:08d}.{ending}"
    objects.put_new(name, canonical_json(document, name) + b"\n")
    return name
