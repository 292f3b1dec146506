"""What this process knows of the authority files of the hosts it visits, and which of them to ask for next.

Order per authority: robots.txt; unless that denies the URL, tdmrep.json and ai.txt (each only where robots.txt allows
its path), then an advertised RSL document; then pages. Files are kept by digest and compiled once per combination.
No request is made here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from corpus.crawl.ports import AuthorityRow, QueuedUrl
from corpus.model import Access, Consent, Kind
from corpus.optout.authority import AuthorityFiles, AuthorityRules, FileState, compile_authority
from corpus.optout.settings import OptoutSettings
from corpus.url.host import authority_of, host_of, registered_domain

RULES_MAX = 4096
"""Compiled rule sets kept at once; active hosts are far fewer."""

PATHS: dict[Kind, tuple[str, ...]] = {
    Kind.ROBOTS: ("/robots.txt",),
    Kind.TDMREP: ("/.well-known/tdmrep.json",),
    Kind.AI_TXT: ("/ai.txt", "/.well-known/ai.txt"),
}
"""Where each authority file lies; the second is asked for only where the first is absent."""


@dataclass(frozen=True, slots=True)
class Ask:
    """This authority file must be read before the URL can be judged."""

    authority: str
    kind: Kind
    url: str


@dataclass(frozen=True, slots=True)
class Wait:
    """robots.txt cannot be read: nothing may be asked until `until` (epoch seconds)."""

    authority: str
    until: float


@dataclass(frozen=True, slots=True)
class Decided:
    """Both verdicts on the URL, by files that are fresh."""

    consent: Consent
    rules: AuthorityRules


Step = Ask | Wait | Decided


@dataclass(slots=True)
class _Known:
    rows: dict[Kind, AuthorityRow] = field(default_factory=dict)


class AuthorityBook:
    """One per fetch process. `body(digest)` reads a file's bytes from the consent log."""

    def __init__(self, settings: OptoutSettings, token: str, body: Callable[[str], bytes]) -> None:
        self._settings, self._token, self._body = settings, token, body
        self._known: dict[str, _Known] = {}
        self._rules: OrderedDict[tuple[str, ...], AuthorityRules] = OrderedDict()
        self._fresh: dict[str, bytes] = {}

    def learn(self, rows: Iterable[AuthorityRow], bodies: dict[str, bytes] | None = None) -> None:
        """Take in rows read from the store, or just fetched (then with their bodies, not yet in the log)."""
        for row in rows:
            self._known.setdefault(row.authority, _Known()).rows[row.kind] = row
        self._fresh.update(bodies or {})

    def durable(self, digests: Iterable[str]) -> None:
        """These bodies can be read from the log now."""
        for digest in digests:
            self._fresh.pop(digest, None)

    def forget(self, host_authorities: Iterable[str]) -> None:
        """A host went idle: its rows are in the store."""
        for authority in host_authorities:
            self._known.pop(authority, None)

    def row(self, authority: str, kind: Kind) -> AuthorityRow | None:
        known = self._known.get(authority)
        return known.rows.get(kind) if known else None

    def step(self, queued: QueuedUrl, wall: float) -> Step:
        """What must happen before this URL can be requested, or the decision on it."""
        authority = authority_of(queued.found)
        robots = self.row(authority, Kind.ROBOTS)
        if robots is None or robots.expires_at <= wall:
            return Ask(authority, Kind.ROBOTS, authority + PATHS[Kind.ROBOTS][0])
        if robots.outcome == "unreachable":
            return Wait(authority, robots.expires_at)
        rules = self.rules(authority)
        consent = rules.judge(queued.found, wall)
        if consent.access is not Access.YES:
            return Decided(consent, rules)
        missing = self._missing(authority, queued.host, rules, wall)
        return missing or Decided(consent, rules)

    def unread(self, queued: QueuedUrl, wall: float) -> Wait:
        """Why a URL is deferred although robots.txt was read: the earliest time an unreadable side file may be tried again."""
        authority = authority_of(queued.found)
        rows = self._known[authority].rows.values()
        until = min((row.expires_at for row in rows if row.outcome == "unreachable"), default=wall + 60.0)
        return Wait(authority, until)

    def _missing(self, authority: str, host: str, rules: AuthorityRules, wall: float) -> Ask | None:
        """The next side file that is wanted, allowed by robots.txt, and not fresh."""
        wanted = [(Kind.TDMREP, self._settings.tdmrep), (Kind.AI_TXT, self._settings.ai_txt)]
        for kind, on in wanted:
            row = self.row(authority, kind)
            if on and (row is None or row.expires_at <= wall) and rules.allows(authority + PATHS[kind][0]):
                return Ask(authority, kind, authority + PATHS[kind][0])
        rsl = self.row(authority, Kind.RSL)
        if self._settings.rsl and rules.rsl_urls and (rsl is None or rsl.expires_at <= wall):
            url = rules.rsl_urls[0]
            # a document of another owner's host is not ours to fetch: without it the licence is not obtainable
            if registered_domain(host_of(url)) == registered_domain(host):
                return Ask(authority, Kind.RSL, url)
        return None

    def rules(self, authority: str) -> AuthorityRules:
        """The compiled rules of an authority whose robots.txt is known."""
        known = self._known[authority]
        key = (authority, *(f"{kind}:{row.outcome}:{row.digest}" for kind, row in sorted(known.rows.items())))
        rules = self._rules.get(key)
        if rules is None:
            files = {kind: self._state(row) for kind, row in known.rows.items()}
            rules = compile_authority(
                AuthorityFiles(
                    robots=files.get(Kind.ROBOTS), tdmrep=files.get(Kind.TDMREP), ai_txt=files.get(Kind.AI_TXT), rsl=files.get(Kind.RSL)
                ),
                self._settings,
                self._token,
            )
            self._rules[key] = rules
            if len(self._rules) > RULES_MAX:
                self._rules.popitem(last=False)
        else:
            self._rules.move_to_end(key)
        return rules

    def _state(self, row: AuthorityRow) -> FileState:
        body = b""
        if row.digest:
            body = self._fresh.get(row.digest) or self._body(row.digest)
        return FileState(row.outcome, row.status, body, row.digest, row.read_at, row.url, row.truncated, row.detail)

