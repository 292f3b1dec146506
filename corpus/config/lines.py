"""Where each key stands in a TOML file. The standard parser keeps no positions, so this scans for them.

It only locates keys of a file that already parsed; it decides nothing, and a key it misses costs a line number.
"""

from __future__ import annotations

import re

_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')


def _path(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))


def key_lines(text: str) -> dict[str, int]:
    """Map of dotted key path to its line (from 1). Array-of-table entries carry their index: `crawl.trusted.0.host`."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    prefix, depth, fence = "", 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if fence:
            fence = "" if fence in line else fence
            continue
        if depth == 0:
            prefix = _note(line, number, prefix, found, counts)
        bare = _STRING.sub('""', line)
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                fence = mark
        bare = bare.split("#", 1)[0]
        opened = bare.split("=", 1)[-1] if depth == 0 and "=" in bare else bare if depth else ""
        depth = max(0, depth + opened.count("[") + opened.count("{") - opened.count("]") - opened.count("}"))
    return found


def _note(line: str, number: int, prefix: str, found: dict[str, int], counts: dict[str, int]) -> str:
    """Record the key or table on one line; returns the table prefix now in force."""
    if match := _TABLE.match(line):
        path = _path(match[2])
        if match[1] == "[[":
            index = counts.get(path, 0)
            counts[path] = index + 1
            path = f"{path}.{index}"
        found.setdefault(path, number)
        return f"{path}."
    if match := _KEY.match(line):
        full = prefix + _path(match[1])
        for end in range(1, full.count(".") + 1):
            found.setdefault(".".join(full.split(".")[:end]), number)
        found[full] = number
        # an inline table's keys stand on the same line
        for inner in re.finditer(r"[{,]\s*([A-Za-z0-9_-]+)\s*=", line):
            found.setdefault(f"{full}.{inner[1]}", number)
    return prefix
