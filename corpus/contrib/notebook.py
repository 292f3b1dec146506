"""What the notebooks show things with: tables, bars, histograms, texts side by side; every crawled character escaped.

Works on results of `Corpus.sql`, which are small however large the corpus is: counting and sampling happen in DuckDB. Needs
nothing but this package; the slider needs ipywidgets.
"""

from __future__ import annotations

import difflib
import html
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpus.app.corpus import Corpus
from corpus.errors import UsageError

CELL_MAX = 300
COMPARED_WORDS = 3_000
"""Texts are compared up to here: differences of long texts are slow to find and to read."""


class Html:
    """A piece of HTML that a notebook shows; its text was escaped where it was made."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_html_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{len(self.text)} characters of HTML>"


def plain(text: object, limit: int = CELL_MAX) -> str:
    """Any value as escaped text of bounded length; control characters become visible."""
    found = (
        f"{text:,}"
        if isinstance(text, int) and not isinstance(text, bool)
        else f"{text:.4g}"
        if isinstance(text, float)
        else str(text)
    )
    cut = found if len(found) <= limit else found[:limit] + "…"
    return html.escape("".join(ch if ch.isprintable() or ch in "\n\t" else "\ufffd" for ch in cut))


def rows(table: pa.Table | Sequence[dict[str, Any]]) -> Html:
    """A table."""
    records = table.to_pylist() if isinstance(table, pa.Table) else list(table)
    names = table.column_names if isinstance(table, pa.Table) else list(records[0]) if records else []
    head = "".join(f"<th style='text-align:left'>{plain(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{plain(r[n])}</td>" for n in names) + "</tr>" for r in records)
    return Html(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def bars(pairs: Sequence[tuple[object, float]], mark: Sequence[object] = ()) -> Html:
    """One horizontal bar a pair; those whose label is in `mark` in another colour."""
    most = max((n for _, n in pairs), default=0) or 1
    line = "<tr><td style='text-align:right'>{}</td><td style='width:30em;text-align:left'><div style='width:{:.1f}%;background:{};height:1em'></div></td><td>{}</td></tr>"
    lines = [line.format(plain(label), 100 * n / most, "#c44" if label in mark else "#48a", plain(n)) for label, n in pairs]
    return Html(f"<table>{''.join(lines)}</table>")


def histogram(c: Corpus, signal: str, bins: int = 20) -> list[tuple[float, float, int]]:
    """(from, to, documents) of a signal over all measured documents; the last bin includes its end. NULLs are in no bin.

    Raises UsageError when the corpus has no such signal.
    """
    if not signal.isidentifier():
        raise UsageError("not the name of a signal", signal[:100])
    value = f"signals.{signal}::DOUBLE"
    low, high = c.sql(f"SELECT min({value}) a, max({value}) b FROM documents").to_pylist()[0].values()
    if low is None:
        return []
    width = (high - low) / bins or 1.0
    place = f"least(floor(({value} - {low!r}) / {width!r})::BIGINT, {bins - 1})"
    found = c.sql(
        f"SELECT {place} AS bin, count(*) AS n FROM documents WHERE signals.{signal} IS NOT NULL GROUP BY 1"
    ).to_pylist()
    counted = {row["bin"]: row["n"] for row in found}
    return [(low + width * i, low + width * (i + 1), counted.get(i, 0)) for i in range(bins)]


def show_histogram(found: Sequence[tuple[float, float, int]], limits: Sequence[float] = ()) -> Html:
    """Bars of a histogram; the bins that hold a limit are marked."""
    labelled = [(f"{low:.4g} – {high:.4g}", n) for low, high, n in found]
    marked = [
        name for (low, high, _), (name, _) in zip(found, labelled, strict=True) if any(low <= limit < high for limit in limits)
    ]
    return bars(labelled, marked)


def differences(before: str, after: str) -> Html:
    """Two texts as one: what only the first has is struck out, what only the second has is underlined."""
    a, b = before.split()[:COMPARED_WORDS], after.split()[:COMPARED_WORDS]
    parts = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        gone, new = plain(" ".join(a[i:j]), 10**6), plain(" ".join(b[k:m]), 10**6)
        if kind == "equal":
            parts.append(gone)
            continue
        parts += [f"<del style='background:#fcc'>{gone}</del>"] if gone else []
        parts += [f"<ins style='background:#cfc'>{new}</ins>"] if new else []
    return Html(f"<div style='max-width:50em'>{' '.join(parts)}</div>")


def slider(show: Callable[[float], Html], low: float, high: float, start: float) -> Any:
    """`show(value)` under a slider; without ipywidgets, as it stands at `start`."""
    try:
        from ipywidgets import FloatSlider, interact
    except ImportError:
        return show(start)
    step = (high - low) / 100 or 1.0
    return interact(show, value=FloatSlider(value=start, min=low, max=high, step=step, continuous_update=False))


def command_line(folder: str | Path, query: str) -> list[list[Any]]:
    """The rows that `corpus sql --json` prints for a query: what a notebook holds its own numbers against."""
    place = Path(folder)
    config = place / "corpus.toml" if place.is_dir() else place
    argv = [sys.executable, "-m", "corpus", "sql", "-c", str(config), "--json", query]
    told = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    if told.returncode:
        raise UsageError(told.stderr.strip()[-500:], "corpus sql")
    found: list[list[Any]] = json.loads(told.stdout)["rows"]
    return found
