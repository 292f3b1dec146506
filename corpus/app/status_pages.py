"""The pages of the status server as markup: overview, hosts, one host, URLs, refusals and errors, samples, why.

Each function takes what was looked up and returns the inside of the page; `page` puts the frame around it. No page needs
its script: with it, the overview keeps itself up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from corpus.app.status_look import PAGE_ROWS, SORTS, Rows
from corpus.model import FunnelStep
from corpus.observe.charts import bar, lines, side_by_side
from corpus.observe.live import HOST_STATES, Live
from corpus.observe.live_file import COLUMNS
from corpus.observe.markup import Child, Markup, crawled, el
from corpus.observe.summary import sentence_of
from corpus.observe.tables import facts, figures, funnel, named, ranked, table
from corpus.observe.terminal import host_counts
from corpus.observe.words import count, duration, many, rate, size
from corpus.reasons import REASONS
from corpus.version import __version__

NAV = (("/", "Overview"), ("/hosts", "Hosts"), ("/refusals", "Refusals"), ("/errors", "Errors"), ("/samples", "Samples"))
DOCTYPE = Markup("<!doctype html>\n")


def page(title: str, inside: Child, *, path: str, state: str, live: bool = False) -> Markup:
    """A whole document. `live`: the inside is fetched anew every other second."""
    nav = el(
        "nav",
        el("ul", *(el("li", el("a", name, href=to, aria_current="page" if to == path else None)) for to, name in NAV)),
        aria_label="pages",
    )
    head = el(
        "head", el("meta", charset="utf-8"), el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"), el("title", f"{title} \u00b7 corpus"), el("link", rel="stylesheet", href="/look.css"),
        el("script", src="/status.js", defer=True),
    )  # fmt: skip
    body = el(
        "body", el("a", "Skip to the page", class_="skip", href="#main"),
        el("header", el("p", "corpus", class_="name"), nav, el("p", state, class_="state", id="state")),
        el("main", el("h1", crawled(title)), el("div", inside, id="live" if live else None), id="main", tabindex=-1),
        el(
            "footer", el("p", "Read-only, for this machine alone. Press / to search hosts. Orders are given with corpus ctl. ",
            el("button", "Stop updates", id="updates", type="button", hidden=True, aria_pressed="false")),
            el("p", f"corpus {__version__} \u00b7 ", el("a", "status.json", href="/status.json"), " \u00b7 ", el("a", "metrics", href="/metrics")),
        ),
    )  # fmt: skip
    return Markup(DOCTYPE + el("html", head, body, lang="en"))


def address(path: str, **query: str | int) -> str:
    """A link within the server; empty values are left out."""
    kept = {key: str(value) for key, value in query.items() if value not in ("", 0)}
    return f"{path}?{urlencode(kept, errors='replace')}" if kept else path


def of_reason(code: str) -> str | None:
    """Where a reason's hosts are listed."""
    family = code.partition(":")[0]
    return address("/reason", code=family) if family in REASONS else None


def of_host(host: str) -> str:
    """The page of a host."""
    return address("/host", name=host)


# ---- overview


def overview(live: Live | None, points: list[list[float]], steps: list[FunnelStep], told: Mapping[str, Any]) -> Child:
    """Numbers, charts, funnel, losses, hosts and the latest URLs."""
    running = bool(told["running"])
    if live is None:
        yet: Child = el("p", "No run has left numbers here yet.", class_="lead")
        return [yet, _folder(told), el("h2", "Funnel"), funnel(steps, of_reason)]
    return [
        _banner(live, running),
        figures(in_figures(live, running)),
        [el("p", f"{key}: {_of(key, used)} of {_of(key, limit)} ", bar(used / limit)) for key, used, limit in live.budget],
        el("h2", "Over time"),
        side_by_side(charts(points)),
        el("h2", "Funnel"),
        funnel(steps, of_reason),
        el(
            "div",
            el("section", el("h2", "Refusals of this run, by rule"), ranked("refused", live.refused, of_reason)),
            el(
                "section",
                el("h2", "Errors of this run, by class"),
                ranked("given up", live.failed, of_reason),
                ranked("to be asked again", live.retried, of_reason),
            ),
            class_="columns",
        ),
        el("h2", "Hosts"),
        el("div", *_hosts_of(live), class_="columns") if running else el("p", "No crawl is under way."),
        el("h2", "Latest URLs"),
        table(
            "the last visits that were settled, times in UTC",
            ("when", "URL", "settled as", "reason", "status"),
            [_visit(*row) for row in live.recent],
            numbers=(4,),
        ),
        _folder(told),
    ]


def _banner(live: Live, running: bool) -> Markup:
    said = live.stalled if running else ""
    return el("p", crawled(said, 600) if said else None, class_="banner", role="status")


def in_figures(live: Live, running: bool) -> Iterator[tuple[str, str, str]]:
    """(name, value, what more there is to say) of what stands largest on the overview; less of it once the crawl is over."""
    asked = max(live.requests - live.policy_requests, 0)
    yield (
        "pages",
        count(live.pages),
        f"in {duration(live.seconds)}" + (f", {100 * live.pages / asked:.0f} % of requests" if asked else ""),
    )
    if running:
        yield "pages a second", rate(live.pages_s), f"mean {rate(live.pages_s_mean)}"
        yield "transfer", f"{size(live.bytes_s)}/s", size(live.bytes_wire)
    else:
        yield "mean pages a second", rate(live.pages_s_mean), size(live.bytes_wire)
    yield "waiting in line", count(live.frontier.get("queued", 0)), "known pages"
    if running:
        states = host_counts(live)
        yield "hosts", count(sum(n for _, n in states)), ", ".join(f"{n} {state}" for state, n in states if n)
    yield "refused", count(sum(live.refused.values())), "sites said no"
    yield "errors", count(sum(live.failed.values())), f"{count(sum(live.retried.values()))} asked again"
    if live.waiting_limit and (live.processed_segments or (live.waiting_segments and running)):
        done = f"in {many(live.processed_segments, 'segment')}"
        waits = f"{many(live.waiting_segments, 'segment')} ({size(live.waiting_bytes)} of {size(live.waiting_limit)}) waiting"
        yield (
            "processed" if running else "processed meanwhile",
            size(live.processed_bytes),
            f"{done}; {waits}" if running else done,
        )
    if live.eta_s is not None and running:
        yield "ends in", duration(live.eta_s), live.bound
    yield "loop lag", f"{live.lag_ms:.0f} ms", f"99th percentile; {live.lag_own_ms:.0f} ms without waits for a core"


def charts(points: list[list[float]]) -> list[Markup]:
    """The series of a run, as charts; the report shows the same."""
    column = {name: n for n, name in enumerate(COLUMNS)}

    def of(name: str) -> list[tuple[float, float]]:
        return [(row[0], row[column[name]]) for row in points]

    return [
        lines("pages a second", [("pages a second", of("pages_s"))], rate),
        lines("pages stored", [("pages", of("pages"))]),
        lines(
            "hosts",
            [("active", of("active")), ("waiting", of("waiting")), ("backing off", of("backing_off")), ("parked", of("parked"))],
        ),
        lines("waiting in line", [("known pages", of("queued"))]),
        lines("refused and given up", [("refused", of("refused")), ("errors", of("failed"))]),
        lines("loop lag, ms", [("loop lag", of("lag_ms"))]),
    ]


def _hosts_of(live: Live) -> Iterator[Markup]:
    slow = [(host, f"{latency:.2f} s", f"{gap:.1f} s", "") for host, latency, gap in live.slowest]
    yield named("slowest to answer", ("host", "latency", "gap", ""), slow, of_host)
    yield named("most failures", ("host", "failures", "latest"), live.failing, of_host)
    due = [(host, f"{max(wait, 0):.0f} s", why) for host, wait, why in live.due]
    yield named("next in turn", ("host", "in", "because"), due, of_host)


def _visit(at: float, url: str, state: str, reason: str, status: int | None) -> list[Child]:
    return [_clock(at), _why_link(url), state, reason or "", status or ""]


def _folder(told: Mapping[str, Any]) -> Markup:
    rows: list[tuple[str, Child]] = [
        ("segments", f"{told['segments']}, measured {told['measured']}"),
        ("releases", ", ".join(told["releases"]) or "none yet"),
        *((fact["name"], crawled(fact["value"])) for fact in told["facts"]),
    ]
    return el("section", el("h2", "Folder"), facts(rows))


# ---- hosts


def hosts(found: Rows, *, search: str, state: str, sort: str, number: int) -> Child:
    """The host table with its search."""
    form = el(
        "form",
        el("label", "host contains", el("input", type="search", name="q", value=search, autocomplete="off", spellcheck="false")),
        el("label", "state", el("select", el("option", "any", value=""), *(el("option", s, selected=s == state) for s in HOST_STATES), name="state")),
        el("label", "order", el("select", *(el("option", s, selected=s == sort) for s in SORTS), name="sort")),
        el("button", "Search", type="submit"),
        class_="search", method="get", action="/hosts", role="search",
    )  # fmt: skip
    rows: list[list[Child]] = [
        [
            el("a", crawled(host), href=of_host(host)),
            state_,
            reason or "",
            count(queued),
            count(pages),
            f"{pace:.1f} s",
            _when(due),
        ]
        for host, state_, reason, queued, pages, pace, due in found.rows[:PAGE_ROWS]
    ]
    more = len(found.rows) > PAGE_ROWS
    steps = [
        el("a", "previous", href=address("/hosts", q=search, state=state, sort=sort, page=number - 1)) if number else None,
        " " if number and more else None,
        el("a", "next", href=address("/hosts", q=search, state=state, sort=sort, page=number + 1)) if more else None,
    ]
    heads = ("host", "state", "reason", "queued", "pages", "gap", "next contact")
    return [
        form,
        _partly(found),
        table(f"hosts {number * PAGE_ROWS + 1} to {number * PAGE_ROWS + len(rows)}", heads, rows, numbers=(3, 4, 5)),
        el("p", *steps),
    ]


def host(row: Mapping[str, Any], urls: Rows, *, state: str, reason: str) -> Child:
    """One host: what is known of it, its URLs by state, and the first of them."""
    name = str(row["host"])
    known: list[tuple[str, Child]] = [
        ("state", f"{row['state']} {('(' + row['reason'] + ')') if row['reason'] else ''}"),
        ("domain", crawled(row["domain"])),
        ("addresses", row["ips"] or "not known"),
        ("gap", f"{row['pace']:.1f} s" + (f", Crawl-delay {row['crawl_delay']:g} s" if row["crawl_delay"] is not None else "")),
        ("next contact", _when(row["next_contact"])),
        ("pages asked", count(row["pages"])),
        ("waiting", count(row["queued"])),
    ]
    counts: list[list[Child]] = [
        [el("a", s, href=address("/host", name=name, state=s, reason=r)), el("code", r), sentence_of(r) if r else "", count(n)]
        for s, r, n in row["counts"].rows
    ]
    files: list[list[Child]] = [
        [crawled(authority), kind, outcome, status or "", _when(read_at), crawled(detail)]
        for authority, kind, outcome, status, read_at, detail in row["files"].rows
    ]
    return [
        facts(known),
        el("h2", "Its pages by state"), _partly(row["counts"]), table("pages", ("state", "reason", "meaning", "URLs"), counts, numbers=(3,)),
        el("h2", "Its statement files"), table("authority files", ("authority", "file", "outcome", "status", "read", ""), files, numbers=(3,)),
        el("h2", f"Pages{': ' + (reason or state) if reason or state else ''}"), _urls(urls),
    ]  # fmt: skip


def reason(code: str, found: Rows) -> Child:
    """A refusal or an error, drilled into: which hosts, how many URLs."""
    row = REASONS[code]
    rows: list[list[Child]] = [
        [el("a", crawled(host), href=address("/host", name=host, reason=code)), count(n), bar(n / max(found.rows[0][1], 1))]
        for host, n in found.rows
    ]
    return [
        el("p", f"{row.sentence[:1].upper()}{row.sentence[1:]}. What to do: {row.next}."),
        _partly(found),
        table("hosts with such pages, by the frontier", ("host", "URLs", ""), rows, numbers=(1,)),
        el("p", el("a", "all such pages", href=address("/urls", reason=code))),
        None if rows else el("p", "Losses after the fetch are found with corpus sample --dropped, and on the page of samples."),
    ]


def urls(found: Rows, *, search: str, code: str) -> Child:
    """URLs of a reason, or that contain a text."""
    form = el(
        "form",
        el("label", "address contains", el("input", type="search", name="q", value=search, autocomplete="off", spellcheck="false")),
        el("input", type="hidden", name="reason", value=code) if code else None,
        el("button", "Search", type="submit"),
        class_="search", method="get", action="/urls", role="search",
    )  # fmt: skip
    return [form, _urls(found)]


def losses(steps: Mapping[str, int], which: Callable[[str], bool]) -> Child:
    """Known pages by reason, those that `which` picks."""
    return ranked("known pages of all runs", {code: n for code, n in steps.items() if which(code)}, of_reason, most=60)


def samples(kept: list[dict[str, Any]], dropped: list[dict[str, Any]]) -> Child:
    """Some documents that are in, and some that are not, with why."""
    if not kept and not dropped:
        return el("p", "Nothing was measured yet: samples appear after the process stage.", class_="lead")
    return [
        el("h2", "Kept"), [_document(row) for row in kept] or el("p", "none yet"),
        el("h2", "Dropped"), [_document(row) for row in dropped] or el("p", "none"),
    ]  # fmt: skip


def _document(row: Mapping[str, Any]) -> Markup:
    rule = row.get("drop_rule")
    why = (
        f"{rule} measured {row['measured']}, kept is {row['keep']}"
        if rule
        else sentence_of(str(row["reason"] or ""))
        if row["reason"]
        else ""
    )
    text = " ".join(str(row["text"] or "").split())
    return el(
        "article", el("p", _why_link(str(row["url"])), " ", el("span", row["language"] or "und", class_="pill"), " ", el("span", crawled(why), class_="warn") if why else None),
        el("h3", crawled(row["title"], 200)) if row.get("title") else None,
        el("blockquote", crawled(text, 400) if text else "no text", dir="auto"),
    )  # fmt: skip


def _urls(found: Rows) -> Child:
    rows: list[list[Child]] = [
        [_why_link(url), state, el("code", reason or ""), status or "", _when(at)]
        for url, state, reason, status, at in found.rows[:PAGE_ROWS]
    ]
    more = el("p", f"the first {PAGE_ROWS}; corpus sql has them all", class_="lead") if len(found.rows) > PAGE_ROWS else None
    return [
        _partly(found),
        table("pages; each leads to what became of it", ("URL", "state", "reason", "status", "visited"), rows, numbers=(3,)),
        more,
    ]


def _partly(found: Rows) -> Child:
    if found.whole:
        return None
    return el(
        "p", "The frontier is large: only the part of it that could be looked through in two seconds is shown.", class_="lead"
    )


def _why_link(url: str) -> Markup:
    return el("a", crawled(url, 200), href=address("/why", url=url), class_="mono")


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def _when(at: float | None) -> str:
    """Epoch seconds as a date and time in UTC; nothing for never."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S") if at and 0 < at < 4e9 else ""


def _of(key: str, value: float) -> str:
    return size(value) if key == "crawl.max_bytes" else duration(value) if key == "crawl.max_time" else count(value)
