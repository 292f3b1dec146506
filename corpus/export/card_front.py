"""Front matter of the dataset card: what the hub reads. Every value is a quoted scalar or a plain number of ours."""

from __future__ import annotations

from collections.abc import Sequence

from corpus.export.escape import yaml
from corpus.export.ports import ReleaseOptions
from corpus.export.shard import Written
from corpus.export.summary import Counts

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"),
          (10**8, "10M<n<100M"), (10**9, "100M<n<1B"), (10**10, "1B<n<10B"), (10**11, "10B<n<100B"))  # fmt: skip
TITLE = "Web corpus"


def size_category(rows: int) -> str:
    """The hub's size category of a row count."""
    return next((name for limit, name in _SIZES if rows < limit), "100B<n<1T")


def front_matter(options: ReleaseOptions, counts: Counts, shards: Sequence[Written]) -> str:
    """The YAML block, with its fences."""
    languages = sorted(code for code in counts.languages if code != "und")
    lines = [
        "---",
        f"pretty_name: {yaml(options.title or TITLE)}",
        f"language: [{', '.join(map(yaml, languages))}]",
        f"license: {yaml(options.license)}",
        *(
            ["license_name: per-document-rights", "license_link: README.md#rights-and-takedown"]
            if options.license == "other"
            else []
        ),
        f"size_categories: [{yaml(size_category(counts.rows))}]",
        "task_categories: [text-generation]",
        "tags: [web-corpus, provenance, opt-out-honoured]",
        *_configs(shards),
        'extra_gated_prompt: "Remove the documents listed in TOMBSTONES.parquet from your copies within 30 days of each release."',
        'extra_gated_fields: {Organisation: "text", Purpose: "text"}',
        "---",
    ]
    return "\n".join(lines) + "\n"


def _configs(shards: Sequence[Written]) -> list[str]:
    splits = sorted({shard.split for shard in shards}) or ["train"]
    deep = "*/*/" if any(shard.language for shard in shards) else "*/"
    lines = ["configs:", "- config_name: default", "  default: true", *_files(splits, f"data/{deep}")]
    for crawl in sorted({shard.crawl_id for shard in shards}):
        own = sorted({shard.split for shard in shards if shard.crawl_id == crawl})
        lines += [f"- config_name: {yaml(crawl)}", *_files(own, f"data/crawl_id={crawl}/{deep[2:]}")]
    for language in sorted({shard.language for shard in shards if shard.language}):
        own = sorted({shard.split for shard in shards if shard.language == language})
        lines += [f"- config_name: {yaml(f'lang-{language}')}", *_files(own, f"data/*/lang={language}/")]
    return lines


def _files(splits: Sequence[str], prefix: str) -> list[str]:
    return ["  data_files:", *(f"  - {{split: {split}, path: {yaml(f'{prefix}{split}-*.parquet')}}}" for split in splits)]
