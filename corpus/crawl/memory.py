"""What a fetch process may keep in memory, part by part, and what bounds each part. Printed by `corpus status`, held by a test."""

from __future__ import annotations

from dataclasses import dataclass

MB = 2**20


@dataclass(frozen=True, slots=True)
class Part:
    """One line of the budget: megabytes, and the thing in the code that keeps to it."""

    name: str
    megabytes: int
    bound: str


BUDGET = (
    Part("interpreter and libraries", 120, "what a fetch process imports"),
    Part("hosts", 60, "about 400 bytes for each host in line (100,000), 3 kB for each of 2,048 desks"),
    Part("recent URLs", 16, "one block, seen.RecentSeen"),
    Part("filter of seen URLs", 10, "about 15 bits for each of 5 million URLs, seen.SeenFilter"),
    Part("SQLite", 32, "2 MB of page cache for each of 16 partition files"),
    Part("buffers", 50, "captures of at most 500 settlements, bodies in flight, patterns and what sites said lately"),
)


def total_mb() -> int:
    """The sum of the parts: less than 300 MB at 100,000 known hosts and 5 million known URLs."""
    return sum(part.megabytes for part in BUDGET)


def sentence() -> str:
    """The budget on one line."""
    return f"{total_mb()} MB for a fetch process: " + ", ".join(f"{part.name} {part.megabytes}" for part in BUDGET)
