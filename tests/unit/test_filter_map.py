"""The map stage: one row per page whatever became of it, frozen schemas, and bytes that depend on the captures alone."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from corpus.filter.map import MapSettings, measure_segment, text_sha256
from corpus.filter.schema import FAMILIES, SCHEMAS, STAGE_VERSION
from corpus.filter.tables import SegmentTables, write_tables
from corpus.model import Capture, CaptureRef, content_sha256
from corpus.optout.settings import OptoutSettings

SETTINGS = MapSettings()
_SENTENCES = (
    "The river had been low all summer and the mill stood quiet.",
    "Nobody in the village minded this very much, or spoke of it.",
    "The children crossed on the stones to the other bank every day.",
    "They came home late in the evening with their pockets full of plums.",
    "An old man sat on the bridge with a pipe and watched the water.",
)


def _page(url: str, number: int = 0, **changes: object) -> Capture:
    text = "".join(
        f"<p>{_SENTENCES[(i + number) % 5]} Write to someone{number}@example.org number {number}.</p>" for i in range(5)
    )
    body = f"<html><head><title>Page {number}</title></head><body><article>{text}</article></body></html>".encode()
    capture = Capture(
        url=url,
        found=url,
        status=200,
        headers=(("Content-Type", "text/html; charset=utf-8"),),
        body=body,
        fetched_at=1_700_000_000.25 + number,
        ref=CaptureRef("warc/crawl_id=t/s00-000001-000001.warc.gz", 100 * number, 90),
        depth=number % 3,
        content_sha256=content_sha256(body),
    )
    return replace(capture, **changes)  # type: ignore[arg-type]


def _measure(captures: list[Capture], **options: object) -> SegmentTables:
    return measure_segment(captures, segment="s00-000001-000001", crawl_id="t", settings=SETTINGS, **options)  # type: ignore[arg-type]


def _mixed() -> list[Capture]:
    return [
        _page("https://b.example.org/2", 2),
        _page("https://a.example.net/1", 1),
        _page("https://a.example.net/1", 1, fetched_at=1.0),  # the same version again
        _page("https://a.example.net/gone", 3, status=404),
        _page(
            "https://a.example.net/copy",
            4,
            body=b"",
            near_original="https://a.example.net/1",
            near_distance=2,
            content_sha256="ab" * 32,
        ),
        _page("https://a.example.net/bad", 5, body=b"", fault="chunk length", status=0, headers=(), content_sha256=""),
        _page("https://a.example.net/pdf", 6, body=b"%PDF-1.4", content_sha256=""),
        _page("https://a.example.net/empty", 7, body=b"", content_sha256=""),
        _page("https://a.example.net/deep", 8, body=b"<div>" * 20_000, content_sha256=""),
        _page("https://b.example.org/no", 9, headers=(("Content-Type", "text/html"), ("X-Robots-Tag", "noai"))),
    ]


def test_every_page_has_one_row_and_an_outcome() -> None:
    """Good, broken, empty, unsupported, huge and linked pages each have exactly one row; other statuses and repeats none."""
    tables = _measure(_mixed())
    rows = tables.documents.to_pylist()
    assert {row["url"].rsplit("/", 1)[1]: row["outcome"] for row in rows} == {
        "1": "ok", "2": "ok", "no": "ok", "copy": "near-copy", "bad": "poison", "pdf": "unsupported-type", "empty": "no-text", "deep": "too-large",
    }  # fmt: skip
    assert (tables.skipped, tables.repeats) == (1, 1)
    assert next(row for row in rows if row["url"].endswith("/1"))["fetched_at"].year == 2023
    assert [(row["domain"], row["url"], row["id"]) for row in rows] == sorted(
        (row["domain"], row["url"], row["id"]) for row in rows
    )
    assert all((row["text"] is not None) == (row["outcome"] == "ok") for row in rows)


def test_families_hold_the_good_rows_in_the_same_order() -> None:
    """Signals and signatures have one row per good document, spans belong to them, all in the documents' order."""
    tables = _measure(_mixed())
    good = [row["id"] for row in tables.documents.to_pylist() if row["outcome"] == "ok"]
    assert tables.signals["id"].to_pylist() == good
    assert tables.signatures["id"].to_pylist() == good
    order = tables.spans["id"].to_pylist()
    assert order == sorted(order, key=good.index)
    texts = {row["id"]: row["text"] for row in tables.documents.to_pylist()}
    emails = [texts[s["id"]][s["start"] : s["end"]] for s in tables.spans.to_pylist() if s["kind"] == "email"]
    assert emails
    assert all(email.startswith("someone") and email.endswith("@example.org") for email in emails)


def test_the_responses_own_words_are_a_column() -> None:
    """A refusing header makes `use` no, with its evidence; silence is unknown."""
    rows = {row["url"]: row for row in _measure(_mixed()).documents.to_pylist()}
    refused = rows["https://b.example.org/no"]
    assert refused["use"] == "no"
    assert any("noai" in item["raw"] for item in refused["evidence"])
    assert rows["https://b.example.org/2"]["use"] == "unknown"


def _files(tables: SegmentTables, folder: Path) -> dict[str, bytes]:
    """The family files by name, as they are written."""
    found: dict[str, bytes] = {}

    @contextmanager
    def place(name: str) -> Iterator[Path]:
        path = folder / "part"
        yield path
        found[name] = path.read_bytes()

    for item in write_tables(tables, place):
        assert hashlib.sha256(found[item.path]).hexdigest() == item.sha256
        assert pq.read_metadata(io.BytesIO(found[item.path])).num_rows == item.rows
    return found


def test_order_of_captures_changes_no_byte(tmp_path: Path) -> None:
    """The same captures in any order, twice, give byte-identical files (repeats left out: the first of them counts)."""
    captures = [c for i, c in enumerate(_mixed()) if i != 2]
    assert _files(_measure(captures), tmp_path) == _files(_measure(captures[::-1]), tmp_path)


def test_batches_change_nothing(monkeypatch: object) -> None:
    """Batches of one and batches of all give the same tables."""
    import pytest

    captures = [_page(f"https://x{i % 3}.example.com/{i}", i) for i in range(12)]
    whole = _measure(captures)
    patch = pytest.MonkeyPatch()
    patch.setattr("corpus.filter.map.BATCH", 1)
    single = _measure(captures)
    patch.undo()
    assert all(whole.family(name).equals(single.family(name)) for name in FAMILIES)


def test_files_have_the_frozen_schemas_even_when_empty(tmp_path: Path) -> None:
    """Every file carries the explicit schema, no rows included; other tools read it; names and digests are returned."""
    for captures in (_mixed(), []):
        store = _files(_measure(captures), tmp_path)
        assert list(store) == [f"{family}/crawl_id=t/s00-000001-000001.parquet" for family in FAMILIES]
        for family, data in zip(FAMILIES, store.values(), strict=True):
            read = pq.read_table(io.BytesIO(data))
            assert read.schema.equals(SCHEMAS[family])
            path = tmp_path / f"{family}.parquet"
            path.write_bytes(data)
            counted = duckdb.sql(f"SELECT count(*) FROM '{path}'")
            assert counted is not None
            assert counted.fetchall() == [(read.num_rows,)]


def test_a_poisoned_body_is_not_touched_again() -> None:
    """A body known to crash the parser becomes an outcome without being parsed."""
    page = _page("https://a.example.net/1", 1)
    tables = _measure([page], poisoned=frozenset({page.content_sha256}))
    assert tables.documents["outcome"].to_pylist() == ["poison"]


def test_options_are_part_of_the_key() -> None:
    """Profile, token and opt-out settings each change the options digest; the model has its own."""
    digests = {SETTINGS.options_digest} | {
        replace(SETTINGS, **change).options_digest
        for change in ({"profile": "fast"}, {"robots_token": "Other"}, {"optout": OptoutSettings(noindex=False)})
    }
    assert len(digests) == 4
    assert set(SETTINGS.inputs()) == {"stage_version", "options", "language_model"}


def test_exact_duplicates_have_one_text_digest() -> None:
    """White space and normal form do not make two texts; a letter does."""
    assert text_sha256("u\u0308ber  das\n") == text_sha256("über das")
    assert text_sha256("über das") != text_sha256("über dass")


SNAPSHOT = Path(__file__).with_name("filter_schemas.json")


def test_schemas_are_frozen() -> None:
    """A column added, dropped, renamed or retyped is a deliberate act: the snapshot and STAGE_VERSION change with it."""
    now = {
        "stage_version": STAGE_VERSION,
        **{family: [[f.name, str(f.type), f.nullable] for f in SCHEMAS[family]] for family in FAMILIES},
    }
    assert json.loads(SNAPSHOT.read_text("utf-8")) == now


GOLDEN = Path(__file__).with_name("filter_golden.json")


def test_golden_bytes_belong_to_the_stage_version() -> None:
    """A fixed input gives these values at this STAGE_VERSION: change the output, and the version must be bumped by hand."""
    pages = [_page(f"https://g{i}.example.org/", i) for i in range(3)]
    pages.append(
        replace(
            pages[0],
            url="https://z.example.org/",
            body="<p>我们来到河边。水很浅，孩子们很高兴。</p>".encode() * 9,
            content_sha256="",
        )
    )
    tables = _measure(pages)
    now = {
        name: hashlib.sha256(json.dumps(tables.family(name).to_pylist(), default=str, sort_keys=True).encode()).hexdigest()
        for name in FAMILIES
    }
    assert json.loads(GOLDEN.read_text("utf-8")) == {"stage_version": STAGE_VERSION, **now}
