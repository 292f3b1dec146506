"""Token counts by a byte-level BPE: GPT-2's own, or that of a merges file.

Only counts are made, on kept texts. Work per text is bounded by its length times a logarithm, whatever it holds; the cache
lives in the counter and changes no count.
"""

from __future__ import annotations

import hashlib
import heapq
import importlib
from collections.abc import Sequence
from pathlib import Path

from corpus.errors import UsageError
from corpus.export.ports import TokenCounter

_PIECES = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's pre-tokenisation (Radford et al. 2019): contractions, words, numbers, other runs, white space."""
GPT2_MERGES = Path(__file__).parent / "data" / "gpt2_merges.txt"
"""GPT-2's merges as OpenAI published them (MIT, see NOTICE); vendored, so that nothing is fetched at run time."""
_CACHED_PIECES = 200_000
_CACHED_LENGTH = 64


def token_counter(tokenizer: str) -> TokenCounter | None:
    """The counter that `export.tokenizer` names; None for `none`. Raises UsageError when it cannot be had."""
    if tokenizer == "none":
        return None
    if tokenizer == "gpt2":
        return ByteBpe("gpt2", GPT2_MERGES)
    path = Path(tokenizer)
    if not path.is_file():
        raise UsageError(
            f"no such tokenizer file: {tokenizer}", "export.tokenizer", 'expected "gpt2", "none" or a file of BPE merges'
        )
    return ByteBpe(path.name, path)


class ByteBpe:
    """Counts the tokens of a byte-level BPE given by its merges file (`left right` a line, best first)."""

    def __init__(self, name: str, merges: Path) -> None:
        raw = merges.read_bytes()
        self.name = f"{name} sha256:{hashlib.sha256(raw).hexdigest()[:16]}"
        self._findall = importlib.import_module("regex").compile(_PIECES).findall
        self._ranks = _ranks(raw, merges)
        self._alphabet = _byte_letters()
        self._cache: dict[str, int] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return [self._of_text(text) for text in texts]

    def _of_text(self, text: str) -> int:
        cache = self._cache
        pieces = self._findall(text)
        try:
            return sum(map(cache.__getitem__, pieces))
        except KeyError:
            return sum(cache[piece] if piece in cache else self._of_piece(piece) for piece in pieces)

    def _of_piece(self, piece: str) -> int:
        letters = [self._alphabet[byte] for byte in piece.encode("utf-8", "surrogatepass")]
        tokens = _merged(letters, self._ranks)
        if len(piece) <= _CACHED_LENGTH:
            if len(self._cache) >= _CACHED_PIECES:
                self._cache.clear()
            self._cache[piece] = tokens
        return tokens


def _ranks(raw: bytes, path: Path) -> dict[tuple[str, str], int]:
    ranks: dict[tuple[str, str], int] = {}
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
        pair = line.split(" ")
        if not line or line.startswith("#version"):
            continue
        if len(pair) != 2:
            raise UsageError("not a BPE merge", f"{path}:{number}", "expected two symbols a line, as in GPT-2's vocab.bpe")
        ranks.setdefault((pair[0], pair[1]), len(ranks))
    if not ranks:
        raise UsageError("no BPE merges", str(path), "expected two symbols a line, as in GPT-2's vocab.bpe")
    return ranks


def _byte_letters() -> list[str]:
    """The printable letter that stands for each byte in GPT-2's files: itself where printable, else the next free from 256."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    free = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(free)) for byte in range(256)]


def _merged(symbols: list[str], ranks: dict[tuple[str, str], int]) -> int:
    """How many symbols are left when every known pair has been merged, best rank first, leftmost first. O(n log n)."""
    count = len(symbols)
    after = [*range(1, count), -1] if count else []
    before = list(range(-1, count - 1))
    queue = [
        (rank, i, symbols[i] + symbols[i + 1])
        for i in range(count - 1)
        if (rank := ranks.get((symbols[i], symbols[i + 1]))) is not None
    ]
    heapq.heapify(queue)
    alive = count
    while queue:
        _, left, text = heapq.heappop(queue)
        right = after[left]
        if right < 0 or not symbols[left] or symbols[left] + symbols[right] != text:
            continue  # one of the two has been merged with another since
        symbols[left], symbols[right] = text, ""
        after[left] = after[right]
        alive -= 1
        if after[left] >= 0:
            before[after[left]] = left
        for low in (before[left], left):
            high = after[low] if low >= 0 else -1
            if high >= 0 and (rank := ranks.get((symbols[low], symbols[high]))) is not None:
                heapq.heappush(queue, (rank, low, symbols[low] + symbols[high]))
    return alive
