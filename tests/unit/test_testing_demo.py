"""The demo web: its texts, what it shows, and that it serves what it promises."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections import deque
from pathlib import Path

import pytest

from corpus.page.simhash import distance, simhash64
from corpus.page.tree import parse
from corpus.reasons import REASONS
from corpus.testing.demo.answers import answers
from corpus.testing.demo.pages import Page, site, sites
from corpus.testing.demo.render import href, html
from corpus.testing.demo.server import DemoWeb, serving
from corpus.testing.demo.settings import demo_config
from corpus.testing.demo.shows import SHOWS
from corpus.testing.web_log import read_log
from tests.unit.alive import alive

ORIGINS = {one.key: f"http://{one.address}:8437" for one in sites()}
VERDICTS = {"exported", "dropped", "duplicate", "refused", "failed", "excluded", "gone", "taken-down", "pending", "unknown"}
UNSERVED = {"bakery:/broken/spelt.html", "bakery:/leaflet.pdf"}
"""Linked on purpose and not there."""
DENSE = {"ja", "zh"}


def _shingles(page: Page, size: int = 5) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", " ".join(page.blocks).lower())
    return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}


def _similarity(a: Page, b: Page) -> float:
    one, other = _shingles(a), _shingles(b)
    return len(one & other) / len(one | other)


def _links(body: bytes, encoding: str) -> list[tuple[str, bool]]:
    found = re.findall(r'<a (?:rel="license" )?href="([^"]*)"( rel="nofollow")?', body.decode(encoding))
    return [(target, bool(nofollow)) for target, nofollow in found]


def test_size_and_spread() -> None:
    """About sixty pages on at least seven hosts with an address each, in at least twelve languages."""
    pages = [(one.key, page.path) for one in sites() for page in one.pages]
    assert 60 <= len(pages) == len(set(pages)) <= 80
    assert len({one.address for one in sites()}) == len(sites()) >= 7
    assert len({page.lang for one in sites() for page in one.pages}) >= 12
    assert max(len(one.pages) for one in sites()) <= 16


@pytest.mark.parametrize("key", [one.key for one in sites()])
def test_prose_is_long_enough_to_judge(key: str) -> None:
    """An ordinary page has 110 to 500 words (or 300 to 1,000 characters in scripts without spaces)."""
    special = {show.target for show in SHOWS if set(show.verdicts) & {"refused", "dropped", "unknown"}}
    for page in site(key).pages:
        if f"{key}:{page.path}" in special or page.copy_of:
            continue
        text = " ".join(page.blocks)
        size, low, high = (len(text), 300, 1000) if page.lang in DENSE else (len(text.split()), 110, 500)
        assert low <= size <= high, f"{key}{page.path}: {size}"


@pytest.mark.parametrize("key", [one.key for one in sites()])
def test_every_page_decodes_and_says_how(key: str) -> None:
    """A page's bytes are in the encoding that its meta element names, and hold its title."""
    for page in site(key).pages:
        if not page.copy_of:
            body = html(page, site(key), ORIGINS)
            assert f'<meta charset="{page.encoding}">'.encode() in body
            assert page.title.split(":")[0] in body.decode(page.encoding).replace("&#x27;", "'")


def test_links_lead_somewhere() -> None:
    """Every link on the demo web is answered by it, leads to another web on purpose, or is a broken one on show."""
    table = answers(ORIGINS)
    broken = set()
    for one in sites():
        for page in one.pages:
            for target, _ in _links(html(page, one, ORIGINS), page.encoding):
                key, path = _place(target, one.key)
                if key and path not in table[key]:
                    broken.add(f"{key}:{path}")
    assert broken == UNSERVED


def _place(target: str, here: str) -> tuple[str, str]:
    if target.startswith("/"):
        return here, target
    for key, origin in ORIGINS.items():
        if target.startswith(f"{origin}/"):
            return key, target.removeprefix(origin)
    return "", target


def test_a_crawl_reaches_every_page() -> None:
    """From the index pages, links lead to every page but the one that only the sitemap names and the one behind nofollow."""
    seen = {(one.key, "/index.html") for one in sites()}
    ahead = deque(seen)
    while ahead:
        key, path = ahead.popleft()
        page = next((p for p in site(key).pages if p.path == path), None)
        if page is None:
            continue
        for target, nofollow in _links(html(page, site(key), ORIGINS), page.encoding):
            place = _place(target, key)
            if place[0] and not nofollow and place not in seen:
                seen.add(place)
                ahead.append(place)
    left = {(one.key, page.path) for one in sites() for page in one.pages} - seen
    assert left == {("fluesse", "/eisgang.html"), ("wheels", "/members/login.html")}


def test_shows_are_about_real_things() -> None:
    """Each row of the table names a page (or a broken link), verdicts of `why` and reasons of the closed table."""
    table = answers(ORIGINS)
    assert len({show.name for show in SHOWS}) == len(SHOWS)
    for show in SHOWS:
        assert set(show.verdicts) <= VERDICTS, show.name
        assert set(show.reasons) <= REASONS.keys() | {""}, show.name
        assert show.url(ORIGINS).startswith("http")
        for target in filter(None, (show.target, show.rival)):
            key, _, path = target.partition(":")
            assert key not in table or target in UNSERVED or path in table[key], target


def test_pairs_are_as_close_as_they_claim() -> None:
    """Same bytes, same text, one word apart, and a tenth apart: four kinds of copies."""
    table, wheels, bakery = answers(ORIGINS), site("wheels"), site("bakery")
    assert table["bakery"]["/print/sourdough.html"].answer == table["bakery"]["/sourdough.html"].answer
    salt, bread = bakery.page("/salt.html"), wheels.page("/bread-and-salt.html")
    assert salt.blocks == bread.blocks
    assert html(salt, bakery, ORIGINS) != html(bread, wheels, ORIGINS)
    assert 0.94 < _similarity(wheels.page("/tides.html"), wheels.page("/tides-visitors.html")) < 1
    assert 0.82 < _similarity(wheels.page("/knots.html"), wheels.page("/knots-leaflet.html")) < 0.93


def test_the_near_copy_gate_tells_the_pairs_apart() -> None:
    """At the default `near_k` of 3 the gate takes the pair that is one word apart, and no other pair of different pages."""
    marks = {}
    for one in sites():
        for page in one.pages:
            if not page.copy_of:
                tree = parse(html(page, one, ORIGINS), f"text/html; charset={page.encoding}", ORIGINS[one.key] + page.path)
                marks[f"{one.key}:{page.path}"] = simhash64(tree.visible_text)
    names = [name for name, mark in marks.items() if mark is not None]
    near = {(a, b) for at, a in enumerate(names) for b in names[at + 1 :] if distance(marks[a] or 0, marks[b] or 0) <= 4}
    assert near == {("wheels:/tides.html", "wheels:/tides-visitors.html")}
    assert distance(marks["wheels:/tides.html"] or 0, marks["wheels:/tides-visitors.html"] or 0) <= 2


def test_no_other_two_pages_are_alike() -> None:
    """Apart from the pairs on show, no two pages that a crawl keeps share a twentieth of their phrases."""
    shown = {frozenset((show.target, show.rival)) for show in SHOWS if show.rival}
    pages = [
        (f"{one.key}:{page.path}", _shingles(page))
        for one in sites()
        for page in one.pages
        if len(page.blocks) > 1 and not page.copy_of
    ]
    for at, (name, shingles) in enumerate(pages):
        for other, more in pages[at + 1 :]:
            if frozenset((name, other)) not in shown:
                assert len(shingles & more) <= 0.05 * len(shingles | more), (name, other)


def test_the_configuration_names_every_host() -> None:
    """`demo_config` is TOML with every host among its seeds, and allows no more private addresses than it needs."""
    tree = tomllib.loads(demo_config(ORIGINS))["crawl"]
    assert tree["seeds"] == [f"{origin}/index.html" for origin in ORIGINS.values()]
    assert tree["allow_private"] == ["127.10.0.0/24"]
    assert tomllib.loads(demo_config({"bakery": "http://127.0.0.1:1"}))["crawl"]["allow_private"] == ["127.0.0.1/32"]


def test_the_configuration_is_accepted(tmp_path: Path) -> None:
    """The loader and the checker of `corpus check` find nothing wrong with it."""
    from corpus.config.check import problems
    from corpus.config.load import load_config

    path = tmp_path / "corpus.toml"
    path.write_text(demo_config(ORIGINS), "utf-8")
    assert problems(load_config(str(path)), fetching=True) == []


async def _ask(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One GET over a bare socket: status, headers (lower-case names), body."""
    place, _, path = url.removeprefix("http://").partition("/")
    host, _, port = place.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET /{path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n{extra}\r\n".encode())
    raw = await reader.read()
    writer.close()
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    given = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]), given, body


@pytest.mark.parametrize("one_address", [False, True])
def test_served_in_the_loop(one_address: bool) -> None:
    """Every host answers under its own origin, on its own address or its own port; cross links name the running port."""

    async def story() -> None:
        async with DemoWeb(port=0, one_address=one_address) as web:
            assert len(set(web.origins.values())) == len(sites())
            for key, origin in web.origins.items():
                status, headers, body = await _ask(f"{origin}/index.html")
                assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
                assert site(key).title in body.decode()
            assert href("bakery:/index.html", web.origins).encode() in (await _ask(web.origins["wheels"] + "/index.html"))[2]
            assert len(web.log) == len(sites()) + 1
            assert all(contact.ended >= contact.arrived for contact in web.log)

    asyncio.run(story())


def test_the_odd_answers() -> None:
    """404, 301, 503 once, 304, X-Robots-Tag, tdmrep.json, a sitemap, no robots.txt and a header with a wrong charset."""

    async def story() -> None:
        async with DemoWeb(port=0) as web:
            o = web.origins
            assert (await _ask(o["bakery"] + "/broken/spelt.html"))[0] == 404
            status, headers, _ = await _ask(o["bakery"] + "/old-sourdough.html")
            assert (status, headers["location"]) == (301, "/sourdough.html")
            status, headers, _ = await _ask(o["bakery"] + "/salt.html")
            assert (status, headers["retry-after"]) == (503, "1")
            status, headers, _ = await _ask(o["bakery"] + "/salt.html")
            assert status == 200
            assert (await _ask(o["bakery"] + "/salt.html", If_None_Match=headers["etag"]))[0] == 304
            assert (await _ask(o["diwan"] + "/aflaj.html"))[1]["x-robots-tag"] == "noai, noimageai"
            rules = json.loads((await _ask(o["atelier"] + "/.well-known/tdmrep.json"))[2])
            assert rules[0]["tdm-reservation"] == 1
            assert b"/eisgang.html" in (await _ask(o["fluesse"] + "/sitemap.xml"))[2]
            assert o["fluesse"].encode() in (await _ask(o["fluesse"] + "/robots.txt"))[2]
            assert (await _ask(o["vcely"] + "/robots.txt"))[0] == 404
            status, headers, body = await _ask(o["sadok"] + "/vyshnia.html")
            assert headers["content-type"] == "text/html; charset=utf-8"
            assert "Як обрізати стару вишню" in body.decode("windows-1251")

    asyncio.run(story())


def test_served_by_a_process(tmp_path: Path) -> None:
    """`serving` starts a server, writes the contact log as it goes, and leaves no process behind."""
    log = tmp_path / "contacts.jsonl"
    with serving(port=0, log=log) as served:
        assert asyncio.run(_ask(served.origins["michi"] + "/cha.html"))[0] == 200
        assert alive(served.pid)
    assert not alive(served.pid)
    assert [contact.target for contact in read_log(log)] == ["/cha.html"]


def test_a_taken_port_is_said() -> None:
    """A port that was asked for by number and is taken is an error with exit code 2, not another port."""

    async def story() -> int:
        async with DemoWeb(port=0) as web:
            argv = [sys.executable, "-m", "corpus.testing.demo.server", "--port", str(web.port)]
            child = await asyncio.create_subprocess_exec(*argv, stderr=subprocess.PIPE)
            _, err = await asyncio.wait_for(child.communicate(), 20)
            assert str(web.port).encode() in err
            return child.returncode or 0

    assert asyncio.run(story()) == 2


_OWNER = """
import sys, time
from corpus.testing.demo.server import serving
with serving(port=0) as served:
    print(served.pid, flush=True)
    time.sleep(60)
"""


def test_the_server_dies_with_its_owner() -> None:
    """A server whose owner was killed ends by itself within two seconds."""
    with subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 2
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not alive(pid)
