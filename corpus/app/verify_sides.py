"""Files beside the clusters of a snapshot under audit: one per key and record, copies of it with later snapshots.

What is wrong with one is mended by forgetting it: the next export compares the same documents again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from corpus.app import host_lines, page_versions
from corpus.app.project import Project
from corpus.app.snapshot import Snapshot
from corpus.app.verify_archive import check_file
from corpus.app.verify_faults import Findings, Kind, Mend
from corpus.app.verify_records import Records


@dataclass(frozen=True, slots=True)
class _Side:
    """A stage that writes `file` into snapshots for which `key` names a record (None: it asks for no such file)."""

    stage: str
    file: str
    key: Callable[[Snapshot], str | None]
    what: str


_SIDES = (
    _Side(
        host_lines.STAGE,
        host_lines.FILE,
        lambda s: host_lines.lines_key(s) if host_lines.pages_of(s) is not None else None,
        "host lines",
    ),
    _Side(
        page_versions.STAGE,
        page_versions.FILE,
        lambda s: page_versions.versions_key(s) if page_versions.takes_versions(s) else None,
        "versions",
    ),
)
SIDE_FILES = frozenset(side.file for side in _SIDES)


def check_sides(project: Project, records: Records, snapshots: dict[str, Snapshot], files: set[str], findings: Findings) -> None:
    """Every such file against its record, and every record against the snapshots. `files` are those under `snapshots/`."""
    for side in _SIDES:
        made = {record.key: record for record in records.of(side.stage)}
        asked = {digest: key for digest, snapshot in snapshots.items() if (key := side.key(snapshot)) is not None}
        for key in sorted(made.keys() - set(asked.values())):
            mend = _again(project, side, key, [])
            findings.add(Kind.RECORD, f"commits/{side.stage}/{key}.json", "it is of no snapshot there is", mend=mend)
        for file in sorted(name for name in files if name.endswith(f"/{side.file}")):
            record = made.get(asked.get(file.split("/")[1], ""))
            if record is None:
                findings.add(
                    Kind.UNRECORDED, file, f"{side.what} without a commit record", mend=_again(project, side, "", [file])
                )
            else:
                (digest,) = record.outputs.values()
                mend = _again(project, side, record.key if file in record.outputs else "", [file])
                check_file(project, file, digest, findings, mend=mend)
        for record in made.values():
            for file in sorted(set(record.outputs) - files):
                check_file(project, file, record.outputs[file], findings, mend=_again(project, side, record.key, []))


def _again(project: Project, side: _Side, key: str, files: list[str]) -> Mend:
    def mend() -> str:
        if key:
            project.commits.drop(side.stage, key)
        project.files.remove(files)
        return f"the {side.what} were removed: corpus export compares the documents again"

    return mend
