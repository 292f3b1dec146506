"""A page of the demo web → the bytes of its HTML: navigation, article, margin and footer, like a small real site.

Pure: the same page, site and origins give the same bytes. The furniture around the article is there so that text
extraction has something to leave out.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from corpus.testing.demo.pages import Link, Page, Site

RIGHT_TO_LEFT = frozenset({"ar", "fa", "he"})
LICENCE = "https://creativecommons.org/publicdomain/zero/1.0/"
_STYLE = (
    "body{max-width:44rem;margin:auto;font:1.1rem/1.5 serif}nav li{display:inline;margin-right:1em}aside,footer{font-size:.9rem}"
)


def href(target: str, origins: Mapping[str, str]) -> str:
    """The href of a link target: `KEY:/path` becomes a URL on that host, anything else stands as it is."""
    key, colon, path = target.partition(":/")
    return f"{origins[key]}/{path}" if colon and key in origins else target


def html(page: Page, site: Site, origins: Mapping[str, str]) -> bytes:
    """The HTML of a page in its own encoding, `<meta charset>` included. `origins` maps host keys to `http://host:port`.

    A page without any text is a bare picture.
    """
    if not page.blocks:
        return _picture(page).encode(page.encoding)
    direction = ' dir="rtl"' if page.lang in RIGHT_TO_LEFT else ""
    metas = "".join(f'\n<meta name="{escape(name)}" content="{escape(content)}">' for name, content in page.metas)
    text = f"""<!DOCTYPE html>
<html lang="{page.lang}"{direction}>
<head>
<meta charset="{page.encoding}">
<title>{escape(page.title)} | {escape(site.title)}</title>
<meta name="author" content="{escape(site.author)}">
<meta name="viewport" content="width=device-width">
<meta property="article:published_time" content="{site.published}">{metas}
<style>{_STYLE}</style>
</head>
<body>
<header><p class="site-title"><a href="/index.html">{escape(site.title)}</a></p>
<nav>
{_list(_neighbours(page, site))}
</nav></header>
<main>
<article>
<h1>{escape(page.title)}</h1>
{_article(page.blocks)}
</article>
{_aside(page, site, origins)}</main>
<footer>
<p>{escape(site.about)}</p>
<p><a rel="license" href="{LICENCE}">CC0</a> · {escape(site.name)} · <time datetime="{site.published}">{site.published}</time></p>
</footer>
</body>
</html>
"""
    # A neighbour's title may be in a script that this page's encoding lacks.
    return text.encode(page.encoding, "xmlcharrefreplace")


def _picture(page: Page) -> str:
    return f'<!DOCTYPE html>\n<html lang="{page.lang}"><meta charset="{page.encoding}"><title>{escape(page.title)}</title><img src="/photo.jpg" alt=""></html>\n'


def _neighbours(page: Page, site: Site) -> list[Link]:
    """The home page and the two pages that follow in the site's order: a crawl has to walk, it is not handed everything."""
    shown = [one for one in site.pages if not one.hidden]
    at = next((i for i, one in enumerate(shown) if one.path == (page.stands_for or page.path)), 0)
    nearby = [shown[0], *(shown[(at + step) % len(shown)] for step in (1, 2))]
    return [Link(one.path, one.title) for one in dict.fromkeys(nearby) if one.path != page.path]


def _article(blocks: tuple[str, ...]) -> str:
    out = []
    for block in blocks:
        if block.startswith("## "):
            heading, _, rest = block.partition("\n")
            out.append(f"<h2>{escape(heading[3:])}</h2>" + (f"\n<p>{escape(rest)}</p>" if rest else ""))
        elif block.startswith("- "):
            out.append("<ul>\n" + "\n".join(f"<li>{escape(line[2:])}</li>" for line in block.splitlines()) + "\n</ul>")
        else:
            out.append(f"<p>{escape(block, quote=False)}</p>")
    return "\n".join(out)


def _aside(page: Page, site: Site, origins: Mapping[str, str]) -> str:
    links = list(page.links)
    if page.path == "/index.html":
        links = [Link(one.path, one.title) for one in site.pages if not one.hidden and one is not page] + links
    if not links:
        return ""
    resolved = [Link(href(link.target, origins), link.text, link.nofollow) for link in links]
    return f"<aside>\n<h2>{escape(site.more)}</h2>\n{_list(resolved)}\n</aside>\n"


def _list(links: list[Link]) -> str:
    rows = []
    for link in links:
        rel = ' rel="nofollow"' if link.nofollow else ""
        rows.append(f'<li><a href="{escape(link.target)}"{rel}>{escape(link.text)}</a></li>')
    return "<ul>\n" + "\n".join(rows) + "\n</ul>"
