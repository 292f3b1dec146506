"""Processing beside a crawl, as the crawl's supervisor sees it: what waits, what is done, and whether fetch must wait for it.

A processing process (`overlap_process`) is started with the first sealed segment. Where the bytes of segments that wait for it
reach `engine.backlog`, fetch is held until there is room; so what is stored and not measured never exceeds that and one segment
for each fetch process. Processing that dies or does not move for an hour is given up: the crawl goes on, and the stage after it
meets the same fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from corpus.app.overlap_process import OverlapSpec
from corpus.app.project import Project
from corpus.app.segments import STAGE as SEGMENT
from corpus.engine.process import Child, start
from corpus.errors import CorpusError, TryLater
from corpus.observe.live import Live
from corpus.observe.runlog import Reporter
from corpus.store.layout import OPEN_SUFFIX

LOOK_S, REMOTE_LOOK_S = 0.5, 10.0
"""How often sealed segments are looked for: a folder is listed, a bucket is asked."""
AGAIN_S = 5.0
"""How long a processing process that found the stage locked waits."""
DEATHS = 3
"""Deaths of the processing process before it is given up (its workers' deaths are its own affair)."""
GIVE_UP_S = 3600.0
"""Fetch is never held for longer than this while no segment gets done."""
LAST_S = 60.0
"""The longest wait for segments that are half done when the crawl ends; then the stage after it begins them anew."""
PAGES, MEASURED = "pages.", "map"
"""How keys of segments of pages begin; and the stage that measures them, by name, because its module loads what fetch does not need."""


@dataclass(slots=True)
class OverlapTotals:
    """What was processed while the crawl went on, and how long fetch waited for it (seconds)."""

    segments: int = 0
    bytes: int = 0
    documents: int = 0
    texts: int = 0
    held_s: float = 0.0
    waiting_segments: int = 0
    """Sealed and not measured when the crawl ended: the stage after it does those."""
    waiting_bytes: int = 0

    def document(self) -> dict[str, Any]:
        """For `summary.json`; times rounded."""
        return {**asdict(self), "held_s": round(self.held_s, 1)}


def wanted(project: Project) -> bool:
    """Whether this configuration processes while it crawls: on this machine, unless told not to."""
    engine = project.config.engine
    return engine.overlap and engine.kind == "local"


class Overlap:
    """For one crawl. `look` often; `held` says whether fetch must wait; `finish` or `close` at the end."""

    def __init__(
        self, project: Project, crawl_id: str, report: Reporter, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._project, self._report, self._monotonic = project, report, monotonic
        self._limit = project.config.engine.backlog
        self._folder = project.layout.warc_dir(crawl_id)
        self._known = self._sealed()
        self._behind = len(self._known) > len(project.commits.keys(MEASURED))
        """Whether earlier runs left something."""
        self._old = frozenset() if self._behind else frozenset(self._known)
        """Measured by earlier runs. Where other options ask for that again, it takes no room, and fetch does not wait for it."""
        self._stamp = 0
        self._waiting: dict[str, int] = {}
        self._learned: dict[str, int] = {}
        self._child: Child | None = None
        self._asked = self._deaths = 0
        self._next, self._again = float("-inf"), float("inf")
        self._looked = self._moved = self._round_at = monotonic()
        self.held = self._given_up = self._ending = False
        self.totals = OverlapTotals()

    def look(self, *, ending: bool = False) -> bool:
        """Hear what was done, find what was sealed, decide; True where `held` is another than before. `ending`: the crawl seals its
        last segments, and nobody is started for them, because the stage after it is about to be."""
        self._ending = ending
        now = self._monotonic()
        self._hear()
        if now < self._next:
            return False
        self._next = now + (REMOTE_LOOK_S if self._project.remote else LOOK_S)
        if self.held:
            self.totals.held_s += now - self._looked
        self._looked = now
        with suppress(TryLater):  # a store that does not answer: fetch waits by itself, and the next look will see
            self._find()
        if self.held and now - self._moved > GIVE_UP_S:
            self._give_up(f"no segment was processed for {GIVE_UP_S / 60:.0f} minutes")
        before, self.held = self.held, self._full()
        if self.held and not before:
            self._moved = now
        return self.held is not before

    def tell(self, live: Live) -> None:
        """Put the numbers where everybody sees them."""
        live.held = self.held
        live.processed_segments, live.processed_bytes = self.totals.segments, self.totals.bytes
        live.processed_pages, live.processed_texts = self.totals.documents, self.totals.texts
        live.waiting_segments, live.waiting_bytes = len(self._waiting), sum(self._waiting.values())
        live.waiting_limit = 0 if self._given_up else self._limit

    def finish(self, stopping: Callable[[], int]) -> bool:
        """The crawl is over: let what is half done go on for as long as it has lasted, because it would be lost, and no longer (nor than
        `LAST_S`), because it has the lower priority. False when asked to stop before that."""
        if self._child is not None and self._waiting and not stopping():
            self._child.send(("end",))
            self._report("processing goes on", segments=len(self._waiting), what="the crawl is over")
            now = self._monotonic()
            until = now + min(now - self._round_at, LAST_S)
            while self._child is not None and self._waiting and not stopping() and self._monotonic() < until:
                self._child.connection.poll(0.5)
                self._hear(ending=True)
        self.close()
        return not stopping()

    def close(self) -> None:
        """End it at once; segments under work stay unmeasured."""
        child, self._child = self._child, None
        if child is not None:
            child.stop(grace_s=2.0)
        self.held = False
        self.totals.waiting_segments, self.totals.waiting_bytes = len(self._waiting), sum(self._waiting.values())

    # what was sealed
    def _sealed(self) -> set[str]:
        return {key for key in self._project.commits.keys(SEGMENT) if key.startswith(PAGES)}

    def _stamp_now(self) -> int:
        """Another number whenever a segment may have been recorded: a folder says so without being listed, a bucket does not."""
        folder = self._project.layout.root / "commits" / SEGMENT
        if self._project.remote:
            return self._stamp + 1
        return folder.stat().st_mtime_ns if folder.is_dir() else 0

    def _find(self) -> None:
        stamp = self._stamp_now()
        keys = self._sealed() if stamp != self._stamp else self._known
        new = keys - self._known
        for key in new:
            self._wait_for(key, self._asked + 1)
        self._known, self._stamp = keys, stamp  # last: what a store did not tell now is asked again
        again = self._monotonic() >= self._again
        if new or again or self._behind or (self._waiting and self._child is None):
            self._behind, self._again = False, float("inf")
            self._ask()

    def _wait_for(self, key: str, learned: int) -> None:
        record = self._project.commits.get(SEGMENT, key)
        if record is not None:
            self._waiting[key], self._learned[key] = int(record.info["bytes"]), learned

    def _ask(self) -> None:
        if self._given_up or (self._ending and self._child is None):
            return
        if self._child is None:
            config = self._project.config
            self._child = start("processing", "corpus.app.overlap_process:main", OverlapSpec(config, str(config.base)))
        self._asked += 1
        self._child.send(("more", self._asked))

    def _full(self) -> bool:
        """Whether as much waits as may. An open segment counts, because it will be sealed; alone it never holds fetch."""
        if self._given_up or not self._waiting:
            return False
        return sum(self._waiting.values()) + self._open_bytes() >= self._limit

    def _open_bytes(self) -> int:
        found = 0
        for path in self._folder.glob(f"*{OPEN_SUFFIX}"):
            try:
                found += path.stat().st_size
            except FileNotFoundError:
                continue  # sealed this very moment: the next look finds its record
        return found

    # what was done
    def _hear(self, *, ending: bool = False) -> None:
        while self._child is not None and self._child.connection.poll(0):
            try:
                self._heard(self._child.connection.recv(), ending=ending)
            except (EOFError, ConnectionResetError):
                self._ended()

    def _heard(self, message: tuple[Any, ...], *, ending: bool) -> None:
        match message:
            case ("waiting", int(asked), keys):
                self._round_at = self._monotonic()
                for key in [key for key, learned in self._learned.items() if learned <= asked and key not in keys]:
                    self._drop(key)
                for key in keys:
                    if key not in self._waiting and key not in self._old:
                        self._wait_for(key, asked)
            case ("measured", str(key), int(documents), int(texts)):
                size = self._drop(key)
                self._moved = self._round_at = self._monotonic()
                self.totals.segments += 1
                self.totals.bytes += size
                self.totals.documents += documents
                self.totals.texts += texts
                if ending:
                    self._report("progress", measured=self.totals.segments, waiting=len(self._waiting))
            case ("event", str(event), facts):
                self._report(event, **facts)
            case ("later", str(why)):
                self._again = self._monotonic() + AGAIN_S
                self._report("processing waits", why=why)
            case ("error", CorpusError() as error):
                self._give_up(f"{error.where}: {error.what}" if error.where else str(error.what))

    def _drop(self, key: str) -> int:
        self._learned.pop(key, None)
        return self._waiting.pop(key, 0)

    def _ended(self) -> None:
        """An end that `finish` asked for, or a death: then another one begins with the next look."""
        assert self._child is not None, "somebody has ended"
        child, self._child = self._child, None
        child.stop(grace_s=5.0)
        if child.exit_code() != 0:
            self._deaths += 1
            self._report("processing died", exit_status=child.exit_code(), deaths=self._deaths)
            if self._deaths >= DEATHS:
                self._give_up(f"it died {DEATHS} times")

    def _give_up(self, why: str) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.stop(grace_s=0.5)
        self._given_up = True
        self._report("processing stopped", why=why, what="the crawl goes on without it; what waits is processed after it")
