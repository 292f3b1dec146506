"""From statements to a verdict: any no wins, else any yes, else unknown; what cannot be read defers and never allows.

A `Consent` is a pure function of its evidence and of the profile. Combining is joining evidence and deciding again, so
the order and number of parts never matter, and adding a refusal can never turn a no into a yes. One exception lies
inside one protocol: TDMRep says that a header supersedes the file and a meta element supersedes the header.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from corpus.model import Access, Consent, Evidence, Gate, Use
from corpus.optout.evidence import Origin, stated
from corpus.optout.settings import OptoutSettings

PERMISSION_ONLY = stated("operator", "permission-only", Origin("operator"), raw='optout.profile = "permission-only"')
_RETRIED = frozenset({"robots-unreachable"})
"""Access refusals that time may lift: they defer instead of settling the URL."""


def decide(evidence: Sequence[Evidence], settings: OptoutSettings, *, part: bool = False) -> Consent:
    """Both verdicts, and what follows, from every statement known about one URL.

    `part`: these are not all statements yet, so the profile's question (is there a permission?) is not asked.
    """
    effective = superseded(evidence)
    access = access_of(effective)
    use = _use_of(effective, access, final=_final(effective))
    if not part and use is Use.UNKNOWN and settings.profile == "permission-only":
        use = Use.NO
        evidence = (*evidence, PERMISSION_ONLY)
    gate = _gate(effective, access, use)
    store = gate is Gate.FETCH
    return Consent(access, use, gate, store=store, export=store, evidence=tuple(evidence))


def superseded(evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """Without the TDMRep statements that a later step of that protocol replaces (file < header < meta)."""
    steps = {_tdm_step(item) for item in evidence if item.protocol == "tdmrep" and item.verdict in {"yes", "no"}}
    if len(steps) < 2:
        return evidence
    last = max(steps)
    return [
        item for item in evidence if item.protocol != "tdmrep" or item.verdict not in {"yes", "no"} or _tdm_step(item) == last
    ]


def _tdm_step(item: Evidence) -> int:
    return {"header": 1, "meta": 2}.get(item.source, 0)


def access_of(evidence: Iterable[Evidence]) -> Access:
    """No wins over defer, defer over yes; without a statement a URL may be requested (RFC 9309 2.2.2)."""
    verdicts = {item.verdict for item in evidence if item.axis == "access"}
    if "no" in verdicts:
        return Access.NO
    return Access.DEFER if "defer" in verdicts else Access.YES


def _final(evidence: Iterable[Evidence]) -> bool:
    """Whether an access refusal stands that no retry can lift."""
    return any(item.axis == "access" and item.verdict == "no" and item.protocol not in _RETRIED for item in evidence)


def _use_of(evidence: Iterable[Evidence], access: Access, *, final: bool) -> Use:
    verdicts = {item.verdict for item in evidence if item.axis == "use"}
    if "no" in verdicts or (access is Access.NO and final):
        return Use.NO
    # a yes beside something unread is not a yes yet
    return Use.YES if "yes" in verdicts and access is Access.YES and not verdicts & {"defer", "hold"} else Use.UNKNOWN


def _gate(evidence: Sequence[Evidence], access: Access, use: Use) -> Gate:
    verdicts = {item.verdict for item in evidence if item.axis == "use"}
    if use is Use.NO:
        return Gate.SKIP
    if access is not Access.YES or "defer" in verdicts:
        return Gate.DEFER
    return Gate.HOLD if "hold" in verdicts else Gate.FETCH


def combine(parts: Iterable[Consent | Evidence | Iterable[Evidence]], settings: OptoutSettings) -> Consent:
    """One verdict from several: consents, single statements, or the statements of a stored row, in any order.

    A part that may not be stored (a missing page, say) keeps its veto.
    """
    evidence: dict[Evidence, None] = {}
    keep = True
    for part in parts:
        if isinstance(part, Evidence):
            evidence[part] = None
            continue
        if isinstance(part, Consent):
            keep = keep and (part.store or part.gate is not Gate.FETCH)
            part = part.evidence
        evidence.update(dict.fromkeys(item for item in part if item != PERMISSION_ONLY))
    whole = decide(tuple(evidence), settings)
    return whole if keep else Consent(whole.access, whole.use, whole.gate, store=False, export=False, evidence=whole.evidence)


def cluster_allows(uses: Iterable[Use], settings: OptoutSettings) -> bool:
    """Whether a cluster of verified near copies may send a member into a release, given every member's use."""
    uses = list(uses)
    if settings.cluster == "promote":
        return any(use is not Use.NO for use in uses)
    return all(use is not Use.NO for use in uses)


_WEIGHT = {"no": 0, "defer": 1, "hold": 2}


def deciding(consent: Consent) -> Evidence | None:
    """The statement that refused or deferred: access before use, no before defer before hold, then evidence order."""
    against = [item for item in superseded(consent.evidence) if item.verdict in _WEIGHT]
    return min(against, key=lambda item: (_weight(item), item.axis != "access"), default=None)


def _weight(item: Evidence) -> int:
    return _WEIGHT["defer" if item.protocol in _RETRIED else item.verdict]


def reason_of(consent: Consent) -> str:
    """The reason code (`corpus/reasons.py`) of a consent that does not let the URL pass; empty for one that does."""
    if consent.gate is Gate.FETCH:
        return ""
    item = deciding(consent)
    if item is None:
        return ""
    return "held" if item.verdict == "hold" else item.protocol
