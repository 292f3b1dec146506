"""Numbers as a person reads them: durations, sizes, rates. One spelling for the terminal, the status page and the report."""

from __future__ import annotations

_UNITS = ((86_400.0, "d", 3_600.0, "h"), (3_600.0, "h", 60.0, "min"), (60.0, "min", 1.0, "s"))


def duration(seconds: float) -> str:
    """`3 d 4 h`, `2 h 10 min`, `45 s`, `0.4 s`."""
    for size_s, name, rest_s, rest_name in _UNITS:
        if seconds >= size_s:
            whole, rest = divmod(seconds, size_s)
            part = int(rest // rest_s)
            return f"{whole:.0f} {name}" + (f" {part} {rest_name}" if part else "")
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f} s"


def size(number: float) -> str:
    """Bytes in powers of ten: `1.2 GB`."""
    for power, name in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if number >= 10**power:
            return f"{number / 10**power:.1f} {name}"
    return f"{number:.0f} B"


def count(number: float) -> str:
    """A count with thousands set apart."""
    return f"{number:,.0f}"


def many(number: int, thing: str) -> str:
    """`1 segment`, `2,000 segments`."""
    return f"{count(number)} {thing}" + ("" if number == 1 else "s")


def rate(number: float) -> str:
    """Things a second, with as many digits as mean something."""
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 1 else f"{number:.2f}"


def printable(text: str, most: int = 160) -> str:
    """Crawled text made safe for one line of a terminal: every kind of space is one, and no control character is left."""
    return "".join(ch if ch.isprintable() else " " if ch.isspace() else "?" for ch in text[:most])
