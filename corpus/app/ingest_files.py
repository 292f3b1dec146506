"""Which files `corpus ingest` takes, and under which crawl label: names in, paths out. Reads folders, never archives."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

from corpus.errors import UsageError

_ARCHIVE = re.compile(r"\.(?:warc|arc|wet|wat)(?:\.|\Z)", re.IGNORECASE)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_COMMON_CRAWL = re.compile(r"CC-MAIN-\d{4}-\d{2}(?!\d)")


def archives(names: Iterable[str]) -> list[Path]:
    """Every file the names stand for, in order, each once. Folders are searched for names of archives; globs are expanded.

    Raises UsageError for a name that stands for nothing.
    """
    found: dict[Path, None] = {}
    for name in names:
        if re.match(r"[a-z][a-z0-9+.-]*://", name, re.IGNORECASE):
            raise UsageError(
                "this version takes in files and folders only", name, "download it first, for example with aws s3 cp"
            )
        path = Path(name)
        if path.is_dir():
            some = _in_folder(path)
        elif path.is_file():
            some = [path]
        else:
            some = [match for text in sorted(glob.glob(name, recursive=True)) if (match := Path(text)).is_file()]  # noqa: PTH207
        if not some:
            raise UsageError("no archive is there", name, "name WARC, WET or ARC files, a folder of them, or a glob in quotes")
        found |= dict.fromkeys(some)
    return list(found)


def crawl_of(path: Path, said: str, period: str) -> str:
    """The crawl's label: what the archive says it is part of, the Common Crawl its path names, or `ingest-<period>`."""
    if _LABEL.match(said):
        return said
    named = _COMMON_CRAWL.search(str(path))
    return named[0] if named else f"ingest-{period}"


def _in_folder(folder: Path) -> list[Path]:
    """Archives below a folder. What a crawl of ours kept of robots.txt files, refusals and redirects is not pages."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if _ARCHIVE.search(path.name)
        and path.is_file()
        and not path.name.endswith(".open")
        and "policy" not in path.relative_to(folder).parts[:-1]
    ]
