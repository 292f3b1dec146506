"""What this process knows of the authority files of the hosts it visits, and which of them to ask for next.

Order per authority: robots.txt; unless that denies the URL, tdmrep.json and ai.txt (each only where robots.txt allows
its path), then advertised RSL documents; then pages. Files are kept by digest and compiled once per combination.
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
DOCUMENTS_MAX = 32
"""RSL documents remembered at once per authority, and 4,096 authorities with any; the store keeps one of each."""

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
    key: tuple[str, ...] = ()
    """Names the combination of files; made when it is asked for."""
    licences: dict[str, FileState] | None = None
    """The licence documents with their bodies; likewise."""


class AuthorityBook:
    """One per fetch process. `body(digest)` reads a file's bytes from the consent log."""

    def __init__(self, settings: OptoutSettings, token: str, body: Callable[[str], bytes]) -> None:
        self._settings, self._token, self._body = settings, token, body
        self._known: dict[str, _Known] = {}
        self._documents: OrderedDict[str, dict[str, AuthorityRow]] = OrderedDict()
        """RSL documents by the authority they were advertised by, and URL."""
        self._rules: OrderedDict[tuple[str, ...], AuthorityRules] = OrderedDict()
        self._fresh: dict[str, bytes] = {}

    def learn(self, rows: Iterable[AuthorityRow], bodies: dict[str, bytes] | None = None) -> None:
        """Take in rows read from the store, or just fetched (then with their bodies, not yet in the log)."""
        for row in rows:
            known = self._known.setdefault(row.authority, _Known())
            known.key, known.licences = (), None
            if row.kind is Kind.RSL:
                self._keep(row)
            else:
                known.rows[row.kind] = row
        self._fresh.update(bodies or {})

    def _keep(self, row: AuthorityRow) -> None:
        documents = self._documents.setdefault(row.authority, {})
        documents.pop(row.url, None)
        documents[row.url] = row
        if len(documents) > DOCUMENTS_MAX:
            del documents[next(iter(documents))]
        self._documents.move_to_end(row.authority)
        if len(self._documents) > RULES_MAX:
            self._documents.popitem(last=False)

    def durable(self, digests: Iterable[str]) -> None:
        """These bodies can be read from the log now."""
        for digest in digests:
            self._fresh.pop(digest, None)

    def forget(self, host_authorities: Iterable[str]) -> None:
        """A host went idle: its rows are in the store, and its matchers can be built again."""
        for authority in host_authorities:
            if authority in self._known:
                rules = self._rules.get(self._key(authority))
                if rules is not None:
                    rules.unload()
            self._known.pop(authority, None)

    def row(self, authority: str, kind: Kind, url: str = "") -> AuthorityRow | None:
        """What is known of a file; of RSL documents the one at `url`."""
        if kind is Kind.RSL:
            return self._documents.get(authority, {}).get(url)
        known = self._known.get(authority)
        return known.rows.get(kind) if known else None

    def step(self, queued: QueuedUrl, wall: float) -> Step:
        """What must happen before this URL can be requested, or the decision on it."""
        authority = authority_of(queued.found)
        first = self._robots(authority, wall)
        if first is not None:
            return first
        rules = self.rules(authority)
        consent = rules.judge(queued.found, wall)
        if consent.access is not Access.YES:
            return Decided(consent, rules)
        missing = self._missing(authority, rules, wall)
        if missing is not None:
            return missing
        now = self.rules(authority)
        if now is not rules:  # a licence that may not be asked for has become known as such
            rules, consent = now, now.judge(queued.found, wall)
        return Decided(consent, rules)

    def licence(self, authority: str, url: str, wall: float) -> Ask | Wait | None:
        """What must happen before the licence document at `url` can be read for `authority`; None when it has been, or when it
        is not ours to ask for (another owner's host, or a path that robots.txt refuses): then it is not obtainable."""
        row = self.row(authority, Kind.RSL, url)
        if row is not None and not self._old(row, wall):
            return None
        if registered_domain(host_of(url)) != registered_domain(host_of(authority)):
            return None
        owner = authority_of(url)
        first = self._robots(owner, wall)
        if first is not None:
            return first
        if self.rules(owner).allows(url):
            return Ask(authority, Kind.RSL, url)
        refused = AuthorityRow(
            authority, Kind.RSL, "denied", None, "", wall, wall + self._settings.robots_ttl, "robots.txt refuses its path", url
        )
        self.learn([refused])
        return None

    def licences(self, authority: str) -> dict[str, FileState]:
        """The licence documents read for an authority, by URL."""
        known = self._known.setdefault(authority, _Known())
        if known.licences is None:
            known.licences = {url: self._state(row) for url, row in self._documents.get(authority, {}).items()}
        return known.licences

    def unread(self, queued: QueuedUrl, wall: float) -> Wait:
        """Why a URL is deferred although robots.txt was read: the earliest time an unreadable side file may be tried again."""
        authority = authority_of(queued.found)
        rows = [*self._known[authority].rows.values(), *self._documents.get(authority, {}).values()]
        until = min((row.expires_at for row in rows if row.outcome == "unreachable"), default=wall + 60.0)
        return Wait(authority, until)

    def _old(self, row: AuthorityRow, wall: float) -> bool:
        return row.expires_at <= wall or wall - row.read_at >= self._settings.recheck_after

    def _robots(self, authority: str, wall: float) -> Ask | Wait | None:
        robots = self.row(authority, Kind.ROBOTS)
        if robots is None or self._old(robots, wall):
            return Ask(authority, Kind.ROBOTS, authority + PATHS[Kind.ROBOTS][0])
        return Wait(authority, robots.expires_at) if robots.outcome == "unreachable" else None

    def _missing(self, authority: str, rules: AuthorityRules, wall: float) -> Ask | Wait | None:
        """The next side file that is wanted, allowed by robots.txt, and not fresh."""
        wanted = [(Kind.TDMREP, self._settings.tdmrep), (Kind.AI_TXT, self._settings.ai_txt)]
        for kind, on in wanted:
            row = self.row(authority, kind)
            if on and (row is None or self._old(row, wall)) and rules.allows(authority + PATHS[kind][0]):
                return Ask(authority, kind, authority + PATHS[kind][0])
        for url in rules.rsl_urls if self._settings.rsl else ():
            step = self.licence(authority, url, wall)
            if step is not None:
                return step
        return None

    def _key(self, authority: str) -> tuple[str, ...]:
        known = self._known[authority]
        if not known.key:
            rows = [*known.rows.values(), *self._documents.get(authority, {}).values()]
            facts = {f"{row.kind}:{row.url}:{row.outcome}:{row.digest}:{row.unreachable_since}" for row in rows}
            known.key = (authority, *sorted(facts))
        return known.key

    def rules(self, authority: str) -> AuthorityRules:
        """The compiled rules of an authority whose robots.txt is known."""
        key = self._key(authority)
        rules = self._rules.get(key)
        if rules is None:
            files = {kind: self._state(row) for kind, row in self._known[authority].rows.items()}
            rules = compile_authority(
                AuthorityFiles(
                    robots=files.get(Kind.ROBOTS),
                    tdmrep=files.get(Kind.TDMREP),
                    ai_txt=files.get(Kind.AI_TXT),
                    rsl=tuple(self.licences(authority).values()),
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
            fresh = self._fresh.get(row.digest)  # not in the log yet; it may be empty, which is a body too
            body = self._body(row.digest) if fresh is None else fresh
        return FileState(
            row.outcome, row.status, body, row.digest, row.read_at, row.url, row.truncated, row.detail, row.unreachable_since
        )
