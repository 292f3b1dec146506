"""The status page in a real browser: what a person clicks, types and sees, and that nothing a site wrote ever runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from corpus.app.status_server import StatusServer
from tests.browser import Browser
from tests.hostile_corpus import ADDRESS, TITLE, HostileCorpus, make_hostile

pytestmark = pytest.mark.needs("chromium")

LINK = "[...document.querySelectorAll('main a')].find(a => a.textContent.includes({text}))"
PAGES = ("/", "/hosts", f"/host?name={ADDRESS}", "/reason?code=robots", "/urls?reason=robots", "/refusals", "/errors", "/samples")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> HostileCorpus:
    return make_hostile(tmp_path_factory.mktemp("hostile") / "corpus")


def in_browser(corpus: HostileCorpus, folder: Path, scene: Callable[[Browser, str], Awaitable[None]]) -> None:
    """Serve the corpus, play the scene, and see that neither the console nor the page's policy had anything to say."""

    async def play() -> None:
        server = StatusServer(corpus.project, 0)
        await server.start()
        try:
            async with Browser(folder / "profile") as page:
                await scene(page, f"http://127.0.0.1:{server.port}")
                assert await page.value("typeof window.owned") == "undefined"
                assert page.troubles == []
        finally:
            await server.close()

    asyncio.run(play())


def link(text: str) -> str:
    return LINK.format(text=json.dumps(text))


def test_from_the_funnel_to_the_line_of_robots_txt(corpus: HostileCorpus, tmp_path: Path) -> None:
    """Funnel → reason → host → URL → why, by clicking alone: it ends at the raw line that refused the page."""

    async def scene(page: Browser, origin: str) -> None:
        await page.open(f"{origin}/")
        assert "Every step adds up" in await page.text()
        await page.click("[...document.querySelectorAll('tr.loss a')].find(a => a.textContent === 'robots')")
        assert "robots.txt refuses it".capitalize() in await page.text()
        await page.click(link(ADDRESS))
        await page.click(link("/private/x.html"))
        shown = await page.text()
        assert "Disallow: /private/" in shown
        assert "refused" in shown

    in_browser(corpus, tmp_path, scene)


def test_a_page_titled_script_is_text(corpus: HostileCorpus, tmp_path: Path) -> None:
    """Titles, texts, addresses and robots lines that are markup are shown as what they are, everywhere; none of it runs."""

    async def scene(page: Browser, origin: str) -> None:
        await page.open(f"{origin}/why?url={corpus.titled}")
        assert TITLE in await page.text()
        for path in (
            *PAGES,
            "/urls?q=%3Cscript",
            "/hosts?q=%22%3E%3Cscript%3Ewindow.owned%3D1%3C/script%3E",
            "/host?name=%3Cscript%3E",
        ):
            if "name=%3C" not in path:
                await page.open(origin + path)
                assert await page.value("document.querySelectorAll('main script, main img').length") == 0, path

    in_browser(corpus, tmp_path, scene)


def test_it_works_from_the_keyboard(corpus: HostileCorpus, tmp_path: Path) -> None:
    """Tab reaches the skip link first and it leads to the page; / searches; Enter submits; every control has a name."""

    async def scene(page: Browser, origin: str) -> None:
        await page.open(f"{origin}/hosts")
        await page.press("Tab")
        assert await page.value("document.activeElement.className") == "skip"
        await page.press("Enter")
        assert await page.value("location.hash") == "#main"
        await page.press("/")
        assert await page.value("document.activeElement.type") == "search"
        await page.type("127.78")
        await page.press("Enter", loads=True)
        assert await page.value("document.querySelectorAll('main tbody tr').length") == 1
        await page.press("Tab")
        seen = set()
        for _ in range(20):
            seen.add(await page.value("document.activeElement.textContent"))
            await page.press("Tab")
        assert ADDRESS in seen
        unnamed = "[...document.querySelectorAll('a, button, input:not([type=hidden]), select')].filter(e => !(e.textContent.trim() || e.labels?.length))"
        assert await page.value(f"{unnamed}.length") == 0

    in_browser(corpus, tmp_path, scene)


def test_a_narrow_screen_and_a_dark_one(corpus: HostileCorpus, tmp_path: Path) -> None:
    """At 360 pixels nothing but wide tables scrolls sideways, and those in their own box; a dark screen is dark."""

    async def scene(page: Browser, origin: str) -> None:
        await page.screen(360, 740)
        for path in (*PAGES, f"/why?url={corpus.titled}"):
            await page.open(origin + path)
            assert await page.value("document.documentElement.scrollWidth") <= 360, path
        await page.screen(1200, 900, dark=True)
        await page.open(f"{origin}/")
        background = await page.value("getComputedStyle(document.body).backgroundColor")
        assert sum(int(part) for part in background[4:-1].split(",")) < 150

    in_browser(corpus, tmp_path, scene)


def test_it_keeps_itself_up_to_date(corpus: HostileCorpus, tmp_path: Path) -> None:
    """New numbers appear without a reload; the button stops that; the focus stays where it was."""
    live = next((corpus.project.layout.runs).glob("*/live.json"))
    before = json.loads(live.read_text("ascii"))

    async def scene(page: Browser, origin: str) -> None:
        await page.open(f"{origin}/")
        await page.value("window.stays = 1; document.querySelector('#live a').focus()")
        address = await page.value("document.activeElement.getAttribute('href')")
        live.write_text(json.dumps({**before, "pages": 987_654}), "ascii")
        await page.until("document.body.innerText.includes('987,654')")
        assert await page.value("window.stays") == 1
        assert await page.value("document.activeElement.getAttribute('href')") == address
        await page.click("document.getElementById('updates')", loads=False)
        live.write_text(json.dumps({**before, "pages": 123_321}), "ascii")
        await asyncio.sleep(3)
        assert "123,321" not in await page.text()

    try:
        in_browser(corpus, tmp_path, scene)
    finally:
        live.write_text(json.dumps(before), "ascii")
