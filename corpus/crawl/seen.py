"""Memory of URLs seen before, in front of the exact table: a recent-set without errors, and layered Bloom filters.

`RecentSeen` answers "this very claim about this URL was made before" and forgets the oldest; it may forget, it never
invents, so senders may drop what it knows. `SeenFilter` answers "certainly new" or "maybe known" for all URLs of an
owner; it may invent (rarely, by a stated bound), it never forgets. Neither is durable: both are rebuilt from the table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rbloom import Bloom

from corpus.model import Kind, Sighting

WAYS = 8
_SPREAD = 0x5851F42D4C957F2D
"""Odd and under 2^63, so that 64 bits times it are a signed 128-bit number."""
_ENTRY_BYTES = 16
_DEPTH_MAX, _HOPS_MAX = 0xFFF, 0xFF

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]


def claim_of(sighting: Sighting, *, admitted: bool = True) -> int:
    """What a sighting says about its URL, as four fields of a 32-bit number, each larger where the sighting is better.

    admitted (1 bit) | no page (1 bit) | sitemap claim in thousandths (10 bits) | nearness: 0xFFFFF less depth and hops (20 bits).
    """
    claim = sighting.priority if 0.0 <= sighting.priority <= 1.0 else 0.5
    far = min(sighting.depth, _DEPTH_MAX) << 8 | min(sighting.hops, _HOPS_MAX)
    return admitted << 31 | (sighting.kind is not Kind.PAGE) << 30 | round(claim * 1000) << 20 | (0xFFFFF - far)


class RecentSeen:
    """A fixed block of memory (16 bytes per URL, 8-way sets, oldest out first) of URL keys with the best claims made.

    Keys are the first 8 bytes of the URL's SHA-256: with a million of them a false "seen" is expected once in 10¹³ asks.
    """

    def __init__(self, size_bytes: int = 16 * 2**20) -> None:
        sets = 1 << max(0, (size_bytes // (_ENTRY_BYTES * WAYS)).bit_length() - 1)
        self._keys = np.zeros((sets, WAYS), np.uint64)
        self._claims = np.zeros((sets, WAYS), np.uint32)
        self._ages = np.zeros((sets, WAYS), np.uint32)
        self._mask = np.uint64(sets - 1)
        self._tick = 0

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._claims.nbytes + self._ages.nbytes

    def clear(self) -> None:
        self._keys.fill(0)

    def repeats(self, keys: U64, claims: U32) -> npt.NDArray[np.bool_]:
        """Which of these claims were remembered already, by this claim or a better one in every field."""
        rows = (keys & self._mask).astype(np.int64)
        hit = self._keys[rows] == keys[:, None]
        known = np.where(hit, self._claims[rows], 0).max(axis=1)
        repeated: npt.NDArray[np.bool_] = hit.any(axis=1) & _dominates(known, claims)
        return repeated

    def remember(self, keys: U64, claims: U32) -> None:
        """Remember claims that are durable by now. The better of two claims stays; of two that are each better in something, the new one."""
        self._tick += 1
        keys, first = np.unique(keys, return_index=True)
        claims = claims[first]
        rows = (keys & self._mask).astype(np.int64)
        hit = self._keys[rows] == keys[:, None]
        oldest_first = self._ages[rows].argsort(axis=1, kind="stable")
        victim = oldest_first[np.arange(len(rows)), _turn(rows) % WAYS]  # new keys of one set do not push each other out
        way = np.where(hit.any(axis=1), hit.argmax(axis=1), victim)
        held = np.where(hit, self._claims[rows], 0).max(axis=1)
        self._keys[rows, way] = keys
        self._claims[rows, way] = np.where(_dominates(held, claims), held, claims)
        self._ages[rows, way] = self._tick


def _turn(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each entry how many earlier entries have the same value."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.empty(len(rows), np.int64)
    turn[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(np.r_[starts, len(rows)]))
    return turn


def _dominates(known: U32, asked: U32) -> npt.NDArray[np.bool_]:
    good = np.ones(known.shape, np.bool_)
    for shift, mask in ((31, 1), (30, 1), (20, 0x3FF), (0, 0xFFFFF)):
        good &= ((known >> np.uint32(shift)) & np.uint32(mask)) >= ((asked >> np.uint32(shift)) & np.uint32(mask))
    return good


def keys_of(uids: Sequence[bytes]) -> U64:
    """The first 8 bytes of each 16-byte url_id, never 0 (0 marks an empty place)."""
    keys = np.frombuffer(b"".join(uids), dtype=np.dtype(">u8"))[::2].astype(np.uint64)
    keys[keys == 0] = 1
    return keys


def _bits(uid: bytes) -> int:
    """A url_id is a cryptographic digest already: its first 64 bits, spread over 127, are the hash. The same in every process."""
    return int.from_bytes(uid[:8], "big") * _SPREAD


class SeenFilter:
    """Bloom layers that together err at most `p` of the time: each is `growth` times as large and half as wrong as the last.

    15.8 bits a key at p = 0.001 in the first layer, 1.44 more in each further one. Only the first 8 bytes of a url_id
    count: with 10⁸ of them, two that share those are expected once in some thousand crawls.
    """

    def __init__(self, p: float = 0.001, first: int = 262_144, *, growth: int = 2) -> None:
        self._p, self._first, self._growth = p, first, growth
        self._layers: list[tuple[Bloom, int]] = []
        self._room = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, uid: bytes) -> bool:
        """False is certain. True is wrong at most `p` of the time."""
        return any(uid in layer for layer, _ in self._layers)

    @property
    def nbytes(self) -> int:
        return sum(layer.size_in_bits // 8 for layer, _ in self._layers)

    @property
    def error_bound(self) -> float:
        """The most often that `in` may be wrong, over all layers."""
        return sum(rate for _, rate in self._rates())

    @property
    def error_now(self) -> float:
        """How often `in` is wrong as full as the layers are: a layer that is half full errs far less than its bound."""
        right = 1.0
        for n, (layer, size) in enumerate(self._layers):
            full = self._room if n == len(self._layers) - 1 else 0
            hashes = max(round(math.log2(1.0 / (self._p / 2 ** (n + 1)))), 1)
            share = 1.0 - math.exp(-hashes * (size - full) / layer.size_in_bits)
            right *= 1.0 - share**hashes
        return 1.0 - right

    def save(self, path: Path, label: str) -> None:
        """Write the filter beside what it is about; `label` must be named to read it again."""
        head = {
            "label": label,
            "p": self._p,
            "first": self._first,
            "growth": self._growth,
            "count": self._count,
            "room": self._room,
        }
        bodies = [(layer.save_bytes(), size) for layer, size in self._layers]
        head["layers"] = [(len(body), size) for body, size in bodies]
        part = path.with_name(path.name + ".part")
        try:
            part.write_bytes(json.dumps(head).encode() + b"\n" + b"".join(body for body, _ in bodies))
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: Path, label: str) -> SeenFilter | None:
        """What `save` wrote under this label; None when there is none, or it is not whole."""
        try:
            line, _, rest = path.read_bytes().partition(b"\n")
            head = json.loads(line)
            if head["label"] != label or len(rest) != sum(length for length, _ in head["layers"]):
                return None
            found = cls(head["p"], head["first"], growth=head["growth"])
            for length, size in head["layers"]:
                found._layers.append((Bloom.load_bytes(rest[:length], _bits), size))
                rest = rest[length:]
            found._count, found._room = head["count"], head["room"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found

    def _rates(self) -> list[tuple[int, float]]:
        return [(n, self._p / 2 ** (n + 1)) for n in range(len(self._layers))]

    def update(self, uids: Iterable[bytes]) -> None:
        """Add URLs that were not in the filter."""
        for uid in uids:
            if not self._room:
                n = len(self._layers)
                size = self._first * self._growth**n
                self._layers.append((Bloom(size, self._p / 2 ** (n + 1), _bits), size))
                self._room = size
            self._layers[-1][0].add(uid)
            self._room -= 1
            self._count += 1
