"""`croissant.json`: the release in the Croissant 1.1 vocabulary, with the responsible-AI fields that a run can answer.

Made from facts alone; fields that only a person can fill are left out, never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from corpus.export.card_front import TITLE
from corpus.export.consent_counts import turned_down
from corpus.export.escape import plain
from corpus.export.ports import ReleaseOptions, ReleasePolicy, SnapshotInputs
from corpus.export.schema import DESCRIPTIONS
from corpus.export.shard import Written
from corpus.export.summary import Counts
from corpus.model import FunnelStep
from corpus.reasons import REASONS

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(
    inputs: SnapshotInputs,
    options: ReleaseOptions,
    policy: ReleasePolicy,
    counts: Counts,
    funnel: Sequence[FunnelStep],
    shards: Sequence[Written],
    schema: pa.Schema,
    description: str,
) -> str:
    """The JSON-LD text. Shards are named one by one with their digests, so that a reader can check what it fetched."""
    facts = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": _name(options),
        "description": plain(description),
        "version": "1.0.0",
        "license": plain(options.license),
        "inLanguage": sorted(code for code in counts.languages if code != "und"),
        "isLiveDataset": False,
        **({"datePublished": counts.last_fetched[:10]} if counts.last_fetched else {}),
        "rai:dataCollection": (
            "Web crawl with GET requests, one connection a host, no logins, no CAPTCHAs solved. Honoured when fetching and again for this release: "
            f"{'; '.join(inputs.protocols)}."
        ),
        "rai:dataCollectionType": ["Web Scraping"],
        "rai:dataCollectionTimeframe": _time_frame(counts),
        "rai:dataCollectionTimeFrame": _time_frame(counts),  # the vocabulary's spelling, and the one mlcroissant reads
        "rai:dataCollectionMissingData": _left_out(inputs, funnel),
        "rai:dataLimitations": [
            "Language identification errs on short texts and close languages; extraction may lose tables, code and comments.",
            "Opt-outs that are stated only in prose are not read.",
            f"Use is unknown for {counts.use.get('unknown', 0)} of {counts.rows} rows: nothing was said, which is no permission.",
        ],
        "rai:dataPreprocessingProtocol": [
            (
                f"main text extraction; policy {plain(policy.name)} ({policy.digest}); cut span kinds: {', '.join(policy.cut) or 'none'}; "
                f"near-duplicate clusters at Jaccard {options.threshold:g}, kept: {options.keep}"
            )
        ],
        "rai:personalSensitiveInformation": ["Web pages name persons. TOMBSTONES.parquet lists takedowns."],
        "rai:dataReleaseMaintenancePlan": " ".join(
            [
                "Takedowns are applied to every later release and listed in TOMBSTONES.parquet.",
                *_written(options, "maintained_by"),
            ]
        ),
        **{name: said[0] for name, part in _BY_A_PERSON.items() if (said := _written(options, part))},
        "distribution": _distribution(shards),
        "recordSet": [_records(schema)] if shards else [],
    }
    return json.dumps(facts, indent=1, ensure_ascii=True) + "\n"


_BY_A_PERSON = {"citeAs": "cite", "rai:dataBiases": "risks"}
"""Fields that hold what a person wrote for the card; absent until somebody does."""


def _written(options: ReleaseOptions, part: str) -> list[str]:
    """A part of the card that a person wrote, as one line; nothing otherwise."""
    text = options.words.get(part, "")
    return [" ".join(text.split())] if text else []


def _time_frame(counts: Counts) -> list[str]:
    return [time for time in (counts.first_fetched, counts.last_fetched) if time]


def _left_out(inputs: SnapshotInputs, funnel: Sequence[FunnelStep]) -> str:
    """What sites said no to, the same numbers as in the card."""
    lines = [
        f"{row.signal}: {REASONS[row.signal].sentence}: "
        f"{'not recorded' if row.when_asked is None else row.when_asked} URLs not fetched, {row.when_exported} stored pages left out"
        for row in turned_down(inputs.turned_away, funnel)
    ]
    return "; ".join([*lines, f"{len(inputs.tombstones) + len(inputs.purged)} removals are listed in TOMBSTONES.parquet"])


def _name(options: ReleaseOptions) -> str:
    return plain(f"{options.title or TITLE} {options.name}")


def _distribution(shards: Sequence[Written]) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": shard.path,
            "name": shard.path,
            "contentUrl": shard.path,
            "encodingFormat": "application/x-parquet",
            "sha256": shard.sha256,
            "contentSize": f"{shard.bytes} B",
        }
        for shard in shards
    ]
    if not shards:
        return []
    shard_set = {
        "@type": "cr:FileSet",
        "@id": "shards",
        "name": "shards",
        "description": "The shards below, by their path from the folder of this file.",
        "encodingFormat": "application/x-parquet",
        "includes": "data/**/*.parquet",
    }
    return [shard_set, *files]


def _records(schema: pa.Schema) -> dict[str, Any]:
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"documents/{field.name}",
            "name": field.name,
            "description": DESCRIPTIONS[field.name],
            "dataType": _data_type(field.type),
            "source": {"fileSet": {"@id": "shards"}, "extract": {"column": field.name}},
        }
        for field in schema
        if not pa.types.is_struct(field.type)
    ]
    return {"@type": "cr:RecordSet", "@id": "documents", "name": "documents", "key": {"@id": "documents/id"}, "field": fields}


def _data_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    if pa.types.is_timestamp(kind):
        return "sc:DateTime"
    return "sc:Text"
