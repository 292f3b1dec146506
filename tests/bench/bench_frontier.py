"""What a frontier costs when it is large: take and acknowledgement, look-ups of seen URLs, memory of a fetch process' state.

    python -m tests.bench.bench_frontier lines --urls 100000 5000000 50000000 --owner
    python -m tests.bench.bench_frontier seen --keys 1000000
    python -m tests.bench.bench_frontier memory --hosts 100000 --urls 5000000
    python -m tests.bench.bench_frontier gate --pages 100000 1000000 10000000

Prints one JSON object a line. CPU seconds of this process; files lie in a temporary folder (`--folder` names another).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from corpus.crawl.authority import AuthorityBook
from corpus.crawl.discover import Router
from corpus.crawl.gate import COMPARED_MAX, Fingerprint, NearIndex
from corpus.crawl.hosts import Hosts
from corpus.crawl.ports import Ack, Due, HostRow, Judged, QueuedUrl, Settled
from corpus.crawl.seen import RecentSeen, SeenFilter
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.traps import UrlRules
from corpus.model import CaptureRef, Sighting, UrlState
from corpus.optout.settings import OptoutSettings
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_rows import uid_of
from corpus.store.frontier_sqlite import SqliteFrontier
from corpus.testing.clock import VirtualClock
from corpus.url.partition import PARTITION_FILES, partition_file
from corpus.url.scope import UrlScope

BATCH = 5_000


def rss_bytes() -> int:
    """Resident memory of this process now."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize()


def host_of_number(n: int) -> str:
    return f"site-{n:06d}.test"


def _judged(host: int, n: int, depth: int = 3) -> Judged:
    name = host_of_number(host)
    url = f"https://{name}/section-{n % 17}/article-{n:07d}.html"
    return Judged(Sighting(url, url, depth), name, name)


def open_files(folder: Path, *, filtered: bool = True) -> dict[int, SqliteFrontier]:
    """All partition files of one process, with its recent-set and filters."""
    recent = RecentSeen()
    files = {}
    for number in range(PARTITION_FILES):
        path = folder / f"p{number:02d}.sqlite"
        files[number] = SqliteFrontier(path, recent=recent, seen=OwnerFilter(path, "exact", 0.001) if filtered else None)
        files[number].claim("bench")
    return files


def fill(files: dict[int, SqliteFrontier], hosts: int, urls: int) -> None:
    """`urls` URLs over `hosts` hosts, in rounds as a crawl would find them."""
    each = max(urls // hosts, 1)
    lines: dict[int, list[Judged]] = {number: [] for number in files}
    for host in range(hosts):
        number = partition_file(host_of_number(host), PARTITION_FILES)
        lines[number] += [_judged(host, n) for n in range(each)]
        if len(lines[number]) >= BATCH:
            files[number].commit([Ack(own=tuple(lines[number]))])
            lines[number] = []
    for number, rest in lines.items():
        if rest:
            files[number].commit([Ack(own=tuple(rest))])


def bulk(files: dict[int, SqliteFrontier], hosts: int, urls: int) -> None:
    """What `fill` makes, row for row, by plain SQL: each file's first host by the real way, and all others after its likeness. The
    files must be opened anew, because their owners know nothing of it."""
    each = max(urls // hosts, 1)
    mine: dict[int, list[int]] = {number: [] for number in files}
    for host in range(hosts):
        mine[partition_file(host_of_number(host), PARTITION_FILES)].append(host)
    for number, store in files.items():
        if not mine[number]:
            continue
        first, *others = mine[number]
        name, con = host_of_number(first), store._con
        store.commit([Ack(own=tuple(_judged(first, n) for n in range(each)))])
        tails = [_judged(first, n).sighting.url.removeprefix(f"https://{name}") for n in range(each)]
        url, host_row, domain_row = (
            con.execute(f"SELECT * FROM {table} LIMIT 1").fetchone() for table in ("url", "host", "domain")
        )
        at, (host_at, uid_at) = url.index(next(t for t in tails if t in url)), (0, 1)
        assert (url[host_at], host_row[:3], domain_row[:2]) == (1, (1, name, 1), (1, name)), "the tables have changed"
        asked = {len(row): ", ".join("?" * len(row)) for row in (url, host_row, domain_row)}
        con.execute("BEGIN")
        for n, other in enumerate(others, 2):
            if n % 1_000 == 0:  # a log that is as long as the file would be read again and again
                con.execute("COMMIT")
                con.execute("BEGIN")
            name = host_of_number(other)
            con.execute(f"INSERT INTO domain VALUES ({asked[len(domain_row)]})", (n, name, *domain_row[2:]))
            con.execute(f"INSERT INTO host VALUES ({asked[len(host_row)]})", (n, name, n, *host_row[3:]))
            rows = sorted((uid_of(f"https://{name}{tail}"), tail) for tail in tails)
            con.executemany(
                f"INSERT INTO url VALUES ({asked[len(url)]})",
                [(n, uid, *url[uid_at + 1 : at], tail, *url[at + 1 :]) for uid, tail in rows],
            )
        con.execute("UPDATE tally SET n = n * ?", (len(mine[number]),))
        con.execute("COMMIT")


def take_and_ack(
    files: dict[int, SqliteFrontier], hosts: int, rounds: int, each: int, group: int = 64, *, line: int = 1, seed: int = 3
) -> float:
    """CPU microseconds for taking a page and acknowledging it with twenty links, three of them new. In a round every page is of another
    host. `line`: what is taken out of a host's line at once; so many rounds visit the same hosts. `seed`: other hosts, other links."""
    rng, began, done = random.Random(seed), time.process_time(), 0
    heads: dict[int, list[QueuedUrl]] = {}
    for turn in range(rounds):
        acks: dict[int, list[Ack]] = {}
        if turn % line == 0:
            heads = {host: [] for host in rng.sample(range(hosts), min(group, hosts))}
        for host in heads:
            name, number = host_of_number(host), partition_file(host_of_number(host), PARTITION_FILES)
            if turn % line == 0:
                heads[host] = files[number].heads(name, line, again=False)
            if not heads[host]:
                continue
            known = [_judged(host, rng.randrange(each)) for _ in range(17)]
            new = [_judged(host, each + 10_000 * seed + 3 * turn + n) for n in range(3)]
            ref = CaptureRef("warc/s00-000001-000001.warc.gz", done, 900)
            page = Settled(
                heads[host].pop(0).url,
                UrlState.FETCHED,
                attempts=1,
                http_status=200,
                fetched_at=1.8e9,
                capture=ref,
                segment_end=done + 1,
            )
            row = HostRow(name, name, state="active", pace_s=2.0, due=Due(1.8e9, 2.0), pages=1)
            acks.setdefault(number, []).append(Ack(row, (page,), (), (*known, *new)))
            done += 1
        for number, batch in acks.items():
            files[number].commit(batch)
    return (time.process_time() - began) / max(done, 1) * 1e6


def lines(
    sizes: list[int], folder: Path, rounds: int = 40, *, owner: bool = False, plain: int | None = None
) -> Iterator[dict[str, object]]:
    """Take and acknowledgement at each size; `ratio` is against the first. `owner`: also the memory of a fetch process over these
    files, with all their hosts in line. From `plain` URLs on files are filled by `bulk`. Those of a size are gone before the next."""
    first = 0.0
    for size in sizes:
        place = folder / f"lines-{size}"
        place.mkdir()
        hosts = max(size // 50, 20)
        files, began, wall = open_files(place), time.process_time(), time.monotonic()
        by_hand = plain is not None and size >= plain
        (bulk if by_hand else fill)(files, hosts, size)
        filled_s, wall_s = time.process_time() - began, time.monotonic() - wall
        if by_hand:
            for store in files.values():
                store.close(clean=False)
            files = open_files(place)
        cost = take_and_ack(files, hosts, rounds, size // hosts)
        first = first or cost
        on_disk = sum(path.stat().st_size for path in place.iterdir())
        for store in files.values():
            store.close(clean=owner)
        yield {
            "bench": "take+ack", "urls": size, "hosts": hosts, "us_per_page": round(cost, 1), "ratio": round(cost / first, 2),
            "fill_us_per_url": round(filled_s / size * 1e6, 1), "fill": "bulk" if by_hand else "commits", "fill_wall_s": round(wall_s), "bytes_per_url": round(on_disk / size, 1),
            **(_owner(place) if owner else {}),
        }  # fmt: skip
        shutil.rmtree(place)


def seen(keys: int, folder: Path) -> dict[str, object]:
    """A filter of so many keys: time per insertion and look-up, bytes per key, errors; and what the table costs instead."""
    known, new = [uid_of(f"k{n}") for n in range(keys)], [uid_of(f"n{n}") for n in range(min(keys, 200_000))]
    filter_ = SeenFilter(0.001, 16_384, growth=4)
    began = time.process_time()
    filter_.update(known)
    added = time.process_time() - began
    began = time.process_time()
    wrong = sum(uid in filter_ for uid in new)
    asked = time.process_time() - began
    path = folder / "seen.sqlite"
    store = SqliteFrontier(path)
    store.claim("bench")
    store._con.execute("BEGIN")
    rows = [(1, uid, 1, 60, 3, 0, 0, 0, 0, 500, 0, "/x") for uid in sorted(known)]
    store._con.executemany(
        "INSERT INTO url (host, uid, state, front, depth, hops, kind, attempts, reason, claim, via, tail) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        rows,
    )
    store._con.execute("INSERT INTO host (id, name, domain) VALUES (1, 'a.test', 1)")
    store._con.execute("COMMIT")
    began = time.process_time()
    for at in range(0, 50_000, 250):
        store.peek([("a.test", uid) for uid in new[at : at + 250]])
    table = time.process_time() - began
    store.close(clean=False)
    return {
        "bench": "seen", "keys": keys, "add_us": round(added / keys * 1e6, 2), "ask_us": round(asked / len(new) * 1e6, 2),
        "table_ask_us": round(table / 50_000 * 1e6, 2), "bits_per_key": round(filter_.nbytes * 8 / keys, 1),
        "bytes": filter_.nbytes, "errors": round(wrong / len(new), 6), "bound": filter_.error_bound,
    }  # fmt: skip


def memory(hosts: int, urls: int, folder: Path) -> dict[str, object]:
    """Resident memory of a process that holds the state of a fetch loop over so many known hosts and URLs."""
    files = open_files(folder, filtered=False)
    fill(files, hosts, urls)
    for store in files.values():
        store.close(clean=True)
    return {"bench": "memory", "hosts": hosts, "urls": urls, **_owner(folder)}


def _owner(folder: Path) -> dict[str, object]:
    """`loaded`, in a process that did not fill the files."""
    code = f"from tests.bench.bench_frontier import loaded; loaded({str(folder)!r})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(json.loads(told.stdout))


def loaded(folder: str) -> None:
    """In a fresh process: load all hosts as a fetch process does, acknowledge some pages, say what is resident."""
    import corpus.app.fetch_process  # noqa: F401  (what such a process imports)

    bare = rss_bytes()
    files = open_files(Path(folder))
    filters = sum(store._filter.nbytes for store in files.values() if store._filter is not None)
    clock, settings = VirtualClock(), CrawlSettings()

    async def in_store(call, *arguments):  # type: ignore[no-untyped-def]
        return call(*arguments)

    book = AuthorityBook(OptoutSettings(), settings.robots_token, lambda digest: b"")
    router = Router(UrlRules(settings, UrlScope(any=True)), PARTITION_FILES)
    held = Hosts(settings, files, book, clock, in_store, router)
    before = rss_bytes()
    asyncio.run(held.load(fresh=True, revisit=False))
    hosts = len(held.schedule._hosts.number)
    with_hosts = rss_bytes()
    take_and_ack(files, hosts, 100, 50)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    facts = {
        "imports_mb": bare, "files_filters_mb": before - bare, "filters_mb": filters, "hosts_mb": with_hosts - before, "rss_mb": rss_bytes(), "peak_mb": peak,
    }  # fmt: skip
    print(
        json.dumps(
            {name: round(value / 2**20, 1) for name, value in facts.items()}
            | {"bytes_per_host": (with_hosts - before) // max(hosts, 1)}
        )
    )


def _fingerprint(n: int, simhash: int, *, alias: bool = False) -> Fingerprint:
    """A page with an address of 57 characters, as long as they are on average."""
    url = f"https://www.site-{n % 1000:03d}.test/section/{n:09d}/a-page-title.html"
    return Fingerprint(url, hashlib.sha256(f"{n} {alias}".encode()).hexdigest(), simhash, url, 1.8e9 + n, alias)


def _asked(index: NearIndex, pages: list[Fingerprint]) -> tuple[float, float]:
    """Microseconds for each, and the share that was found."""
    began = time.process_time()
    answers = index.ask(pages)
    return (time.process_time() - began) / len(pages) * 1e6, sum(copy is not None for copy in answers) / len(pages)


def gate(sizes: list[int]) -> Iterator[dict[str, object]]:
    """The near-copy index at each size: the cost of adding and looking up, resident bytes per fingerprint; a line that carries the
    last two on to eight billion."""
    told: list[tuple[int, float, float]] = []
    for size in sizes:
        rng = np.random.default_rng(1)
        prints = rng.integers(0, 2**64, size=size, dtype=np.uint64)
        before, index, began = rss_bytes(), NearIndex(3), time.process_time()
        for at in range(0, size, BATCH):
            index.ask([_fingerprint(at + n, simhash) for n, simhash in enumerate(prints[at : at + BATCH].tolist())])
        added = (time.process_time() - began) / size * 1e6
        held = rss_bytes() - before
        copies = [
            _fingerprint(n, simhash ^ (1 << n % 64), alias=True) for n, simhash in enumerate(prints[-20_000:].tolist(), size)
        ]
        strangers = rng.integers(0, 2**64, size=20_000, dtype=np.uint64).tolist()
        others = [_fingerprint(2 * size + n, simhash, alias=True) for n, simhash in enumerate(strangers)]
        (copy_us, found), (new_us, mistaken) = _asked(index, copies), _asked(index, others)
        told.append((size, new_us, held / size))
        yield {
            "bench": "gate", "fingerprints": size, "add_us": round(added, 1), "ask_copy_us": round(copy_us, 1),
            "ask_new_us": round(new_us, 1), "bytes_per_fingerprint": round(held / size, 1), "found": found, "mistaken": mistaken,
        }  # fmt: skip
        del index
    if len(told) > 1:
        (n1, c1, b1), (n2, c2, b2) = told[-2:]
        # candidates per block grow with the index until a list is full; past that the cost stays, and copies are missed
        full = COMPARED_MAX * 2**16
        each = (b2 * n2 - b1 * n1) / (n2 - n1)  # what one more page costs, without what full tables cost once
        yield {
            "bench": "gate", "fingerprints": 8_000_000_000, "extrapolated": True, "ask_new_us": round(c2 + (full - n2) * (c2 - c1) / (n2 - n1)),
            "bytes_per_fingerprint": round(each, 1), "bytes": round(each * 8e9), "compared": round(full / 8e9, 4),
        }  # fmt: skip


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("lines", "seen", "memory", "gate"))
    parser.add_argument("--urls", type=int, nargs="+", default=[100_000])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--pages", type=int, nargs="+", default=[100_000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument(
        "--bulk", type=int, help="lines: fill by plain SQL from so many URLs on (a third of the time, the same rows)"
    )
    parser.add_argument("--owner", action="store_true", help="lines: also the memory of a fetch process at each size")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        match chosen.what:
            case "lines":
                found: Iterator[dict[str, object]] = lines(chosen.urls, Path(name), owner=chosen.owner, plain=chosen.bulk)
            case "seen":
                found = iter([seen(chosen.keys, Path(name))])
            case "memory":
                found = iter([memory(chosen.hosts, chosen.urls[-1], Path(name))])
            case _:
                found = gate(chosen.pages)
        for row in found:
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
