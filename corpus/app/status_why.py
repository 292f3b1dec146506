"""`why` as a page: the verdict in one sentence, then the evidence for it, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpus.app.status_pages import address, of_host
from corpus.observe.markup import Child, Markup, crawled, el
from corpus.observe.tables import facts, table
from corpus.url.host import host_of

TONE = {"exported": "good", "pending": "warn", "unknown": "warn", "duplicate": "warn"}


def why_page(told: Mapping[str, Any]) -> Child:
    """CONTRACT's `why` document for a person."""
    url = str(told["canonical_url"])
    verdict = str(told["verdict"])
    rows: list[tuple[str, Child]] = [
        ("verdict", el("span", verdict, class_=f"pill {TONE.get(verdict, 'bad')}")),
        ("step", f"{told['step']}" + (f", {told['reason']}" if told["reason"] else "")),
        ("state", str(told["state"] or "never seen")),
        ("attempts", told["attempts"]),
        ("next", told["next_at"] or "nothing is due"),
        ("host", el("a", crawled(host_of(url)), href=of_host(host_of(url)))),
        ("releases", ", ".join(told["releases"]) or "in none"),
    ]
    found = told["discovery"]
    if found:
        via: Child = [el("div", _link(str(page))) for page in found["via"][:5]] or "a seed"
        rows.append(("found at", el("div", el("div", f"depth {found['depth']}"), via)))
    return [
        el("p", crawled(told["sentence"], 1000)),
        facts(rows),
        _consent(told["consent"]),
        _fetches(told["fetches"]),
        *_document(told),
    ]


def _consent(consent: Mapping[str, Any]) -> Child:
    rows: list[list[Child]] = [
        [
            item["axis"], el("span", item["verdict"], class_="pill"), item["protocol"], crawled(item["source"]),
            item["line_no"] or "", el("code", crawled(item["raw"])), item["read_at"] or "",
        ]
        for item in consent["evidence"]
    ]  # fmt: skip
    words = f"access {consent['access']}, use {consent['use']}: " + (
        "it may leave in a release" if consent["export"] else "it does not leave in a release"
    )
    heads = ("axis", "says", "protocol", "where", "line", "words", "read")
    return [el("h2", "Consent"), el("p", words), table("statements", heads, rows, numbers=(4,))]


def _fetches(fetches: list[Mapping[str, Any]]) -> Child:
    rows: list[list[Child]] = [
        [
            row["at"],
            row["status"] or "",
            row["outcome"],
            el("code", f"{row['warc']['file']} @ {row['warc']['offset']}") if row["warc"] else "not stored",
        ]
        for row in fetches
    ]
    return [el("h2", "Visits"), table("visits", ("when", "status", "outcome", "archive"), rows, numbers=(1,))]


def _document(told: Mapping[str, Any]) -> list[Child]:
    document, cluster = told["document"], told["cluster"]
    if document is None:
        return []
    rows: list[tuple[str, Child]] = [
        ("title", crawled(told.get("title")) if told.get("title") else "none"),
        ("id", el("code", document["id"])),
        ("language", f"{document['language']} ({document['language_score']})"),
        ("charset", f"{document['charset']}, by {document['charset_source']}"),
        ("extractor", document["extractor"]),
    ]
    if cluster is not None:
        rows.append(("cluster", el("div", f"{cluster['size']} documents, kept is ", _link(str(cluster["keep_url"] or "")))))
    rules: list[list[Child]] = [[rule["rule"], rule["measured"], rule["limit"], rule["keep"]] for rule in told["rules"]]
    return [
        el("h2", "Document"),
        facts(rows),
        table("rules it failed", ("rule", "measured", "limit", "kept is"), rules, numbers=(1, 2)),
    ]


def _link(url: str) -> Markup:
    return el("a", crawled(url), href=address("/why", url=url), class_="mono")
