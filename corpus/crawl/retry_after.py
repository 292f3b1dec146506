"""What a Retry-After header asks for, in seconds from now. Pure.

Both forms of RFC 9110 §10.2.3 are read. A date is compared with the answer's own Date header, so that a server whose
clock is wrong is still understood; a time in the past means "now". Rubbish means nothing was asked.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

MAX_S = 400 * 86_400.0
"""Longer waits say "never"; they are cut here so that no arithmetic downstream meets an absurd number."""


def retry_after_s(value: str | None, date: str | None, now: float) -> float | None:
    """Seconds to wait (0 … `MAX_S`), or None when nothing readable was asked.

    `value` is the Retry-After header, `date` the Date header of the same answer, `now` epoch seconds (used when the
    answer has no readable Date).
    """
    text = (value or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        # Python refuses to convert numbers of thousands of digits; nobody means one.
        return MAX_S if len(text) > 12 else min(float(text), MAX_S)
    until = http_date(text)
    if until is None:
        return None
    since = http_date(date or "")
    return min(max(until - (now if since is None else since), 0.0), MAX_S)


def http_date(text: str) -> float | None:
    """An HTTP date (any of the three legal forms) as epoch seconds, or None. Dates without a zone are GMT."""
    if not text or len(text) > 64:
        return None
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = parsedate_to_datetime(f"{text} +0000")
        return moment.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
