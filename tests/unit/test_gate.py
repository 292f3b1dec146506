"""The near-copy index against a plain model of it, and what it costs in memory."""

from __future__ import annotations

import hashlib
import random

from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl.gate import COMPARED_MAX, Fingerprint, NearCopy, NearIndex
from corpus.crawl.ports import Original
from corpus.page.simhash import distance


def _plain(pages: list[Fingerprint], k: int) -> list[NearCopy | None]:
    """What the index promises, by comparing with everything."""
    kept: list[Fingerprint] = []
    answers: list[NearCopy | None] = []
    for page in pages:
        answers.append(_answer(kept, page, k))
        if (
            answers[-1] is None
            and not page.alias
            and (page.url, page.content_sha256) not in {(p.url, p.content_sha256) for p in kept}
        ):
            kept.append(page)
    return answers


def _answer(kept: list[Fingerprint], page: Fingerprint, k: int) -> NearCopy | None:
    same = next((old for old in kept if old.content_sha256 == page.content_sha256), None)
    if same is not None:
        return None if same.url == page.url else NearCopy(Original(same.url, same.found, same.fetched_at), 0, identical=True)
    if page.simhash is None:
        return None
    near = [
        (distance(page.simhash, old.simhash), old.url, n)
        for n, old in enumerate(kept)
        if old.simhash is not None and old.url != page.url and distance(page.simhash, old.simhash) <= k
    ]
    if not near:
        return None
    apart, _, n = min(near)
    return NearCopy(Original(kept[n].url, kept[n].found, kept[n].fetched_at), apart, identical=False)


_BASES = (0, 2**64 - 1, 0xDEADBEEF00FF1234, 1 << 63)
_PAGES = st.builds(
    Fingerprint,
    url=st.sampled_from(["https://a.test/", "https://a.test/\u00e9?x=\udcff", "https://b.test/1", "https://c.test/2"]),
    content_sha256=st.integers(0, 6).map(lambda n: hashlib.sha256(bytes([n])).hexdigest()),
    simhash=st.none()
    | st.tuples(st.sampled_from(_BASES), st.lists(st.integers(0, 63), max_size=5)).map(
        lambda made: made[0] ^ sum(1 << bit for bit in set(made[1]))
    ),
    found=st.sampled_from(["", "https://a.test/", "https://found.test/A"]),
    fetched_at=st.none() | st.floats(0, 2e9),
    alias=st.booleans(),
)


@given(st.lists(_PAGES, max_size=30), st.integers(1, 7), st.integers(0, 30))
def test_it_answers_as_if_it_compared_everything(pages: list[Fingerprint], k: int, known: int) -> None:
    """Same answers as the plain model for any pages and any `k`; in one batch, one by one, and after a restart."""
    expected = _plain(pages, k)
    assert NearIndex(k).ask(pages) == expected
    one_by_one = NearIndex(k)
    assert [answer for page in pages for answer in one_by_one.ask([page])] == expected
    kept = [page for page, copy in zip(pages[:known], expected, strict=False) if copy is None and not page.alias]
    assert NearIndex(k, kept).ask(pages[known:]) == expected[known:]


def test_a_page_that_comes_again_as_it_was_costs_nothing() -> None:
    """An endless crawl of pages that stay as they are does not grow the index."""
    pages = [Fingerprint(f"https://a.test/{n}", hashlib.sha256(bytes([n])).hexdigest(), n << 40) for n in range(40)]
    index = NearIndex(1)
    first = index.ask(pages)
    size = len(index)
    for _ in range(3):
        assert index.ask([page for page, copy in zip(pages, first, strict=True) if copy is None]) == [None] * size
    assert len(index) == size


def test_a_template_that_everybody_shares_is_compared_so_often_and_no_more() -> None:
    """Six thousand pages with one block of bits in common: only the oldest of them are compared by it, as many as is said."""
    rng = random.Random(1)
    hashes = [rng.getrandbits(48) << 16 | 0x1234 for _ in range(6_000)]
    index = NearIndex(3)
    index.ask([Fingerprint(f"https://a.test/{n}", hashlib.sha256(b"%d" % n).hexdigest(), h) for n, h in enumerate(hashes)])
    flips = 1 << 16 | 1 << 32 | 1 << 48  # every other block differs
    old, new = (
        Fingerprint("https://b.test/", hashlib.sha256(b"copy of %d" % n).hexdigest(), hashes[n] ^ flips)
        for n in (COMPARED_MAX - 1, COMPARED_MAX)
    )
    assert index.ask([old]) == [NearCopy(Original(f"https://a.test/{COMPARED_MAX - 1}"), 3, identical=False)]
    assert NearIndex(3).ask([new]) == index.ask([new]) == [None]
