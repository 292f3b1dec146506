"""The stages of `corpus bench`: each prepares its fixed input untimed, then does its work once. Runs in a child process.

A stage returns (items, bytes); what it costs is measured around the work by `bench`, over the process and its reaped
children. Inputs are pages handed in by the caller, so every stage says what it was measured on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from corpus.model import Capture, CaptureRef, Response, content_sha256

Work = Callable[[], tuple[int, int]]
Pages = list[tuple[str, bytes]]


def urls(pages: Pages, folder: Path) -> Work:
    """Canonical form of every link of every page."""
    from corpus.page.tree import parse
    from corpus.url.canonical import canonical_links

    found = [(url, [link.found for link in parse(body, "text/html", url).links]) for url, body in pages]

    def work() -> tuple[int, int]:
        n = sum(len(canonical_links(links, url)) for url, links in found)
        return n, sum(len(link) for _, links in found for link in links)

    return work


def parse_links(pages: Pages, folder: Path) -> Work:
    """Decode, parse, links, meta elements, visible text and SimHash: what the crawl does with a body."""
    from corpus.page.simhash import simhash64
    from corpus.page.tree import parse

    def work() -> tuple[int, int]:
        for url, body in pages:
            page = parse(body, "text/html", url)
            _ = page.links, page.metas, simhash64(page.visible_text)
        return len(pages), sum(len(body) for _, body in pages)

    return work


def consent(pages: Pages, folder: Path) -> Work:
    """Both verdicts on 100,000 URLs of one authority with a robots.txt that names AI agents."""
    from corpus.optout.authority import AuthorityFiles, compile_authority
    from corpus.optout.filestate import file_state
    from corpus.optout.settings import OptoutSettings

    robots = b"User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /private/\n\nUser-agent: *\nDisallow: /cart/\nDisallow: /*?sort=\nAllow: /\n"
    files = AuthorityFiles(robots=file_state(robots, url="https://bench.example/robots.txt", read_at=0.0))
    rules = compile_authority(files, OptoutSettings(), "CorpusBot")
    targets = [f"https://bench.example/section{n % 97}/page{n}.html" for n in range(100_000)]
    rules.judge(targets[0], 0.0)

    def work() -> tuple[int, int]:
        for url in targets:
            rules.judge(url, 0.0)
        return len(targets), len(robots)

    return work


def warc(pages: Pages, folder: Path) -> Work:
    """Page groups (request, response, metadata) into a segment, synced and sealed."""
    from corpus.crawl.ports import Request
    from corpus.store.layout import Layout
    from corpus.store.warc_write import SegmentWriter

    layout = Layout(folder, folder / ".local")
    writer = SegmentWriter(layout, layout.warc_dir("bench"), lambda seq: f"s00-000000-{seq:06d}", clock=lambda: 0.0)
    headers = (("Content-Type", "text/html; charset=utf-8"), ("Server", "bench"))
    jobs = [
        (url, Request(url, "bench.example", "127.0.0.1"), Response(200, headers, b, b, "HTTP/1.1 200 OK", b"GET / HTTP/1.1\r\n\r\n", "127.0.0.1", 0.0, 0.1, 0.1, len(b)))
        for url, b in pages
    ]  # fmt: skip

    def work() -> tuple[int, int]:
        for url, request, response in jobs:
            writer.append(
                url, request, response, depth=1, via="", metadata={"corpus-content-sha256": content_sha256(response.decoded)}
            )
        writer.sync()
        writer.rotate(force=True)
        return len(jobs), sum(len(body) for _, body in pages)

    return work


def _extract(profile: str) -> Callable[[Pages, Path], Work]:
    def stage(pages: Pages, folder: Path) -> Work:
        from corpus.filter.extract import extract

        extract(pages[0][1], url=pages[0][0], profile=profile)

        def work() -> tuple[int, int]:
            for url, body in pages:
                extract(body, url=url, profile=profile)
            return len(pages), sum(len(body) for _, body in pages)

        return work

    stage.__doc__ = f"Main text by profile `{profile}`, each page seen once."
    return stage


def _texts(pages: Pages) -> list[str]:
    from corpus.filter.extract import extract

    return [text for url, body in pages if (text := extract(body, url=url, profile="fast").text)]


def language(pages: Pages, folder: Path) -> Work:
    """Language of every text."""
    from corpus.filter.language import detect_languages

    texts = _texts(pages)
    detect_languages(texts[:1])

    def work() -> tuple[int, int]:
        detect_languages(texts)
        return len(texts), sum(map(len, texts))

    return work


def signals(pages: Pages, folder: Path) -> Work:
    """Every signal and span, and the MinHash signature."""
    from corpus.filter.measure import measured_chunks

    texts = _texts(pages)

    def work() -> tuple[int, int]:
        for _ in measured_chunks(texts, ["en"] * len(texts)):
            continue
        return len(texts), sum(map(len, texts))

    return work


def minhash(pages: Pages, folder: Path) -> Work:
    """Signatures alone, from text."""
    from corpus.filter.signatures import minhash as sign

    texts = _texts(pages)

    def work() -> tuple[int, int]:
        sign(texts)
        return len(texts), sum(map(len, texts))

    return work


def process(pages: Pages, folder: Path) -> Work:
    """The whole map stage: captures in, four Parquet families out."""
    from corpus.filter.map import MapSettings, measure_segment
    from corpus.filter.tables import write_tables

    captures = [
        Capture(
            url,
            url,
            200,
            (("Content-Type", "text/html; charset=utf-8"),),
            body,
            0.0,
            CaptureRef("bench", n, 1),
            content_sha256=content_sha256(body),
        )
        for n, (url, body) in enumerate(pages)
    ]

    def work() -> tuple[int, int]:
        tables = measure_segment(captures, segment="bench", crawl_id="bench", settings=MapSettings())
        size = 0

        @contextmanager
        def place(name: str) -> Iterator[Path]:
            nonlocal size
            path = folder / name.partition("/")[0]
            yield path
            size += path.stat().st_size

        write_tables(tables, place)
        return len(captures), size

    return work


def clusters(pages: Pages, folder: Path) -> Work:
    """Band join and clusters of 100,000 synthetic signatures, a tenth of them near copies."""
    import numpy as np

    from corpus.filter.clusters import cluster

    rng = np.random.default_rng(1)
    n = 100_000
    table = rng.integers(0, 2**32, size=(n, 112), dtype=np.uint32)
    copies = rng.choice(n // 2, size=n // 10, replace=False)
    table[n // 2 : n // 2 + n // 10] = table[copies]
    table[n // 2 : n // 2 + n // 10, :8] = rng.integers(0, 2**32, size=(n // 10, 8), dtype=np.uint32)
    ids = [f"{i:032x}" for i in range(n)]

    def work() -> tuple[int, int]:
        cluster(ids, table)
        return n, table.nbytes

    return work


STAGES: dict[str, Callable[[Pages, Path], Work]] = {
    "urls": urls,
    "parse": parse_links,
    "consent": consent,
    "warc": warc,
    "extract-default": _extract("default"),
    "extract-fast": _extract("fast"),
    "language": language,
    "signals": signals,
    "minhash": minhash,
    "process": process,
    "clusters": clusters,
}
"""Stages that run on pages in one process. `fetch` and `demo` are whole commands and live in `bench`."""


def measured(work: Work) -> tuple[int, int, float, float]:
    """(items, bytes, CPU-seconds, wall seconds) of one execution, children included."""
    import resource

    def cpu() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in usages)

    before, at = cpu(), time.perf_counter()
    items, size = work()
    return items, size, cpu() - before, time.perf_counter() - at
