"""robots.txt: lines, groups, agents, scopes of signals, peers; each story is one that real parsers get wrong."""

from __future__ import annotations

import pytest

from corpus.model import Access, Consent, Gate, Use
from corpus.optout.agents import AGENTS, SPEAKS_ABOUT_TRAINING, Purpose, load_agents
from corpus.optout.authority import AuthorityFiles, AuthorityRules, compile_authority
from corpus.optout.filestate import file_state
from corpus.optout.lines import CAP_BYTES, printable, split_lines
from corpus.optout.match import Target, compile_pattern, target_of
from corpus.optout.protego_opinion import second_opinion
from corpus.optout.robots import crawl_delay_s, parse_robots
from corpus.optout.settings import OptoutSettings

HOST = "https://ex.com"


def _rules(text: str | bytes, token: str = "CorpusBot", **options: object) -> AuthorityRules:
    body = text.encode() if isinstance(text, str) else text
    state = file_state(body, url=f"{HOST}/robots.txt", read_at=7.0)
    return compile_authority(AuthorityFiles(robots=state), OptoutSettings.model_validate(options), token)


def _judge(text: str | bytes, path: str = "/x/y", **options: object) -> Consent:
    return _rules(text, **options).judge(HOST + path, 7.0)


# ---- lines


def test_a_cut_last_line_is_not_read() -> None:
    """Past the cap the broken line vanishes; one that ends exactly at the cap stays; the file is flagged."""
    pad = b"#" * 63 + b"\n"
    body = pad * (CAP_BYTES // 64)
    assert len(body) == CAP_BYTES
    assert split_lines(body).truncated is False
    head = b"#" * (CAP_BYTES - 12) + b"\n"
    whole = split_lines(head + b"Disallow: /\nDisallow: /more")
    assert whole.truncated
    assert whole.lines[-1] == "Disallow: /"
    cut = split_lines(head + b"Disallow: /x" + pad)
    assert cut.truncated
    assert not cut.lines[-1].startswith("Disallow")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8-sig", "utf-16", "utf-32"])
def test_every_unicode_form_is_read(encoding: str) -> None:
    """UTF-16 with or without its mark, UTF-32 and a marked UTF-8 file refuse like the plain one."""
    text = "User-agent: *\r\nDisallow: /x\r\n" + "# filler so that the pattern of zeros is plain\n" * 4
    assert _judge(text.encode(encoding)).access is Access.NO


def test_octets_that_are_no_utf8_compare_as_octets() -> None:
    """A latin-1 pattern refuses the URL that carries the same octet, and its evidence can be stored."""
    answer = _judge(b"User-agent: *\nDisallow: /caf\xe9\n", "/caf%E9/menu")
    assert answer.access is Access.NO
    answer.evidence[0].raw.encode("utf-8")
    printable("\udcff\ud800").encode("utf-8")


# ---- groups and agents


@pytest.mark.parametrize(
    "between",
    [
        "Content-Signal: ai-train=no",
        "Crawl-delay: 5",
        "License: https://a.b/c",
        "Foo: bar",
        "",
        "# note",
        "Content-Usage: train-ai=n",
    ],
)
def test_nothing_but_a_rule_ends_a_list_of_agents(between: str) -> None:
    """Any other record between agents leaves the list open."""
    assert _judge(f"User-agent: CorpusBot\n{between}\nUser-agent: B\nDisallow: /\n").access is Access.NO


def test_an_own_statement_replaces_a_borrowed_one() -> None:
    """Of agents that share their rules, one with a statement of its own keeps that; one without shares the list's."""
    shared = "User-agent: *\nContent-Signal: ai-train=no\n\nUser-agent: CorpusBot\nAllow: /\n"
    assert _judge(shared).use is Use.NO
    assert _judge(shared + "Content-Signal: ai-train=yes\n").use is Use.YES
    mixed = "User-agent: *\nContent-Signal: ai-train=no\nContent-Usage: train-ai=y\nUser-agent: CorpusBot\n"
    assert _judge(mixed).use is Use.NO
    assert _judge(mixed + "Content-Signal: /elsewhere ai-train=no\n").use is Use.UNKNOWN


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("GPTBot/1.1", "gptbot"),
        ("CCBot, GPTBot", "gptbot"),
        ("AI2Bot", "ai2bot"),
        ("Kangaroo Bot", "kangaroo bot"),
        ("iaskspider/2.0", "iaskspider"),
        ("GPTBot (openai)", "gptbot"),
        ("GPTBot;q=1", "gptbot"),
    ],
)
def test_agents_are_found_as_written(agent: str, token: str) -> None:
    """Versions, lists, digits and blanks in a name do not hide it."""
    assert parse_robots(f"User-agent: {agent}\nDisallow: /".encode()).groups[0].names(token)


@pytest.mark.parametrize(
    "line", ["User-agent: Corpus", "User-agent: Corpus*", "User-agent: CorpusBotX", "User-agent: XCorpusBot"]
)
def test_a_part_of_a_name_is_another_name(line: str) -> None:
    """Tokens are compared whole."""
    assert _judge(f"{line}\nDisallow: /").access is Access.YES


@pytest.mark.parametrize(
    "line", ["Disallow /x", "Dissallow: /x", "disallow : /x", "DISALLOW:/x", "Disallows: /x", "Dis-allow: /x", "Disallow /x:y"]
)
def test_misspelt_refusals_refuse(line: str) -> None:
    """What Google's parser forgives, and two evident forms more."""
    assert _judge(f"User-agent: *\n{line}\n", "/x:y").access is Access.NO


def test_evidence_names_the_line() -> None:
    """A refusal carries the raw line, its number, the file's digest, its address and the time it was read."""
    answer = _judge("# hello\r\nUser-agent: *\r\nDisallow: /x # private\r\n")
    said = answer.evidence[0]
    assert (said.line_no, said.raw, said.read_at, said.source) == (3, "Disallow: /x # private", 7.0, f"{HOST}/robots.txt")
    assert len(said.file_digest) == 64
    assert (answer.gate, answer.use, answer.store, answer.export) == (Gate.SKIP, Use.NO, False, False)


def test_crawl_delay_takes_the_longest_readable() -> None:
    """Words, signs and overflow never shorten a wait."""
    for value, wanted in {
        "7.5": 7.5,
        "10s": 10.0,
        "nan": None,
        "-3": None,
        "inf": None,
        "1e9": 1e9,
        "9" * 400: 1e12,
        "0": 0.0,
        "": None,
    }.items():
        groups = parse_robots(f"User-agent: *\nCrawl-delay: {value}".encode()).groups
        assert crawl_delay_s(groups[0].signals_for(None)) == wanted, value
    assert _rules("User-agent: *\nCrawl-delay: 1\nCrawl-delay: 30\n").crawl_delay_s == 30.0


def test_ten_thousand_groups() -> None:
    """A file of ten thousand groups is read, and ours is found in it."""
    text = "".join(f"User-agent: bot{n}\nDisallow: /{n}\n" for n in range(10_000))
    assert _judge(text + "User-agent: CorpusBot\nDisallow: /x\n").access is Access.NO


def test_sitemaps_are_absolute() -> None:
    """Sitemap lines belong to no group and are resolved against the file's own address."""
    assert _rules("Sitemap: /s.xml\nUser-agent: x\nSitemap: http://b.com/t.xml\nSitemap: ftp://c/\n").sitemaps == (
        f"{HOST}/s.xml",
        "http://b.com/t.xml",
    )


# ---- matching


@pytest.mark.parametrize(
    ("pattern", "url", "refuses", "permits"),
    [
        ("/a%2fb", "/a%2Fb", True, True),
        ("/a/b", "/a%2Fb", False, False),
        ("/s?a%26b", "/s?a&b", True, False),
        ("/f?u=https://f.b", "/f?u=https%3A%2F%2Ff.b", True, False),
        ("/p%24", "/p$", True, True),
        ("/f-%2A.h", "/f-*.h", True, True),
        ("/%7Ejoe", "/~joe", True, True),
        ("/é", "/%C3%A9", True, True),
        ("/a b", "/a%20b", True, True),
        ("/a%3Fb", "/a?b", False, False),
        ("/*.json$", "/a.json", True, True),
        ("/*.json$", "/a.json?x", False, False),
        ("/fish*", "/fish", True, True),
        ("/a$b", "/a$bc", True, True),
        ("x", "/x", False, False),
        ("*", "/", True, True),
        ("/p$", "/pp", False, False),
        ("/*x*y$", "/yxy", True, True),
        ("/*ab$", "/ab", True, True),
        ("/a*a$", "/a", False, False),
    ],
)
def test_readings_of_escapes(pattern: str, url: str, refuses: bool, permits: bool) -> None:
    """A refusal matches under either reading of a reserved escape, a permission only under both; the rest is RFC 9309."""
    compiled = compile_pattern(pattern)
    target = target_of(HOST + url)
    assert (compiled is not None and compiled.under(target, both=False)) is refuses
    assert (compiled is not None and compiled.under(target, both=True)) is permits


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://ex.com", "/"),
        ("https://ex.com?q=1", "/?q=1"),
        ("https://ex.com/a/../b/./c?d=/../e#f", "/b/c?d=/../e"),
        ("https://ex.com/a/%2e%2E/b", "/b"),
        ("https://ex.com/a\\..\\b", "/b"),
        ("https://ex.com/..", "/"),
        ("/only/a/path", "/only/a/path"),
        ("https://ex.com/a\tb\n", "/ab"),
        ("https://ex.com/x/.", "/x/"),
        ("https://ex.com/?u=http://a/b", "/?u=http://a/b"),
        ("https://u:p@ex.com:8080/z", "/z"),
        ("https://ex.com//..//a", "//a"),
    ],
)
def test_targets(url: str, path: str) -> None:
    """What is matched is what would be requested."""
    assert target_of(url) == Target(path, path)


def test_a_short_path_does_not_shadow_a_longer_wildcard() -> None:
    """A path that is itself a listed prefix still meets the longer wildcard rules."""
    assert _judge("User-agent: *\nAllow: /a\nDisallow: /*a$\nDisallow: /abcd\n", "/a").access is Access.NO


# ---- peers

BLOCK = "User-agent: AI2Bot\nUser-agent: CCBot\nFoo: bar\nUser-agent: GPTBot\nUser-agent: Google-Extended\nUser-agent: Scrapy\nDisallow: /x\n"


@pytest.mark.parametrize(
    ("peers", "use"),
    [
        ("any", Use.NO),
        ("off", Use.UNKNOWN),
        ("control", Use.NO),
        ("quorum:4", Use.NO),
        ("quorum:5", Use.UNKNOWN),
        ("quorum:1", Use.NO),
    ],
)
def test_peer_modes(peers: str, use: Use) -> None:
    """Which agents count, and how many must refuse together (four of the table's stand in the block)."""
    assert _judge(BLOCK, peers=peers).use is use
    assert _judge(BLOCK, "/elsewhere", peers=peers).use is Use.UNKNOWN


def test_peers_are_silent_once_we_are_named() -> None:
    """A group naming our token is the site's answer to us."""
    assert _judge(BLOCK + "\nUser-agent: CorpusBot\nDisallow: /z\n").use is Use.UNKNOWN


def test_a_peer_never_grants() -> None:
    """An Allow for a peer says nothing, and `*` is no peer."""
    assert _judge("User-agent: GPTBot\nAllow: /\n").use is Use.UNKNOWN
    assert _judge("User-agent: GPTBot\nDisallow: /\nAllow: /x\n").use is Use.UNKNOWN
    assert _judge("User-agent: GPTBot\nDisallow: /\nAllow: /x\n", "/y").use is Use.NO


def test_a_peer_may_refuse_by_a_signal() -> None:
    """A training agent's group that says no to training by a usage line speaks for us like a Disallow."""
    answer = _judge("User-agent: GPTBot\nContent-Signal: /x/ ai-train=no\nAllow: /\n")
    assert answer.use is Use.NO
    assert (answer.evidence[-1].protocol, answer.evidence[-1].agent, answer.evidence[-1].line_no) == ("robots-peer", "GPTBot", 2)


def test_equal_groups_are_one_voice() -> None:
    """Many agents with one rule are one piece of evidence that names them."""
    text = "".join(
        f"User-agent: {name}\nDisallow: /\n\n" for name, purpose in AGENTS.purposes.values() if SPEAKS_ABOUT_TRAINING[purpose]
    )
    said = [item for item in _judge(text).evidence if item.protocol == "robots-peer"]
    assert len(said) == 1
    assert "more" in said[0].agent


def test_the_agent_table_is_whole() -> None:
    """Every purpose has agents, the tokens of the specs are in their places, and a token stands once."""
    by_purpose = {purpose: {token for token, (_, p) in AGENTS.purposes.items() if p is purpose} for purpose in Purpose}
    assert all(by_purpose.values())
    assert {"google-extended", "applebot-extended"} <= by_purpose[Purpose.CONTROL]
    assert {"gptbot", "claudebot", "anthropic-ai", "bytespider", "amazonbot", "ai2bot"} <= by_purpose[Purpose.TRAINING]
    assert {"ccbot", "img2dataset"} <= by_purpose[Purpose.DATASET]
    assert {"applebot", "oai-searchbot"} <= by_purpose[Purpose.SEARCH]
    with pytest.raises(ValueError, match="twice"):
        load_agents('version="1"\ncontrol=["A"]\ntraining=["a"]\ndataset=[]\nsearch=[]\nuser=[]')


# ---- Protego


def test_protego_is_asked_about_paths_only() -> None:
    """Its opinion is of the group that we chose: what makes it fail open in whole files does not reach it."""
    stacked = b"User-agent: CorpusBot\nContent-Signal: ai-train=no\nUser-agent: B\nDisallow: /\n"
    assert second_opinion(stacked, "CorpusBot", f"{HOST}/x") is False
    assert (
        second_opinion(
            b"\xef\xbb\xbfUser-agent: CCBot, CorpusBot/2\nDisallow: /x\n# a\xe2\x80\xa8Allow: /x\n", "CorpusBot", f"{HOST}/x"
        )
        is False
    )
    assert second_opinion(b"User-agent: *\nDisallow: /z\n", "CorpusBot", f"{HOST}/x") is True
