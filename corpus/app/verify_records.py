"""Commit records under audit: each one whole, canonical, under its own name, and consistent with what its key digests.

A damaged record is a fault, never an exception. What can be made again from its inputs is forgotten by the repair, so that
the stage does it anew; what cannot (a release) is only named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from corpus.app.clusters import DEDUP_STAGE
from corpus.app.host_lines import STAGE as HOST_LINES
from corpus.app.index_file import STAGE as INDEX
from corpus.app.index_file import index_name
from corpus.app.ingest import STAGE as INGEST
from corpus.app.ingest_robots import STAGE as INGEST_ROBOTS
from corpus.app.join import STAGE as JOIN
from corpus.app.map_task import STAGE as MAP
from corpus.app.page_versions import STAGE as VERSIONS
from corpus.app.process import POISON
from corpus.app.project import Project
from corpus.app.release import RELEASE_STAGE
from corpus.app.segments import STAGE as SEGMENT
from corpus.app.segments import segment_key
from corpus.app.stuck import STUCK, stuck_input
from corpus.app.takedown_open import PLAN, STEP
from corpus.app.takedown_scan import PLACES
from corpus.app.verify_faults import Findings, Kind, Mend
from corpus.app.verify_takedown import takedown_step
from corpus.errors import StoreError
from corpus.store.commits import CommitRecord, decode, encode, stage_key
from corpus.store.layout import FAMILIES

STAGES = (
    SEGMENT,
    MAP,
    DEDUP_STAGE,
    RELEASE_STAGE,
    INGEST,
    INGEST_ROBOTS,
    POISON,
    INDEX,
    HOST_LINES,
    VERSIONS,
    PLAN,
    STEP,
    STUCK,
    JOIN,
)
_AGAIN = {
    SEGMENT: "its segment is recorded anew",
    MAP: "corpus process measures the segment again",
    DEDUP_STAGE: "corpus dedup makes the clusters again",
    INGEST: "corpus ingest takes the archive in again",
    INGEST_ROBOTS: "corpus ingest --robots takes the archive in again",
    POISON: "corpus process finds the record again",
    STUCK: "corpus process tries the page again",
    HOST_LINES: "corpus export compares the lines again",
    INDEX: "corpus process indexes the segment again",
    VERSIONS: "corpus export compares the versions again",
    JOIN: "corpus dedup joins the bands again",
}
"""Stages whose record may be forgotten, and what then happens."""
_SHAPES: dict[str, tuple[set[str], set[str]]] = {
    SEGMENT: ({"pages", "records"}, {"kind", "crawl_id", "origin", "bytes"}),
    MAP: ({*FAMILIES, "skipped", "repeats"}, {"segment", "crawl_id", "origin"}),
    DEDUP_STAGE: ({"documents", "clusters"}, set()),
    HOST_LINES: ({"texts", "lines", "touched"}, set()),
    RELEASE_STAGE: (set(), {"name", "snapshot", "previous", "order"}),
    INGEST: ({"records", "pages", "revisits"}, {"file", "crawl_id", "faults", "faults_total"}),
    POISON: (set(), {"segment", "content_sha256"}),
    STUCK: (set(), {"content_sha256", "profile"}),
    INDEX: ({"captures"}, set()),
    VERSIONS: ({"major"}, set()),
    JOIN: ({"rows"}, set()),
    PLAN: (set(PLACES), {"control", "rows", "seen"}),
}
"""Names that `rows` and `info` of a stage's records hold: a name nobody reads would hide the count that stands under it."""
_OPTIONAL = {
    MAP: {"url_list_hits", "stuck"},
    RELEASE_STAGE: {"supersedes", "superseded_by", "control"},
    JOIN: {"starts"},
}
"""Names of `info` that only some records of a stage hold."""
_FOLDERS = {"pages": "warc/", "policy": "warc/policy/", "sealed": "sealed/"}


@dataclass(slots=True)
class Records:
    """All commit records that could be read, by stage."""

    by_stage: dict[str, list[CommitRecord]] = field(default_factory=lambda: {stage: [] for stage in STAGES})

    def of(self, stage: str) -> list[CommitRecord]:
        return self.by_stage[stage]

    def outputs(self, stage: str) -> dict[str, str]:
        """Every file that records of a stage speak of, with its digest."""
        return {path: digest for record in self.by_stage[stage] for path, digest in record.outputs.items()}


def read_records(project: Project, findings: Findings) -> Records:
    """Read and check every record under `commits/`; those that contradict themselves are reported and left out."""
    records = Records()
    for name in project.objects.list("commits/"):
        findings.count("commit_records")
        stage = name.split("/")[1]
        record = _read(project, findings, name, stage)
        if record is not None:
            records.by_stage[stage].append(record)
    poison = _poison(records)
    for stage, found in records.by_stage.items():
        sound = []
        for record in found:
            faults = _contradictions(record, poison)
            for fault in faults:
                findings.add(Kind.RECORD, f"commits/{stage}/{record.key}.json", fault, mend=_forget(project, stage, record.key))
            if not faults:
                sound.append(record)
        records.by_stage[stage] = sound
    _releases(records, findings)
    return records


def _read(project: Project, findings: Findings, name: str, stage: str) -> CommitRecord | None:
    key = name.rpartition("/")[2].removesuffix(".json")
    if stage not in STAGES or name.count("/") != 2 or not name.endswith(".json"):
        findings.add(Kind.UNRECORDED, name, "no stage of this version writes such a record")
        return None
    data = project.objects.get(name)
    try:
        record = decode(data, name)
        whole = encode(record) == data and (record.stage, record.key) == (stage, key)
    except (StoreError, TypeError, AttributeError, ValueError):  # JSON of another shape fails in many ways
        whole = False
    if not whole:
        findings.add(Kind.RECORD, name, "the commit record is damaged", mend=_forget(project, stage, key))
        return None
    return record


def _forget(project: Project, stage: str, key: str) -> Mend | None:
    if stage not in _AGAIN:
        return None

    def mend() -> str:
        project.commits.drop(stage, key)
        return f"the record was removed: {_AGAIN[stage]}"

    return mend


def _poison(records: Records) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for record in records.of(POISON):
        found.setdefault(str(record.info.get("segment")), []).append(str(record.info.get("content_sha256")))
    return found


def _contradictions(record: CommitRecord, poison: dict[str, list[str]]) -> list[str]:
    """What a record says against itself."""
    shape = _SHAPES.get(record.stage)
    if shape is not None and (set(record.rows), set(record.info) - _OPTIONAL.get(record.stage, set())) != shape:
        return ["it does not hold what records of its stage hold"]
    try:
        match record.stage:
            case "segment":
                return _segment(record)
            case "map":
                return _map(record, poison)
            case "cdxj":
                return _index(record)
            case "poison":
                fits = record.key == f"{record.info['segment']}.{str(record.info['content_sha256'])[:32]}"
                return [] if fits else ["its key is not of its own content"]
            case "stuck":
                return [] if record.key == str(record.info["content_sha256"])[:32] else ["its key is not of its own content"]
            case "ingest" | "ingest-robots":
                return [] if str(record.inputs["archive"])[:32] == record.key else ["its key is not of its own archive"]
            case "takedown":
                return takedown_step(record)
            case "release":
                fits = record.info["name"] == record.key and record.info["snapshot"] == record.inputs["snapshot"]
                return [] if fits else ["it names another release or snapshot than its own"]
            case _:
                return []
    except (KeyError, ValueError, TypeError) as error:
        return [f"it lacks what a record of its stage has: {error}"]


def _segment(record: CommitRecord) -> list[str]:
    ((file, _),) = record.outputs.items()
    kind, crawl_id = str(record.info["kind"]), str(record.info["crawl_id"])
    faults = []
    if kind not in _FOLDERS or not file.startswith(f"{_FOLDERS[kind]}crawl_id={crawl_id}/"):
        faults.append("its file does not lie where segments of its kind and crawl do")
    if record.key != segment_key(kind, crawl_id, file):
        faults.append("its key is not of its own segment")
    if record.info["origin"] not in ("crawl", "ingest"):
        faults.append(f"there is no origin {record.info['origin']!r}")
    return faults


def _map(record: CommitRecord, poison: dict[str, list[str]]) -> list[str]:
    """The key digests the segment and every option, so it can be worked out again."""
    segment = str(record.info["segment"])
    settings = {name: digest for name, digest in record.inputs.items() if not name.startswith("warc/")}
    ((file, digest),) = ((name, digest) for name, digest in record.inputs.items() if name.startswith("warc/"))
    key = stage_key(
        segment=segment, digest=digest, origin=record.info["origin"], poisoned=sorted(poison.get(segment, ())), **settings
    )  # fmt: skip
    family = f"/crawl_id={record.info['crawl_id']}/{segment}.parquet"
    faults = [] if key == record.key else ["its key is not of its own inputs"]
    if stuck_input(record.info.get("stuck", ())).get("stuck") != settings.get("stuck"):
        faults.append("its stuck bodies are not those it was measured with")
    if not file.startswith(f"warc/crawl_id={record.info['crawl_id']}/{segment}."):
        faults.append("it measured another segment than it names")
    faults += [f"its output {path} is of another segment" for path in record.outputs if not path.endswith(family)]
    return faults


def _index(record: CommitRecord) -> list[str]:
    """An index is of one segment, and both names follow from the key."""
    ((file, _),), ((out, _),) = record.inputs.items(), record.outputs.items()
    kind, crawl_id = record.key.split(".", 1)[0], file.split("crawl_id=", 1)[-1].split("/", 1)[0]
    fits = record.key == segment_key(kind, crawl_id, file) and out == index_name(record.key)
    return [] if fits else ["its segment, its index and its key are not of each other"]


def _releases(records: Records, findings: Findings) -> None:
    """Releases are numbered from 1, and each names one made before it."""
    made = {record.key: record.info.get("order") for record in records.of(RELEASE_STAGE)}
    order = {name: n for name, n in made.items() if isinstance(n, int)}
    if sorted(order.values()) != list(range(1, len(made) + 1)):
        findings.add(Kind.RECORD, "commits/release", f"releases are not numbered 1 to {len(made)}: {made}")
        return
    for record in records.of(RELEASE_STAGE):
        previous = str(record.info.get("previous") or "")
        is_first = order[record.key] == 1
        if is_first != (not previous) or (previous and order.get(previous, len(made) + 1) >= order[record.key]):
            findings.add(
                Kind.RECORD,
                f"commits/release/{record.key}.json",
                f"the release before it, {previous!r}, is none that was made before it",
            )
