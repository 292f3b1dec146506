"""Tables, figures and the funnel in the one look that the status page and the report share. Pure: plain values in, markup out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from corpus.model import FunnelStep
from corpus.observe.charts import bar
from corpus.observe.markup import Child, Markup, crawled, el
from corpus.observe.summary import sentence_of
from corpus.observe.words import count

Link = Callable[[str], str | None]


def nowhere(_: str) -> str | None:
    """A link that is none: a report stands alone."""
    return None


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Child]], *, numbers: Sequence[int] = ()) -> Markup:
    """`numbers`: columns aligned to the right. An empty table says so in words."""
    body = [el("tr", *(el("td", cell, class_="n" if n in numbers else None) for n, cell in enumerate(row))) for row in rows]
    if not body:
        return el("p", f"{caption}: none", class_="lead")
    head = el("tr", *(el("th", name, scope="col", class_="n" if n in numbers else None) for n, name in enumerate(heads)))
    inner = el("table", el("caption", caption), el("thead", head), el("tbody", body))
    return el("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)


def ranked(caption: str, counts: Mapping[str, int], link: Link = nowhere, *, most: int = 20, words: bool = True) -> Markup:
    """Codes with their counts, the largest first, each with a bar; `words`: what the code means."""
    rows = sorted(((n, code) for code, n in counts.items() if n), key=lambda row: (-row[0], row[1]))
    top = rows[0][0] if rows else 1
    shown: list[list[Child]] = []
    for n, code in rows[:most]:
        address = link(code)
        name: Child = el("a", code, href=address, class_="code") if address else el("code", code, class_="code")
        meaning = sentence_of(code) if words else ""
        shown.append([name, meaning if meaning != code else "", count(n), bar(n / top)])
    if len(rows) > most:
        shown.append([f"{len(rows) - most} more", "", count(sum(n for n, _ in rows[most:])), ""])
    return table(caption, ("code", "meaning", "URLs", ""), shown, numbers=(2,))


def figures(rows: Iterable[tuple[str, str, str]]) -> Markup:
    """Headline numbers: (name, number, a word about it)."""
    return el(
        "dl",
        *(el("div", el("dt", name), el("dd", number, el("small", said) if said else None)) for name, number, said in rows),
        class_="figures",
    )


def facts(rows: Iterable[tuple[str, Child]]) -> Markup:
    """Names and values, one under the other."""
    return el("dl", *((el("dt", name), el("dd", value)) for name, value in rows), class_="facts")


def funnel(steps: Sequence[FunnelStep], link: Link = nowhere) -> Markup:
    """Law C as a table: what came in, what went on, and every loss with its reason. `link`: a reason code → where to look."""
    most = max((step.n_in for step in steps), default=0) or 1
    rows: list[Markup] = []
    for step in steps:
        rows.append(
            el("tr", el("th", step.stage, scope="row"), el("td", count(step.n_in), class_="n"), el("td", count(step.n_out), class_="n"), el("td", bar(step.n_out / most), class_="bar"), el("td"))
        )  # fmt: skip
        for code, n in sorted(step.dropped.items(), key=lambda item: (-item[1], item[0])):
            address = link(code)
            name = el("a", code, href=address, class_="code") if address else el("code", code, class_="code")
            rows.append(
                el("tr", el("td"), el("td"), el("td", f"\u2212{count(n)}", class_="n"), el("td", bar(n / most), class_="bar"), el("td", name, " ", sentence_of(code)), class_="loss")
            )  # fmt: skip
    head = el("tr", *(el("th", name, scope="col", class_="n" if n in (1, 2) else None) for n, name in enumerate(("step", "in", "out", "", "lost to"))))  # fmt: skip
    caption = "Every step adds up: in = out + losses, and out = the next step's in."
    inner = el("table", el("caption", caption), el("thead", head), el("tbody", rows))
    return el("div", inner, class_="scroll", tabindex=0, role="region", aria_label="funnel")


def named(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], link: Link = nowhere) -> Markup:
    """Rows whose first cell is a host: crawled text, and perhaps a link."""
    shown = []
    for host, *rest in rows:
        address = link(str(host))
        name = el("a", crawled(host), href=address) if address else crawled(host)
        shown.append([name, *(crawled(cell) if isinstance(cell, str) else cell for cell in rest)])
    return table(caption, heads, shown, numbers=tuple(range(1, len(heads) - 1)))
