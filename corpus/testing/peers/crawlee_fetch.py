"""Crawlee's ParselCrawler fetches the same hosts, robots.txt obeyed. It knows no delay per host, so it keeps none."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

JOB: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
DONE = {"items": 0, "bytes": 0}


async def main() -> None:
    """Crawl and count."""
    crawler = ParselCrawler(
        storage_client=MemoryStorageClient(),
        configuration=Configuration(purge_on_start=True),
        respect_robots_txt_file=True,
        configure_logging=False,
        concurrency_settings=ConcurrencySettings(desired_concurrency=64, max_concurrency=JOB["slots"]),
        request_handler_timeout=timedelta(seconds=60),
    )

    async def handle(context: ParselCrawlingContext) -> None:
        DONE["items"] += 1
        DONE["bytes"] += len(await context.http_response.read())
        await context.enqueue_links()

    crawler.router.default_handler(handle)
    await crawler.run(JOB["seeds"])
    print(json.dumps(DONE))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main())
