"""Charts as inline SVG: lines over time, bars, histograms. No script, no dependency; colours are the style sheet's.

Each chart carries a title and a sentence for those who do not see it, and at most `POINTS` points however long the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from corpus.observe.markup import Markup, el, join
from corpus.observe.words import count

POINTS = 300
_W, _H, _LEFT, _RIGHT, _TOP, _BOTTOM = 420, 150, 46, 6, 10, 22

Points = Sequence[tuple[float, float]]


def lines(title: str, series: Sequence[tuple[str, Points]], show: Callable[[float], str] = count) -> Markup:
    """Values over time (x is epoch seconds). At most four series; the first is filled."""
    drawn = [(name, thinned(points)) for name, points in series[:4]]
    every = [point for _, points in drawn for point in points]
    if len({x for x, _ in every}) < 2:
        return el("figure", el("figcaption", el("b", title), "not enough points yet"))
    x0, x1 = min(x for x, _ in every), max(x for x, _ in every)
    top = _nice(max(y for _, y in every))

    def place(x: float, y: float) -> str:
        return f"{_LEFT + (x - x0) / (x1 - x0) * (_W - _LEFT - _RIGHT):.1f} {_H - _BOTTOM - y / top * (_H - _TOP - _BOTTOM):.1f}"

    parts: list[Markup] = [*_grid(top, show), *_times(x0, x1)]
    for n, (_, points) in enumerate(drawn):
        if not points:
            continue
        path = "M" + " L".join(place(x, y) for x, y in points)
        if n == 0:
            base = f" L{place(points[-1][0], 0)} L{place(points[0][0], 0)} Z"
            parts.append(el("path", d=path + base, class_=f"fill f{n}"))
        parts.append(el("path", d=path, class_=f"line s{n}"))
    latest = "; ".join(
        f"{name}: now {show(points[-1][1])}, at most {show(max(y for _, y in points))}" for name, points in drawn if points
    )
    keys = [el("span", name, class_=f"key k{n}") for n, (name, _) in enumerate(drawn)] if len(drawn) > 1 else []
    return el(
        "figure",
        el("figcaption", el("b", title), *keys),
        el("svg", *parts, viewBox=f"0 0 {_W} {_H}", role="img", aria_label=f"{title}. {latest}"),
    )


def histogram(title: str, bins: Sequence[tuple[str, int]], total_of: str = "") -> Markup:
    """Counts by bin, side by side; `bins` are (label, count) in order."""
    if not bins or not any(n for _, n in bins):
        return el("figure", el("figcaption", el("b", title), "nothing to show yet"))
    top = _nice(max(n for _, n in bins))
    room = (_W - _LEFT - _RIGHT) / len(bins)
    parts = list(_grid(top, count))
    every = max(1, -(-len(bins) // 9))
    for k, (label, n) in enumerate(bins):
        height = n / top * (_H - _TOP - _BOTTOM)
        x = _LEFT + k * room
        parts.append(
            el("rect", el("title", f"{label}: {count(n)}"), x=f"{x + 1:.1f}", y=f"{_H - _BOTTOM - height:.1f}", width=f"{max(room - 2, 1):.1f}", height=f"{height:.1f}", class_="f0")
        )  # fmt: skip
        if k % every == 0:
            parts.append(el("text", label, x=f"{x + room / 2:.1f}", y=_H - 8, text_anchor="middle"))
    most = max(bins, key=lambda item: item[1])
    said = f"{title}. Most: {most[0]} with {count(most[1])}" + (
        f", of {count(sum(n for _, n in bins))} {total_of}" if total_of else ""
    )
    return el(
        "figure", el("figcaption", el("b", title)), el("svg", *parts, viewBox=f"0 0 {_W} {_H}", role="img", aria_label=said)
    )


def bar(share: float) -> Markup:
    """A bar inside a table cell; the number stands beside it, so it is hidden from readers."""
    width = f"{100 * min(max(share, 0.0), 1.0):.2f}%"
    return el("svg", el("rect", width="100%", height="100%", class_="rest"), el("rect", width=width, height="100%"), class_="bar", aria_hidden="true", focusable="false")  # fmt: skip


def thinned(points: Points, most: int = POINTS) -> Points:
    """At most `most` points: the largest of each stretch, so that no peak is lost, and always the last."""
    if len(points) <= most:
        return points
    step = -(-len(points) // most)
    kept = [max(points[n : n + step], key=lambda point: point[1]) for n in range(0, len(points) - 1, step)]
    return [*kept, points[-1]] if kept[-1] != points[-1] else kept


def _nice(top: float) -> float:
    """The next round number at or above: 1, 2, 2.5 or 5 times a power of ten."""
    if top <= 0:
        return 1.0
    power = 1.0
    while power > top:
        power /= 10
    while power * 10 <= top:
        power *= 10
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= top)


def _grid(top: float, show: Callable[[float], str]) -> list[Markup]:
    found = []
    for part in (0.0, 0.5, 1.0):
        y = _H - _BOTTOM - part * (_H - _TOP - _BOTTOM)
        found.append(el("line", x1=_LEFT, x2=_W - _RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        found.append(el("text", show(top * part), x=_LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"))
    return found


def _times(x0: float, x1: float) -> list[Markup]:
    form = "%H:%M:%S" if x1 - x0 < 600 else "%H:%M" if x1 - x0 < 86_400 else "%d %b %H:%M"
    found = []
    for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        at = datetime.fromtimestamp(x0 + part * (x1 - x0), UTC).strftime(form)
        found.append(el("text", at, x=f"{_LEFT + part * (_W - _LEFT - _RIGHT):.1f}", y=_H - 6, text_anchor=anchor))
    return found


def side_by_side(charts: Sequence[Markup]) -> Markup:
    """Charts in as many columns as fit."""
    return el("div", join(charts), class_="charts")
