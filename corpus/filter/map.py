"""The map stage: captures of one segment in, four families of rows out. Pure: no clock, no network, no file but the models.

Every page capture gives exactly one documents row, whatever became of it; a capture of an id already seen in the segment
(a repeat after a crash) gives none, and what is no page (not 2xx) gives none. Rows are sorted by (domain, url, id).
Work is done in batches of `BATCH` captures; what stays in memory is one batch, and rows that wait in `runs.Runs`.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa

from corpus.filter.blocks.extract import extractor_name
from corpus.filter.consent_columns import Verdict, judge_capture
from corpus.filter.extract import Extraction, extract_page
from corpus.filter.language import Language, detect_languages, model_digest
from corpus.filter.measure import Measured, measured_chunks, signal_arrays
from corpus.filter.runs import Runs, Scratch
from corpus.filter.schema import DOCUMENTS, FAMILIES, SIGNALS_SCHEMA, SIGNATURES, SPANS, STAGE_VERSION, file_schema
from corpus.filter.signatures import SCHEME, VALUES
from corpus.filter.sources import Sources, open_sources
from corpus.filter.tables import SegmentTables
from corpus.model import Capture, Outcome, content_sha256, document_id, url_id
from corpus.optout.settings import OptoutSettings
from corpus.url.host import host_of, registered_domain

BATCH = 256
"""Captures extracted and measured together."""
_BATCH_BYTES = 8 * 2**20
"""Body bytes after which a batch is full before its number is."""


Watch = Callable[[str], AbstractContextManager[None]]
"""Around the parsing of one body, given its content digest (hex): who watches may end this process, and nothing else."""


def unwatched(_digest: str) -> AbstractContextManager[None]:
    """Nobody watches: for tests and benchmarks."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class MapSettings:
    """What the map stage's output depends on, beside the captures and the code."""

    profile: str = "default"
    language_model: str | None = None
    """Path of a fastText model; None: the vendored one."""
    robots_token: str = "CorpusBot"
    optout: OptoutSettings = field(default_factory=OptoutSettings)
    sources: Sources = field(default_factory=Sources)
    """Lists, tables, models and functions of the operator's that signals are made from."""

    @property
    def options_digest(self) -> str:
        """SHA-256 (hex) of every option: part of the stage key."""
        facts = {
            "profile": self.profile,
            "token": self.robots_token,
            "optout": self.optout.model_dump(mode="json"),
            "scheme": SCHEME,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def inputs(self) -> dict[str, str]:
        """Everything but the segment that belongs into the stage key, as a commit record's `inputs`."""
        return {
            "stage_version": str(STAGE_VERSION),
            "options": self.options_digest,
            "language_model": model_digest(self.language_model),
            **({"blocks": extractor_name()} if self.profile == "blocks" else {}),
            **self.sources.inputs(),
        }


@dataclass(frozen=True, slots=True)
class _Row:
    """One capture, judged and extracted, before its text is measured."""

    capture: Capture
    digest: str
    id: str
    outcome: Outcome
    extraction: Extraction | None
    verdict: Verdict


def measure_segment(
    captures: Iterable[Capture],
    *,
    segment: str,
    crawl_id: str,
    settings: MapSettings,
    origin: str = "crawl",
    poisoned: frozenset[str] = frozenset(),
    stuck: frozenset[str] = frozenset(),
    watch: Watch = unwatched,
    scratch: Scratch | None = None,
    parsed: Callable[[int], object] | None = None,
) -> SegmentTables:
    """Measure one segment. `poisoned`, `stuck`: content digests (hex) of bodies that are not touched again, because they crashed
    a worker or because their parser did not finish. `scratch`: where rows wait that are too many for memory. `parsed` hears how
    many bytes the bodies of a batch had, once their trees are gone."""
    seen: set[bytes] = set()
    counts = {"skipped": 0, "repeats": 0}
    found: set[str] = set()
    runs = Runs(scratch)
    for group in _groups(_pages(captures, seen, counts)):
        rows = [_unread(page, settings, poisoned, stuck) or _extracted(page, settings, watch) for page in group]
        if parsed is not None:
            parsed(sum(len(capture.body) for capture, _, _ in group))
        group.clear()  # the next group's pages are read while this name still stands for these
        found.update(row.digest for row in rows if row.outcome is Outcome.STUCK)
        runs.add(_measure(rows, crawl_id, origin, settings))
        rows.clear()
    runs.finish()
    return SegmentTables(crawl_id, segment, runs, stuck=frozenset(found), **counts)


_Page = tuple[Capture, str, str]


def _pages(captures: Iterable[Capture], seen: set[bytes], counts: dict[str, int]) -> Iterator[_Page]:
    """(capture, content digest, id) of each page, the first capture of an id only."""
    for capture in captures:
        if not capture.fault and not 200 <= capture.status <= 299:
            counts["skipped"] += 1
            continue
        digest = capture.content_sha256 or content_sha256(capture.body)
        key = document_id(capture.url, digest)
        short = bytes.fromhex(key)
        if short in seen:
            counts["repeats"] += 1
            continue
        seen.add(short)
        yield capture, digest, key


def _groups(pages: Iterator[_Page]) -> Iterator[list[_Page]]:
    group: list[_Page] = []
    size = 0
    for page in pages:
        group.append(page)
        size += len(page[0].body)
        if len(group) >= BATCH or size >= _BATCH_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _unread(page: _Page, settings: MapSettings, poisoned: frozenset[str], stuck: frozenset[str]) -> _Row | None:
    """The row of a capture whose body is not looked at; None for all others."""
    capture, digest, key = page
    if capture.fault or digest in poisoned:
        outcome = Outcome.POISON
    elif capture.near_original and not capture.body:
        outcome = Outcome.NEAR_COPY
    elif digest in stuck:
        outcome = Outcome.STUCK
    else:
        return None
    return _Row(capture, digest, key, outcome, None, judge_capture(capture, None, settings.optout, settings.robots_token))


def _extracted(page: _Page, settings: MapSettings, watch: Watch) -> _Row:
    """Outcome, text and response-level verdict of one capture. Never raises for its content."""
    capture, digest, key = page
    with watch(digest):
        extraction, parsed = extract_page(
            capture.body, url=capture.found or capture.url, content_type=capture.header("content-type"), profile=settings.profile
        )
        verdict = judge_capture(capture, parsed, settings.optout, settings.robots_token)
    return _Row(capture, digest, key, extraction.outcome, extraction, verdict)


def _measure(rows: list[_Row], crawl_id: str, origin: str, settings: MapSettings) -> dict[str, pa.Table]:
    """One table a family."""
    kept = [row for row in rows if row.outcome is Outcome.OK and row.extraction]
    texts = [row.extraction.text for row in kept if row.extraction]
    languages = detect_languages(texts, settings.language_model)
    ids = [row.id for row in kept]
    documents = _documents(rows, dict(zip(ids, languages, strict=True)), crawl_id, origin)
    signals, spans, signatures = [SIGNALS_SCHEMA.empty_table()], [SPANS.empty_table()], [SIGNATURES.empty_table()]
    sources = open_sources(settings.sources)
    at = 0
    for part in measured_chunks(texts, [language.code for language in languages]):
        mine = slice(at, at + len(part.spans))
        urls = [row.capture.url for row in kept[mine]]
        sourced = sources.columns(urls, part.chunk, [language.code for language in languages[mine]])
        signals.append(_signals_table(ids[mine], languages[mine], part, sourced))
        spans.append(_spans_table(ids[mine], part))
        signatures.append(_signatures_table(ids[mine], part))
        at = mine.stop
        del part
    joined = pa.concat_tables(signals, promote_options="default")
    return dict(zip(FAMILIES, (documents, joined, pa.concat_tables(spans), pa.concat_tables(signatures)), strict=True))


def _signals_table(ids: list[str], languages: list[Language], part: Measured, sourced: dict[str, pa.Array]) -> pa.Table:
    named = {
        "id": pa.array(ids),
        "language": pa.array([language.code for language in languages]),
        "language_score": pa.array([language.score for language in languages]),
    }
    columns = {**named, **signal_arrays(part.signals), **sourced}
    return pa.table(columns, schema=file_schema("signals", pa.table(columns)))


def _spans_table(ids: list[str], part: Measured) -> pa.Table:
    flat = [(key, span) for key, found in zip(ids, part.spans, strict=True) for span in found]
    columns = {
        "id": pa.array([key for key, _ in flat], pa.string()),
        "kind": pa.array([span.kind for _, span in flat], pa.string()),
        "start": pa.array([span.start for _, span in flat], pa.int32()),
        "end": pa.array([span.end for _, span in flat], pa.int32()),
    }
    return pa.table(columns, schema=SPANS)


def _signatures_table(ids: list[str], part: Measured) -> pa.Table:
    values = pa.FixedSizeListArray.from_arrays(pa.array(part.minhash.reshape(-1)), type=SIGNATURES.field("minhash").type)
    assert part.minhash.shape == (len(ids), VALUES)
    columns = {
        "id": pa.array(ids),
        "scheme": pa.array([SCHEME] * len(ids)),
        "minhash": values,
        "shingle_count": pa.array(part.shingle_count),
    }
    return pa.table(columns, schema=SIGNATURES)


def text_sha256(text: str) -> str:
    """SHA-256 (hex) of a text in NFC with white space folded: equal for exact duplicates."""
    return hashlib.sha256(" ".join(unicodedata.normalize("NFC", text).split()).encode("utf-8", "surrogatepass")).hexdigest()


def _documents(rows: list[_Row], languages: dict[str, Language], crawl_id: str, origin: str) -> pa.Table:
    records = [_record(row, languages.get(row.id), crawl_id, origin) for row in rows]
    return pa.Table.from_pylist(records, schema=DOCUMENTS)


def _record(row: _Row, language: Language | None, crawl_id: str, origin: str) -> dict[str, object]:
    capture, found = row.capture, row.extraction
    host = host_of(capture.url)
    record: dict[str, object] = {
        "id": row.id,
        "url": capture.url,
        "url_id": url_id(capture.url),
        "host": host,
        "domain": registered_domain(host),
        "crawl_id": crawl_id,
        "origin": origin,
        "outcome": row.outcome.value,
        "fetched_at": round(capture.fetched_at * 1e6),
        "depth": capture.depth,
        "http_status": capture.status or None,
        "content_type": capture.header("content-type"),
        "content_sha256": row.digest,
        "near_original": capture.near_original or None,
        "near_distance": capture.near_distance,
        "use": row.verdict.use,
        "evidence": row.verdict.evidence,
        "file_path": capture.ref.file,
        "warc_offset": capture.ref.offset,
        "warc_length": capture.ref.length,
    }
    if found is not None:
        record |= {"charset": found.charset or None, "charset_source": found.charset_source or None, "extractor": found.extractor}
    if found is not None and language is not None:
        record |= {
            "text": found.text,
            "text_sha256": text_sha256(found.text),
            "title": found.title,
            "author": found.author,
            "published": found.published,
            "license_url": found.license_url,
            "language": language.code,
            "language_score": language.score,
            "language_script": language.script,
        }
    return record
