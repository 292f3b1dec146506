"""Personal data: what is found, what is left alone, and that order and company change nothing."""

from __future__ import annotations

import itertools

import pytest

from corpus.filter.spans import personal_spans
from corpus.filter.spans_pii import pii
from corpus.filter.tokens import chunk


def _found(text: str) -> list[tuple[str, str]]:
    return [(span.kind, text[span.start : span.end]) for span in pii(text)]


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        ("write to jane.doe+x@mail.example.com today", "email", "jane.doe+x@mail.example.com"),
        ("(a.b@example.org)", "email", "a.b@example.org"),
        ("call +49 30 123456-78 now", "phone", "+49 30 123456-78"),
        ("call (555) 123-4567 now", "phone", "(555) 123-4567"),
        ("call 555-123-4567.", "phone", "555-123-4567"),
        ("Tel. 030 / 1234 5678", "phone", "030 / 1234 5678"),
        ("from 8.8.8.8 to here", "ipv4", "8.8.8.8"),
        ("at 2a00:1450:4001:81b::200e it", "ipv6", "2a00:1450:4001:81b::200e"),
        ("IBAN DE89 3704 0044 0532 0130 00 bitte", "iban", "DE89 3704 0044 0532 0130 00"),
        ("GB82WEST12345698765432", "iban", "GB82WEST12345698765432"),
        ("card 4111 1111 1111 1111 exp", "card", "4111 1111 1111 1111"),
        ("card 6011-0009-9013-9424.", "card", "6011-0009-9013-9424"),
        ("日本の番号 +81 3-1234-5678 です", "phone", "+81 3-1234-5678"),
    ],
)
def test_personal_data_is_found(text: str, kind: str, what: str) -> None:
    """Each kind is found with its exact bounds."""
    assert _found(text) == [(kind, what)]


@pytest.mark.parametrize(
    "text",
    [
        "on 2024-01-15 and 15.01.2024 and 1999-2004",
        "version 1.2.3.4567 and 10.0.0.1 and 192.168.1.1 and 127.0.0.1",
        "DE89 3704 0044 0532 0130 01",  # wrong checksum
        "4111 1111 1111 1112",  # wrong checksum
        "ISBN 978-3-16-148410-0",
        "12:30:45 and ::1 and fe80::1 and std::vector",
        "user@localhost and @handle and a@b",
        "it cost 1,234,567 dollars in 1990",
        "0000000000000000",
    ],
)
def test_other_numbers_are_left_alone(text: str) -> None:
    """Dates, versions, private addresses, wrong checksums and plain numbers are no personal data."""
    assert _found(text) == []


def test_spans_never_overlap_and_ascend() -> None:
    """Whatever stands together, spans are in order and apart."""
    spans = pii("a@b.example; 8.8.8.8; +49 30 1234567; 4111111111111111; DE89370400440532013000; x@y.example")
    assert [span.kind for span in spans] == ["email", "ipv4", "phone", "card", "iban", "email"]
    assert all(one.end <= two.start for one, two in itertools.pairwise(spans))


@pytest.mark.parametrize(
    "text",
    [
        "1 " * 200_000,
        "a@" * 100_000,
        ":" * 200_000,
        "AB12 " * 50_000,
        "1." * 100_000,
        "(" * 100_000,
        "@a." * 60_000,
        "9" * 300_000,
    ],
)
def test_hostile_runs_take_bounded_time(text: str) -> None:
    """No run of characters makes a pattern explode."""
    import time

    begin = time.process_time()
    pii(text)
    assert time.process_time() - begin < 2.0


def test_hints_save_time_and_change_no_answer() -> None:
    """What the batch's hints skip has no span: every text gives the same with and without them."""
    texts = [
        "call +49 30 123456-78 now", "x", "", "DE89 3704 0044 0532 0130 00", "from 8.8.8.8 to", "1.2.3", "1 2 3 4 5 6 7", "(030)  .... -- //  1 2 3 4 5 6 7",
        "1 2 3 4 5 6", "4111 1111 1111 1111", "AB12", "a 1", "+4 9 3 0 1 2 3",
    ]  # fmt: skip
    assert personal_spans(chunk(texts)) == [pii(text) for text in texts]
