"""The texts of the demo web, as values: which hosts there are and which pages each of them has.

A page stands in `sites/<key>.txt` under a line `=== PATH | LANGUAGE | TITLE`, then directives (`! word rest`), then
paragraphs, `## headings` and `- items` separated by empty lines. All of it is checked when it is read: a misspelt
directive is an error of ours and raises ValueError with file and line. Nothing here knows a port or makes HTML.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources

DIRECTIVES = frozenset(
    ["hidden", "meta", "header", "encoding", "type", "busy", "copy-of", "text-of", "drop-last", "swap", "repeat", "link", "link-nofollow"]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Link:
    """A link beyond the navigation. `target` is a path, `KEY:/path` on another host of the web, or a whole URL."""

    target: str
    text: str
    nofollow: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One page before it is HTML. `blocks` are paragraphs, headings (`## `) and lists (lines that begin with `- `)."""

    path: str
    lang: str
    title: str
    blocks: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    metas: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    hidden: bool = False
    """Not named in any navigation."""
    encoding: str = "utf-8"
    content_type: str = ""
    """The Content-Type header as sent; empty means the right one."""
    busy: int = 0
    """How often the server answers 503 before it answers at all."""
    copy_of: str = ""
    """Path of the page whose bytes this one repeats."""
    stands_for: str = ""
    """Path of the page on the same host whose text it borrows: it has the same navigation."""


@dataclass(frozen=True, slots=True)
class Site:
    """One host: where it lives, what it says to robots, and its pages in the order of its navigation."""

    key: str
    name: str
    address: str
    lang: str
    title: str
    author: str
    published: str
    more: str
    about: str
    robots: str = ""
    """Template of robots.txt (`{self}` is the origin); empty means there is none."""
    tdmrep: str = ""
    sitemap: bool = False
    moved: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Answers that are not pages: path → (Content-Type, body)."""
    pages: tuple[Page, ...] = ()

    def page(self, path: str) -> Page:
        """The page at a path. Raises KeyError when there is none."""
        for page in self.pages:
            if page.path == path:
                return page
        raise KeyError(f"{self.key}{path}")


@cache
def sites() -> tuple[Site, ...]:
    """All hosts in address order, texts borrowed from other pages filled in. Raises ValueError for a broken file."""
    folder = resources.files("corpus.testing.demo")
    table = tomllib.loads((folder / "sites.toml").read_text(encoding="utf-8"))
    drafts: dict[str, list[_Draft]] = {}
    for key in table:
        text = (folder / "sites" / f"{key}.txt").read_text(encoding="utf-8")
        drafts[key] = list(_drafts(key, text))
    plain = {(key, draft.page.path): draft.page for key in drafts for draft in drafts[key] if not draft.text_of}
    return tuple(
        Site(
            key=key,
            **{**row, "other": {path: (kind, body) for path, (kind, body) in row.get("other", {}).items()}},
            pages=tuple(draft.filled(key, plain) for draft in drafts[key]),
        )
        for key, row in table.items()
    )


def site(key: str) -> Site:
    """The host with this key. Raises KeyError when there is none."""
    return {one.key: one for one in sites()}[key]


@dataclass(slots=True)
class _Draft:
    """A page while its lines are read: the page so far and what it borrows."""

    page: Page
    text_of: tuple[str, str] | None = None
    drop_last: int = 0
    swaps: list[tuple[str, str]] = field(default_factory=list)

    def filled(self, key: str, plain: Mapping[tuple[str, str], Page]) -> Page:
        """The page with what it borrows put in. Raises ValueError when a swap does not fit."""
        if self.text_of is None:
            return self.page
        lender = plain[self.text_of]
        blocks = lender.blocks[: len(lender.blocks) - self.drop_last] + self.page.blocks
        for old, new in self.swaps:
            if sum(block.count(old) for block in blocks) != 1:
                raise ValueError(f"{self.page.path}: {old!r} must stand exactly once in {lender.path}")
            blocks = tuple(block.replace(old, new) for block in blocks)
        return replace(self.page, blocks=blocks, stands_for=lender.path if self.text_of[0] == key else "")


def _drafts(key: str, text: str) -> Iterator[_Draft]:
    for number, chunk in enumerate(text.split("=== ")[1:], start=1):
        head, _, rest = chunk.partition("\n")
        parts = [part.strip() for part in head.split("|")]
        if len(parts) != 3:
            raise ValueError(f"{key}.txt, page {number}: write === PATH | LANGUAGE | TITLE")
        draft = _Draft(Page(parts[0], parts[1], parts[2]))
        body: list[str] = []
        repeat = 1
        for line in rest.splitlines():
            if not line.startswith("! "):
                body.append(line)
                continue
            word, _, value = line[2:].partition(" ")
            if word not in DIRECTIVES:
                raise ValueError(f"{key}.txt, {parts[0]}: no directive {word!r}")
            if word == "repeat":
                repeat = int(value)
            else:
                _direct(draft, word, value.strip())
        blocks = tuple(block.strip() for block in "\n".join(body).split("\n\n") if block.strip())
        draft.page = replace(draft.page, blocks=blocks * repeat)
        yield draft


def _direct(draft: _Draft, word: str, value: str) -> None:
    page = draft.page
    match word:
        case "hidden":
            draft.page = replace(page, hidden=True)
        case "meta":
            name, _, content = value.partition(" ")
            draft.page = replace(page, metas=(*page.metas, (name, content)))
        case "header":
            name, _, content = value.partition(": ")
            draft.page = replace(page, headers=(*page.headers, (name, content)))
        case "encoding":
            draft.page = replace(page, encoding=value)
        case "type":
            draft.page = replace(page, content_type=value)
        case "busy":
            draft.page = replace(page, busy=int(value))
        case "copy-of":
            draft.page = replace(page, copy_of=value)
        case "text-of":
            lender_key, _, path = value.partition(" ")
            draft.text_of = (lender_key, path)
        case "drop-last":
            draft.drop_last = int(value)
        case "swap":
            old, _, new = value.partition(" => ")
            draft.swaps.append((old, new))
        case "link" | "link-nofollow":
            target, _, text = value.partition(" | ")
            draft.page = replace(page, links=(*page.links, Link(target, text, word == "link-nofollow")))
