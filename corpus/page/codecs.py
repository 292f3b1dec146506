"""Bytes -> text in each encoding of the web, as the WHATWG Encoding Standard defines it.

Python's codecs do the work; this file says where the standard differs from them: undefined bytes that are C1 controls,
vendor extensions of the Japanese and Chinese sets, one U+FFFD for an unmapped pair. `strict=True` raises
UnicodeDecodeError at the first malformed sequence; otherwise nothing raises and malformed sequences are U+FFFD.
Known gap: some 160 rare HKSCS-2008 pairs of Big5 that Python's tables lack read as U+FFFD.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import partial

from corpus.page.labels import ENCODINGS

Decoder = Callable[[bytes, bool], str]

_UNDEFINED = "\ufffe"
"""What `charmap_decode` takes as "no such character"."""

_SINGLE_BYTE = {
    "ibm866": "cp866",
    "iso-8859-2": "iso8859_2",
    "iso-8859-3": "iso8859_3",
    "iso-8859-4": "iso8859_4",
    "iso-8859-5": "iso8859_5",
    "iso-8859-6": "iso8859_6",
    "iso-8859-7": "iso8859_7",
    "iso-8859-8": "iso8859_8",
    "iso-8859-8-i": "iso8859_8",
    "iso-8859-10": "iso8859_10",
    "iso-8859-13": "iso8859_13",
    "iso-8859-14": "iso8859_14",
    "iso-8859-15": "iso8859_15",
    "iso-8859-16": "iso8859_16",
    "koi8-r": "koi8_r",
    "koi8-u": "koi8_u",
    "macintosh": "mac_roman",
    "windows-874": "cp874",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "windows-1252": "cp1252",
    "windows-1253": "cp1253",
    "windows-1254": "cp1254",
    "windows-1255": "cp1255",
    "windows-1256": "cp1256",
    "windows-1257": "cp1257",
    "windows-1258": "cp1258",
    "x-mac-cyrillic": "mac_cyrillic",
}
_CORRECTIONS = {"koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"}, "windows-1255": {0xCA: "\u05ba"}}
"""Bytes where the standard's index and Python's table disagree."""


def _single_byte(name: str, codec: str) -> Decoder:
    table = list(bytes(range(256)).decode(codec, "replace"))
    for byte, char in enumerate(table):
        if char == "\ufffd":
            table[byte] = chr(byte) if 0x80 <= byte < 0xA0 else _UNDEFINED
    for byte, char in _CORRECTIONS.get(name, {}).items():
        table[byte] = char
    index = "".join(table)

    def decode(body: bytes, strict: bool) -> str:
        return codecs.charmap_decode(body, "strict" if strict else "replace", index)[0]

    return decode


def _pairs(codec: str, extra: Callable[[bytes], str | None], fixes: dict[str, str] | None = None) -> Decoder:
    """A double-byte set: Python's `codec`, then `extra` for pairs it lacks, then `fixes` of single characters."""
    table = str.maketrans(fixes or {})

    def mend(error: UnicodeError, strict: bool) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        start = error.start
        pair = error.object[start : start + 2]
        char = extra(pair)
        if char is not None:
            return char, start + (1 if pair[0] == 0x80 else 2)
        if strict:
            raise error
        # The standard keeps an ASCII trail byte for the next character, so that no markup is swallowed.
        whole = pair[0] > 0x80 and len(pair) == 2 and pair[1] >= 0x80
        triple = whole and pair[0] == 0x8F and codec == "euc_jp" and error.object[start + 2 : start + 3] >= b"\x80"
        return "\ufffd", start + 1 + whole + triple

    handlers = {strict: f"corpus-{codec}-{'strict' if strict else 'replace'}" for strict in (True, False)}
    for strict, handler in handlers.items():
        codecs.register_error(handler, partial(mend, strict=strict))

    def decode(body: bytes, strict: bool) -> str:
        text = body.decode(codec, handlers[strict])
        return text.translate(table) if table and not text.isascii() else text

    return decode


def _none(_pair: bytes) -> str | None:
    return None


_ETEN = dict(zip(range(0xA3C0, 0xA3E2), [*map(chr, range(0x2400, 0x2420)), "\u2421", "\u20ac"], strict=True)) | {
    0xC6CF: "\u5ef4", 0xC6D3: "\u65e0", 0xC6D5: "\u7676", 0xC6D7: "\u96b6", 0xC6DE: "\u3003", 0xC6DF: "\u4edd",
}  # fmt: skip
"""Control pictures, the euro sign and a few radicals that Hong Kong's table leaves out."""


def _big5(pair: bytes) -> str | None:
    return _ETEN.get(int.from_bytes(pair, "big"))


def _gb18030(pair: bytes) -> str | None:
    """Windows' euro sign, a single byte."""
    return "\u20ac" if pair[0] == 0x80 else None


def _jis0208(pair: bytes) -> str | None:
    """NEC's and IBM's rows of JIS X 0208 in EUC form, by way of the same cells in Windows' Shift_JIS."""
    if len(pair) < 2 or min(pair) < 0xA1 or max(pair) > 0xFE:
        return None
    row, cell = pair[0] - 0xA1, pair[1] - 0xA1
    lead = 0x81 + row // 2 + (0x40 if row >= 62 else 0)
    trail = cell + 0x9F if row % 2 else cell + 0x40 + (cell >= 63)
    char = bytes((lead, trail)).decode("cp932", "replace")
    return None if "\ufffd" in char else char


_JIS_FIXES = {
    "\u301c": "\uff5e",
    "\u2016": "\u2225",
    "\u2212": "\uff0d",
    "\u00a2": "\uffe0",
    "\u00a3": "\uffe1",
    "\u00ac": "\uffe2",
}
"""Where the web follows Windows' reading of JIS and Python follows the Unicode Consortium's."""
_GB_FIXES = dict(zip(
    "\ue5e5\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue7c7\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
    "\u3000\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19\u1e3f\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb",
    strict=True,
))  # fmt: skip
"""Private-use cells that GB 18030-2022 gave real characters."""
_BIG5_FIXES = dict(
    zip(
        "\u2022\uff64\u203e\u223c\u2641\u2609\u00a5\u00a2\u00a3",
        "\u2027\ufe51\u00af\uff5e\u2295\u2299\uffe5\uffe0\uffe1",
        strict=True,
    )
)

_euc_jp = _pairs("euc_jp", _jis0208, _JIS_FIXES)
_ESCAPES = re.compile(rb"\x1b(?:\(([BJI])|\$([@B]))")


def _iso_2022_jp(body: bytes, strict: bool) -> str:
    """Runs between escape sequences, each in the set that the escape before it names."""
    parts, at, state = [], 0, b"B("
    for match in [*_ESCAPES.finditer(body), None]:
        run = body[at : match.start() if match else len(body)]
        parts.append(_iso_2022_run(run, state, strict))
        if match:
            at, state = match.end(), match[1] + b"(" if match[1] else b"$"
    return "".join(parts)


def _iso_2022_run(run: bytes, state: bytes, strict: bool) -> str:
    if state == b"$":
        return _euc_jp(run.translate(_HIGH), strict)
    errors = "strict" if strict else "replace"
    if state == b"I(":
        return codecs.charmap_decode(run, errors, _KATAKANA)[0]
    text = run.decode("ascii", errors)
    return text.translate({0x5C: "\u00a5", 0x7E: "\u203e"}) if state == b"J(" else text


_HIGH = bytes(byte | 0x80 if 0x20 < byte < 0x7F else byte for byte in range(256))
_KATAKANA = "".join(
    chr(0xFF40 + byte) if 0x21 <= byte <= 0x5F else chr(byte) if byte < 0x21 else _UNDEFINED for byte in range(256)
)
_USER_DEFINED = "".join(chr(byte if byte < 0x80 else 0xF700 + byte) for byte in range(256))


def _python(codec: str) -> Decoder:
    def decode(body: bytes, strict: bool) -> str:
        return body.decode(codec, "strict" if strict else "replace")

    return decode


def _user_defined(body: bytes, _strict: bool) -> str:
    return codecs.charmap_decode(body, "replace", _USER_DEFINED)[0]


def _replacement(body: bytes, _strict: bool) -> str:
    """Encodings that could smuggle markup past a filter: one U+FFFD stands for the whole page, as in browsers."""
    return "\ufffd" if body else ""


MULTI_BYTE: dict[str, Decoder] = {
    "utf-8": _python("utf-8"),
    "utf-16le": _python("utf-16-le"),
    "utf-16be": _python("utf-16-be"),
    "gbk": _pairs("gb18030", _gb18030, _GB_FIXES),
    "gb18030": _pairs("gb18030", _gb18030, _GB_FIXES),
    "big5": _pairs("big5hkscs", _big5, _BIG5_FIXES),
    "euc-jp": _euc_jp,
    "iso-2022-jp": _iso_2022_jp,
    "shift_jis": _pairs("cp932", _none),
    "euc-kr": _pairs("cp949", _none),
}
"""Encodings whose malformed sequences tell that the label is wrong; a single-byte set decodes anything."""

DECODERS: dict[str, Decoder] = (
    MULTI_BYTE
    | {name: _single_byte(name, codec) for name, codec in _SINGLE_BYTE.items()}
    | {"x-user-defined": _user_defined, "replacement": _replacement}
)
assert set(DECODERS) == ENCODINGS, "every encoding needs a decoder"
