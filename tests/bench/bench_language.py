"""Language identification on UDHR, beside lid.176 alone and CLD2 alone: one command, one table.

    python -m tests.bench.bench_language [--languages]

The languages are those that UDHR and lid.176 both know (`tests/conformance/udhr_languages.tsv`), the texts pieces of 2,000 and
of 200 bytes, cut by position. Nothing is trained or set on these texts; `und` counts as wrong.
"""

from __future__ import annotations

import argparse
import os
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus.filter.language import _model, _sample, detect_languages
from corpus.filter.languages import UNDETERMINED, code_of_label
from corpus.filter.second_opinion import ask

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "conformance" / "udhr_languages.tsv"
Answer = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Piece:
    file: str
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Score:
    """`languages` is the mean over languages of the part that is right, `und` the part without an answer."""

    pieces: int
    right: float
    languages: float
    und: float
    per_cpu_s: float
    wrong: Counter[tuple[str, str, str]]


def pieces(archive: Path, size: int) -> list[Piece]:
    """Every whole piece of `size` bytes of every listed file."""
    rows = [line.split("\t") for line in LIST.read_text("utf-8").splitlines() if not line.startswith("#")]
    found = []
    with zipfile.ZipFile(archive) as files:
        for file, code in rows:
            raw = files.read(f"udhr2/{file}.txt").decode("utf-8-sig", "replace").encode()
            parts = (raw[at : at + size].decode("utf-8", "ignore") for at in range(0, len(raw) - size + 1, size))
            found += [Piece(file, code, part) for part in parts]
    return found


def score(given: Sequence[Piece], answer: Answer) -> Score:
    """How one way of asking does."""
    begin = time.process_time()
    codes = answer([piece.text for piece in given])
    cpu = time.process_time() - begin
    right: Counter[str] = Counter()
    wrong: Counter[tuple[str, str, str]] = Counter()
    for piece, code in zip(given, codes, strict=True):
        if code == piece.code:
            right[piece.code] += 1
        else:
            wrong[piece.file, piece.code, code] += 1
    total = Counter(piece.code for piece in given)
    mean = sum(right[code] / count for code, count in total.items()) / len(total)
    size = len(given)
    return Score(size, right.total() / size, mean, codes.count(UNDETERMINED) / size, size / cpu, wrong)


def ours(texts: Sequence[str]) -> list[str]:
    return [language.code for language in detect_languages(texts)]


def model_alone(texts: Sequence[str]) -> list[str]:
    """lid.176's first label for the cleaned text, without our checks."""
    labels, _ = _model(None).predict([_sample(text) for text in texts], k=1)
    return [code_of_label(label[0]) for label in labels]


def cld2_alone(texts: Sequence[str]) -> list[str]:
    return [ask(_sample(text)).code for text in texts]


def main() -> None:
    """Print the table; with `--languages` every confusion of ours too."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--languages", action="store_true")
    given = parser.parse_args()
    archive = Path(os.environ.get("CORPUS_TEST_DATA", ROOT.parent / "shared" / "data")) / "lid" / "udhr2.zip"
    ours(["Enough words of a language to load the models it takes to name it."])
    for size in (2000, 200):
        texts = pieces(archive, size)
        print(f"{len(texts)} pieces of {size} bytes, {len({piece.code for piece in texts})} languages")
        for name, answer in (("corpus", ours), ("lid.176 alone", model_alone), ("CLD2 alone", cld2_alone)):
            row = score(texts, answer)
            print(
                f"{name:14} right {row.right:.4f}   mean of languages {row.languages:.4f}   und {row.und:.4f}   {row.per_cpu_s:,.0f} texts/CPU-s"
            )
            if given.languages and answer is ours:
                for (file, code, said), count in row.wrong.most_common():
                    print(f"    {file} ({code}) called {said}: {count}")


if __name__ == "__main__":
    main()
