"""datatrove: WARC files (`warc`) through trafilatura or resiliparse (`extractor`), or texts (`texts`) as they are, then FineWeb's
filters and MinHash deduplication in its four steps, to Parquet. One task at a time, no language model (it would be downloaded)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.extractors.base import BaseExtractor
from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
from datatrove.pipeline.readers import JsonlReader, WarcReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.pipeline.writers.parquet import ParquetWriter
from datatrove.utils.hashing import HashConfig

JOB: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
OUT = Path(JOB["out"])


class Resiliparse(BaseExtractor):  # type: ignore[misc]
    """The extractor of our profile `fast`, with the options we give it, run the way datatrove runs its own."""

    name = "resiliparse"

    def __init__(self) -> None:
        super().__init__(timeout=10)

    def extract(self, text: str) -> str:
        """Main text of a page."""
        from resiliparse.extract.html2text import extract_plain_text

        return str(
            extract_plain_text(
                text, main_content=True, preserve_formatting=True, list_bullets=True, alt_texts=False, links=False,
                form_fields=False, noscript=False, comments=False,
            )
        )  # fmt: skip


def run(*steps: Any, tasks: int = 1) -> Any:
    """One executor, in this process."""
    return LocalPipelineExecutor(
        pipeline=list(steps), tasks=tasks, workers=1, logging_dir=str(OUT / "logs"), skip_completed=False
    ).run()


def main() -> None:
    """Extract and filter, then deduplicate what is left."""
    if JOB.get("warc"):
        source = Path(JOB["warc"])
        extractor = Resiliparse() if JOB["extractor"] == "resiliparse" else Trafilatura(favour_precision=False, timeout=10)
        first: list[Any] = [WarcReader(str(source), glob_pattern="crawl_id=*/*.warc.gz"), extractor]
    else:
        source = Path(JOB["texts"])
        first = [JsonlReader(str(source.parent), glob_pattern=source.name)]
    filters = [
        GopherRepetitionFilter(),
        GopherQualityFilter(),
        C4QualityFilter(filter_no_terminal_punct=False),
        FineWebQualityFilter(),
    ]
    hashing = HashConfig(precision=64, hash_fc="sha1")  # its xxhash wrapper does not run with xxhash 4
    config = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8, hash_config=hashing)
    counted = run(*first, *filters, JsonlWriter(str(OUT / "filtered"), compression=None))
    if any((OUT / "filtered").glob("*")):
        dedup(config)
    items = next(stat.stats["documents"].total for stat in counted.stats if "documents" in stat.stats)
    print(json.dumps({"items": items, "bytes": sum(file.stat().st_size for file in (OUT / "final").rglob("*.parquet"))}))


def dedup(config: MinhashConfig) -> None:
    """Sign, find, cluster, write."""
    run(JsonlReader(str(OUT / "filtered")), MinhashDedupSignature(output_folder=str(OUT / "signatures"), config=config))
    run(MinhashDedupBuckets(input_folder=str(OUT / "signatures"), output_folder=str(OUT / "buckets"), config=config), tasks=14)
    run(MinhashDedupCluster(input_folder=str(OUT / "buckets"), output_folder=str(OUT / "remove"), config=config))
    run(
        JsonlReader(str(OUT / "filtered")),
        MinhashDedupFilter(input_folder=str(OUT / "remove")),
        ParquetWriter(str(OUT / "final")),
    )


if __name__ == "__main__":
    main()
