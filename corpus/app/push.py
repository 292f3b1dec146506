"""Publish the newest release: only what differs, in as few commits as possible, and read back what arrived.

A push is refused, with every reason, while a takedown is newer than the release, while the card waits for a person, or
while the folder is not what its manifest says. It keeps no state of its own: what the hub holds is the state, so a push
that broke is simply run again. It deletes shards that are gone and never touches a file that is not ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.app.hub import Hub, HubError, RemoteFile
from corpus.app.project import Project
from corpus.app.push_purge import Purge, purge
from corpus.app.release import release_folder, release_records
from corpus.app.snapshot import load_snapshot
from corpus.app.takedown_orders import completed
from corpus.app.takedown_targets import REMOVING
from corpus.errors import StoreError, UsageError
from corpus.export.card import TO_DO
from corpus.store.commits import CommitRecord, file_sha256

CARD, MANIFEST = "README.md", "manifest.json"
SIDE_FILES = (CARD, MANIFEST, "croissant.json", "domains.csv", "TOMBSTONES.parquet", "corpus.toml")


@dataclass(slots=True)
class Push:
    """What a push would do or has done. Paths are relative to the release; sizes are bytes."""

    repo: str
    release: str
    blocked: list[str]
    upload: list[tuple[str, int]] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    unchanged: int = 0
    notes: list[str] = field(default_factory=list)
    commit: str | None = None
    verified: int = 0
    purge: dict[str, Any] | None = None
    """What `--purge-history` would make the hub forget, or the proof that it has forgotten."""

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.upload)

    def document(self, *, dry_run: bool) -> dict[str, Any]:
        """The JSON form."""
        return {
            "repo": self.repo, "release": self.release, "dry_run": dry_run, "blocked": self.blocked,
            "upload": [{"path": path, "bytes": size} for path, size in self.upload], "delete": self.delete,
            "unchanged": self.unchanged, "bytes": self.bytes, "commit": self.commit, "verified": self.verified, "notes": self.notes,
            "purge": self.purge,
        }  # fmt: skip


def push(project: Project, *, dry_run: bool, purge_at: float | None = None) -> Push:
    """Push the newest release to `publish.repo`, or say what that would do. With `purge_at` (epoch seconds: now), make the hub
    forget every earlier revision afterwards.

    Raises UsageError without a repository, StoreError without a release or when something else arrived than was sent, and
    HubError in plain words when the hub refuses. A blocked push changes nothing and contacts the hub only in a dry run.
    """
    repo = project.config.publish.repo
    if not repo:
        raise UsageError("there is no repository to push to", "publish.repo", 'set publish.repo = "owner/name"')
    record = newest_release(project)
    folder = release_folder(project, record.key)
    told = Push(repo, record.key, list(blocks(project, record, folder)))
    if told.blocked and not dry_run:
        return told
    local = _local_files(folder)
    hub = Hub(repo)
    try:
        state = hub.state()
        head = state[0] if state else ""
        remote = hub.files(head) if head else {}
    except HubError as error:
        if not dry_run:
            raise
        told.notes.append(f"the hub could not be asked, so everything is listed: {error.what}")
        state, head, remote = None, "", {}
    _compare(told, local, remote)
    if state and project.config.publish.private and not state[1]:
        told.notes.append("the repository is public, although publish.private is true")
    if dry_run:
        if purge_at is not None and state:
            told.purge = Purge.of(hub, _staying(told, folder, remote)).document()
        return told
    head = head or hub.create(private=project.config.publish.private)
    if told.upload or told.delete:
        message = f"Release {record.key}"
        told.commit = hub.upload(folder, [path for path, _ in told.upload], told.delete, parent=head, message=message)
    else:
        told.commit = head
    told.verified = _read_back(hub, told.commit, local)
    if purge_at is not None:
        told.purge = purge(project, hub, release=record.key, at=purge_at, check=lambda commit: _read_back(hub, commit, local))
        told.commit = str(told.purge["commit"])
    return told


def newest_release(project: Project) -> CommitRecord:
    """The record of the release made last. Raises StoreError when there is none."""
    records = release_records(project)
    if not records:
        raise StoreError("there is no release yet", str(project.layout.releases), "run corpus export first")
    return records[-1]


def blocks(project: Project, record: CommitRecord, folder: Path) -> Iterator[str]:
    """Every reason not to publish a release, as a sentence."""
    yield from _unapplied(project, record)
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        described = {shard["path"]: shard for shard in manifest["shards"]} | manifest["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield f"the manifest cannot be read ({type(error).__name__}): run corpus verify"
        return
    if manifest.get("withdrawn"):
        yield "the release is withdrawn: push the one that replaced it"
    yield from _card(folder)
    yield from _disagreements(project, record, folder, described)
    if (said := manifest["options"]["license"]) != (wanted := project.config.publish.license):
        yield f"the card states the licence {said!r} and publish.license is {wanted!r}: export anew"


def _unapplied(project: Project, record: CommitRecord) -> Iterator[str]:
    """Takedowns that came after the release was made, and other removals that no apply has carried out yet."""
    snapshot = load_snapshot(project, str(record.info["snapshot"]))
    known = max(int(snapshot.facts["control"]), int(record.info.get("control", 0)))
    carried = max((int(proof["control"]) for _, proof in completed(project)), default=0)
    newer = [e.n for e in project.control.read(after=known) if e.action == "takedown" or (e.action in REMOVING and e.n > carried)]
    if newer:
        yield (
            f"{len(newer)} takedowns are newer than the release (the last is order {newer[-1]}): run corpus takedown apply, or corpus export "
            "--name with a new name"
        )


def _card(folder: Path) -> Iterator[str]:
    try:
        marked = [number for number, line in enumerate((folder / CARD).read_text("utf-8").splitlines(), 1) if TO_DO in line]
    except (OSError, ValueError) as error:
        yield f"the card cannot be read ({type(error).__name__}): run corpus verify"
        return
    if marked:
        lines = ", ".join(map(str, marked))
        yield f"the card still waits for a person at lines {lines}: write these parts into the file publish.card names, and export anew"


def _disagreements(project: Project, record: CommitRecord, folder: Path, described: dict[str, Any]) -> Iterator[str]:
    """Files that are not what the manifest says. The card may differ: a person may have written into it."""
    for path, facts in sorted(described.items()):
        file = folder / path
        if not file.is_file():
            yield f"{path}: the manifest describes it, and it is not there: run corpus verify"
        elif path != CARD and (file.stat().st_size != facts["bytes"] or file_sha256(file) != facts["sha256"]):
            yield f"{path}: its bytes are not what the manifest says: run corpus verify"
    for path in sorted(_local_files(folder)):
        if path != MANIFEST and path not in described:
            yield f"{path}: the manifest does not describe it: run corpus verify"
    recorded = record.outputs.get(project.layout.relative(folder / MANIFEST))
    if recorded is not None and recorded != file_sha256(folder / MANIFEST):
        yield f"{MANIFEST}: it is not the one this release was recorded with: run corpus verify"


def _local_files(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def _compare(told: Push, local: dict[str, Path], remote: dict[str, RemoteFile]) -> None:
    """What to send and what to delete. Only files a release may own are ever deleted."""
    for path, file in local.items():
        there = remote.get(path)
        if there is not None and there.is_file(file):
            told.unchanged += 1
        else:
            told.upload.append((path, file.stat().st_size))
    told.delete = sorted(path for path in remote if path not in local and _ours(path))


def _staying(told: Push, folder: Path, remote: dict[str, RemoteFile]) -> set[str]:
    """Digests of the large files that the repository will hold after this push."""
    changed = {path for path, _ in told.upload} | set(told.delete)
    shards = json.loads((folder / MANIFEST).read_text("utf-8"))["shards"]
    return {str(shard["sha256"]) for shard in shards} | {
        file.digest for path, file in remote.items() if file.large and path not in changed
    }


def _ours(path: str) -> bool:
    return path in SIDE_FILES or (path.startswith("data/crawl_id=") and path.endswith(".parquet"))


def _read_back(hub: Hub, commit: str, local: dict[str, Path]) -> int:
    """Compare what the hub now holds, digest by digest, and the manifest byte by byte. Returns the number of files."""
    remote = hub.files(commit)
    wrong = sorted(path for path, file in local.items() if path not in remote or not remote[path].is_file(file))
    wrong += sorted(path for path in remote if path not in local and _ours(path))
    if not wrong and hub.read(MANIFEST, commit) != local[MANIFEST].read_bytes():
        wrong.append(MANIFEST)
    if wrong:
        raise StoreError(
            f"{len(wrong)} files on the hub are not what was sent: {', '.join(wrong[:5])}", hub.repo, "run corpus push again"
        )
    return len(local)
