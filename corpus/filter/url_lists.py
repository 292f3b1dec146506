"""URL lists in the UT1 format: which of them hold a page's host, a domain above it, or its address.

A list is a folder of one UT1 class (`domains`, `urls` in it) or a file of domains and addresses, one a line; `#` starts a
comment. A listed domain covers every host below it, at any depth: `b.example.com` covers `x.a.b.example.com`, which a look
at host and registered domain alone would miss. A listed address covers itself and what lies below its path. Entries are
kept as 64-bit hashes, 9 bytes each. Regular expressions (`expressions`) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from corpus.errors import UsageError
from corpus.url.host import host_of, path_and_query

KEY: Final = "filter.url_lists"
ADULT: Final = frozenset({"adult", "porn", "mixed_adult"})
"""UT1's classes that count as adult."""
MAX_LISTS: Final = 255
_PARTS = ("domains", "urls")
_PATH_PARTS = 16
"""Path prefixes of an address that are looked up."""


@dataclass(frozen=True, slots=True)
class UrlLists:
    """Loaded lists: `names` in the order given, entries sorted by hash."""

    names: tuple[str, ...]
    keys: NDArray[np.uint64]
    owner: NDArray[np.uint8]

    def hits(self, urls: Sequence[str]) -> list[tuple[str, ...]]:
        """For each canonical URL the names of the lists that hold it, in the order given."""
        wanted: list[int] = []
        sizes = []
        for url in urls:
            looked_up = [xxh3_64_intdigest(name.encode("utf-8", "surrogatepass")) for name in _names_of(url)]
            wanted += looked_up
            sizes.append(len(looked_up))
        asked = np.array(wanted, dtype=np.uint64)
        low, high = np.searchsorted(self.keys, asked), np.searchsorted(self.keys, asked, side="right")
        found: list[set[int]] = [set() for _ in urls]
        page = np.repeat(np.arange(len(urls)), sizes)
        for at in np.flatnonzero(high > low).tolist():
            found[int(page[at])].update(self.owner[low[at] : high[at]].tolist())
        return [tuple(self.names[number] for number in sorted(numbers)) for numbers in found]


def _names_of(url: str) -> Iterator[str]:
    """Everything a list may say that covers this URL: the host and the domains above it, then the address and its folders."""
    host = host_of(url)
    if not host:
        return
    rest = host
    while True:
        yield rest
        _, _, rest = rest.partition(".")
        if "." not in rest:
            break
    path, _, query = path_and_query(url).partition("?")
    bare = host.removeprefix("www.")
    pieces = [piece for piece in path.split("/") if piece]
    for count in range(1, min(len(pieces), _PATH_PARTS) + 1):
        yield f"{bare}/{'/'.join(pieces[:count])}"
    if query:
        yield f"{bare}/{'/'.join(pieces)}?{query}"


def load_url_lists(paths: Sequence[str]) -> UrlLists:
    """Read lists. Raises UsageError for one that is missing, empty or no list."""
    if len(paths) > MAX_LISTS:
        raise UsageError(f"{len(paths)} lists; at most {MAX_LISTS}", KEY)
    names: list[str] = []
    keys, owner = [], []
    for number, path in enumerate(paths):
        name, files = list_files(path)
        if name in names:
            raise UsageError(f"two lists are called {name!r}", KEY, "rename one: their names are what url_list_names holds")
        names.append(name)
        hashes = np.unique(np.fromiter((h for file in files for h in _entries(file)), dtype=np.uint64))
        if not len(hashes):
            raise UsageError("the list is empty", f"{KEY}: {path}", "one domain or address a line")
        keys.append(hashes)
        owner.append(np.full(len(hashes), number, dtype=np.uint8))
    every = np.concatenate(keys) if keys else np.zeros(0, dtype=np.uint64)
    order = np.argsort(every, kind="stable")
    return UrlLists(tuple(names), every[order], np.concatenate(owner)[order] if owner else np.zeros(0, dtype=np.uint8))


def list_files(path: str) -> tuple[str, tuple[Path, ...]]:
    """(name, files) of one list: the folder's name, or the file's without its suffix."""
    where = Path(path)
    if where.is_dir():
        files = tuple(where / part for part in _PARTS if (where / part).is_file())
        if not files:
            raise UsageError(
                "the folder has neither a `domains` nor a `urls` file", f"{KEY}: {path}", "name the folder of one UT1 class"
            )
        return where.name, files
    if not where.is_file():
        raise UsageError(
            "no such list", f"{KEY}: {path}", "a folder of one UT1 class, or a file with one domain or address a line"
        )
    return (where.parent.name if where.name in _PARTS else where.stem), (where,)


def _entries(file: Path) -> Iterator[int]:
    for line in file.read_bytes().lower().split(b"\n"):
        entry = line.split(b"#", 1)[0].strip()
        if entry:
            yield xxh3_64_intdigest(_plain(entry))


def _plain(entry: bytes) -> bytes:
    """An entry as `_names_of` spells it: no scheme, no wildcard, no `www.` before an address, no slash or dot at the end."""
    if b"://" in entry:
        entry = entry.split(b"://", 1)[1]
    if not entry.isascii():
        entry = _ascii_host(entry)
    host, slash, path = entry.partition(b"/")
    host = host.removeprefix(b"*").strip(b".")
    path = path.rstrip(b"/")
    return host.removeprefix(b"www.") + slash + path if path else host


def _ascii_host(entry: bytes) -> bytes:
    host, slash, path = entry.decode("utf-8", "replace").partition("/")
    try:
        return host.encode("idna") + (slash + path).encode()
    except UnicodeError:  # no host at all: it will cover nothing
        return entry
