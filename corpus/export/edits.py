"""Cuts: the spans of the kinds a policy lists are removed from a text, from its start to its end, overlaps once.

Spans count code points of the stored text. A cut that empties a line takes the line with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc


def cut(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text without the spans; spans may overlap, touch, come in any order, or run past the end."""
    kept: list[str] = []
    at = 0
    for start, end in sorted((max(start, 0), min(end, len(text))) for start, end in spans):
        if end <= max(at, start):
            continue
        start = max(start, at)
        if (start == 0 or text[start - 1] == "\n") and text[end : end + 1] == "\n":
            end += 1  # the whole line, with its newline
        kept.append(text[at:start])
        at = end
    kept.append(text[at:])
    return "".join(kept)


def cut_column(texts: pa.ChunkedArray, ids: pa.ChunkedArray, spans: dict[str, list[tuple[int, int]]]) -> pa.ChunkedArray:
    """A text column with the spans of its rows cut; rows without spans are not touched."""
    if not spans:
        return texts
    mask = pc.is_in(ids, pa.array(list(spans), pa.string()))
    chosen = pc.indices_nonzero(mask)
    if not len(chosen):
        return texts
    edited = [
        cut(text, spans[name]) for text, name in zip(texts.take(chosen).to_pylist(), ids.take(chosen).to_pylist(), strict=True)
    ]
    return pc.replace_with_mask(texts.combine_chunks(), mask.combine_chunks(), pa.array(edited, texts.type))


def spans_by_id(spans: pa.Table, kinds: Sequence[str], ids: pa.Array) -> dict[str, list[tuple[int, int]]]:
    """The spans of some kinds of some documents. `spans` has the columns id, kind, start, end."""
    mask = pc.and_(pc.is_in(spans["kind"], pa.array(list(kinds), pa.string())), pc.is_in(spans["id"], ids))
    chosen = spans.filter(mask)
    found: dict[str, list[tuple[int, int]]] = {}
    for name, start, end in zip(*(chosen[column].to_pylist() for column in ("id", "start", "end")), strict=True):
        found.setdefault(name, []).append((start, end))
    return found
