"""A release in three lines for tests: made-up pages in, clusters and release out, with a judge and a policy that can be told
what to say."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from corpus.export.build import Parts, ReleaseResult, build_release
from corpus.export.ports import CONSENT, ReleaseOptions, Segment, SnapshotInputs
from corpus.export.schema import release_schema
from corpus.filter.reduce import cluster_snapshot
from corpus.filter.settings import DedupSettings
from corpus.filter.versions import write_versions
from tests import make_families as mf

SIGNALS = (("chars", pa.int64()), ("words", pa.int64()), ("quality_score", pa.float64()))
CHECKED = datetime.datetime(2026, 11, 20)  # noqa: DTZ001  (families store UTC without a zone)
_fresh = itertools.count()


@dataclass
class Judge:
    """Refuses what `refuse` maps to a reason (by substring of the URL); otherwise repeats what the page itself said."""

    refuse: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def judge(self, urls: pa.Array, use: pa.Array, evidence: pa.Array, fetched_at: pa.Array) -> pa.Table:
        rows = []
        for url, said in zip(urls.to_pylist(), use.to_pylist(), strict=True):
            self.asked.append(url)
            reason = next((why for part, why in self.refuse.items() if part in url), "tdmrep" if said == "no" else "")
            stale = reason == "stale"
            rows.append(
                {
                    "access": "no" if reason == "robots" else "yes", "use": "no" if reason and not stale else said, "export": not reason,
                    "reason": reason, "evidence_digest": "e" * 64, "checked_at": CHECKED, "stale": stale,
                }
            )  # fmt: skip
        return pa.Table.from_pylist(rows, schema=CONSENT)


@dataclass
class Policy:
    """Keeps texts of at least `least` words."""

    least: int = 0
    cut: tuple[str, ...] = ()
    name: str = "test"
    signals: tuple[str, ...] = ("words",)

    @property
    def digest(self) -> str:
        return f"{self.least:064d}"

    def sql(self, signals: str) -> str:
        fails = f"words < {self.least}"
        return (
            f"SELECT id, CASE WHEN {fails} THEN 'min_words' END AS drop_rule, CASE WHEN {fails} THEN words::DOUBLE END AS measured,"
            f" CASE WHEN {fails} THEN {self.least}::DOUBLE END AS \"limit\", CASE WHEN {fails} THEN 'words min {self.least}' END AS keep FROM {signals}"
        )


class Lengths:
    """Counts white-space words as tokens."""

    name = "words"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def words(seed: int, count: int = 120) -> list[str]:
    """`count` made-up words, the same for a seed, different between seeds."""
    return [f"w{(seed * 7919 + i * i * 31 + i) % 100_003}" for i in range(count)]


def text(seed: int, count: int = 120) -> str:
    return " ".join(words(seed, count))


def near(seed: int, change: int, count: int = 120) -> str:
    """A near copy of `text(seed)`: one word changed."""
    made = words(seed, count)
    made[count // 2] = f"changed{change}"
    return " ".join(made)


@dataclass
class Kit:
    """Builds releases of pages in `folder`; `shards` says how pages are spread over segments."""

    folder: Path
    judge: Judge = field(default_factory=Judge)
    policy: Policy = field(default_factory=Policy)
    options: ReleaseOptions = field(default_factory=lambda: ReleaseOptions(memory=500 * 2**20))
    tokens: Lengths | None = None
    inputs: dict[str, object] = field(default_factory=dict)
    spread: Callable[[int], int] = lambda at: 0
    row_group: int = 1000

    def snapshot(self, pages: Iterable[mf.Page]) -> SnapshotInputs:
        """Write the families and cluster them."""
        place = self.folder / f"s{next(_fresh)}"
        parts: dict[int, list[mf.Page]] = {}
        for at, page in enumerate(pages):
            parts.setdefault(self.spread(at), []).append(page)
        families = {
            f"s{n:02d}-000001-000001": mf.write_family(place, f"s{n:02d}-000001-000001", rows, self.row_group)
            for n, rows in sorted(parts.items())
        }
        scratch = place / "scratch"
        scratch.mkdir(parents=True)
        cluster_snapshot(
            [family.documents for family in families.values()],
            [family.signatures for family in families.values()],
            DedupSettings(),
            place / "clusters.parquet",
            scratch=scratch,
            shingles=mf.shingles,
            pairs_path=place / "pairs.parquet",
        )
        segments = tuple(Segment(name, f.documents, f.signals, f.spans) for name, f in families.items())
        made = SnapshotInputs("d" * 64, segments, place / "clusters.parquet", place / "pairs.parquet")
        if self.options.versions == "major":
            (place / "older").mkdir()
            files = [f.documents for f in families.values()], [f.signatures for f in families.values()]
            write_versions(*files, DedupSettings(), place / "versions.parquet", scratch=place / "older")
            made = replace(made, versions=place / "versions.parquet")
        return replace(made, **self.inputs)

    def release(self, pages: Iterable[mf.Page]) -> ReleaseResult:
        return self.build(self.snapshot(pages))

    def build(self, inputs: SnapshotInputs) -> ReleaseResult:
        place = self.folder / f"r{next(_fresh)}"
        (place / "scratch").mkdir(parents=True)
        parts = Parts(self.judge, self.policy, SIGNALS, self.tokens)
        return build_release(
            inputs, parts, self.options, place / "releases", decisions_path=place / "decisions.parquet", scratch=place / "scratch"
        )


def rows(result: ReleaseResult) -> pa.Table:
    """All rows of a release, shard by shard."""
    import pyarrow.parquet as pq

    empty = release_schema(SIGNALS).empty_table()
    return pa.concat_tables(
        [empty, *(pq.ParquetFile(result.folder / shard["path"]).read() for shard in result.manifest["shards"])]
    )


def urls(result: ReleaseResult) -> list[str]:
    return sorted(rows(result)["url"].to_pylist())


def decisions(result: ReleaseResult) -> dict[str, dict[str, object]]:
    """The latest decision of each URL."""
    import pyarrow.parquet as pq

    assert result.decisions is not None
    return {row["url"]: row for row in pq.read_table(result.decisions.path).to_pylist() if row["latest"]}


def shard_urls(result: ReleaseResult, shard: dict[str, object]) -> list[str]:
    """The URLs of one shard, in its order."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(result.folder / str(shard["path"])).read(columns=["url"])["url"].to_pylist()
