"""The canonical form of a URL: the key under which everything about it is known. Pure text, no input or output.

Two forms. `fetch_url` is the absolute WHATWG form as found (fragment and user information dropped): what is requested.
`canonical_url` is that form less what names a visit and not a resource, with escapes in one spelling: the key.
Neither ever raises, both are idempotent, and neither changes which resource is meant: escapes of reserved characters
(`%23 %25 %2F %3B …`) stay escapes, `?a` and `?a=` and an empty query (`/?` and `/`) stay different, query order stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import can_ada
from ada_url import join_url, normalize_url

from corpus.url.tracking import drop_session, drop_tracking

MAX_CHARS = 65_536
"""Work limit: a longer URL, before or after normalisation, is no URL to us (browsers stop between 2 kB and 2 MB)."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX_DIGITS = frozenset("0123456789ABCDEFabcdef")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_QUICK = re.compile(
    r"(?:https?://[a-z0-9.-]+(?::[0-9]{1,5})?|(?!//)[A-Za-z0-9._~!$&'()*+,;=@%-]*)(?:[/?#][A-Za-z0-9/._~?&=+,;:@!$'()*#%-]*)?"
)
"""Plain links, most of any page: `can_ada`, twice as fast, joins them like `ada_url`. It knows an older IDNA and leaves
`^` alone, so anything with another character, or an escape before the path, takes the long way. A law compares both."""
_NEEDS_WORK = re.compile(r"[%?;(]")


def _spellings(keep: frozenset[str]) -> dict[str, str]:
    """Every escape of a byte in any letter case -> its one spelling; characters of `keep` are never decoded."""
    table = {}
    for high in "0123456789ABCDEFabcdef":
        for low in "0123456789ABCDEFabcdef":
            char = chr(int(high + low, 16))
            table[f"%{high}{low}"] = char if char in _UNRESERVED and char not in keep else f"%{high}{low}".upper()
    return table


_DECODED = _spellings(frozenset())
_HEX_KEPT = _spellings(_HEX_DIGITS)
"""Beside a stray `%`: decoding a hexadecimal digit there (`%%34%31`) would build an escape that was never written."""


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
    quick = _quick_base(root)
    links: dict[str, str] = {}
    for href in dict.fromkeys(hrefs):
        if quick is not None and len(href) <= MAX_CHARS and _QUICK.fullmatch(href) and "xn--" not in href:
            found = _plain(_quick_join(quick, href))
        else:
            found = fetch_url(href, root)
        if found is not None:
            links.setdefault(_key(found), found)
    return list(links.items())


def _quick_base(root: str | None) -> Any:
    """`root` as the quicker library parses it; None where it does not."""
    try:
        return None if root is None else can_ada.parse(root)
    except ValueError:
        return None


def _quick_join(quick: Any, href: str) -> str:
    try:
        return str(quick + href)
    except ValueError:
        return ""


def one_spelling(text: str) -> str:
    """`text` (a path, a query, a pattern of either) with each escape in its one spelling."""
    table = _HEX_KEPT if _STRAY_PERCENT.search(text) else _DECODED
    return _ESCAPE.sub(lambda match: table[match[0]], text)


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
