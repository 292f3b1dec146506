"""Every reason a URL or document is not in a release: one closed table, used by the funnel, `why`, reports and docs.

A code never changes its meaning. `step` is CONTRACT's step of `why`; `verdict` is CONTRACT's verdict; `sentence`
is completed by the evidence; `next` says what a person can do about it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    step: str
    verdict: str
    sentence: str
    next: str


def _table(*rows: tuple[str, str, str, str, str]) -> dict[str, Reason]:
    table = {row[0]: Reason(*row) for row in rows}
    assert len(table) == len(rows), "a reason code stands twice in the table"
    return table


REASONS: dict[str, Reason] = _table(
    # discovery
    ("out-of-scope", "scope", "excluded", "outside the crawl's scope", "widen crawl.scope"),
    ("scope-exclude", "scope", "excluded", "matches crawl.scope.exclude", "narrow crawl.scope.exclude"),
    ("too-deep", "scope", "excluded", "deeper than crawl.max_depth", "raise crawl.max_depth"),
    ("url-too-long", "scope", "excluded", "longer than crawl.max_url_length", "raise crawl.max_url_length"),
    ("too-many-params", "scope", "excluded", "more query parameters than crawl.max_query_params", "raise crawl.max_query_params"),
    ("repeated-segments", "scope", "excluded", "a path segment repeats more than crawl.max_repeated_segments", "raise crawl.max_repeated_segments"),
    ("unwanted-extension", "scope", "excluded", "its path ends like a file that is not a page", "nothing: media and archives are out of scope"),
    ("trap", "scope", "excluded", "its URL template yields copies without end", "add the host to crawl.trusted or narrow the scope"),
    ("low-yield", "scope", "excluded", "most pages of its domain repeat what others of it say", "add the host to crawl.trusted or narrow the scope"),
    ("host-retired", "fetch", "excluded", "its host has not answered for days and is given up for now", "run again a month later: it is then tried once more"),
    ("host-budget", "scope", "excluded", "the host's page budget is used up", "raise crawl.max_pages_per_host"),
    ("domain-budget", "scope", "excluded", "the domain's page budget is used up", "raise crawl.max_pages_per_domain"),
    ("too-many-redirects", "scope", "excluded", "more redirects in a row than crawl.max_redirects", "nothing: the site sends visitors round"),
    ("blocked", "scope", "excluded", "blocked by the operator", "lift the block in the control log"),
    ("taken-down", "takedown", "taken-down", "taken down on request", "nothing: a takedown is final"),
    # access
    ("robots", "robots", "refused", "robots.txt refuses it", "nothing: the site said no"),
    ("robots-denied", "robots", "refused", "robots.txt itself is denied to us", "ask the site, or set optout.robots_denied"),
    ("robots-redirects", "robots", "refused", "robots.txt redirects without end", "ask the site"),
    # use
    ("robots-peer", "consent", "refused", "robots.txt refuses AI training crawlers", "see optout.peers"),
    ("content-signal", "consent", "refused", "Content-Signal says no to AI training", "nothing: the site said no"),
    ("content-usage", "consent", "refused", "Content-Usage (AIPREF) says no to AI training", "nothing: the site said no"),
    ("tdmrep", "consent", "refused", "text and data mining rights are reserved (TDMRep)", "ask the rights holder"),
    ("ai-txt", "consent", "refused", "ai.txt refuses training", "nothing: the site said no"),
    ("rsl", "consent", "refused", "an RSL licence does not permit free AI training", "ask the rights holder"),
    ("x-robots-tag", "consent", "refused", "an X-Robots-Tag header refuses", "nothing: the site said no"),
    ("meta-robots", "consent", "refused", "a robots meta element refuses", "nothing: the site said no"),
    ("http-402", "consent", "refused", "the site asks for payment", "make a contract with the site"),
    ("http-401", "consent", "refused", "the page needs a login or a licence", "nothing: we never log in"),
    ("http-403", "consent", "refused", "the server forbids it", "ask the site"),
    ("http-451", "consent", "refused", "unavailable for legal reasons", "nothing"),
    ("operator-list", "consent", "refused", "on the operator's opt-out list", "see optout.domains_file"),
    ("no-permission", "consent", "refused", "no statement permits training, and the profile asks for one", "see optout.profile"),
    ("held", "consent", "refused", "a licence statement could not be read, so it is held", "ask the site"),
    ("stale", "consent", "pending", "its host's statements are older than optout.recheck_after", "run corpus export again when the host answers"),
    # fetch
    ("dns", "fetch", "failed", "its host name does not resolve", "nothing, or run again later"),
    ("connect", "fetch", "failed", "the server does not accept connections", "run again later"),
    ("tls", "fetch", "failed", "the TLS handshake or certificate failed", "see crawl.ca_file and crawl.tls"),
    ("timeout", "fetch", "failed", "the server did not answer in time", "run again later"),
    ("reset", "fetch", "failed", "the connection broke", "run again later"),
    ("protocol", "fetch", "failed", "the answer is not valid HTTP", "nothing"),
    ("address-refused", "fetch", "failed", "its host resolves to a private or local address", "see crawl.allow_private"),
    ("http-429", "fetch", "failed", "the server asked us to slow down until tries ran out", "run again later"),
    ("http-503", "fetch", "failed", "the server was unavailable until tries ran out", "run again later"),
    ("http-5xx", "fetch", "failed", "the server failed", "run again later"),
    ("http-4xx", "fetch", "failed", "the server refused the request", "nothing"),
    ("challenge", "fetch", "failed", "a bot challenge stood in the way", "ask the site; challenges are never solved"),
    ("content-type", "fetch", "failed", "not a page (unwanted Content-Type)", "see crawl.content_types"),
    ("too-slow", "fetch", "failed", "the body came too slowly", "run again later"),
    ("decode", "fetch", "failed", "the body does not decode, or is a bomb", "nothing"),
    ("bad-redirect", "fetch", "failed", "a redirect without a usable target", "nothing"),
    ("http-404", "fetch", "gone", "not found", "nothing"),
    ("http-410", "fetch", "gone", "gone for good", "nothing"),
    ("redirected", "fetch", "excluded", "it redirects; the target has its own row", "ask why about the target"),
    # waiting
    ("crawl-delay", "robots", "pending", "the host asks for a longer Crawl-delay than crawl.max_crawl_delay", "raise crawl.max_crawl_delay"),
    ("retry-after", "fetch", "pending", "the host asked us to come back later", "run again after its time"),
    ("robots-unreachable", "robots", "pending", "robots.txt cannot be read, so nothing is asked", "run again later"),
    ("policy-unreachable", "consent", "pending", "a statement file of its host cannot be read, so nothing is asked", "run again later"),
    ("backing-off", "fetch", "pending", "the host is backing off", "run again later"),
    ("queued", "fetch", "pending", "known, and not yet asked for", "run again"),
    ("budget", "fetch", "pending", "the crawl's budget was reached first", "raise the budget and run again"),
    # text
    ("near-copy", "dedup", "duplicate", "a near copy of a page already stored", "see crawl.near_copies"),
    ("no-text", "extract", "dropped", "no main text was found", "nothing"),
    ("unsupported-type", "extract", "dropped", "not a type that text is extracted from", "nothing"),
    ("too-large", "extract", "dropped", "past the parser's work limit", "nothing"),
    ("stuck", "extract", "dropped", "the parser did not finish within its work limit", "report the page"),
    ("poison", "extract", "dropped", "the record crashed the parser", "report the page"),
    ("unprocessed", "extract", "pending", "stored, and not yet processed", "run corpus process"),
    ("undecided", "export", "pending", "measured, and not yet decided about by a release", "run corpus export"),
    ("language", "language", "dropped", "not in a wanted language", "see corpus.languages"),
    ("quality", "quality", "dropped", "a quality rule dropped it", "see corpus sample --dropped"),
    ("exact-duplicate", "dedup", "duplicate", "the same text as another page", "nothing"),
    ("near-duplicate", "dedup", "duplicate", "nearly the same text as another page", "see dedup.threshold"),
    ("older-version", "export", "dropped", "an older version of a page that is in", "see export.versions"),
    ("gone", "export", "dropped", "its page is gone by now", "see export.gone"),
    ("cluster-refused", "consent", "dropped", "a verified near copy of it is refused", "see optout.cluster"),
)  # fmt: skip


def reason(code: str) -> Reason:
    """The row of a code; an unknown code is a broken promise of ours, so it raises KeyError."""
    return REASONS[code]
