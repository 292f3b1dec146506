"""The trap web: decent hosts with many real pages, each beside a machine that makes URLs without end.

    web = TrapWeb(seed=3, pages=300)
    web.real(contact), web.trapped(contact)      # of each line of a server's log

One host each with a calendar, a faceted shop, session ids in every link, a path that grows for ever, a mirror that
answers every path with the same apology, one article under slugs without number, and one with all of them. Every real
page leads into its host's traps, and the real pages have prose of their own, so a crawl can be judged by what it found
and by what it wasted.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable
from html import escape

from corpus.testing.web import SimWeb
from corpus.testing.web_answer import Answer, Ask
from corpus.testing.web_hosts import Page, SimHost, address_of
from corpus.testing.web_log import Contact
from corpus.testing.web_pages import HTML
from corpus.testing.web_text import paragraphs

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
COLOURS, SIZES, SORTS = ("red", "blue", "green", "black", "white"), ("s", "m", "l", "xl"), ("price", "name", "age")
BRANDS, ITEMS, SHOWN = ("alder", "birch", "cedar"), 60, 12
SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "se", "to", "vi", "zu")

Trap = Callable[["TrapWeb", SimHost, Ask], Answer]


def _word(*parts: object) -> str:
    """A made-up word, the same for the same parts."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return "".join(SYLLABLES[byte % len(SYLLABLES)] for byte in digest[:4])


def _calendar(web: TrapWeb, host: SimHost, ask: Ask) -> Answer:
    """`/calendar/2026/11/3?view=week`: every month has a next one, every day a page, every page three views."""
    parts = [int(part) for part in ask.path.split("/")[2:] if part.isascii() and part.isdigit() and len(part) < 6]
    year, month = parts[:2] if len(parts) > 1 else (2026, 11)
    month = min(max(month, 1), 12)
    after, before = (year + month // 12, month % 12 + 1), (year - (month == 1), (month - 2) % 12 + 1)
    links = [f"/calendar/{y}/{m}" for y, m in (after, before)]
    links += [f"/calendar/{year}/{month}/{day}" for day in range(1, 29)] + [
        f"{ask.path}?view={view}" for view in ("day", "week", "list")
    ]
    days = " ".join(str(day) for day in range(1, 29))
    texts = [
        f"{MONTHS[month - 1]} {year}",
        f"Monday Tuesday Wednesday Thursday Friday Saturday Sunday {days}",
        web.standing(host, "calendar"),
    ]
    return web.shown(host, ask, texts, links)


def _shop(web: TrapWeb, host: SimHost, ask: Ask) -> Answer:
    """`/shop?brand=…&colour=…&page=…&size=…&sort=…`: any set of filters, in any state, over the same items."""
    chosen = dict(part.partition("=")[::2] for part in ask.query.split("&") if "=" in part)
    rng = random.Random(f"{web.seed}/{host.name}/items")
    items = [(n, rng.choice(COLOURS), rng.choice(SIZES), rng.choice(BRANDS)) for n in range(1, ITEMS + 1)]
    asked = (chosen.get("colour"), chosen.get("size"), chosen.get("brand"))
    kept = [item for item in items if all(want in (None, have) for want, have in zip(asked, item[1:], strict=True))]
    if sort := chosen.get("sort"):
        kept.sort(key=lambda item: _word(sort, item[0]))
    texts = [web.blurb(host, n) for n, *_ in kept[:SHOWN]] or [
        "Nothing fits all of these filters at once; take one of them away."
    ]
    links = [f"/item/{n:04d}" for n, *_ in kept[:SHOWN]]
    for name, values in (("colour", COLOURS), ("size", SIZES), ("brand", BRANDS), ("sort", SORTS), ("page", ("2", "3"))):
        links += ["/shop?" + "&".join(f"{k}={v}" for k, v in sorted({**chosen, name: value}.items())) for value in values]
    return web.shown(host, ask, [web.standing(host, "shop"), *texts], links)


def _session(web: TrapWeb, host: SimHost, ask: Ask) -> Answer:
    """`/visit/<token>/cart`: a token of its own for every answer, under a name that no table knows."""
    token = hashlib.sha256(f"{ask.target}{ask.nth}".encode()).hexdigest()[:20]
    return web.shown(
        host, ask, [web.standing(host, "visit")], [f"/visit/{token}/{page}" for page in ("cart", "help", "list", "home")]
    )


def _loop(web: TrapWeb, host: SimHost, ask: Ask) -> Answer:
    """`/deep/<word>/<word>/…`: relative links, each one folder further down."""
    links = [f"{ask.path.rstrip('/')}/{_word(ask.path, n)}/" for n in range(4)]
    return web.shown(host, ask, [web.standing(host, "deep")], links)


def _mirror(web: TrapWeb, host: SimHost, ask: Ask) -> Answer:
    """`/old/<anything>`: 200 for what was never there, with suggestions that were never there either."""
    links = [f"/old/{_word(ask.path, 'a', n)}/{_word(ask.path, 'b', n)}.html" for n in range(6)]
    return web.shown(host, ask, [f"We looked for {ask.path} and could not find it.", web.standing(host, "mirror")], links)


def _slugs(web: TrapWeb, host: SimHost, ask: Ask) -> Answer:
    """`/news/<number>-<slug>`: the server reads nothing of it and shows one article."""
    number = int(hashlib.sha256(ask.path.encode()).hexdigest()[:6], 16)
    links = [f"/news/{(number + n) % 90_000}-{_word(number, n)}" for n in range(5)]
    return web.shown(host, ask, [web.standing(host, "news")], links)


TRAPS: dict[str, tuple[str, str, Trap]] = {
    # host: (prefix of the trap's paths, its door, its answers)
    "calendar": ("/calendar/", "/calendar/2026/11", _calendar),
    "shop": ("/shop", "/shop?sort=name", _shop),
    "visit": ("/visit/", "/visit/0123456789abcdef0123/home", _session),
    "deep": ("/deep/", "/deep/down/", _loop),
    "mirror": ("/old/", "/old/index.html", _mirror),
    "news": ("/news/", "/news/1-first", _slugs),
}


class TrapWeb(SimWeb):
    """A `SimWeb` of a host per trap (and `all.test`, if it is named, with every trap). `pages`: real pages of each."""

    def __init__(self, seed: int = 3, pages: int = 300, names: tuple[str, ...] = tuple(TRAPS)) -> None:
        super().__init__(
            seed, [SimHost(f"{name}.test", address_of(n), pages=pages, page_bytes=900) for n, name in enumerate(names)]
        )
        self._of = (seed, pages, names)

    def __reduce__(self) -> tuple[type[TrapWeb], tuple[int, int, tuple[str, ...]], dict[str, int]]:  # type: ignore[override]
        return TrapWeb, self._of, {"port": self.port, "_fixed_port": self._fixed_port}

    # -- what a log says -----------------------------------------------------------------------------------------
    def real(self, contacts: Iterable[Contact]) -> set[str]:
        """Addresses of the real pages that were asked for and answered whole, visit numbers left out."""
        wanted = self.pages()
        return {page for contact in contacts if contact.status == 200 and (page := self._page(contact)) in wanted}

    def pages(self) -> set[str]:
        """Addresses of all real pages."""
        found = set()
        for host in self.hosts:
            found |= {f"{host.name}{path}" for path in self._plan(host) if path.startswith(("/p/", "/item/"))}
        return found

    def trapped(self, contacts: Iterable[Contact]) -> list[Contact]:
        """Contacts inside a trap."""
        prefixes = tuple(prefix for prefix, _, _ in TRAPS.values())
        return [contact for contact in contacts if contact.target.startswith(prefixes)]

    def _page(self, contact: Contact) -> str:
        return f"{contact.host}{contact.target.partition('?')[0]}"

    # -- answers -------------------------------------------------------------------------------------------------
    def answer(self, ask: Ask) -> Answer:
        host = self._by_name.get(ask.host)
        if host is not None:
            for name in self._traps(host):
                prefix, _, trap = TRAPS[name]
                if ask.path.startswith(prefix.rstrip("/")):
                    return trap(self, host, ask)
        return super().answer(ask)

    def _traps(self, host: SimHost) -> tuple[str, ...]:
        name = host.name.partition(".")[0]
        return tuple(TRAPS) if name == "all" else (name,)

    def _planned(self, host: SimHost) -> dict[str, Page]:
        plan = super()._planned(host)
        doors = [TRAPS[name][1] for name in self._traps(host)]
        for n in range(1, host.pages + 1):
            plan[f"/p/{n:04d}"] = self._real(
                host, f"/p/{n:04d}", [f"/p/{n % host.pages + 1:04d}", *self._others(host, n), *doors]
            )
        if "shop" in self._traps(host):
            for n in range(1, ITEMS + 1):
                plan[f"/item/{n:04d}"] = self._real(host, f"/item/{n:04d}", ["/", *doors], self.blurb(host, n))
        index = [f"/p/{n:04d}" for n in range(1, min(host.pages, 40) + 1)]
        plan["/"] = self._real(host, "/", [*index, *doors])
        return plan

    def _others(self, host: SimHost, n: int) -> list[str]:
        rng = random.Random(f"{self.seed}/{host.name}/{n}")
        return [f"/p/{rng.randint(1, host.pages):04d}" for _ in range(4)]

    def _real(self, host: SimHost, path: str, links: list[str], *more: str) -> Page:
        def respond(ask: Ask) -> Answer:
            texts = [*more, *paragraphs(self.seed, f"{host.name}{path}", "en", host.page_bytes)]
            return self.shown(host, ask, texts, links)

        return Page(respond)

    def shown(self, host: SimHost, ask: Ask, texts: list[str], links: list[str]) -> Answer:
        """A page; on the host of visits every link carries a new session id."""
        if host.name == "visit.test":
            token = hashlib.sha256(f"{ask.target}{ask.nth}".encode()).hexdigest()[:32]
            links = [f"{link}?sid={token}" if link.startswith(("/p/", "/item/")) else link for link in links]
        nav = "".join(
            f'<li><a href="{escape(link)}">{("more", "next", "other", "see")[n % 4]}</a></li>' for n, link in enumerate(links)
        )
        main = "".join(f"<p>{escape(text)}</p>" for text in texts)
        body = f'<!DOCTYPE html><html lang="en"><head><title>{escape(texts[0][:60])}</title></head><body><ul>{nav}</ul>{main}</body></html>'
        return Answer(headers=HTML, body=body.encode())

    def standing(self, host: SimHost, what: str) -> str:
        """What a trap says on each of its pages."""
        return " ".join(paragraphs(self.seed, f"{host.name}/standing/{what}", "en", 500))

    def blurb(self, host: SimHost, n: int) -> str:
        """What an item's own page and every listing say of it."""
        return f"Item {n}. " + paragraphs(self.seed, f"{host.name}/blurb/{n}", "en", 160)[0]
