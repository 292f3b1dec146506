"""Bad pages through the whole pipeline: each becomes an outcome row, in bounded time and memory, and the run goes on."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from corpus.app.run import run_all
from corpus.app.verify import verify
from corpus.app.views import Views
from corpus.app.why import why
from corpus.observe.summary import Summary
from corpus.testing.demo.answers import DemoSite, Ready
from corpus.testing.web_answer import Answer
from corpus.testing.web_process import ServerProcess
from corpus.testing.web_text import paragraphs
from tests.demo_corpus import project_of

ADDRESS = "127.77.0.1"
HTML = "text/html; charset=utf-8"
PEAK_BYTES = 1536 * 2**20
WALL_S = 120.0
PROSE = " ".join(paragraphs(7, "bad", "en", 3000))


def page(body: str, head: str = "") -> bytes:
    return f"<!DOCTYPE html><html><head><title>Bad page</title>{head}</head><body>{body}</body></html>".encode(
        "utf-8", "surrogatepass"
    )


@dataclass(frozen=True, slots=True)
class Bad:
    """A page, and what may become of it: outcomes of the map stage, or reasons of the fetch."""

    body: bytes
    becomes: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = (("Content-Type", HTML),)


BAD: dict[str, Bad] = {
    "good": Bad(page(f"<article><p>{PROSE}</p></article>"), ("ok",)),
    "empty": Bad(b"", ("no-text",)),
    "no-text": Bad(page("<img src=x.png><script>var a = 1;</script>"), ("no-text",)),
    "one-line": Bad(page("<p>" + "word " * 1_000_000 + "</p>"), ("ok", "too-large", "no-text", "stuck")),
    "nested": Bad(page("<div>" * 100_000 + PROSE + "</div>" * 100_000), ("ok", "too-large", "no-text", "stuck")),
    "surrogates": Bad(page(f"<p>{PROSE} \ud800 &#xD800; &#55357; \udfff</p>"), ("ok",)),
    "nulls": Bad(page(f"<p>{PROSE}</p>").replace(b" the ", b" \0the\0 "), ("ok", "no-text")),
    "all-nulls": Bad(bytes(100_000), ("no-text", "unsupported-type", "ok")),
    "twenty-megabytes": Bad(
        page(f"<article><p>{PROSE}</p></article><script>{'x = 1; ' * 3_000_000}</script>"), ("ok", "too-large")
    ),
    "bomb": Bad(gzip.compress(bytes(9 * 2**20), 9), ("decode",), (("Content-Type", HTML), ("Content-Encoding", "gzip"))),
    "long-bomb": Bad(
        gzip.compress(page(f"<p>{PROSE}</p>") + b" " * 200 * 2**20, 9),
        ("ok", "decode"),
        (("Content-Type", HTML), ("Content-Encoding", "gzip")),
    ),
    "no-gzip": Bad(page(f"<p>{PROSE}</p>"), ("ok", "decode"), (("Content-Type", HTML), ("Content-Encoding", "gzip"))),
    "attributes": Bad(
        page("<p " + " ".join(f"a{n}=1" for n in range(200_000)) + f">{PROSE}</p>"), ("ok", "too-large", "no-text", "stuck")
    ),
    "entities": Bad(
        page(f"<p>{PROSE} {'&amp' * 100_000} &nosuch; &#99999999999; &#0; &#x110000;</p>"),
        ("ok", "no-text", "too-large", "stuck"),
    ),
    "random": Bad(bytes((n * n * 31 + 7 * n) % 256 for n in range(200_000)), ("ok", "no-text", "unsupported-type")),
    "wrong-charset": Bad(page(f"<p>{PROSE}</p>"), ("ok",), (("Content-Type", "text/html; charset=utf-32\x1b[31m"),)),
    "xml-lies": Bad(b'<?xml version="1.0" encoding="UTF-16"?>' + page(f"<p>{PROSE}</p>"), ("ok",)),
    "unclosed": Bad(b"<html><body><!-- <p>" + PROSE.encode() + b"<table><tr><td><![CDATA[ <svg><p>", ("ok", "no-text")),
    "tables": Bad(page("<table><tr><td>" * 20_000 + PROSE), ("ok", "too-large", "no-text", "stuck")),
    "escape": Bad(page(f"<p>\x1b[2J\x1b]0;owned\x07 {PROSE}</p>", "<meta name=author content='\x1b[31mEve'>"), ("ok",)),
}


NEVER_EXPORTED = {"one-line", "all-nulls", "random", "bomb", "empty", "no-text"}


@dataclass(frozen=True, slots=True)
class Ran:
    folder: Path
    origin: str
    summary: Summary
    wall_s: float

    def url(self, name: str) -> str:
        return f"{self.origin}/{name}.html"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("bad") / "corpus"
    folder.mkdir()
    links = "".join(f'<a href="/{name}.html">{name}</a> ' for name in BAD)
    table = {"/index.html": Ready(Answer(200, (("Content-Type", HTML),), page(f"<p>{PROSE}</p>{links}")))}
    table |= {f"/{name}.html": Ready(Answer(200, bad.headers, bad.body)) for name, bad in BAD.items()}
    with ServerProcess(DemoSite({ADDRESS: table})) as server:
        origin = f"http://{ADDRESS}:{server.port}"
        (folder / "corpus.toml").write_text(
            f"""[corpus]
name = "bad"
[crawl]
seeds = ["{origin}/index.html"]
contact = "https://corpus.example/bot"
delay = "20ms"
delay_start = "20ms"
latency_factor = 1.0
retries = 1
near_copies = "store"
allow_private = ["{ADDRESS}/32"]
[engine]
workers = 2
""",
            "utf-8",
        )
        from corpus.app.project import open_project
        from corpus.config.load import load_config

        started = time.monotonic()
        summary = run_all(open_project(load_config(folder / "corpus.toml", environment={})), name="v1", quiet=True)
        yield Ran(folder, origin, summary, time.monotonic() - started)


def became(ran: Ran, name: str) -> tuple[str, str, str | None]:
    """(state, outcome or reason, text) of a page."""
    with Views(project_of(ran.folder)) as views:
        views.make("pages", "measured_documents")
        ((state, reason),) = views.connection.execute("SELECT state, reason FROM pages WHERE url = ?", [ran.url(name)]).fetchall()
        found = views.connection.execute("SELECT outcome, text FROM measured_documents WHERE url = ?", [ran.url(name)]).fetchall()
    return (state, *found[0]) if found else (state, reason, None)


def test_the_run_ends_well(ran: Ran) -> None:
    """Exit 0, in bounded time and memory, whatever the pages were."""
    assert (ran.summary.ended, ran.summary.exit_code) == ("done", 0)
    assert ran.wall_s < WALL_S
    assert ran.summary.peak_rss_bytes < PEAK_BYTES


@pytest.mark.parametrize("name", sorted(BAD))
def test_each_page_has_its_outcome(ran: Ran, name: str) -> None:
    """One outcome a page: a documents row, or the reason why its body was not taken."""
    state, outcome, text = became(ran, name)
    assert outcome in BAD[name].becomes, state
    assert (text is not None) == (outcome == "ok")
    assert "\0" not in (text or "")
    (text or "").encode("utf-8")  # no lone surrogate
    told = why(project_of(ran.folder), ran.url(name))
    assert told["verdict"] in ("exported", "dropped", "failed", "duplicate")
    json.dumps(told, allow_nan=False).encode("utf-8")
    assert name not in NEVER_EXPORTED or told["verdict"] != "exported"


def test_a_long_body_is_cut_where_the_limit_says(ran: Ran) -> None:
    """Of 20 MB only crawl.max_body is kept, and the archive says that it was cut."""
    from corpus.store.warc_read import read_captures

    captures = {c.url: c for path in ran.folder.glob("warc/crawl_id=*/*.warc.gz") for c in read_captures(path, path.name)}
    cut: Any = captures[ran.url("twenty-megabytes")]
    assert (len(cut.body), cut.truncated) == (10 * 2**20, "length")


def test_the_funnel_adds_up(ran: Ran) -> None:
    """Law C over bad pages: every known URL is somewhere, and verify finds no fault."""
    steps = ran.summary.funnel
    assert all(step.adds_up() for step in steps)
    assert [step.n_out for step in steps[:-1]] == [step.n_in for step in steps[1:]]
    assert steps[0].n_in == len(BAD) + 1
    assert steps[0].dropped.get("decode") == sum(became(ran, name)[1] == "decode" for name in BAD)
    assert verify(project_of(ran.folder), lambda event, **facts: None).faults == []


def test_nothing_escapes_to_the_terminal(ran: Ran) -> None:
    """What pages say reaches a terminal without control characters, in every verb that shows it."""
    from tests.demo_corpus import corpus_cli

    config = ("-c", ran.folder / "corpus.toml")
    for command in (
        ("sample", "-n", "50"), ("sample", "--dropped", "-n", "50"), ("sql", "select * from documents"), ("why", ran.url("escape")),
        ("why", ran.url("wrong-charset")), ("status",), ("why", "http://example.org/\x1b[31m"), ("sql", "select '\x1b[31m' from pages"),
        ("why", "\x1b[31mnothing"), ("sql", "select \x1b[31m"), ("sample", "--rule", "\x1b[31m"),
    ):  # fmt: skip
        said = corpus_cli(*command, *config)
        assert "\x1b" not in said.out + said.err, command
        assert "\x07" not in said.out + said.err, command
