"""`corpus report eu`: the summary of training content that Art. 53(1)(d) of the AI Act asks for, as far as this folder knows it.

Follows the Commission's template, C(2025) 8311: sections 1.3, 2.1, 2.3 and 3.1 are filled from a release's manifest, its
snapshot and the families behind it. What only the provider of a model knows is marked, word for word, and never guessed. No
clock speaks: the same release gives the same bytes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.frontier_view import CHALLENGE
from corpus.app.project import Project
from corpus.app.push import newest_release
from corpus.app.release import RELEASE_STAGE
from corpus.app.report_eu_domains import PROVIDERS, DomainTable
from corpus.app.snapshot import Snapshot, load_snapshot, tombstone_table
from corpus.errors import StoreError, UsageError
from corpus.export.consent_counts import USES, turned_down
from corpus.export.domains import read_domains
from corpus.export.summary import DomainRow
from corpus.model import FunnelStep
from corpus.optout.honoured import honoured
from corpus.optout.settings import OptoutSettings
from corpus.reasons import REASONS
from corpus.store.commits import CommitRecord
from corpus.url.host import suffix_list_version

MARK = "TO BE PROVIDED BY PROVIDER"
"""Stands, word for word, wherever only the provider of a model can answer."""
TEMPLATE = "AI Act, Art. 53(1)(d): template of the public summary of training content, C(2025) 8311"
_SIZES = ((10**9, "less than 1 billion tokens"), (10**13, "1 billion to 10 trillion tokens"))
_BEHAVIOUR = (
    "GET requests only; no cookies, no logins, no payments",
    "CAPTCHAs and other challenges are never solved, paywalls never passed; what stands behind them is not collected",
    "robots.txt (RFC 9309) is read before the first page of a host and binds every request, redirects included",
    "one connection a host (hosts that the operator calls trusted excepted), with a gap after every answer that grows with its latency",
    "Crawl-delay and Retry-After are kept",
)

_COVERED = """
CREATE TABLE down_hosts AS SELECT DISTINCT h.host FROM (SELECT DISTINCT host, domain FROM measured) h JOIN tombstones t
    ON t.kind = 'domain' AND (h.domain = t.value OR h.host = t.value OR ends_with(h.host, '.' || t.value));
CREATE TABLE down_urls AS SELECT value AS url_id FROM tombstones WHERE kind = 'url_id'
    UNION SELECT m.url_id FROM measured m JOIN tombstones t ON t.kind = 'id' AND t.value = m.id;
CREATE VIEW scraped AS SELECT * FROM measured ANTI JOIN down_hosts USING (host) ANTI JOIN down_urls USING (url_id);
"""
_PERIODS = """
SELECT crawl_id, origin, strftime(min(fetched_at), '%Y-%m-%dT%H:%M:%SZ'), strftime(max(fetched_at), '%Y-%m-%dT%H:%M:%SZ'), count(*),
    sum(CASE WHEN outcome = 'near-copy' THEN 0 ELSE coalesce(warc_length, 0) END)::BIGINT, count(DISTINCT domain), count(*) FILTER (outcome = 'near-copy')
FROM scraped GROUP BY ALL ORDER BY origin, crawl_id
"""
_PERIOD = ("crawl_id", "origin", "from", "to", "pages", "bytes", "domains", "linked_copies")
_TYPES = "SELECT lower(trim(split_part(coalesce(content_type, 'unstated'), ';', 1))), count(*) FROM scraped GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20"


@dataclass(frozen=True, slots=True)
class EuSummary:
    """`document` is the JSON form without its list of domains, which `table` can give row by row."""

    document: dict[str, Any]
    table: DomainTable
    listed: int
    """Domains that must be named, under whichever reading names more."""

    def as_json(self) -> dict[str, Any]:
        """The whole document; its domains are those that must be named."""
        rows = [
            row | {name: float(row[name]) for name in ("share", "cumulative_share", "text_share")}
            for row in self.table.rows(self.listed)
        ]
        return self.document | {"domains": rows}


@dataclass(frozen=True, slots=True)
class _Known:
    """What was read of a release: its manifest, its snapshot, how many removals its TOMBSTONES.parquet lists, and sums over the answers."""

    manifest: dict[str, Any]
    snapshot: Snapshot
    tombstones: int
    periods: list[dict[str, Any]]
    types: dict[str, int]


@contextlib.contextmanager
def eu_summary(project: Project, name: str = "", *, sme: bool = False) -> Iterator[EuSummary]:
    """The summary of a release (the newest without a name). Raises UsageError for a name that is none, StoreError without a release
    or where its files do not agree with each other."""
    record = newest_release(project) if not name else _named(project, name)
    manifest = _manifest(project, record)
    snapshot = load_snapshot(project, str(record.info["snapshot"]))
    kept = _kept(project, record, manifest)
    project.layout.spill.mkdir(parents=True, exist_ok=True)
    memory = max(project.config.engine.memory // 2 // 2**20, 64)
    try:
        with duckdb.connect(
            ":memory:", config={"temp_directory": str(project.layout.spill), "memory_limit": f"{memory}MiB"}
        ) as con:
            _scraped(con, project, snapshot)
            table = DomainTable(con, kept)
            periods = [dict(zip(_PERIOD, row, strict=True)) for row in con.execute(_PERIODS).fetchall()]
            types = dict(con.execute(_TYPES).fetchall())
            known = _Known(manifest, snapshot, _tombstones(project, record, manifest), periods, types)
            document = _document(known, table, sme=sme)
            yield EuSummary(
                document, table, table.listed(document["domain_rule"]["providers"], document["domain_rule"]["provider"])
            )
    except duckdb.Error as error:
        raise StoreError(
            f"a file behind the release cannot be read: {str(error).splitlines()[0]}", record.key, "run corpus verify"
        ) from None


def _named(project: Project, name: str) -> CommitRecord:
    names = project.commits.keys(RELEASE_STAGE)
    record = project.commits.get(RELEASE_STAGE, name) if name in names else None
    if record is None:
        raise UsageError("there is no such release", name[:100], f"the releases are: {', '.join(names) or 'none yet'}")
    return record


def _manifest(project: Project, record: CommitRecord) -> dict[str, Any]:
    name = project.layout.relative(project.layout.release_dir(record.key) / "manifest.json")
    try:
        found: dict[str, Any] = json.loads(project.file(name, record.outputs.get(name, "")).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"the manifest cannot be read ({type(error).__name__})", name, "run corpus verify") from None
    return found


def _kept(project: Project, record: CommitRecord, manifest: dict[str, Any]) -> list[DomainRow]:
    """The release's domains, which must add up to what its manifest says."""
    name = project.layout.relative(project.layout.release_dir(record.key) / "domains.csv")
    try:
        rows = read_domains(project.file(name, manifest["files"]["domains.csv"]["sha256"]).read_text("utf-8"))
    except (OSError, ValueError, KeyError) as error:
        raise StoreError(f"cannot be read ({type(error).__name__})", name, "run corpus verify") from None
    found = (sum(row.pages for row in rows), sum(row.text_bytes for row in rows))
    if found != (manifest["rows"], manifest["text_bytes"]):
        said = (manifest["rows"], manifest["text_bytes"])
        raise StoreError(f"its domains hold {found} pages and bytes, its manifest says {said}", name, "run corpus verify")
    return rows


def _tombstones(project: Project, record: CommitRecord, manifest: dict[str, Any]) -> int:
    name = project.layout.relative(project.layout.release_dir(record.key) / "TOMBSTONES.parquet")
    try:
        return int(pq.read_metadata(project.file(name, manifest["files"]["TOMBSTONES.parquet"]["sha256"])).num_rows)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise StoreError(f"cannot be read ({type(error).__name__})", name, "run corpus verify") from None


def _scraped(con: duckdb.DuckDBPyConnection, project: Project, snapshot: Snapshot) -> None:
    """`scraped`: one row per stored answer of the snapshot, without what was taken down before it."""
    names = list(snapshot.family("documents"))
    listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in project.files.all_local(names))
    columns = "domain, host, url_id, id, crawl_id, origin, outcome, content_type, warc_length, fetched_at"
    con.execute(
        f"CREATE VIEW measured AS SELECT {columns} FROM read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
    )
    con.register("tombstones", tombstone_table(snapshot))
    con.execute(_COVERED)


def _document(known: _Known, table: DomainTable, *, sme: bool) -> dict[str, Any]:
    manifest, snapshot, periods = known.manifest, known.snapshot, known.periods
    crawled = [period for period in periods if period["origin"] == "crawl"]
    taken_in = [period for period in periods if period["origin"] != "crawl"]
    return {
        "template": TEMPLATE,
        "release": {name: manifest[name] for name in ("name", "key", "withdrawn")} | {"identity": manifest["identity"]},
        "provider": MARK,
        "model": MARK,
        "general": _general(manifest, periods),
        "public_datasets": {"taken_in": taken_in, "datasets": MARK if taken_in else "none in this release", "others": MARK},
        "crawled": {
            "used": bool(crawled),
            "crawler": manifest["options"]["user_agent"] or MARK,
            "robots_token": snapshot.facts["settings"]["token"],
            "contact": manifest["options"]["contact"] or MARK,
            "purposes": MARK,
            "behaviour": list(_BEHAVIOUR),
            "periods": crawled,
            "pages": sum(p["pages"] for p in periods), "bytes": table.bytes, "linked_copies": sum(p["linked_copies"] for p in periods),
            "content_types": known.types,
            "modalities": ["text"],
            "comments": MARK,
        },
        "domain_rule": {
            "domains": table.domains, "bytes": table.bytes, "suffix_list": suffix_list_version(),
            "provider": "sme" if sme else "any", "providers": table.rules(),
        },
        "optouts": _optouts(known),
        "illegal_content": MARK,
        "other_information": MARK,
    }  # fmt: skip


def _general(manifest: dict[str, Any], periods: list[dict[str, Any]]) -> dict[str, Any]:
    """Section 1.3."""
    tokens = manifest["tokens"]
    size = (
        next((words for limit, words in _SIZES if tokens < limit), "more than 10 trillion tokens") if tokens is not None else MARK
    )
    return {
        "modalities": {"text": "the main text of web pages", "image": None, "audio": None, "video": None},
        "pages": manifest["rows"], "text_bytes": manifest["text_bytes"], "tokens": tokens, "tokenizer": manifest["tokenizer"], "size": size,
        "latest_acquisition": max((period["to"] for period in periods), default=None),
        "languages": dict(sorted(manifest["languages"].items(), key=lambda item: (-item[1], item[0]))),
        "other_characteristics": MARK,
    }  # fmt: skip


def _optouts(known: _Known) -> dict[str, Any]:
    """Section 3.1: `when_asked` counts URLs that were not requested or whose answer was dropped at once, `when_exported` stored pages
    that were left out of this release. A URL can stand in both."""
    manifest, settings = known.manifest, known.snapshot.facts["settings"]["optout"]
    asked: dict[str, int] | None = manifest.get("turned_away")
    funnel = [FunnelStep(step["stage"], step["in"], step["out"], dict(step["dropped"])) for step in manifest["funnel"]]
    return {
        "protocols": honoured(OptoutSettings.model_validate(settings)),
        "settings": settings,
        "recorded_when_asked": asked is not None,
        "signals": [
            {
                "signal": row.signal,
                "meaning": REASONS[row.signal].sentence,
                "when_asked": row.when_asked,
                "when_exported": row.when_exported,
            }
            for row in turned_down(asked, funnel)
        ],
        "challenges": None if asked is None else asked.get(CHALLENGE, 0),
        "use": {use: manifest["consent"].get(use, 0) for use in USES},
        "takedowns": known.tombstones,
        "policy_of_the_provider": MARK,
    }


assert set(PROVIDERS) == {"any", "sme"}, "both sizes of provider have a rule"
