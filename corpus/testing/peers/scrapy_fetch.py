"""Scrapy crawls the same hosts, politely: robots.txt obeyed, one request per host, the same delay. It stores nothing.

With `texts` in the job, trafilatura extracts each page and the texts are written there as JSON lines.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

JOB: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
DONE = {"items": 0, "bytes": 0}


class Everything(scrapy.Spider):  # type: ignore[misc]
    """Follows every link that stays on a host of the seeds."""

    name = "everything"
    start_urls = JOB["seeds"]
    links = LinkExtractor(allow=["^" + re.escape(origin) for origin in sorted({url.rsplit("/", 1)[0] for url in JOB["seeds"]})])
    texts: ClassVar[list[str]] = []

    def parse(self, response: Any) -> Iterator[Any]:
        """One page: counted, extracted where asked, its links followed."""
        DONE["items"] += 1
        DONE["bytes"] += len(response.body)
        if JOB.get("texts"):
            import trafilatura

            text = trafilatura.extract(response.text, url=response.url)
            if text:
                self.texts.append(json.dumps({"text": text, "id": response.url, "url": response.url}) + "\n")
        for link in self.links.extract_links(response):
            yield response.follow(link, self.parse)


def main() -> None:
    """Crawl and count."""
    process = CrawlerProcess(
        {
            "ROBOTSTXT_OBEY": True,
            "USER_AGENT": "PeerBench/1.0 (+bench@example.org)",
            "DOWNLOAD_DELAY": JOB["delay"],
            "RANDOMIZE_DOWNLOAD_DELAY": False,
            "CONCURRENT_REQUESTS": JOB["slots"],
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "ERROR",
        }
    )
    process.crawl(Everything)
    process.start()
    if JOB.get("texts"):
        Path(JOB["texts"]).write_text("".join(Everything.texts), "utf-8")
    print(json.dumps(DONE))


if __name__ == "__main__":
    main()
