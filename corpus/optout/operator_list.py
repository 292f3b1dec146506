"""The operator's own opt-out list: domains and URLs that owners asked to be left out. It binds before any request and
at every export, whatever the sites' files say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from corpus.model import Evidence
from corpus.optout.evidence import Origin, stated
from corpus.url.canonical import canonical_url
from corpus.url.host import host_of, path_and_query


@dataclass(frozen=True, slots=True)
class OperatorList:
    """`domains` (and hosts) cover their subdomains, at label boundaries only; `urls` are canonical. Values: the line as written."""

    domains: dict[str, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    """Lines that are neither a domain nor a URL: to be reported, because somebody meant them."""

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> OperatorList:
        """One domain or URL a line, then any remark; a line that starts with `#` is one. A URL without a path means its whole host."""
        domains: dict[str, str] = {}
        urls: dict[str, str] = {}
        unread: list[str] = []
        for line in lines:
            entry = line.split(None, 1)[0] if line.strip() else ""
            if not entry or entry.startswith("#"):
                continue
            address = canonical_url(entry if "://" in entry else f"http://{entry.removeprefix('*.').removeprefix('.')}")
            host = host_of(address) if address else ""
            if not address or not host:
                unread.append(line.strip())
            elif path_and_query(address) == "/":
                domains[host] = line.strip()
            else:
                urls[address] = line.strip()
                urls.setdefault(_other_scheme(address), line.strip())
        return cls(domains, urls, tuple(unread))

    def refuses(self, url: str) -> Evidence | None:
        """The entry that covers a URL, as evidence; None when nobody asked."""
        labels = host_of(url).split(".")
        for start in range(len(labels)):
            entry = self.domains.get(".".join(labels[start:]))
            if entry is not None:
                return stated("operator", "listed", Origin("operator"), raw=entry)
        entry = self.urls.get(canonical_url(url) or url) if self.urls else None
        return None if entry is None else stated("operator", "listed", Origin("operator"), raw=entry)


def _other_scheme(url: str) -> str:
    """An owner means the page, not the scheme it was typed with."""
    return "https" + url[4:] if url.startswith("http:") else "http" + url[5:]
