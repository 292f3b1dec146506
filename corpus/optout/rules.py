"""Allow and Disallow lines of one agent, compiled: the longest match decides, an equally long Allow wins.

Plain prefixes are looked up by length in a dict and wildcards are tried longest first, so that ten thousand rules cost
little more than ten. Where reserved escapes make two readings possible, a Disallow matches under either and an Allow
only under both (`match.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from corpus.optout.match import Pattern, Target, Wild, compile_pattern
from corpus.optout.robots import Rule


class Ruleset:
    """Immutable once built. `find` returns the deciding rule, or None where no rule matches."""

    __slots__ = ("_all", "_firsts", "_one_reading", "_prefixes", "_sizes", "_wilds")

    def __init__(self, rules: Iterable[Rule]) -> None:
        compiled = [(pattern, rule) for rule in rules if (pattern := compile_pattern(rule.pattern)) is not None]
        # an Allow before a Disallow of its size; of equals, the first in the file is the one that is cited
        compiled.sort(key=lambda item: (-item[0].size, not item[1].allow, item[1].line_no))
        self._all: tuple[tuple[Pattern, Rule], ...] = tuple(compiled)
        self._one_reading = all(pattern.literal == pattern.loose for pattern, _ in compiled)
        prefixes: dict[str, Rule] = {}
        wilds: list[tuple[int, str, Wild, Rule]] = []
        for pattern, rule in compiled:
            form = pattern.literal
            if isinstance(form, str) and len(form) == pattern.size:
                prefixes.setdefault(form, rule)
            else:
                wild = Wild(form, (), None) if isinstance(form, str) else form
                wilds.append((pattern.size, max((wild.head, *wild.parts, wild.tail or ""), key=len), wild, rule))
        self._prefixes = prefixes
        self._firsts = tuple(prefixes)
        self._sizes = tuple(sorted({len(prefix) for prefix in prefixes}, reverse=True))
        self._wilds = tuple(wilds)

    def __len__(self) -> int:
        return len(self._all)

    def find(self, target: Target) -> Rule | None:
        """The rule that decides about a target."""
        path = target.literal
        if not self._one_reading or path != target.loose:
            return next((rule for pattern, rule in self._all if pattern.under(target, both=rule.allow)), None)
        best: Rule | None = None
        best_size = 0
        if path.startswith(self._firsts):
            for size in self._sizes:
                best = self._prefixes.get(path[:size])
                if best is not None:
                    best_size = min(size, len(path))  # a short path is its own prefix at every longer size
                    break
        for size, needle, wild, rule in self._wilds:
            if best is not None and (size < best_size or (size == best_size and (best.allow or not rule.allow))):
                break
            if needle in path and wild.matches(path):
                return rule
        return best
