"""html5lib's prescan cases and the legacy index files of encoding_rs: declared encodings are found and decoded."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.page.charset import decode
from corpus.page.codecs import DECODERS
from corpus.page.labels import encoding_name


def _prescan_cases(folder: Path) -> Iterator[tuple[bytes, str | None]]:
    for name in ("tests1.dat", "tests2.dat", "test-yahoo-jp.dat"):
        for case in re.split(rb"(?:^|\n)#data\n", (folder / name).read_bytes()):
            data, mark, label = case.partition(b"\n#encoding\n")
            if mark:
                yield data, encoding_name(label.strip().split(b"\n")[0].decode())


def test_declared_encodings_are_found(test_data: Path) -> None:
    """At least 98 % of html5lib's cases. The one we read otherwise says euc-jp over bytes that are UTF-8."""
    cases = list(_prescan_cases(test_data / "encoding" / "html5lib"))
    right = sum(decode(data).charset == expected for data, expected in cases)
    assert len(cases) > 80
    assert right / len(cases) >= 0.98


LEGACY = [
    ("big5", "big5_in", 0.99),
    ("euc-kr", "euc_kr_in", 1.0),
    ("gb18030", "gb18030_in", 1.0),
    ("gbk", "gb18030_in", 1.0),
    ("shift_jis", "shift_jis_in", 1.0),
    ("euc-jp", "jis0208_in", 1.0),
    ("euc-jp", "jis0212_in", 0.999),
    ("iso-2022-jp", "iso_2022_jp_in", 1.0),
]


@pytest.mark.parametrize(("label", "name", "share"), LEGACY)
def test_legacy_indexes_decode_as_the_standard_says(test_data: Path, label: str, name: str, share: float) -> None:
    """Every pair of every legacy index, declared by the header: the same characters, the same U+FFFD, line by line."""
    with tarfile.open(test_data / "encoding" / "encoding_rs_test_data.tar.gz") as archive:
        files = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
        parts = [archive.extractfile(files[f"{name}{end}.txt"]) for end in ("", "_ref")]
        body, expected = (part.read() for part in parts if part is not None)
    # Half of such a file is malformed on purpose, which is no page: the decoder itself is asked.
    lines = DECODERS[label](body, False).split("\n")
    wanted = expected.decode("utf-8").split("\n")
    right = sum(line == other for line, other in zip(lines, wanted, strict=False))
    assert right / len(wanted) >= share
