"""A finished corpus of one site that attacks whoever looks at it: its titles, texts and addresses are markup."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corpus.app.project import Project, open_project
from corpus.app.run import run_all
from corpus.config.load import load_config
from corpus.testing.demo.answers import DemoSite, Ready
from corpus.testing.web_answer import Answer
from corpus.testing.web_process import ServerProcess

ADDRESS = "127.78.0.9"
TITLE = "<script>window.owned = 1</script>"
ATTACK = '"><img src=x onerror="window.owned=1"><script>window.owned=1</script>'
_PROSE = (
    "The mill stands at the bend of the river, and every spring the water comes up to the second step of the door. "
    "In the year of the great flood the miller carried the flour up under the roof and waited there with his family for nine days. "
    "When the water fell, they found a trout in the oven, which is still told in the village, and a boat on the apple tree. "
    "Since then there is a mark on the wall, and the children measure themselves against it when school begins in autumn. "
)


@dataclass(frozen=True, slots=True)
class HostileCorpus:
    """`titled`: the page whose title is a script; `refused`: a page that robots.txt refuses."""

    project: Project
    config: Path
    titled: str
    refused: str


def make_hostile(folder: Path) -> HostileCorpus:
    """Crawl, process and export it, about four seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    with ServerProcess(DemoSite({ADDRESS: _pages()})) as server:
        origin = f"http://{ADDRESS}:{server.port}"
        config = folder / "corpus.toml"
        config.write_text(
            f'[corpus]\nname = "hostile"\n[crawl]\nseeds = ["{origin}/"]\ncontact = "a@example.org"\n'
            f'delay = "20ms"\ndelay_start = "20ms"\nlatency_factor = 0.1\nallow_private = ["{ADDRESS}/32"]\n',
            "utf-8",
        )
        run_all(open_project(load_config(config)), quiet=True)
    return HostileCorpus(
        open_project(load_config(config), create=False), config, f"{origin}/title.html", f"{origin}/private/x.html"
    )


def _pages() -> dict[str, Ready]:
    paths = [
        "/title.html",
        "/private/x.html",
        "/private/y.html",
        "/gone.html",
        "/q?a=%22%3E%3Cscript%3Ewindow.owned%3D1%3C/script%3E",
        *(f"/p{n}.html" for n in range(12)),
    ]
    links = "".join(f'<a href="{path}">{path}</a>' for path in paths)
    pages = {
        "/": _page("Start", f"<p>{_PROSE}</p>{links}"),
        "/title.html": _page(_text(TITLE), f"<p>{_text(ATTACK)} {_PROSE}</p>"),
    }
    for n, path in enumerate(path for path in paths if path.startswith(("/p", "/q")) and "private" not in path):
        pages[path] = _page(
            f"Page {n}", f"<p>{_PROSE[n:]} Number {n} of the letters, number {n * 7} of the year. {_text(ATTACK)}</p>"
        )
    robots = Answer(
        200, (("Content-Type", "text/plain"),), b"User-agent: *\nDisallow: /private/ # <script>window.owned=1</script>\n"
    )
    return {**pages, "/robots.txt": Ready(robots)}


def _page(title: str, body: str) -> Ready:
    html = f'<html lang="en"><head><title>{title}</title></head><body><main>{body}</main></body></html>'
    return Ready(Answer(200, (("Content-Type", "text/html; charset=utf-8"),), html.encode()))


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
