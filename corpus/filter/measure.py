"""Measuring: texts in, one row of signals each out, with spans and signatures from the same tokens.

A pure function of each text and its language: the batch it comes in changes nothing. Of a text longer than `MEASURED`
code points the signals, line spans and the signature see the first `MEASURED` only, and `unmeasured_chars` says how many
were left; personal data is found in all of it, piece by piece. So time and memory stay bounded for any page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from corpus.filter.languages import normalise_language
from corpus.filter.lines import lines as find_lines
from corpus.filter.signals import SIGNALS, Columns, count
from corpus.filter.signals_gopher import characters, quality, repeated, scripts, unspaced
from corpus.filter.signals_lines import c4, dclm, fineweb
from corpus.filter.signatures import U32, chunk_shingles, distinct_counts, signatures
from corpus.filter.simhash import simhashes
from corpus.filter.spans import LineRules, line_spans, ordered, personal_spans
from corpus.filter.spans_pii import PII_KINDS, Span
from corpus.filter.stopwords import stop_words
from corpus.filter.tokens import Chunk, chunks, measured_part
from corpus.filter.tokens import chunk as chunk_of

_TYPES = {"int64": pa.int64(), "double": pa.float64(), "string": pa.string()}


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a few texts in order. `shingle_count` counts different shingles; `chunk` holds the texts as
    they were seen, tokenised."""

    chunk: Chunk
    signals: Columns
    spans: list[list[Span]]
    minhash: U32
    shingle_count: np.ndarray[tuple[int], np.dtype[np.int64]]


def measure_chunk(chunk: Chunk, languages: Sequence[str], rests: Sequence[str] = ()) -> Measured:
    """Everything of one chunk, tokenised once. `languages` are codes, `und` where unknown; `rests[i]` is what follows the
    i-th text beyond the limit (empty for nearly all)."""
    lines = find_lines(chunk)
    by_script = scripts(chunk)
    no_spaces = unspaced(by_script)
    rules = LineRules(lines, c4(lines, by_script, no_spaces), dclm(lines, no_spaces))
    spans = line_spans(rules)
    personal = personal_spans(chunk)
    beyond = np.array([len(rest) for rest in rests] or [0] * len(chunk))
    for doc in np.flatnonzero(beyond).tolist():
        personal[doc] += _personal_beyond(rests[doc], int(chunk.lengths[doc]))
    grams, bounds = chunk_shingles(chunk)
    columns: Columns = {
        **characters(chunk, by_script),
        **quality(chunk, lines, no_spaces),
        **stop_words(chunk, languages),
        **repeated(chunk),
        **rules.c4.columns(),
        **fineweb(lines, by_script),
        **rules.dclm.columns(),
        **{f"{kind}_count": count(np.array([sum(s.kind == kind for s in found) for found in personal])) for kind in PII_KINDS},
        "unmeasured_chars": count(beyond),
        "simhash": simhashes(chunk),
    }
    columns["chars"] = count(chunk.lengths + beyond)
    assert columns.keys() == SIGNALS.keys(), f"signals and their table differ: {columns.keys() ^ SIGNALS.keys()}"
    both = [ordered([*line, *found]) for line, found in zip(spans, personal, strict=True)]
    return Measured(chunk, columns, both, signatures(grams, bounds), distinct_counts(grams, bounds))


def signal_arrays(columns: Columns) -> dict[str, pa.Array]:
    """Columns as Arrow arrays in the table's order; NULL is NULL, never NaN."""
    return {
        name: pa.array(columns[name].values, type=_TYPES[spec.type], mask=columns[name].null) for name, spec in SIGNALS.items()
    }


def measured_chunks(texts: Sequence[str], languages: Sequence[str]) -> Iterator[Measured]:
    """Measure texts chunk by chunk, in order."""
    at = 0
    seen = [measured_part(text) for text in texts]
    for part in chunks(seen):
        mine = slice(at, at + len(part))
        at += len(part)
        rests = [text[len(start) :] for text, start in zip(texts[mine], seen[mine], strict=True)]
        measured = measure_chunk(part, languages[mine], rests if any(rests) else ())
        del part  # its tokens are some hundred bytes a character of a long text: once is enough while the next is measured
        yield measured
        del measured


def _personal_beyond(rest: str, offset: int) -> list[Span]:
    """Personal data past the limit, in pieces cut at white space; positions are the whole text's."""
    found = []
    while rest:
        piece = measured_part(rest)
        found += [Span(span.kind, span.start + offset, span.end + offset) for span in personal_spans(chunk_of([piece]))[0]]
        offset += len(piece)
        rest = rest[len(piece) :]
    return found


def measure(texts: Sequence[str], languages: Sequence[str] | None = None) -> pa.Table:
    """All signals of texts, one row each, in order. `languages`: codes or names; detected where not given.

    Raises ValueError for a language nobody knows: its rules would silently not apply.
    """
    if languages is not None:
        known = {spelling: normalise_language(spelling) for spelling in dict.fromkeys(languages)}
        languages = [known[spelling] for spelling in languages]
    else:
        from corpus.filter.language import detect_languages

        languages = [language.code for language in detect_languages(texts)]
    if len(languages) != len(texts):
        raise ValueError(f"{len(texts)} texts, but {len(languages)} languages")
    schema = pa.schema([(name, _TYPES[spec.type]) for name, spec in SIGNALS.items()])
    tables = [pa.table(signal_arrays(measured.signals), schema=schema) for measured in measured_chunks(texts, languages)]
    return pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()
