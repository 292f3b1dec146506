"""The board of a running crawl on a terminal: one screen of numbers, drawn anew in place. Loaded only where there is a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live as Screen
from rich.table import Table
from rich.text import Text

from corpus.observe.live import Live
from corpus.observe.terminal import host_counts, processing_words
from corpus.observe.words import count, duration, printable, rate, size

KEYS = "Ctrl-C drains (ends within 10 s, the same command resumes), twice stops at once · corpus ctl pause, slow, block, budget"
_BAR = 24
_SHOWN = 5


class Board:
    """`draw` as often as wanted, `say` a line above it, `close` leaves the last state on the screen."""

    def __init__(self, stream: TextIO, *, width: int | None = None) -> None:
        self._console = Console(file=stream, force_terminal=True, width=width, highlight=False, markup=False, emoji=False)
        self._screen = Screen(console=self._console, auto_refresh=False, transient=False, vertical_overflow="crop")
        self._screen.start()

    def draw(self, live: Live) -> None:
        self._screen.update(render(live), refresh=True)

    def say(self, text: str) -> None:
        self._console.print(Text(text, overflow="fold"))

    def close(self) -> None:
        self._screen.stop()


def render(live: Live) -> Group:
    """The board as something rich can draw; every name in it is made printable."""
    title = Text(f"{live.stage} {live.run_id} · {duration(live.seconds)}", style="bold")
    if live.paused:
        title.append("  PAUSED", style="bold yellow")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, words, style in _rows(live):
        table.add_row(name, Text(printable(words, 600), style=style))
    parts: list[RenderableType] = [title, table]
    if live.stalled and not live.paused:
        parts.append(Text(printable(live.stalled, 600), style="bold yellow"))
    return Group(*parts, Text(KEYS, style="dim"))


def _rows(live: Live) -> Iterator[tuple[str, str, str]]:
    yield (
        "pages",
        f"{count(live.pages)}   {rate(live.pages_s)}/s now, {rate(live.pages_s_mean)}/s mean   {size(live.bytes_s)}/s, {size(live.bytes_wire)}",
        "bold",
    )
    for key, used, limit in live.budget:
        yield "budget", f"{bar(used / limit)} {100 * used / limit:.0f} % of {key}", ""
    if live.eta_s is not None:
        yield "end", f"in {duration(live.eta_s)}, held by {live.bound}", ""
    parked = ", ".join(f"{n} {reason}" for reason, n in sorted(live.parked.items()))
    hosts = " · ".join(f"{n} {state}" for state, n in host_counts(live)) + (f" ({parked})" if parked else "")
    yield "hosts", f"{hosts}   {live.in_flight} in flight", ""
    yield "frontier", _ranked(live.frontier) or "empty", ""
    yield "refused", _ranked(live.refused, total=True), ""
    failed = _ranked(live.failed, total=True)
    yield "errors", failed + (f"   tried again: {_ranked(live.retried)}" if live.retried else ""), "red" if live.failed else ""
    asked = live.requests - live.policy_requests
    if asked > 0:
        texts = ""
        if live.processed_pages:
            share = 100 * live.processed_texts / live.processed_pages
            texts = f", {share:.0f} % of {count(live.processed_pages)} processed documents a text"
        yield "yield", f"{100 * live.pages / asked:.0f} % of {count(asked)} page requests gave a page{texts}", ""
    if live.slowest:
        yield "slowest", " · ".join(f"{host} {latency:.1f} s (gap {gap:.1f} s)" for host, latency, gap in live.slowest), ""
    if live.failing:
        yield "failing", " · ".join(f"{host} {n} ({reason})" for host, n, reason in live.failing), "yellow"
    if live.waiting_limit and (live.processed_segments or live.waiting_segments):
        yield "process", processing_words(live), "yellow" if live.held else ""
    for order in live.orders:
        yield "order", order, "yellow"
    for name, value in live.facts.items():
        yield name, str(value), ""


def bar(share: float) -> str:
    """A bar of blocks."""
    full = round(min(max(share, 0.0), 1.0) * _BAR)
    return "\u2588" * full + "\u2591" * (_BAR - full)


def _ranked(counts: Mapping[str, Any], *, total: bool = False) -> str:
    """The largest first."""
    rows = sorted(((n, name) for name, n in counts.items() if n), key=lambda row: (-row[0], row[1]))
    listed = " · ".join(f"{name} {count(n)}" for n, name in rows[:_SHOWN]) + (" · …" if len(rows) > _SHOWN else "")
    return f"{count(sum(n for n, _ in rows))}" + (f": {listed}" if listed else "") if total else listed
