"""A consent case's input as the values the public readers take: no judgement, only unpacking.

Every key a kind may carry is listed; an unknown kind or key raises `UnknownCase`, because a case that is not
understood must fail instead of passing by accident.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from corpus.model import Kind
from corpus.optout.agents import AGENTS, AgentTable
from corpus.optout.authority import AuthorityFiles
from corpus.optout.filestate import FileState, classify_file, classify_robots, governing
from corpus.optout.lines import as_bytes
from corpus.optout.settings import OptoutSettings
from corpus.url.canonical import fetch_url
from corpus.url.host import authority_of

NOW = 1_795_996_800.0
"""2026-11-30T00:00:00Z: the time at which cases are decided, so that they decide the same in every year to come."""
DAY_S = 86_400.0

_PAGE = frozenset({"status", "headers", "html"})
_FILES = frozenset(
    {
        "robots_txt",
        "robots_txt_gen",
        "peer_policy",
        "tdmrep_json",
        "tdmrep_raw",
        "tdmrep_status",
        "policy_json",
        "operator_purpose",
    }
    | {"rsl", "rsl_map", "rsl_status", "rsl_content_type", "ai_txt", "well_known_ai_txt", "llms_txt", "optout_domains"}
)
_FETCH = frozenset(
    {
        "status",
        "body",
        "body_b64",
        "headers",
        "content_type",
        "content_length",
        "received",
        "error",
        "redirects",
        "chain",
        "final_status",
    }
    | {"cached", "unreachable_days"}
)
_COMMON = _PAGE | _FILES
KEYS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("robots", "robots-peer", "content-signal", "aipref-robots", "aipref-header", "tdmrep"), _COMMON),
    **dict.fromkeys(("header", "meta", "rsl", "http-status", "ai-txt", "llms-txt", "registry"), _COMMON),
    "robots-scope": _COMMON | {"robots", "redirects"},
    "robots-fetch": _FETCH,
    "combine": _COMMON | {"robots", "redirects", "headers_by_url", "stored"},
    "temporal": frozenset({"t0", "t1", "fetched_at"}),
    "dedup": frozenset({"cluster"}),
}


class UnknownCase(Exception):
    """The case asks for something that is not implemented; the message says what."""


@dataclass(frozen=True, slots=True)
class Step:
    """One response on the way to the page."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    html: str | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a case supposes. `files` by authority (`authority_of`); an empty key stands for every authority."""

    url: str
    token: str
    agents: AgentTable
    settings: OptoutSettings
    files: Mapping[str, AuthorityFiles]
    steps: tuple[Step, ...]
    optout: tuple[str, ...]
    usage_headers: tuple[str, ...]


def situation(case: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Situation:
    """The case's input (or `given`, for one of its times) unpacked. Raises UnknownCase."""
    kind = case["kind"]
    if kind not in KEYS:
        raise UnknownCase(f"unknown kind {kind!r}")
    given = case["input"] if given is None else given
    allowed = KEYS[kind] if given is case["input"] else _COMMON
    if unknown := sorted(set(given) - allowed):
        raise UnknownCase(f"unknown input {unknown[0]!r} for kind {kind!r}")
    tokens = case.get("user_agents") or ["CorpusBot"]
    settings = OptoutSettings.model_validate({"peers": _peers(given["peer_policy"])} if "peer_policy" in given else {})
    fetched = _of_fetch(case["url"], given, settings) if kind == "robots-fetch" else _of_files(case["url"], given, settings)
    steps = () if kind == "robots-fetch" else _steps(case["url"], given)
    usage = tuple(value for name, value in _headers(given) if name.lower() == "content-usage")
    return Situation(
        case["url"], tokens[0], AGENTS.only(tokens[1:]), settings, fetched, steps, tuple(given.get("optout_domains", ())), usage
    )


def _peers(policy: str) -> str:
    return {"control-only": "control"}.get(policy, policy.replace("quorum-", "quorum:"))


def _headers(given: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in given.get("headers", ()))


def _of_files(url: str, given: Mapping[str, Any], settings: OptoutSettings) -> dict[str, AuthorityFiles]:
    robots = None
    if "robots_txt_gen" in given:
        robots = _read(Kind.ROBOTS, _place(url, "/robots.txt"), generated(given["robots_txt_gen"]), settings)
    elif "robots_txt" in given:
        robots = _read(Kind.ROBOTS, _place(url, "/robots.txt"), as_bytes(given["robots_txt"]), settings)
    ai_txt = [
        _read(Kind.AI_TXT, _place(url, path), as_bytes(given[key]), settings)
        for key, path in (("ai_txt", "/ai.txt"), ("well_known_ai_txt", "/.well-known/ai.txt"))
        if key in given
    ]
    shared = AuthorityFiles(robots=robots, tdmrep=_tdmrep(url, given, settings), ai_txt=tuple(ai_txt), rsl=_rsl(given, settings))
    by_authority = {"": shared}
    for authority, text in given.get("robots", {}).items():
        state = _read(Kind.ROBOTS, f"{authority}/robots.txt", as_bytes(text), settings)
        by_authority[authority_of(authority)] = replace(shared, robots=state)
    return by_authority


def _place(url: str, path: str) -> str:
    return fetch_url(path, url) or path


def _read(
    kind: Kind, url: str, body: bytes, settings: OptoutSettings, status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> FileState:
    return classify_file(kind, status, None, 0, headers, body, truncated=False, settings=settings, url=url, read_at=NOW)


def _tdmrep(url: str, given: Mapping[str, Any], settings: OptoutSettings) -> FileState | None:
    place = _place(url, "/.well-known/tdmrep.json")
    if "tdmrep_json" in given:
        return _read(Kind.TDMREP, place, json.dumps(given["tdmrep_json"]).encode(), settings)
    if "tdmrep_raw" in given or "tdmrep_status" in given:
        return _read(Kind.TDMREP, place, as_bytes(given.get("tdmrep_raw", "")), settings, given.get("tdmrep_status", 200))
    return None


def _rsl(given: Mapping[str, Any], settings: OptoutSettings) -> tuple[FileState, ...]:
    if "rsl_map" in given:
        return tuple(_read(Kind.RSL, url, as_bytes(text), settings) for url, text in given["rsl_map"].items())
    if not given.keys() & {"rsl", "rsl_status", "rsl_content_type"}:
        return ()
    kind = given.get("rsl_content_type")
    headers = (("Content-Type", kind),) if kind else ()
    return (_read(Kind.RSL, "", as_bytes(given.get("rsl", "")), settings, given.get("rsl_status", 200), headers),)


def generated(recipe: Mapping[str, Any]) -> bytes:
    """A large robots.txt: the prefix, whole padding lines up to a size, the suffix."""
    head, pad, tail = (as_bytes(recipe.get(key, "")) for key in ("prefix", "pad_line", "suffix"))
    count = max(0, (int(recipe["pad_to_bytes"]) - len(head)) // max(1, len(pad)))
    return head + pad * count + tail


def _steps(url: str, given: Mapping[str, Any]) -> tuple[Step, ...]:
    page = Step(url, int(given.get("status", 200)), _headers(given), given.get("html"))
    if "stored" in given:
        kept = given["stored"]
        return (Step(url, int(kept.get("status", 200)), _headers(kept), kept.get("html")), page)
    by_url = given.get("headers_by_url", {})
    redirects = given.get("redirects", {})
    steps: list[Step] = []
    here = url
    while here in redirects and len(steps) < 20:
        steps.append(Step(here, 301, _headers({"headers": by_url.get(here, ())})))
        here = redirects[here]
    return (*steps, replace(page, url=here, headers=(*page.headers, *_headers({"headers": by_url.get(here, ())}))))


def _of_fetch(url: str, given: Mapping[str, Any], settings: OptoutSettings) -> dict[str, AuthorityFiles]:
    place = _place(url, "/robots.txt")
    hops = int(given["redirects"]) if "redirects" in given else max(0, len(given.get("chain", ())) - 1)
    headers = (*_headers(given), *((("Content-Type", given["content_type"]),) if "content_type" in given else ()))
    body = base64.b64decode(given["body_b64"]) if "body_b64" in given else as_bytes(given.get("body", ""))
    status = None if "error" in given else int(given.get("final_status", given.get("status", 200)))
    cut = "content_length" in given and given.get("received", given["content_length"]) < given["content_length"]
    fresh = classify_robots(status, given.get("error"), hops, headers, body, cut, settings=settings, url=place, read_at=NOW)
    if fresh.outcome == "unreachable" and "unreachable_days" in given:
        fresh = replace(fresh, unreachable_since=NOW - float(given["unreachable_days"]) * DAY_S)
    kept = None
    if "cached" in given:
        cached = given["cached"]
        age_s = (
            float(cached.get("age_s", 0))
            + 3_600 * float(cached.get("age_h", 0))
            + DAY_S * float(cached.get("age_days", cached.get("age_d", 0)))
        )
        kept = replace(_read(Kind.ROBOTS, place, as_bytes(cached.get("robots_txt", "")), settings), read_at=NOW - age_s)
    return {"": AuthorityFiles(robots=governing(fresh, kept, NOW))}
