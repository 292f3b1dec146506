"""How long a takedown takes on a large corpus: `python -m tests.bench.bench_takedown_apply [--pages N] [--segments N] [--folder DIR]`.

Builds a folder of made-up pages (archives, index, families, frontier, clusters, a release of about as many shards as segments) with
the package's own writers, takes down one domain and one URL, and prints one JSON object: wall and CPU seconds of `apply`, what was
looked at, how many files were rewritten. A domain's pages lie in a twentieth of the segments, as in a crawl by several workers.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpus.app.frontier_files import open_file
from corpus.app.index import index_segments
from corpus.app.map_task import STAGE, map_key
from corpus.app.process import map_settings
from corpus.app.project import Project, open_project
from corpus.app.release import release
from corpus.app.segments import page_segments, record_segment
from corpus.app.snapshot import take_snapshot
from corpus.app.takedown_apply import apply
from corpus.app.takedown_orders import add
from corpus.config.load import load_config
from corpus.crawl.ports import Ack, Settled
from corpus.engine.local import LocalPool
from corpus.filter.schema import DOCUMENTS, FAMILIES, SCHEMAS
from corpus.filter.signatures import VALUES
from corpus.filter.tables import encode
from corpus.model import CaptureRef, UrlState, content_sha256, document_id, url_id
from corpus.observe.runlog import Terminal
from corpus.store.commits import CommitRecord, file_sha256
from corpus.store.consent_log import AuthorityRead
from corpus.store.warc_record import encode_record, record_id, warc_date, warc_fields
from corpus.store.warc_write import SealedSegment
from corpus.url.host import host_of, registered_domain
from corpus.url.partition import PARTITION_FILES, partition_file
from tests.bench.bench_release import texts

CRAWL, SPREAD, WORDS = "2026-11", 20, 120
PAGES_A_DOMAIN = 500
CONFIG = """[corpus]
name = "bench"
[crawl]
seeds = ["https://site0.example/"]
contact = "https://bench.example/"
[filter]
policy = "everything.toml"
[export]
shard_bytes = {shard_bytes}
tokenizer = "none"
"""
POLICY = """name = "everything"
about = "for benchmarks"

[rules.some_text]
signal = "words"
min = 1
"""
Job = tuple[str, int, int, int]
"""(root, number of the segment, pages in it, domains of the corpus)"""


def group_of(segment: int, domains: int) -> list[int]:
    """The domains whose pages a segment holds: every twentieth."""
    return [d for d in range(domains) if d % SPREAD == segment % SPREAD]


def pages_of(segment: int, count: int, domains: int) -> Iterator[tuple[str, bytes, str]]:
    """(URL, body, text)"""
    group = group_of(segment, domains)
    for n, text in enumerate(texts(count, WORDS, segment)):
        url = f"https://site{group[n % len(group)]}.example/s{segment}/page{n}.html"
        body = f"<!doctype html><html><head><title>{n}</title></head><body><nav>Home News About</nav><main><p>{text}</p></main></body></html>"
        yield url, body.encode(), text


def members_of(url: str, body: bytes, digest: str, us: int) -> list[bytes]:
    """Request, response and metadata of one page."""
    anchor, target, date = record_id("response", url), ("WARC-Target-URI", url), warc_date(us)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: bench\r\n\r\n"
    ask = f"GET / HTTP/1.1\r\nHost: {host_of(url)}\r\nUser-Agent: CorpusBot/1 (+https://bench.example/)\r\n\r\n".encode()
    said = [("corpus-url", url), ("corpus-content-sha256", digest), ("corpus-depth", "1"), ("corpus-fetched-at", str(us))]
    linked = (target, ("WARC-Concurrent-To", anchor))
    request = encode_record(
        "request", record_id("q", url), date, linked, ask, content_type="application/http; msgtype=request", level=1
    )
    response = encode_record(
        "response", anchor, date, (target,), head + body, content_type="application/http; msgtype=response", level=1
    )
    metadata = encode_record(
        "metadata", record_id("m", url), date, linked, warc_fields(said), content_type="application/warc-fields", level=1
    )
    return [request, response, metadata]


def row_of(url: str, text: str, digest: str, us: int, file: str, offset: int, length: int) -> dict[str, Any]:
    """A documents row."""
    return {
        "id": document_id(url, digest), "url": url, "url_id": url_id(url), "host": host_of(url), "domain": registered_domain(host_of(url)),
        "crawl_id": CRAWL, "origin": "crawl", "outcome": "ok", "fetched_at": us, "http_status": 200, "content_type": "text/html", "charset": "utf-8",
        "charset_source": "http", "content_sha256": digest, "text": text, "text_sha256": content_sha256(text.encode()), "title": "a title", "language": "en",
        "language_score": 0.9, "language_script": "Latn", "extractor": "bench-1", "use": "unknown", "evidence": [], "file_path": file,
        "warc_offset": offset, "warc_length": length,
    }  # fmt: skip


def make_segment(job: Job) -> tuple[SealedSegment, dict[str, str], list[tuple[str, int, int, str]]]:
    """In a worker: one archive and its four families. Returns what the records need, and where each page lies."""
    root, number, count, domains = Path(job[0]), *job[1:]
    name = f"s{number % 2:02d}-000001-{number:06d}"
    file = f"warc/crawl_id={CRAWL}/{name}.warc.gz"
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    columns: dict[str, list[Any]] = {field.name: [] for field in DOCUMENTS}
    places, at = [], 0
    with (root / file).open("wb") as out:
        for n, (url, body, text) in enumerate(pages_of(number, count, domains)):
            us, digest = 1_790_000_000_000_000 + number * 10**9 + n * 1000, content_sha256(body)
            parts = members_of(url, body, digest, us)
            offset, length = at + len(parts[0]), len(parts[1])
            out.write(b"".join(parts))
            at += sum(map(len, parts))
            places.append((url, offset, length, digest))
            row = row_of(url, text, digest, us, file, offset, length)
            for field, values in columns.items():
                values.append(row.get(field))
    made = pa.table({f.name: pa.array(columns[f.name], f.type) for f in DOCUMENTS})
    documents = made.sort_by([(column, "ascending") for column in ("domain", "url", "id")])
    outputs = {}
    for family, table in families_of(documents, number).items():
        out_name = f"{family}/crawl_id={CRAWL}/{name}.parquet"
        (root / out_name).parent.mkdir(parents=True, exist_ok=True)
        (root / out_name).write_bytes(encode(family, table))
        outputs[out_name] = file_sha256(root / out_name)
    return SealedSegment(file, file_sha256(root / file), at, count, 3 * count), outputs, places


def families_of(documents: pa.Table, seed: int) -> dict[str, pa.Table]:
    """The four families: signals all alike, signatures at random, no spans."""
    n = len(documents)
    random = np.random.default_rng(seed)
    signals = {}
    for field in SCHEMAS["signals"]:
        if field.name in ("id", "language", "language_score"):
            signals[field.name] = documents[field.name]
        elif field.name == "chars":
            signals[field.name] = pc.utf8_length(documents["text"]).cast(field.type)
        elif pa.types.is_integer(field.type):
            signals[field.name] = pa.array(np.full(n, WORDS), field.type)
        else:
            signals[field.name] = (
                pa.nulls(n, field.type) if pa.types.is_string(field.type) else pa.array(np.full(n, 0.5), field.type)
            )
    hashes = pa.FixedSizeListArray.from_arrays(pa.array(random.integers(0, 2**32, n * VALUES, dtype=np.uint32)), VALUES)
    columns = {
        "id": documents["id"],
        "scheme": pa.array(["a32-1"] * n),
        "minhash": hashes,
        "shingle_count": pa.array(np.full(n, WORDS), pa.int64()),
    }
    made = (documents, pa.table(signals), SCHEMAS["spans"].empty_table(), pa.table(columns))
    return dict(zip(FAMILIES, made, strict=True))


def build(folder: Path, pages: int, segments: int) -> Project:
    """The whole folder, up to its release `v1`."""
    folder.mkdir(parents=True, exist_ok=True)
    shard_bytes = max(pages * len("".join(texts(20, WORDS, 0))) // 20 // segments, 4096)
    (folder / "corpus.toml").write_text(CONFIG.format(shard_bytes=shard_bytes), "utf-8")
    (folder / "everything.toml").write_text(POLICY, "utf-8")
    project = open_project(load_config(folder / "corpus.toml"))
    domains = max(pages // PAGES_A_DOMAIN, SPREAD)
    jobs = [(str(folder), number, pages // segments, domains) for number in range(segments)]
    with get_context("spawn").Pool(2) as pool:
        for sealed, outputs, places in pool.imap(make_segment, jobs):
            record_segment(project, sealed, kind="pages", crawl_id=CRAWL)
            _measured(project, sealed.name, outputs, sealed.pages)
            _frontier(project, sealed.name, places)
    now = time.time()
    sites = [f"https://site{d}.example" for d in range(domains)]
    files = ("robots", "tdmrep", "ai-txt")
    reads = [AuthorityRead(f"{site}:443", file, f"{site}/{file}", 404, "absent", "", now) for site in sites for file in files]
    project.consent_log("bench-000001").append(reads)
    index_segments(project, LocalPool(2), Terminal())
    release(project, take_snapshot(project), "v1", Terminal())
    return project


def _measured(project: Project, file: str, outputs: dict[str, str], count: int) -> None:
    settings = map_settings(project)
    (segment,) = (s for s in page_segments(project) if s.file == file)
    rows = {name.split("/", 1)[0]: 0 if name.startswith("spans/") else count for name in outputs} | {"skipped": 0, "repeats": 0}
    info = {"segment": segment.name, "crawl_id": CRAWL, "origin": "crawl"}
    key = map_key(segment, settings, frozenset())
    project.commits.put(CommitRecord(STAGE, key, {file: segment.digest, **settings.inputs()}, outputs, rows, info))


def _frontier(project: Project, file: str, places: list[tuple[str, int, int, str]]) -> None:
    by_file: dict[int, list[Settled]] = {}
    for url, offset, length, digest in places:
        capture = CaptureRef(file, offset, length)
        settled = Settled(url, UrlState.FETCHED, http_status=200, fetched_at=1.79e9, content_sha256=digest, capture=capture)
        by_file.setdefault(partition_file(registered_domain(host_of(url)), PARTITION_FILES), []).append(settled)
    for number, rows in by_file.items():
        store = open_file(project.layout, number)
        store.claim("bench")
        store.commit([Ack(settled=tuple(rows))])
        store.close(clean=True)


def measure(project: Project, pages: int, segments: int) -> dict[str, Any]:
    """Two orders, then `apply`."""
    domains = max(pages // PAGES_A_DOMAIN, SPREAD)
    url = f"https://site1.example/s1/page{len(group_of(1, domains))}.html"
    began = time.perf_counter()
    known = [add(project, "site7.example", "bench").known, add(project, url, "bench").known]
    ordered = time.perf_counter() - began
    cpu, began = _cpu(), time.perf_counter()
    told = apply(project, LocalPool(2), Terminal())
    wall = time.perf_counter() - began
    proof = json.loads((project.layout.root / told.proof).read_text())
    return {
        "pages": pages, "segments": segments, "shards": len(list((project.layout.releases / "v1.1").glob("data/*/*.parquet"))), "known": known,
        "add_wall_s": round(ordered / 2, 1), "wall_s": round(wall, 1), "cpu_s": round(_cpu() - cpu, 1),
        "archive_bytes": sum(path.stat().st_size for path in project.layout.warc.rglob("*.warc.gz")),
        "documents_removed": told.removed["documents"], "shards_rewritten": told.shards_rewritten, "remaining": told.remaining,
        "segments_rewritten": sum(item["file"].startswith("warc/") for item in proof["rewritten"]), "looked_at": proof["looked_at"],
    }  # fmt: skip


def _cpu() -> float:
    """CPU seconds of this process and of the workers it has waited for."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--segments", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        project = build((given.folder or Path(place)) / "corpus", given.pages, given.segments)
        print(json.dumps(measure(project, given.pages, given.segments)))


if __name__ == "__main__":
    main()
