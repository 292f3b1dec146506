"""Consent cases, evaluated through the same functions a crawl uses: no case has code of its own.

A `Decision` is a Consent plus what else the cases ask for, under their names. A case passes when every key it expects
is met; an unknown kind, input or key fails it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from corpus.errors import UsageError
from corpus.model import Access, Consent, Use
from corpus.optout.aipref import CATEGORIES, usage_of
from corpus.optout.authority import AuthorityFiles, AuthorityRules, compile_authority
from corpus.optout.case_input import NOW, Situation, UnknownCase, situation
from corpus.optout.decide import cluster_allows, combine, superseded
from corpus.optout.operator_list import OperatorList
from corpus.optout.response import ResponseVerdict, judge_response, union
from corpus.optout.settings import OptoutSettings
from corpus.optout.tdmrep import effective, policy_of
from corpus.url.canonical import fetch_url
from corpus.url.host import authority_of

PARKED_ABOVE_S = 60.0
"""`crawl.max_crawl_delay`: a longer Crawl-delay parks the host, which meets `cap-or-drop-host`."""
_FETCH = {Access.YES: True, Access.NO: False, Access.DEFER: "defer"}


def run_cases(cases: str | Path | Iterable[Any]) -> dict[str, Any]:
    """`{"total": n, "failed": [{"id", "expected", "got"}]}` for a file of cases or a list of them.

    Raises UsageError for a file that is no list of cases.
    """
    if isinstance(cases, str | Path):
        try:
            cases = json.loads(Path(cases).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read cases: {error}", str(cases), "give a JSON list of cases") from error
    if not isinstance(cases, Iterable) or isinstance(cases, Mapping | str):
        raise UsageError("not a list of cases", hint="give a JSON list of {id, kind, input, url, expect}")
    total, failed = 0, []
    for case in cases:
        total += 1
        if not isinstance(case, Mapping):
            failed.append({"id": f"#{total}", "expected": {}, "got": {"error": "not a case"}})
            continue
        got = evaluate(case)
        missed = [key for key, wanted in case.get("expect", {}).items() if key not in got or not meets(wanted, got[key])]
        if missed or "error" in got:
            shown = {key: got.get(key, "unknown key") for key in missed} or got
            failed.append({"id": case.get("id", f"#{total}"), "expected": case.get("expect", {}), "got": shown})
    return {"total": total, "failed": failed}


def meets(wanted: Any, got: Any) -> bool:
    """Equality, where a bool is no number; a Crawl-delay that parks the host meets `cap-or-drop-host`."""
    if wanted == "cap-or-drop-host":
        return isinstance(got, float) and got > PARKED_ABOVE_S
    return bool(wanted == got) and isinstance(wanted, bool) == isinstance(got, bool)


def evaluate(case: Mapping[str, Any]) -> dict[str, Any]:
    """The Decision of one case, every key known for its kind; `{"error": …}` for a case that is not understood."""
    try:
        match case["kind"]:
            case "temporal":
                return _over_time(case)
            case "dedup":
                return _of_cluster(case)
            case _:
                return _decision(situation(case))
    except (UnknownCase, AttributeError, KeyError, TypeError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _decision(now: Situation) -> dict[str, Any]:
    rules = _rules(now, now.url)
    consent, verdict, listed = _judged(now)
    tdm = superseded(consent.evidence)
    usage = usage_of(", ".join(now.usage_headers))
    return {
        "fetch": _FETCH[consent.access],
        "train": consent.use.value,
        "gate": consent.gate.value,
        "store": consent.store,
        "export": consent.export,
        "follow": verdict.follow,
        "images": "yes" if verdict.images else "no",
        "drop_at": _iso(verdict.drop_at),
        "purge": verdict.purge or listed,
        "retry": {"no": False, "": False}.get(verdict.retry, verdict.retry),
        "retry_after_s": verdict.retry_after_s,
        "host_backoff": verdict.backoff,
        "record": verdict.record or None,
        "pay": False,
        "tdm": effective(tdm),
        "policy": policy_of(tdm),
        "crawl_delay": rules.crawl_delay_s,
        **{category: usage[category] for category in CATEGORIES},
    }


def _judged(now: Situation) -> tuple[Consent, ResponseVerdict, bool]:
    """Consent over every authority asked on the way, and the verdict on the responses; whether the operator lists it."""
    urls = list(dict.fromkeys(step.url for step in now.steps)) or [now.url]
    before = [_rules(now, url).judge(fetch_url(url) or url, NOW) for url in urls]
    listed = OperatorList.from_lines(now.optout).refuses(now.url)
    after = _response(now)
    consent = combine([*before, after.evidence, *([listed] if listed else [])], now.settings)
    if not after.keeps:
        consent = Consent(consent.access, consent.use, consent.gate, store=False, export=False, evidence=consent.evidence)
    return consent, after, listed is not None


def _files(now: Situation, url: str) -> AuthorityFiles:
    return now.files.get(authority_of(url)) or now.files.get("", AuthorityFiles())


def _rules(now: Situation, url: str) -> AuthorityRules:
    return compile_authority(_files(now, url), now.settings, now.token, agents=now.agents)


def _response(now: Situation) -> ResponseVerdict:
    verdicts = []
    for step in now.steps:
        documents = _files(now, step.url).rsl
        licences = {state.url: state for state in documents} if isinstance(documents, tuple) else {}
        verdicts.append(
            judge_response(
                step.url, step.status, step.headers, step.html, NOW, now.settings, now.token, agents=now.agents, licences=licences
            )
        )
    return union(verdicts or [judge_response(now.url, 200, (), None, NOW, now.settings, now.token)], now.settings)


def _over_time(case: Mapping[str, Any]) -> dict[str, Any]:
    """A copy fetched at t0, decided again at t1: the copy keeps its own signals, today's files govern its release."""
    given = case["input"]
    situation(case, {})  # an unknown kind is refused before its parts are read
    if unknown := sorted(set(given) - {"t0", "t1", "fetched_at"}):
        raise UnknownCase(f"unknown input {unknown[0]!r}")
    then, today = situation(case, given["t0"]), situation(case, given["t1"])
    copy, response, _ = _judged(then)
    again, _, _ = _judged(today)
    released = combine([again, response.evidence], today.settings)
    return {
        "train_of_t0_copy": copy.use.value,
        "refetch_at_t1": again.gate.value,
        "policy_export_after_t1": released.export and response.keeps,
    }


def _of_cluster(case: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := sorted(set(case["input"]) - {"cluster"}):
        raise UnknownCase(f"unknown input {unknown[0]!r}")
    return {"export": cluster_allows((Use(member["train"]) for member in case["input"]["cluster"]), OptoutSettings())}


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
