"""One authority's statement files, compiled into a judge of its URLs: no request, no clock, no memory of URLs.

`compile_authority` keeps the few lines that bear on us in packed form (about a kilobyte for a typical file) and builds
the matchers when the first URL comes; `unload` drops them again. What a file of the authority cannot say because it
could not be read defers; nothing here ever turns that into a permission.
"""

from __future__ import annotations

import marshal
import zlib
from dataclasses import dataclass
from typing import Any

from corpus.model import Consent
from corpus.optout.agents import AGENTS, AgentTable
from corpus.optout.ai_txt import parse_ai_txt
from corpus.optout.evidence import Origin
from corpus.optout.filestate import FileState, classify_file, classify_robots, governing
from corpus.optout.judge import Judge, Plan
from corpus.optout.match import target_of
from corpus.optout.robots import LICENSE, crawl_delay_s, parse_robots
from corpus.optout.rsl import Licence, read_licence
from corpus.optout.select import EMPTY, Selection, select, without_delays
from corpus.optout.settings import OptoutSettings
from corpus.optout.tdmrep import TdmFile, parse_tdmrep
from corpus.url.canonical import fetch_url
from corpus.url.host import authority_of, host_of, registered_domain

__all__ = ["AuthorityFiles", "AuthorityRules", "FileState", "classify_file", "classify_robots", "compile_authority", "governing"]

GIVEN_UP_S = 30 * 86_400.0
"""After this long without a readable robots.txt the answer is no instead of "not now"; it is never yes."""
LICENCES_MAX = 8
"""Licence documents of one authority that are read."""
Always = tuple[str, str, Origin, str]
"""(signal, value, origin, raw) of a statement about every URL."""


@dataclass(frozen=True, slots=True)
class AuthorityFiles:
    """What is known of an authority's files; None: never asked for (or switched off), so it states nothing.

    `rsl` may be several documents, told apart by their `url`; one with an empty `url` stands for any advertised one.
    """

    robots: FileState | None = None
    tdmrep: FileState | None = None
    ai_txt: FileState | tuple[FileState, ...] | None = None
    rsl: FileState | tuple[FileState, ...] | None = None


class AuthorityRules:
    """Judges every URL of one authority. `crawl_delay_s` seconds or None; `rsl_urls`: documents to keep fresh, usually one."""

    __slots__ = ("_judge", "_packed", "_settings", "_since", "_sitemaps", "crawl_delay_s", "rsl_urls")

    def __init__(
        self,
        plan: Plan,
        settings: OptoutSettings,
        since: float | None,
        sitemaps: tuple[str, ...],
        delay: float | None,
        rsl: tuple[str, ...],
    ) -> None:
        self._settings = settings
        self._since = since
        self.crawl_delay_s = delay
        self.rsl_urls = rsl
        self._packed = zlib.compress(marshal.dumps((plan.plain(), sitemaps)), 6)
        self._judge: Judge | None = None

    def judge(self, url: str, at: float) -> Consent:
        """Both verdicts before any request of a URL of this authority (as it would be requested); `at` is epoch seconds.

        An authority that gave no answer at all has `access` no and `gate` defer: complete disallow, and asked again.
        """
        judge = self._judge or self._load()
        return judge.given_up() if self._since is not None and at - self._since > GIVEN_UP_S else judge.judge(url)

    def allows(self, path_url: str) -> bool:
        """Whether robots.txt alone lets a URL or path be requested (for tdmrep.json, ai.txt, sitemaps)."""
        return (self._judge or self._load()).allows(target_of(path_url))

    @property
    def places(self) -> tuple[str, ...]:
        """A path under each pattern that some statement is limited to, sorted: where this authority may say something else than
        at its root."""
        return Plan.of_plain(self._unpacked()[0]).places()

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """Absolute URLs, in file order."""
        return tuple(self._unpacked()[1])

    @property
    def packed_bytes(self) -> int:
        """Size of what is kept for an idle authority."""
        return len(self._packed)

    def unload(self) -> None:
        """Drop the matchers; the next `judge` builds them again."""
        self._judge = None

    def _unpacked(self) -> tuple[Any, tuple[str, ...]]:
        # written above, never read from outside
        plain, sitemaps = marshal.loads(zlib.decompress(self._packed))
        return plain, sitemaps

    def _load(self) -> Judge:
        self._judge = Judge(Plan.of_plain(self._unpacked()[0]), self._settings)
        return self._judge


def compile_authority(
    files: AuthorityFiles, settings: OptoutSettings, token: str, *, agents: AgentTable = AGENTS
) -> AuthorityRules:
    """Everything the files say to `token`, ready to judge. Never raises, whatever the bodies hold."""
    peers = agents.peers(settings.peers, token)
    robots = files.robots or FileState("")
    selection, sitemaps = EMPTY, tuple[str, ...]()
    if robots.outcome == "ok":
        parsed = parse_robots(robots.body)
        selection = select(parsed, token, peers)
        sitemaps = tuple(resolved for line in parsed.sitemaps if (resolved := _absolute(robots.url, line)))
    tdmrep = files.tdmrep if settings.tdmrep and files.tdmrep else FileState("")
    ai_states = _several(files.ai_txt) if settings.ai_txt else ()
    rsl_urls, licences = _licences(selection, _several(files.rsl), robots.url) if settings.rsl else ((), ())
    plan = Plan(
        known=robots.outcome == "ok",
        origin=_origin(robots),
        selection=selection._replace(signals=without_delays(selection.signals)),
        quorum=peers.quorum,
        always=(*_of_robots(robots), *_unread((tdmrep, *ai_states))),
        tdm=parse_tdmrep(tdmrep.body) if tdmrep.outcome == "ok" else TdmFile((), unreadable=False),
        tdm_origin=_origin(tdmrep),
        ai_txt=tuple((parse_ai_txt(state.body, token, peers), _origin(state)) for state in ai_states if state.outcome == "ok"),
        licences=licences,
    )
    return AuthorityRules(plan, settings, robots.unreachable_since, sitemaps, crawl_delay_s(selection.signals), rsl_urls)


def _of_robots(robots: FileState) -> list[Always]:
    """The table's row for a robots.txt that is not there to be read."""
    match robots.outcome:
        case "ok" | "":
            return []
        case "absent":
            value = "absent"
        case "denied":
            value = "redirects" if robots.detail == "redirects" else "denied"
        case _:
            value = "silent" if robots.status is None else "unreachable"
    return [("robots-file", value, _origin(robots), robots.detail or robots.outcome)]


def _unread(states: tuple[FileState, ...]) -> list[Always]:
    return [("policy-file", "unreachable", _origin(state), state.detail) for state in states if state.outcome == "unreachable"]


def _licences(selection: Selection, states: tuple[FileState, ...], base: str) -> tuple[tuple[str, ...], tuple[Licence, ...]]:
    """Documents to fetch, and what those at hand (or missing) say. One without an address stands for any advertised.

    Only documents on the authority's own registered domain are worth a request: others hold the authority until somebody
    supplies them.
    """
    by_url = {_absolute(base, state.url) if state.url else "": state for state in states}
    anywhere = by_url.get("")
    advertised = dict.fromkeys(signal.value.partition(" ")[0] for signal in selection.signals if signal.kind == LICENSE)
    wanted: list[str] = []
    read: list[Licence] = []
    owner = authority_of(base)
    for value in list(advertised)[:LICENCES_MAX]:
        url = _absolute(base, value)
        state = by_url.get(url, anywhere)
        if not url:
            read.append(Licence(Origin(base), "not-rsl", f"License: {value}", ()))
        elif state is not None:
            read.append(read_licence(state, url, owner))
            wanted.append(url)
        elif registered_domain(host_of(url)) != registered_domain(host_of(base)):
            read.append(Licence(Origin(url), "elsewhere", url, ()))
        else:
            read.append(read_licence(None, url, owner))
            wanted.append(url)
    if not advertised and anywhere is not None:
        read.append(read_licence(anywhere, base, owner))
    return tuple(wanted), tuple(read)


def _several(states: FileState | tuple[FileState, ...] | None) -> tuple[FileState, ...]:
    return () if states is None else (states,) if isinstance(states, FileState) else states


def _origin(state: FileState) -> Origin:
    return Origin(state.url, state.digest, state.read_at)


def _absolute(base: str, value: str) -> str:
    """An address given in a file, as it would be requested; empty where it is none that could be asked for."""
    return fetch_url(value, base or None) or ""
