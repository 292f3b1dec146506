"""How many contacts go to pages that are due again and how many to new ones, while both wait. Pure.

One number tells which kind is behind its share; whoever has a choice takes that kind. It is bounded, so that a kind
which could not be served for a while (its hosts were resting) does not take everything afterwards.
"""

from __future__ import annotations

MOST_BEHIND = 32.0
"""Contacts that a kind can be behind its share."""


class Mix:
    """`share` of the contacts go to revisits. Counts only contacts that were made while the other kind waited too."""

    def __init__(self, share: float, most_behind: float = MOST_BEHIND) -> None:
        self._share, self._most = share, most_behind
        self.behind = 0.0
        """Revisits that are still owed; negative where there were too many."""

    def revisits_next(self, more: float = 0.0) -> bool:
        """Whether a revisit should be next, where there is a choice; `more` are owed elsewhere."""
        behind = self.behind + more
        return self._share > 0.0 and (behind > 0.0 or (behind == 0.0 and self._share >= 0.5))

    def took(self, *, again: bool) -> None:
        """A contact was made, for a revisit or for a new page, while both waited."""
        self.behind = min(max(self.behind + self._share - again, -self._most), self._most)
