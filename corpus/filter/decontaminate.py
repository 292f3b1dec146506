"""Decontamination: does a text hold runs of words of a benchmark? A signal with the task's name, never a decision.

Benchmark files are .jsonl (every string in a record is a text, and all of them together), .json, .csv, .tsv (every cell) or .txt (texts end at a blank
line). Runs of 12 words are looked up, lower-cased and without punctuation, over line ends: a wrapped or reflowed copy is
still found, and so is a list of short lines. A benchmark text of 8 to 11 words counts as a whole; shorter ones are phrases
that stand anywhere and are left out. A run that more than ten records of one file share is its template and proves nothing.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from corpus.errors import UsageError
from corpus.filter.tokens import U64, Chunk, chunks, mix64

KEY: Final = "filter.decontaminate"
NGRAM: Final = 12
SHORTEST: Final = 8
"""Words below which a benchmark text is a phrase of the language."""
TEMPLATE: Final = 10
"""Records of one file that may share a run before it counts as the file's template."""
MAX_TASKS: Final = 65_535
_STEP = np.uint64(0x9E6C63D0876A9A35)


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """Runs by length, each with its hashes (sorted) and the number of its task."""

    tasks: tuple[str, ...]
    runs: dict[int, tuple[U64, NDArray[np.uint16]]]
    left_out: int
    """Benchmark texts too short to look for."""

    def find(self, chunk: Chunk) -> tuple[NDArray[np.int64], list[str | None]]:
        """For each document of a chunk: runs found, and the task with most of them (a tie: the first by name)."""
        docs, tasks = [], []
        for length, (keys, task) in self.runs.items():
            grams, doc = _runs(chunk, length)
            at = np.minimum(np.searchsorted(keys, grams), len(keys) - 1)
            hit = np.flatnonzero(keys[at] == grams)
            docs.append(doc[hit])
            tasks.append(task[at[hit]])
        where = np.concatenate(docs) if docs else np.zeros(0, dtype=np.int64)
        which = np.concatenate(tasks) if tasks else np.zeros(0, dtype=np.uint16)
        counts = np.bincount(where, minlength=len(chunk)).astype(np.int64)
        named: list[str | None] = [None] * len(chunk)
        for index in np.flatnonzero(counts).tolist():
            votes = np.bincount(which[where == index], minlength=len(self.tasks))
            named[index] = self.tasks[int(votes.argmax())]
        return counts, named


def _runs(chunk: Chunk, length: int) -> tuple[U64, NDArray[np.int64]]:
    """Hashes of all runs of `length` words inside documents, and the document of each."""
    words = chunk.words
    size = len(words) - length + 1
    if size <= 0:
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    grams = words.hash[:size].copy()
    for step in range(1, length):
        grams *= _STEP
        grams += words.hash[step : size + step]
    whole = words.doc[:size] == words.doc[length - 1 :]
    return mix64(grams[whole]), words.doc[:size][whole]


def load_benchmarks(paths: Sequence[str]) -> Benchmarks:
    """Index benchmark files. The task is a file's name without its suffix. Raises UsageError for what cannot be looked for."""
    names = sorted({Path(path).stem for path in paths})
    if len(names) != len(paths) or len(names) > MAX_TASKS:
        raise UsageError("two benchmark files have one name", KEY, "the file's name is the task's: rename one")
    parts: dict[int, list[tuple[U64, int]]] = {}
    left_out = 0
    for path in sorted(paths, key=lambda path: Path(path).stem):
        found, short = _index(benchmark_records(Path(path)))
        left_out += short
        if not found:
            raise UsageError(
                f"no text of {SHORTEST} words or more",
                f"{KEY}: {path}",
                "give the benchmark's questions and answers as .jsonl or .txt",
            )
        for length, grams in found.items():
            parts.setdefault(length, []).append((grams, names.index(Path(path).stem)))
    return Benchmarks(tuple(names), {length: _merged(parts[length]) for length in sorted(parts)}, left_out)


def _merged(parts: list[tuple[U64, int]]) -> tuple[U64, NDArray[np.uint16]]:
    """One sorted index; a run of two tasks belongs to the first by name."""
    every = np.concatenate([grams for grams, _ in parts])
    task = np.concatenate([np.full(len(grams), number, dtype=np.uint16) for grams, number in parts])
    keys, first = np.unique(every, return_index=True)
    return keys, task[first]


def _index(records: Iterable[Sequence[str]]) -> tuple[dict[int, U64], int]:
    """Runs of one file's records by length, templates left out; and how many texts were too short."""
    found: dict[int, list[NDArray[np.uint64]]] = {}
    short = 0
    texts, owner = [], []
    for number, record in enumerate(records):
        own = list(dict.fromkeys([*record, "\n".join(record)]))  # a page shows a question with its choices below it
        texts += own
        owner += [number] * len(own)
    at = 0
    for part in chunks(texts):
        record_of = np.array(owner[at : at + len(part)], dtype=np.uint64)
        at += len(part)
        sizes = np.diff(part.words.bounds)
        short += int((sizes < SHORTEST).sum())
        for length in range(SHORTEST, NGRAM + 1):
            grams, doc = _runs(part, length)
            chosen = slice(None) if length == NGRAM else sizes[doc] == length
            if len(grams[chosen]):
                found.setdefault(length, []).append(np.stack((grams[chosen], record_of[doc[chosen]])))
    kept = {}
    for length, pairs in found.items():
        once = np.unique(np.concatenate(pairs, axis=1), axis=1)
        keys, counts = np.unique(once[0], return_counts=True)
        if (counts <= TEMPLATE).any():
            kept[length] = keys[counts <= TEMPLATE]
    return kept, short


def benchmark_records(path: Path) -> Iterator[list[str]]:
    """The texts of each record of a benchmark file."""
    try:
        text = path.read_text("utf-8-sig")
        if path.suffix == ".jsonl":
            yield from (_strings(json.loads(line)) for line in text.splitlines() if line.strip())
        elif path.suffix == ".json":
            whole = json.loads(text)
            yield from map(_strings, whole if isinstance(whole, list) else [whole])
        elif path.suffix in {".csv", ".tsv"}:
            for row in csv.reader(text.splitlines(keepends=True), delimiter="\t" if path.suffix == ".tsv" else ","):
                yield [cell for cell in row if cell.strip()]
        elif path.suffix == ".txt":
            yield from ([block] for block in text.replace("\r\n", "\n").split("\n\n") if block.strip())
        else:
            hint = "write it as .jsonl, .json, .csv, .tsv or .txt"
            raise UsageError(f"no benchmark file: {path.suffix or 'no suffix'}", f"{KEY}: {path}", hint)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise UsageError(f"cannot be read: {error}", f"{KEY}: {path}") from error


def _strings(value: Any) -> list[str]:
    """Every string in a JSON value, in order."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _strings(item)]
