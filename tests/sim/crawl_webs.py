"""Webs that a test writes page by page, and what every crawl of one must keep: laws C and D."""

from __future__ import annotations

from collections import Counter

from corpus.model import UrlState
from corpus.testing.audit import Group, gap_violations, refused_requests
from corpus.testing.web import SimHost, SimWeb, address_of
from corpus.testing.web_answer import Answer
from corpus.testing.web_hosts import Page
from tests.sim.crawl_kit import Crawl

HTML = (("Content-Type", "text/html; charset=utf-8"),)


def page(*links: str, head: str = "", text: str = "") -> Page:
    """A small page with links."""
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    body = f"<!DOCTYPE html><html><head>{head}</head><body><p>{text or 'words'}</p>{anchors}</body></html>".encode()
    return Page(lambda ask: Answer(headers=HTML, body=body))


def reply(status: int, *headers: tuple[str, str], body: bytes = b"x") -> Page:
    return Page(lambda ask: Answer(status, (*headers, *HTML), body))


class Web(SimWeb):
    """A web whose pages a test writes itself: {host: {path: page}}; robots.txt is absent unless written."""

    def __init__(self, sites: dict[str, dict[str, Page]], *, addresses: dict[str, str] | None = None) -> None:
        hosts = [SimHost(name, (addresses or {}).get(name, address_of(n))) for n, name in enumerate(sites)]
        super().__init__(1, hosts)
        self._sites = sites

    def _plan(self, host: SimHost) -> dict[str, Page]:
        return self._sites[host.name]


def check_funnel(crawl: Crawl) -> None:
    """Law C: every row has one state and the tally is what the rows say; nothing is discovered or in flight."""
    for store in crawl.files.values():
        rows = Counter((row.state.value, row.reason) for row in store._data.rows.values())
        counted = Counter((UrlState.EXCLUDED.value, known.reason) for known in store._data.counted.values())
        assert Counter(store.tally().by_state) == rows + counted
        assert store.tally().outbox == 0
        assert not {"discovered", "in-flight", "parsed"} & {state for state, _ in store.tally().by_state}


def check_manners(crawl: Crawl, *, gap_s: float | None = None) -> None:
    """Law D over the servers' log: gaps of host, domain and address; refused URLs; robots.txt first."""
    gap = crawl.config.delay if gap_s is None else gap_s
    for group in Group:
        assert not gap_violations(crawl.log, gap, group), gap_violations(crawl.log, gap, group)[0]
    never = [url for url, seen in crawl.web.expected().items() if not seen.requested]
    assert not refused_requests(crawl.log, never)
    first: dict[str, str] = {}
    for contact in sorted(crawl.log, key=lambda c: c.arrived):
        first.setdefault(contact.host, contact.target)
    assert set(first.values()) <= {"/robots.txt", "/robots-moved.txt"}
