"""The archive under audit: segments against their records, every WARC record against its digests, family files against theirs.

One record of one segment is in memory at a time. Where captures lie goes into `Places`, for the references to be checked
against; a folder in which a run is on is only checked where nothing can be half written.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.map_task import STAGE as MAP
from corpus.app.prepare import acked_ends
from corpus.app.project import Project
from corpus.app.segments import STAGE as SEGMENT
from corpus.app.segments import origin_of, record_segment, sealed_names, unfinished
from corpus.app.verify_faults import Findings, Kind, Mend
from corpus.app.verify_records import Records
from corpus.app.verify_refs import Places
from corpus.store.commits import CommitRecord, file_sha256
from corpus.store.layout import FAMILIES, OPEN_SUFFIX
from corpus.store.warc_check import SegmentCount, check_segment
from corpus.store.warc_recover import describe, recover_open
from corpus.store.warc_stream import Fault


def check_segments(project: Project, records: Records, findings: Findings, places: Places, *, running: bool) -> set[str]:
    """Every segment of pages, policy files and sealed pages. Returns the files without any fault."""
    clean = set()
    known = {file: record for record in records.of(SEGMENT) for file in record.outputs}
    for file, record in sorted(known.items()):
        if check_file(project, file, record.outputs[file], findings):
            before = len(findings.faults)
            _walk(project, file, record, findings, places)
            if len(findings.faults) == before:
                clean.add(file)
        else:
            places.leave_out(file)
    for kind, file in sealed_names(project):
        if file not in known:
            places.leave_out(file)
            if not running:
                findings.add(Kind.UNRECORDED, file, "a sealed segment without a commit record", mend=_record(project, kind, file))
    for kind, path in unfinished(project, set(known)):
        file = project.layout.relative(path)
        places.leave_out(file.removesuffix(OPEN_SUFFIX))
        if not running:
            findings.add(Kind.OPEN, file, "a segment was left open, and no run is on", mend=_seal(project, kind, path))
    _strangers(project, findings)
    return clean


def check_file(project: Project, file: str, digest: str, findings: Findings, *, mend: Mend | None = None) -> bool:
    """Whether a file is there with the bytes that were recorded; a fault when not."""
    findings.count("files")
    path = project.files.reread(file)
    if path is None:
        findings.add(Kind.MISSING, file, "recorded, and not there", mend=mend)
        return False
    if file_sha256(path) != digest:
        findings.add(Kind.DIGEST, file, "its bytes are not those that were recorded", mend=mend)
        if file.endswith(".warc.gz"):
            _locate(path, file, findings)
        return False
    return True


def _locate(path: Path, file: str, findings: Findings) -> None:
    """Where a damaged segment is damaged."""
    for item in check_segment(path, SegmentCount()):
        if isinstance(item, Fault):
            findings.add(Kind.WARC, file, item.reason, offset=item.offset)


def _walk(project: Project, file: str, record: CommitRecord, findings: Findings, places: Places) -> None:
    count = SegmentCount()

    def located() -> Iterator[tuple[str, int, int, str]]:
        for item in check_segment(project.file(file), count):
            if isinstance(item, Fault):
                findings.add(Kind.WARC, file, item.reason, offset=item.offset)
            else:
                yield file, item.offset, item.length, item.url_id

    places.put(located())
    findings.count("segments")
    findings.count("warc_records", count.records)
    found = {"pages": count.captures, "records": count.records, "bytes": count.end}
    said = {**record.rows, "bytes": record.info.get("bytes")}
    findings_of = [f"{name}: recorded {said.get(name)}, found {n}" for name, n in found.items() if said.get(name) != n]
    if findings_of:
        findings.add(Kind.ROWS, file, "; ".join(findings_of))


def _record(project: Project, kind: str, name: str) -> Mend:
    def mend() -> str:
        path = project.file(name)
        crawl_id = path.parent.name.removeprefix("crawl_id=")
        record_segment(project, describe(path, name), kind=kind, crawl_id=crawl_id, origin=origin_of(name))
        return "every record in it is whole, and it was recorded"

    return mend


def _seal(project: Project, kind: str, path: Path) -> Mend:
    def mend() -> str:
        name = project.layout.relative(path).removesuffix(OPEN_SUFFIX)
        if project.remote:
            path.unlink(missing_ok=True)
            return "removed: nothing in it was acknowledged"
        before = path.stat().st_size
        sealed = recover_open(path, acked_ends(project, [name]).get(name, 0), layout=project.layout)
        if sealed is None:
            return "removed: nothing in it was acknowledged"
        record_segment(project, sealed, kind=kind, crawl_id=path.parent.name.removeprefix("crawl_id="), origin=origin_of(name))
        return f"cut by {before - sealed.bytes} bytes to what was acknowledged, sealed and recorded"

    return mend


def _strangers(project: Project, findings: Findings) -> None:
    """Files among the segments that no crawl writes."""
    for name in [*project.files.names("warc"), *project.files.names("sealed")]:
        if not name.endswith((".warc.gz", f".warc.gz{OPEN_SUFFIX}")):
            findings.add(Kind.UNRECORDED, name, "no crawl writes such a file here")


def check_families(project: Project, records: Records, findings: Findings, clean: set[str], *, running: bool) -> list[str]:
    """Family files against the records of the map stage. Returns the `documents` files that are as recorded."""
    segments = {file: record for record in records.of(SEGMENT) for file in record.outputs}
    good, named = [], set(records.outputs(MAP))
    for record in records.of(MAP):
        before = len(findings.faults)
        mend = _measure_again(project, record)
        (source,) = (name for name in record.inputs if name.startswith("warc/"))
        segment = segments.get(source)
        if segment is None or segment.outputs[source] != record.inputs[source]:
            findings.add(
                Kind.RECORD, f"commits/{MAP}/{record.key}.json", f"it measured {source}, which is not recorded so", mend=mend
            )
        for file, digest in sorted(record.outputs.items()):
            if check_file(project, file, digest, findings, mend=mend):
                _rows(project, file, record, findings, mend)
        if sorted(file.split("/", 1)[0] for file in record.outputs) != sorted(FAMILIES):
            findings.add(Kind.RECORD, f"commits/{MAP}/{record.key}.json", "it does not name one file of each family", mend=mend)
        told = sum(record.rows.get(name, 0) for name in ("documents", "skipped", "repeats"))
        if source in clean and segment is not None and told != segment.rows["pages"]:
            findings.add(Kind.ROWS, source, f"{segment.rows['pages']} captures were stored and {told} measured", mend=mend)
        if len(findings.faults) == before:
            good += [file for file in record.outputs if file.startswith("documents/")]
    findings.count("measured_segments", len(records.of(MAP)))
    for family in FAMILIES if not running else ():
        for name in project.files.names(family):
            if name not in named:
                findings.add(Kind.UNRECORDED, name, "a family file without a commit record", mend=_forget(project, name))
    return good


def _rows(project: Project, file: str, record: CommitRecord, findings: Findings, mend: Mend) -> None:
    family = file.split("/", 1)[0]
    try:
        rows = pq.read_metadata(project.file(file)).num_rows
    except (pa.ArrowException, OSError) as error:
        findings.add(Kind.ROWS, file, f"cannot be read: {error}", mend=mend)
        return
    findings.count(family, rows)
    if rows != record.rows.get(family):
        findings.add(Kind.ROWS, file, f"{rows} rows, {record.rows.get(family)} were recorded", mend=mend)


def _measure_again(project: Project, record: CommitRecord) -> Mend:
    def mend() -> str:
        project.commits.drop(MAP, record.key)
        project.files.remove(record.outputs)
        return "the measurement was removed: run corpus process to make it again"

    return mend


def _forget(project: Project, name: str) -> Mend:
    def mend() -> str:
        project.files.remove([name])
        return "removed"

    return mend


def _remove(path: Path) -> Mend:
    def mend() -> str:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return "removed"

    return mend


def check_leftovers(project: Project, findings: Findings) -> None:
    """Temporary files of writers that are gone. Only while nothing is running: they may be somebody's."""
    layout = project.layout
    found = [path for path in layout.root.rglob(".part-*") if path.is_file()]
    found += [path for path in layout.releases.glob(".*.part") if path.is_dir()]
    spilled = [path for folder in (layout.spill, layout.local / "probe") if folder.is_dir() for path in folder.iterdir()]
    found += [path for path in spilled if not path.name.startswith("duckdb_temp")]  # a query's, and queries take no lock
    if not layout.local.is_relative_to(layout.root):
        found += [path for path in layout.local.rglob(".part-*") if path.is_file()]
    for path in sorted(set(found)):
        name = path.relative_to(layout.root).as_posix() if path.is_relative_to(layout.root) else str(path)
        findings.add(Kind.TEMPORARY, name, "left by a writer that is gone", mend=_remove(path))
