"""How a stored URL looks from outside: the line of a worker, and the flat row that `why` reads. Pure."""

from __future__ import annotations

from corpus.crawl.ports import AuthorityRow, QueuedUrl, Settled
from corpus.model import UrlState
from corpus.store.frontier_rows import Counted, UrlRow, Validators
from corpus.url.host import host_of, registered_domain


def host_key(row: AuthorityRow) -> str:
    """The host under which an authority file is kept."""
    return host_of(row.authority)


def queued_url(row: UrlRow, domain: str, last: Validators) -> QueuedUrl:
    """What a worker takes: the row, with the validators of the last visit for a conditional request."""
    return QueuedUrl(
        url=row.url,
        found=row.found,
        host=row.host,
        domain=domain,
        kind=row.kind,
        depth=row.depth,
        hops=row.hops,
        via=row.via,
        attempts=row.attempts,
        priority=row.claim,
        etag=last.etag,
        last_modified=last.last_modified,
        content_sha256=last.content_sha256,
        simhash=last.simhash,
        history=last.history,
        again=row.again,
        whole=last.whole,
    )


def lookup_row(url: str, host: str, known: UrlRow | Counted, visit: Settled | None) -> dict[str, object]:
    """The stored row as `why` reads it; the same keys for every URL, None where nothing is known.

    `next_at`: epoch seconds of the next try, None when no time was set. `counted`: only a key of this URL is kept.
    """
    row = known if isinstance(known, UrlRow) else None
    capture = visit.capture if visit else None
    return {
        "url": url,
        "found": row.found if row else url,
        "host": host,
        "domain": registered_domain(host),
        "kind": row.kind.value if row else "page",
        "state": row.state.value if row else UrlState.EXCLUDED.value,
        "reason": known.reason,
        "depth": row.depth if row else None,
        "hops": row.hops if row else None,
        "via": row.via if row else "",
        "priority": row.claim if row else None,
        "front": row.front if row else None,
        "attempts": row.attempts if row else 0,
        "next_at": row.due.set_at + row.due.wait_s if row and row.due else None,
        "counted": row is None,
        "http_status": visit.http_status if visit else None,
        "content_type": visit.content_type if visit else "",
        "fetched_at": visit.fetched_at if visit else None,
        "file": capture.file if capture else None,
        "offset": capture.offset if capture else None,
        "length": capture.length if capture else None,
        "content_sha256": visit.content_sha256 if visit else "",
        "simhash": visit.simhash if visit else None,
        "near_original": visit.near_original if visit else "",
        "etag": visit.etag if visit else "",
        "last_modified": visit.last_modified if visit else "",
        "target": visit.target if visit else "",
        "rule": visit.rule if visit else "",
        "rule_line": visit.rule_line if visit else None,
        "authority_digest": visit.authority_digest if visit else "",
        "protocol": visit.protocol if visit else "",
        "cache": visit.cache if visit else "",
        "age_s": visit.age_s if visit else None,
    }
