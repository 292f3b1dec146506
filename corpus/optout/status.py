"""What an HTTP status (or a challenge) means for the body, for retries, for held copies and for the ledger: a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from corpus.optout.robots_tag import epoch_of


class StatusRow(NamedTuple):
    """`statement`: a value of the decision table's `http` rows, or empty. `retry`: `no`, `exponential`, or empty (answered).

    `keeps`: the body is the page that was asked for. `record` names the event in the ledger.
    """

    statement: str
    keeps: bool
    retry: str
    purge: bool
    backoff: bool
    reason: str
    record: str


_OK = StatusRow("", keeps=True, retry="", purge=False, backoff=False, reason="", record="")
_PARTIAL = StatusRow("", keeps=False, retry="no", purge=False, backoff=False, reason="protocol", record="partial")
_MOVED = StatusRow("", keeps=False, retry="", purge=False, backoff=False, reason="redirected", record="redirect")
_CLIENT = StatusRow("", keeps=False, retry="no", purge=False, backoff=False, reason="http-4xx", record="client-error")
_SERVER = StatusRow("", keeps=False, retry="exponential", purge=False, backoff=True, reason="http-5xx", record="server-error")
_STATUS: dict[int, StatusRow] = {
    206: _PARTIAL,
    304: _OK,  # the kept copy stands, and so do its signals
    401: StatusRow("401", keeps=False, retry="no", purge=False, backoff=False, reason="http-401", record="login-required"),
    402: StatusRow("402", keeps=False, retry="no", purge=False, backoff=False, reason="http-402", record="payment-required"),
    403: StatusRow("403", keeps=False, retry="no", purge=False, backoff=True, reason="http-403", record="forbidden"),
    404: StatusRow("", keeps=False, retry="no", purge=False, backoff=False, reason="http-404", record="not-found"),
    410: StatusRow("", keeps=False, retry="no", purge=True, backoff=False, reason="http-410", record="gone"),
    429: StatusRow("", keeps=False, retry="exponential", purge=False, backoff=True, reason="http-429", record="throttled"),
    451: StatusRow("451", keeps=False, retry="no", purge=True, backoff=False, reason="http-451", record="legal"),
    503: StatusRow("", keeps=False, retry="exponential", purge=False, backoff=True, reason="http-503", record="unavailable"),
}
CHALLENGE = StatusRow("challenge", keeps=False, retry="no", purge=False, backoff=True, reason="challenge", record="bot-challenge")
LICENCE = _STATUS[401]._replace(record="license-required")


def status_row(status: int) -> StatusRow:
    """The row of any status, known or not: what is no success is never kept."""
    if status in _STATUS:
        return _STATUS[status]
    if 200 <= status < 300:
        return _OK
    if 300 <= status < 400:
        return _MOVED
    return _CLIENT if 400 <= status < 500 else _SERVER


MAX_WAIT_S = 400 * 86_400.0
"""A longer wait says "never"; it is cut here so that no arithmetic downstream meets an absurd number."""


def retry_after_s(values: Iterable[str], date: str | None, at: float) -> float | None:
    """Seconds to wait by `Retry-After`: a number, or a date counted from the answer's own `Date` (else from `at`)."""
    waits = []
    for value in values:
        word = value.strip()
        if word.isascii() and word.isdigit() and len(word) <= 12:
            waits.append(float(word))
        elif (then := epoch_of(word)) is not None:
            now = epoch_of(date) if date else None
            waits.append(max(0.0, then - (at if now is None else now)))
    return min(max(waits), MAX_WAIT_S) if waits else None
