"""The offline judge over the consent log: the newest words govern, nothing of today decides, and time comes from the log."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corpus.app.consent_judge import LogJudge
from corpus.app.consent_state import fold
from corpus.app.removals import report_release
from corpus.crawl.ports import AuthorityRow, ResponseRefusal
from corpus.model import Evidence, Kind
from corpus.optout.operator_list import OperatorList
from corpus.optout.policy import policy_document, policy_version
from corpus.optout.response import judge_response, reread, unread_licences
from corpus.optout.robots_tag import expired_by
from corpus.optout.settings import OptoutSettings
from corpus.store.consent_ledger import ConsentLedger
from corpus.store.consent_log import AuthorityRead, ConsentLog, Refusal, Statement, parse_entry
from corpus.store.local_objects import LocalObjects

AUTHORITY, URL, T0 = "http://a.test:80", "http://a.test/page", 1_700_000_000.0
RSL_YES = b'<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license><permits type="usage">ai-train</permits></license></content></rsl>'


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def read(body: bytes | None, at: float, file: str = "robots", url: str = "", outcome: str = "", **more: Any) -> AuthorityRead:
    """A reading; None for one that found nothing."""
    outcome = outcome or ("absent" if body is None else "ok")
    return AuthorityRead(
        AUTHORITY, file, url or f"http://a.test/{file}", 200, outcome, digest(body) if body is not None else "", at, **more
    )


@pytest.fixture
def log(tmp_path: Path) -> ConsentLog:
    return ConsentLog(LocalObjects(tmp_path), "w")


def judge(log: ConsentLog, stale: frozenset[str] = frozenset(), **settings: Any) -> LogJudge:
    return LogJudge(log, log.watermark(), OptoutSettings(**settings), "CorpusBot", OperatorList.from_lines([]), stale)


def said(status: int, *headers: tuple[str, str], at: float = T0) -> list[dict[str, Any]]:
    """A response's evidence as a documents file holds it."""
    verdict = judge_response(URL, status, headers, None, at, OptoutSettings(), "CorpusBot")
    names = ("protocol", "source", "line_no", "raw", "agent", "file_digest", "axis", "verdict")
    return [{name: getattr(item, name) for name in names} for item in verdict.evidence]


def test_a_later_refusal_governs_until_a_later_page(log: ConsentLog) -> None:
    """A tombstone younger than the stored page withdraws it; a page stored after it stands again."""
    body = b"User-agent: *\nAllow: /\n"
    log.append([read(body, T0)], {digest(body): body})
    assert judge(log).row(URL, [], T0)["export"] is True
    log.append([Refusal(URL, T0 + 10, "x-robots-tag", "X-Robots-Tag: noai", "header")])
    refused = judge(log).row(URL, [], T0)
    assert (refused["export"], refused["use"], refused["reason"]) == (False, "no", "x-robots-tag")
    assert judge(log).row(URL, [], T0 + 20)["export"] is True
    log.append([Statement(URL, T0 + 30, "content-usage", "train-ai=y", "yes", "header", 304)])
    assert judge(log).row(URL, [], T0 + 20)["use"] == "yes"


def test_an_older_watermark_gives_the_older_answer(log: ConsentLog) -> None:
    """The judge sees the log up to its watermark and nothing after it."""
    log.append([read(None, T0)])
    then = log.watermark()
    no = b"User-agent: *\nDisallow: /\n"
    log.append([read(no, T0 + 10)], {digest(no): no})
    old = LogJudge(log, then, OptoutSettings(), "CorpusBot", OperatorList.from_lines([]), frozenset())
    assert old.row(URL, [], T0)["export"] is True
    assert judge(log).row(URL, [], T0)["reason"] == "robots"


def test_an_advertised_licence_is_looked_up_in_the_log(log: ConsentLog) -> None:
    """A stored page with an RSL link is licensed by the document that was read, and unlicensed without one or with an old one."""
    log.append([read(None, T0)])
    page = said(200, ("Link", '<http://a.test/l.xml>; rel="license"; type="application/rsl+xml"'))
    assert judge(log).row(URL, page, T0)["reason"] == "rsl"
    log.append([read(RSL_YES, T0 + 5, "rsl", "http://a.test/l.xml")], {digest(RSL_YES): RSL_YES})
    assert judge(log).row(URL, page, T0)["use"] == "yes"
    log.append([read(None, T0 + 40 * 86_400)])
    assert judge(log).row(URL, page, T0)["reason"] == "rsl"


def test_every_advertised_document_counts(log: ConsentLog) -> None:
    """Readings of several RSL documents of one authority stand beside each other."""
    robots = b"License: http://a.test/a.xml\nLicense: http://a.test/b.xml\nUser-agent: *\nAllow: /\n"
    no = RSL_YES.replace(b"permits", b"prohibits")
    bodies = {digest(body): body for body in (robots, no, RSL_YES)}
    log.append(
        [read(robots, T0), read(no, T0 + 1, "rsl", "http://a.test/a.xml"), read(RSL_YES, T0 + 2, "rsl", "http://a.test/b.xml")],
        bodies,
    )
    assert judge(log).row(URL, [], T0)["reason"] == "rsl"


def test_dates_pass_by_the_log_s_own_time(log: ConsentLog) -> None:
    """`unavailable_after` takes a page out once the log is younger than the date, with no clock asked."""
    log.append([read(None, T0)])
    page = said(200, ("X-Robots-Tag", "unavailable_after: 2023-11-20"))
    assert judge(log).row(URL, page, T0)["export"] is True
    log.append([read(None, T0 + 10 * 86_400)])
    gone = judge(log).row(URL, page, T0)
    assert (gone["export"], gone["reason"]) == (False, "x-robots-tag")


@pytest.mark.parametrize(
    ("raw", "agent", "protocol", "expected"),
    [
        ("X-Robots-Tag: unavailable_after: 2020-01-01", "", "x-robots-tag", True),
        ("X-Robots-Tag: unavailable_after: 2040-01-01", "", "x-robots-tag", False),
        ("X-Robots-Tag: nosnippet, other: unavailable_after: 2020-01-01", "", "x-robots-tag", False),
        ("X-Robots-Tag: corpusbot: unavailable_after: 2020-01-01", "corpusbot", "x-robots-tag", True),
        ("<meta robots> unavailable_after: 1 Jan 2020 00:00:00 GMT", "", "meta-robots", True),
        ("<meta corpusbot> unavailable_after: 2020-01-01", "corpusbot", "meta-robots", True),
        ("<meta robots> unavailable_after: nonsense", "", "meta-robots", False),
        ("", "", "meta-robots", False),
        ("User-agent: unavailable_after: 2020-01-01", "", "robots", False),
    ],
)
def test_kept_dates_are_read_again(raw: str, agent: str, protocol: str, expected: bool) -> None:
    """The date is taken from the kept raw statement, for the agent that the statement was for."""
    assert expired_by(Evidence(protocol, "header", raw=raw, agent=agent), T0) is expected


def test_unread_licences_are_those_that_could_still_help() -> None:
    """Where something else refuses as well, no document is worth a request; where the status brought no page, neither."""
    link = ("Link", '<http://a.test/l.xml>; rel="license"; type="application/rsl+xml"')
    settings = OptoutSettings()
    alone = judge_response(URL, 200, [link], None, T0, settings, "CorpusBot")
    assert unread_licences(alone) == ("http://a.test/l.xml",)
    assert unread_licences(judge_response(URL, 200, [link, ("X-Robots-Tag", "noai")], None, T0, settings, "CorpusBot")) == ()
    assert unread_licences(judge_response(URL, 404, [link], None, T0, settings, "CorpusBot")) == ()
    assert reread(alone.evidence, URL, T0, {}, settings) == alone.evidence


def test_silence_is_counted_from_its_first_day(log: ConsentLog) -> None:
    """The log tells since when a file could not be read; the first answer ends the count. Out of date means held."""
    log.append([read(None, T0), read(None, T0 + 1, outcome="unreachable"), read(None, T0 + 2, outcome="unreachable")])
    state = fold(log, log.watermark())
    assert state.since == {(AUTHORITY, "robots", ""): T0 + 1}
    assert judge(log).older(AUTHORITY, T0 - 5)
    assert judge(log).row(URL, [], T0)["export"] is False
    log.append([read(None, T0 + 3)])
    assert fold(log, log.watermark()).since == {}


def test_side_files_age_too(log: ConsentLog) -> None:
    """A tdmrep.json older than the limit makes its authority stale, unless robots.txt keeps us from asking or an archive speaks."""
    log.append([read(None, T0), read(None, T0 - 100, "tdmrep"), read(None, T0, "ai-txt")])
    assert judge(log).older(AUTHORITY, T0 - 50)
    assert not judge(log).older(AUTHORITY, T0 - 200)
    assert not judge(log, tdmrep=False).older(AUTHORITY, T0 - 50)
    no = b"User-agent: *\nDisallow: /.well-known/\n"
    log.append([read(no, T0 + 1)], {digest(no): no})
    assert not judge(log).older(AUTHORITY, T0 - 50)


def test_an_archive_speaks_for_robots_only(log: ConsentLog) -> None:
    """Beside a reading out of an archive no side file is missed; beside one of ours it is."""
    log.append([read(None, T0, origin="archive")])
    assert not judge(log).older(AUTHORITY, T0 - 1)
    log.append([read(None, T0 + 1)])
    assert judge(log).older(AUTHORITY, T0 - 1)


def test_stale_and_unknown_authorities_never_leave(log: ConsentLog) -> None:
    """An authority nobody asked, or that is named stale, is held back whatever it said."""
    assert judge(log).row(URL, [], T0)["stale"] is True
    log.append([read(None, T0)])
    assert judge(log, frozenset({AUTHORITY})).row(URL, [], T0)["export"] is False


def test_the_judge_answers_in_columns(log: ConsentLog) -> None:
    """The export's own question: arrays in, one row per URL out."""
    log.append([read(None, T0), Refusal(URL, T0 + 10, "tdmrep", "tdm-reservation: 1", "header")])
    urls = pa.array([URL, "http://a.test/other", URL])
    at = pa.array([int(T0 * 1e6), int(T0 * 1e6), int((T0 + 20) * 1e6)], pa.timestamp("us"))
    table = judge(log).judge(urls, pa.array(["unknown"] * 3), pa.array([None] * 3), at)
    assert table["export"].to_pylist() == [False, True, True]


def test_the_ledger_notes_what_decided(log: ConsentLog) -> None:
    """Every entry carries the policy version, the log says what it stands for, and a 304's words are no tombstone."""
    settings = OptoutSettings()
    version = policy_version(settings, "CorpusBot")
    log.declare(version, policy_document(settings, "CorpusBot"))
    log.declare(version, policy_document(settings, "CorpusBot"))
    ledger = ConsentLedger(log, version)
    row = AuthorityRow(AUTHORITY, Kind.ROBOTS, "absent", 404, "", T0, T0 + 10)
    no = ResponseRefusal(URL, T0, "x-robots-tag", "X-Robots-Tag: noai", "header", None, 200)
    ledger.append([row], [no, replace(no, verdict="yes", http_status=304)], {})
    entries = [parse_entry(value) for value in log.read()]
    assert [type(entry) for entry in entries] == [AuthorityRead, Refusal, Statement]
    assert {entry.policy for entry in entries} == {version}
    assert log.policies()[version]["settings"]["peers"] == "any"


def test_a_mirror_that_refuses_is_named_aloud(tmp_path: Path) -> None:
    """More than a hundred rows of other domains lost to one domain's refusals are a warning of the run; fewer are not."""
    heard: list[tuple[str, dict[str, Any]]] = []
    manifest = {
        "name": "v1",
        "losses": [
            {"domain": "mirror.test", "rows": 150, "other_domains": 101},
            {"domain": "b.test", "rows": 300, "other_domains": 100},
        ],
    }
    report_release(None, None, manifest, "", tmp_path, lambda event, **facts: heard.append((event, facts)))  # type: ignore[arg-type]
    assert [(event, facts["domain"], facts["other_domains"]) for event, facts in heard] == [("warning", "mirror.test", 101)]
