"""Personal data in a text, as spans: e-mail, phone, IP v4 and v6, IBAN, card numbers. Found by rule and checksum only.

Decisions depend on the text alone, never on what came before it. Each pattern runs only where a cheap look says it could
match. Private, loopback and documentation addresses are no personal data; versions and dates are no phone numbers.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import NamedTuple

PII_KINDS = ("email", "phone", "ipv4", "ipv6", "iban", "card")


class Span(NamedTuple):
    """Code points `start:end` of a text."""

    kind: str
    start: int
    end: int


_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+\-@])[A-Za-z0-9_%+\-](?:[A-Za-z0-9._%+\-]{0,63})@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62})\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9\-@])"
)
# The first character comes first and what may not stand before it second: then `re` skips from one such character to the next.
_DIGITS = re.compile(
    r"[+(\d](?<![\w.,/:#=+\-][+(\d])(?:(?<=\+)\(?\d|(?<=\()\d|(?<=\d))(?:[\d()/.\-\u2010-\u2013\u00a0 ]{5,30})\d(?![\w/:=%]|[.,]\d)",
    re.ASCII,
)
_IPV4 = re.compile(r"\d(?<![\w.]\d)\d{0,2}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w]|\.\d)", re.ASCII)
_IPV6_CHARS = frozenset("0123456789ABCDEFabcdef:")
_IPV6_LENGTHS = range(2, 40)
_NO_BORDER = re.compile(r"[\w.]", re.ASCII)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])", re.ASCII)
_DATE = re.compile(
    r"\d{1,2}[./\-]\d{1,2}[./\-]\d{2,4}|\d{4}[./\-]\d{1,2}[./\-]\d{1,2}(?: \d{1,2})?|\d{4} ?[-\u2010-\u2013] ?\d{4}(?:[-\u2010-\u2013]\d{4})?"
)
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24,
    "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20,
    "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29,
    "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22,
    "VG": 24, "XK": 20,
}  # fmt: skip


class Hints(NamedTuple):
    """Which patterns could match at all. True is always safe: hints save time and change no answer."""

    numbers: bool = True
    ibans: bool = True
    ipv4: bool = True


ALL = Hints()
_COLONS = re.compile(r":(?:[0-9A-Fa-f]{1,4})?:")
LONGEST_NUMBER = 34
"""Characters the number pattern can span; a phone or card number has `FEWEST_DIGITS` digits within."""
FEWEST_DIGITS = 7


def pii(text: str, hints: Hints = ALL) -> list[Span]:
    """All spans of a text, by start; they never overlap (of two that begin together the longer one stays)."""
    found: list[Span] = []
    if "@" in text:
        found += [Span("email", *match.span()) for match in _EMAIL.finditer(text)]
    if hints.ibans:
        found += _ibans(text)
    if hints.ipv4:
        found += _ipv4(text)
    if hints.numbers:
        found += _numbers(text)
    if ":" in text:
        found += _ipv6(text)
    found.sort(key=lambda span: (span.start, -span.end, PII_KINDS.index(span.kind)))
    kept: list[Span] = []
    for span in found:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _ibans(text: str) -> Iterator[Span]:
    for match in _IBAN.finditer(text):
        whole = match[0]
        length = _IBAN_LENGTHS.get(whole[:2])
        if length is None:
            continue
        end = _cut(whole, length)  # the pattern may have swallowed a following word in capitals
        compact = whole[:end].replace(" ", "")
        if len(compact) == length and int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1:
            yield Span("iban", match.start(), match.start() + end)


def _cut(whole: str, length: int) -> int:
    seen = 0
    for index, char in enumerate(whole):
        seen += char != " "
        if seen == length:
            return index + 1
    return len(whole)


def _ipv4(text: str) -> Iterator[Span]:
    for match in _IPV4.finditer(text):
        parts = match[0].split(".")
        if (
            all(int(part) < 256 and (part == "0" or part[0] != "0") for part in parts)
            and ipaddress.IPv4Address(match[0]).is_global
        ):
            yield Span("ipv4", *match.span())


def _ipv6(text: str) -> Iterator[Span]:
    """Runs of hexadecimal digits and colons, found by two colons at most four digits apart: every address has such a pair."""
    end = 0
    for pair in _COLONS.finditer(text):
        start = pair.start()
        if start < end:
            continue
        while start and text[start - 1] in _IPV6_CHARS:
            start -= 1
        end = pair.end()
        while end < len(text) and text[end] in _IPV6_CHARS:
            end += 1
        run = text[start:end]
        if len(run) not in _IPV6_LENGTHS or not any(c.isdigit() for c in run):
            continue
        if _NO_BORDER.match(text, start - 1, start) or (_NO_BORDER.match(text, end, end + 1) and text[end] != "."):
            continue
        try:
            address = ipaddress.IPv6Address(run)
        except ValueError:  # a time, a MAC address, a C++ name
            continue
        if address.is_global:
            yield Span("ipv6", start, end)


def _numbers(text: str) -> Iterator[Span]:
    """Card numbers and phone numbers: runs of digits with separators."""
    for match in _DIGITS.finditer(text):
        raw = match[0].rstrip(" .-(/")
        digits = "".join(c for c in raw if c.isdigit())
        if 13 <= len(digits) <= 19 and _luhn(digits) and _card_like(raw, digits):
            yield Span("card", match.start(), match.start() + len(raw))
        elif _phone_like(raw, digits):
            yield Span("phone", match.start(), match.start() + len(raw))


def _luhn(digits: str) -> bool:
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_CARD = re.compile(
    r"4\d{12}(?:\d{3}(?:\d{3})?)?|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:6011|65\d\d|64[4-9]\d|62\d\d|35[2-8]\d)\d{12,15}"
)
"""Numbers that card networks issue: prefix and length (ISO/IEC 7812; Visa, Mastercard, American Express, Diners, Discover, UnionPay, JCB)."""


def _card_like(raw: str, digits: str) -> bool:
    plain = all(c.isdigit() or c in " -" for c in raw)
    return plain and _CARD.fullmatch(digits) is not None and len(set(digits)) > 1


def _phone_like(raw: str, digits: str) -> bool:
    if not 7 <= len(digits) <= 15 or _DATE.fullmatch(raw.strip("()")) or len(set(digits)) == 1:
        return False
    if raw.count("(") != raw.count(")") or (raw.count(".") == 3 and _IPV4.fullmatch(raw)):
        return False
    if raw.startswith(("+", "(+")):
        return True
    groups = [group for group in re.split(r"\D+", raw) if group]
    if raw.startswith("("):
        return len(digits) >= 9
    separated = len(groups) >= 2 and max(map(len, groups)) <= 8
    # without a country code: a trunk zero, or groups written like a number that is dialled (3-3-4, 2-4-4 …)
    if digits[0] == "0" and digits[1] != "0":
        return separated and len(digits) >= 8
    shape = [len(group) for group in groups]
    return shape in ([3, 3, 4], [1, 3, 3, 4]) and raw[len(groups[0])] in "-. "
