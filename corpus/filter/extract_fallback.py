"""Main text without lxml: resiliparse, for the fast profile, for pages too large for trafilatura, and where it finds too little.

Its tree is lexbor's, so the limits that guard our own parse guard it as well.
"""

from __future__ import annotations

import functools
from importlib.metadata import version


@functools.cache
def fast_name() -> str:
    """Name and version as recorded in every document."""
    return f"resiliparse/{version('resiliparse')}"


def fast_text(html: str, *, main_content: bool = True) -> str:
    """The page's main content (or all its text) with lists, tables and preformatted blocks kept as lines."""
    from resiliparse.extract.html2text import extract_plain_text

    text: str = extract_plain_text(
        html,
        main_content=main_content,
        preserve_formatting=True,
        list_bullets=True,
        alt_texts=False,
        links=False,
        form_fields=False,
        noscript=False,
        comments=False,
    )
    return text
