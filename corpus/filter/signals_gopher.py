"""Gopher's quality and repetition signals, and the character classes beside them, for one chunk."""

from __future__ import annotations

import re

import numpy as np

from corpus.filter.charclass import ALPHA, DIGIT, MARK, PUNCT, SCRIPTS, SPACE, UPPER, tables
from corpus.filter.lines import Flags, Lines
from corpus.filter.repetition import repetition
from corpus.filter.signals import Column, Columns, count, ratio
from corpus.filter.tokens import I64, Chunk

_BULLETS = (ord("•"), ord("-"))
_PARAGRAPHS = re.compile(r"\n{2,}")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"]+")
_UNSPACED = tuple(SCRIPTS.index(s) for s in ("Hani", "Hira", "Kana", "Bopo", "Yiii", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"))
_EAST_ASIAN = tuple(SCRIPTS.index(s) for s in ("Hani", "Hira", "Kana", "Bopo", "Hang"))


def scripts(chunk: Chunk) -> I64:
    """Letters by script: one row a document, one column a script of `charclass.SCRIPTS` (the first: none)."""
    return _histogram(chunk, tables().script.take(chunk.codes, mode="clip"), 64)


def unspaced(by_script: I64) -> Flags:
    """Documents most of whose letters belong to scripts that put no space between words."""
    letters = by_script[:, 1:].sum(axis=1)
    result: Flags = 2 * by_script[:, list(_UNSPACED)].sum(axis=1) > letters
    return result


def _histogram(chunk: Chunk, values: np.ndarray[tuple[int], np.dtype[np.uint8]], size: int) -> I64:
    sizes = np.diff(chunk.bounds)
    keyed = values + np.repeat(np.arange(len(chunk)) * size, sizes)
    table = np.bincount(keyed, minlength=size * len(chunk)).reshape(len(chunk), size)
    table[np.arange(len(chunk)), values[chunk.bounds[1:] - 1]] -= 1  # the newline after each text is none of it
    return table


def characters(chunk: Chunk, by_script: I64) -> Columns:
    """Shares of character classes."""
    table = _histogram(chunk, (chunk.flags & 0x3F).astype(np.uint8), 64)
    bits = np.arange(64)
    of = {flag: table[:, (bits & flag) != 0].sum(axis=1) for flag in (DIGIT, SPACE, UPPER)}
    letters = table[:, (bits & ALPHA) != 0].sum(axis=1)
    written = table[:, (bits & (ALPHA | MARK)) != 0].sum(axis=1)
    total = chunk.lengths
    main = np.maximum(by_script[:, 1:].max(axis=1), by_script[:, list(_EAST_ASIAN)].sum(axis=1))
    texts = chunk.texts
    return {
        "chars": count(total),
        "letter_ratio": ratio(written, total - of[SPACE]),
        "digit_ratio": ratio(of[DIGIT], total),
        "upper_ratio": ratio(of[UPPER], letters),
        "space_ratio": ratio(of[SPACE], total),
        "symbol_ratio": ratio(table[:, (bits & (ALPHA | MARK | DIGIT | SPACE)) == 0].sum(axis=1), total),
        "parenthesis_ratio": ratio(np.array([t.count("(") + t.count(")") for t in texts]), total),
        "url_char_ratio": ratio(np.array([_url_chars(t) for t in texts]), total),
        "main_script_ratio": ratio(main, by_script[:, 1:].sum(axis=1)),
        "replacement_chars": count(np.array([t.count("\ufffd") for t in texts])),
    }


def _url_chars(text: str) -> int:
    if "://" not in text and "www." not in text:
        return 0
    return sum(match.end() - match.start() for match in _URL.finditer(text))


def quality(chunk: Chunk, lines: Lines, no_spaces: Flags) -> Columns:
    """Sizes and Gopher's quality measures."""
    tokens, words = chunk.tokens, chunk.words
    n_tokens, n_words = np.diff(tokens.bounds), np.diff(words.bounds)
    lengths = words.end - words.start
    per_line = np.diff(lines.bounds)
    codes, texts = chunk.codes, chunk.texts
    opener = codes[np.minimum(lines.first, len(codes) - 1)]
    bullets = lines.filled & ((opener == _BULLETS[0]) | (opener == _BULLETS[1]))
    alpha = np.bincount(tokens.doc[tokens.rank == 2], minlength=len(chunk))
    return {
        "tokens": count(n_tokens),
        "words": count(n_words),
        "distinct_words": count(_distinct(chunk)),
        "sentences": count(lines.per_doc(lines.sentences)),
        "lines": count(lines.per_doc(lines.filled)),
        "longest_line": count(np.maximum.reduceat(lines.end - lines.start, lines.bounds[:-1])),
        "longest_word": count(_longest_piece(chunk)),
        "mean_word_length": ratio(_sums(lengths, words.bounds), n_words, no_spaces),
        "median_word_length": _median(lengths, words.doc, words.bounds, no_spaces),
        "hash_ratio": ratio(np.array([t.count("#") for t in texts]), n_tokens),
        "ellipsis_ratio": ratio(np.array([t.count("...") + t.count("…") for t in texts]), n_tokens),
        "bullet_line_ratio": ratio(lines.per_doc(bullets), per_line),
        "ellipsis_line_ratio": ratio(lines.per_doc(lines.ends_in_ellipsis), per_line),
        "alpha_word_ratio": ratio(alpha, n_tokens, no_spaces),
    }


def _sums(values: I64, bounds: I64) -> I64:
    total = np.concatenate(([0], np.cumsum(values)))
    return total[bounds[1:]] - total[bounds[:-1]]


def _distinct(chunk: Chunk) -> I64:
    words = chunk.words
    keyed = words.hash ^ (words.doc.astype(np.uint64) * np.uint64(0xA24BAED4963EE407))
    order = np.argsort(keyed)  # the document is part of the key: equal neighbours are equal words of one document
    ranked = keyed[order]
    repeats = order[1:][ranked[1:] == ranked[:-1]]
    return np.diff(words.bounds) - np.bincount(words.doc[repeats], minlength=len(chunk))


def _median(lengths: I64, doc: I64, bounds: I64, no_spaces: Flags) -> Column:
    order = np.argsort(doc * (1 << 40) + lengths)
    ranked = lengths[order]
    size = np.diff(bounds)
    if not len(ranked):
        return ratio(size, size, no_spaces)
    middle = bounds[:-1] + size // 2
    upper = ranked[np.minimum(middle, len(ranked) - 1)]
    lower = ranked[np.minimum(np.maximum(middle - (size % 2 == 0), 0), len(ranked) - 1)]
    return ratio(lower + upper, np.where(size > 0, 2, 0), no_spaces)


def _longest_piece(chunk: Chunk) -> I64:
    blank = np.flatnonzero((chunk.flags & SPACE) != 0)
    gaps = np.diff(blank, prepend=-1) - 1
    doc = np.searchsorted(chunk.bounds, blank, side="right") - 1
    first = np.searchsorted(doc, np.arange(len(chunk)))
    return np.maximum.reduceat(gaps, first)


def repeated(chunk: Chunk) -> Columns:
    """Gopher's repetition measures."""
    total = chunk.lengths
    grams = repetition(chunk.tokens)
    rows = np.array([_repeated_blocks(text) for text in chunk.texts], dtype=np.int64)
    paragraphs, dup_paragraphs, dup_paragraph_chars, lines, dup_lines, dup_line_chars = rows.T
    columns: Columns = {
        "paragraphs": count(paragraphs),
        "dup_paragraph_ratio": ratio(dup_paragraphs, paragraphs),
        "dup_paragraph_char_ratio": ratio(dup_paragraph_chars, total),
        "dup_line_ratio": ratio(dup_lines, lines),
        "dup_line_char_ratio": ratio(dup_line_chars, total),
        "dup_line_char_share": ratio(dup_line_chars, total - np.diff(np.searchsorted(chunk.newlines, chunk.bounds)) + 1),
    }
    columns.update({f"top_{n}gram_char_ratio": ratio(chars, total) for n, chars in grams.top.items()})
    columns.update({f"dup_{n}gram_char_ratio": ratio(chars, total) for n, chars in grams.duplicate.items()})
    return columns


def _repeated_blocks(text: str) -> tuple[int, int, int, int, int, int]:
    paragraphs = [block for block in _PARAGRAPHS.split(text) if block.strip()]
    rows = [line for line in text.split("\n") if line.strip()]
    return (len(paragraphs), *_seen_before(paragraphs), len(rows), *_seen_before(rows))


def _seen_before(blocks: list[str]) -> tuple[int, int]:
    """How many blocks equal an earlier one, and their characters."""
    if len(set(blocks)) == len(blocks):
        return 0, 0
    seen: set[str] = set()
    number = chars = 0
    for block in blocks:
        if block in seen:
            number += 1
            chars += len(block)
        else:
            seen.add(block)
    return number, chars


assert max(PUNCT, UPPER) < 64, "the class histogram holds six flag bits"
