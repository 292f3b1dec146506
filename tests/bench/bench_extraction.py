"""Quality and speed of extraction beside trafilatura and resiliparse: `python -m tests.bench.bench_extraction`.

Quality: the gold sets (CORPUS_TEST_DATA), by default the third that training never sees, by page type and by the language
of the gold; every extractor reads the same pages in the same run. Speed: whole documents, bytes to text, each page seen once by each extractor, interleaved,
CPU-seconds of this process. Neither touches anything but standard output.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

from corpus.filter.blocks.extract import extract_blocks, extractor_name
from corpus.filter.extract_fallback import fast_text
from corpus.filter.language import detect_language
from corpus.page.tree import parse
from training.extraction.gold import GoldPage, data_folder, load
from training.extraction.metrics import bag_f1, micro_f1, shingle_f1, snippet_counts


def blocks(body: bytes) -> str:
    return extract_blocks(parse(body, "text/html")).text


def trafilatura_default(body: bytes) -> str:
    import trafilatura

    return trafilatura.extract(parse(body, "text/html").text) or ""


def resiliparse_main(body: bytes) -> str:
    return fast_text(parse(body, "text/html").text)


EXTRACTORS: dict[str, Callable[[bytes], str]] = {
    "blocks": blocks,
    "trafilatura": trafilatura_default,
    "resiliparse": resiliparse_main,
}


FEW = 4
"""Pages of one language below which its row would say nothing: they stand together as "other"."""


def languages(pages: Sequence[GoldPage]) -> list[str]:
    """The language of each page's gold, as `corpus` itself names it."""
    found = [detect_language(page.text or " ".join(page.with_)).code for page in pages]
    many = Counter((page.set, code) for page, code in zip(pages, found, strict=True))
    return [code if many[page.set, code] >= FEW else "other" for page, code in zip(pages, found, strict=True)]


def groups(page: GoldPage, language: str) -> tuple[str, ...]:
    """The rows a page counts in."""
    kind = (f"{page.set} {page.kind}",) if page.set == "WCXB" else ()
    return (page.set, *kind, f"{page.set} in {language}")


def read_all(page: GoldPage) -> dict[str, str]:
    """Each extractor's text of one page."""
    logging.disable(logging.CRITICAL)
    return {name: extractor(page.html) for name, extractor in EXTRACTORS.items()}


def quality(pages: Sequence[GoldPage], spoken: Sequence[str], texts: Iterable[str]) -> dict[str, float]:
    """Scores of one extractor: the three sets, WCXB by page type, all by language."""
    found: dict[str, list[float]] = defaultdict(list)
    snippets: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for page, language, text in zip(pages, spoken, texts, strict=True):
        for name in groups(page, language):
            if page.set == "WCXB":
                found[name].append(bag_f1(text, page.text or ""))
            elif page.set == "AEB":
                found[name].append(shingle_f1(text, page.text or ""))
            else:
                snippets[name].append(snippet_counts(text, page.with_, page.without))
    means = {name: sum(values) / len(values) for name, values in found.items()}
    scores = means | {name: micro_f1(counts) for name, counts in snippets.items()}
    return dict(sorted(scores.items(), key=lambda item: (-len(item[0].split()[0]), item[0])))


def speed(pages: Sequence[GoldPage]) -> dict[str, float]:
    """CPU-seconds of each extractor over the pages; who reads a page first takes turns."""
    spent = dict.fromkeys(EXTRACTORS, 0.0)
    order = list(EXTRACTORS)
    for at, page in enumerate(pages):
        for name in order[at % 3 :] + order[: at % 3]:
            before = time.process_time()
            EXTRACTORS[name](page.html)
            spent[name] += time.process_time() - before
    return spent


def table(pages: Sequence[GoldPage], spoken: Sequence[str], scores: dict[str, dict[str, float]]) -> str:
    """Markdown."""
    sizes = Counter(name for page, language in zip(pages, spoken, strict=True) for name in groups(page, language))
    rows = [f"| set (pages) | {' | '.join(EXTRACTORS)} |", f"|---|{'---|' * len(EXTRACTORS)}"]
    for name in scores["blocks"]:
        marks = " | ".join(f"{scores[extractor][name]:.3f}" for extractor in EXTRACTORS)
        rows += [f"| {name} ({sizes[name]}) | {marks} |"]
    return "\n".join(rows)


def versions() -> str:
    """What was measured, for the caption of the table."""
    return ", ".join([extractor_name(), *(f"{name} {version(name)}" for name in ("trafilatura", "resiliparse"))])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--part", choices=("held", "train", "all"), default="held")
    parser.add_argument("--speed-pages", type=int, default=90)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    pages = [page for page in load(options.data) if options.part == "all" or page.held == (options.part == "held")]
    with ProcessPoolExecutor(2) as pool:
        read = list(pool.map(read_all, pages, chunksize=4))
    spoken = languages(pages)
    scores = {name: quality(pages, spoken, (texts[name] for texts in read)) for name in EXTRACTORS}
    # warm-up on a page that is not timed: imports, tables, model
    timed = pages[:: max(len(pages) // options.speed_pages, 1)][: options.speed_pages]
    read_all(next((page for page in pages if page not in timed), pages[0]))
    spent = speed(timed)
    ratio = spent["trafilatura"] / spent["blocks"]
    if options.json:
        print(json.dumps({"part": options.part, "scores": scores, "cpu_seconds": spent, "pages": len(timed), "ratio": ratio}))
        return 0
    print(versions(), f"part {options.part}", sep="; ")
    print(table(pages, spoken, scores))
    print(
        ", ".join(f"{name} {1000 * seconds / len(timed):.1f} ms" for name, seconds in spent.items()),
        f"a page ({len(timed)} pages)",
    )
    print(f"blocks: {ratio:.2f} times trafilatura's speed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
