"""What the demo web shows on purpose, as a table: the URL, and what a crawl with `demo_config` must say of it.

`verdict`, `step` and `reason` are those of `corpus why` and of `corpus.reasons`. Alternatives stand where two honest
outcomes exist (which of two equal pages is elected depends on which one was fetched first).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from corpus.testing.demo.render import href


@dataclass(frozen=True, slots=True)
class Show:
    """One thing on show. `target` is `KEY:/path`; `verdicts` and `reasons` list what is right, usually one each."""

    name: str
    target: str
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...] = ("",)
    rival: str = ""
    """The other page of a pair, of which exactly one is exported."""
    lesson: str = ""

    def url(self, origins: Mapping[str, str]) -> str:
        """The URL on a running demo web."""
        return href(self.target, origins)


_COPY = ("near-copy", "exact-duplicate", "near-duplicate", "")
_EITHER = ("duplicate", "exported")

SHOWS: tuple[Show, ...] = (
    Show("kept", "bakery:/sourdough.html", _EITHER, _COPY, "bakery:/print/sourdough.html", "ordinary prose is kept"),
    Show("robots refusal", "bakery:/private/orders.html", ("refused",), ("robots",), lesson="Disallow: /private/ for everyone"),
    Show("robots refusal, second", "bakery:/private/suppliers.html", ("refused",), ("robots",)),
    Show("robots refuses training", "wheels:/letters/readers-1.html", ("refused",), ("robots-peer",), lesson="a group for GPTBot and CCBot"),
    Show("robots refuses training, second", "wheels:/letters/readers-2.html", ("refused",), ("robots-peer",)),
    Show("TDMRep reservation", "atelier:/archives/carnet-1.html", ("refused",), ("tdmrep",), lesson="/.well-known/tdmrep.json, never requested"),
    Show("TDMRep reservation, second", "atelier:/archives/carnet-2.html", ("refused",), ("tdmrep",)),
    Show("meta noai", "vcely:/vosk.html", ("refused",), ("meta-robots",), lesson="learned from the page: its body is dropped"),
    Show("X-Robots-Tag noai", "diwan:/aflaj.html", ("refused",), ("x-robots-tag",), lesson="learned from a header: its body is dropped"),
    Show("exact duplicate, same bytes", "bakery:/print/sourdough.html", _EITHER, _COPY, "bakery:/sourdough.html", "two URLs, one body"),
    Show("exact duplicate, same text", "wheels:/bread-and-salt.html", _EITHER, ("exact-duplicate", ""), "bakery:/salt.html", "other host, other furniture"),
    Show("near copy", "wheels:/tides-visitors.html", _EITHER, ("near-copy", ""), "wheels:/tides.html", "one word differs"),
    Show("near duplicate", "wheels:/knots-leaflet.html", _EITHER, ("near-duplicate", ""), "wheels:/knots.html", "another last paragraph"),
    Show("quality: the same line again and again", "wheels:/cheap-tyres.html", ("dropped",), ("quality",), lesson="repetition"),
    Show("quality: a price list", "wheels:/prices.html", ("dropped",), ("quality", "no-text"), lesson="hardly a word in it"),
    Show("no text", "michi:/empty.html", ("dropped",), ("no-text",), lesson="a picture and nothing else"),
    Show("redirect", "bakery:/old-sourdough.html", ("excluded",), ("redirected",), lesson="the target has its own row"),
    Show("not found", "bakery:/broken/spelt.html", ("gone", "failed"), ("http-404",), lesson="a broken link"),
    Show("503, then the page", "bakery:/salt.html", _EITHER, ("exact-duplicate", ""), "wheels:/bread-and-salt.html", "asked again after Retry-After"),
    Show("a charset nobody knows in the header", "atelier:/tipos.html", ("exported",), lesson="ISO-8559-1 is ignored, the meta element counts"),
    Show("a wrong charset in the header", "sadok:/vyshnia.html", ("exported",), lesson="the header says utf-8, the bytes are windows-1251 as the meta element says"),
    Show("charset only in the meta element", "sadok:/horikh.html", ("exported",), lesson="windows-1251"),
    Show("only in the sitemap", "fluesse:/eisgang.html", ("exported",), lesson="no page links to it"),
    Show("only behind nofollow", "wheels:/members/login.html", ("unknown",), lesson="never learned of"),
    Show("not a page", "fluesse:/pegel.json", ("failed", "excluded"), ("content-type", "unwanted-extension"), lesson="JSON is out of scope"),
    Show("not a page, by its name", "bakery:/leaflet.pdf", ("excluded",), ("unwanted-extension",), lesson="never requested"),
    Show("another web", "https://creativecommons.org/publicdomain/zero/1.0/", ("excluded",), ("out-of-scope",), lesson="linked from every footer"),
)  # fmt: skip
