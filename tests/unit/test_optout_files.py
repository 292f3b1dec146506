"""The fetch-result table, files that cannot be read, the operator's list, the decision table itself."""

from __future__ import annotations

import pytest

from corpus.model import Access, Consent, Gate, Kind, Use
from corpus.optout.authority import AuthorityFiles, FileState, classify_file, classify_robots, compile_authority, governing
from corpus.optout.consent import consent
from corpus.optout.decide import combine, reason_of
from corpus.optout.filestate import file_state
from corpus.optout.operator_list import OperatorList
from corpus.optout.policy import policy_version
from corpus.optout.settings import OptoutSettings
from corpus.optout.table import TABLE
from corpus.reasons import REASONS

HOST = "https://ex.com"
NORMAL = OptoutSettings()


def _ask(path: str = "/a/b", **given: object) -> Consent:
    return consent(HOST + path, at=0.0, **given)  # type: ignore[arg-type]


# ---- fetch results and unreadable files


@pytest.mark.parametrize(
    ("status", "failure", "hops", "headers", "body", "truncated", "outcome"),
    [
        (200, None, 0, (), b"x", False, "ok"),
        (204, None, 5, (), b"", False, "ok"),
        (200, None, 6, (), b"", False, "denied"),
        (404, None, 0, (), b"", False, "absent"),
        (410, None, 0, (), b"", False, "absent"),
        (401, None, 0, (), b"", False, "denied"),
        (403, None, 0, (), b"", False, "denied"),
        (451, None, 0, (), b"", False, "denied"),
        (403, None, 0, (("CF-Mitigated", "challenge"),), b"", False, "unreachable"),
        (403, "challenge", 0, (), b"", False, "unreachable"),
        (202, None, 0, (("x-amzn-waf-action", "challenge"),), b"", False, "unreachable"),
        (200, None, 0, (), b"<html><title>Just a moment...</title>", False, "unreachable"),
        (429, None, 0, (), b"", False, "unreachable"),
        (408, None, 0, (), b"", False, "unreachable"),
        (503, None, 0, (), b"User-agent: *\nAllow: /", False, "unreachable"),
        (200, None, 0, (), b"User-agent: *\n", True, "unreachable"),
        (200, None, 0, (), b"#" * 600_000, "length", "ok"),
        (200, "decode", 0, (), b"", False, "unreachable"),
        (None, "dns", 0, (), b"", False, "unreachable"),
        (304, None, 0, (), b"", False, "unreachable"),
        (302, None, 0, (), b"", False, "unreachable"),
    ],
)
def test_fetch_results(
    status: int | None,
    failure: str | None,
    hops: int,
    headers: tuple[tuple[str, str], ...],
    body: bytes,
    truncated: bool | str,
    outcome: str,
) -> None:
    """RFC 9309 2.3.1 with the stricter choices, as a table."""
    assert classify_robots(status, failure, hops, headers, body, truncated).outcome == outcome


def test_denied_may_be_read_as_absent_on_request() -> None:
    """`robots_denied = "allow"` opens 401, 403 and 451, and nothing else."""
    lax = OptoutSettings(robots_denied="allow")
    assert classify_robots(403, None, 0, (), b"", truncated=False, settings=lax).outcome == "absent"
    assert classify_robots(200, None, 9, (), b"", truncated=False, settings=lax).outcome == "denied"
    assert classify_robots(503, None, 0, (), b"", truncated=False, settings=lax).outcome == "unreachable"


def test_use_files_that_are_denied_say_nothing() -> None:
    """A 403 for tdmrep.json is a site without one; a 5xx is not."""
    assert classify_file(Kind.TDMREP, 403, None, 0, (), b"", truncated=False).outcome == "absent"
    assert classify_file(Kind.AI_TXT, 500, None, 0, (), b"", truncated=False).outcome == "unreachable"
    rules = compile_authority(
        AuthorityFiles(robots=file_state(b""), tdmrep=FileState("unreachable", 500, url="t")), NORMAL, "CorpusBot"
    )
    answer = rules.judge(f"{HOST}/x", 0.0)
    assert (answer.access, answer.use, answer.gate) == (Access.YES, Use.UNKNOWN, Gate.DEFER)


def test_silence_is_a_refusal_that_is_asked_again() -> None:
    """No answer at all: complete disallow, and the gate defers; a status that asks for patience: access itself defers."""
    silent = compile_authority(AuthorityFiles(robots=FileState("unreachable", None, detail="timeout")), NORMAL, "CorpusBot")
    busy = compile_authority(AuthorityFiles(robots=FileState("unreachable", 503, unreachable_since=0.0)), NORMAL, "CorpusBot")
    assert (silent.judge(HOST, 0.0).access, silent.judge(HOST, 0.0).gate) == (Access.NO, Gate.DEFER)
    assert (busy.judge(HOST, 0.0).access, busy.judge(HOST, 0.0).gate) == (Access.DEFER, Gate.DEFER)
    assert (busy.judge(HOST, 31 * 86_400.0).access, busy.judge(HOST, 31 * 86_400.0).gate) == (Access.NO, Gate.DEFER)
    assert reason_of(silent.judge(HOST, 0.0)) == "robots-unreachable"
    assert not busy.allows("/x")
    assert busy.allows("/robots.txt")


def test_a_kept_copy_stands_while_the_file_is_unreachable() -> None:
    """A copy of up to 30 days binds only as long as nobody can read the file."""
    kept = file_state(b"User-agent: *\nDisallow: /", read_at=0.0)
    gone, fresh = FileState("unreachable", 503), file_state(b"", read_at=1.0)
    assert governing(fresh, kept, 10.0) is fresh
    assert governing(gone, kept, 10.0) is kept
    assert governing(gone, kept, 31 * 86_400.0) is gone
    assert governing(gone, None, 10.0) is gone


# ---- the operator's list, the table, reasons


def test_operator_list() -> None:
    """Domains cover subdomains at label boundaries, URLs cover themselves under either scheme, junk is reported."""
    listed = OperatorList.from_lines(
        ["# asked 2026", "ex.com  by mail", "*.wild.org", "https://a.net/p?q=1#f", "https://whole.de/", "not a domain!", "::", ""]
    )
    for url in (
        "https://blog.ex.com/1",
        "http://EX.com:8080/",
        "https://x.wild.org/",
        "http://a.net/p?q=1",
        "https://www.whole.de/deep",
    ):
        assert listed.refuses(url) is not None, url
    for url in ("https://notex.com/", "https://a.net/p", "https://a.net/", "https://com/", "mailto:x"):
        assert listed.refuses(url) is None, url
    assert listed.unread == ("::",)
    answer = combine([_ask(), listed.refuses("https://ex.com/") or ()], NORMAL)
    assert (answer.gate, reason_of(answer)) == (Gate.SKIP, "operator-list")


@pytest.mark.parametrize("key", sorted(TABLE))
def test_the_table_says_what_is_decided(key: tuple[str, str]) -> None:
    """Each row's columns are what `decide` makes of a single statement of that row."""
    from corpus.optout.decide import decide
    from corpus.optout.evidence import Origin, stated

    row = TABLE[key]
    answer = decide([stated(*key, Origin("x"))], NORMAL)
    assert answer.use.value == row.train
    assert answer.export is (row.export == "yes")
    assert answer.store is (row.store == "yes")
    wanted = {"no": Gate.SKIP, "skip": Gate.SKIP, "yes": Gate.FETCH, "defer": Gate.DEFER, "hold": Gate.HOLD}
    assert row.fetch == "done" or answer.gate is wanted[row.fetch]
    assert reason_of(answer) in {*REASONS, ""}
    assert (reason_of(answer) == "") is (answer.gate is Gate.FETCH)


def test_policy_version_follows_what_decides() -> None:
    """It changes with a setting that decides and with our token, and not with one that only says when."""
    base = policy_version(NORMAL, "CorpusBot")
    assert base == policy_version(OptoutSettings(robots_ttl=5.0), "corpusbot")
    assert base != policy_version(OptoutSettings(noindex=False), "CorpusBot")
    assert base != policy_version(NORMAL, "OtherBot")


def test_permission_only() -> None:
    """Without a permission the stricter profile refuses, and says that it was the profile."""
    strict = OptoutSettings(profile="permission-only")
    refused = _ask(robots="User-agent: *\nAllow: /", settings=strict)
    assert (refused.use, refused.gate, reason_of(refused)) == (Use.NO, Gate.SKIP, "no-permission")
    granted = _ask(robots="User-agent: *\nContent-Signal: ai-train=yes", settings=strict)
    assert (granted.use, granted.gate) == (Use.YES, Gate.FETCH)
