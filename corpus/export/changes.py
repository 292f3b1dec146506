"""What changed since the release before, as far as two manifests tell: rows, domains of shards, policy and code."""

from __future__ import annotations

import json
from typing import Any

from corpus.errors import StoreError


def changes(previous: str, current: dict[str, Any]) -> list[str]:
    """Sentences for the card; `previous` is the JSON of the earlier manifest, empty for none."""
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
    for key in ("policy", "config", "code", "models"):
        then, now = old.get("identity", {}).get(key), current["identity"].get(key)
        if then != now:
            found.append(f"The {key} changed.")
    gone = {shard["sha256"] for shard in old.get("shards", [])} - {shard["sha256"] for shard in current["shards"]}
    found.append(f"{len(gone)} of {len(old.get('shards', []))} earlier shards are not part of this release.")
    return found
