"""Orders that follow from orders: the copies of a cluster by the clusters of today, and the URL of an id that was unknown."""

from __future__ import annotations

from corpus.app.project import Project
from corpus.app.takedown_orders import cluster_members
from corpus.app.views import Views

_OF_IDS = "SELECT DISTINCT id, url_id FROM measured_documents WHERE list_contains($ids, id) ORDER BY 1"


def follow_up(project: Project, now: float) -> int:
    """Write what is missing, so that each order covers today what it would cover if it were given today. Returns how many."""
    orders = [entry for entry in project.control.read() if entry.action == "takedown"]
    index = project.control.tombstones()
    written = 0
    for entry in orders:
        if entry.detail.get("scope") == "cluster":
            members = [
                m for m in cluster_members(project, entry.kind, entry.value, entry.url_id) if _open(index.blocks(url_id=m))
            ]
            if members:
                detail = {"scope": "cluster", "follows": entry.n, "members": members}
                project.control.append("takedown", at=now, kind="url", value=members[0], reason=entry.reason, detail=detail)
                written += 1
    for value, url_id in _found_ids(project, [entry.value for entry in orders if entry.kind == "id" and not entry.url_id]):
        if _open(index.blocks(url_id=url_id)):
            project.control.append(
                "takedown", at=now, kind="id", value=value, url_id=url_id, reason="the URL of an id taken down"
            )
            written += 1
    return written


def _open(order: object) -> bool:
    return order is None or getattr(order, "action", "") != "takedown"


def _found_ids(project: Project, ids: list[str]) -> list[tuple[str, str]]:
    if not ids:
        return []
    with Views(project) as views:
        views.make("measured_documents")
        return [(str(a), str(b)) for a, b in views.connection.execute(_OF_IDS, {"ids": ids}).fetchall()]
