"""The decision table: what each statement decides, as data. Code walks it; nothing else decides anything.

A row is (signal, value): what it means for the request, the stored body, training and a release. `protocol` is the
reason code a refusal is reported under (`corpus/reasons.py`). `axis` and `verdict` are what the evidence carries, and
a test derives the four columns from them through `decide`, so that a row cannot say one thing and do another.

Columns: fetch `yes|no|skip|defer|hold` before the request (`done` for what only a response can say), store and export
`yes|no`, train `yes|no|unknown`. Marks: [P] a choice of ours where the source leaves room, always the stricter.
"""

from __future__ import annotations

from typing import NamedTuple

from corpus.reasons import REASONS


class Row(NamedTuple):
    protocol: str
    axis: str
    verdict: str
    fetch: str
    store: str
    train: str
    export: str


_REFUSED = ("skip", "no", "no", "no")
_GRANTED = ("yes", "yes", "yes", "yes")
_SILENT = ("yes", "yes", "unknown", "yes")
_WAIT = ("defer", "no", "unknown", "no")
_HOLD = ("hold", "no", "unknown", "no")
_SEEN = ("done", "yes", "unknown", "yes")
_DROPPED = ("done", "no", "no", "no")

TABLE: dict[tuple[str, str], Row] = {
    # access: RFC 9309
    ("robots", "disallow"): Row("robots", "access", "no", "no", "no", "no", "no"),
    ("robots", "allow"): Row("robots", "access", "yes", *_SILENT),
    ("robots", "no-match"): Row("robots", "access", "yes", *_SILENT),
    ("robots-file", "absent"): Row("robots", "access", "yes", *_SILENT),
    ("robots-file", "denied"): Row("robots-denied", "access", "no", "no", "no", "no", "no"),  # [P] 401, 403, 451
    ("robots-file", "redirects"): Row("robots-redirects", "access", "no", "no", "no", "no", "no"),  # [P] more than five
    ("robots-file", "unreachable"): Row("robots-unreachable", "access", "defer", *_WAIT),  # 5xx, 429, challenge, cut body
    ("robots-file", "silent"): Row(
        "robots-unreachable", "access", "no", *_WAIT
    ),  # no answer at all: complete disallow, asked again
    # use, from robots.txt
    ("peer", "disallow"): Row("robots-peer", "use", "no", *_REFUSED),  # [P] optout.peers
    ("peer", "too-few"): Row("robots-peer", "use", "unknown", *_SILENT),
    ("content-signal", "ai-train=no"): Row("content-signal", "use", "no", *_REFUSED),
    ("content-signal", "ai-train=yes"): Row("content-signal", "use", "yes", *_GRANTED),
    ("content-signal", "use=immediate"): Row("content-signal", "use", "no", *_REFUSED),
    ("content-signal", "use=reference"): Row("content-signal", "use", "no", *_REFUSED),  # [P]
    ("content-signal", "use=full"): Row("content-signal", "use", "unknown", *_SILENT),
    ("content-signal", "unstated"): Row("content-signal", "use", "unknown", *_SILENT),
    ("content-usage", "train-ai=n"): Row("content-usage", "use", "no", *_REFUSED),
    ("content-usage", "train-ai=y"): Row("content-usage", "use", "yes", *_GRANTED),
    ("content-usage", "near-miss"): Row("content-usage", "use", "no", *_REFUSED),  # [P] optout.near_miss
    ("content-usage", "unstated"): Row("content-usage", "use", "unknown", *_SILENT),  # ai-use, search: carried, not decided
    # use, from other files of the authority
    ("tdmrep", "1"): Row("tdmrep", "use", "no", *_REFUSED),
    ("tdmrep", "0"): Row("tdmrep", "use", "yes", *_GRANTED),
    ("tdmrep", "unreadable"): Row("tdmrep", "use", "hold", *_HOLD),  # [P] it mentions the key, and does not parse
    ("ai-txt", "refuses"): Row("ai-txt", "use", "no", *_REFUSED),  # [P]
    ("rsl", "prohibited"): Row("rsl", "use", "no", *_REFUSED),
    ("rsl", "not-permitted"): Row("rsl", "use", "no", *_REFUSED),
    ("rsl", "paid"): Row("rsl", "use", "no", *_REFUSED),
    ("rsl", "invalid"): Row("rsl", "use", "no", *_REFUSED),  # no obtainable valid document: unlicensed
    ("rsl", "free"): Row("rsl", "use", "yes", *_GRANTED),
    ("rsl", "attribution"): Row("rsl", "use", "yes", *_GRANTED),  # every row of a release carries its URL
    ("rsl", "not-rsl"): Row("rsl", "use", "hold", *_HOLD),  # [P] License points at something that is no RSL document
    ("rsl", "elsewhere"): Row("rsl", "use", "hold", *_HOLD),  # [P] another owner's host: it is not asked
    ("rsl", "unread"): Row(
        "policy-unreachable", "use", "defer", *_WAIT
    ),  # advertised, and not fetched yet, or its server is in trouble
    ("policy-file", "unreachable"): Row("policy-unreachable", "use", "defer", *_WAIT),  # [P] what cannot be read never allows
    # use, from the response
    ("page-robots", "noai"): Row("x-robots-tag", "use", "no", *_DROPPED),
    ("page-robots", "noml"): Row("x-robots-tag", "use", "no", *_DROPPED),
    ("page-robots", "noindex"): Row("x-robots-tag", "use", "no", *_DROPPED),  # [P] optout.noindex
    ("page-robots", "none"): Row("x-robots-tag", "use", "no", *_DROPPED),  # [P] optout.noindex
    ("page-robots", "noarchive"): Row("x-robots-tag", "use", "no", *_DROPPED),  # [P] optout.noarchive
    ("page-robots", "nocache"): Row("x-robots-tag", "use", "no", *_DROPPED),  # [P] optout.noarchive
    ("page-robots", "expired"): Row("x-robots-tag", "use", "no", *_DROPPED),  # unavailable_after in the past
    ("page-robots", "expires"): Row("x-robots-tag", "use", "unknown", *_SEEN),  # until its date
    ("page-robots", "noimageai"): Row("x-robots-tag", "use", "unknown", *_SEEN),  # images only
    ("page-robots", "nofollow"): Row("x-robots-tag", "use", "unknown", *_SEEN),  # no links
    ("page-robots", "noted"): Row("x-robots-tag", "use", "unknown", *_SEEN),  # nosnippet and the like
    ("page-licence", "unread"): Row("rsl", "use", "no", *_DROPPED),  # advertised by the response, document not at hand
    ("http", "401"): Row("http-401", "use", "no", *_DROPPED),
    ("http", "402"): Row("http-402", "use", "no", *_DROPPED),  # never paid without a contract
    ("http", "403"): Row("http-403", "use", "no", *_DROPPED),
    ("http", "451"): Row("http-451", "use", "no", *_DROPPED),
    ("http", "challenge"): Row("challenge", "use", "no", *_DROPPED),  # never solved
    # the operator
    ("operator", "listed"): Row("operator-list", "access", "no", "no", "no", "no", "no"),
    ("operator", "permission-only"): Row("no-permission", "use", "no", *_REFUSED),
}
assert all(row.protocol in REASONS for row in TABLE.values()), "every refusal needs a reason that people can read"
assert all(row.train == "no" and row.export == "no" for row in TABLE.values() if row.axis == "use" and row.verdict == "no")
