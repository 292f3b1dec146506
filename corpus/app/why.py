"""What became of one URL or id, and on what evidence: the whole chain, from discovery to release. Read-only.

Everything is looked up where it is true: state and clocks in the frontier, raw lines in the consent log, fetches in
WARC, measurements and decisions in the snapshot. Nothing is fetched.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from corpus.app.catalog import shards_with
from corpus.app.consent_views import current_judge
from corpus.app.frontier_files import read_all
from corpus.app.frontier_view import host_row, url_row, versions
from corpus.app.project import Project
from corpus.app.release import releases, shard_files
from corpus.app.url_states import measured_segments, state_of
from corpus.app.views import Views
from corpus.errors import UsageError
from corpus.model import Consent
from corpus.optout.decide import reason_of
from corpus.reasons import REASONS
from corpus.url.canonical import canonical_url
from corpus.url.host import authority_of, host_of

_ID = re.compile(r"[0-9a-f]{32}\Z")
_VIA_MAX = 32

_DOCUMENT = """
SELECT d.url, d.id, d.language, d.language_score, d.charset, d.charset_source, d.extractor, d.outcome, d.fetched_at, d.http_status, d.file_path,
    d.warc_offset, d.warc_length, d.content_sha256, d.near_original, d.evidence, e.stage, e.reason, e.drop_rule, e.measured, e."limit", e.keep,
    e.cluster_id, e.cluster_size, e.keep_id, e.keep_url, e.similarity, e.latest
FROM measured_documents d LEFT JOIN document_decisions e ON e.id = d.id AND e.file_path = d.file_path AND e.warc_offset = d.warc_offset
WHERE {where} ORDER BY d.fetched_at, d.file_path, d.warc_offset
"""


NEVER_ASKED: dict[str, Any] = {
    "access": "defer", "use": "unknown", "gate": "defer", "store": False, "export": False, "evidence": [],
}  # fmt: skip
"""Nobody has asked this URL's host anything, so nothing may be said for it."""


def why(project: Project, name: str) -> dict[str, Any]:
    """CONTRACT's `why` document for a URL, a `url_id` or an `id`."""
    with Views(project) as views:
        views.make("measured_documents", "document_decisions")
        url = _url_of(project, views, name)
        rows = _documents(views, url)
        row = url_row(project, url)
        version = _version(rows, name)
        exported = _in_releases(project, [version["id"]] if version else [r["id"] for r in rows], views)
    latest = version or next((r for r in reversed(rows) if r["latest"]), rows[-1] if rows else None)
    judge = current_judge(project)
    asked = judge.rules(authority_of(url)) is not None
    consent, _ = judge.consent(url, list(latest["evidence"] or []) if latest else [])
    step, reason, verdict = _verdict(project, url, row, latest, bool(exported))
    return {
        "url": name if not _ID.match(name) else url,
        "canonical_url": url,
        "id": latest["id"] if latest else None,
        "verdict": verdict,
        "step": step,
        "reason": reason,
        "sentence": _sentence(url, row, latest, consent, verdict, reason),
        "state": state_of(row, measured_segments(project)) if row else ("parsed" if rows else None),
        "next_at": _next_at(project, row),
        "attempts": row["attempts"] if row else 0,
        "discovery": _discovery(project, row),
        "consent": _consent(consent, row, reason) if asked or latest else NEVER_ASKED,
        "fetches": _fetches(row, rows),
        "versions": [
            {**link, "first_at": _iso(link["first_at"]), "last_at": _iso(link["last_at"])} for link in versions(project, url)
        ],
        "document": _document(latest),
        "rules": _rules(latest),
        "cluster": _cluster(latest),
        "releases": exported,
    }


def _url_of(project: Project, views: Views, name: str) -> str:
    if _ID.match(name):
        found = views.connection.execute(
            "SELECT url FROM measured_documents WHERE id = ? OR url_id = ? LIMIT 1", [name, name]
        ).fetchone()
        known = found or next(
            read_all(project.layout, "SELECT url FROM urls WHERE url_id = ? LIMIT 1", (_url_id_of(project, name),)), None
        )
        if known:
            return str(known[0])
        raise UsageError("no document and no URL has this id", name, "give the URL")
    url = canonical_url(name)
    if url is None:
        raise UsageError("neither an http(s) URL nor an id of 32 hex digits", name[:200], "write the URL with its scheme")
    return url


def _url_id_of(project: Project, name: str) -> str:
    """The id of a URL; of a document that was taken down, its URL's, which the order names."""
    order = project.control.tombstones().blocks(id=name)
    return order.url_id if order is not None and order.url_id else name


def _version(rows: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    """The version that an id names, where it was judged on its own: the newest, or a major older one (`export.versions`)."""
    return next((r for r in rows if r["id"] == name and r["stage"] is not None and r["reason"] != "older-version"), None)


def _documents(views: Views, url: str) -> list[dict[str, Any]]:
    cursor = views.connection.execute(_DOCUMENT.format(where="d.url = ?"), [url])
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _in_releases(project: Project, ids: list[str], views: Views) -> list[str]:
    """Names of the releases that hold one of these ids."""
    found = []
    for name, manifest in releases(project) if ids else []:
        known = shards_with(project, name, manifest, ids)
        files = shard_files(project, name, manifest if known is None else {"shards": known})
        if files:
            query = "SELECT count(*) FROM read_parquet(?, hive_partitioning = false) WHERE id IN (SELECT unnest(?))"
            counted = views.connection.execute(query, [files, ids]).fetchone()
            if counted and counted[0]:
                found.append(name)
    return found


def _verdict(
    project: Project, url: str, row: dict[str, Any] | None, latest: dict[str, Any] | None, exported: bool
) -> tuple[str, str, str]:
    """(step, reason, verdict): a takedown first, then what the newest decision says, then the frontier's state."""
    down = project.control.tombstones().blocks(url=url, id=latest["id"] if latest else "")
    if down is not None and down.action == "takedown":
        return "takedown", "taken-down", "taken-down"
    if latest is not None and latest["stage"] is not None:
        reason = latest["reason"] or ""
        if not reason:
            return ("export", "", "exported") if exported else ("export", "queued", "pending")
        return REASONS[reason].step, reason, REASONS[reason].verdict
    if latest is not None:
        outcome = str(latest["outcome"])
        return (
            ("export", "undecided", "pending") if outcome == "ok" else (REASONS[outcome].step, outcome, REASONS[outcome].verdict)
        )
    if row is None:
        return "scope", "", "unknown"
    state, reason = str(row["state"]), str(row["reason"] or "")
    if state in ("queued", "parked"):
        host = host_row(project, host_of(url)) or {}
        reason = str(host.get("reason") or reason) if host.get("state") == "parked" else reason or "queued"
        return (REASONS[reason].step if reason in REASONS else "fetch"), reason, "pending"
    if state in ("fetched", "not-modified"):
        copy = bool(row["near_original"])
        return ("dedup", "near-copy", "duplicate") if copy else ("extract", "unprocessed", "pending")
    return REASONS[reason].step, reason, REASONS[reason].verdict


def _sentence(
    url: str, row: dict[str, Any] | None, latest: dict[str, Any] | None, consent: Consent, verdict: str, reason: str
) -> str:
    if verdict == "unknown":
        return f"{url} was never seen: no seed, page or sitemap of this crawl names it"
    if verdict == "exported":
        return f"{url} is in the release"
    words = REASONS[reason].sentence if reason in REASONS else "it is on its way to the next release"
    if latest is not None and latest["drop_rule"]:
        words += f": {latest['drop_rule']} measured {latest['measured']:g}, kept is {latest['keep']}"
    elif row is not None and row["rule"]:
        line = f" line {row['rule_line']}" if row["rule_line"] else ""
        words += f":{line} \u201c{str(row['rule']).strip()}\u201d"
    elif reason and not consent.export and reason_of(consent) == reason:
        raw = next((e.raw for e in consent.evidence if e.verdict == "no"), "")
        words += f": \u201c{raw.strip()}\u201d" if raw else ""
    elif latest is not None and latest["keep_url"] and reason.endswith("duplicate"):
        words += f": {latest['keep_url']} is kept"
    elif row is not None and row["target"]:
        words += f": {row['target']}"
    elif row is not None and row["near_original"]:
        words += f": {row['near_original']}"
    return f"{url}: {words}"


def _next_at(project: Project, row: dict[str, Any] | None) -> str | None:
    retired = row is not None and row["reason"] == "host-retired"
    if row is None or (row["state"] not in ("queued", "parked") and not retired):
        return None
    host = host_row(project, str(row["host"])) or {}
    times = [t for t in (row["next_at"], host.get("next_contact")) if t]
    return _iso(max(times)) if times else None


def _discovery(project: Project, row: dict[str, Any] | None) -> dict[str, Any]:
    """The chain of pages back to the seed: the best sighting of each."""
    if row is None:
        return {"seed": None, "depth": None, "via": []}
    via: list[str] = []
    at = row
    while at and at["via"] and len(via) < _VIA_MAX and at["via"] not in via:
        via.append(str(at["via"]))
        parent = url_row(project, str(at["via"]))
        if parent is None:
            break
        at = parent
    return {"seed": via[-1] if via else str(row["url"]), "depth": row["depth"], "via": via}


def _consent(consent: Consent, row: dict[str, Any] | None, reason: str) -> dict[str, Any]:
    """Both verdicts with every raw line; a refusal by the response itself is only known to the frontier's row."""
    document = consent_document(consent)
    if row is not None and row["rule"] and not any(e["raw"] == row["rule"] for e in document["evidence"]):
        axis = "access" if reason.startswith("robots") and reason != "robots-peer" else "use"
        document["evidence"].append(
            {
                "protocol": row["protocol"] or reason, "source": "response" if not row["authority_digest"] else "", "line_no": row["rule_line"],
                "raw": row["rule"], "agent": "", "file_digest": row["authority_digest"] or "", "read_at": _iso(row["fetched_at"]),
                "axis": axis, "verdict": "no",
            }
        )  # fmt: skip
        document |= {axis: "no", "use": "no", "gate": "skip", "store": False, "export": False}
    return document


def consent_document(consent: Consent) -> dict[str, Any]:
    """The Consent object as JSON."""
    return {
        "access": consent.access.value,
        "use": consent.use.value,
        "gate": consent.gate.value,
        "store": consent.store,
        "export": consent.export,
        "evidence": [
            {
                "protocol": e.protocol, "source": e.source, "line_no": e.line_no, "raw": e.raw, "agent": e.agent, "file_digest": e.file_digest,
                "read_at": _iso(e.read_at), "axis": e.axis, "verdict": e.verdict,
            }
            for e in consent.evidence
        ],
    }  # fmt: skip


def _fetches(row: dict[str, Any] | None, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    fetches = [
        {
            "at": _stamp(r["fetched_at"]),
            "status": r["http_status"],
            "outcome": r["outcome"],
            "redirects": [],
            "warc": {"file": r["file_path"], "offset": r["warc_offset"], "length": r["warc_length"]},
            "content_sha256": r["content_sha256"],
        }
        for r in rows
    ]
    stored = {(f["warc"]["file"], f["warc"]["offset"]) for f in fetches if isinstance(f["warc"], dict)}
    if row is not None and row["fetched_at"] and (row["warc_file"], row["warc_offset"]) not in stored:
        warc = (
            {"file": row["warc_file"], "offset": row["warc_offset"], "length": row["warc_length"]} if row["warc_file"] else None
        )
        fetches.append(
            {
                "at": _iso(row["fetched_at"]),
                "status": row["http_status"],
                "outcome": row["reason"] or row["state"],
                "redirects": [row["target"]] if row["target"] else [],
                "warc": warc,
                "content_sha256": row["content_sha256"] or None,
            }
        )
    return fetches


def _document(latest: dict[str, Any] | None) -> dict[str, Any] | None:
    if latest is None:
        return None
    return {name: latest[name] for name in ("id", "language", "language_score", "charset", "charset_source", "extractor")}


def _rules(latest: dict[str, Any] | None) -> list[dict[str, Any]]:
    if latest is None or not latest["drop_rule"]:
        return []
    return [{"rule": latest["drop_rule"], "measured": latest["measured"], "limit": latest["limit"], "keep": latest["keep"]}]


def _cluster(latest: dict[str, Any] | None) -> dict[str, Any] | None:
    if latest is None or not latest["cluster_id"]:
        return None
    return {
        "id": latest["cluster_id"],
        "size": latest["cluster_size"],
        "keep_id": latest["keep_id"],
        "keep_url": latest["keep_url"],
        "similarity": latest["similarity"],
    }


def _iso(seconds: float | None) -> str | None:
    return (
        None
        if seconds is None
        else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def _stamp(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds") + "Z"
