"""What processing finds of hosts goes back to the crawl: under one budget, good hosts get their pages first."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from corpus.app.host_quality import QualityFeed, quality_path, write_host_quality
from corpus.app.run import run_all
from corpus.app.views import Views
from tests.optout_web import Web, project, serving
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import Web as SimPages
from tests.sim.crawl_webs import page

GOOD = tuple(f"127.31.1.{n}" for n in range(1, 8))
SPAM = tuple(f"127.31.2.{n}" for n in range(1, 8))
PAGES, SAMPLE, BUDGET = 12, 8, 600


def _web() -> Web:
    """Seven hosts of prose and seven that say next to nothing."""
    web = Web(GOOD + SPAM)
    for n, host in enumerate(web.hosts):
        paths = [f"/p{k}" for k in range(PAGES)]
        web.index(*paths, host=host)
        for k, path in enumerate(paths):
            if host in GOOD:
                web.page(path, 1000 * n + k, host=host)
            else:
                web.put(path, f"<!DOCTYPE html><title>x</title><body><p>buy {n} {k} now now now</p></body>", host=host)
    return web


def test_good_hosts_get_three_times_the_pages_of_spam_hosts(tmp_path: Path) -> None:
    """A first crawl samples all hosts alike; its documents are measured and decided, and the next crawl's process reads what came
    of it. Under one budget, hosts whose pages were kept then get at least three times the pages of the others, who still
    get something. (That part in virtual time: on a busy machine sockets would let everybody have a turn.)"""
    web = _web()
    with serving(web):
        run_all(project(tmp_path, web, more=f'max_pages_per_host = {SAMPLE}\nnear_copies = "store"\nslots = 8'), quiet=True)
        made = project(tmp_path, web)
        run_all(made, quiet=True, stages=("crawl",))
    with Views(made) as views:
        told = {row["host"]: row["quality"] for row in views.query("SELECT host, quality FROM hosts").to_pylist()}
    assert min(told[host] for host in GOOD) > 0.8
    assert max(told[host] for host in SPAM) < 0.5
    asked = _crawled(QualityFeed(made.layout))
    good, spam = (sum(asked[host] for host in hosts) for hosts in (GOOD, SPAM))
    assert good + spam >= BUDGET - len(told)
    assert good >= 3 * spam > 0
    blind = _crawled(dict)
    assert sum(blind[host] for host in GOOD) < 2 * sum(blind[host] for host in SPAM), "without the feedback nobody is better"


def _crawled(qualities: Callable[[], Mapping[str, float]]) -> Counter[str]:
    """Page contacts per host of a crawl of the same hosts, a hundred pages each, with few slots and one budget."""
    paths = [f"/p{n}" for n in range(100)]
    plan = {"/": page(*paths), **{path: page(text=path) for path in paths}}
    hosts = sorted(GOOD + SPAM, key=lambda host: host[::-1])
    crawl = Crawl(
        SimPages(dict.fromkeys(hosts, plan), addresses={host: host for host in hosts}),
        settings(slots=1, max_pages=BUDGET, delay=0.05, delay_start=0.05),
    )
    crawl.qualities = qualities
    crawl.run()
    return Counter(contact.host for contact in crawl.log if contact.target.startswith("/p"))


def test_a_running_crawl_hears_of_new_measurements(tmp_path: Path) -> None:
    """The feed speaks when the file is another than before, and is silent otherwise; nothing is no error."""
    web = Web(("127.31.3.1",))
    web.index("/a")
    web.page("/a", 7)
    with serving(web):
        made = project(tmp_path, web)
        feed = QualityFeed(made.layout)
        assert feed() == {}
        run_all(made, quiet=True)
    assert set(feed()) == {"127.31.3.1"}
    assert feed() == {}
    assert write_host_quality(made) == 1
    rows = [json.loads(line) for line in quality_path(made.layout).read_text().splitlines()]
    assert rows[0]["documents"] == 2
    path = quality_path(made.layout)
    path.write_text(json.dumps({"host": "x.test", "documents": 50, "kept": 0, "uniques": 0, "wanted": 0}) + "\n")
    os.utime(path, ns=(1, 1))
    assert feed()["x.test"] < 0.2
