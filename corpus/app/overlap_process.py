"""The process that measures sealed segments while the crawl that seals them goes on. Started by `overlap`.

It runs the ordinary stage again and again, at a lower priority than fetch, and decides nothing of its own: what it leaves is
what `corpus process` would leave. After a round it writes down what was found of hosts, which the running crawl reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.config.tree import Config
from corpus.engine.process import Link
from corpus.errors import CorpusError, Locked, NothingDone, TryLater

NICE = 5
"""Fetch comes first: where there is more work than cores it gets three times the share of a process with this."""
QUALITY_SHARE = 0.02
"""Of the time, how much may go into telling the crawl what was found: the question is over all documents."""
TOLD = frozenset({"stuck", "poison"})
"""Events that are worth a line beside a crawl; the rest is counted."""


@dataclass(frozen=True, slots=True)
class OverlapSpec:
    """What the process is told: the configuration and the folder it is relative to."""

    config: Config
    base: str


def main(spec: OverlapSpec, link: Link) -> None:
    """Entry point of the child: a round for every `more`, until `end`."""
    os.nice(NICE)
    worker = _Rounds(spec, link)
    ending = False
    while not ending:
        message = link.receive()
        asked = 0
        while message is not None:
            match message:
                case ("more", int(number)):
                    asked = number
                case ("end",):
                    ending = True
            message = link.receive(0)
        if asked and not ending:
            worker.round(asked)


class _Rounds:
    def __init__(self, spec: OverlapSpec, link: Link) -> None:
        from corpus.app.engines import engine_of
        from corpus.app.project import open_project
        from corpus.config.tree import place

        self._link, self._asked = link, 0
        self._project = open_project(place(spec.config, Path(spec.base), {}), create=False)
        self._engine = engine_of(self._project.config)
        self._quality_due = float("-inf")

    def round(self, asked: int) -> None:
        """Measure what is there. An error of ours ends the process; a lock that somebody holds, or a store without room, is waited for."""
        from corpus.app.process import process

        self._asked = asked
        try:
            process(self._project, self._engine, self._report, follow=self)
            self._tell_quality()
        except (Locked, TryLater) as error:
            self._link.send(("later", str(error.what)))
        except NothingDone:
            self.waiting(())  # taken down meanwhile
        except CorpusError as error:
            self._link.send(("error", error))
            raise SystemExit(0) from None

    def waiting(self, keys: Sequence[str]) -> None:
        """Which segments are about to be measured, by the keys of their records."""
        self._link.send(("waiting", self._asked, list(keys)))

    def measured(self, key: str, documents: int, texts: int) -> None:
        """One of them is: so many documents, and so many of them have a text."""
        self._link.send(("measured", key, documents, texts))

    def _report(self, event: str, **facts: Any) -> None:
        if event in TOLD:
            self._link.send(("event", event, facts))

    def _tell_quality(self) -> None:
        from corpus.app.host_quality import write_host_quality

        began = time.monotonic()
        if began >= self._quality_due:
            write_host_quality(self._project)
            now = time.monotonic()
            self._quality_due = now + (now - began) / QUALITY_SHARE
