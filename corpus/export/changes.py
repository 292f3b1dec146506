"""What changed since the release before, as far as two manifests tell: rows, domains of shards, policy and code."""

from __future__ import annotations

import json
from typing import Any

from corpus.errors import StoreError
from corpus.export.compare import Compared
from corpus.export.consent_counts import USES

_IDENTITY = {
    "policy": "policy", "config": "configuration", "code": "code", "language_model": "language model", "consent_policy": "reading of opt-outs",
}  # fmt: skip


def changes(previous: str, current: dict[str, Any], pages: Compared | None = None) -> list[str]:
    """Sentences for the card; `previous` is the JSON of the earlier manifest, empty for none; `pages`: the two, page by page."""
    if not previous:
        return ["This is the first release of this name."]
    try:
        old = json.loads(previous)
        before, name = int(old["rows"]), str(old["name"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"the previous release's manifest cannot be read: {error}", "export", "give the manifest.json of a release"
        ) from error
    found = [f"Compared with `{name}`: {before} rows then, {current['rows']} now."]
    if pages is not None:
        found.append(f"{pages.added} pages were added, {pages.removed} removed, {pages.changed} have another body.")
    uses = {use: (old.get("consent", {}).get(use, 0), current["consent"].get(use, 0)) for use in USES}
    found.append(
        "Rows by use, then and now: " + ", ".join(f"`{use}` {then} and {now}" for use, (then, now) in uses.items()) + "."
    )
    for key, words in _IDENTITY.items():
        then, now = old.get("identity", {}).get(key), current["identity"].get(key)
        if then is not None and then != now:
            found.append(f"The {words} changed.")
    gone = {shard["sha256"] for shard in old.get("shards", [])} - {shard["sha256"] for shard in current["shards"]}
    found.append(f"{len(gone)} of {len(old.get('shards', []))} earlier shards are not part of this release.")
    return found
