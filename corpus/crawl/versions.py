"""What a visit found of a page that was known before: unchanged, a minor or a major change, or gone. Pure.

Minor is what the near-copy gate would call a copy: fingerprints of the visible words at most `near_k` bits apart. A page
too short for a fingerprint changes majorly whenever its bytes do: nothing is called minor that could not be compared.
A redirect, a refusal or a failure says nothing about the page, so the chain of versions goes on after it.
"""

from __future__ import annotations

from corpus.crawl.nouns import Change, QueuedUrl
from corpus.model import Kind, UrlState
from corpus.page.simhash import distance

COMPARED = frozenset({UrlState.FETCHED, UrlState.NOT_MODIFIED, UrlState.GONE})
"""States after which a version is known, confirmed or over."""


def change_of(before: QueuedUrl, state: UrlState, content_sha256: str, simhash: int | None, near_k: int) -> Change | None:
    """What a visit that ended in `state` says about the page; None where there is nothing to compare."""
    if before.kind is not Kind.PAGE or before.history.checked_at is None or state not in COMPARED:
        return None
    if state is UrlState.NOT_MODIFIED or (state is UrlState.FETCHED and content_sha256 == before.content_sha256):
        return Change.UNCHANGED
    if state is UrlState.GONE:
        return Change.GONE if before.content_sha256 else Change.UNCHANGED
    if before.simhash is None or simhash is None:
        return Change.MAJOR
    return Change.MINOR if distance(before.simhash, simhash) <= near_k else Change.MAJOR
