"""HTML in which every text is escaped, because there is no other way to put text into it.

`el("td", crawled)` escapes; only what `el` itself returned passes as markup. Links lead nowhere but into the page's own
server, so nothing that was crawled can become an address to click on.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from importlib import resources
from typing import TypeAlias

VOID = frozenset({"meta", "link", "input", "br", "hr"})
_LOCAL = ("/", "#", "?")


class Markup(str):
    """Text that is HTML already. Made by this module only."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | Markup | Iterable[Child] | None"


def el(tag: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """One element. `class_`, `for_`: trailing underscores go, inner ones become hyphens; None and False leave an attribute out.

    Raises ValueError for a link that leads out of the page's own server.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        if attribute in ("href", "src", "action") and not (str(value).startswith(_LOCAL) and not str(value).startswith("//")):
            raise ValueError(f"a link that leads out of the page: {str(value)[:80]!r}")
        written.append(f" {attribute}" if value is True else f' {attribute}="{escape(str(value))}"')
    head = f"<{tag}{''.join(written)}>"
    return Markup(head if tag in VOID else f"{head}{join(children)}</{tag}>")


def join(children: Child) -> Markup:
    """Children one after the other: text escaped, markup as it is, None left out."""
    if children is None:
        return Markup("")
    if isinstance(children, Markup):
        return children
    if isinstance(children, str | int | float):
        return Markup(escape(str(children)))
    return Markup("".join(join(child) for child in children))


def escape(text: str) -> str:
    """Text as HTML shows it; control characters and lone surrogates become visible instead of vanishing."""
    return html.escape("".join(ch if ch.isprintable() or ch in "\n\t\xa0\u202f\u3000" else "\ufffd" for ch in text), quote=True)


def crawled(text: object, most: int = 300) -> Markup:
    """Text from the web, kept apart from the direction of the text around it, and cut."""
    shown = str(text or "")
    return el("bdi", shown[:most] + ("\u2026" if len(shown) > most else ""))


def asset(name: str) -> str:
    """A file that belongs to the look: `look.css` or `status.js`."""
    return resources.files("corpus.observe").joinpath("assets", name).read_text("utf-8")
