"""`croissant.json`: the release in the Croissant 1.1 vocabulary, with the responsible-AI fields that a run can answer.

Made from facts alone; fields that only a person can fill are left out, never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from corpus.export.card_front import TITLE
from corpus.export.escape import plain
from corpus.export.ports import ReleaseOptions, ReleasePolicy
from corpus.export.schema import DESCRIPTIONS
from corpus.export.shard import Written
from corpus.export.summary import Counts

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
    options: ReleaseOptions, policy: ReleasePolicy, counts: Counts, shards: Sequence[Written], schema: pa.Schema, description: str
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
        "rai:dataCollection": "Web crawl with GET requests, one connection a host; robots.txt and AI opt-outs honoured when fetching and again for this release.",
        "rai:dataCollectionType": ["Web Scraping"],
        "rai:dataCollectionTimeframe": [time for time in (counts.first_fetched, counts.last_fetched) if time],
        "rai:dataPreprocessingProtocol": [
            (
                f"main text extraction; policy {plain(policy.name)} ({policy.digest}); cut span kinds: {', '.join(policy.cut) or 'none'}; "
                f"near-duplicate clusters at Jaccard {options.threshold:g}, kept: {options.keep}"
            )
        ],
        "rai:personalSensitiveInformation": ["Web pages name persons. TOMBSTONES.parquet lists takedowns."],
        "rai:dataReleaseMaintenancePlan": "Takedowns are applied to every later release and listed in TOMBSTONES.parquet.",
        "distribution": _distribution(shards),
        "recordSet": [_records(schema)] if shards else [],
    }
    return json.dumps(facts, indent=1, ensure_ascii=True) + "\n"


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
