"""Content-decoding: every coding, every cut, every bomb."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpus.page.encoding import Decoded, content_codings, decode_body


def _raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(6, zlib.DEFLATED, -15)
    return coder.compress(data) + coder.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.ZstdCompressor().compress,
}  # fmt: skip
TEXT = "".join(f"line {n}: the quick brown fox, {n * 7919}\n" for n in range(4000)).encode()
BIG = 10**9


@pytest.mark.parametrize("coding", sorted(CODERS))
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one", "text"])
def test_every_coding_comes_back(coding: str, data: bytes) -> None:
    """What a server compresses is what we read."""
    assert decode_body([coding], CODERS[coding](data), BIG, 10**6) == Decoded(data)


def test_deflate_without_a_wrapper() -> None:
    """Half the servers send raw deflate under the name deflate."""
    assert decode_body(["deflate"], _raw_deflate(TEXT), BIG, 10**6) == Decoded(TEXT)


def test_codings_nest_and_headers_split() -> None:
    """Codings are undone from the last to the first, from lists and from repeated headers; a fourth is refused."""
    body = zstandard.ZstdCompressor().compress(brotli.compress(gzip.compress(TEXT)))
    assert decode_body(["gzip, br", "ZSTD"], body, BIG, 10**6).body == TEXT
    assert content_codings([("content-encoding", "gzip, identity"), ("X", "y"), ("Content-Encoding", "BR")]) == ("gzip", "br")
    assert "nested" in decode_body(["gzip"] * 4, body, BIG, 10**6).fault


def test_joined_members_and_padding() -> None:
    """A gzip body of several members is one body; padding behind it is nobody's text."""
    assert decode_body(["gzip"], gzip.compress(b"a") + gzip.compress(TEXT) + b"\0\0\0", BIG, 10**6) == Decoded(b"a" + TEXT)
    many = gzip.compress(b"") * 5000
    assert "members" in decode_body(["gzip"], many, BIG, 10**6).fault


@pytest.mark.parametrize("coding", sorted(CODERS))
def test_the_cap_cuts(coding: str) -> None:
    """At most max_bytes come out, and it is said that there was more."""
    assert decode_body([coding], CODERS[coding](TEXT), 1000, 10**6) == Decoded(TEXT[:1000], truncated=True)
    assert decode_body([coding], CODERS[coding](TEXT), len(TEXT), 10**6) == Decoded(TEXT)


@pytest.mark.parametrize("coding", sorted(CODERS))
def test_a_broken_stream_keeps_what_came_before(coding: str) -> None:
    """A stream that ends early or breaks yields its good beginning and a reason."""
    whole = CODERS[coding](TEXT)
    cut = decode_body([coding], whole[:-20], BIG, 10**6)
    assert "early" in cut.fault
    assert TEXT.startswith(cut.body)
    damaged = bytearray(whole)
    damaged[len(whole) // 2 : len(whole) // 2 + 8] = b"\xff" * 8
    assert decode_body([coding], bytes(damaged), BIG, 10**6).fault


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_costs_no_more_than_the_cap(coding: str) -> None:
    """40 MB of zeros: cut by ratio first, or by the cap; memory stays at the cap plus a megabyte."""
    bomb = CODERS[coding](bytes(40 * 10**6))
    judged = decode_body([coding], bomb, BIG, 20)
    assert "max_ratio" in judged.fault
    assert len(judged.body) <= max(20 * len(bomb), 64 * 1024)
    tracemalloc.start()
    capped = decode_body([coding], bomb, 2**20, 10**9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert capped == Decoded(bytes(2**20), truncated=True)
    assert peak < 2 * 2**20 + 2**18, peak


def test_a_nested_bomb_is_bounded_too() -> None:
    """gzip in gzip of zeros, whose middle layer alone would be megabytes."""
    bomb = gzip.compress(gzip.compress(bytes(30 * 10**6)))
    result = decode_body(["gzip", "gzip"], bomb, 10**6, 200)
    assert len(result.body) <= 10**6
    assert result.truncated


def test_names_that_are_no_codings() -> None:
    """Labels nobody registered mean "as it is"; a registered coding that we lack is a fault; so is gzip in name only fine."""
    assert decode_body(["utf-8"], b"text", BIG, 200) == Decoded(b"text")
    assert decode_body(["none", ""], b"text", 2, 200) == Decoded(b"te", truncated=True)
    assert decode_body(["gzip"], b"<html>", BIG, 200) == Decoded(b"<html>")
    assert "compress" in decode_body(["compress"], b"\x1f\x9d", BIG, 200).fault


@given(st.sampled_from(["gzip", "deflate", "br", "zstd"]), st.binary(max_size=200), st.integers(1, 10**5))
def test_any_bytes_are_an_outcome(coding: str, body: bytes, cap: int) -> None:
    """No input raises, and no output passes the cap."""
    for data in (body, CODERS[coding](body)[: len(body)] + body):
        assert len(decode_body([coding, "gzip"], data, cap, 200).body) <= cap


@given(st.sampled_from(["gzip", "deflate", "br", "zstd"]), st.binary(max_size=5000))
def test_round_trip(coding: str, data: bytes) -> None:
    """Compressing and decoding is the identity."""
    assert decode_body([coding], CODERS[coding](data), BIG, 10**9) == Decoded(data)
