"""Before a crawl starts: cut what a crash left open, record what was sealed, plant seeds, learn what the gate must know.

Runs in the supervisor under the stage lock, before any fetch process exists, so it may open every partition file.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge

from corpus.app.fetch_neighbours import claims_path
from corpus.app.frontier_files import file_at, open_file, read_one
from corpus.app.project import Project
from corpus.app.segments import forget_unpublished, newest_epoch, open_files, record_segment, record_unrecorded
from corpus.config.check import seed_lines
from corpus.config.tree import Config
from corpus.crawl.discover import Router, seed
from corpus.crawl.gate import Fingerprint
from corpus.crawl.ports import Ack, Due, Judged
from corpus.crawl.traps import UrlRules
from corpus.model import UrlState
from corpus.store.frontier_schema import from_tail, text_out
from corpus.store.ip_claims import SqliteIpClaims
from corpus.store.layout import parse_segment
from corpus.store.warc_recover import recover_open
from corpus.url.host import host_of, registered_domain
from corpus.url.partition import partition_file
from corpus.url.scope import UrlScope


@dataclass(slots=True)
class Prepared:
    """What the supervisor starts with. `pages`: fetched in earlier runs, for `crawl.max_pages`."""

    recovered: int = 0
    seeds: int = 0
    pages: int = 0
    fingerprints: Iterable[Fingerprint] = ()
    """Read as they are asked for, once: a list of ten million would be larger than the index that is made of them."""


def url_rules(config: Config) -> UrlRules:
    """The pure URL filters of a configuration. Without a scope, the seeds' registered domains are the scope."""
    scope = config.crawl.scope
    if scope.any or scope.domains or scope.hosts or scope.prefixes:
        compiled = UrlScope(
            domains=scope.domains, hosts=scope.hosts, prefixes=scope.prefixes, exclude=scope.exclude, any=scope.any
        )
    else:
        compiled = UrlScope.from_seeds(seed_lines(config)[0], exclude=scope.exclude)
    return UrlRules(config.crawl, compiled)


def prepare(project: Project) -> Prepared:
    """Make the folder fit to crawl. Raises StoreError when acknowledged bytes are missing, Locked while another machine crawls."""
    if project.layout.server:
        _await_files(project)
    prepared = Prepared(recovered=recover(project) + record_unrecorded(project))
    if project.remote:
        _pass_epoch(project, newest_epoch(project))
    end_claims(project)
    by_file = seeds_by_file(project)
    prepared.seeds = sum(map(len, by_file.values()))
    for number in range(project.layout.spread):
        seeds = by_file.get(number, [])
        if not seeds and not file_at(project.layout, number).exists():
            continue
        store, clean = open_file(project.layout, number), False
        try:
            store.claim("supervisor")
            clean = store.was_clean()
            store.commit([Ack(own=(judged,)) for judged in seeds])
            tally = store.tally()
            stored = (UrlState.FETCHED.value, UrlState.NOT_MODIFIED.value)
            for counts, sign in ((tally.by_state, 1), (tally.not_pages, -1)):
                prepared.pages += sign * sum(n for (state, _), n in counts.items() if state in stored)
        finally:
            store.close(clean=clean)
    if project.config.crawl.near_copies != "store" or prepared.pages:
        prepared.fingerprints = fingerprints(project)
    return prepared


def _await_files(project: Project) -> None:
    """Every partition file on a server can be had: a dead machine's leases are waited for, a living one's are respected before
    anything of its folder is touched."""
    for number in range(project.layout.spread):
        if file_at(project.layout, number).exists():
            store, clean = open_file(project.layout, number), False
            try:
                store.claim("supervisor")
                clean = store.was_clean()
            finally:
                store.close(clean=clean)


def recover(project: Project, worker: int | None = None) -> int:
    """Cut open segments (of one worker, or all) to their acknowledged ends, seal and record them.

    For a bucket pages are acknowledged after their segment was recorded there: what was not is removed, and fetched again.
    """
    if project.remote:
        forget_unpublished(project, worker)
        return 0
    found = [
        (kind, path)
        for kind, path in open_files(project)
        if worker is None or (parse_segment(path.name.split(".warc", 1)[0]) or (worker,))[0] == worker
    ]
    if not found:
        return 0
    ends = acked_ends(project, [project.layout.relative(path).removesuffix(".open") for _, path in found])
    sealed = 0
    for kind, path in found:
        name = project.layout.relative(path).removesuffix(".open")
        segment = recover_open(path, ends.get(name, 0), layout=project.layout)
        if segment is not None:
            record_segment(project, segment, kind=kind, crawl_id=path.parent.name.removeprefix("crawl_id="))
            sealed += 1
    return sealed


def recover_worker(project: Project, worker: int) -> int:
    """After one fetch process died: its open segments and claims only; the others still hold theirs."""
    end_claims(project, f"fetch-{worker}")
    return recover(project, worker)


def _pass_epoch(project: Project, newest: int) -> None:
    """Take the epochs that name segments and logs past all that were ever recorded: a frontier that was lost begins at 1 again."""
    for number in range(project.config.crawl.processes):
        store, clean = open_file(project.layout, number), False
        try:
            epoch = store.claim("supervisor")
            clean = store.was_clean()
            while epoch < newest:
                epoch = store.claim("supervisor")
        finally:
            store.close(clean=clean)


def end_claims(project: Project, owner: str = "") -> None:
    """Claims on addresses of processes that are dead (all, or one): whoever comes next waits one gap."""
    path = claims_path(project.layout)
    if path.exists():
        now = time.time()
        claims = SqliteIpClaims(path, now)
        try:
            claims.end_all(Due(now, max(project.config.crawl.ip_gap_s, project.config.crawl.delay_start)), owner)
        finally:
            claims.close()


def acked_ends(project: Project, names: list[str]) -> dict[str, int]:
    """Largest acknowledged end of each segment over all partition files (one worker's group commit may touch several)."""
    from corpus.app.frontier_files import read_all

    ends: dict[str, int] = {}
    query = "SELECT w.text, s.acked_end FROM segment s JOIN word w ON w.id = s.file"
    wanted = set(names)
    for name, end in read_all(project.layout, query):
        if name in wanted:
            ends[name] = max(ends.get(name, 0), int(end))
    return ends


def seeds_by_file(project: Project) -> dict[int, list[Judged]]:
    """The seeds, judged, by the partition file that owns each."""
    config, spread = project.config, project.layout.spread
    router = Router(url_rules(config), spread)
    by_file: dict[int, list[Judged]] = {}
    for url in seed_lines(config)[0]:
        sighting = seed(url)
        if sighting is not None:
            by_file.setdefault(partition_file(registered_domain(host_of(sighting.url)), spread), []).extend(
                router.judge([sighting])
            )
    return by_file


def fingerprints(project: Project) -> Iterator[Fingerprint]:
    """What the near-copy gate must remember: pages stored whole, in the order they were fetched."""
    query = (
        "SELECT h.name, u.tail, lower(hex(v.content_sha256)), v.simhash, v.fetched_at FROM visit v"
        " JOIN url u ON u.host = v.host AND u.uid = v.uid JOIN host h ON h.id = v.host"
        " WHERE v.content_sha256 IS NOT NULL AND v.near_original IS NULL AND u.kind = 0 ORDER BY coalesce(v.fetched_at, 0), h.name, u.tail"
    )
    paths = [path for number in range(project.layout.spread) if (path := file_at(project.layout, number)).exists()]
    rows = merge(*(read_one(path, query) for path in paths), key=lambda row: row[4] or 0.0)
    for host, tail, digest, simhash, at in rows:
        url, bits = from_tail(text_out(tail), text_out(host)), None if simhash is None else simhash & 0xFFFFFFFFFFFFFFFF
        yield Fingerprint(url, digest, bits, "", at)
