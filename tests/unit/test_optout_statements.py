"""TDMRep, RSL, AIPREF, Content-Signal, ai.txt and the fetch-result table: the odd forms, one by one."""

from __future__ import annotations

import json
import time

import pytest

from corpus.model import Consent, Gate, Use
from corpus.optout.aipref import judge_usage, usage_of
from corpus.optout.authority import AuthorityFiles, compile_authority
from corpus.optout.consent import consent
from corpus.optout.decide import deciding, reason_of
from corpus.optout.filestate import file_state
from corpus.optout.rsl import parse_rsl
from corpus.optout.settings import OptoutSettings
from corpus.optout.tdmrep import parse_tdmrep, reservation

HOST = "https://ex.com"
NORMAL = OptoutSettings()


def _ask(path: str = "/a/b", **given: object) -> Consent:
    return consent(HOST + path, at=0.0, **given)  # type: ignore[arg-type]


# ---- TDMRep


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1, True),
        (0, False),
        ("1", True),
        (True, True),
        (" 0 ", False),
        (1.0, True),
        (2, None),
        ("yes", None),
        (None, None),
        ([1], None),
        ("", None),
    ],
)
def test_reservations(value: object, wanted: bool | None) -> None:
    """1 and 0, and spellings that can mean nothing else; everything else is unset."""
    assert reservation(value) is wanted


@pytest.mark.parametrize(
    ("body", "use", "gate"),
    [
        ('{"location": "/", "tdm-reservation": 1}', Use.NO, Gate.SKIP),
        ('{"tdm-reservation": 1}', Use.NO, Gate.SKIP),
        ('[{"location": "https://ex.com/a", "tdm-reservation": 1}]', Use.NO, Gate.SKIP),
        ('[{"location": "a/", "TDM_Reservation": 1}]', Use.NO, Gate.SKIP),
        ('{"rules": [{"location": "/", "tdm-reservation": 1}]}', Use.UNKNOWN, Gate.HOLD),
        ('[{"location": "/", "tdm-reservation": 1}', Use.UNKNOWN, Gate.HOLD),
        ("<html><meta name=tdm-reservation content=1>", Use.UNKNOWN, Gate.HOLD),
        ("<html>soft 404</html>", Use.UNKNOWN, Gate.FETCH),
        ("[" * 100_000 + '"tdm-reservation"', Use.UNKNOWN, Gate.HOLD),
        ("[]", Use.UNKNOWN, Gate.FETCH),
        ('[{"location": "/", "tdm-reservation": 7}]', Use.UNKNOWN, Gate.FETCH),
    ],
)
def test_tdmrep_files(body: str, use: Use, gate: Gate) -> None:
    """Wild forms are read where they can mean one thing; an unreadable mention holds; a soft 404 says nothing."""
    answer = _ask(tdmrep=body)
    assert (answer.use, answer.gate) == (use, gate)


def test_later_steps_supersede_inside_tdmrep_only() -> None:
    """Header over file, meta over header; but no step of TDMRep outvotes another protocol."""
    file = '[{"location":"/","tdm-reservation":1}]'
    opened = _ask(tdmrep=file, headers=[("TDM-Reservation", "0")])
    assert opened.use is Use.YES
    assert _ask(tdmrep=file, headers=[("TDM-Reservation", "0"), ("Content-Usage", "train-ai=n")]).use is Use.NO
    assert _ask(tdmrep=file.replace("1", "0"), headers=[("TDM-Reservation", "1")]).use is Use.NO


def test_tdmrep_reads_escapes_like_robots() -> None:
    """A reservation covers either reading of a reserved escape; an opening covers only what both readings match."""
    for value, use in ((1, Use.NO), (0, Use.UNKNOWN)):
        assert _ask("/s?a&b", tdmrep=f'[{{"location":"/s?a%26b","tdm-reservation":{value}}}]').use is use


def test_tdmrep_evidence_is_the_rule() -> None:
    """The raw statement is the rule as JSON."""
    said = deciding(_ask(tdmrep='[{"location":"/","tdm-reservation":1,"tdm-policy":"https://p"}]'))
    assert said is not None
    assert json.loads(said.raw)["tdm-policy"] == "https://p"
    assert parse_tdmrep(b"\xff\xfe").rules == ()


# ---- RSL


def _rsl(licence: str, *, attributes: str = 'url="/"', namespace: str = "https://rslstandard.org/rsl") -> str:
    return f'<?xml version="1.0"?><rsl xmlns="{namespace}"><content {attributes}><license>{licence}</license></content></rsl>'


FREE = '<permits type="usage">ai-train search</permits>'


@pytest.mark.parametrize(
    ("document", "use"),
    [
        (_rsl(FREE), Use.YES),
        (_rsl(FREE + '<payment type="free"/>'), Use.YES),
        (_rsl(FREE + '<payment type="attribution"/>'), Use.YES),
        (_rsl(FREE + '<payment type="crawl"><amount currency="USD">1</amount></payment>'), Use.NO),
        (_rsl(FREE + "<payment/>"), Use.NO),
        (_rsl(FREE + "<reporting/>"), Use.NO),
        (_rsl(FREE, attributes='url="/" server="https://l.com"'), Use.NO),
        (_rsl(FREE, attributes='url="/" encrypted="true"'), Use.NO),
        (_rsl('<permits type="usage">search</permits>'), Use.NO),
        (_rsl('<permits type="usage">all</permits><prohibits type="usage">ai-train</prohibits>'), Use.NO),
        (_rsl(FREE + '<permits type="user">education</permits>'), Use.NO),
        (_rsl(FREE + '<permits type="geo">FR</permits>'), Use.NO),
        (_rsl('<prohibits type="usage">train-ai,train-genai</prohibits>'), Use.NO),
        (_rsl('<prohibits type="usage">search</prohibits>'), Use.UNKNOWN),
        (_rsl(FREE, attributes='url="https://other.com/"'), Use.UNKNOWN),
        (_rsl(FREE, attributes='url="https://ex.com/a/"'), Use.YES),
        (_rsl('<prohibits type="usage">ai-all</prohibits>', attributes='url="/z"'), Use.UNKNOWN),
        ('<rsl xmlns="https://rslstandard.org/rsl"><content url="/">', Use.NO),
        ('<!DOCTYPE r [<!ENTITY a "b">]>' + _rsl(FREE), Use.NO),
    ],
)
def test_licences(document: str, use: Use) -> None:
    """Only free permission to train is a yes; prohibitions, prices, servers, conditions and broken documents are a no."""
    robots = "License: https://ex.com/l.xml\nUser-agent: *\nAllow: /\n"
    assert _ask(robots=robots, rsl=document.removeprefix('<?xml version="1.0"?>')).use is use


def test_an_unread_licence_defers_and_a_foreign_one_holds() -> None:
    """A document that is advertised and not at hand is asked for first; one on a stranger's host is not asked, and holds."""
    state = file_state(b"License: /l.xml\n", url=f"{HOST}/robots.txt")
    rules = compile_authority(AuthorityFiles(robots=state), NORMAL, "CorpusBot")
    assert rules.rsl_urls == (f"{HOST}/l.xml",)
    assert rules.judge(f"{HOST}/x", 0.0).gate is Gate.DEFER
    assert reason_of(rules.judge(f"{HOST}/x", 0.0)) == "policy-unreachable"
    foreign = file_state(b"License: https://cc.org/by\n", url=f"{HOST}/robots.txt")
    rules = compile_authority(AuthorityFiles(robots=foreign), NORMAL, "CorpusBot")
    assert rules.rsl_urls == ()
    assert (rules.judge(f"{HOST}/x", 0.0).gate, reason_of(rules.judge(f"{HOST}/x", 0.0))) == (Gate.HOLD, "held")


def test_hostile_xml_is_bounded() -> None:
    """Entities are never expanded; depth, elements and size are bounded; time stays small."""
    bomb = (
        '<!DOCTYPE r [<!ENTITY a "'
        + "x" * 1000
        + '">'
        + "".join(f'<!ENTITY a{n} "&a{n - 1 or ""};&a{n - 1 or ""};">' for n in range(1, 30))
        + "]><rsl>&a29;</rsl>"
    )
    started = time.process_time()
    for text in (
        bomb,
        "<rsl>" + "<a>" * 100_000,
        "<rsl>" + "<a/>" * 100_000,
        "<rsl " + "x" * 600_000,
        '<rsl xmlns="https://rslstandard.org/rsl">' + "y" * 400_000,
    ):
        document = parse_rsl(text.encode())
        assert document.fault
        assert not document.contents
    assert time.process_time() - started < 1.0


# ---- AIPREF and Content-Signal


@pytest.mark.parametrize(
    ("value", "strict", "judged"),
    [
        ("train-ai=n", "disallow", "train-ai=n"),
        ("train-ai=y", "allow", "train-ai=y"),
        ("train-ai=no", "unknown", "near-miss"),
        ("TRAIN-AI=N", "unknown", "near-miss"),
        ("train-ai=n,", "unknown", "near-miss"),
        ("train-ai = n", "unknown", "near-miss"),
        ('train-ai="n"', "unknown", "near-miss"),
        ("ai-train=n", "unknown", "near-miss"),
        ("train-ai=y, ai-train=n", "allow", "near-miss"),
        ("tdm=n", "unknown", "near-miss"),
        ("train-ai=n, train-ai=y", "allow", "train-ai=y"),
        ("train-ai;allow=n, train-ai=y", "allow", "train-ai=y"),
        ("train-ai=yes", "unknown", "unstated"),
        ("train-ai", "unknown", "unstated"),
        ("search=n", "unknown", "unstated"),
        ("ai-use=n", "unknown", "unstated"),
        ("train-ai=(n)", "unknown", "unstated"),
        ("é=n", "unknown", "unstated"),
    ],
)
def test_usage_values(value: str, strict: str, judged: str) -> None:
    """The strict reading is the draft's; the policy reading adds evident refusals, and never a grant."""
    assert usage_of(value)["train-ai"] == strict
    assert judge_usage(value, near_miss=True) == judged
    if judged == "near-miss":
        assert judge_usage(value, near_miss=False) in {"unstated", "train-ai=y"}


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("Content-Signal: ai-train=no", Use.NO),
        ("content-signals:search=yes,AI-Train=NO", Use.NO),
        ("Content-Signal: ai-train = no", Use.NO),
        ("Content-Signal: ai-train=disallow", Use.NO),
        ("Content-Signal: train-ai=no", Use.NO),
        ("Content-Signal: use=reference", Use.NO),
        ("Content-Signal: ai-train=yes, use=immediate", Use.NO),
        ("Content-Signal: ai-train=yes, use=full", Use.YES),
        ("Content-Signal: ai-train=y", Use.UNKNOWN),
        ("Content-Signal: ai-input=no, search=no", Use.UNKNOWN),
        ("Content-Signal: use=no", Use.UNKNOWN),
        ("# Content-Signal: ai-train=no", Use.UNKNOWN),
        ("Content-Signal: /a/ ai-train=no", Use.NO),
        ("Content-Signal: /z/ ai-train=no", Use.UNKNOWN),
    ],
)
def test_content_signals(line: str, use: Use) -> None:
    """Values, levels, paths and near misses; comments never count."""
    assert _ask(robots=f"User-agent: *\n{line}\nDisallow: /nowhere\n").use is use


def test_per_key_the_longest_path() -> None:
    """A longer path that speaks of something else does not silence a refusal of training."""
    assert _ask(robots="User-agent: *\nContent-Signal: ai-train=no\nContent-Signal: /a/ search=no\n").use is Use.NO


# ---- ai.txt


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("User-Agent: *\nDisallow: /\nDisallow: *\n", Use.NO),
        ("User-agent: *\nDisallow: *.html\n", Use.NO),
        ("User-agent: *\nDisallow: *.jpg\nAllow: *.txt\n", Use.UNKNOWN),
        ("User-agent: GPTBot\nDisallow: /\n", Use.NO),
        ("Training: deny", Use.NO),
        ("training : No", Use.NO),
        ("Training: conditional", Use.NO),
        ("Training: allow", Use.UNKNOWN),
        ("# Training: deny", Use.UNKNOWN),
        ("<!doctype html><p>Training: deny", Use.UNKNOWN),
        ("# About\nOur training: deny nobody a course", Use.UNKNOWN),
    ],
)
def test_ai_txt(text: str, use: Use) -> None:
    """Refusals of both dialects; grants and prose say nothing."""
    assert _ask(ai_txt=text).use is use
