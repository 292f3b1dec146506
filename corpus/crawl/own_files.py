"""The partition files that a fetch process owns at this moment; they may come and go while it runs.

Read from the loop's thread and the store's. Nothing is ever changed in place, so whoever goes through the files sees those of one moment.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView

from corpus.crawl.ports import FrontierStore


class OwnFiles(Mapping[int, FrontierStore]):
    """Stores by the number of their file."""

    def __init__(self, files: Mapping[int, FrontierStore] | None = None) -> None:
        self._now: dict[int, FrontierStore] = dict(files or {})

    def __getitem__(self, number: int) -> FrontierStore:
        return self._now[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)

    def items(self) -> ItemsView[int, FrontierStore]:
        return self._now.items()

    def values(self) -> ValuesView[FrontierStore]:
        return self._now.values()

    def come(self, files: Mapping[int, FrontierStore]) -> None:
        """These are ours from now on."""
        self._now = {**self._now, **files}

    def go(self, number: int) -> None:
        """This one is no longer ours."""
        self._now = {other: kept for other, kept in self._now.items() if other != number}
