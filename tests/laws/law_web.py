"""The web that law B is judged on: everything a decent web does, and nothing that a clock or an order could decide.

Hosts share a registered domain and an address here and there; answers that fail do so a fixed number of times.
"""

from __future__ import annotations

from dataclasses import replace

from corpus.model import UrlState
from corpus.testing.web import Expectation, Robots, SimHost, SimWeb, Throttle, Trait, address_of
from corpus.testing.web_answer import Answer, Fault
from corpus.testing.web_hosts import Page

AWAY = "/robots-away.txt"
_SHARED = "127.9.0.1"


def hosts(pages: int = 14) -> tuple[SimHost, ...]:
    """A small host for each thing that must come out the same."""
    kinds: list[tuple[str, dict[str, object]]] = [
        ("plain.law.test", {}),
        ("second.law.test", {}),
        ("part.test", {"robots": Robots.PART, "address": _SHARED}),
        ("groups.test", {"robots": Robots.GROUPS, "address": _SHARED}),
        ("moved.test", {"robots": Robots.REDIRECT}),
        ("away.test", {}),
        ("wakes.test", {"robots": Robots.RECOVERS}),
        ("signal.test", {"robots": Robots.SIGNAL_NO}),
        ("closed.test", {"robots": Robots.ALL}),
        ("maps.test", {"traits": (Trait.SITEMAP, Trait.CONDITIONAL)}),
        ("turns.test", {"traits": (Trait.REDIRECTS,)}),
        ("ends.test", {"traits": (Trait.STATUSES, Trait.OPTOUT_PAGES)}),
        ("again.test", {"traits": (Trait.RECOVERS,)}),
        ("bytes.test", {"traits": (Trait.CHARSETS, Trait.CODINGS, Trait.TYPES)}),
        ("copies.test", {"traits": (Trait.COPIES,)}),
        ("busy.test", {"throttle": Throttle(after=6, wait_s=0.5), "pages": min(pages, 14)}),  # it slows us down for good
    ]
    return tuple(
        SimHost(**{"name": name, "address": address_of(n), "pages": pages, "page_bytes": 1_500, **more})  # type: ignore[arg-type]
        for n, (name, more) in enumerate(kinds)
    )


class LawWeb(SimWeb):
    """Without the challenge page, which parks its host; with a page whose connection breaks twice."""

    def __init__(self, seed: int = 7, pages: int = 14, without: tuple[str, ...] = ()) -> None:
        """`without`: names of hosts that are left out."""
        super().__init__(seed, tuple(host for host in hosts(pages) if host.name not in without))
        self._made_of = (seed, pages, without)

    def __reduce__(self) -> tuple[type[LawWeb], tuple[int, int, tuple[str, ...]], dict[str, int]]:  # type: ignore[override]
        return LawWeb, self._made_of, {"port": self.port, "_fixed_port": self._fixed_port}

    def _planned(self, host: SimHost) -> dict[str, Page]:
        plan = super()._planned(host)
        plan.pop("/status/challenge", None)  # its link leads to a 404 then
        if host.name == "away.test":  # its robots.txt lies at a host that another process may own
            moved = self.url("plain.law.test", AWAY)
            plan["/robots.txt"] = Page(lambda ask: Answer(302, (("Location", moved),), b"moved"), linked=False)
            plan["/p/0003"] = replace(plan["/p/0003"], state=UrlState.REFUSED, reasons=("robots",), requested=False)
        if host.name == "plain.law.test":
            plan[AWAY] = Page(
                lambda ask: Answer(headers=(("Content-Type", "text/plain"),), body=b"User-agent: *\nDisallow: /p/0003\n"),
                linked=False,
            )
        if Trait.RECOVERS in host.traits:
            whole = plan["/recovers/500"]
            plan["/recovers/500"] = Page(lambda ask: Answer(fault=Fault.RESET) if ask.nth <= 2 else whole.respond(ask))
        return plan

    def refusals(self) -> list[str]:
        """URLs that must never be asked for."""
        return [url for url, seen in self.pages().items() if not seen.requested]

    def pages(self) -> dict[str, Expectation]:
        """What must become of every page (authority files left out)."""
        return {url: seen for url, seen in self.expected().items() if not url.endswith(AWAY)}
