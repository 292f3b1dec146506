"""A folder that the real command works on, and what is compared of it afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from corpus.store.frontier_reader import FrontierReader
from corpus.testing.audit import Group, gap_violations, refused_requests
from corpus.testing.kill import KillReport, Victim, run_until_killed
from corpus.testing.web import Contact
from corpus.testing.web_process import ServerProcess
from tests.laws.law_web import AWAY

GAP_S = 0.05
WITNESS = ("fetched_at", "date", "file_path", "warc_offset", "warc_length")
"""Columns that say when and where a row was first captured (and `consent.checked_at`)."""

_TOML = """[corpus]
name = "law"
[crawl]
seeds = ["seeds.txt"]
contact = "https://example.org/bot"
delay = "{gap}s"
delay_start = "{gap}s"
latency_factor = 0.1
near_copies = "store"
allow_private = ["127.0.0.0/8"]
resolver = ["{dns}"]
[filter]
host_line_pages = 3
[store]
segment_bytes = "96KiB"
[engine]
workers = 2
"""


@dataclass(slots=True)
class Folder:
    """One corpus. `windows`: when it was worked on (epoch seconds), to find its contacts in the server's log."""

    path: Path
    server: ServerProcess
    windows: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def make(cls, path: Path, server: ServerProcess, seeds: list[str]) -> Folder:
        path.mkdir()
        (path / "seeds.txt").write_text("\n".join(seeds) + "\n", "utf-8")
        (path / "corpus.toml").write_text(_TOML.format(gap=GAP_S, dns=server.dns), "utf-8")
        return cls(path, server)

    def argv(self, verb: str = "run", *overrides: str) -> list[str]:
        flags = [part for override in overrides for part in ("--set", override)]
        return [sys.executable, "-m", "corpus", verb, "-c", str(self.path / "corpus.toml"), *flags]

    def run(self, verb: str = "run", *overrides: str, timeout_s: float = 180.0) -> subprocess.CompletedProcess[str]:
        began = time.time()
        done = subprocess.run(self.argv(verb, *overrides), capture_output=True, text=True, timeout=timeout_s, check=False)
        self.windows.append((began, time.time()))
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done

    def killed(
        self, seed: int, kills: int, within_s: float, victim: Victim, *overrides: str,
        verb: str = "run", asking: bool = False, timeout_s: float = 180.0,
    ) -> KillReport:  # fmt: skip
        """Killed at moments up to `within_s` after each run has written its first line (`asking`: after the server has heard from it
        as well); then run to its end."""
        began = time.time()
        logs, heard = self.logs(), -1

        def next_time() -> bool:
            nonlocal logs, heard
            if not self.logs() - logs:
                return False
            if asking:
                heard, before = self.server.log_path.stat().st_size, heard
                if before in {-1, heard}:
                    return False
            logs, heard = self.logs(), -1
            return True

        report = run_until_killed(
            self.argv(verb, *overrides),
            seed=seed,
            after_s=(0.0, within_s),
            kills=kills,
            victim=victim,
            timeout_s=timeout_s,
            under_way=next_time,
        )
        self.windows.append((began, time.time()))
        assert report.exit_code == 0, report.stdout[-2000:] + report.stderr[-4000:]
        return report

    def logs(self) -> set[Path]:
        """Run logs that hold a line."""
        return {path for path in (self.path / "runs").glob("*/log.jsonl") if path.stat().st_size}

    def killed_crawling(self) -> int:
        """How many runs were killed between their first contact and the end of their crawl."""
        spans = [[json.loads(line) for line in path.read_bytes().splitlines() if line.endswith(b"}")] for path in self.logs()]
        asked = [events for events in spans if any(e["event"] == "progress" and e.get("requests") for e in events)]
        return sum(not any(e["event"] == "ending" for e in events) for events in asked)

    def ends_unreached(self) -> int:
        """How many runs never came to the end of their crawl."""
        return sum(b'"event": "ending"' not in path.read_bytes() for path in self.logs())

    def run_s(self, event: str | None = None) -> float:
        """From the first to the last line of the first run's log (or its first `event`): how long the work itself took."""
        lines = [json.loads(line) for line in min(self.logs()).read_text("utf-8").splitlines()]
        end = next(line for line in lines if line["event"] == event) if event else lines[-1]
        return (datetime.fromisoformat(end["at"]) - datetime.fromisoformat(lines[0]["at"])).total_seconds()

    # ---- what is compared

    def rows(self) -> list[dict[str, Any]]:
        """Rows of the release without the witness columns; one per URL and one per id."""
        files = sorted((self.path / "releases" / "v1" / "data").rglob("*.parquet"))
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        assert max(Counter(row["url"] for row in rows).values()) == 1
        assert max(Counter(row["id"] for row in rows).values()) == 1
        for row in rows:
            for name in WITNESS:
                del row[name]
            del row["consent"]["checked_at"]
        return sorted(rows, key=lambda row: row["id"])

    def urls(self) -> dict[str, tuple[str, str]]:
        """(state, reason) of every known URL."""
        found: dict[str, tuple[str, str]] = {}
        for file in sorted((self.path / ".local" / "frontier").glob("p*.sqlite")):
            with FrontierReader(file) as reader:
                for batch in reader.rows(("url", "state", "reason")):
                    for url, state, reason in batch:
                        assert url not in found
                        found[url] = (state, reason)
        return found

    def contacts(self) -> list[Contact]:
        return [c for c in self.server.log() if any(start <= c.arrived_wall <= end for start, end in self.windows)]

    def check_manners(self, refusals: list[str]) -> None:
        """Law D, from the server's side, over every restart."""
        contacts = self.contacts()
        assert contacts
        for group in Group:
            found = gap_violations(contacts, GAP_S, group)
            assert not found, f"{len(found)} of {len(contacts)}: {found[0]}"
        assert not refused_requests(contacts, refusals)
        first: dict[str, str] = {}
        for contact in contacts:
            first.setdefault(contact.host, contact.target)
        assert set(first.values()) <= {"/robots.txt", AWAY}

    def files(self, of: str = "releases/v1") -> dict[str, bytes]:
        folder = self.path / of
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
