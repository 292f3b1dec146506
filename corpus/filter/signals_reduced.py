"""Signals and span kinds that only a whole snapshot can tell: they are measured when clusters are made, never by the map stage.

A policy may name them where `filter.host_line_pages` is set; a release that has them carries the signals like any other.
"""

from __future__ import annotations

from typing import Final

from corpus.filter.signals import Signal

HOST_LINES_KEY: Final = "filter.host_line_pages"
HOST_LINE: Final = "host-line"
REDUCED_KINDS: Final = {HOST_LINE: "a line that many different pages of its host have; needs filter.host_line_pages"}
_DIFFERS = "CCNet cuts every line but the first one seen anywhere, digits and punctuation folded; near copies are one page here"
REDUCED: Final[dict[str, Signal]] = {
    "host_lines": Signal(
        "int64", "lines that `filter.host_line_pages` different pages of the host have", "CCNet (2019)", _DIFFERS
    ),
    "host_line_ratio": Signal("double", "these lines per line with anything but white space", "CCNet (2019)", _DIFFERS),
    "host_line_char_ratio": Signal("double", "characters in these lines per character", "CCNet (2019)", _DIFFERS),
}
