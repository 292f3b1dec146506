"""Laws of the opt-out reader: it never raises, never fails open, and no refusal ever turns into a permission."""

from __future__ import annotations

import dataclasses
import random
import re

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from corpus.model import Access, Consent, Evidence, Gate, Kind, Use
from corpus.optout.agents import AGENTS
from corpus.optout.ai_txt import parse_ai_txt
from corpus.optout.aipref import judge_usage, usage_of
from corpus.optout.authority import AuthorityFiles, FileState, classify_file, classify_robots, compile_authority
from corpus.optout.consent import consent
from corpus.optout.decide import combine, decide
from corpus.optout.evidence import evidence_digest
from corpus.optout.filestate import file_state
from corpus.optout.match import Target, compile_pattern, normal, target_of
from corpus.optout.robots import Rule, parse_robots
from corpus.optout.robots_tag import directives, epoch_of
from corpus.optout.rsl import parse_rsl
from corpus.optout.rules import Ruleset
from corpus.optout.settings import OptoutSettings
from corpus.optout.tdmrep import parse_tdmrep

NORMAL = OptoutSettings()
HOST = "https://ex.com"
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(max_examples=250, deadline=None)

PATHS = st.text(alphabet="/ab*?&=%24F2E.~é$", min_size=0, max_size=12).map(lambda tail: "/" + tail)
PATTERNS = st.text(alphabet="/ab*?&=%24F2E.~é$", min_size=0, max_size=10).map(lambda tail: "/" + tail) | st.sampled_from(
    ["*", "/", "/*a", "*$", ""]
)
RULES = st.lists(st.tuples(st.booleans(), PATTERNS), max_size=8).map(
    lambda rows: [Rule(a, p, n, p) for n, (a, p) in enumerate(rows, 1)]
)
AGENT_NAMES = ("*", "CorpusBot", "GPTBot", "ccbot/2.0", "Google-Extended, CCBot", "OAI-SearchBot", "Kangaroo Bot")
LINES = st.one_of(
    st.sampled_from(AGENT_NAMES).map(lambda name: f"User-agent: {name}"),
    st.tuples(st.sampled_from(["Allow", "Disallow", "disallow ", "Dissallow"]), PATTERNS).map(": ".join),
    st.sampled_from(
        [
            "Content-Signal: ai-train=yes",
            "Content-Signal: ai-train=no",
            "Content-Signal: /a ai-train=no",
            "Content-Signal: use=reference",
        ]
    ),
    st.sampled_from(
        ["Content-Usage: train-ai=y", "Content-Usage: train-ai=n", "Content-Usage: /a/ train-ai=n", "Content-Usage: train-ai=no"]
    ),
    st.sampled_from(
        ["", "# Disallow: /", "Crawl-delay: 3", "Sitemap: /s.xml", "License: /l.xml", "Foo: bar", "\ufeffUser-agent: *"]
    ),
)
ROBOTS = st.lists(LINES, max_size=14).map(lambda lines: "\n".join(lines).encode())
STRENGTH = {Use.NO: 0, Use.UNKNOWN: 1, Use.YES: 2}


def _judge(body: bytes, url: str, **options: object) -> Consent:
    chosen = OptoutSettings.model_validate(options)
    return compile_authority(
        AuthorityFiles(robots=file_state(body, url=f"{HOST}/robots.txt", read_at=1.0)), chosen, "CorpusBot"
    ).judge(url, 1.0)


@MANY
@given(st.binary(max_size=300))
@example(b"\xff\xfe")
@example(b"\xef\xbb")
@example(b"\0" * 64)
@example(b"U\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0*\0\n\0D\0")
def test_no_reader_raises_on_bytes(body: bytes) -> None:
    """Every reader of a file takes any bytes at all."""
    peers = AGENTS.peers("any", "CorpusBot")
    parse_robots(body), parse_tdmrep(body), parse_rsl(body), parse_ai_txt(body, "CorpusBot", peers)
    parse_rsl(b'<rsl xmlns="https://rslstandard.org/rsl"><content url="' + body), parse_tdmrep(b'[{"tdm-reservation":' + body)


@MANY
@given(st.text(max_size=80), st.text(max_size=60), st.text(max_size=60))
@example("\ud800", "unavailable_after: 31 Feb 99999999999999999 00:00:00 +9999", "https://[")
def test_consent_never_raises(text: str, header: str, url: str) -> None:
    """The public question takes any text in any place, and answers."""
    answer = consent(
        url,
        robots=f"User-agent: *\nLicense: {text}\nContent-Usage: {text}\nContent-Signal: {text}\nDisallow: {text}",
        headers=[
            ("X-Robots-Tag", header),
            ("Content-Usage", header),
            ("Link", header),
            ("tdm-reservation", header),
            ("Retry-After", header),
        ],
        status=503,
        tdmrep=text,
        ai_txt=text,
        rsl=text,
        at=0.0,
    )
    assert isinstance(answer, Consent)
    assert not answer.store


@MANY
@given(st.text(max_size=200))
def test_small_readers_take_anything(text: str) -> None:
    """Values of headers and lines never raise, and reading is finite."""
    (
        list(directives(text)),
        epoch_of(text),
        usage_of(text),
        judge_usage(text, near_miss=True),
        target_of(text),
        compile_pattern(text),
    )


@MANY
@given(RULES, PATHS)
def test_compiled_rules_equal_the_definition(rules: list[Rule], path: str) -> None:
    """The fast lookup decides as RFC 9309's sentence does: the longest match, an Allow on a tie, else allowed."""
    target = target_of(HOST + path)
    matching = []
    for rule in rules:
        pattern = compile_pattern(rule.pattern)
        if pattern is not None and pattern.under(target, both=rule.allow):
            matching.append((pattern.size, rule.allow))
    wanted = None if not matching else max(matching)[1]
    found = Ruleset(rules).find(target)
    assert (None if found is None else found.allow) == wanted


@MANY
@given(PATTERNS, PATHS)
def test_one_pattern_equals_a_regular_expression(pattern: str, path: str) -> None:
    """A pattern's literal reading matches what the same pattern as a (backtracking) regular expression matches."""
    compiled = compile_pattern(pattern)
    if compiled is None:
        return
    anchored = pattern.endswith("$")
    pieces = [re.escape(normal(piece)) for piece in (pattern[:-1] if anchored else pattern).split("*")]
    expression = re.compile(".*".join(pieces) + (r"\Z" if anchored else ""), re.DOTALL)
    literal = target_of(HOST + path).literal
    assert compiled.under(Target(literal, literal), both=False) >= bool(expression.match(literal))
    simple = compiled._replace(loose=compiled.literal)
    assert simple.under(Target(literal, literal), both=False) == bool(expression.match(literal))


@MANY
@given(ROBOTS, PATHS)
def test_line_ends_are_equal(body: bytes, path: str) -> None:
    """LF, CR and CRLF give the same verdicts on the same lines; the separators of other standards end no line."""
    wanted = _judge(body, HOST + path)
    for end in (b"\r", b"\r\n"):
        got = _judge(body.replace(b"\n", end), HOST + path)
        assert (got.access, got.use, got.gate) == (wanted.access, wanted.use, wanted.gate)
        assert [e.line_no for e in got.evidence] == [e.line_no for e in wanted.evidence]
    assert not parse_robots(b"# a\x0b\x0c\x1c\x1d\x1e\xc2\x85\xe2\x80\xa8User-agent: *").groups


@MANY
@given(ROBOTS, PATHS)
def test_a_judgement_is_a_function_of_its_evidence(body: bytes, path: str) -> None:
    """What the fast judge answers is what `decide` says about the evidence it gives, now and after unloading."""
    files = AuthorityFiles(robots=file_state(body, url=f"{HOST}/robots.txt"))
    rules = compile_authority(files, NORMAL, "CorpusBot")
    first = rules.judge(HOST + path, 0.0)
    again = decide(first.evidence, NORMAL)
    assert (again.access, again.use, again.gate, again.store) == (first.access, first.use, first.gate, first.store)
    rules.unload()
    assert rules.judge(HOST + path, 0.0) == first
    assert combine([first], NORMAL) == first


REFUSALS = st.sampled_from(
    [
        ("robots", "\nUser-agent: *\nUser-agent: CorpusBot\nDisallow: /"),
        ("robots", "\nUser-agent: *\nUser-agent: CorpusBot\nContent-Signal: {path} ai-train=no"),
        ("robots", "\nUser-agent: GPTBot\nDisallow: /"),
        ("robots", "\nUser-agent: CCBot/2.0, B\nFoo: bar\nUser-agent: Z\nDisallow: {path}"),
        ("tdmrep", '[{{"location":"/","tdm-reservation":1}}]'),
        ("ai_txt", "User-agent: *\nDisallow: /"),
        ("ai_txt", "Training: deny"),
        (
            "rsl",
            '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license><prohibits type="usage">ai-train</prohibits></license></content></rsl>',
        ),
        ("header", "X-Robots-Tag: noai"),
        ("header", "X-Robots-Tag: GPTBot: noindex"),
        ("header", "Content-Usage: train-ai=n"),
        ("header", "TDM-Reservation: 1"),
        ("header", "Content-Signal: ai-train=no"),
    ]
)


@MANY
@given(ROBOTS, PATHS, REFUSALS, st.booleans())
def test_a_refusal_never_helps(body: bytes, path: str, refusal: tuple[str, str], granted: bool) -> None:
    """Adding a refusing statement, anywhere, never moves a verdict towards yes: no stays no, and yes needs no refusal."""
    url = HOST + path
    given_: dict[str, object] = {"robots": body.decode()}
    if granted:
        given_["headers"] = [("Content-Usage", "train-ai=y")]
    before = consent(url, at=0.0, **given_)  # type: ignore[arg-type]
    kind, text = refusal
    text = text.format(path=target_of(url).literal.partition("*")[0].partition("#")[0] or "/")
    if kind == "header":
        name, _, value = text.partition(": ")
        given_["headers"] = [*given_.get("headers", []), (name, value)]  # type: ignore[misc]
    else:
        given_[kind] = str(given_.get(kind, "")) + text
    after = consent(url, at=0.0, **given_)  # type: ignore[arg-type]
    assert not (before.use is Use.NO and after.use is Use.YES)
    assert not (before.access is Access.NO and after.access is Access.YES) or "CorpusBot" in text
    # a header's group-less grant and an own group that answers us are the only ways a refusal may leave us less than no
    if kind != "robots":
        assert STRENGTH[after.use] <= STRENGTH[before.use]
        assert after.use is Use.NO


@FEW
@given(
    st.sampled_from([None, 100, 206, 301, 304, 408, 425, 429, 500, 503, 520, 599, 999]),
    st.binary(max_size=40),
    st.sampled_from(["timeout", "reset", None]),
    st.sampled_from([Kind.ROBOTS, Kind.TDMREP, Kind.AI_TXT]),
)
def test_what_cannot_be_read_never_allows(status: int | None, body: bytes, failure: str | None, kind: Kind) -> None:
    """An authority file that was not read as it stands lets nothing be fetched, however old the failure is."""
    state = classify_file(kind, status, failure, 0, (), body, truncated=False, url=f"{HOST}/f", read_at=0.0)
    assert state.outcome == "unreachable"
    state = dataclasses.replace(state, unreachable_since=0.0)
    field = {Kind.ROBOTS: "robots", Kind.TDMREP: "tdmrep", Kind.AI_TXT: "ai_txt"}[kind]
    rules = compile_authority(AuthorityFiles(**{field: state}), NORMAL, "CorpusBot")
    for at in (0.0, 40 * 86_400.0, 4_000 * 86_400.0):
        assert rules.judge(HOST + "/x", at).gate is Gate.DEFER


@FEW
@given(st.binary(min_size=1, max_size=200), st.integers(0, 199))
def test_a_cut_transfer_defers(body: bytes, kept: int) -> None:
    """A transfer that broke off is not a shorter file."""
    state = classify_robots(200, None, 0, (), body[:kept], truncated=True)
    assert state.outcome == "unreachable"


STATES = st.sampled_from(
    [
        FileState("absent", 404, url="u"), FileState("denied", 403, url="u", detail="status 403"), FileState("unreachable", 503, url="u"),
        FileState("unreachable", None, url="u"), file_state(b"User-agent: *\nDisallow: /a", url="u"), file_state(b"User-agent: GPTBot\nDisallow: /", url="u"),
        file_state(b'[{"location":"/","tdm-reservation":0}]', url="u"), file_state(b"tdm-reservation", url="u"), file_state(b"Training: no", url="u"),
    ]
)  # fmt: skip


@MANY
@given(st.lists(STATES, min_size=4, max_size=4), PATHS, st.integers(0, 2**32))
def test_combining_is_a_union(states: list[FileState], path: str, seed: int) -> None:
    """The order and the repetition of parts never matter, and no part's no is lost."""
    parts = [
        compile_authority(AuthorityFiles(robots=states[0], tdmrep=states[1]), NORMAL, "CorpusBot").judge(HOST + path, 0.0),
        compile_authority(AuthorityFiles(ai_txt=states[2]), NORMAL, "CorpusBot").judge(HOST + path, 0.0),
        compile_authority(AuthorityFiles(robots=states[3]), NORMAL, "CorpusBot").judge(HOST + path, 0.0),
    ]
    shuffled = parts * 2
    random.Random(seed).shuffle(shuffled)
    one, other = combine(parts, NORMAL), combine(shuffled, NORMAL)
    assert (one.access, one.use, one.gate, one.store, one.export) == (
        other.access,
        other.use,
        other.gate,
        other.store,
        other.export,
    )
    assert evidence_digest(one) == evidence_digest(other)
    assert one.use is Use.NO or all(part.use is not Use.NO for part in parts)
    assert not one.export or all(part.export for part in parts)


@MANY
@given(ROBOTS, PATHS, st.integers(0, 2**32))
def test_a_digest_forgets_time_and_order_only(body: bytes, path: str, seed: int) -> None:
    """Evidence digests are equal for the same statements read at another time, and differ once a statement differs."""
    evidence = list(_judge(body, HOST + path).evidence)
    later = [dataclasses.replace(item, read_at=9e9) for item in evidence]
    random.Random(seed).shuffle(later)
    assert evidence_digest(evidence) == evidence_digest(later)
    assert evidence_digest(evidence) != evidence_digest([*evidence, Evidence("tdmrep", "header", raw="x")])


@MANY
@given(ROBOTS, PATHS)
def test_permission_only_is_never_milder(body: bytes, path: str) -> None:
    """The stricter profile, and every switch towards strictness, never gives a milder answer."""
    mild = _judge(body, HOST + path, peers="off", near_miss=False)
    for stricter in ({"peers": "control", "near_miss": False}, {"peers": "any"}, {"profile": "permission-only"}):
        got = _judge(body, HOST + path, **stricter)
        assert STRENGTH[got.use] <= STRENGTH[mild.use]
        assert got.access == mild.access
    assert _judge(body, HOST + path, profile="permission-only").use is not Use.UNKNOWN
