"""Repeated n-grams of a chunk, Gopher's way, without building a single n-gram string.

An n-gram that occurs twice has a prefix that occurs twice: each length looks only at the positions that survived the one
before, so ordinary prose costs little more than one sort. Source of the definitions: Rae et al. 2021, as implemented by
datatrove (top n-grams count overlaps; duplicate n-grams are counted greedily and their words skipped).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corpus.filter.tokens import I64, U64, Tokens, mix64

TOP = (2, 3, 4)
DUPLICATE = (5, 6, 7, 8, 9, 10)
_STEP = np.uint64(0x9FB21C651E98DF25)
_DOC = np.uint64(0xA24BAED4963EE407)


@dataclass(frozen=True, slots=True)
class Repetition:
    """Characters per document: `top[n]` of the most frequent n-gram (joined by spaces, times its count), `duplicate[n]` repeated."""

    top: dict[int, I64]
    duplicate: dict[int, I64]


def repetition(tokens: Tokens) -> Repetition:
    """Measure every length once; documents shorter than n words have 0 of it."""
    docs = len(tokens.bounds) - 1
    ends = tokens.bounds[1:][tokens.doc]
    chars = np.concatenate(([0], np.cumsum(tokens.end - tokens.start)))
    top: dict[int, I64] = {}
    duplicate: dict[int, I64] = {}
    at = np.arange(len(tokens))
    grams: U64 = mix64(tokens.hash + tokens.doc.astype(np.uint64) * _DOC)
    for n in range(2, DUPLICATE[-1] + 1):
        fits = at + n <= ends[at]
        at, grams = at[fits], grams[fits]
        grams = mix64(grams * _STEP + tokens.hash[at + n - 1])
        order = np.argsort(grams)
        ranked = grams[order]
        new = np.concatenate(([True], ranked[1:] != ranked[:-1]))[: len(at)]
        group = np.cumsum(new) - 1
        sizes = np.bincount(group) if len(at) else np.zeros(0, dtype=np.int64)
        if n in TOP:
            first = np.minimum.reduceat(at[order], np.flatnonzero(new)) if len(at) else at
            top[n] = _top(first, sizes, tokens, chars, n, docs)
        repeated = order[sizes[group] > 1]
        keep = np.sort(repeated)
        if n in DUPLICATE:
            label = np.empty(len(at), dtype=np.int64)
            label[order] = group
            duplicate[n] = _greedy(at[keep], label[keep], tokens, chars, n, docs)
        at, grams = at[keep], grams[keep]
    return Repetition(top, duplicate)


def _top(first: I64, sizes: I64, tokens: Tokens, chars: I64, n: int, docs: int) -> I64:
    """Length times count of the most frequent n-gram; the earliest one on a tie."""
    result = np.zeros(docs, dtype=np.int64)
    # a document whose n-grams all occur once still has a most frequent one: its first
    alone = np.flatnonzero(np.diff(tokens.bounds) >= n)
    result[alone] = chars[tokens.bounds[alone] + n] - chars[tokens.bounds[alone]] + n - 1
    many = np.flatnonzero(sizes > 1)
    if not len(many):
        return result
    first, sizes = first[many], sizes[many]
    doc = tokens.doc[first]
    order = np.lexsort((first, -sizes, doc))
    best = order[np.concatenate(([True], np.diff(doc[order]) != 0))]
    result[doc[best]] = (chars[first[best] + n] - chars[first[best]] + n - 1) * sizes[best]
    return result


def _greedy(at: I64, label: I64, tokens: Tokens, chars: I64, n: int, docs: int) -> I64:
    """Characters of n-grams seen before, walking from left to right and skipping the words of each hit."""
    result = np.zeros(docs, dtype=np.int64)
    if not len(at):
        return result
    seen: set[int] = set()  # labels already differ between documents
    free = 0
    hits: list[int] = []
    for position, name in zip(at.tolist(), label.tolist(), strict=True):
        if position < free:
            continue
        if name in seen:
            hits.append(position)
            free = position + n
        else:
            seen.add(name)
    where = np.array(hits, dtype=np.int64)
    np.add.at(result, tokens.doc[where], chars[where + n] - chars[where])
    return result
