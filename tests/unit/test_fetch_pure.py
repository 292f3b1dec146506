"""The pure parts of the network edge: identity, request lines, limits, Retry-After, addresses, the DNS format."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address

import dnslib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl.addresses import literal, networks, vet
from corpus.crawl.dns_wire import (
    AAAA,
    CNAME,
    NXDOMAIN,
    A,
    DnsFormatError,
    Message,
    Record,
    decode,
    encode_name,
    encode_query,
    encode_response,
)
from corpus.crawl.fetch_body import Body
from corpus.crawl.fetch_limits import MIN_RATE, PROBE_AT, Limits, body_deadline, head_deadline, limits_for, wanted
from corpus.crawl.identity import mailbox, request_headers, user_agent
from corpus.crawl.ports import Request
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.wire import raw_request, target_of
from corpus.model import Failure, Kind
from corpus.page.encoding import Decoded

MAIL = CrawlSettings(contact="ops@example.org")
PAGE = CrawlSettings(contact="https://example.org/bot")


# -- identity -------------------------------------------------------------------------------------------------------
def test_the_user_agent_names_us_and_how_to_reach_us() -> None:
    """CONTRACT's form; the operator's own text wins."""
    assert user_agent(PAGE).startswith("CorpusBot/")
    assert user_agent(PAGE).endswith("(+https://example.org/bot)")
    assert user_agent(CrawlSettings(user_agent="MyBot/2 CorpusBot")) == "MyBot/2 CorpusBot"


def test_from_is_sent_only_for_a_mailbox() -> None:
    """A page about the crawl is no From address."""
    ask = Request("http://a/", "a", "192.0.2.1")
    assert ("From", "ops@example.org") in request_headers(MAIL, ask)
    assert "From" not in dict(request_headers(PAGE, ask))
    assert mailbox("mailto:x@y.org") == "x@y.org"
    assert mailbox("not a mailbox@") is None


def test_only_conditional_headers_of_one_line_pass() -> None:
    """A stored ETag cannot smuggle in a second header, nor a request other headers."""
    given_headers = (
        ("If-None-Match", '"a"'),
        ("If-Modified-Since", "Tue\r\nCookie: x"),
        ("Cookie", "a=b"),
        ("if-modified-since", "Tue, 01 Sep 2026 10:00:00 GMT"),
    )
    sent = request_headers(MAIL, Request("http://a/", "a", "192.0.2.1", headers=given_headers))
    assert [name for name, _ in sent] == ["User-Agent", "From", "Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since"]
    assert dict(sent)["Accept-Encoding"] == "gzip, deflate, br, zstd"


# -- request lines --------------------------------------------------------------------------------------------------
@given(st.text(max_size=60))
def test_no_url_can_end_its_own_line(tail: str) -> None:
    """Whatever stands in a URL, the request line stays one line of printable ASCII."""
    target = target_of("http://a.test/" + tail)
    assert target is not None
    lines = raw_request(target, ()).split(b"\r\n")
    assert len(lines) == 4
    assert lines[0].count(b" ") == 2
    assert all(0x20 <= c < 0x7F for c in lines[0])


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("http://A.test", "a.test", 80, "/"),
        ("https://a.test:8443/x?y=1#z", "a.test", 8443, "/x?y=1"),
        ("http://u:p@a.test/%zz/%2f", "a.test", 80, "/%zz/%2f"),
        ("http://[2001:db8::1]:81/é", "[2001:db8::1]", 81, "/%C3%A9"),
        ("http://a.test?q", "a.test", 80, "/?q"),
        ("http://a.test/a b", "a.test", 80, "/a%20b"),
    ],
)
def test_a_url_is_asked_for_as_found(url: str, host: str, port: int, path: str) -> None:
    """Nothing is normalised; user information and fragments stay here."""
    target = target_of(url)
    assert target is not None
    assert (target.host, target.port, target.path) == (host, port, path)


@pytest.mark.parametrize(
    "url", ["", "ftp://a/", "http:///x", "http://a:99999/", "http://a b/", "http://a\\b/", "http://é.test/", "javascript:1"]
)
def test_what_is_no_http_url_has_no_target(url: str) -> None:
    """Rather no request than a surprising one."""
    assert target_of(url) is None


# -- limits ---------------------------------------------------------------------------------------------------------
LIMITS = Limits(connect_s=10, first_byte_s=30, idle_s=20, total_s=120, max_body=1000, max_ratio=200)


@given(st.floats(0, 1e6), st.lists(st.tuples(st.floats(0, 30), st.integers(0, 10_000)), max_size=60))
def test_a_body_never_outlives_its_limits(start: float, steps: list[tuple[float, int]]) -> None:
    """However pieces arrive, the deadline is at most `idle` away, never past the total, and honest pages meet it."""
    now, received = start, 0
    deadline = body_deadline(LIMITS, start, start, now, 0)
    for pause, size in steps:
        assert deadline.at <= now + LIMITS.idle_s
        assert deadline.at <= start + LIMITS.total_s
        now += pause
        if now > deadline.at:
            break
        received += size
        deadline = body_deadline(LIMITS, start, start, now, received)
    assert body_deadline(LIMITS, start, start, start + 1, int(MIN_RATE * 200)).failure is Failure.TIMEOUT


def test_head_deadlines_name_what_was_missed() -> None:
    """Connecting and the first byte each have their own time, both inside the total."""
    assert head_deadline(LIMITS, 100.0, None).at == 110.0
    assert head_deadline(LIMITS, 100.0, 105.0).at == 135.0
    assert head_deadline(LIMITS, 100.0, 195.0).at == 220.0


def test_sizes_by_kind_and_status() -> None:
    """Authority files 512 KiB, sitemaps 50 MiB, refusals 64 KiB, pages `max_body`."""
    settings = CrawlSettings()
    assert limits_for(settings, Kind.ROBOTS).max_body == 512 * 1024
    assert limits_for(settings, Kind.SITEMAP).max_body == 50 * 2**20
    assert limits_for(settings, Kind.PAGE).max_body == 10 * 2**20
    assert limits_for(settings, Kind.PAGE, 404).max_body == 64 * 1024


def test_wanted_types() -> None:
    """Parameters and case do not matter; a missing type is read; only pages are picky."""
    types = ("text/html",)
    assert wanted(Kind.PAGE, 200, "Text/HTML; charset=x", types)
    assert wanted(Kind.PAGE, 200, None, types)
    assert wanted(Kind.PAGE, 404, "image/png", types)
    assert wanted(Kind.ROBOTS, 200, "image/png", types)
    assert not wanted(Kind.PAGE, 200, "image/png", types)


# -- addresses ------------------------------------------------------------------------------------------------------
REFUSED = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "::10.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:0a00:0001::",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "localhost",
    "1.2.3",
    "1.2.3.4.5",
]
ALLOWED = [
    "8.8.8.8",
    "1.1.1.1",
    "93.184.216.34",
    "172.32.0.1",
    "100.128.0.1",
    "2600:1406::1",
    "2a00:1450::1",
    "64:ff9b::8.8.8.8",
    "2002:0808:0808::1",
]


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_that_are_not_the_public_web_are_refused(address: str) -> None:
    """Private, loopback, link-local, metadata, reserved, multicast, and IPv4 hidden in IPv6."""
    assert not vet(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_public_addresses_pass(address: str) -> None:
    """The public web stays reachable, through NAT64 and 6to4 too."""
    assert vet(address)


@given(st.ip_addresses())
def test_allow_private_lifts_exactly_its_ranges(address: object) -> None:
    """An allowed range changes the verdict of its own addresses only, never of the IPv6 forms that hold them."""
    text, allow = str(address), networks(("127.0.0.0/8", "fd00::/16"))
    inside = any(ip_address(text).version == net.version and ip_address(text) in net for net in allow)
    assert vet(text, allow) == (inside or vet(text))
    assert not vet("::ffff:127.0.0.1", allow)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["{0}", "0x{0:x}", "{1}", "0{0:o}"]))
def test_no_spelling_of_an_address_is_a_name(number: int, form: str) -> None:
    """Old IPv4 spellings are the address they mean, so vetting sees it."""
    text = form.format(number, f"{number >> 24}.{number & 0xFFFFFF}")
    assert literal(text) == str(IPv4Address(number))


def test_names_are_not_literals() -> None:
    """Only hosts that end in a number are addresses."""
    assert literal("a.test") is None
    assert literal("1.2.3.4.example") is None
    assert literal("[2001:DB8::1]") == "2001:db8::1"
    assert literal("999.999.999.999") == "999.999.999.999"
    assert not vet("999.999.999.999")


# -- the DNS format -------------------------------------------------------------------------------------------------
def test_our_queries_and_answers_are_real_dns() -> None:
    """dnslib reads what we write, and we read what it writes."""
    query = dnslib.DNSRecord.parse(encode_query(7, "Www.Example.org", AAAA))
    assert (query.header.id, str(query.q.qname), query.q.qtype) == (7, "Www.Example.org.", AAAA)
    reply = dnslib.DNSRecord.question("www.example.org", "A").reply()
    reply.add_answer(*dnslib.RR.fromZone("www.example.org 60 CNAME a.example.org\na.example.org 30 A 192.0.2.7"))
    message = decode(reply.pack())
    assert message.answers == (Record("www.example.org", CNAME, 60, "a.example.org"), Record("a.example.org", A, 30, "192.0.2.7"))
    gone = dnslib.DNSRecord.question("no.example.org", "A").reply()
    gone.header.rcode = NXDOMAIN
    gone.add_auth(*dnslib.RR.fromZone("example.org 900 SOA ns.example.org. h.example.org. 1 2 3 4 600"))
    assert (decode(gone.pack()).rcode, decode(gone.pack()).negative_ttl) == (NXDOMAIN, 600)


@given(st.binary(max_size=300))
def test_decoding_any_bytes_ends(data: bytes) -> None:
    """A message or one exception, for any bytes."""
    for message in (data, encode_query(1, "a.test", A)[:12] + data):
        try:
            assert isinstance(decode(message), Message)
        except DnsFormatError:
            continue


@given(st.lists(st.sampled_from(["192.0.2.1", "198.51.100.2"]), max_size=5), st.integers(0, 2**31 - 1))
def test_answers_survive_the_wire(addresses: list[str], ttl: int) -> None:
    """encode → decode is the identity."""
    records = tuple(Record("a.test", A, ttl, a) for a in addresses)
    asked = decode(encode_query(9, "a.test", A))
    assert decode(encode_response(asked, 0, records)).answers == records


@pytest.mark.parametrize("name", ["", "a..b", "x" * 64 + ".org", ".".join(["abcdefgh"] * 30), "é.org"])
def test_names_that_cannot_be_asked_for(name: str) -> None:
    """Too long, empty labels, not ASCII."""
    with pytest.raises(DnsFormatError):
        encode_name(name)


def test_the_bytes_of_a_body_are_put_together_once() -> None:
    """The same object while nothing is added: what is stored and what is read of an unencoded page are one string of bytes."""
    body = Body(Limits(1, 1, 1, 1, max_body=8, max_ratio=1000), ())
    body.add(b"abc")
    first = body.wire()
    assert first is body.wire()
    assert body.decode(first).body is first
    body.add(b"def")
    assert (first, body.wire()) == (b"abc", b"abcdef")
    body.add(b"ghi")
    assert body.wire() == b"abcdefgh"
    bomb = Body(Limits(1, 1, 1, 1, max_body=2 * PROBE_AT, max_ratio=1000), (("Content-Encoding", "gzip"),))
    bomb.add(bytes(PROBE_AT + 1))
    assert len(bomb.wire()) == PROBE_AT + 1
    bomb.probed(Decoded(b"", truncated=True))
    assert len(bomb.wire()) == PROBE_AT
