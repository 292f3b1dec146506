"""The index under audit: each CDXJ file against its record, and against the segment it speaks of.

Whatever is wrong with an index is mended by forgetting it: the stage makes it again from its segment.
"""

from __future__ import annotations

from corpus.app.index_file import STAGE as INDEX
from corpus.app.project import Project
from corpus.app.segments import STAGE as SEGMENT
from corpus.app.verify_archive import check_file
from corpus.app.verify_faults import Findings, Kind, Mend
from corpus.app.verify_records import Records
from corpus.store.cdxj import index_lines


def check_index(project: Project, records: Records, findings: Findings, clean: set[str]) -> None:
    """Every index file and record. `clean` names segments without a fault: theirs are compared line by line."""
    segments = records.outputs(SEGMENT)
    for record in records.of(INDEX):
        ((segment, digest),), ((file, told),) = record.inputs.items(), record.outputs.items()
        mend = _again(project, record.key, file)
        findings.count("indexes")
        if segments.get(segment) != digest:
            findings.add(
                Kind.RECORD, f"commits/{INDEX}/{record.key}.json", f"it indexed {segment}, which is not recorded so", mend=mend
            )
        elif check_file(project, file, told, findings, mend=mend) and segment in clean:
            lines = index_lines(project.file(segment, digest), segment)
            if project.file(file, told).read_bytes() != b"".join(lines) or len(lines) != record.rows["captures"]:
                findings.add(Kind.ROWS, file, "it does not say where the captures of its segment lie", mend=mend)
    named = records.outputs(INDEX)
    for name in project.files.names("cdxj"):
        if name not in named:
            findings.add(Kind.UNRECORDED, name, "an index without a commit record", mend=_again(project, "", name))


def _again(project: Project, key: str, file: str) -> Mend:
    def mend() -> str:
        if key:
            project.commits.drop(INDEX, key)
        project.files.remove([file])
        return "the index was removed: corpus process makes it again"

    return mend
