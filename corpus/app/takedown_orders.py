"""`corpus takedown add` and `list`: orders to forget a domain, a URL or an id, and what has become of each.

An order is one durable line of the control log, and every reader and worker obeys it from then on. A URL is kept as its
digest only: what is to be forgotten is not written down again.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from corpus.app.clusters import CLUSTERS
from corpus.app.domain_target import domain_of, owned_domain
from corpus.app.frontier_files import read_all
from corpus.app.project import Project
from corpus.app.snapshot import latest_snapshot
from corpus.app.takedown_targets import REMOVING
from corpus.app.views import Views
from corpus.errors import UsageError
from corpus.model import url_id
from corpus.store.control_log import ControlEntry
from corpus.url.canonical import canonical_url
from corpus.url.host import host_of

PROOFS = "proofs/takedown-"
_ID = re.compile(r"[0-9a-f]{32}\Z", re.IGNORECASE)
_REASON_MAX = 500
Scope = Literal["copy", "cluster"]


@dataclass(frozen=True, slots=True)
class Added:
    """What came of an order. `n` is 0 where it was given before (`earlier`); `known`: URLs of this folder it covers now."""

    n: int
    kind: str
    value: str
    known: int
    members: int
    earlier: int = 0

    def document(self) -> dict[str, Any]:
        return {
            "n": self.n or self.earlier, "new": bool(self.n), "kind": self.kind, "value": self.value, "known": self.known,
            "members": self.members,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Named:
    kind: str
    value: str
    url_id: str = ""
    also: tuple[str, ...] = ()


def add(project: Project, name: str, reason: str, *, scope: Scope = "copy", at: float | None = None) -> Added:
    """Order a takedown: in force for every reader and worker when this returns, and again changes nothing.

    `scope = "cluster"`: of every member of the near-duplicate cluster too. Raises UsageError for what is no domain, URL or id.
    """
    if not reason.strip():
        raise UsageError("a takedown needs a reason", "--reason", "for example the number of the request")
    named = _named(project, name.strip())
    members = set(named.also)
    if scope == "cluster":
        members |= set(cluster_members(project, named.kind, named.value, named.url_id))
    earlier = _earlier(project, named, members)
    if earlier is not None:
        return Added(0, named.kind, named.value, _known(project, named, members), len(members), earlier.n)
    detail: dict[str, Any] = {"scope": scope}
    if members:
        detail["members"] = sorted(members)
    n = project.control.append(
        "takedown", at=time.time() if at is None else at, kind=named.kind, value=named.value, url_id=named.url_id,
        reason=reason.strip()[:_REASON_MAX], detail=detail,
    )  # fmt: skip
    return Added(n, named.kind, named.value, _known(project, named, members), len(members))  # in force before it is counted


def _named(project: Project, name: str) -> _Named:
    """The target as the log keeps it. A URL means the page, whichever scheme it was typed with."""
    if _ID.match(name):
        return _by_id(project, name.lower())
    url = canonical_url(name) if "://" in name else None
    if url is not None and domain_of(host_of(url)):
        other = "https" + url[4:] if url.startswith("http:") else "http" + url[5:]
        return _Named("url", url_id(url), also=(url_id(canonical_url(other) or other),))
    if not name or set(name) & set("/?#@ \t\r\n"):
        raise UsageError(
            "neither a domain nor an http(s) URL nor an id of 32 hex digits",
            name[:200],
            "write example.org, a whole URL, or an id",
        )
    return _Named("domain", owned_domain(project, name))


def _by_id(project: Project, value: str) -> _Named:
    """An id of a document with its URL; the id of a URL is one too. An unknown one is kept as it is."""
    with Views(project) as views:
        views.make("measured_documents")
        query = "SELECT id = $value, url_id FROM measured_documents WHERE id = $value OR url_id = $value LIMIT 1"
        found = views.connection.execute(query, {"value": value}).fetchone()
    if found is None:
        known = next(read_all(project.layout, "SELECT 1 FROM urls WHERE url_id = ? LIMIT 1", (value,)), None)
        return _Named("url" if known else "id", value)
    return _Named("id", value, str(found[1])) if found[0] else _Named("url", value)


def cluster_members(project: Project, kind: str, value: str, of_url: str) -> Iterator[str]:
    """`url_id`s of everything in the near-duplicate clusters of a target, by the newest clusters there are."""
    folder = latest_snapshot(project, CLUSTERS)
    if folder is None:
        return
    with Views(project) as views:
        views.make("measured_documents", "cluster_rows")
        where = (
            "d.domain = $value OR d.host = $value OR ends_with(d.host, '.' || $value)"
            if kind == "domain"
            else "d.url_id = $url OR d.id = $value"
        )
        query = (
            "SELECT DISTINCT m.url_id FROM cluster_rows c JOIN measured_documents m ON m.id = c.id WHERE c.cluster_id IN ("
            f"SELECT o.cluster_id FROM cluster_rows o JOIN measured_documents d ON d.id = o.id WHERE {where}) ORDER BY 1"
        )
        values = {"value": value} if kind == "domain" else {"value": value, "url": of_url or value}
        yield from (str(row[0]) for row in views.connection.execute(query, values).fetchall())


def _known(project: Project, named: _Named, members: set[str]) -> int:
    """URLs of this folder that the order covers, stored or only known."""
    with Views(project) as views:
        views.make("frontier_urls", "measured_documents")
        ids = sorted(members | {named.url_id, named.value if named.kind == "url" else ""} - {""})
        host = named.value if named.kind == "domain" else ""
        where = "list_contains($ids, url_id) OR ($host <> '' AND (host = $host OR ends_with(host, '.' || $host)))"
        query = (
            f"SELECT count(*) FROM (SELECT url_id FROM frontier_urls WHERE kind = 'page' AND ({where})"
            f" UNION SELECT url_id FROM measured_documents WHERE {where})"
        )
        found = views.connection.execute(query, {"ids": ids, "host": host}).fetchone()
    return int(found[0]) if found else 0


def _earlier(project: Project, named: _Named, members: set[str]) -> ControlEntry | None:
    """The order that covers all of this already."""
    index = project.control.tombstones()
    probes = [
        index.blocks(domain=named.value)
        if named.kind == "domain"
        else index.blocks(url_id=named.url_id or named.value, id=named.value),
        *(index.blocks(url_id=member) for member in members),
    ]
    down = [order for order in probes if order is not None and order.action == "takedown"]
    return down[0] if len(down) == len(probes) else None


def listed(project: Project) -> list[dict[str, Any]]:
    """Every order to remove something, oldest first, with its state and the proof of what was applied."""
    proofs = completed(project)
    rows = []
    for order in project.control.read():
        if order.action in REMOVING:
            proof = next((name for name, told in proofs if told["control"] >= order.n), None)
            rows.append(
                {
                    "n": order.n, "at": iso(order.at), "action": order.action, "kind": order.kind, "value": order.value,
                    "scope": order.detail.get("scope", "copy"), "members": len(order.members), "reason": order.reason,
                    "cause": order.detail.get("cause", "request"), "state": "pending" if proof is None else "applied", "proof": proof,
                }
            )  # fmt: skip
    return rows


def completed(project: Project) -> list[tuple[str, dict[str, Any]]]:
    """(name, content) of every proof, oldest first."""
    return [(name, json.loads(project.objects.get(name))) for name in project.objects.list(PROOFS)]


def iso(seconds: float) -> str:
    """Epoch seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
