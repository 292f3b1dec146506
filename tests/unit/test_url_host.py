"""Hosts, authorities, registered domains and partitions by example, with golden partition numbers."""

from __future__ import annotations

import pytest

from corpus.url import host as host_module
from corpus.url import partition
from corpus.url.host import (
    authority_of,
    host_of,
    is_public_suffix,
    partition_file,
    partition_of,
    path_and_query,
    registered_domain,
    robots_url,
)


@pytest.mark.parametrize(
    ("url", "host", "authority"),
    [
        ("http://example.org/", "example.org", "http://example.org:80"),
        ("https://example.org", "example.org", "https://example.org:443"),
        ("https://EXAMPLE.org:8443/x", "example.org", "https://example.org:8443"),
        ("http://user@example.org:80/x?y", "example.org", "http://example.org:80"),
        ("http://[2001:DB8::1]/", "[2001:db8::1]", "http://[2001:db8::1]:80"),
        ("http://127.0.0.1:8000/", "127.0.0.1", "http://127.0.0.1:8000"),
        ("http://example.org./", "example.org", "http://example.org:80"),
        ("http://0x7f.1/", "127.0.0.1", "http://127.0.0.1:80"),
        ("http://a_b.example.org/", "a_b.example.org", "http://a_b.example.org:80"),
        ("ftp://example.org/", "", ""),
        ("nonsense", "", ""),
    ],
)
def test_host_and_authority(url: str, host: str, authority: str) -> None:
    """The host has no port and no root dot; the authority always has its port."""
    assert host_of(url) == host
    assert authority_of(url) == authority


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("a.b.github.io", "b.github.io"),
        ("github.io", "github.io"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("intranet", "intranet"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("WWW.Example.org.", "example.org"),
        ("www.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a..b", "a..b"),
        ("", ""),
    ],
)
def test_registered_domain(host: str, domain: str) -> None:
    """The private section counts; whoever has no registered domain answers for himself."""
    assert registered_domain(host) == domain


def test_public_suffixes() -> None:
    """Names under which strangers register are told from names that one owner holds."""
    assert is_public_suffix("co.uk")
    assert is_public_suffix("github.io")
    assert is_public_suffix("localhost")
    assert not is_public_suffix("example.co.uk")


def test_robots_url_and_path() -> None:
    """robots.txt is asked for without a default port; rules see path and query, never the fragment."""
    assert robots_url("http://example.org:80") == "http://example.org/robots.txt"
    assert robots_url("https://example.org:80") == "https://example.org:80/robots.txt"
    assert robots_url("https://[::1]:443") == "https://[::1]/robots.txt"
    assert path_and_query("http://example.org/a?b#c") == "/a?b"
    assert path_and_query("http://example.org") == "/"


def test_partitions_never_move() -> None:
    """Golden numbers: a frontier written by any version is found again by every other."""
    golden = {
        "example.org": 191,
        "example.com": 163,
        "wikipedia.org": 218,
        "localhost": 73,
        "127.0.0.1": 18,
        "": 227,
        "xn--bcher-kva.de": 223,
    }
    assert {name: partition_of(name) for name in golden} == golden
    assert {name: partition_file(name, 16) for name in golden} == {name: number % 16 for name, number in golden.items()}
    assert (partition.PARTITIONS, partition.PARTITION_FILES) == (256, 16) == (host_module.PARTITIONS, host_module.PARTITION_FILES)
    assert partition_of("\ud800") in range(256)
