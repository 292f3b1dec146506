"""The domain or host that an order names, spelled as the crawl spells it: one check for takedowns and blocks.

An order that no host can ever match would be silently of no use, and one that names a public suffix would speak of strangers.
"""

from __future__ import annotations

import re

from corpus.app.frontier_files import read_all
from corpus.app.project import Project
from corpus.errors import UsageError
from corpus.url.canonical import canonical_url
from corpus.url.host import host_of, is_public_suffix

_HINT = "write example.org (every host below it is meant too), or a whole URL with its scheme"
_HOST_MAX = 253
_HOST = re.compile(r"(?:\[[0-9a-f:.]+\]|(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63})\Z")


def domain_of(target: str) -> str:
    """The host that a target spells. Raises UsageError for what names no host: wildcards, empty labels, paths."""
    name = target.strip()
    whole = name and not set(name) & set("/?#@ \t\r\n") and not name.startswith(".") and ".." not in name
    url = canonical_url(f"http://{name}/") if whole else None
    host = "" if url is None else host_of(url)
    if len(host) > _HOST_MAX or not _HOST.match(host):
        raise UsageError("not a domain or host", target[:200], _HINT)
    return host


def owned_domain(project: Project, target: str) -> str:
    """The same, of one owner. Raises UsageError for a public suffix too, unless it is a host of its own here (`localhost`)."""
    host = domain_of(target)
    if is_public_suffix(host) and not host.startswith("[") and ("." in host or not _is_host(project, host)):
        raise UsageError("a name under which strangers register", host, "name the domains one by one")
    return host


def _is_host(project: Project, name: str) -> bool:
    """Whether a single label is a host of its own here and no top-level domain."""
    return next(read_all(project.layout, "SELECT 1 FROM hosts WHERE host = ? LIMIT 1", (name,)), None) is not None
