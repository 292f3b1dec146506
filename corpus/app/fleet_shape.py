"""What all members of a fleet must agree upon: one crawl has one configuration and one root. Nothing is decided here but what counts.

Keys that speak of the machine a worker runs on (its resolver, its proxy) are its own.
"""

from __future__ import annotations

import hashlib
import json
import uuid

from corpus.app.project import Project
from corpus.config.check import seed_lines
from corpus.store.fleet_members import ROOT
from corpus.store.objects import put_same

OWN = frozenset({"crawl.seeds", "crawl.ca_file", "crawl.proxy", "crawl.resolver", "crawl.slots", "optout.domains_file"})
MARK = "fleet.json"
"""A random name for the root, written by the first member that ever comes: two folders that are not shared have two."""


def shape(project: Project) -> dict[str, str]:
    """By key what every member must have alike, as text."""
    config = project.config
    branches = {"crawl": config.crawl, "optout": config.optout, "recrawl": config.recrawl}
    found = {
        f"{branch}.{key}": json.dumps(value, sort_keys=True)
        for branch, settings in branches.items()
        for key, value in settings.model_dump(mode="json").items()
    }
    found = {key: value for key, value in found.items() if key not in OWN}
    seeds = "\n".join(sorted(seed_lines(config)[0]))
    found["crawl.seeds"] = hashlib.sha256(seeds.encode("utf-8", "surrogatepass")).hexdigest()
    found |= {f"store.{key}": str(getattr(config.store, key)) for key in ("lease", "partition_files")}
    return found | {ROOT: _mark(project)}


def _mark(project: Project) -> str:
    if not project.objects.exists(MARK):
        put_same(project.objects, MARK, json.dumps({"id": uuid.uuid4().hex}).encode())
    return project.objects.get(MARK).decode("utf-8", "replace").strip()
