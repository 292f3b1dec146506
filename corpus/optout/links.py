"""RSL documents that a response advertises: `Link` headers and `link` elements of the RSL media type.

An ordinary `rel=license` link (a Creative Commons page, say) is not a machine-readable statement and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from corpus.page.tree import LinkElement
from corpus.url.canonical import fetch_url

RSL_TYPE = "application/rsl+xml"
_LINK = re.compile(r"<([^<>]{1,2048})>([^<]{0,1024})")
_PARAMETER = re.compile(r";\s*([A-Za-z*]{1,20})\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")
LINK_HEADER_MAX = 16_384


def advertised_licences(url: str, link_headers: Iterable[str], link_elements: Iterable[LinkElement]) -> list[str]:
    """Absolute URLs of RSL documents that a response advertises; a `rel=license` without the RSL type is none."""
    found = [link.href for link in link_elements if "license" in link.rel.split() and link.type == RSL_TYPE]
    for header in link_headers:
        for match in _LINK.finditer(header[:LINK_HEADER_MAX]):
            parameters = {p[1].lower(): (p[2] or p[3] or "").lower() for p in _PARAMETER.finditer(match[2])}
            if "license" in parameters.get("rel", "").split() and parameters.get("type", "").strip() == RSL_TYPE:
                found.append(match[1])
    return list(dict.fromkeys(fetch_url(href.strip(), url) or href.strip() for href in found))
