"""The life of a URL as one table: (state, event) -> state. Nothing else in the package decides a transition.

Two house rules. Every transition lives here; and this file knows no storage, no clock and no network, so a store, a
simulation and the pictures in ARCHITECTURE.md read the same table.

A URL is *discovered* when a page links to it. It then travels to the partition that owns its registered domain and
is *queued* there, or *excluded* when a filter that needs nobody's answer (scope, depth, traps, budgets, block log)
says no. The owner takes it (*in-flight*, a state that exists only in the memory of the process that took it: after a
crash the row still says queued, which is why a crash costs a refetch and never a URL). Authority files are judged at
the moment of taking, so a queued URL may be *refused* without any contact. A contact ends in exactly one of:
*fetched* (a page is stored), *not-modified*, *redirected* (the target has a row of its own), *refused* (by a signal
of the response), *failed* (tries ran out), *gone*; or it is put off: back to queued with a time, or *parked* when the
wait is too long to be waited out inside a run.

The way back is always *queued*: a parked URL wakes, a refused one reopens when its authority file changed, an
excluded one is admitted by a better sighting or a raised budget, a visited one falls due again, a linked near copy
whose original is withdrawn is asked for itself. *parsed* is derived from commit records and never stored.

An event that its state does not allow raises `IllegalTransition` and changes nothing.
"""

from __future__ import annotations

from enum import StrEnum

from corpus.errors import IllegalTransition
from corpus.model import UrlState


class UrlEvent(StrEnum):
    """All that can happen to a URL."""

    ADMIT = "admit"
    """A sighting passed the pure filters at its owner."""
    EXCLUDE = "exclude"
    """A filter, a budget, the operator or a takedown says no."""
    TAKE = "take"
    PUT_BACK = "put-back"
    """Taken and not asked for (drain, lost lease), or asked in vain and to be asked again soon."""
    PARK = "park"
    WAKE = "wake"
    FETCH = "fetch"
    UNCHANGED = "unchanged"
    REDIRECT = "redirect"
    REFUSE = "refuse"
    FAIL = "fail"
    VANISH = "vanish"
    MEASURE = "measure"
    REOPEN = "reopen"
    """The authority file that refused has another digest now."""
    DUE = "due"
    """Time for another visit, or a linked near copy lost its original."""


_S, _E = UrlState, UrlEvent

_ENDS_OF_A_CONTACT: dict[UrlEvent, UrlState] = {
    _E.FETCH: _S.FETCHED,
    _E.UNCHANGED: _S.NOT_MODIFIED,
    _E.REDIRECT: _S.REDIRECTED,
    _E.REFUSE: _S.REFUSED,
    _E.FAIL: _S.FAILED,
    _E.VANISH: _S.GONE,
    _E.PARK: _S.PARKED,
    _E.PUT_BACK: _S.QUEUED,
    _E.EXCLUDE: _S.EXCLUDED,
}

TRANSITIONS: dict[UrlState, dict[UrlEvent, UrlState]] = {
    _S.DISCOVERED: {_E.ADMIT: _S.QUEUED, _E.EXCLUDE: _S.EXCLUDED},
    _S.QUEUED: {
        _E.TAKE: _S.IN_FLIGHT,
        _E.PUT_BACK: _S.QUEUED,
        _E.PARK: _S.PARKED,
        _E.REFUSE: _S.REFUSED,
        _E.FAIL: _S.FAILED,
        _E.EXCLUDE: _S.EXCLUDED,
    },
    _S.IN_FLIGHT: dict(_ENDS_OF_A_CONTACT),
    _S.FETCHED: {_E.MEASURE: _S.PARSED, _E.DUE: _S.QUEUED, _E.REFUSE: _S.REFUSED, _E.EXCLUDE: _S.EXCLUDED},
    _S.PARSED: {_E.DUE: _S.QUEUED, _E.REFUSE: _S.REFUSED, _E.EXCLUDE: _S.EXCLUDED},
    _S.NOT_MODIFIED: {_E.DUE: _S.QUEUED, _E.REFUSE: _S.REFUSED, _E.EXCLUDE: _S.EXCLUDED},
    _S.REDIRECTED: {_E.DUE: _S.QUEUED, _E.EXCLUDE: _S.EXCLUDED},
    _S.REFUSED: {_E.REOPEN: _S.QUEUED, _E.DUE: _S.QUEUED, _E.EXCLUDE: _S.EXCLUDED},
    _S.FAILED: {_E.DUE: _S.QUEUED, _E.EXCLUDE: _S.EXCLUDED},
    _S.GONE: {_E.DUE: _S.QUEUED, _E.EXCLUDE: _S.EXCLUDED},
    _S.EXCLUDED: {_E.ADMIT: _S.QUEUED, _E.EXCLUDE: _S.EXCLUDED},
    _S.PARKED: {_E.WAKE: _S.QUEUED, _E.EXCLUDE: _S.EXCLUDED, _E.REFUSE: _S.REFUSED},
}
assert set(TRANSITIONS) == set(UrlState), "every state of a URL needs a row of transitions"

STORED = frozenset(UrlState) - {_S.DISCOVERED, _S.IN_FLIGHT, _S.PARSED}
"""States that a frontier row may hold."""

VISITED = frozenset({_S.FETCHED, _S.NOT_MODIFIED, _S.REDIRECTED, _S.REFUSED, _S.FAILED, _S.GONE})
"""States that a finished contact (or a refusal without one) leaves behind; a time of theirs means the next visit."""

READMITTED_BY_A_SIGHTING = frozenset(
    {
        "out-of-scope",
        "scope-exclude",
        "too-deep",
        "url-too-long",
        "too-many-params",
        "repeated-segments",
        "unwanted-extension",
        "too-many-redirects",
        "trap",
        "low-yield",
        "host-retired",
    }
)
"""Exclusions by a pure URL filter: a later sighting that passes the filters lifts them, because the verdict hung on the
sighting (its depth, its hops) or on settings that have changed since. Budgets, blocks and takedowns are lifted by hand."""


def after(state: UrlState, event: UrlEvent) -> UrlState:
    """The state that follows. Raises IllegalTransition where the table has no row."""
    follows = TRANSITIONS[state].get(event)
    if follows is None:
        raise IllegalTransition(f"a URL that is {state.value} cannot {event.value}", hint="this is a defect: please report it")
    return follows


def _settlements() -> frozenset[tuple[UrlState, UrlState]]:
    """Pairs (stored state, state settled by its owner): the way back to queued if need be, a take, the end of a contact."""
    pairs = {(state, target) for state in STORED for target in TRANSITIONS[state].values() if target in STORED}
    for state in STORED:
        returns = state is _S.QUEUED or _S.QUEUED in TRANSITIONS[state].values()
        pairs |= {(state, end) for end in _ENDS_OF_A_CONTACT.values() if returns}
    return frozenset(pairs)


SETTLEMENTS = _settlements()


def check_settlement(stored: UrlState, settled: UrlState) -> None:
    """Raises IllegalTransition unless the owner of a row in state `stored` may report `settled` about it."""
    if (stored, settled) not in SETTLEMENTS:
        raise IllegalTransition(
            f"a URL that is {stored.value} cannot be settled as {settled.value}", hint="this is a defect: please report it"
        )
