"""`/metrics`: a crawl as Prometheus reads it. Labels come from closed sets, so no crawl can make the series grow.

Counters are those of the newest run and start at nothing with each; a scraper takes that for the reset it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from corpus.model import FUNNEL_STAGES, FunnelStep, UrlState
from corpus.observe.live import HOST_STATES, Live
from corpus.reasons import REASONS
from corpus.version import __version__

STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx", "failed")
RULES = tuple(sorted(code for code, row in REASONS.items() if row.verdict == "refused"))
CLASSES = tuple(sorted(code for code, row in REASONS.items() if row.step == "fetch" and row.verdict in ("failed", "gone")))
STATES = tuple(sorted(state.value for state in UrlState))
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Metric:
    """One family. `labels`: name → the closed set of its values, which `other` completes."""

    name: str
    kind: str
    help: str
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("corpus_build_info", "gauge", "Always 1; the version that serves this.", (("version", (__version__,)),)),
        Metric("corpus_running", "gauge", "1 while this machine crawls the folder, alone or as one of a fleet."),
        Metric("corpus_paused", "gauge", "1 while the operator has paused the crawl."),
        Metric("corpus_stalled", "gauge", "1 while nothing is asked and nothing is answered."),
        Metric("corpus_live_age_seconds", "gauge", "Age of the newest numbers of a run."),
        Metric("corpus_pages_total", "counter", "Pages stored by the newest run."),
        Metric("corpus_fetch_total", "counter", "Answers by status class.", (("status_class", STATUS_CLASSES),)),
        Metric("corpus_bytes_total", "counter", "Bytes received on the wire."),
        Metric("corpus_hosts", "gauge", "Hosts with something to ask for, by state.", (("state", HOST_STATES),)),
        Metric("corpus_frontier_urls", "gauge", "Known pages by state, of all runs, corpus_frontier_age_seconds old.",
               (("state", STATES),)),
        Metric("corpus_frontier_age_seconds", "gauge", "Age of corpus_frontier_urls: the frontier is counted more seldom than pages."),
        Metric("corpus_docs_age_seconds", "gauge", "Age of corpus_docs_total."),
        Metric("corpus_denied_total", "counter", "URLs refused, by the rule that refused them.", (("rule", RULES),)),
        Metric("corpus_errors_total", "counter", "URLs given up, by class.", (("class", CLASSES),)),
        Metric("corpus_retries_total", "counter", "Contacts to be made again, by class.", (("class", CLASSES),)),
        Metric("corpus_docs_total", "gauge", "URLs by funnel stage and whether they went on, of the newest summary.",
               (("stage", FUNNEL_STAGES), ("outcome", ("kept", "dropped")))),
        Metric("corpus_budget_used_ratio", "gauge", "Share of each budget that is used.",
               (("budget", ("crawl.max_pages", "crawl.max_bytes", "crawl.max_time")),)),
        Metric("corpus_eta_seconds", "gauge", "Time until the bound that ends the crawl, where one is known."),
        Metric("corpus_loop_lag_seconds", "gauge", "Event loop lag, 99th percentile of the last minute, worst process."),
        Metric("corpus_loop_lag_own_seconds", "gauge", "The same without waits for a core: what the crawl itself is the cause of."),
        Metric("corpus_commit_seconds", "gauge", "How long the last group commit took."),
        Metric("corpus_processed_bytes_total", "counter", "Bytes of segments processed while the crawl went on."),
        Metric("corpus_process_waiting_bytes", "gauge", "Bytes of segments that wait for processing while the crawl goes on."),
        Metric("corpus_fetch_held", "gauge", "1 while fetch waits for processing."),
        Metric("corpus_fleet_workers", "gauge", "Workers that share the run that is on; absent without one."),
        Metric("corpus_fleet_partition_files_unowned", "gauge", "Partition files that no worker is at work on."),
        Metric("corpus_fleet_pages_total", "counter", "Pages stored by all workers of the run."),
        Metric("corpus_fleet_orders_behind", "gauge", "Orders that the slowest worker has not read; it asks nobody meanwhile."),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FleetNumbers:
    """A run that many machines share: workers there and those of this machine, partition files that nobody owns, pages of all
    of them, orders that the slowest reader has not read."""

    workers: int
    here: int
    unowned: int
    pages: int
    behind: int


Sample = tuple[str, tuple[str, ...], float]
"""(metric, label values, value)"""


def exposition(
    live: Live | None, steps: Sequence[FunnelStep], *, running: bool, now: float, steps_age_s: float = 0.0, fleet: FleetNumbers | None = None
) -> str:  # fmt: skip
    """The text format 0.0.4. `live` None: no run has left numbers."""
    by_name: dict[str, list[Sample]] = {}
    for sample in (*_samples(live, running, now), *_documents(steps, steps_age_s), *_fleet(fleet)):
        by_name.setdefault(sample[0], []).append(sample)
    lines = []
    for name, metric in METRICS.items():
        if name not in by_name:
            continue
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
        for _, values, value in by_name[name]:
            labels = ",".join(f'{label}="{_escaped(given)}"' for (label, _), given in zip(metric.labels, values, strict=True))
            lines.append(f"{name}{{{labels}}} {_number(value)}" if labels else f"{name} {_number(value)}")
    return "\n".join(lines) + "\n"


def _samples(live: Live | None, running: bool, now: float) -> Iterator[Sample]:
    yield "corpus_build_info", (__version__,), 1.0
    yield "corpus_running", (), float(running)
    if live is None:
        return
    yield "corpus_paused", (), float(live.paused and running)
    yield "corpus_stalled", (), float(bool(live.stalled) and not live.paused and running)
    yield "corpus_live_age_seconds", (), max(now - live.at, 0.0)
    yield "corpus_pages_total", (), live.pages
    yield "corpus_bytes_total", (), live.bytes_wire
    yield "corpus_loop_lag_seconds", (), live.lag_ms / 1000
    yield "corpus_loop_lag_own_seconds", (), live.lag_own_ms / 1000
    yield "corpus_commit_seconds", (), live.commit_s
    yield "corpus_processed_bytes_total", (), live.processed_bytes
    yield "corpus_process_waiting_bytes", (), live.waiting_bytes if running else 0
    yield "corpus_fetch_held", (), float(live.held and running)
    if live.eta_s is not None and running:
        yield "corpus_eta_seconds", (), live.eta_s
    hosts = dict(live.hosts) if running else {}
    if running:
        hosts["parked"] = max(hosts.get("parked", 0), sum(live.parked.values()))
    yield from _labelled("corpus_fetch_total", live.statuses)
    yield from _labelled("corpus_hosts", hosts)
    yield from _labelled("corpus_frontier_urls", live.frontier)
    if live.frontier_at:
        yield "corpus_frontier_age_seconds", (), max(now - live.frontier_at, 0.0)
    yield from _labelled("corpus_denied_total", live.refused)
    yield from _labelled("corpus_errors_total", live.failed)
    yield from _labelled("corpus_retries_total", live.retried)
    for key, used, limit in live.budget:
        yield "corpus_budget_used_ratio", (str(key),), used / limit


def _labelled(name: str, counts: Mapping[str, int]) -> Iterator[Sample]:
    """Every value of the closed set, the absent ones as 0, so that a rate is known from the first one on."""
    (_, known) = METRICS[name].labels[0]
    for value in known:
        yield name, (value,), counts.get(value, 0)
    yield name, (OTHER,), sum(n for value, n in counts.items() if value not in known)


def _documents(steps: Sequence[FunnelStep], age_s: float) -> Iterator[Sample]:
    if steps:
        yield "corpus_docs_age_seconds", (), age_s
    for step in steps:
        yield "corpus_docs_total", (step.stage, "kept"), step.n_out
        yield "corpus_docs_total", (step.stage, "dropped"), step.n_in - step.n_out


def _fleet(fleet: FleetNumbers | None) -> Iterator[Sample]:
    if fleet is not None:
        yield "corpus_fleet_workers", (), fleet.workers
        yield "corpus_fleet_partition_files_unowned", (), fleet.unowned
        yield "corpus_fleet_pages_total", (), fleet.pages
        yield "corpus_fleet_orders_behind", (), fleet.behind


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
