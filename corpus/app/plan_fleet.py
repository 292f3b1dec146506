"""`corpus plan --pages N --days D`: what so large a crawl takes, by arithmetic from stated costs. Machines, bytes, memory, money.

Every figure is a target times a cost that is listed beside it, so whoever measures another cost can correct the plan by
hand. Nothing is looked up and no price is known: money is counted where prices are given. It plans; what this version
cannot do in one piece is divided, and said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corpus.app.costs import ENOUGH_PAGES, Assumption, costs, folder_bytes, guesses, run_summaries
from corpus.app.project import Project
from corpus.config.tree import Config
from corpus.errors import UsageError
from corpus.store.settings import SPREADS

PRICES: dict[str, str] = {
    "core-hour": "one core for one hour",
    "tb-month": "one TB kept for one month",
    "tb-in": "one TB received",
    "million-puts": "a million objects written",
}
"""What can be given a price, and for how much of it."""
TEXTS_MAX = 2**31 - 1
"""Documents are numbered with 32 bits while they are clustered."""
_OBJECTS_A_SEGMENT = 8
"""Two archives (pages, policy files), their two records, two indexes, four families' files: less what is shared, about eight."""
_SEGMENT_AGE_S = 60.0


@dataclass(frozen=True, slots=True)
class Target:
    """`page_bytes`: of a page as a browser sees it, before any compression. `gap_s`: None takes `crawl.delay`."""

    pages: int
    days: float
    page_bytes: int = 100_000
    gap_s: float | None = None
    regions: int = 1
    machine_cores: int = 16
    machine_gbit: float = 10.0
    prices: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.prices) - set(PRICES))
        if unknown:
            raise UsageError(f"no such price: {unknown[0]!r}", "--price", f"known: {', '.join(PRICES)}")
        if min(self.pages, self.days, self.page_bytes, self.regions, self.machine_cores, self.machine_gbit) <= 0:
            raise UsageError("a target is above zero in every respect", "--pages", "see corpus plan --help")


GUESSES: tuple[Assumption, ...] = (
    Assumption("archive share of a page", 0.33, "of its bytes", "assumed: as sent, gzip"),
    Assumption("archive bytes around a page", 2_000.0, "bytes", "assumed: request, headers, metadata"),
    Assumption("a URL as text", 77.0, "bytes", "assumed"),
    Assumption("an answer takes", 0.6, "s", "assumed"),
    Assumption("cores kept busy", 0.7, "share", "assumed"),
    Assumption("language and signals a page", 0.0013, "CPU-s", "BENCHMARKS.md"),
    Assumption("band join a document", 0.7e-6, "CPU-s", "BENCHMARKS.md"),
    Assumption("PostgreSQL CPU a page", 0.0006, "CPU-s", "BENCHMARKS.md, a fleet: address claims and near copies included"),
    Assumption("PostgreSQL log a new URL", 870.0, "bytes", "BENCHMARKS.md, its part of a page included"),
    Assumption("PostgreSQL primary carries", 3_500.0, "pages/s", "assumed: bound by its disk"),
)
_EXTRACT: dict[str, tuple[float, str]] = {
    "default": (1 / 55, "BENCHMARKS.md"),
    "fast": (1 / 490, "BENCHMARKS.md"),
    "precision": (1 / 55, "as for default"),
    "recall": (1 / 55, "as for default"),
    "blocks": (1 / 300, "default's by the ratio in BENCHMARKS.md"),
}


def bloom_bytes(keys: float, errors: float) -> float:
    """Bytes of a Bloom filter with the best number of functions, for so many keys and a share of false answers."""
    return keys * -math.log(errors) / math.log(2) ** 2 / 8


def plan_fleet(config: Config, project: Project | None, target: Target) -> dict[str, Any]:
    """The plan as one document: rates a second, bytes, cores; `assumptions` is everything it rests on."""
    known = _costs(config, project)
    value = {name: cost.value for name, cost in known.items()}
    seconds = target.days * 86_400
    rate = target.pages / seconds
    gap = target.gap_s or config.crawl.delay
    stored = _stored(target, value)
    cores = _cores(target, value, rate, seconds)
    machines = _machines(target, cores, rate)
    told = {
        "target": {"pages": target.pages, "days": target.days, "page_bytes": target.page_bytes, "gap_s": gap, "regions": target.regions},
        "pages_per_s": rate,
        "transfer": _transfer(target, value, rate),
        "politeness": _politeness(config, target, rate, gap, seconds),
        "in_flight": math.ceil(rate * value["an answer takes"]),
        "cores": cores,
        "machines": machines,
        "stored_bytes": stored,
        "seen": [_seen("pages asked for", target.pages, value), _seen("every known URL", target.pages * value["known URLs a page"], value)],
        "postgresql": (servers := _postgresql(value, rate)),
        "fleets": (fleets := _fleets(machines, servers)),
        "regions": _regions(target, rate, gap, cores, machines),
        "notes": _notes(config, target, fleets),
        "money": _money(target, value, seconds, cores, stored),
        "assumptions": [cost.document() for cost in known.values()],
    }  # fmt: skip
    return dict(_rounded(told))


def _costs(config: Config, project: Project | None) -> dict[str, Assumption]:
    """Costs by name: of this folder where it has measured them, else ours."""
    found = costs(project) if project is not None else guesses()
    del found["wire bytes a page"]
    archive = found.pop("archive bytes a page")
    found |= {guess.name: guess for guess in GUESSES}
    found["extraction a page"] = Assumption("extraction a page", *_extraction(config))
    if project is None or archive.source == "assumed":
        return found
    summaries = run_summaries(project)
    pages, body = (sum(summary["fetch"][name] for summary in summaries) for name in ("pages", "bytes_body"))
    if pages >= ENOUGH_PAGES and body > 0:
        source = f"measured here, over {pages}, with all that stands around them"
        found["archive share of a page"] = Assumption(
            "archive share of a page", folder_bytes(project.layout.warc) / body, "of its bytes", source
        )
        del found["archive bytes around a page"]
    return found


def _extraction(config: Config) -> tuple[float, str, str]:
    seconds, source = _EXTRACT[config.extract.profile]
    return seconds, "CPU-s", f"{source}, extract.profile = {config.extract.profile!r}"


def _transfer(target: Target, value: Mapping[str, float], rate: float) -> dict[str, float]:
    """`at_most`: were nothing compressed on the way; `likely`: compressed as the archive is."""
    most = rate * target.page_bytes
    likely = most * min(value["archive share of a page"], 1.0)
    return {
        "at_most_bytes_per_s": most, "at_most_gbit_per_s": most * 8e-9, "at_most_bytes": float(target.pages) * target.page_bytes,
        "likely_bytes_per_s": likely, "likely_gbit_per_s": likely * 8e-9,
    }  # fmt: skip


def _politeness(config: Config, target: Target, rate: float, gap: float, seconds: float) -> dict[str, float]:
    """`ready_hosts` must be due at every moment; with so many pages of a host at most, `hosts` must be known in all."""
    most = min(int(seconds / gap), config.crawl.max_pages_per_host)
    return {"ready_hosts": rate * gap, "pages_a_host_at_most": most, "hosts": math.ceil(target.pages / max(most, 1))}


def _stored(target: Target, value: Mapping[str, float]) -> dict[str, float]:
    page = target.page_bytes * value["archive share of a page"] + value.get("archive bytes around a page", 0.0)
    urls = target.pages * value["known URLs a page"]
    return {
        "warc": target.pages * page,
        "parquet": target.pages * value["measured bytes a page"],
        "frontier": urls * value["frontier bytes a URL"],
    }


def _cores(target: Target, value: Mapping[str, float], rate: float, seconds: float) -> dict[str, float]:
    """Cores while the crawl lasts, at the share of them that is kept busy; clusters in core-hours, once."""
    busy = value["cores kept busy"]
    measure = value["extraction a page"] + value["language and signals a page"]
    fetch, process = rate * value["fetch CPU a page"] / busy, rate * measure / busy
    return {
        "fetch": fetch, "process": process, "postgresql": rate * value["PostgreSQL CPU a page"] / busy,
        "core_hours": (fetch + process) * seconds / 3_600,
        "clusters_core_hours": target.pages * value["band join a document"] / 3_600,
    }  # fmt: skip


def _machines(target: Target, cores: Mapping[str, float], rate: float) -> dict[str, float]:
    """Fetch processes take a core each. A fetching machine is full of cores or of bandwidth, whichever comes first."""
    by_cores = cores["fetch"] / target.machine_cores
    by_line = rate * target.page_bytes * 8e-9 / target.machine_gbit
    return {
        "fetch_processes": math.ceil(cores["fetch"]), "fetch": math.ceil(max(by_cores, by_line)),
        "process": math.ceil(cores["process"] / target.machine_cores), "cores_each": target.machine_cores, "gbit_each": target.machine_gbit,
    }  # fmt: skip


def _seen(what: str, urls: float, value: Mapping[str, float]) -> dict[str, Any]:
    """Memory that tells whether a URL is known, in four ways."""
    return {
        "of": what, "urls": urls, "bloom_0.001": bloom_bytes(urls, 0.001), "bloom_0.01": bloom_bytes(urls, 0.01),
        "hashes": urls * 8, "strings": urls * value["a URL as text"],
    }  # fmt: skip


def _postgresql(value: Mapping[str, float], rate: float) -> dict[str, float]:
    urls = rate * value["known URLs a page"]
    return {
        "acknowledged_per_s": rate, "new_urls_per_s": urls, "log_bytes_per_s": urls * value["PostgreSQL log a new URL"],
        "server_cores": rate * value["PostgreSQL CPU a page"], "primaries": math.ceil(rate / value["PostgreSQL primary carries"]),
    }  # fmt: skip


def _fleets(machines: Mapping[str, float], servers: Mapping[str, float]) -> dict[str, int]:
    """Parts of the crawl that work by themselves: a fleet has one database, and no more workers than partition files."""
    processes = int(machines["fetch_processes"])
    n = max(int(servers["primaries"]), math.ceil(processes / SPREADS[-1]))
    each = math.ceil(processes / n)
    return {"fleets": n, "workers_each": each, "partition_files": min(files for files in SPREADS if files >= each)}


def _regions(
    target: Target, rate: float, gap: float, cores: Mapping[str, float], machines: Mapping[str, float]
) -> dict[str, float]:
    """One of `regions` equal parts: every site belongs to one, so its share of hosts, line and machines is all there is."""
    n = target.regions
    return {
        "regions": n, "pages_per_s_each": rate / n, "gbit_per_s_each": rate * target.page_bytes * 8e-9 / n, "ready_hosts_each": rate * gap / n,
        "fetch_cores_each": cores["fetch"] / n, "fetch_machines_each": math.ceil(machines["fetch"] / n),
    }  # fmt: skip


def _notes(config: Config, target: Target, fleets: Mapping[str, int]) -> list[str]:
    notes = []
    if fleets["fleets"] > 1:
        notes.append(
            f"a fleet has one PostgreSQL: divide the sites among {fleets['fleets']} corpora, which do not follow links to each other's"
        )
    if target.pages > TEXTS_MAX:
        notes.append(f"one snapshot clusters at most {TEXTS_MAX:,} documents: divide the release by crawl or by site")
    if target.gap_s is not None and target.gap_s < config.crawl.delay:
        notes.append(f"a gap of {target.gap_s:g} s is below crawl.delay ({config.crawl.delay:g} s), which a crawl would keep")
    return notes


def _money(
    target: Target, value: Mapping[str, float], seconds: float, cores: Mapping[str, float], stored: Mapping[str, float]
) -> dict[str, float]:
    """Price times amount for every price that was given, in the currency it was given in; empty without prices."""
    segments = max(stored["warc"] / 2**27, math.ceil(cores["fetch"]) * seconds / _SEGMENT_AGE_S)
    amounts = {
        "core-hour": cores["core_hours"] + cores["postgresql"] * seconds / 3_600 + cores["clusters_core_hours"],
        "tb-month": sum(stored.values()) / 1e12,
        "tb-in": float(target.pages) * target.page_bytes * min(value["archive share of a page"], 1.0) / 1e12,
        "million-puts": segments * _OBJECTS_A_SEGMENT / 1e6,
    }
    lines = {name: amounts[name] * price for name, price in target.prices.items()}
    return {**lines, "total": sum(lines.values())} if lines else {}


def _rounded(told: Any) -> Any:
    """The same with six digits: more would pretend to be known."""
    match told:
        case float():
            return float(f"{told:.6g}")
        case dict():
            return {key: _rounded(inner) for key, inner in told.items()}
        case list():
            return [_rounded(inner) for inner in told]
        case _:
            return told
