"""`corpus plan`: what a crawl will take, before it makes a single request. Hosts, time, bytes, disk, and who says nothing.

From seeds, the frontier as it stands, authority files that were read, and costs measured in this folder; what had to be
assumed is listed with the rest. Two scenarios: what is known now, and the most that the configuration allows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from corpus.app.consent_judge import LogJudge
from corpus.app.consent_views import current_judge
from corpus.app.costs import Assumption, costs, guesses
from corpus.app.forecast import Forecast, HostLoad, forecast
from corpus.app.frontier_files import read_all
from corpus.app.orders import Orders
from corpus.app.project import Project
from corpus.app.spending import Budget, budget_of
from corpus.config.check import seed_lines
from corpus.config.tree import Config
from corpus.crawl.pace import limits
from corpus.crawl.settings import CrawlSettings
from corpus.model import Access, Use
from corpus.url.canonical import canonical_url
from corpus.url.host import authority_of, host_of, registered_domain

AUTHORITY_CONTACTS = 3
"""robots.txt, tdmrep.json and ai.txt of an authority that was not read yet."""
JUDGED_MAX = 20_000
"""Hosts whose statements are judged; of more, the first by name, and the shares are theirs."""
PLACES_MAX = 200
"""Paths of one host that are looked at for a refusal of a part."""
_HOSTS = (
    "SELECT h.host, h.domain, h.ips, h.state, h.queued, h.pages, h.pace, h.crawl_delay, h.robots_read_at FROM hosts h"
    " WHERE h.state NOT IN ('blocked', 'retired') AND (h.queued > 0 OR h.pages > 0)"
)
_AUTHORITIES = "SELECT h.name, a.authority FROM authority a JOIN host h ON h.id = a.host WHERE a.kind = 2"


@dataclass(frozen=True, slots=True)
class KnownHost:
    """`read`: its robots.txt was read. `queued`: pages waiting; `pages`: pages asked for so far."""

    host: str
    domain: str
    queued: int
    pages: int = 0
    pace_s: float = 0.0
    crawl_delay_s: float | None = None
    ip: str = ""
    read: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """`pages`: to be stored by the end. Bytes on the wire and on the disk follow from the costs."""

    name: str
    pages: int
    forecast: Forecast
    bytes_wire: float
    bytes_disk: float

    def document(self) -> dict[str, Any]:
        """A row of `plan --json`: times in seconds, sizes in bytes."""
        return {
            "scenario": self.name,
            "pages": self.pages,
            "contacts": self.forecast.contacts,
            "seconds": round(self.forecast.seconds, 1),
            "bound": self.forecast.bound,
            "bounds": [{"what": b.what, "seconds": round(b.seconds, 1)} for b in self.forecast.bounds],
            "bytes_wire": round(self.bytes_wire),
            "bytes_disk": round(self.bytes_disk),
        }


def plan(config: Config, project: Project | None, *, pages_per_host: int | None = None) -> dict[str, Any]:
    """The whole estimate as one document. `project` None: nothing was crawled yet. `pages_per_host`: an assumption of the operator's."""
    hosts = known_hosts(config, project)
    known = costs(project) if project is not None else guesses()
    standing = Orders(project).standing if project is not None else None
    budget = budget_of(config.crawl, standing) if standing is not None else _configured(config.crawl)
    most = config.crawl.max_pages_per_host
    asked: list[tuple[str, Callable[[KnownHost], int]]] = [("known now", lambda host: host.queued)]
    if pages_per_host is not None:
        asked.append((f"{pages_per_host} pages a host", lambda host: max(min(pages_per_host, most) - host.pages, host.queued, 0)))
    asked.append(("at most", lambda host: max(most - host.pages, 0)))
    scenarios = [_scenario(name, hosts, pages, config.crawl, budget, known) for name, pages in asked]
    return {
        "hosts": {"known": len(hosts), "read": sum(host.read for host in hosts), "domains": len({host.domain for host in hosts})},
        "silent": silent(project, hosts),
        "scenarios": [scenario.document() for scenario in scenarios],
        "disk_free": shutil.disk_usage(_standing(config)).free,
        "assumptions": [*_stated(config.crawl, budget), *(cost.document() for cost in known.values())],
    }


def known_hosts(config: Config, project: Project | None) -> list[KnownHost]:
    """Hosts of the frontier, and of seeds that are not in it yet."""
    found: dict[str, KnownHost] = {}
    if project is not None:
        for host, domain, ips, _, queued, pages, pace, delay, read_at in read_all(project.layout, _HOSTS):
            found[host] = KnownHost(
                host, domain, queued, pages, pace, delay, ips.split(" ")[0] if ips else "", read_at is not None
            )
    for url in seed_lines(config)[0]:
        canonical = canonical_url(url)
        host = host_of(canonical) if canonical else ""
        if host and host not in found:
            found[host] = KnownHost(host, registered_domain(host), 1)
        elif host and not found[host].pages and not found[host].queued:
            found[host] = replace(found[host], queued=1)
    return [found[name] for name in sorted(found)]


def silent(project: Project | None, hosts: list[KnownHost]) -> dict[str, Any]:
    """Of hosts whose statements were read: how many say nothing about training, refuse it (everywhere, or for some paths), or refuse
    all access; with their pages."""
    told: dict[str, list[int]] = {"nothing": [0, 0], "yes": [0, 0], "no": [0, 0], "no in part": [0, 0], "no access": [0, 0]}
    asked = {host.host: host for host in hosts if host.read}
    if project is not None and asked:
        judge = current_judge(project)
        seen: set[str] = set()
        for host, authority in read_all(project.layout, _AUTHORITIES):
            if host not in asked or host in seen or len(seen) >= JUDGED_MAX:
                continue
            seen.add(host)
            consent, _ = judge.consent(authority_of(f"{authority}/") + "/", [])
            what = "nothing" if consent.use is Use.UNKNOWN else consent.use.value
            if consent.use is not Use.NO and _refuses_in_part(judge, authority):
                what = "no in part"
            row = told["no access" if consent.access is Access.NO else what]
            row[0] += 1
            row[1] += asked[host].queued + asked[host].pages
    return {
        "judged": sum(row[0] for row in told.values()),
        "not_asked": len(hosts) - len(asked),
        **{what.replace(" ", "_"): {"hosts": row[0], "pages": row[1]} for what, row in told.items()},
    }


def _refuses_in_part(judge: LogJudge, authority: str) -> bool:
    """Whether a statement that is limited to some path refuses training there. (A robots.txt that closes a path says nothing of it.)"""
    known = judge.rules(authority)
    places = known[0].places[:PLACES_MAX] if known is not None else ()
    base = authority_of(f"{authority}/")
    asked = (judge.consent(base + (place if place.startswith("/") else f"/{place}"), [])[0] for place in places)
    return any(item.axis == "use" and item.verdict == "no" for consent in asked for item in consent.evidence)


def _scenario(
    name: str, hosts: list[KnownHost], pages: Callable[[KnownHost], int], crawl: CrawlSettings, budget: Budget, known: dict[str, Assumption]
) -> Scenario:  # fmt: skip
    loads, total = [], 0
    for host in hosts:
        n = pages(host)
        if n <= 0:
            continue
        total += n
        loads.append(_load(host, n, crawl))
    stored = sum(host.pages for host in hosts)
    wire = known["wire bytes a page"].value
    left = min(_limits(budget, stored, wire), default=(float("inf"), ""))
    extra = sum(load.contacts for load in loads) - total
    made = forecast(
        loads, crawl, contacts_per_s=crawl.processes / known["fetch CPU a page"].value,
        most=left[0] + extra if left[0] < total else None, most_key=left[1], time_s=budget.seconds,
    )  # fmt: skip
    kept = max(min(made.contacts - extra, total), 0)
    disk = kept * (
        known["archive bytes a page"].value
        + known["measured bytes a page"].value
        + known["known URLs a page"].value * known["frontier bytes a URL"].value
    )
    return Scenario(name, kept, made, kept * wire, disk)


def _load(host: KnownHost, pages: int, crawl: CrawlSettings) -> HostLoad:
    bounds = limits(host.host, crawl, (host.ip,) if host.ip else ())
    floor = max(bounds.floor_s, host.crawl_delay_s or 0.0)
    gap = max(host.pace_s or bounds.start_s, floor)
    return HostLoad(host.host, host.domain, pages + (0 if host.read else AUTHORITY_CONTACTS), gap, floor, host.ip)


def _limits(budget: Budget, stored: int, wire: float) -> Iterator[tuple[float, str]]:
    if budget.pages is not None:
        yield max(budget.pages - stored, 0), "crawl.max_pages"
    if budget.bytes is not None:
        yield budget.bytes / wire, "crawl.max_bytes"


def _stated(crawl: CrawlSettings, budget: Budget) -> list[dict[str, Any]]:
    """The rest of the model, as it stands in the configuration."""
    rows = [
        Assumption("a new host's gap", crawl.delay_start, "s", "crawl.delay_start"),
        Assumption("the gap it earns", crawl.delay, "s", "crawl.delay, or its Crawl-delay where longer"),
        Assumption("contacts for authority files", AUTHORITY_CONTACTS, "a host not read yet", "robots.txt, tdmrep.json, ai.txt"),
        Assumption("pages of a host", crawl.max_pages_per_host, "at most", "crawl.max_pages_per_host"),
    ]
    if budget.pages is not None:
        rows.append(Assumption("pages", budget.pages, "at most", "crawl.max_pages, or an order"))
    return [row.document() for row in rows]


def _configured(crawl: CrawlSettings) -> Budget:
    return Budget(crawl.max_pages, crawl.max_bytes, crawl.max_time)


def _standing(config: Config) -> str:
    path = config.local
    while not path.exists():
        path = path.parent
    return str(path)
