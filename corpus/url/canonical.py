"""The canonical form of a URL: the key under which everything about it is known. Pure text, no input or output.

Two forms. `fetch_url` is the absolute WHATWG form as found (fragment and user information dropped): what is requested.
`canonical_url` is that form less what names a visit and not a resource, with escapes in one spelling: the key.
Neither ever raises, both are idempotent, and neither changes which resource is meant: escapes of reserved characters
(`%23 %25 %2F %3B …`) stay escapes, `?a` and `?a=` and an empty query (`/?` and `/`) stay different, query order stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ada_url import join_url, normalize_url

from corpus.url.tracking import drop_session, drop_tracking

MAX_CHARS = 65_536
"""Work limit: a longer URL, before or after normalisation, is no URL to us (browsers stop between 2 kB and 2 MB)."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE = re.compile(
    "(%(?![0-9A-Fa-f]{2}))((?:[0-9A-Fa-f]%[0-9A-Fa-f]{2}|(?:%[0-9A-Fa-f]{2}){1,2})?)|%[0-9A-Fa-f]{2}",
)
"""An escape; or a stray `%` with the escapes whose decoding could complete it (`%%34%31` must not become `%41`)."""
_NEEDS_WORK = re.compile(r"[%?;(]")
_ORDINARY = re.compile(
    r"(/|(?:\.\./)*+)((?:[\w~-][\w.~-]*+/)*+(?:[\w~-][\w.~-]*+)?+(?:\?[\w.~/=&+%-]*+)?+)(?:#.*)?+\Z", re.ASCII | re.DOTALL
)
"""A relative link that needs no parser, because nothing in it has another form: where it starts, and what is put behind that."""


def _spellings() -> dict[str, str]:
    """Every escape of a byte in any letter case -> its one spelling: the character if unreserved, else upper case."""
    table = {}
    for high in "0123456789ABCDEFabcdef":
        for low in "0123456789ABCDEFabcdef":
            char = chr(int(high + low, 16))
            table[f"%{high}{low}"] = char if char in _UNRESERVED else f"%{high}{low}".upper()
    return table


_SPELLING = _spellings()


def _respell(match: re.Match[str]) -> str:
    stray, beside = match.groups()
    return _SPELLING[match[0]] if stray is None else stray + beside[:1] + beside[1:].upper()


def canonical_url(url: str, base: str | None = None) -> str | None:
    """The key of `url` (resolved against `base`), or None when it is no http(s) URL or longer than 64 kB.

    Dropped: fragment, user information, the scheme's default port, tracking and session parameters
    (`corpus.url.tracking`; when only those made up the query, its `?` too). `%XX` is upper-case, and decoded where the
    character is unreserved (RFC 3986 §2.3). The rest is WHATWG's: lower-case host in A-labels, dot segments resolved.
    """
    found = fetch_url(url, base)
    return None if found is None else _key(found)


def fetch_url(url: str, base: str | None = None) -> str | None:
    """The absolute WHATWG form of `url`, less fragment and user information: what is asked for. None as above."""
    if len(url) > MAX_CHARS or (base is not None and len(base) > MAX_CHARS):
        return None
    try:
        href = normalize_url(url) if base is None else join_url(base, url)
    except ValueError:  # not a URL, or not Unicode text
        if _SURROGATE.search(url) or (base is not None and _SURROGATE.search(base)):
            return fetch_url(_scalars(url), None if base is None else _scalars(base))
        return None
    return _plain(href)


def canonical_links(hrefs: Iterable[str], base: str) -> list[tuple[str, str]]:
    """(canonical, found) of every http(s) link, in order of first sight, one entry per canonical URL.

    For whole pages: repeated hrefs are resolved once. `base` as for `canonical_url`; a base that is no URL leaves the
    absolute links.
    """
    root = fetch_url(base)
    place = None if root is None or len(root) > MAX_CHARS // 2 else _Place(root)
    links: dict[str, str] = {}
    for href in dict.fromkeys(hrefs):
        found = None if place is None or len(href) > MAX_CHARS // 2 else place.join(href)
        if found is None:
            found = fetch_url(href, root)
        if found is not None:
            links.setdefault(_key(found), found)
    return list(links.items())


class _Place:
    """Where the links of a page start. Nine links in ten are ordinary ones, and a parser costs ten times as much as looking."""

    def __init__(self, root: str) -> None:
        """`root` is a fetch form."""
        self._root = root
        self._origin = root[: root.index("/", 8)]
        self._folder = root[: root.partition("?")[0].rindex("/") + 1]

    def join(self, href: str) -> str | None:
        """The fetch form of an ordinary link; None where it takes a parser to tell."""
        if href.startswith(self._origin):
            href = href[len(self._origin) :]
            if not href.startswith("/"):  # the origin's end, or another port or host that begins alike
                return None
        match = _ORDINARY.match(href)
        if match is None:
            return None
        start, rest = match.groups()
        if start == "/":
            return f"{self._origin}/{rest}"
        if start:
            return self._above(len(start) // 3) + rest
        if not rest:
            return self._root
        return None if rest[0] == "?" else self._folder + rest

    def _above(self, levels: int) -> str:
        folder, top = self._folder, len(self._origin) + 1
        for _ in range(levels):
            if len(folder) == top:
                break
            folder = folder[: folder.rindex("/", 0, -1) + 1]
        return folder


def one_spelling(text: str) -> str:
    """`text` (a path, a query, a pattern of either) with each escape in its one spelling."""
    return _ESCAPE.sub(_respell, text)


def _scalars(text: str) -> str:
    """`text` as Unicode scalar values, the only input WHATWG knows: surrogate pairs joined, lone ones U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _plain(href: str) -> str | None:
    """A WHATWG serialisation less fragment and user information; None when not http(s) or too long."""
    if not href.startswith(("https://", "http://")):
        return None
    if "#" in href:  # in a serialisation the first bare `#` starts the fragment
        href = href[: href.index("#")]
    if "@" in href:
        scheme, _, rest = href.partition("://")
        authority, slash, tail = rest.partition("/")
        href = f"{scheme}://{authority.rpartition('@')[2]}{slash}{tail}"
    return href if len(href) <= MAX_CHARS else None


def _key(found: str) -> str:
    """The canonical form of a fetch form. Every step leaves a WHATWG serialisation behind, so it is stable."""
    start = found.index("/", 8)
    if not _NEEDS_WORK.search(found, start):
        return found
    tail = found[start:]
    if "%" in tail:
        tail = one_spelling(tail)
    path, mark, query = tail.partition("?")
    if ";" in path or "(" in path:
        path = drop_session(path)
    if mark:
        kept = drop_tracking(query)
        path = path if kept is None else f"{path}?{kept}"
    return found[:start] + path
