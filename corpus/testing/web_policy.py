"""The authority files of simulated hosts, and what each does to a crawl with default settings.

A table per variant: the file, and the state its pages end in. `/private/…` is what partial rules refuse.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from corpus.model import UrlState
from corpus.testing.web_answer import Answer, Ask, Fault
from corpus.testing.web_hosts import Page, Robots, SimHost, Trait

_PLAIN = (("Content-Type", "text/plain; charset=utf-8"),)
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Effect:
    """What becomes of a host's pages. `private` alone: only `/private/` is refused."""

    state: UrlState | None = None
    reasons: tuple[str, ...] = ()
    private: bool = False


def _text(body: str | bytes, **more: object) -> Callable[[SimHost, Ask], Answer]:
    raw = body.encode() if isinstance(body, str) else body
    return lambda host, ask: Answer(headers=_PLAIN, body=raw)


def _status(status: int, *headers: tuple[str, str]) -> Callable[[SimHost, Ask], Answer]:
    return lambda host, ask: Answer(status, (*headers, *_PLAIN), b"no\n")


def _huge() -> bytes:
    """600 KiB: our rule stands just before 500 KiB, and a rule that would shut us out is cut by the limit."""
    rule = b"Disallow: /private/\n"
    start = b"User-agent: *\n"
    filler = b"# nothing to see here, only many lines\n"
    room = 499 * _KIB - len(start) - len(rule)
    body = start + filler * (room // len(filler)) + rule
    body += b"#" * (500 * _KIB - len(body) - 9) + b"\n"
    return body + b"Disallow: /cut-by-the-limit\n" + filler * (100 * _KIB // len(filler))


def _unavailable_twice(host: SimHost, ask: Ask) -> Answer:
    if ask.nth <= 2:
        return Answer(503, (("Retry-After", "0"), *_PLAIN), b"wait\n")
    return Answer(headers=_PLAIN, body=b"User-agent: *\nDisallow: /private/\n")


_NO_PRIVATE = "User-agent: *\nDisallow: /private/\n"
_ROBOTS: dict[Robots, tuple[Callable[[SimHost, Ask], Answer], Effect]] = {
    Robots.OPEN: (_text("User-agent: *\nDisallow:\n"), Effect()),
    Robots.MISSING: (_status(404), Effect()),
    Robots.GONE: (_status(410), Effect()),
    Robots.PART: (_text(_NO_PRIVATE), Effect(private=True)),
    Robots.ALL: (_text("User-agent: *\nDisallow: /\n"), Effect(UrlState.REFUSED, ("robots",))),
    Robots.NAMED: (
        _text("User-agent: CorpusBot\nDisallow: /\n\nUser-agent: *\nAllow: /\n"),
        Effect(UrlState.REFUSED, ("robots",)),
    ),
    Robots.GROUPS: (
        _text(
            "User-agent: corpusbot\nDisallow: /elsewhere/\n\nUser-agent: *\nDisallow: /\n\n"
            "User-agent: Other\nUser-agent: CORPUSBOT\nDisallow: /private/\n"
        ),
        Effect(private=True),
    ),
    Robots.BOM_CR: (_text(b"\xef\xbb\xbfUser-agent: *\rDisallow: /private/\r"), Effect(private=True)),
    Robots.HUGE: (_text(_huge()), Effect(private=True)),
    Robots.DELAY: (
        lambda host, ask: Answer(headers=_PLAIN, body=f"User-agent: *\nCrawl-delay: {host.crawl_delay_s:g}\n".encode()),
        Effect(),
    ),
    Robots.LONG_DELAY: (_text("User-agent: *\nCrawl-delay: 600\n"), Effect(UrlState.PARKED, ("crawl-delay",))),
    Robots.AI_PEERS: (
        _text("User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n\nUser-agent: *\nAllow: /\n"),
        Effect(UrlState.REFUSED, ("robots-peer",)),
    ),
    Robots.SIGNAL_NO: (
        _text("User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"),
        Effect(UrlState.REFUSED, ("content-signal",)),
    ),
    Robots.SIGNAL_YES: (_text("User-agent: *\nContent-Signal: search=yes, ai-train=yes\nAllow: /\n"), Effect()),
    Robots.USAGE_NO: (
        _text("User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n"),
        Effect(UrlState.REFUSED, ("content-usage",)),
    ),
    Robots.RSL: (
        lambda host, ask: Answer(
            headers=_PLAIN,
            body=f"License: http://{ask.headers.get('host', host.name)}/license.xml\nUser-agent: *\nAllow: /\n".encode(),
        ),
        Effect(UrlState.REFUSED, ("rsl",)),
    ),
    Robots.FORBIDDEN: (_status(403), Effect(UrlState.REFUSED, ("robots-denied",))),
    Robots.UNAVAILABLE: (_status(503), Effect(UrlState.PARKED, ("robots-unreachable", "retry-after", "backing-off"))),
    Robots.RECOVERS: (_unavailable_twice, Effect(private=True)),
    Robots.THROTTLED: (
        _status(429, ("Retry-After", "3600")),
        Effect(UrlState.PARKED, ("robots-unreachable", "retry-after", "backing-off")),
    ),
    Robots.SILENT: (
        lambda host, ask: Answer(fault=Fault.SILENT),
        Effect(UrlState.PARKED, ("robots-unreachable", "backing-off")),
    ),
    Robots.RESET: (
        lambda host, ask: Answer(fault=Fault.RESET),
        Effect(UrlState.PARKED, ("robots-unreachable", "backing-off")),
    ),
    Robots.REDIRECT: (_status(301, ("Location", "/robots-moved.txt")), Effect(private=True)),
    Robots.REDIRECT_LOOP: (_status(302, ("Location", "/robots.txt")), Effect(UrlState.REFUSED, ("robots-redirects",))),
    Robots.REDIRECT_PRIVATE: (
        _status(302, ("Location", "http://10.0.0.1/robots.txt")),
        Effect(UrlState.PARKED, ("robots-unreachable", "backing-off")),
    ),
    Robots.CHALLENGE: (
        _status(403, ("cf-mitigated", "challenge")),
        Effect(UrlState.PARKED, ("robots-unreachable", "backing-off")),
    ),
}
assert set(_ROBOTS) == set(Robots), "every kind of robots.txt needs a file and an effect"

_RSL = b"""<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>
<permits type="usage">search</permits><prohibits type="usage">ai-train</prohibits></license></content></rsl>
"""


def effect_of(host: SimHost) -> Effect:
    """What a host's authority files do to its pages: the strictest of robots.txt, tdmrep.json and ai.txt."""
    effect = _ROBOTS[host.robots][1]
    if effect.state is None and Trait.TDMREP in host.traits:
        return Effect(UrlState.REFUSED, ("tdmrep",))
    if effect.state is None and Trait.AI_TXT in host.traits:
        return Effect(UrlState.REFUSED, ("ai-txt",))
    return effect


def policy_files(host: SimHost, port: int) -> dict[str, Page]:
    """Authority files by path (404 where a host has none is the site's default)."""
    robots = _ROBOTS[host.robots][0]

    def respond(ask: Ask) -> Answer:
        answer = robots(host, ask)
        if Trait.SITEMAP in host.traits and answer.status == 200:
            place = host.name if port == 80 else f"{host.name}:{port}"
            answer = Answer(headers=_PLAIN, body=answer.body + f"Sitemap: http://{place}/sitemap.xml\n".encode())
        return answer

    files = {
        "/robots.txt": Page(respond, linked=False),
        "/robots-moved.txt": Page(lambda ask: _text(_NO_PRIVATE)(host, ask), linked=False),
        "/license.xml": Page(lambda ask: Answer(headers=(("Content-Type", "application/rsl+xml"),), body=_RSL), linked=False),
    }
    if Trait.TDMREP in host.traits:
        body = json.dumps([{"location": "/", "tdm-reservation": 1}]).encode()
        files["/.well-known/tdmrep.json"] = Page(
            lambda ask: Answer(headers=(("Content-Type", "application/json"),), body=body), linked=False
        )
    if Trait.AI_TXT in host.traits:
        files["/ai.txt"] = Page(lambda ask: Answer(headers=_PLAIN, body=b"User-Agent: *\nDisallow: /\n"), linked=False)
    return files
