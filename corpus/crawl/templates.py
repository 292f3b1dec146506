"""The patterns that a URL follows: its template, with everything that counts or names a visit folded, and its folders.

A calendar, a faceted shop or a path that goes round makes URLs without end, and all of them follow a few patterns.
What a pattern yields is judged elsewhere (`yields`). Pure text, linear in the URL's length.
"""

from __future__ import annotations

import re
from functools import lru_cache

FOLDERS = 3
"""Levels of folders that are looked at, the root not counted: a whole site is never one pattern."""
_DIGITS = re.compile(r"[0-9]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_RUN = re.compile(r"[0-9A-Za-z]{8,}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_LONG = 20


def fold(text: str) -> str:
    """`text` with UUIDs, hexadecimal and long mixed tokens, then numbers, each made one `#`."""
    if not any(ch.isdigit() for ch in text):
        return text
    return _DIGITS.sub("#", _RUN.sub(_token, _UUID.sub("#", text)))


def _token(match: re.Match[str]) -> str:
    run = match[0]
    mixed = len(run) >= _LONG and not run.isalpha() and not run.isdigit()
    return "#" if mixed or (_HEX.fullmatch(run) and not run.isalpha()) else run


@lru_cache(maxsize=16_384)
def patterns(url: str) -> tuple[str, ...]:
    """The patterns of a canonical URL, narrowest first, each with its host and port.

    `/cal/2026/11?view=week` on `a.test` → `a.test/cal/#/#?view`, `a.test/cal/#/#?*`, `a.test/cal/#/*`, `a.test/cal/*`.
    """
    start = url.find("/", url.find("://") + 3)
    if start < 0:
        return ()
    origin = url[url.find("://") + 3 : start]
    path, mark, query = url[start:].partition("?")
    path = fold(path)
    found = []
    if mark:
        names = sorted({fold(part.partition("=")[0]) for part in query.split("&") if part})
        found += [f"{origin}{path}?{'&'.join(names)}", f"{origin}{path}?*"]
    elif "#" in path:  # a page of its own name is no pattern: nothing else can follow it
        found.append(f"{origin}{path}")
    folders = path.split("/")[1:-1][:FOLDERS]
    while folders:
        found.append(f"{origin}/{'/'.join(folders)}/*")
        folders.pop()
    return tuple(dict.fromkeys(found))
