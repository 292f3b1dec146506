"""A share of a stage's tasks: which of `world` callers does a task, known from the task's name alone.

Nobody is asked and nothing is counted, so a Slurm array or an Indexed Job needs no service. The name decides, not the
place in a list: a task that appears while ranks are starting moves no other task to another rank.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from corpus.errors import UsageError


@dataclass(frozen=True, slots=True)
class Share:
    """Rank `rank` of `world`, counted from 0. Raises UsageError for a rank that is not one of them."""

    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if self.world < 1:
            raise UsageError(f"a world of {self.world} has nobody in it", "--world", "it is the number of ranks")
        if not 0 <= self.rank < self.world:
            hint = f"ranks count from 0: Slurm needs --array=0-{self.world - 1}"
            raise UsageError(f"there is no rank {self.rank} among {self.world}", "--rank", hint)

    @property
    def whole(self) -> bool:
        """Whether it is all there is."""
        return self.world == 1

    @property
    def leads(self) -> bool:
        """Whether this rank does what is not shared out."""
        return self.rank == 0

    def mine(self, name: str) -> bool:
        """Whether this rank does the task of that name."""
        if self.whole:
            return True
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.world == self.rank


WHOLE = Share()
